/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - the inside of a plan, and the table every algorithm fills.
 *
 * A plan is its parameters plus a const table of functions. The functions of
 * a built-in algorithm are rank arithmetic: they read the parameters and
 * nothing else. A stored plan (store.h: read from a file, or edited by a
 * test) has a table whose functions look its steps up.
 */
#ifndef HK_PLAN_PLAN_H
#define HK_PLAN_PLAN_H

#include "base/base.h"

enum algo_flags {
	HK_ALGO_NODES = 1 << 0,		/* two-level: uses plan->nodes */
	HK_ALGO_NOT_INPLACE = 1 << 1
};

struct hk_algo {
	enum hk_coll coll;
	unsigned flags;
	unsigned variant;	/* which of a family's algorithms; its own numbers */
	struct {
		const char *name, *alias, *about, *steps, *sent, *reduced, *scratch, *limits;
	} card;			/* see struct hk_algo_info */
	/* Parts of a vector; NULL: 1. */
	uint32_t (*parts)(const struct hk_plan *plan);
	/* Lanes of every rank; 0: 1. */
	uint32_t nlanes;
	/* Messages a channel must hold; 0: 1. */
	uint32_t slots;
	/* Scratch slots of a rank; NULL: none. */
	uint32_t (*scratch)(const struct hk_plan *plan, uint32_t rank);
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
	struct hk__store *store;	/* stored plans */
	struct hk__batch *batch;	/* sendrecv */
};

extern const struct hk_step hk__step_none;

/* All built-in algorithms, ended by a row whose name is NULL. */
const struct hk_algo *hk__algo_at(uint32_t i);

/* What a collective is about: which of its properties depend on what. */
bool hk__coll_rooted(enum hk_coll coll);
bool hk__coll_vector(enum hk_coll coll);	/* in parts, not blocks */
bool hk__coll_reduces(enum hk_coll coll);

/* How many chunks make V (struct hk_algo_info). */
uint32_t hk__plan_chunks(const struct hk_plan *plan);

/* One reason why a step cannot be meant, or NULL: I1 in ARCHITECTURE.md. */
const char *hk__step_fault(const struct hk_plan *plan, uint32_t rank, const struct hk_step *step);

/* What an operation has. */
bool hk__op_receives(enum hk_op op);
bool hk__op_sends(enum hk_op op);
bool hk__op_reduces(enum hk_op op);
bool hk__op_reserved(enum hk_op op);

/* ---- sendrecv batches (algo/sendrecv.c) ---- */
struct hk__batch {
	struct hk_msg *msgs;		/* sorted: the global order, symbol k = msgs[k] */
	size_t nmsgs;
	uint32_t *first_send;		/* per rank, n + 1: into sends */
	uint32_t *first_recv;
	uint32_t *sends;		/* message numbers, by sender */
	uint32_t *recvs;
	uint32_t n;
};
/* Sorts (batches made for built-in plans) or keeps the order (files). */
enum hk_status hk__batch_create(const struct hk_alloc *alloc, uint32_t n, const struct hk_msg *msgs,
				size_t nmsgs, bool sort, struct hk__batch **batch_out);
void hk__batch_destroy(const struct hk_alloc *alloc, struct hk__batch *batch);

#endif
