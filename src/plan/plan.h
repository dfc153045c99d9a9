/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - the inside of a plan, and the table every algorithm fills.
 *
 * A built-in plan is its parameters plus a const table of functions, which are
 * rank arithmetic: they read the parameters and nothing else. A stored plan
 * (store.h: read from a file, or edited by a test) has its steps instead.
 */
#ifndef HK_PLAN_PLAN_H
#define HK_PLAN_PLAN_H

#include "base/base.h"
#include "fabric/fabric.h"

#include <hocket/plan.h>

enum algo_flags {
	HK_ALGO_NODES = 1 << 0,		/* two-level: uses plan->nodes */
	HK_ALGO_NOT_INPLACE = 1 << 1,
	HK_ALGO_UNEVEN = 1 << 2		/* nodes may have any sizes */
};

/* How ranks may be moved so that every step becomes the step of another rank. */
enum algo_moves {
	HK_MOVES_NONE,
	HK_MOVES_SHIFT,			/* r to r + d, modulo n */
	HK_MOVES_SHIFT_EVEN,		/* the same, d even; n a power of two */
	HK_MOVES_XOR,			/* r to r ^ mask; n a power of two */
	HK_MOVES_NODES,			/* nodes shift */
	HK_MOVES_NODES_TURN,		/* and all of them turn by as many devices */
	HK_MOVES_NODES_XOR_TURN,	/* node k to k ^ mask, a power of two of them; and turn */
	HK_MOVES_BATCH			/* shift, where every rank sends to the next */
};

struct hk_algo {
	enum hk_coll coll;
	unsigned flags;
	enum algo_moves moves;
	unsigned variant;	/* which of a family's algorithms; its own numbers */
	enum hk_signals signals; /* of one-sided plans */
	struct {
		const char *name, *alias, *about, *steps, *sent, *reduced, *scratch, *limits;
	} info;			/* see struct hk_algo_info */
	/* Parts of a vector; NULL: 1. */
	uint32_t (*parts)(const struct hk_plan *plan);
	/* Whether its slots can be numbered; NULL: always. */
	bool (*fits)(const struct hk_plan *plan);
	/* Lanes of every rank; 0: 1. Where they depend on the plan: lanes. */
	uint32_t nlanes;
	uint32_t (*lanes)(const struct hk_plan *plan);
	/* Messages a channel must hold; 0: 1. */
	uint32_t slots;
	/* Scratch slots of a rank; NULL: none. */
	uint32_t (*scratch)(const struct hk_plan *plan, uint32_t rank);
	/* Chunks of the widest message of any rank, if there is one; NULL: 1. */
	uint32_t (*widest)(const struct hk_plan *plan);
	uint32_t (*steps)(const struct hk_plan *plan, uint32_t rank, uint32_t lane);
	/* Fills what differs from hk__step_none. */
	void (*step)(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
		     struct hk_step *step);
};

struct hk__store;		/* store.h */
struct hk__batch;		/* algo/sendrecv.c */

struct hk_plan {
	const struct hk_algo *algo;	/* NULL: stored */
	const struct hk_alloc *alloc;
	enum hk_coll coll;
	uint32_t n;			/* ranks */
	uint32_t root;
	uint32_t nodes;
	uint32_t parts;
	uint32_t slots;
	bool inplace;
	uint8_t signals;		/* enum hk_signals */
	uint32_t widest;		/* 0: not known; see hk__plan_widest */
	struct hk__store *store;	/* stored plans */
	struct hk__batch *batch;	/* sendrecv */
	uint32_t *node_sizes;		/* of `nodes` nodes; NULL: all are equal */
	uint32_t *node_first;		/* with node_sizes: their first ranks, then n */
};

extern const struct hk_step hk__step_none;

/* The i-th built-in algorithm; NULL past the last. */
const struct hk_algo *hk__algo_at(uint32_t i);

/* What a collective is about: which of its properties depend on what. */
bool hk__coll_rooted(enum hk_coll coll);
bool hk__coll_vector(enum hk_coll coll);	/* in parts, not blocks */
bool hk__coll_reduces(enum hk_coll coll);	/* adds what the ranks have */
bool hk__coll_inplace(enum hk_coll coll);	/* `in` can lie inside `out`, or it in `in` */
/* A call, as far as its buffers' lengths go. */
struct hk__coll_lengths {
	enum hk_coll coll;
	uint32_t rank, n, root;
	struct hk_sizes sizes;
	const uint64_t *in_counts;	/* alltoallv: what this rank sends and gets, by peer */
	const uint64_t *out_counts;
};
/* Elements of in and out of the rank; UINT64_MAX where they are more than that. */
void hk__coll_lengths(const struct hk__coll_lengths *call, uint64_t *in_out, uint64_t *out_out);
enum hk__cut_kind hk__coll_cut(enum hk_coll coll, const struct hk__cut_rule *rule);

/* How many chunks make V (struct hk_algo_info). */
uint32_t hk__plan_chunks(const struct hk_plan *plan);

/*
 * The most chunks that a message of any rank carries; at least 1. Puts are no messages. What a slot
 * of a channel has to hold follows from it, so all ranks have to agree. Constant
 * time for built-in plans and those from files; others are walked through.
 */
uint32_t hk__plan_widest(const struct hk_plan *plan);

/* One reason why a step cannot be meant, or NULL: I1 in ARCHITECTURE.md. */
const char *hk__step_fault(const struct hk_plan *plan, uint32_t rank, const struct hk_step *step);

