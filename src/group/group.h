/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.h - the inside of a group.
 *
 *   world    what the groups of one rank share: nets, memory, who makes progress
 *   group    ranks, their channels, their programs, and a queue of operations
 *   request  one operation, from its call to its end
 *
 * Operations of a group run one after the other, in the order of their calls;
 * each rank starts the next when its own part of the one before is over, so
 * ranks may be operations apart. Transfers between two ranks run beside them.
 * Groups of one world move on together, whichever of them is waited for.
 */
#ifndef HK_GROUP_GROUP_H
#define HK_GROUP_GROUP_H

#include "base/fork.h"
#include "exec/exec.h"
#include "exec/wait.h"
#include "group/failure/blame.h"
#include "boot/boot.h"
#include "group/failure/consent.h"
#include "group/failure/health.h"
#include "group/heap.h"
#include "group/p2p.h"
#include "group/record/trace.h"
#include "model/select.h"

#include <hocket/group.h>
#include <hocket/record.h>

#include <pthread.h>
#include <stdatomic.h>

struct hk__recorder;		/* recorder.h */
struct hk__rma;			/* net/rma/rma.h */
struct hk__windows;		/* window/window.h */

/* ---- worlds (world.c) ---- */

/* What ranks that are threads of one process share. */
struct hk__commons {
	_Atomic uint32_t refs;
	uint32_t n;
	char *memory;			/* n segments, then a board */
	size_t bytes;
	struct sockaddr_storage *addrs;	/* by rank, if they talk over TCP */
	socklen_t *addr_lens;
	uint16_t *quiet_ports;		/* of the same addresses (conn.h) */
	const struct hk_alloc *alloc;
	struct hk_fabric *like;		/* as a world's */
};

/* What messages between devices (staged.h) wait for, as far as nets do not tell. */
enum hk__copies {
	HK__COPIES_NONE,
	HK__COPIES_AWAITED,		/* another rank */
	HK__COPIES_RUN			/* a device */
};

struct hk__world {
	const struct hk_alloc *alloc;
	uint32_t rank;
	uint32_t n;
	_Atomic uint32_t refs;		/* groups, each freed by its own thread */
	struct hk__boot boot;
	struct hk__charter origin;
	struct hk__commons *commons;	/* NULL: ranks are processes */
	size_t segment_bytes;
	void **segments;		/* by rank; what is mapped */
	void *board;			/* of the ranks of this host */
	bool *is_near;			/* by rank */
	uint32_t *node;			/* by rank */
	struct hk_net *shm, *tcp, *mux, *given;
	struct hk_net *net;		/* the one of them to use */
	bool polls;			/* it moves nothing unless it is polled */
	struct hk__cut_rule cut;	/* of a net that was given; others cut as their fabric does */
	struct hk__heap heap;
	uint32_t looks;			/* polls on the fast path before falling back */
	uint32_t spins, yields;
	uint32_t crowd;			/* ranks of this machine */
	struct hk_fabric *like;		/* whose constants are used; NULL: the library's */
	uint64_t clock;			/* of contexts (context.c) */
	struct hk_group *active;	/* groups with something to do */
	struct hk_group *groups;	/* all of them */
	struct hk_group *asked;		/* those whose windows are reached by messages */
	struct hk__health health;
	struct hk__consent *consents;
	struct hk__told_wait *waits;	/* by rank; NULL: nobody has told */
	uint64_t watch_ns;		/* between looks after peers */
	uint64_t silence_ns;		/* after which a host is out of reach */
	uint64_t looked;		/* net->watched, when waiting ones were looked at */
	struct hk__trace *trace;	/* NULL: nobody asked for one */
	struct hk__recorder *recorder;	/* NULL: none */

	/* The progress thread, if there is one: then nobody else touches nets. */
	bool threaded;
	bool stopping;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t over;		/* some request, or job, is over */
	struct hk__job *jobs;

	/*
	 * The helper, once a group has windows that are reached by messages: callers touch
	 * nets under the lock, and the helper does where none of them has for a while, and
	 * something came (thread.c).
	 */
	bool helped;
	_Atomic bool asks_near;		/* ranks of this host reach some window by messages */
	_Atomic bool helping;		/* false: the helper is to end */
	pthread_t helper;
	_Atomic uint32_t turns;		/* counts up whenever a caller moves nets on */
	_Atomic uint32_t wanted;	/* threads that wait for the lock */
	enum hk__copies copies;
	uint32_t depth;			/* hk__fork_depth of the process that made it */
};

