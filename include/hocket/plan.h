/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - how a collective is performed: for every rank, lanes of steps on chunks.
 *
 *   rank     one participant
 *   lane     a sequential program of one rank; the lanes of a rank run concurrently
 *   step     one action of a lane: send, receive, reduce, copy, or a fused form;
 *            or one-sided: put, signal, wait
 *   chunk    the contents of a buffer slot; its length is a symbol
 *   channel  the FIFO from one lane to another; it has `slots` slots, a message
 *            keeps its slot until the step that received it has completed, and a
 *            lane blocks on an empty or a full channel
 *   signal   a counter of a rank that others raise, by number; it begins at 0 in
 *            every operation and slice
 *   slice    one pass of the plan over a part of every chunk; slices follow each
 *            other in every lane and are disjoint
 *
 * A plan is immutable and independent of sizes. A built-in plan stores nothing per
 * rank or step (sendrecv: its messages; uneven nodes: their sizes); each step is
 * computed on request.
 * docs/ARCHITECTURE.md states the invariants (I1...) of every proved plan.
 */
#ifndef HOCKET_PLAN_H
#define HOCKET_PLAN_H

#include <hocket/base.h>
#include <hocket/coll.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HK_LANES_MAX 256u	/* lanes of a rank */
#define HK_SIGNALS_MAX 4096u	/* signals of a rank */

struct hk_plan;			/* opaque, immutable */

enum hk_buf {
	HK_BUF_NONE,
	HK_BUF_IN,		/* the caller's input; never written */
	HK_BUF_OUT,		/* the caller's output */
	HK_BUF_SCRATCH		/* temporary; undefined at the start */
};

/*
 * What a step does. "msg" is the message received from `from`.
 *
 *	enum               name                 does
 */
#define HK_OP_MAP(X) \
	X(NOP,              "nop",              "waits for its dependency") \
	X(SEND,             "send",             "src to peer") \
	X(RECV,             "recv",             "msg into dst") \
	X(RECV_REDUCE,      "recv-reduce",      "msg + src into dst") \
	X(RECV_SEND,        "recv-send",        "msg to peer, and into dst if any") \
	X(RECV_REDUCE_SEND, "recv-reduce-send", "msg + src to peer, and into dst if any") \
	X(COPY,             "copy",             "src into dst") \
	X(REDUCE,           "reduce",           "dst + src into dst") \
	X(PUT,              "put",              "src into the peer's dst, some time later") \
	X(SIGNAL,           "signal",           "adds 1 to a signal of the peer") \
	X(WAIT,             "wait",             "waits until a signal has come count times") \
	X(MULTICAST,        "multicast",        "src to a set of peers; reserved") \
	X(SWITCH_REDUCE,    "switch-reduce",    "the network adds on the way; reserved")

enum hk_op {
#define HK_OP_ENUM(id, name, does) HK_OP_##id,
	HK_OP_MAP(HK_OP_ENUM)
#undef HK_OP_ENUM
	HK_OP_COUNT
};

/*
 * A put is issued by its step and lands later, whenever it pleases: until then its
 * src must stay as it is, and its dst is undefined. What a signal that has come says
 * of the puts before it depends on the plan.
 */
enum hk_signals {
	HK_SIGNALS_NONE,	/* the plan has no one-sided steps */
	HK_SIGNALS_STRONG,	/* all earlier puts and signals of its lane to that rank
				   have landed */
	HK_SIGNALS_WEAK		/* the step before it in its lane, if that is a put to
				   the same rank, has landed: a put with signal */
};

/*
 * The other end of a channel; rank HK_NONE if a step has none. For a put the peer,
 * lane 0; for a signal the peer and the number of its signal; for a wait the rank
 * itself and the number of its own.
 */
struct hk_port {
	uint32_t rank;
	uint32_t lane;
};

/*
 * A set of slots: the j-th is first + j if run is 0, else
 * first + (j / run) * period + j % run; always modulo the buffer's slots.
 */
struct hk_span {
	enum hk_buf buf;
	uint32_t first;
	uint32_t run;
	uint32_t period;
};

/* Another step of the same rank (and slice) that must complete first. */
struct hk_after {
	uint32_t lane;		/* HK_NONE: no dependency */
	uint32_t step;
};

struct hk_step {
	enum hk_op op;
	uint32_t count;		/* chunks moved; 0 only synchronises. Wait: signals */
	struct hk_port from;
	struct hk_port to;
	struct hk_span src;
	struct hk_span dst;	/* put: slots of the peer */
	struct hk_after after;
};

/* One message of a sendrecv batch. */
struct hk_msg {
	uint32_t src;
	uint32_t dst;
};

