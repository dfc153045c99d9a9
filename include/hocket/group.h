/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.h - groups of ranks and their collectives.
 *
 * A group is created from the environment that a launcher sets (hocket run,
 * torchrun, srun, mpirun, Kubernetes), from an address, or from threads of one
 * process. All ranks of a group call its collectives in the same order, and the
 * collectives take effect in that order. One thread at a time may use a group and
 * the groups split from it; with a progress thread, one thread per group.
 *
 * Calls block until they complete, unless the options ask for a request. When a
 * call fails, hk_group_why() explains it in one line. No call blocks forever:
 * the deadline comes from the call's options, or else from the group. Requests:
 * request.h.
 */
#ifndef HOCKET_GROUP_H
#define HOCKET_GROUP_H

#include <hocket/plan.h>
#include <hocket/request.h>
#include <hocket/type.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hk_group;		/* opaque */

/* ---- groups ---- */

/* Every member may be left zero; hocket-environment(7) has the defaults. */
struct hk_group_opts {
	size_t size;		/* sizeof(struct hk_group_opts) */
	const char *address;	/* "host:port" of rank 0; NULL: from the environment */
	uint32_t rank;		/* with an address: this rank, */
	uint32_t nranks;	/* and the number of ranks; HK_NONE and 0: a newcomer */
	const char *key;	/* job key; NULL: from the environment */
	const char *host;	/* ranks with equal names share memory; NULL: detected */
	const char *iface;	/* network interface, or its address */
	const char *net;	/* "auto", "shm" or "tcp" */
	uint64_t timeout_ns;	/* default deadline of a call; 0: 300 s */
	bool check;		/* compare the ranks' calls before performing them */
	bool progress;		/* start a progress thread */
	const struct hk_alloc *alloc; /* borrowed until the group is freed */
	const char *fabric;	/* constants for choosing algorithms: a file from hocket probe */
	uint64_t watch_ns;	/* interval of liveness checks on this host; 0: 100 ms */
	uint64_t silence_ns;	/* silence after which a host is declared lost; 0: 4 s */
	bool encrypt;		/* encrypt network traffic */
	const char *gpu;	/* device memory: "auto", "staged" or "off" */
};
#define HK_GROUP_OPTS_INIT { sizeof(struct hk_group_opts), NULL, 0, 0, NULL, NULL, NULL, NULL, \
			     0, false, false, NULL, NULL, 0, 0, false, NULL }

/*
 * Joins the group of all ranks; returns once all have joined. opts may be NULL.
 * Without an address and without a launcher's environment, the group has one rank.
 * A newcomer (rank HK_NONE, or HOCKET_RANK=new) waits until a running group admits
 * it (hk_group_grow), and the group assigns its rank.
 * HK_EINVAL (invalid environment, or ranks with incompatible settings),
 * HK_ETIMEDOUT, HK_EPEER (a rank joined and then died), HK_EDENIED (different key),
 * HK_ELIMIT (rank 0's descriptor limit is too low for all ranks), HK_EIO, HK_ENOMEM.
 */
HK_API HK_NODISCARD enum hk_status hk_group_create(const struct hk_group_opts *opts,
						   struct hk_why *why, struct hk_group **group_out);

/*
 * Creates a group whose ranks are threads of this process: groups_out[r] is the
 * handle of rank r. Address, rank and key are ignored.
 */
HK_API HK_NODISCARD enum hk_status hk_group_threads(uint32_t nranks,
						    const struct hk_group_opts *opts,
						    struct hk_why *why,
						    struct hk_group **groups_out);

/*
 * Collective. Ranks with the same color form a new group, sorted by `order` and,
 * where that is equal, by rank. A rank with color HK_NONE joins no group and
 * gets NULL.
 */
HK_API HK_NODISCARD enum hk_status hk_group_split(struct hk_group *group, uint32_t color,
						  uint32_t order, struct hk_group **group_out);

/*
 * Collective. A group of the same ranks, with channels of its own: messages and failures
 * of one are not those of the other. A library makes one of its caller's group.
 */
HK_API HK_NODISCARD enum hk_status hk_group_dup(struct hk_group *group,
						struct hk_group **group_out);

/*
 * Collective: waits for all ranks (until the group's timeout), so that no rank
 * loses its peers early. Free requests first, and the groups split from this one.
 * Accepts NULL.
 */