/* A child of fork(2) has a copy of it, and may not touch what the copy points to. */
static inline bool hk__world_inherited(const struct hk__world *world)
{
	return __builtin_expect(world->depth != hk__fork_depth, 0);
}

/* Something to be done by whoever touches nets. */
struct hk__job {
	void (*run)(void *ctx);
	void *ctx;
	bool over;
	struct hk__job *next;
};

struct hk__world_spec {
	enum hk__group_net net;
	const char *iface;
	const char *congestion;		/* as struct hk_tcp_spec has it */
	uint64_t timeout_ns;
	uint64_t watch_ns, silence_ns;
	bool encrypt;
	const char *trace;		/* a folder; "": none */
	uint32_t trace_capacity;
	const struct hk__charter *origin; /* copied */
	const struct hk__record_env *record; /* NULL: none */
	const struct hk_alloc *alloc;
	struct hk_fabric *like;		/* becomes the worlds' own, even if this fails */
};

/* From a bootstrap, which becomes the world's own, even if this fails. */
enum hk_status hk__world_create(const struct hk__world_spec *spec, struct hk__boot *boot,
				struct hk_why *why, struct hk__world **world_out);
enum hk_status hk__world_create_threads(const struct hk__world_spec *spec, uint32_t n,
					struct hk_why *why, struct hk__world **worlds_out);
/* Over any net, which becomes the world's own, even if this fails; no bootstrap. */
struct hk__world_over {
	struct hk_net *net;
	const uint32_t *nodes;		/* by rank; NULL: all of one */
	uint32_t slots, slot_bytes;
};
enum hk_status hk__world_create_over(const struct hk__world_spec *spec,
				     const struct hk__world_over *over,
				     struct hk__world **world_out);
void hk__world_unref(struct hk__world *world);
/* Takes what a net has to say about its last failure; "" if nothing. */
void hk__world_why(struct hk__world *world, struct hk_why *why_out);
size_t hk__world_segment_bytes(void);
/* The mapped segment of a rank of this host; NULL: it cannot be had. */
void *hk__world_segment_of(struct hk__world *world, uint32_t rank);
uint64_t hk__world_heap_at(const struct hk__world *world); /* in every segment */
/* Shared memory of a rank that begins as zeroes, for staged_ring.c; NULL: not reached. */
void *hk__world_rings(struct hk__world *world, uint32_t rank, size_t *bytes_out);
/* Where a rank of the world is, for messages: "this host", or its address. */
void hk__world_where(const struct hk__world *world, uint32_t rank, char *text_out, size_t size);

/* ---- progress (progress.c, thread.c) ---- */

void hk__world_progress(struct hk__world *world, bool *moved_out);
/* What has not finished in time has failed, waited for or not; whether something has. */
bool hk__world_expire(struct hk__world *world);
enum hk_status hk__world_start_thread(struct hk__world *world);
void hk__world_stop_thread(struct hk__world *world);
/* Requests of peers are served although this rank's program calls nothing. */
enum hk_status hk__world_start_helper(struct hk__world *world);
void hk__world_stop_helper(struct hk__world *world);
/* Under the lock, in a long wait: lets others have it who want it. */
void hk__world_give_way(struct hk__world *world);
/* Runs it where nets may be touched, and waits for it. */
void hk__world_run(struct hk__world *world, void (*run)(void *ctx), void *ctx);
void hk__world_lock(struct hk__world *world);
void hk__world_unlock(struct hk__world *world);

/* ---- requests ---- */

enum hk__stage {
	HK__STAGE_AGREE,		/* do all ranks call the same? */
	HK__STAGE_REPORT,		/* they do not: who calls what */
	HK__STAGE_TUNE,		/* what was faster for the slowest? */
	HK__STAGE_RUN
};

/* The signature of a call: what ranks have to agree on; of fixed size, for messages. */
struct hk__call_sig {
	uint64_t number;		/* of the operation in its group */
	uint64_t count;
	uint64_t counts;		/* hash of counts */
	uint32_t coll;
	uint32_t type;
	uint32_t op;
	uint32_t root;
	uint32_t tag;
	char algo[20];
};

/* Three numbers whose minimum tells: the signatures' hash, its complement, ~longest. */
#define HK__AGREE_WORDS 3u

