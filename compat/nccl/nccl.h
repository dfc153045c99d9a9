/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl.h - NCCL's interface, as of 2.28, on Hocket: hocket-nccl(7). Names that came
 * later, up to 2.32, are there as well, so that programs built for those load.
 *
 * Written for Hocket; names, values and layouts are those that programs built with
 * NVIDIA's header use, so that either header fits either library. Every function
 * has a twin with the prefix pnccl.
 */
#ifndef NCCL_H_
#define NCCL_H_

/* As NVIDIA's header: programs have half and __nv_bfloat16 from it. */
#if defined(__has_include)
#if __has_include(<cuda_runtime.h>) && __has_include(<cuda_fp16.h>)
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#if CUDART_VERSION >= 11000
#include <cuda_bf16.h>
#endif
#if defined(__cplusplus) && CUDART_VERSION >= 11080
#include <cuda_fp8.h>
#endif
#endif
#endif

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_PATCH 9
#define NCCL_SUFFIX "hocket"
#define NCCL_VERSION(major, minor, patch) \
	((major) <= 2 && (minor) <= 8 ? (major) * 1000 + (minor) * 100 + (patch) \
				      : (major) * 10000 + (minor) * 100 + (patch))
#define NCCL_VERSION_CODE 22809

#ifdef __cplusplus
extern "C" {
#endif

#ifndef CUDART_VERSION
typedef struct CUstream_st *cudaStream_t;	/* as CUDA has it; a CUstream is the same */
typedef struct CUevent_st *cudaEvent_t;
#endif

typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;
#define NCCL_COMM_NULL NULL

#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
	char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
	ncclSuccess = 0,
	ncclUnhandledCudaError = 1,
	ncclSystemError = 2,
	ncclInternalError = 3,
	ncclInvalidArgument = 4,
	ncclInvalidUsage = 5,
	ncclRemoteError = 6,
	ncclInProgress = 7,
	ncclNumResults = 8
} ncclResult_t;

/* ---- configuration of a communicator ---- */

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_SPLIT_NOCOLOR -1
#define NCCL_UNDEF_FLOAT -1.0f

#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096

#define NCCL_CTA_POLICY_DEFAULT 0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO 0x02

#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT 0x01
#define NCCL_REVOKE_DEFAULT 0x00

#define NCCL_API_MAGIC 0xcafebeef
#define NCCL_SIM_INFO_MAGIC 0x74685283