HK_API void hk_group_free(struct hk_group *group);

HK_API uint32_t hk_group_rank(const struct hk_group *group);
HK_API uint32_t hk_group_size(const struct hk_group *group);
/* Among the ranks of this one's host: which it is, in their order, and of how many. */
HK_API uint32_t hk_group_local_rank(const struct hk_group *group);
HK_API uint32_t hk_group_local_size(const struct hk_group *group);
/* How many hosts the ranks are on. */
HK_API uint32_t hk_group_hosts(const struct hk_group *group);
/* Index of a rank's host, in the order of their lowest ranks; HK_NONE: no such rank. */
HK_API uint32_t hk_group_host(const struct hk_group *group, uint32_t rank);
/*
 * Which ranks of `to` the n ranks of `from` are; HK_NONE for those that are not in it.
 * Waits for nobody. ranks_out may be ranks. HK_EINVAL: no such rank, or groups that were
 * created apart; HK_ENOMEM.
 */
HK_API HK_NODISCARD enum hk_status hk_group_translate(struct hk_group *from, const uint32_t *ranks,
						      uint32_t n, const struct hk_group *to,
						      uint32_t *ranks_out);
/*
 * HK_OK while the group is usable; else the status it failed with, as far as this
 * rank knows. Does not block.
 */
HK_API HK_NODISCARD enum hk_status hk_group_state(struct hk_group *group);
/* Why the last failed call on this group failed; "" if none has. */
HK_API const char *hk_group_why(const struct hk_group *group);

/* ---- options of a call ---- */

struct hk_opts {
	size_t size;		/* sizeof(struct hk_opts) */
	const char *algo;	/* "ring", ...; NULL: the group chooses */
	const struct hk_plan *plan; /* the caller's plan; proved at first use;
				       borrowed until the group is freed */
	uint64_t timeout_ns;	/* 0: the group's */
	uint32_t tag;		/* send and recv match by tag, in order */
	const void *factor;	/* premulsum: one element; fp32 for 8 and 16 bit floats */
	struct hk_request **request; /* not NULL: nonblocking; gets the request */
	void *stream;		/* device memory: a CUstream; NULL: the legacy default stream */
};
#define HK_OPTS_INIT { sizeof(struct hk_opts), NULL, NULL, 0, 0, NULL, NULL, NULL }

/* ---- collectives ----
 *
 * Counts are in elements. coll.h describes the buffers: blocks are contiguous and
 * in rank order. In place, `in` is the part of `out` (or, for reducescatter and
 * scatter, `out` the part of `in`) that coll.h names. Do not modify buffers, counts
 * or factor until the call, or its request, has completed. opts may be NULL. All
 * ranks pass the same counts, type, operation, root, algorithm and plan.
 *
 * A refused call changes nothing. An operation that has started and fails, with any
 * status, fails its group on all ranks; hk_group_state() tells the two apart.
 * HK_EINVAL is always a refusal; HK_ETIMEDOUT, HK_EPEER, HK_EMISMATCH, HK_EREVOKED
 * and HK_EIO never are. A failed group can be agreed on, shrunk and freed; `out` is
 * undefined.
 *
 * Buffers may be CUDA device memory, both or neither, if the process has called CUDA
 * before it creates the group. Such a call is enqueued on a stream and returns; it
 * completes in stream order. Its deadline runs from when it starts on the device; the
 * next call reports a failure. The calls of a group execute in one order on all ranks,
 * whatever their streams. Ranks may share a GPU; their calls must then not wait for
 * each other in any stream. A rank that has no buffer in a call still passes a stream.
 * Calls on device memory have no requests.
 *
 * If the ranks can access each other's device memory (one process, or processes of one
 * host), a call does not involve the host. It can be captured in a graph once a call of
 * the same shape has been made outside. Between processes the first call is a rendezvous
 * of all ranks, each in its own thread. Otherwise (several hosts, ranks without a GPU,
 * HOCKET_GPU=staged) calls are staged through host memory: the stream waits, the thread
 * does not, and the call cannot be captured. Ranks without a GPU take part with buffers
 * in host memory.
 */
HK_API HK_NODISCARD enum hk_status
hk_allreduce(struct hk_group *group, const void *in, void *out, uint64_t count, enum hk_type type,
	     enum hk_redop op, const struct hk_opts *opts);
