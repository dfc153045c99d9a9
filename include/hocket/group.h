/* SPDX-License-Identifier: Apache-2.0 */
/*
 * group.h - ranks that talk, and what they do together.
 *
 * A group is made from the environment that a launcher sets (hocket run,
 * torchrun, srun, mpirun, Kubernetes), from an address, or from threads of one
 * process. Every rank of a group calls its collectives in the same order; they
 * take effect in that order. A group and those split from it are used by one
 * thread at a time; with a progress thread, each by one.
 *
 * Calls block until they are done, unless options ask for a request. A call
 * that fails says why in hk_group_why(), in one line. No call blocks for ever:
 * its deadline is the options', else the group's. Requests: request.h.
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

/* Every member may be left zero; hocket-environment(7) says what then holds. */
struct hk_group_opts {
	size_t size;		/* sizeof(struct hk_group_opts) */
	const char *address;	/* "host:port" of rank 0; NULL: the environment's */
	uint32_t rank;		/* with an address: who this is, */
	uint32_t nranks;	/* and of how many; HK_NONE and 0: a newcomer */
	const char *key;	/* the job's key; NULL: the environment's */
	const char *host;	/* ranks that name one host share memory; NULL: found out */
	const char *iface;	/* network interface, or an address of it */
	const char *net;	/* "auto", "shm" or "tcp" */
	uint64_t timeout_ns;	/* of a call; 0: 300 s */
	bool check;		/* compare what the ranks call, before doing it */
	bool progress;		/* a thread of its own moves requests on */
	const struct hk_alloc *alloc; /* borrowed until the group is freed */
	const char *fabric;	/* whose constants choose algorithms: a file of hocket probe */
	uint64_t watch_ns;	/* interval of liveness checks on this host; 0: 100 ms */
	uint64_t silence_ns;	/* silence after which a host is declared lost; 0: 4 s */
	bool encrypt;		/* what goes over networks */
	const char *gpu;	/* device memory: "auto", "staged" or "off" */
};
#define HK_GROUP_OPTS_INIT { sizeof(struct hk_group_opts), NULL, 0, 0, NULL, NULL, NULL, NULL, \
			     0, false, false, NULL, NULL, 0, 0, false, NULL }

/*
 * Joins the group of all ranks; returns when all have come. opts may be NULL.
 * Without an address and without a launcher's environment it is a group of one.
 * A newcomer (rank HK_NONE, or HOCKET_RANK=new) waits until a running group takes
 * it in (hk_group_grow), and learns from the group which rank it has become.
 * HK_EINVAL (an impossible environment, or ranks that do not fit each other),
 * HK_ETIMEDOUT, HK_EPEER (a rank came and went), HK_EDENIED (another key), HK_ELIMIT
 * (rank 0 may open too few descriptors to meet all), HK_EIO, HK_ENOMEM.
 */
HK_API HK_NODISCARD enum hk_status hk_group_create(const struct hk_group_opts *opts,
						   struct hk_why *why, struct hk_group **group_out);

/*
 * nranks groups, one for each thread that shall be a rank: groups_out[r] is
 * rank r's end. Address, rank and key do not matter.
 */
HK_API HK_NODISCARD enum hk_status hk_group_threads(uint32_t nranks,
						    const struct hk_group_opts *opts,
						    struct hk_why *why,
						    struct hk_group **groups_out);

/*
 * Collective. Ranks of the same color become a new group, in the order of
 * `order` and, where that is equal, of their ranks. Color HK_NONE joins none
 * and gets NULL.
 */
HK_API HK_NODISCARD enum hk_status hk_group_split(struct hk_group *group, uint32_t color,
						  uint32_t order, struct hk_group **group_out);

/*
 * Collective: waits for all ranks (until the group's timeout), so that nobody
 * is cut off. Requests are freed before. Accepts NULL. Groups made by split
 * are freed before the one they were made of.
 */
HK_API void hk_group_free(struct hk_group *group);

HK_API uint32_t hk_group_rank(const struct hk_group *group);
HK_API uint32_t hk_group_size(const struct hk_group *group);
/*
 * HK_OK while the group can be used; else the status that it has failed with, as far as
 * this rank knows. Waits for nobody.
 */
HK_API HK_NODISCARD enum hk_status hk_group_state(struct hk_group *group);
/* Why the last call on this group failed; "" if none did. */
HK_API const char *hk_group_why(const struct hk_group *group);

