/* SPDX-License-Identifier: Apache-2.0 */
/*
 * later.c - names that came after 2.28, up to 2.32. Programs built for those versions
 * need them to load; what cannot be done here is refused by name.
 */
#include "comm.h"

#include <string.h>

/* ---- collectives with hints ---- */

/* Shares of a GPU and tags of a profiler are hints; what would change a result is not. */
static ncclResult_t hints_check(const ncclCollConfig_t *config, const char *what)
{
	if (!config)
		return ncclSuccess;
	if (config->magic != NCCL_API_MAGIC || config->size < sizeof(*config))
		return hk__nccl_fail(ncclInvalidArgument,
				     "%s: the configuration was not initialized with "
				     "NCCL_COLLCONFIG_INITIALIZER",
				     what);
	if (config->ext)
		return hk__nccl_fail(ncclInvalidUsage, "%s: config.ext is not supported", what);
	if (config->launchCompletionEvent)
		return hk__nccl_fail(ncclInvalidUsage,
				     "%s: config.launchCompletionEvent is not supported", what);
	if (config->algSelection && config->algSelection[0] && config->forceAlgSelection)
		return hk__nccl_fail(
			ncclInvalidUsage,
			"%s: config.algSelection \"%s\" is not supported: unset it, or "
			"set NCCL_ALGO",
			what, config->algSelection);
	return ncclSuccess;
}

static ncclResult_t op_hinted(struct hk__nccl_op *op, ncclDataType_t type, ncclRedOp_t redop,
			      const ncclCollConfig_t *config, const char *what)
{
	ncclResult_t result = hints_check(config, what);

	return result == ncclSuccess ? hk__nccl_op_submit(op, type, redop)
				     : hk__nccl_group_said(result);
}

/* A call of `in` and `out` whose other arguments are these. */
#define OP(which, peer) \
	(struct hk__nccl_op) \
	{ \
		.kind = HK__NCCL_##which, .in = in, .out = out, .count = count, .comm = comm, \
		.stream = stream, .root = (uint32_t)(peer) \
	}

ncclResult_t ncclAllReduceConfig(const void *in, void *out, size_t count, ncclDataType_t type,
				 ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
				 const ncclCollConfig_t *config)
{
	return op_hinted(&OP(ALLREDUCE, 0), type, op, config, "ncclAllReduceConfig");
}
HK__NCCL_TWIN(AllReduceConfig);

ncclResult_t ncclReduceConfig(const void *in, void *out, size_t count, ncclDataType_t type,
			      ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream,
			      const ncclCollConfig_t *config)
{
	return op_hinted(&OP(REDUCE, root), type, op, config, "ncclReduceConfig");
}
HK__NCCL_TWIN(ReduceConfig);

ncclResult_t ncclBroadcastConfig(const void *in, void *out, size_t count, ncclDataType_t type,
				 int root, ncclComm_t comm, cudaStream_t stream,
				 const ncclCollConfig_t *config)
{
	return op_hinted(&OP(BROADCAST, root), type, ncclSum, config, "ncclBroadcastConfig");
}
HK__NCCL_TWIN(BroadcastConfig);

ncclResult_t ncclAllGatherConfig(const void *in, void *out, size_t count, ncclDataType_t type,
				 ncclComm_t comm, cudaStream_t stream,
				 const ncclCollConfig_t *config)
{
	return op_hinted(&OP(ALLGATHER, 0), type, ncclSum, config, "ncclAllGatherConfig");
}
HK__NCCL_TWIN(AllGatherConfig);

ncclResult_t ncclReduceScatterConfig(const void *in, void *out, size_t count, ncclDataType_t type,
				     ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream,
				     const ncclCollConfig_t *config)
{
	return op_hinted(&OP(REDUCESCATTER, 0), type, op, config, "ncclReduceScatterConfig");
}
HK__NCCL_TWIN(ReduceScatterConfig);

ncclResult_t ncclAlltoAllConfig(const void *in, void *out, size_t count, ncclDataType_t type,
				ncclComm_t comm, cudaStream_t stream,
				const ncclCollConfig_t *config)
{
	return op_hinted(&OP(ALLTOALL, 0), type, ncclSum, config, "ncclAlltoAllConfig");
}
HK__NCCL_TWIN(AlltoAllConfig);