HK_API HK_NODISCARD enum hk_status
hk_reduce(struct hk_group *group, const void *in, void *out, uint64_t count, enum hk_type type,
	  enum hk_redop op, uint32_t root, const struct hk_opts *opts);
HK_API HK_NODISCARD enum hk_status
hk_broadcast(struct hk_group *group, const void *in, void *out, uint64_t count, enum hk_type type,
	     uint32_t root, const struct hk_opts *opts);
/* count: elements of one block. */
HK_API HK_NODISCARD enum hk_status
hk_allgather(struct hk_group *group, const void *in, void *out, uint64_t count, enum hk_type type,
	     const struct hk_opts *opts);
HK_API HK_NODISCARD enum hk_status
hk_gather(struct hk_group *group, const void *in, void *out, uint64_t count, enum hk_type type,
	  uint32_t root, const struct hk_opts *opts);
HK_API HK_NODISCARD enum hk_status
hk_reducescatter(struct hk_group *group, const void *in, void *out, uint64_t count,
		 enum hk_type type, enum hk_redop op, const struct hk_opts *opts);
HK_API HK_NODISCARD enum hk_status
hk_scatter(struct hk_group *group, const void *in, void *out, uint64_t count, enum hk_type type,
	   uint32_t root, const struct hk_opts *opts);
HK_API HK_NODISCARD enum hk_status
hk_alltoall(struct hk_group *group, const void *in, void *out, uint64_t count, enum hk_type type,
	    const struct hk_opts *opts);
HK_API HK_NODISCARD enum hk_status hk_barrier(struct hk_group *group, const struct hk_opts *opts);

/* counts[r]: elements of rank r's block; all ranks pass the whole array. */
HK_API HK_NODISCARD enum hk_status
hk_allgatherv(struct hk_group *group, const void *in, void *out, const uint64_t *counts,
	      enum hk_type type, const struct hk_opts *opts);
HK_API HK_NODISCARD enum hk_status
hk_gatherv(struct hk_group *group, const void *in, void *out, const uint64_t *counts,
	   enum hk_type type, uint32_t root, const struct hk_opts *opts);
HK_API HK_NODISCARD enum hk_status
hk_reducescatterv(struct hk_group *group, const void *in, void *out, const uint64_t *counts,
		  enum hk_type type, enum hk_redop op, const struct hk_opts *opts);
HK_API HK_NODISCARD enum hk_status
hk_scatterv(struct hk_group *group, const void *in, void *out, const uint64_t *counts,
	    enum hk_type type, uint32_t root, const struct hk_opts *opts);
/* in_counts[r] elements go to rank r; out_counts[r] elements come from rank r. */
HK_API HK_NODISCARD enum hk_status
hk_alltoallv(struct hk_group *group, const void *in, const uint64_t *in_counts, void *out,
	     const uint64_t *out_counts, enum hk_type type, const struct hk_opts *opts);

/* ---- point to point ----
 *
 * Messages match by rank and tag, in order; both sides pass the same count and type.
 * They are not ordered with collectives. A send completes when its buffer may be reused.
 *
 * On device memory, calls are enqueued like collectives, in order with their stream.
 * Messages from one rank to another then match in order only, and their tags and counts
 * must agree. A message to the rank itself needs a batch with its send and receive.
 */
HK_API HK_NODISCARD enum hk_status
hk_send(struct hk_group *group, const void *in, uint64_t count, enum hk_type type, uint32_t peer,
	const struct hk_opts *opts);
HK_API HK_NODISCARD enum hk_status
hk_recv(struct hk_group *group, void *out, uint64_t count, enum hk_type type, uint32_t peer,
	const struct hk_opts *opts);

/* ---- batches ----
 *
 * Between begin and end, calls are only recorded. End starts them all at once and
 * waits for those without a request. Sends and receives of a batch cannot deadlock
 * by their order. On device memory, end enqueues the collectives first, in their
 * order, then all sends and receives as one operation on all their streams.
 *
 * A begin that fails opens no batch. If a call inside a batch fails, the batch stays
 * open: end it, or revoke or free the group.
 */
HK_API HK_NODISCARD enum hk_status hk_batch_begin(struct hk_group *group);
HK_API HK_NODISCARD enum hk_status hk_batch_end(struct hk_group *group);