/* The fields of a step that mean something for an operation, and what it does. */
enum hk__field {
	HK__FIELD_FROM = 1 << 0,
	HK__FIELD_TO = 1 << 1,
	HK__FIELD_SRC = 1 << 2,
	HK__FIELD_DST = 1 << 3,
	HK__FIELD_COUNT = 1 << 4,
	HK__FIELD_DST_NEEDED = 1 << 5,	/* dst may not be left out */
	HK__FIELD_REDUCES = 1 << 6,	/* adds */
	/* One-sided: `to` and `from` name no lanes, and dst is not the rank's own. */
	HK__FIELD_PUT = 1 << 7,		/* to: a rank, dst: slots there */
	HK__FIELD_SIGNAL = 1 << 8,	/* to: a rank and a signal of it */
	HK__FIELD_WAIT = 1 << 9		/* from: the rank itself and a signal of it */
};
unsigned hk__op_fields(enum hk_op op);

static inline bool hk__op_receives(enum hk_op op)
{
	return hk__op_fields(op) & HK__FIELD_FROM;
}

static inline bool hk__op_sends(enum hk_op op)
{
	return hk__op_fields(op) & HK__FIELD_TO;
}

static inline bool hk__op_reduces(enum hk_op op)
{
	return hk__op_fields(op) & HK__FIELD_REDUCES;
}

static inline bool hk__op_reserved(enum hk_op op)
{
	return op >= HK_OP_MULTICAST;
}

static inline bool hk__op_onesided(enum hk_op op)
{
	return op >= HK_OP_PUT && op <= HK_OP_WAIT;
}

/* "strong", "weak"; "none" where the plan has no one-sided steps. */
const char *hk__signals_name(enum hk_signals signals);

/*
 * How many signals a rank of a proved plan has: those it waits for, as it waits for all
 * that it is sent. A walk through its steps.
 */
uint32_t hk__plan_signals(const struct hk_plan *plan, uint32_t rank);

/* ---- symmetry (symmetry.c) ---- */

/*
 * The symmetries of a plan whose outer elements are of that kind: every step of
 * every rank is that of its image, with peers moved; op, count, lanes and
 * dependencies are the same, spans may name other slots. outer NONE and unit n
 * where there is none; a stored plan has none.
 */
void hk__plan_symmetry(const struct hk_plan *plan, enum hk__outer outer,
		       struct hk__symmetry *symmetry_out);

/* An element of a group: moves by so many units, and turns every node. */
struct hk__element {
	uint32_t units;
	uint32_t turn;
};
uint32_t hk__symmetry_apply(const struct hk__symmetry *symmetry, struct hk__element element,
			    uint32_t rank);
/* The element that takes the first rank of an orbit to `rank`; its inverse. */
struct hk__element hk__symmetry_of(const struct hk__symmetry *symmetry, uint32_t rank);
struct hk__element hk__symmetry_inverse(const struct hk__symmetry *symmetry,
					struct hk__element element);

/* ---- nodes (nodes.c): ranks that lie side by side ---- */

/* HK_EINVAL, and why, where the sizes are not those of `nodes` nodes of n ranks. */
enum hk_status hk__nodes_check(uint32_t n, uint32_t nodes, const uint32_t *sizes,
			       struct hk_why *why);
/* sizes NULL: true. */
bool hk__nodes_equal(uint32_t nodes, const uint32_t *sizes);
/* Sets a plan's nodes; sizes that differ are copied, others need no memory. */
enum hk_status hk__nodes_store(struct hk_plan *plan, uint32_t nodes, const uint32_t *sizes);
void hk__nodes_free(struct hk_plan *plan);

/* The size of the largest node, `but` one (HK_NONE: of all); 1 where there is none. */
uint32_t hk__node_max(const struct hk_plan *plan, uint32_t but);

/* The node of a rank; a node's first rank and its size. */
uint32_t hk__node_of(const struct hk_plan *plan, uint32_t rank);

static inline uint32_t hk__node_first(const struct hk_plan *plan, uint32_t node)
{
	return plan->node_first ? plan->node_first[node] : plan->n / plan->nodes * node;
}

static inline uint32_t hk__node_size(const struct hk_plan *plan, uint32_t node)
{
	return plan->node_sizes ? plan->node_sizes[node] : plan->n / plan->nodes;
}

/* ---- sendrecv batches (algo/sendrecv.c) ---- */
struct hk__batch {
	struct hk_msg *msgs;		/* as given: symbol k is msgs[k] */
	size_t nmsgs;
	uint32_t *first_send;		/* per rank, n + 1: into the arrays by sender */
	uint32_t *first_recv;
	uint32_t *sends;		/* messages by sender: slots of `in` */
	uint32_t *recvs;		/* messages by receiver: slots of `out` */
	uint32_t *send_order;		/* the same, in the order of steps */
	uint32_t *recv_order;
	uint32_t *send_slot;		/* per message: its slot at the sender */
	uint32_t *recv_slot;		/* and at the receiver */
	uint32_t n;
};
enum hk_status hk__batch_create(const struct hk_alloc *alloc, uint32_t n, const struct hk_msg *msgs,
				size_t nmsgs, struct hk__batch **batch_out);
void hk__batch_destroy(const struct hk_alloc *alloc, struct hk__batch *batch);

#endif
