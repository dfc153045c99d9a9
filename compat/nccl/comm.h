/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm.h - what the files of this library share.
 *
 *   communicator  a rank of a Hocket group, with a progress thread of its own
 *   job           what makes, splits or shrinks one: may wait for other ranks
 *   op            what moves data: host memory at once, device memory on a stream
 *   group         jobs and ops between ncclGroupStart and ncclGroupEnd, of a thread
 *
 * Only the public interface of libhocket is used. Exported functions are never
 * called from inside: in a process with two libraries of that name they could be
 * the other one's.
 */
#ifndef HK_COMPAT_NCCL_COMM_H
#define HK_COMPAT_NCCL_COMM_H

#include "nccl.h"

#include <hocket/hocket.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* After the definition of ncclNAME: its twin. */
#define HK__NCCL_TWIN(name) \
	extern __typeof__(nccl##name) pnccl##name \
		__attribute__((alias("nccl" #name), visibility("default")))

#define HK__NCCL_KEY_BYTES 32
#define HK__NCCL_PLACE_MAX 80
#define HK__NCCL_REDOPS 256	/* operators of a communicator at a time */

/* ---- error.c ---- */

enum hk__nccl_level { HK__NCCL_VERSION, HK__NCCL_WARN, HK__NCCL_INFO, HK__NCCL_TRACE };

/* A line of NCCL_DEBUG, where that level is wanted. Thread-safe, as all of error.c. */
void hk__nccl_log(enum hk__nccl_level level, const char *fmt, ...) HK_PRINTF(2, 3);
/* The result, with a line for ncclGetLastError and NCCL_DEBUG=WARN. */
ncclResult_t hk__nccl_fail(ncclResult_t result, const char *fmt, ...) HK_PRINTF(2, 3);
ncclResult_t hk__nccl_result(enum hk_status status);
const char *hk__nccl_result_text(ncclResult_t result);

/* ---- env.c ---- */

struct hk__nccl_env {
	const char *ifname;	/* NCCL_SOCKET_IFNAME; NULL: not set */
	const char *comm_id;	/* NCCL_COMM_ID */
	const char *host;	/* NCCL_HOSTID */
	const char *net;	/* "tcp" by NCCL_SHM_DISABLE; else NULL */
	const char *gpu;	/* "staged" by NCCL_P2P_DISABLE; else NULL: HOCKET_GPU */
	uint64_t timeout_ns;	/* HOCKET_TIMEOUT, or an hour */
	const char *algo[HK_COLL_COUNT]; /* by NCCL_ALGO; NULL: Hocket chooses */
};
/* Read once, when first asked for. */
const struct hk__nccl_env *hk__nccl_env(void);

/* ---- driver.c ---- */

struct hk__nccl_driver {
	int (*error_name)(int error, const char **name);
	int (*ctx_get)(void **context);
	int (*ctx_device)(int *device);
	int (*ctx_push)(void *context);
	int (*ctx_pop)(void **context);
	int (*device)(int *device, int ordinal);
	int (*primary)(void **context, int device);
	int (*pointer)(void *value, int attribute, unsigned long long at);
	int (*alloc)(unsigned long long *at, size_t bytes);
	int (*free)(unsigned long long at);
	int (*to_host)(void *to, unsigned long long from, size_t bytes, void *stream);
	int (*copy)(unsigned long long to, unsigned long long from, size_t bytes, void *stream);
	int (*stream)(void **stream, unsigned flags);
	int (*stream_free)(void *stream);
	int (*stream_wait)(void *stream);
	int (*stream_follow)(void *stream, void *event, unsigned flags);
	int (*capturing)(void *stream, int *status);
	int (*event)(void **event, unsigned flags);
	int (*event_free)(void *event);
	int (*event_record)(void *event, void *stream);
	int (*event_wait)(void *event);
};
/* The driver, if the process has loaded one; else NULL. */
const struct hk__nccl_driver *hk__nccl_driver(void);
ncclResult_t hk__nccl_cuda(int error, const char *what);
bool hk__nccl_on_device(const void *at);
bool hk__nccl_capturing(void *stream);
/* The context that is current, or device 0's; NULL: no GPU is used. */
void *hk__nccl_context(int *device_out);
/* The primary context of a device. */
ncclResult_t hk__nccl_context_of(int ordinal, void **context_out);
/* Makes a context current until leave; NULL: nothing. */
void hk__nccl_enter(void *context);
void hk__nccl_leave(void *context);

/* ---- meet.c: how ranks that hold an id find each other ---- */

struct hk__nccl_place {
	char address[HK__NCCL_PLACE_MAX];	/* "host:port" of rank 0 */
	char key[2 * HK__NCCL_KEY_BYTES + 1];
	char iface[64];				/* an address of this rank's interface, or "" */
	int held;				/* keeps the port of rank 0 for it; or -1 */
};
ncclResult_t hk__nccl_meet_open(ncclUniqueId *id_out);
/* Until `stop` is set, or the time is up. */
ncclResult_t hk__nccl_meet_join(const ncclUniqueId *given, int rank, int nranks,
				const _Atomic bool *stop, struct hk__nccl_place *place);
/* Rank 0 of a new group that needs no meeting: an address and a key to hand on. */
ncclResult_t hk__nccl_place_make(struct hk__nccl_place *place);
void hk__nccl_place_close(struct hk__nccl_place *place);

/* ---- iface.c ---- */

/* This host's address by NCCL_SOCKET_IFNAME, or the first that leads out; as text. */
bool hk__nccl_iface(const char *ifname, char *text, size_t room);

/* ---- communicators: life.c, comm.c, job.c ---- */

struct hk__nccl_redop {
	bool used;
	bool on_device;		/* `scalar` is read in stream order */
	ncclDataType_t type;
	const void *scalar;
	union {
		float f32;
		uint64_t bits;
		unsigned char bytes[8];
	} factor;
};

struct ncclComm {
	uint64_t magic;		/* for ever, as the two locks: life.c */
	pthread_mutex_t lock;	/* of group, redops, event: one call at a time */
	pthread_mutex_t why_lock; /* of why: the line of what has failed */
	uint32_t depth;		/* hk__nccl_fork_depth of the process that made it */
	struct ncclComm *next_spare;
	_Atomic unsigned holds;	/* the caller's, and one for every child, job, op and call */
	_Atomic bool closed;	/* the caller has given it up */
	_Atomic bool joined;	/* group is what it will be */
	struct hk_group *group;	/* NULL until it is made */
	struct ncclComm *parent; /* that its group was split from: it has to be freed later */
	int rank, nranks;
	int device;
	void *context;		/* NULL: no GPU */
	bool blocking;
	char name[64];
	_Atomic int state;	/* ncclInProgress, ncclSuccess, or what has failed */
	char why[HK_WHY_MAX];
	_Atomic bool made;	/* rank and nranks are, too */
	_Atomic bool aborts;
	_Atomic bool finalized;
	void *event;		/* behind the last op on the device */
	unsigned nredops;
	struct hk__nccl_redop redops[HK__NCCL_REDOPS];
};

/* ---- fork.c ---- */

extern uint32_t hk__nccl_fork_depth;	/* forks since the library was loaded */
void hk__nccl_fork_watch(void);
void hk__nccl_fork_hold(void);		/* nothing forks until hk__nccl_fd_opened */
int hk__nccl_fd_opened(int fd);		/* which no child keeps; -1: errno says why */
void hk__nccl_fd_close(int fd);
#define hk__nccl_fd_open(call) (hk__nccl_fork_hold(), hk__nccl_fd_opened(call))

/* ---- comm.c, life.c ---- */

struct ncclComm *hk__nccl_comm_new(int rank, int nranks, const ncclConfig_t *config);
ncclResult_t hk__nccl_config_check(const ncclConfig_t *config);
/* Holds it, unless the caller has given it up or it is none of this process. */
bool hk__nccl_comm_try(struct ncclComm *comm);
/* Of the process that forked this one: there is nothing here to be freed. */
bool hk__nccl_comm_inherited(const struct ncclComm *comm);
/* Holds it where it can be used for a call; else says why not. */
ncclResult_t hk__nccl_comm_take(struct ncclComm *comm, const char *what);
/* Of one that is held: ncclInvalidUsage while it is made, and when it is over. */
ncclResult_t hk__nccl_comm_usable(struct ncclComm *comm, const char *what);
void hk__nccl_comm_hold(struct ncclComm *comm);
/* Who drops the last hold has the group freed, by a thread of its own. */
void hk__nccl_comm_drop(struct ncclComm *comm);
/* Drops the caller's hold; false: another one has. */
bool hk__nccl_comm_close(struct ncclComm *comm);
/* Its group, from now on; revoked at once where the communicator was aborted. */
void hk__nccl_comm_join(struct ncclComm *comm, struct hk_group *group);
/* What is in flight ends, here and on the other ranks. By any thread. */
void hk__nccl_comm_revoke(struct ncclComm *comm);
/* Waits until what was enqueued is over. */
ncclResult_t hk__nccl_comm_flush(struct ncclComm *comm);
/* Failing of the group is the communicator's from then on. */
ncclResult_t hk__nccl_comm_failed(struct ncclComm *comm, enum hk_status status, const char *what);

enum hk__nccl_job_kind {
	HK__NCCL_INIT,
	HK__NCCL_SPLIT,
	HK__NCCL_SHRINK,
	HK__NCCL_FINALIZE
};

struct hk__nccl_job {
	struct hk__nccl_job *next;
	enum hk__nccl_job_kind kind;
	struct ncclComm *comm;	/* to be made, or finalized; NULL: a split without a color */
	struct ncclComm *parent; /* of split and shrink */
	struct ncclComm **comm_out;
	bool blocking;
	ncclUniqueId id;
	int color, key;
	int *exclude;		/* owned */
	int nexclude;
	bool aborts;
	ncclResult_t result;
	pthread_t thread;
	bool started, done;
};
/* Performs it: now, by a thread, or when the thread's group ends. Takes it over. */
ncclResult_t hk__nccl_job_submit(struct hk__nccl_job *job);
/* All of a group, each by a thread; ncclInProgress where some go on. */
ncclResult_t hk__nccl_jobs_perform(struct hk__nccl_job *jobs);
void hk__nccl_jobs_drop(struct hk__nccl_job *jobs);
ncclResult_t hk__nccl_job_perform(struct hk__nccl_job *job);
/* Ranks that are all here need no meeting. */
ncclResult_t hk__nccl_init_threads(struct hk__nccl_job **jobs, uint32_t n);
/* Options of a group, from the environment. */
struct hk_group_opts hk__nccl_group_opts(void);
/* What device calls need, once for all ranks, before the first of them. */
ncclResult_t hk__nccl_comm_prepare(struct ncclComm *comm);

/* ---- ops: group.c, op.c ---- */

enum hk__nccl_op_kind {
	HK__NCCL_ALLREDUCE,
	HK__NCCL_REDUCE,
	HK__NCCL_BROADCAST,
	HK__NCCL_ALLGATHER,
	HK__NCCL_REDUCESCATTER,
	HK__NCCL_ALLTOALL,
	HK__NCCL_GATHER,
	HK__NCCL_SCATTER,
	HK__NCCL_SEND,
	HK__NCCL_RECV
};

struct hk__nccl_op {
	enum hk__nccl_op_kind kind;
	struct ncclComm *comm;
	const void *in;
	void *out;
	uint64_t count;
	enum hk_type type;
	enum hk_redop redop;
	struct hk__nccl_redop made;	/* where redop is premulsum: as it was when called */
	uint32_t root;			/* or the peer */
	void *stream;
	bool device;			/* device memory; found out when it is performed */
	bool done;			/* with another one, already */
	struct hk_request *request;	/* host memory: to be waited for */
};

/* Checks, and performs or notes it; its communicator is held until it is over. */
ncclResult_t hk__nccl_op_submit(struct hk__nccl_op *op, ncclDataType_t type, ncclRedOp_t redop);
ncclResult_t hk__nccl_ops_perform(struct hk__nccl_op *ops, size_t count);
/* Drops their communicators. */
void hk__nccl_ops_drop(const struct hk__nccl_op *ops, size_t count);
const char *hk__nccl_op_name(enum hk__nccl_op_kind kind);
bool hk__nccl_op_coll(enum hk__nccl_op_kind kind, enum hk_coll *coll_out);
/* In the group of this thread, if one has begun: false if none has. */
bool hk__nccl_group_note_job(struct hk__nccl_job *job);
ncclResult_t hk__nccl_group_note_op(const struct hk__nccl_op *op, bool *noted_out);
/* What a call inside a group refused, ncclGroupEnd says as well. */
ncclResult_t hk__nccl_group_said(ncclResult_t result);
bool hk__nccl_type(ncclDataType_t type, enum hk_type *type_out);
float hk__nccl_small_float(ncclDataType_t type, const void *at);
/* simulate.c: how long these would take, in microseconds. */
ncclResult_t hk__nccl_simulate(const struct hk__nccl_op *ops, size_t count, float *time_out);

#endif