struct hk_request {
	struct hk_request *next;
	struct hk_group *group;
	enum hk_status status;		/* HK_INPROGRESS until it is over */
	bool queued;
	bool kept;			/* the caller frees it */
	struct hk_request *waited;	/* of a batch: the next to wait for */
	uint64_t timeout_ns;
	uint64_t deadline;		/* 0: no clock was read yet */
	int fd;				/* -1: nobody asked */
	struct hk__staged *staged;	/* staged.c's; NULL: of memory of the host */
	bool held;			/* until a stream has come to it */

	bool on_device;			/* noted by a batch; never queued */
	void *stream;			/* of it */
	int ordinal;			/* of it: the GPU whose memory it has; -1: it has none */

	/* A transfer. */
	bool transfers;
	uint32_t peer;
	struct hk__transfer transfer;
	struct hk__p2p_place p2p;

	/* A collective. */
	enum hk_coll coll;
	uint32_t root;
	const char *algo;		/* the library's name of it; NULL: chosen */
	bool inplace;
	const struct hk_plan *plan;	/* the caller's own */
	struct hk__call call;
	struct hk__program *program;	/* NULL: not begun */
	enum hk__stage stage;
	uint64_t words[HK__AGREE_WORDS], least[HK__AGREE_WORDS];
	struct hk__call_sig sig;
	struct hk__call_sig *sigs;	/* of all ranks, when they differ */
	struct hk__tuner *tuner;
	uint64_t began;			/* of a timed call; of a transfer, for a trace */
};

/* ---- groups ---- */

/* How ranks reach each other's device memory; the same on all ranks of a group. */
enum hk__gpu_path {
	HK__GPU_DIRECT,			/* one process: all of it */
	HK__GPU_APART,			/* one host: segments of the library's alone */
	HK__GPU_STAGED			/* not at all: staged through host memory, and nets */
};

/* A plan that is bound and ready. */
struct hk__bound {
	enum hk_coll coll;
	const char *algo;		/* the library's; NULL: a plan of the caller's */
	uint32_t root;
	const struct hk_plan *given;
	struct hk_plan *plan;		/* owned; NULL where given */
	struct hk__program *program;
	bool inplace;			/* proved for that too */
};

#define HK__CLASSES 48u			/* sizes by their logarithm */

/*
 * Which copy method (exec.h) is fastest depends on the machine, and on where its ranks
 * run, so the first calls of every collective and size try each in turn, and then
 * the ranks agree on the one that is best for the slowest.
 */
struct hk__tuner {
	uint32_t calls;
	uint32_t wanted;		/* calls, until it is decided */
	uint64_t run_ns;		/* of calls in a row, by the same method */
	uint64_t best_ns[HK__COPY_COUNT]; /* of such a run */
	bool decided;
	bool again;			/* not for the first time */
	enum hk__copy_method method;	/* that was fastest */
	uint32_t age, keeps;		/* calls since it was decided, and until it is tried again */
};

/*
 * The last plain calls of a collective: one like them need not be looked at
 * again. Several, as roots often change from call to call.
 */
#define HK__RECENT 8u
struct hk__recent {
	struct hk__program *program;	/* NULL: there was none */
	struct hk__call call;
	uint32_t root;
	uint64_t in_bytes, out_bytes;
	bool inplace;
	uintptr_t apart;		/* of `in` from `out`, if in place */
	struct hk__tuner *tuner;	/* NULL: too small to matter */
	bool timed;			/* takes long enough for a clock to be read */
	enum hk_coll coll;
	uint64_t bytes;			/* of the vector, or of all blocks */
};

/* An algorithm that a caller named, and what it is. */
struct hk__named {
	char given[40];
	const char *algo;		/* NULL: nobody has */
};

struct hk_group {
	struct hk__world *world;
	const struct hk_alloc *alloc;
	uint32_t rank;
	uint32_t n;
	uint32_t *ranks;		/* of the world; NULL: the same */
	uint32_t nodes;			/* machines */
	struct hk__named named[HK_COLL_COUNT];
	uint32_t *node_sizes;		/* if ranks of a machine are consecutive; else NULL */
	uint32_t *hosts;		/* by rank, as hk_group_host(); NULL: all are of one */
	struct hk_fabric *fabric;
	struct hk__fabric_view view;
	struct hk__chans chans;
	struct hk__p2p p2p;
	struct hk__array bound;		/* struct hk__bound */
	struct hk__array proved;	/* const struct hk_plan *: of callers */
	/* Algorithms chosen so far, by collective and size; names of the library. */
	const char *chosen[HK_COLL_COUNT][HK__CLASSES];
	struct hk__recent recent[HK_COLL_COUNT][HK__RECENT];
	struct hk__tuner tuners[HK_COLL_COUNT][HK__CLASSES];
	enum hk__copy_method method;	/* chosen last, for transfers */
	uint32_t agree_bound;		/* index + 1 */
	uint32_t report_bound;