struct hk_plan_opts {
	size_t size;		/* sizeof(struct hk_plan_opts) */
	const char *algo;	/* NULL: the collective's first */
	uint32_t root;		/* broadcast, reduce, gather, scatter */
	uint32_t nodes;		/* two-level: of equal sizes, or as in node_sizes;
				   0: the fewest with up to 8 ranks each */
	const struct hk_msg *msgs; /* sendrecv; NULL: each rank to the next; copied;
				      slots and symbols keep this order */
	size_t nmsgs;
	const struct hk_alloc *alloc; /* borrowed until the plan is freed */
	const uint32_t *node_sizes; /* number of consecutive ranks on each of `nodes`
				       nodes, n in total; NULL: equal; copied */
};
#define HK_PLAN_OPTS_INIT { sizeof(struct hk_plan_opts), NULL, 0, 0, NULL, 0, NULL, NULL }

/*
 * Creates a built-in plan. opts may be NULL. HK_EINVAL (unknown algorithm, rank
 * or root out of range, nodes that do not divide or add up), HK_ELIMIT,
 * HK_ENOMEM, with the reason in why.
 */
HK_API HK_NODISCARD enum hk_status
hk_plan_create(enum hk_coll coll, uint32_t nranks, const struct hk_plan_opts *opts,
	       struct hk_why *why, struct hk_plan **plan_out);

/* Accepts NULL. */
HK_API void hk_plan_free(struct hk_plan *plan);

/* The properties of a plan; the pointers are borrowed from the plan. */
struct hk_plan_info {
	size_t size;		/* sizeof(struct hk_plan_info), set by the caller */
	enum hk_coll coll;
	const char *algo;
	uint32_t nranks;
	uint32_t root;		/* 0 if the collective has none */
	uint32_t nodes;		/* 1 if the algorithm is flat */
	uint32_t parts;		/* chunks of a vector; 1 for block collectives */
	uint32_t slots;		/* messages a channel must be able to hold */
	bool inplace;		/* claims to work with `in` inside `out` */
	const struct hk_msg *msgs; /* sendrecv, as given */
	size_t nmsgs;
	const uint32_t *node_sizes; /* of `nodes` nodes; NULL: all are equal */
	enum hk_signals signals;
};
HK_API void hk_plan_describe(const struct hk_plan *plan, struct hk_plan_info *info_out);

/* The number of lanes of a rank and of steps of a lane. Reading a plan is thread-safe. */
HK_API uint32_t hk_plan_lanes(const struct hk_plan *plan, uint32_t rank);
HK_API uint32_t hk_plan_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane);

/*
 * Step i of a lane, computed independently of other steps, in constant time (uneven
 * nodes: after a search for the rank's node).
 */
HK_API void hk_plan_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
			 struct hk_step *step_out);

/* The number of slots of a rank's buffer; 0 if the rank has no such buffer. */
HK_API uint32_t hk_plan_slots(const struct hk_plan *plan, uint32_t rank, enum hk_buf buf);

/* The j-th slot of a span in a buffer of nslots (> 0) slots. */
HK_API uint32_t hk_span_at(const struct hk_span *span, uint32_t j, uint32_t nslots);

/*
 * Lengths. Every slot of `in` and `out` has a symbol: part k of the vector, or
 * the block of rank k, or the block from s to d as s * nranks + d, or message
 * k. With counts, symbol k has counts[k] elements (for vectors: all parts
 * together have counts[0]); with counts NULL every block has `count` elements
 * and a vector has `count` in total, split as evenly as whole elements allow.
 */
struct hk_sizes {
	uint64_t count;
	const uint64_t *counts;
};
HK_API uint64_t hk_plan_symbol(const struct hk_plan *plan, uint32_t rank, enum hk_buf buf,
			       uint32_t slot);
HK_API uint64_t hk_plan_length(const struct hk_plan *plan, const struct hk_sizes *sizes,
			       uint64_t symbol);
/* The number of symbols: the length of hk_sizes.counts (1 for vectors). */
HK_API uint64_t hk_plan_counts(const struct hk_plan *plan);

/*
 * In place: the slot of `out` that is the same memory as slot `slot` of `in`,
 * or HK_NONE. (For reducescatter and scatter, out[0] is inside `in`.)
 */
HK_API uint32_t hk_plan_inplace_slot(const struct hk_plan *plan, uint32_t rank, uint32_t slot);

/* "send", ... and "in", "out", "scratch", "none"; never NULL. Thread-safe. */
HK_API const char *hk_op_name(enum hk_op op);
HK_API const char *hk_buf_name(enum hk_buf buf);

/* ---- algorithms ---- */

/*
 * An algorithm and its costs. The formulas are in C syntax (with exact division) over
 * n (ranks), N (nodes), g = n / N and the functions ceil, min, max, clog2,
 * flog2, pow2 (the largest power of two not above), popsum (set bits of all
 * numbers below) and halvings (sum of min(pow2(n) / 2^l, n - pow2(n)) over
 * l = 1..flog2(n)); tests evaluate them against the plans. Bytes are in units
 * of V: a vector, or all blocks of a rank's larger buffer together, where all
 * blocks are equal (sendrecv: one message).
 */