/* ---- options of a call ---- */

struct hk_opts {
	size_t size;		/* sizeof(struct hk_opts) */
	const char *algo;	/* "ring", ...; NULL: the group chooses */
	const struct hk_plan *plan; /* a plan of one's own; proved when first used;
				       borrowed until the group is freed */
	uint64_t timeout_ns;	/* 0: the group's */
	uint32_t tag;		/* send and recv match by tag, in order */
	const void *factor;	/* premulsum: an element; fp32 for 8 and 16 bit floats */
	struct hk_request **request; /* not NULL: start only; the request to wait for */
	void *stream;		/* device memory: a CUstream; NULL: the legacy default one */
};
#define HK_OPTS_INIT { sizeof(struct hk_opts), NULL, NULL, 0, 0, NULL, NULL, NULL }

/* ---- collectives ----
 *
 * Counts are in elements. Buffers are as in coll.h: blocks lie side by side in
 * the order of ranks. In place: `in` is the very place in `out` (or, for
 * reducescatter and scatter, `out` in `in`) that coll.h names. Buffers, counts
 * and factor stay as they are until the call, or its request, is over. opts may
 * be NULL. All ranks give the same counts, type, operation, root, algorithm
 * and plan. A call that is refused changes nothing. An operation that was begun and
 * fails, with whatever status, fails its group, on all ranks: hk_group_state() tells the
 * two apart. HK_EINVAL is always a refusal; HK_ETIMEDOUT, HK_EPEER, HK_EMISMATCH,
 * HK_EREVOKED and HK_EIO never are. A failed group can be agreed on, shrunk and freed.
 * `out` is undefined then.
 *
 * Buffers may be CUDA device memory, both or none, in processes that have called CUDA
 * before they make the group. Such a call is enqueued on a stream, and returns: it is
 * over when the stream has passed it. Its deadline is counted from when it begins
 * there; that it failed is what the next call says. Calls of a group follow each other
 * in one order on all ranks, whatever their streams. Several ranks may share a GPU:
 * their calls then must not wait for each other in any stream. A rank without a buffer
 * in a call gives a stream. There are no requests of such calls.
 *
 * Where ranks reach each other's device memory (one process, or processes of one host)
 * a call needs no host, and can be captured in a graph, after one of the same shape
 * was made outside; among processes the first is a meeting that all ranks come to, each
 * by a thread of its own. Where they do not (several hosts, ranks without a GPU,
 * HOCKET_GPU=staged) calls are staged through host memory: the stream waits, the thread does
 * not; no graph can hold them; ranks without a GPU take part by calls on memory of
 * their own.
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
/* count: of one block. */
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

/* counts[r]: of rank r's block; all ranks give all of them. */
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
/* A rank gives what it sends to each rank and what it gets from each. */
HK_API HK_NODISCARD enum hk_status
hk_alltoallv(struct hk_group *group, const void *in, const uint64_t *in_counts, void *out,
	     const uint64_t *out_counts, enum hk_type type, const struct hk_opts *opts);

/* ---- point to point ----
 *
 * Matched by rank and tag, in order; both give the same count and type. Not
 * ordered with collectives. A send is over when its buffer may be changed.
 *
 * On device memory calls are enqueued, as collectives are, and in order with those of
 * their stream. There messages of one rank to another match in order alone, and their
 * tags and counts must agree; a message to oneself is sent and received in a batch.
 */
HK_API HK_NODISCARD enum hk_status
hk_send(struct hk_group *group, const void *in, uint64_t count, enum hk_type type, uint32_t peer,
	const struct hk_opts *opts);
HK_API HK_NODISCARD enum hk_status
hk_recv(struct hk_group *group, void *out, uint64_t count, enum hk_type type, uint32_t peer,
	const struct hk_opts *opts);

/* ---- several operations together ----
 *
 * Between begin and end calls only note what to do; end starts all of it at
 * once and waits for what has no request. Sends and receives of a batch never
 * wait for each other's order. On device memory it enqueues: first the collectives,
 * in their order, then all sends and receives as one operation on all their streams.
 *
 * A begin that fails opens no batch. Where a call inside a batch fails, the batch is still
 * open: end it, or revoke or free the group.
 */