	uint64_t timeout_ns;
	bool check;
	uint64_t number;		/* operations so far */
	enum hk_status failed;		/* after which nothing is begun */
	struct hk_why why;		/* of a refusal: the caller's thread alone writes it */
	struct hk_why failure;		/* of `failed`; never changes again */
	bool refused;			/* a call on a failed group was; `why` says more */

	struct hk_request *head, *tail;	/* collectives, in order */
	struct hk_request *transfers, *transfers_tail;
	uint32_t pass;			/* of progress, to keep transfers of a channel in order */
	bool is_active;
	struct hk_group *next_active;
	struct hk_group *next_group;
	uint32_t agreements;		/* so far */
	uint32_t left_looks;		/* in a row, at which a rank was waited for that left */
	uint64_t stuck_since;		/* when nothing moved for the first time; 0: it does */
	uint64_t stuck_told;		/* when others were told; 0: not yet */
	uint32_t stuck_suspect;		/* whom they were told of */

	_Atomic bool woken;		/* a wait with a timeout ends (request.c) */

	struct hk_trace_record traced;	/* the operation that a trace was last told of */
	struct hk_record_group *row;	/* of the recorder; NULL: none */
	const struct hk__recent *row_like; /* what its newest entry is like; NULL: not known */

	enum hk__gpu_path gpu_path;	/* of calls on device memory */
	struct hk__gpu_share *device;	/* device.c's; NULL: no call was on device memory */
	struct hk__staging *staging;	/* staged.c's; NULL: no such call */
	struct hk__windows *windows;	/* window/window.h; NULL: it has none */
	struct hk_group *next_asked;	/* of those whose windows are reached by messages */
	_Atomic bool is_over;		/* it has failed: for who does not take the lock */
	struct hk_device_heap *heaps;	/* heap.c's, in device memory; changed by who touches nets */
	uint64_t heap_number;		/* of those that were made, or tried to */
	bool batching;			/* calls are noted, not begun */
	struct hk_request *batch, *batch_tail;
};

/* bind.c: the program for a request, made when it is first needed. */
enum hk_status hk__group_bind(struct hk_group *group, struct hk_request *request,
			      struct hk__program **program_out);
/* The programs that agree on a call, and tell calls apart. */
enum hk_status hk__group_bind_agree(struct hk_group *group, enum hk__stage stage,
				    struct hk__program **program_out);
/* fabric.c: what the group runs on, from its hosts and how crowded they are. */
enum hk_status hk__group_fabric(struct hk_group *group, struct hk_why *why);
/* The one place where an algorithm is chosen. HK_ENOMEM: who guesses may not choose alike. */
enum hk_status hk__group_select(const struct hk_group *group, enum hk_coll coll, double bytes,
				struct hk_algo_info *algo_out);
void hk__group_unbind(struct hk_group *group);
/* tune.c: NULL where there is nothing to choose. Under the world's lock, as all of it. */
struct hk__tuner *hk__tuner_of(struct hk_group *group, enum hk_coll coll, uint32_t class);
void hk__tuner_words(const struct hk__tuner *tuner, uint64_t words_out[HK__AGREE_WORDS]);
/* Counts a call by the chosen method; false: the methods are to be timed again. */
bool hk__tuner_fresh(struct hk__tuner *tuner);
bool hk__tuner_due(const struct hk__tuner *tuner); /* to be decided */
void hk__tuner_decide(struct hk_group *group, struct hk__tuner *tuner, const uint64_t *worst);
/* The method of this call; *start_out: when it began, 0 if it is not timed. */
void hk__tuner_begin(struct hk__tuner *tuner, struct hk__call *call, uint64_t *start_out);
void hk__tuner_end(struct hk__tuner *tuner, uint64_t start);
uint32_t hk__request_class(const struct hk_request *request);
/* A plan of the caller's, before anything is begun with it. HK_EREFUSED, HK_ENOMEM. */
enum hk_status hk__group_prove(struct hk_group *group, const struct hk_plan *plan);