/* ---- failure and recovery ----
 *
 * A rank that dies, or becomes unreachable, fails its groups on all ranks with
 * HK_EPEER, and hk_group_why() names it. A rank whose call fails otherwise revokes
 * the group, so that the others get HK_EREVOKED. The survivors then agree on the
 * remaining ranks, create a group of them, and free the old one.
 */

/*
 * Revokes the group: operations in flight end on all ranks with HK_EREVOKED. If the group
 * was created with opts.progress, any thread may call it, even while another is blocked.
 */
HK_API HK_NODISCARD enum hk_status hk_group_revoke(struct hk_group *group);
/*
 * Collective among survivors; works on failed groups too. All survivors get the same
 * result, even if more ranks die meanwhile: the minimum of their values, and the set
 * of lost ranks. Ranks that do not answer within an eighth of the timeout are excluded
 * if the others are more than half, or half including the lowest rank. HK_EPEER: this
 * rank is excluded, or in the minority. HK_ETIMEDOUT. Of opts, only timeout_ns is used.
 */
HK_API HK_NODISCARD enum hk_status hk_group_agree(struct hk_group *group, uint64_t *value,
						  const struct hk_opts *opts);
/* Agrees as hk_group_agree does, then creates a group of the survivors, in rank order. */
HK_API HK_NODISCARD enum hk_status hk_group_shrink(struct hk_group *group,
						   const struct hk_opts *opts,
						   struct hk_group **group_out);
/*
 * Ranks that this one knows to be lost: writes up to `max` of them, in order, and
 * returns their number. After hk_group_agree all ranks know the same.
 */
HK_API uint32_t hk_group_lost(const struct hk_group *group, uint32_t *ranks_out, uint32_t max);

/* ---- growing a group ---- */

struct hk_grow_opts {
	size_t size;		/* sizeof(struct hk_grow_opts) */
	const char *address;	/* "host:port" where rank 0 accepts newcomers; port 0: a
				   free one; NULL: the address the job started with */
	uint64_t timeout_ns;	/* 0: the group's */
	void (*opened)(void *ctx, const char *address); /* on rank 0: it now listens */
	void *ctx;
};
#define HK_GROW_OPTS_INIT { sizeof(struct hk_grow_opts), NULL, 0, NULL, NULL }

/*
 * Collective, on a group that has not failed: creates a group of nranks ranks, the
 * old ranks first, in order, then the newcomers. Only rank 0's address and `opened`
 * are used. All ranks get the same result: the new group, and the old one is still to
 * be freed, or an error, and the old group is unchanged.
 * HK_ETIMEDOUT (too few newcomers), HK_EPEER (a rank died, so the old group has
 * failed), HK_EINVAL, HK_EMISMATCH (a newcomer has a different fabric), HK_EIO,
 * HK_ENOMEM. opts may be NULL.
 */
HK_API HK_NODISCARD enum hk_status hk_group_grow(struct hk_group *group, uint32_t nranks,
						 const struct hk_grow_opts *opts,
						 struct hk_group **group_out);

/* ---- memory ---- */

/*
 * Memory that the other ranks of this host access directly, without a copy through
 * the library's buffers. Page-aligned and zeroed; the caller owns it until it frees
 * it. HK_EINVAL for 0 bytes, HK_ENOMEM, or HK_ELIMIT beyond HK_MEM_MAX per rank
 * (256 MiB if ranks are threads). Works with every net.
 */
#define HK_MEM_MAX ((size_t)8 << 30)
HK_API HK_NODISCARD enum hk_status hk_mem_alloc(struct hk_group *group, size_t bytes,
						void **mem_out);
HK_API void hk_mem_free(struct hk_group *group, void *mem);	/* accepts NULL */

/* ---- choice of algorithm ---- */

struct hk_choice {
	size_t size;		/* sizeof(struct hk_choice), set by the caller */
	const char *algo;	/* borrowed from the library */
	const char *net;	/* "shm", "tcp" or "shm+tcp" */
};
/* What a call of `count` elements (as that call counts) gets if it names no algorithm. */
HK_API HK_NODISCARD enum hk_status hk_group_choice(struct hk_group *group, enum hk_coll coll,
						   uint64_t count, enum hk_type type,
						   struct hk_choice *choice_out);

#ifdef __cplusplus
}
#endif
#endif