HK_API HK_NODISCARD enum hk_status hk_batch_begin(struct hk_group *group);
HK_API HK_NODISCARD enum hk_status hk_batch_end(struct hk_group *group);

/* ---- when ranks fail ----
 *
 * A rank that dies, or is cut off, fails the groups it is in, on all ranks:
 * HK_EPEER, and hk_group_why() names it. A rank whose call fails otherwise revokes
 * the group, so that the others learn of it: HK_EREVOKED. Survivors then
 * agree on who is left, make a group of those, and free the old one.
 */

/*
 * Revokes the group: what is in flight ends on all ranks with HK_EREVOKED. Of a group
 * made with opts.progress any thread may call it, whatever another one waits for.
 */
HK_API HK_NODISCARD enum hk_status hk_group_revoke(struct hk_group *group);
/*
 * Collective among survivors; works on groups that have failed. All of them get
 * the same answer, even if more die meanwhile: the least of their values, and
 * who is out. Ranks that do not answer in an eighth of the time are out as well,
 * if the others are more than half, or half with the lowest rank. HK_EPEER: this
 * rank is out, or on the smaller side. HK_ETIMEDOUT. opts: timeout_ns alone.
 */
HK_API HK_NODISCARD enum hk_status hk_group_agree(struct hk_group *group, uint64_t *value,
						  const struct hk_opts *opts);
/* As hk_group_agree; makes a group of those who are left, in order. */
HK_API HK_NODISCARD enum hk_status hk_group_shrink(struct hk_group *group,
						   const struct hk_opts *opts,
						   struct hk_group **group_out);
/*
 * Ranks that this one knows to be gone: up to `room` of them, in order, and
 * how many there are. After hk_group_agree it is the same on all.
 */
HK_API uint32_t hk_group_lost(const struct hk_group *group, uint32_t *ranks_out, uint32_t room);

/* ---- when ranks come ---- */

struct hk_grow_opts {
	size_t size;		/* sizeof(struct hk_grow_opts) */
	const char *address;	/* "host:port" of rank 0 that newcomers come to; port 0: a
				   free one; NULL: where the job began */
	uint64_t timeout_ns;	/* 0: the group's */
	void (*opened)(void *ctx, const char *address); /* on rank 0: they may come now */
	void *ctx;
};
#define HK_GROW_OPTS_INIT { sizeof(struct hk_grow_opts), NULL, 0, NULL, NULL }

/*
 * Collective, on a group that has not failed: makes a group of nranks, its own
 * ranks first, in order, and then as many newcomers as that takes. Rank 0's
 * address and `opened` count. The same comes of it on all ranks: the new group,
 * with the old one still to be freed, or a status, with the old one as it was.
 * HK_ETIMEDOUT (too few have come), HK_EPEER (a rank is gone, so the old group has
 * failed), HK_EINVAL, HK_EMISMATCH (a newcomer has another fabric), HK_EIO,
 * HK_ENOMEM. opts may be NULL.
 */
HK_API HK_NODISCARD enum hk_status hk_group_grow(struct hk_group *group, uint32_t nranks,
						 const struct hk_grow_opts *opts,
						 struct hk_group **group_out);

/* ---- memory ---- */

/*
 * Memory that the ranks of this machine reach without a copy on the way. At
 * page boundaries, zeroed; the caller's until it is freed. HK_EINVAL for 0 bytes,
 * HK_ENOMEM, or HK_ELIMIT beyond HK_MEM_MAX for a rank (256 MiB where ranks are
 * threads). Works with every net.
 */
#define HK_MEM_MAX ((size_t)8 << 30)
HK_API HK_NODISCARD enum hk_status hk_mem_alloc(struct hk_group *group, size_t bytes,
						void **mem_out);
HK_API void hk_mem_free(struct hk_group *group, void *mem);	/* accepts NULL */

/* ---- what the group would do ---- */

struct hk_choice {
	size_t size;		/* sizeof(struct hk_choice), set by the caller */
	const char *algo;	/* borrowed from the library */
	const char *net;	/* "shm", "tcp" or "shm+tcp" */
};
/* For a call of `count` elements (as that call counts) that names no algorithm. */
HK_API HK_NODISCARD enum hk_status hk_group_choice(struct hk_group *group, enum hk_coll coll,
						   uint64_t count, enum hk_type type,
						   struct hk_choice *choice_out);

#ifdef __cplusplus
}
#endif
#endif