/* batch.c: one more of a batch; what a batch has noted is never begun */
void hk__batch_note(struct hk_group *group, struct hk_request *request);
void hk__batch_drop(struct hk_group *group);
/* One that is freed before its batch has ended. */
void hk__batch_forget(struct hk_group *group, const struct hk_request *request);

/* progress.c */
enum hk_status hk__group_submit(struct hk_group *group, struct hk_request *request);
/* A collective that was begun already, with the status of its last poll. */
enum hk_status hk__group_adopt(struct hk_group *group, struct hk_request *request,
			       enum hk_status polled);
/* What comes of a request fails its group, and thereby all requests of that. */
void hk__request_fail(struct hk_request *request, enum hk_status status);
void hk__request_time_out(struct hk_request *request);
enum hk_status hk__group_failed(struct hk_group *group);
/* "rank 2: allreduce number 7 (4096 x fp32, ring): ", and "; lane 0 at step ...". */
void hk__group_describe(const struct hk_group *group, struct hk__text *text);
void hk__group_describe_step(const struct hk_group *group, struct hk__text *text);
/* Waits, moving everything on, until over(ctx). Under the world's lock. */
typedef bool hk__over_fn(const void *ctx);
enum hk_status hk__world_await_until(struct hk__world *world, hk__over_fn *over, const void *ctx,
				     uint64_t timeout_ns);
/* The same, until *status is not HK_INPROGRESS. */
enum hk_status hk__world_await(struct hk__world *world, const enum hk_status *status,
			       uint64_t timeout_ns);
void hk__group_fail(struct hk_group *group, enum hk_status status, const char *text);
/* Formats the reason into the group's why and returns status, for `return`. */
#define hk__group_refuse(group, status, ...) hk__why(&(group)->why, status, __VA_ARGS__)

/* request.c: timeout_ns 0: until the deadline of the call, and then it has failed. */
enum hk_status hk__request_await(struct hk_request *request, uint64_t timeout_ns);

/* where.c: hosts, of several, from the nodes of all ranks, sorted; these are overwritten. */
enum hk_status hk__group_number_hosts(struct hk_group *group, uint32_t *sorted);

/* group.c: meets the others, and makes a world, and the group of all its ranks. */
enum hk_status hk__group_found(const struct hk__charter *origin, struct hk_why *why,
			       struct hk_group **group_out);
/* Newcomers may go on, once the members have come here too. */
enum hk_status hk__group_enter(struct hk_group *group, uint64_t timeout_ns);
void hk__group_destroy(struct hk_group *group);	/* waits for nobody */
/* heal.c: hk_group_agree, where others may call it so much later */
enum hk_status hk__group_consent(struct hk_group *group, uint64_t *value, uint64_t timeout_ns,
				 uint64_t late_ns);
/* group.c: a group of all ranks of a world over any net; not collective */
enum hk_status hk__group_over(const struct hk__world_spec *spec,
			      const struct hk__world_over *over, struct hk_group **group_out);
/* A group of some ranks of the world, which become its own. */
enum hk_status hk__group_among(struct hk_group *like, uint32_t *ranks, uint32_t n, uint32_t rank,
			       uint64_t context, struct hk_group **group_out);

/*
 * context.c: what tells groups apart.
 *
 * A context is a reading of a logical clock, and who read it. Before ranks make a
 * group each reads its clock, which moves on, and stamps what it says with the
 * reading; the latest stamp, and of equal readings the lowest rank's, names the
 * group. No rank reads the same twice, so no two groups of a world have one
 * context, whatever several threads of a rank make at once; but groups of one
 * split, which share no rank, have. Who hears a stamp sets its clock to it, so a
 * group's context is later than those of the groups that it was made of.
 */
static inline uint64_t hk__context_clock(uint64_t context)
{
	return context & ((UINT64_C(1) << HK_CONTEXT_CLOCK_BITS) - 1);
}
/* A new stamp of this rank; the later, the larger. HK_ELIMIT: the clock has run out. */
enum hk_status hk__stamp_make(struct hk_group *group, uint64_t *stamp_out);
/* The group that the largest of all stamps names; the clock is set. */
uint64_t hk__stamp_context(struct hk__world *world, uint64_t stamp);

/* match.c */
bool hk__stage_wanted(const struct hk_request *request);
void hk__agree_prepare(struct hk_request *request);
/* What the ranks called, in one line. */
void hk__agree_explain(const struct hk_request *request, struct hk_why *why_out);

#endif