struct hk_algo_info {
	size_t size;		/* sizeof(struct hk_algo_info), set by the caller */
	enum hk_coll coll;
	const char *name;
	const char *alias;	/* another name, or NULL */
	const char *about;	/* one line */
	const char *steps;	/* messages (or puts with a signal) on the critical path */
	const char *sent;	/* V sent by the busiest rank */
	const char *reduced;	/* V reduced by the busiest rank */
	const char *scratch;	/* V of scratch at the rank that needs most */
	const char *limits;	/* "any n", or its requirements */
	bool nodes;		/* two-level: takes a number of nodes */
	bool rooted;
	bool inplace;
	bool uneven;		/* supports unequal node_sizes; costs are for equal ones */
	bool onesided;		/* puts and signals; groups do not perform it yet */
};

/* The i-th algorithm, sorted by collective; false past the last. */
HK_API bool hk_algo_get(uint32_t i, struct hk_algo_info *info_out);

/*
 * Finds an algorithm of a collective by name or alias (case, '-' and '_' do not
 * matter); NULL: its first. HK_EINVAL if there is none. Thread-safe.
 */
HK_API HK_NODISCARD enum hk_status hk_algo_find(enum hk_coll coll, const char *name,
						struct hk_algo_info *info_out);

/* ---- plans as text ---- */

struct hk_print_opts {
	size_t size;
	bool one_rank;		/* only `rank`; else all */
	uint32_t rank;
};
#define HK_PRINT_OPTS_INIT { sizeof(struct hk_print_opts), false, 0 }

/*
 * Write a plan for people (a table, or a picture of the messages round by round),
 * for Graphviz, or as JSON (hocket-plan(5)). opts may be NULL; a picture shows
 * all ranks. HK_EIO if the stream fails; HK_EINVAL for a rank that does not exist,
 * or if a picture meets a malformed or one-sided step; HK_ELIMIT if a picture would be too wide
 * or a graph has more than 2^20 steps; HK_ENOMEM.
 */
HK_API HK_NODISCARD enum hk_status hk_plan_print_table(const struct hk_plan *plan,
						       const struct hk_print_opts *opts,
						       FILE *file, struct hk_why *why);
HK_API HK_NODISCARD enum hk_status hk_plan_print_picture(const struct hk_plan *plan,
							 const struct hk_print_opts *opts,
							 FILE *file, struct hk_why *why);
HK_API HK_NODISCARD enum hk_status hk_plan_print_dot(const struct hk_plan *plan,
						     const struct hk_print_opts *opts,
						     FILE *file, struct hk_why *why);
HK_API HK_NODISCARD enum hk_status hk_plan_print_json(const struct hk_plan *plan,
						      const struct hk_print_opts *opts,
						      FILE *file, struct hk_why *why);

/*
 * Writes MSCCL XML, which the executors of MSCCL and RCCL run; hocket-plan(5)
 * describes the mapping. All ranks. HK_EINVAL for a barrier, a sendrecv, a one-sided
 * plan, or one that has more pairs of peers in a lane than the format can express; HK_ELIMIT for
 * more than 2^20 steps; HK_ENOMEM; HK_EIO.
 */
HK_API HK_NODISCARD enum hk_status hk_plan_print_msccl(const struct hk_plan *plan, FILE *file,
						       struct hk_why *why);

/*
 * For other simulators: a plan for `bytes` bytes (as in struct hk_sim_job), as GOAL
 * text, or as Chakra execution traces, one file PREFIX.RANK.et per rank. Channels
 * are unbounded there. opts may be NULL. HK_EINVAL (also for a one-sided plan), HK_EIO.
 */
struct hk_export_opts {
	size_t size;		/* sizeof(struct hk_export_opts) */
	uint32_t slices;	/* slices per chunk; 0: 1 */
	double copy_ns;		/* time to copy a byte, */
	double reduce_ns;	/* and to reduce one */
};
#define HK_EXPORT_OPTS_INIT { sizeof(struct hk_export_opts), 0, 0, 0 }
HK_API HK_NODISCARD enum hk_status hk_plan_print_goal(const struct hk_plan *plan, uint64_t bytes,
						      const struct hk_export_opts *opts,
						      FILE *file, struct hk_why *why);
HK_API HK_NODISCARD enum hk_status hk_plan_write_chakra(const struct hk_plan *plan, uint64_t bytes,
							const struct hk_export_opts *opts,
							const char *prefix, struct hk_why *why);

#define HK_PLAN_FILE_MAX (64u << 20)	/* bytes of a plan file */

/*
 * Reads a plan from text of len bytes: JSON or, judged by its first character, MSCCL
 * XML; messages call it `name`. The text is untrusted: malformed input is HK_ESYNTAX
 * (or HK_ELIMIT), and why says where. The resulting plan is well-formed, but not
 * proved.
 */
HK_API HK_NODISCARD enum hk_status hk_plan_parse(const char *text, size_t len, const char *name,
						 const struct hk_alloc *alloc, struct hk_why *why,
						 struct hk_plan **plan_out);
/* The same, from a file; "-" is standard input. */
HK_API HK_NODISCARD enum hk_status hk_plan_read(const char *path, const struct hk_alloc *alloc,
						struct hk_why *why, struct hk_plan **plan_out);

#ifdef __cplusplus
}
#endif
#endif