ncclResult_t ncclGatherConfig(const void *in, void *out, size_t count, ncclDataType_t type,
			      int root, ncclComm_t comm, cudaStream_t stream,
			      const ncclCollConfig_t *config)
{
	return op_hinted(&OP(GATHER, root), type, ncclSum, config, "ncclGatherConfig");
}
HK__NCCL_TWIN(GatherConfig);

ncclResult_t ncclScatterConfig(const void *in, void *out, size_t count, ncclDataType_t type,
			       int root, ncclComm_t comm, cudaStream_t stream,
			       const ncclCollConfig_t *config)
{
	return op_hinted(&OP(SCATTER, root), type, ncclSum, config, "ncclScatterConfig");
}
HK__NCCL_TWIN(ScatterConfig);

/* ---- what can be answered ---- */

ncclResult_t ncclSetEncryption(const ncclEncryptionConfig_t *config)
{
	if (!config || config->magic != NCCL_API_MAGIC || config->size < sizeof(*config))
		return hk__nccl_fail(
			ncclInvalidArgument,
			"ncclSetEncryption: initialize with NCCL_ENCRYPTION_CONFIG_INITIALIZER");
	if (config->mode == NCCL_ENCRYPTION_MODE_NONE)
		return ncclSuccess;
	return hk__nccl_fail(ncclInvalidUsage,
			     "ncclSetEncryption: mode %d is not supported: set HOCKET_ENCRYPT=1, "
			     "which encrypts with keys made from the id",
			     config->mode);
}
HK__NCCL_TWIN(SetEncryption);

/* All that is not said is no: no device interface, no multimem, no GIN, no RMA. */
ncclResult_t ncclCommQueryProperties(ncclComm_t comm, struct ncclCommProperties *given)
{
	struct {
		size_t size;
		unsigned int magic;
		unsigned int version;
		int rank, nranks, device, nvml;
	} *properties = (void *)given;
	ncclResult_t result = ncclSuccess;

	if (!properties || properties->magic != NCCL_API_MAGIC ||
	    properties->size < sizeof(*properties) || properties->size > 4096)
		return hk__nccl_fail(ncclInvalidArgument, "ncclCommQueryProperties: initialize "
							  "with NCCL_COMM_PROPERTIES_INITIALIZER");
	if (!hk__nccl_comm_try(comm))
		return hk__nccl_fail(ncclInvalidArgument,
				     "ncclCommQueryProperties: not a communicator");
	if (!atomic_load(&comm->made)) {
		result = hk__nccl_fail(
			ncclInvalidUsage,
			"ncclCommQueryProperties: the communicator is still being created");
	} else {
		const size_t from = offsetof(__typeof__(*properties), rank);

		memset((char *)properties + from, 0, properties->size - from);
		properties->rank = comm->rank;
		properties->nranks = comm->nranks;
		properties->device = comm->device;
		properties->nvml = comm->device;
	}
	hk__nccl_comm_drop(comm);
	return result;
}
HK__NCCL_TWIN(CommQueryProperties);