typedef struct ncclConfig_v22800 {
	size_t size;		/* these three: by the initializer alone */
	unsigned int magic;
	unsigned int version;
	int blocking;
	int cgaClusterSize;
	int minCTAs;
	int maxCTAs;
	const char *netName;
	int splitShare;
	int trafficClass;
	const char *commName;
	int collnetEnable;
	int CTAPolicy;
	int shrinkShare;
	int nvlsCTAs;
	int nChannelsPerNetPeer;
	int nvlinkCentricSched;
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER \
	{ sizeof(ncclConfig_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, NCCL_CONFIG_UNDEF_INT, \
	  NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, \
	  NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, \
	  NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, \
	  NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, \
	  NCCL_CONFIG_UNDEF_INT }

typedef struct ncclSimInfo_v22200 {
	size_t size;
	unsigned int magic;
	unsigned int version;
	float estimatedTime;	/* microseconds */
} ncclSimInfo_t;

#define NCCL_SIM_INFO_INITIALIZER \
	{ sizeof(ncclSimInfo_t), NCCL_SIM_INFO_MAGIC, NCCL_VERSION_CODE, NCCL_UNDEF_FLOAT }

/* ---- elements and operations ---- */

typedef enum { ncclNumOps_dummy = 5 } ncclRedOp_dummy_t;
typedef enum {
	ncclSum = 0,
	ncclProd = 1,
	ncclMax = 2,
	ncclMin = 3,
	ncclAvg = 4,
	ncclNumOps = 5,		/* made ones begin here */
	ncclMaxRedOp = 0x7fffffff >> (32 - 8 * sizeof(ncclRedOp_dummy_t))
} ncclRedOp_t;

typedef enum {
	ncclInt8 = 0, ncclChar = 0,
	ncclUint8 = 1,
	ncclInt32 = 2, ncclInt = 2,
	ncclUint32 = 3,
	ncclInt64 = 4,
	ncclUint64 = 5,
	ncclFloat16 = 6, ncclHalf = 6,
	ncclFloat32 = 7, ncclFloat = 7,
	ncclFloat64 = 8, ncclDouble = 8,
	ncclBfloat16 = 9,
	ncclFloat8e4m3 = 10,
	ncclFloat8e5m2 = 11,
	ncclNumTypes = 12
} ncclDataType_t;

typedef enum {
	ncclScalarDevice = 0,		/* read when the operation gets to it, in its stream */
	ncclScalarHostImmediate = 1	/* read when the operator is made */
} ncclScalarResidence_t;

/* ---- of the device interface: where ranks are; the rest of it is refused ---- */

struct ncclTeam {
	int nRanks, rank, stride;
};
typedef struct ncclTeam ncclTeam_t;
struct ncclDevComm;
struct ncclDevCommRequirements;
struct ncclDevResourceRequirements;
struct ncclLsaBarrierHandle;
struct ncclGinBarrierHandle;
struct ncclLLA2AHandle;

/* ---- of versions after 2.28 ---- */

typedef struct ncclConfigExt {
	struct ncclConfigExt *next;
	struct {
		int vendorId, optionId;
	} key;
	union {
		int i;
		const char *s;
		void *raw;
	} val;
} ncclConfigExt_t;

typedef struct ncclCollConfig_v23200 {
	size_t size;		/* these three: by the initializer alone */
	unsigned int magic;
	unsigned int version;
	ncclConfigExt_t *ext;
	int minCTAs;
	int maxCTAs;
	int nvlsCTAs;
	int cgaClusterSize;
	const char *algSelection;
	int forceAlgSelection;
	int CTAPolicy;
	uint64_t userProfilerTag;
	cudaEvent_t launchCompletionEvent;
} ncclCollConfig_t;

#define NCCL_COLLCONFIG_INITIALIZER \
	{ sizeof(ncclCollConfig_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, NCCL_CONFIG_UNDEF_PTR, \
	  NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, \
	  NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_PTR, 1, NCCL_CONFIG_UNDEF_INT, 0, \
	  NCCL_CONFIG_UNDEF_PTR }

typedef enum {
	NCCL_ENCRYPTION_MODE_NONE = 0,
	NCCL_ENCRYPTION_MODE_PSK = 1
} ncclEncryptionMode_t;

typedef struct ncclEncryptionConfig_v23200 {
	size_t size;
	unsigned int magic;
	unsigned int version;
	int mode;
	const char *psk;
} ncclEncryptionConfig_t;

#define NCCL_ENCRYPTION_CONFIG_INITIALIZER \
	{ sizeof(ncclEncryptionConfig_t), NCCL_API_MAGIC, NCCL_VERSION_CODE, \
	  NCCL_ENCRYPTION_MODE_NONE, NCCL_CONFIG_UNDEF_PTR }

#define NCCL_SUSPEND_MEM 0x01
typedef enum {
	ncclStatGpuMemSuspend = 0,
	ncclStatGpuMemSuspended = 1,
	ncclStatGpuMemPersist = 2,
	ncclStatGpuMemTotal = 3
} ncclCommMemStat_t;

typedef struct {
	int opCnt, peer, sigIdx, ctx;
} ncclWaitSignalDesc_t;

typedef enum {
	NCCL_CFT_TEAM_FLAT,
	NCCL_CFT_TEAM_HIER_MULTIMEM,
	NCCL_CFT_TEAM_HIER_LSA
} ncclCftTeamMode_t;

typedef struct ncclParamHandle *ncclParamHandle_t;
struct ncclCommProperties;
struct ncclGinOutboxHandle;
struct ncclGinInboxA2AHandle;
struct ncclMultimemHandle {
	void *mcBasePtr;
};

/*	what it returns, name, arguments */
#define NCCL_FUNCTION_MAP(X) \
	X(ncclResult_t, MemAlloc, (void **ptr, size_t size)) \
	X(ncclResult_t, MemFree, (void *ptr)) \
	X(ncclResult_t, GetVersion, (int *version)) \
	X(ncclResult_t, GetUniqueId, (ncclUniqueId *id)) \
	X(ncclResult_t, CommInitRankConfig, (ncclComm_t *comm, int nranks, ncclUniqueId id, int rank, \
					     ncclConfig_t *config)) \
	X(ncclResult_t, CommInitRank, (ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)) \
	X(ncclResult_t, CommInitAll, (ncclComm_t *comms, int n, const int *devices)) \
	X(ncclResult_t, CommInitRankScalable, (ncclComm_t *comm, int nranks, int rank, int nids, \
					       ncclUniqueId *ids, ncclConfig_t *config)) \
	X(ncclResult_t, CommFinalize, (ncclComm_t comm)) \
	X(ncclResult_t, CommDestroy, (ncclComm_t comm)) \
	X(ncclResult_t, CommAbort, (ncclComm_t comm)) \
	X(ncclResult_t, CommRevoke, (ncclComm_t comm, int flags)) \
	X(ncclResult_t, CommSplit, (ncclComm_t comm, int color, int key, ncclComm_t *newcomm, \
				    ncclConfig_t *config)) \
	X(ncclResult_t, CommShrink, (ncclComm_t comm, int *exclude, int nexclude, \
				     ncclComm_t *newcomm, ncclConfig_t *config, int flags)) \
	X(const char *, GetErrorString, (ncclResult_t result)) \
	X(const char *, GetLastError, (ncclComm_t comm)) \
	X(void, ResetDebugInit, (void)) \
	X(ncclResult_t, CommGetAsyncError, (ncclComm_t comm, ncclResult_t *result)) \
	X(ncclResult_t, CommCount, (ncclComm_t comm, int *count)) \
	X(ncclResult_t, CommCuDevice, (ncclComm_t comm, int *device)) \
	X(ncclResult_t, CommUserRank, (ncclComm_t comm, int *rank)) \
	X(ncclResult_t, CommRegister, (ncclComm_t comm, void *at, size_t size, void **handle)) \
	X(ncclResult_t, CommDeregister, (ncclComm_t comm, void *handle)) \
	X(ncclResult_t, CommWindowRegister, (ncclComm_t comm, void *at, size_t size, \
					     ncclWindow_t *window, int flags)) \
	X(ncclResult_t, CommWindowDeregister, (ncclComm_t comm, ncclWindow_t window)) \
	X(ncclResult_t, RedOpCreatePreMulSum, (ncclRedOp_t *op, void *scalar, ncclDataType_t type, \
					       ncclScalarResidence_t residence, ncclComm_t comm)) \
	X(ncclResult_t, RedOpDestroy, (ncclRedOp_t op, ncclComm_t comm)) \
	X(ncclResult_t, Reduce, (const void *in, void *out, size_t count, ncclDataType_t type, \
				 ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)) \
	X(ncclResult_t, Bcast, (void *buffer, size_t count, ncclDataType_t type, int root, \
				ncclComm_t comm, cudaStream_t stream)) \
	X(ncclResult_t, Broadcast, (const void *in, void *out, size_t count, ncclDataType_t type, \
				    int root, ncclComm_t comm, cudaStream_t stream)) \
	X(ncclResult_t, AllReduce, (const void *in, void *out, size_t count, ncclDataType_t type, \
				    ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)) \
	X(ncclResult_t, ReduceScatter, (const void *in, void *out, size_t count, \
					ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm, \
					cudaStream_t stream)) \
	X(ncclResult_t, AllGather, (const void *in, void *out, size_t count, ncclDataType_t type, \
				    ncclComm_t comm, cudaStream_t stream)) \
	X(ncclResult_t, AlltoAll, (const void *in, void *out, size_t count, ncclDataType_t type, \
				   ncclComm_t comm, cudaStream_t stream)) \
	X(ncclResult_t, Gather, (const void *in, void *out, size_t count, ncclDataType_t type, \
				 int root, ncclComm_t comm, cudaStream_t stream)) \
	X(ncclResult_t, Scatter, (const void *in, void *out, size_t count, ncclDataType_t type, \
				  int root, ncclComm_t comm, cudaStream_t stream)) \
	X(ncclResult_t, Send, (const void *in, size_t count, ncclDataType_t type, int peer, \
			       ncclComm_t comm, cudaStream_t stream)) \
	X(ncclResult_t, Recv, (void *out, size_t count, ncclDataType_t type, int peer, \
			       ncclComm_t comm, cudaStream_t stream)) \
	X(ncclResult_t, GroupStart, (void)) \
	X(ncclResult_t, GroupEnd, (void)) \
	X(ncclResult_t, GroupSimulateEnd, (ncclSimInfo_t *info)) \
	X(ncclResult_t, DevCommCreate, (ncclComm_t comm, \
					const struct ncclDevCommRequirements *requirements, \
					struct ncclDevComm *devcomm)) \
	X(ncclResult_t, DevCommDestroy, (ncclComm_t comm, const struct ncclDevComm *devcomm)) \
	X(ncclTeam_t, TeamWorld, (ncclComm_t comm)) \
	X(ncclTeam_t, TeamLsa, (ncclComm_t comm)) \
	X(ncclTeam_t, TeamRail, (ncclComm_t comm)) \
	X(int, TeamRankToWorld, (ncclComm_t comm, ncclTeam_t team, int rank)) \
	X(int, TeamRankToLsa, (ncclComm_t comm, ncclTeam_t team, int rank)) \
	X(ncclResult_t, LsaBarrierCreateRequirement, (ncclTeam_t team, int barriers, \
						      struct ncclLsaBarrierHandle *handle, \
						      struct ncclDevResourceRequirements *need)) \
	X(ncclResult_t, GinBarrierCreateRequirement, (ncclComm_t comm, ncclTeam_t team, \
						      int barriers, \
						      struct ncclGinBarrierHandle *handle, \
						      struct ncclDevResourceRequirements *need)) \
	X(int, LLA2ACalcSlots, (int elements, int bytes)) \
	X(ncclResult_t, LLA2ACreateRequirement, (int blocks, int slots, \
						 struct ncclLLA2AHandle *handle, \
						 struct ncclDevResourceRequirements *need))

/* After 2.28; the last arguments of a collective with hints are these. */
#define NCCL_HINTED ncclComm_t comm, cudaStream_t stream, const ncclCollConfig_t *config
#define NCCL_LATER_MAP(X) \
	X(ncclResult_t, AllReduceConfig, (const void *in, void *out, size_t count, \
					  ncclDataType_t type, ncclRedOp_t op, NCCL_HINTED)) \
	X(ncclResult_t, ReduceConfig, (const void *in, void *out, size_t count, \
				       ncclDataType_t type, ncclRedOp_t op, int root, NCCL_HINTED)) \
	X(ncclResult_t, BroadcastConfig, (const void *in, void *out, size_t count, \
					  ncclDataType_t type, int root, NCCL_HINTED)) \
	X(ncclResult_t, AllGatherConfig, (const void *in, void *out, size_t count, \
					  ncclDataType_t type, NCCL_HINTED)) \
	X(ncclResult_t, ReduceScatterConfig, (const void *in, void *out, size_t count, \
					      ncclDataType_t type, ncclRedOp_t op, NCCL_HINTED)) \
	X(ncclResult_t, AlltoAllConfig, (const void *in, void *out, size_t count, \
					 ncclDataType_t type, NCCL_HINTED)) \
	X(ncclResult_t, GatherConfig, (const void *in, void *out, size_t count, \
				       ncclDataType_t type, int root, NCCL_HINTED)) \
	X(ncclResult_t, ScatterConfig, (const void *in, void *out, size_t count, \
					ncclDataType_t type, int root, NCCL_HINTED)) \
	X(ncclResult_t, SetEncryption, (const ncclEncryptionConfig_t *config)) \
	X(ncclResult_t, CommQueryProperties, (ncclComm_t comm, struct ncclCommProperties *properties)) \
	X(ncclResult_t, CommGetUniqueId, (ncclComm_t comm, ncclUniqueId *id)) \
	X(ncclResult_t, CommGrow, (ncclComm_t comm, int nranks, const ncclUniqueId *id, int rank, \
				   ncclComm_t *newcomm, ncclConfig_t *config)) \
	X(ncclResult_t, CommSuspend, (ncclComm_t comm, int flags)) \
	X(ncclResult_t, CommResume, (ncclComm_t comm)) \
	X(ncclResult_t, CommMemStats, (ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value)) \
	X(ncclResult_t, PutSignal, (const void *in, size_t count, ncclDataType_t type, int peer, \
				    ncclWindow_t window, size_t offset, int signal, int context, \
				    unsigned int flags, ncclComm_t comm, cudaStream_t stream)) \
	X(ncclResult_t, Signal, (int peer, int signal, int context, unsigned int flags, \
				 ncclComm_t comm, cudaStream_t stream)) \
	X(ncclResult_t, WaitSignal, (int count, ncclWaitSignalDesc_t *signals, ncclComm_t comm, \
				     cudaStream_t stream)) \
	X(ncclResult_t, WinGetUserPtr, (ncclComm_t comm, ncclWindow_t window, void **at)) \
	X(void, ResetDebugInitInternal, (void)) \
	X(ncclResult_t, ParamBind, (ncclParamHandle_t *param, const char *key)) \
	X(ncclResult_t, ParamGetI8, (ncclParamHandle_t param, int8_t *value)) \
	X(ncclResult_t, ParamGetI16, (ncclParamHandle_t param, int16_t *value)) \
	X(ncclResult_t, ParamGetI32, (ncclParamHandle_t param, int32_t *value)) \
	X(ncclResult_t, ParamGetI64, (ncclParamHandle_t param, int64_t *value)) \
	X(ncclResult_t, ParamGetU8, (ncclParamHandle_t param, uint8_t *value)) \
	X(ncclResult_t, ParamGetU16, (ncclParamHandle_t param, uint16_t *value)) \
	X(ncclResult_t, ParamGetU32, (ncclParamHandle_t param, uint32_t *value)) \
	X(ncclResult_t, ParamGetU64, (ncclParamHandle_t param, uint64_t *value)) \
	X(ncclResult_t, ParamGetStr, (ncclParamHandle_t param, const char **value)) \
	X(ncclResult_t, ParamGet, (ncclParamHandle_t param, void *value, int max, int *len)) \
	X(ncclResult_t, ParamGetParameter, (const char *key, const char **value, int *len)) \
	X(ncclResult_t, ParamGetAllParameterKeys, (const char ***keys, int *count)) \
	X(void, ParamDumpAll, (void)) \
	X(ncclResult_t, GetLsaDevicePointer, (ncclWindow_t window, size_t offset, int peer, \
					      void **at)) \
	X(ncclResult_t, GetLsaMultimemDevicePointer, (ncclWindow_t window, size_t offset, \
						      void **at)) \
	X(ncclResult_t, GetMultimemDevicePointer, (ncclWindow_t window, size_t offset, \
						   struct ncclMultimemHandle multimem, void **at)) \
	X(ncclResult_t, GetPeerDevicePointer, (ncclWindow_t window, size_t offset, int peer, \
					       void **at)) \
	X(ncclResult_t, GetCftDeviceLeInfo, (ncclWindow_t window, size_t offset, int peer, \
					     ncclTeam_t team, uint32_t *id, size_t *id_offset)) \
	X(ncclResult_t, GetMultimemDeviceLeInfo, (ncclWindow_t window, size_t offset, uint32_t *id, \
						  size_t *id_offset)) \
	X(ncclResult_t, GetPeerDeviceLeInfo, (ncclWindow_t window, size_t offset, int peer, \
					      uint32_t *id, size_t *id_offset)) \
	X(ncclResult_t, GinOutboxCreateRequirement, (int blocks, int size_log2, \
						     struct ncclGinOutboxHandle *handle, \
						     struct ncclDevResourceRequirements *need)) \
	X(ncclResult_t, GinInboxA2ACreateRequirement, (ncclTeam_t peers, int blocks, int size_log2, \
						       struct ncclGinInboxA2AHandle *handle, \
						       struct ncclDevResourceRequirements *need)) \
	X(ncclTeam_t, TeamCft, (ncclComm_t comm, ncclCftTeamMode_t mode)) \
	X(ncclTeam_t, TeamCftMultimem, (ncclComm_t comm))

#if defined(__GNUC__)
#define NCCL_VISIBLE __attribute__((visibility("default")))
#else
#define NCCL_VISIBLE
#endif
#define NCCL_DECLARE(result, name, arguments) \
	NCCL_VISIBLE result nccl##name arguments; \
	NCCL_VISIBLE result pnccl##name arguments;
NCCL_FUNCTION_MAP(NCCL_DECLARE)
NCCL_LATER_MAP(NCCL_DECLARE)
#undef NCCL_DECLARE
#undef NCCL_VISIBLE

#ifdef __cplusplus
}
#endif
#endif