/* ---- what is refused, whatever the arguments ---- */

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define REFUSED(name, arguments, why) \
	ncclResult_t nccl##name arguments \
	{ \
		return hk__nccl_group_said( \
			hk__nccl_fail(ncclInvalidUsage, "nccl" #name " is not supported: " why)); \
	} \
	HK__NCCL_TWIN(name)

#define GROWS "make a communicator of all ranks by ncclCommInitRank"
REFUSED(CommGetUniqueId, (ncclComm_t comm, ncclUniqueId *id), GROWS);
REFUSED(CommGrow,
	(ncclComm_t comm, int nranks, const ncclUniqueId *id, int rank, ncclComm_t *newcomm,
	 ncclConfig_t *config),
	GROWS);

#define KEEPS "Hocket keeps little device memory of its own, and keeps it until the end"
REFUSED(CommSuspend, (ncclComm_t comm, int flags), KEEPS);
REFUSED(CommResume, (ncclComm_t comm), KEEPS);
REFUSED(CommMemStats, (ncclComm_t comm, ncclCommMemStat_t stat, uint64_t *value), KEEPS);

#define ONE_SIDED "Hocket has no one-sided operations; use ncclSend and ncclRecv"
REFUSED(PutSignal,
	(const void *in, size_t count, ncclDataType_t type, int peer, ncclWindow_t window,
	 size_t offset, int signal, int context, unsigned int flags, ncclComm_t comm,
	 cudaStream_t stream),
	ONE_SIDED);
REFUSED(Signal,
	(int peer, int signal, int context, unsigned int flags, ncclComm_t comm,
	 cudaStream_t stream),
	ONE_SIDED);
REFUSED(WaitSignal,
	(int count, ncclWaitSignalDesc_t *signals, ncclComm_t comm, cudaStream_t stream),
	ONE_SIDED);
REFUSED(WinGetUserPtr, (ncclComm_t comm, ncclWindow_t window, void **at),
	"Hocket's windows are NULL");

#define PARAMS "Hocket has no such parameters; hocket-nccl(7) names its variables"
REFUSED(ParamBind, (ncclParamHandle_t * param, const char *key), PARAMS);
REFUSED(ParamGetI8, (ncclParamHandle_t param, int8_t *value), PARAMS);
REFUSED(ParamGetI16, (ncclParamHandle_t param, int16_t *value), PARAMS);
REFUSED(ParamGetI32, (ncclParamHandle_t param, int32_t *value), PARAMS);
REFUSED(ParamGetI64, (ncclParamHandle_t param, int64_t *value), PARAMS);
REFUSED(ParamGetU8, (ncclParamHandle_t param, uint8_t *value), PARAMS);
REFUSED(ParamGetU16, (ncclParamHandle_t param, uint16_t *value), PARAMS);
REFUSED(ParamGetU32, (ncclParamHandle_t param, uint32_t *value), PARAMS);
REFUSED(ParamGetU64, (ncclParamHandle_t param, uint64_t *value), PARAMS);
REFUSED(ParamGetStr, (ncclParamHandle_t param, const char **value), PARAMS);
REFUSED(ParamGet, (ncclParamHandle_t param, void *value, int max, int *len), PARAMS);
REFUSED(ParamGetParameter, (const char *key, const char **value, int *len), PARAMS);
REFUSED(ParamGetAllParameterKeys, (const char ***keys, int *count), PARAMS);

void ncclParamDumpAll(void)
{
	(void)hk__nccl_fail(ncclInvalidUsage, "ncclParamDumpAll is not supported: " PARAMS);
}
HK__NCCL_TWIN(ParamDumpAll);

/* The device interface (absent.c), as it grew. */
#define DEVICE "Hocket has no device interface of NCCL's"
REFUSED(GetLsaDevicePointer, (ncclWindow_t window, size_t offset, int peer, void **at), DEVICE);
REFUSED(GetLsaMultimemDevicePointer, (ncclWindow_t window, size_t offset, void **at), DEVICE);
REFUSED(GetMultimemDevicePointer,
	(ncclWindow_t window, size_t offset, struct ncclMultimemHandle multimem, void **at),
	DEVICE);
REFUSED(GetPeerDevicePointer, (ncclWindow_t window, size_t offset, int peer, void **at), DEVICE);
REFUSED(GetCftDeviceLeInfo,
	(ncclWindow_t window, size_t offset, int peer, ncclTeam_t team, uint32_t *id,
	 size_t *id_offset),
	DEVICE);
REFUSED(GetMultimemDeviceLeInfo,
	(ncclWindow_t window, size_t offset, uint32_t *id, size_t *id_offset), DEVICE);
REFUSED(GetPeerDeviceLeInfo,
	(ncclWindow_t window, size_t offset, int peer, uint32_t *id, size_t *id_offset), DEVICE);
REFUSED(GinOutboxCreateRequirement,
	(int blocks, int size_log2, struct ncclGinOutboxHandle *handle,
	 struct ncclDevResourceRequirements *need),
	DEVICE);
REFUSED(GinInboxA2ACreateRequirement,
	(ncclTeam_t peers, int blocks, int size_log2, struct ncclGinInboxA2AHandle *handle,
	 struct ncclDevResourceRequirements *need),
	DEVICE);

/* Teams of one, as of ncclTeamLsa. */
ncclTeam_t ncclTeamCft(ncclComm_t comm, ncclCftTeamMode_t mode)
{
	return (ncclTeam_t){ .nRanks = 1, .rank = 0, .stride = 1 };
}
HK__NCCL_TWIN(TeamCft);

ncclTeam_t ncclTeamCftMultimem(ncclComm_t comm)
{
	return (ncclTeam_t){ .nRanks = 1, .rank = 0, .stride = 1 };
}
HK__NCCL_TWIN(TeamCftMultimem);
