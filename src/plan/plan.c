/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - making a plan, asking it for steps, and what operations have. */
#include "plan/plan.h"
#include "plan/store.h"

#include <string.h>

const struct hk_step hk__step_none = {
	.op = HK_OP_NOP,
	.from = { HK_NONE, HK_NONE },
	.to = { HK_NONE, HK_NONE },
	.after = { HK_NONE, 0 },
};

/* ---- operations ---- */

const char *hk_op_name(enum hk_op op)
{
	switch (op) {
#define OP_NAME(id, name, does) \
	case HK_OP_##id: \
		return name;
		HK_OP_MAP(OP_NAME)
#undef OP_NAME
	case HK_OP_COUNT:
		break;
	}
	return "?";
}

const char *hk_buf_name(enum hk_buf buf)
{
	switch (buf) {
	case HK_BUF_IN:
		return "in";
	case HK_BUF_OUT:
		return "out";
	case HK_BUF_SCRATCH:
		return "scratch";
	case HK_BUF_NONE:
		break;
	}
	return "none";
}

const char *hk__signals_name(enum hk_signals signals)
{
	return signals == HK_SIGNALS_STRONG ? "strong"
	       : signals == HK_SIGNALS_WEAK ? "weak"
					    : "none";
}

unsigned hk__op_fields(enum hk_op op)
{
	enum {
		FROM = HK__FIELD_FROM | HK__FIELD_COUNT,
		TO = HK__FIELD_TO | HK__FIELD_COUNT,
		SRC = HK__FIELD_SRC | HK__FIELD_COUNT,
		KEEP = HK__FIELD_DST,
		DST = HK__FIELD_DST | HK__FIELD_DST_NEEDED,
		ADD = HK__FIELD_REDUCES
	};
	static const unsigned fields[HK_OP_COUNT] = {
		[HK_OP_SEND] = SRC | TO,
		[HK_OP_RECV] = FROM | DST,
		[HK_OP_RECV_REDUCE] = FROM | SRC | DST | ADD,
		[HK_OP_RECV_SEND] = FROM | TO | KEEP,
		[HK_OP_RECV_REDUCE_SEND] = FROM | SRC | TO | KEEP | ADD,
		[HK_OP_COPY] = SRC | DST,
		[HK_OP_REDUCE] = SRC | DST | ADD,
		[HK_OP_PUT] = SRC | HK__FIELD_PUT,
		[HK_OP_SIGNAL] = HK__FIELD_SIGNAL,
		[HK_OP_WAIT] = HK__FIELD_WAIT | HK__FIELD_COUNT,
	};

	return op < HK_OP_COUNT ? fields[op] : 0;
}

uint32_t hk_span_at(const struct hk_span *span, uint32_t j, uint32_t nslots)
{
	uint64_t at = span->first;

	hk_assert(nslots > 0);
	if (span->run == 0)
		at += j;
	else
		at += (uint64_t)(j / span->run) * span->period + j % span->run;
	return (uint32_t)(at % nslots);
}

static const char *step_span_fault(const struct hk_plan *plan, uint32_t rank,
				   const struct hk_span *span, uint32_t count, bool may_be_none)
{
	uint32_t nslots = hk_plan_slots(plan, rank, span->buf);

	if (span->buf == HK_BUF_NONE)
		return may_be_none || count == 0 ? NULL : "names no buffer";
	if (count > nslots)
		return "names more slots than the rank's buffer has";
	if (span->first >= (nslots ? nslots : 1))
		return "names a slot past the end of the rank's buffer";
	return NULL;
}

static const char *step_port_fault(const struct hk_plan *plan, const struct hk_port *port)
{
	if (port->rank >= plan->n)
		return "names a peer that is no rank of the plan";
	if (port->lane >= hk_plan_lanes(plan, port->rank))
		return "names a lane the peer does not have";
	return NULL;
}

static const char *put_fault(const struct hk_plan *plan, uint32_t rank, const struct hk_step *step)
{
	const char *fault = step_span_fault(plan, rank, &step->src, step->count, false);

	if (step->to.lane != 0)
		return "names a lane, but no lane of the peer takes part";
	if (!fault)
		fault = step_span_fault(plan, step->to.rank, &step->dst, step->count, false);
	if (!fault && step->dst.buf == HK_BUF_IN)
		return "writes the input of the peer, which is read-only";
	return fault;
}

static const char *onesided_fault(const struct hk_plan *plan, uint32_t rank,
				  const struct hk_step *step)
{
	unsigned fields = hk__op_fields(step->op);
	const struct hk_port *port = fields & HK__FIELD_WAIT ? &step->from : &step->to;

	if (plan->signals == HK_SIGNALS_NONE)
		return "is one-sided, but the plan does not say whether signals are strong or weak";
	if (port->rank >= plan->n)
		return "names a peer that is no rank of the plan";
	if ((fields & HK__FIELD_WAIT) && port->rank != rank)
		return "waits for a signal of another rank; a rank waits for its own";
	if (!(fields & HK__FIELD_WAIT) && port->rank == rank)
		return "is for its own rank; use copy, or a dependency";
	if ((fields & (HK__FIELD_SIGNAL | HK__FIELD_WAIT)) && port->lane >= HK_SIGNALS_MAX)
		return "names a signal past the last that a rank can have";
	if ((fields & HK__FIELD_WAIT) && step->count == 0)
		return "waits for no signal at all";
	return fields & HK__FIELD_PUT ? put_fault(plan, rank, step) : NULL;
}

const char *hk__step_fault(const struct hk_plan *plan, uint32_t rank, const struct hk_step *step)
{
	unsigned fields = hk__op_fields(step->op);
	const char *fault = NULL;

	if (hk__op_reserved(step->op))
		return "is a reserved operation that cannot be proved yet; use send and recv";
	if (hk__op_onesided(step->op))
		fault = onesided_fault(plan, rank, step);
	if (fields & HK__FIELD_FROM)
		fault = step_port_fault(plan, &step->from);
	if (!fault && (fields & HK__FIELD_TO))
		fault = step_port_fault(plan, &step->to);
	if (!fault && (fields & HK__FIELD_SRC) && !(fields & HK__FIELD_PUT))
		fault = step_span_fault(plan, rank, &step->src, step->count, false);
	if (!fault && (fields & HK__FIELD_DST))
		fault = step_span_fault(plan, rank, &step->dst, step->count,
					!(fields & HK__FIELD_DST_NEEDED));
	if (!fault && (fields & HK__FIELD_DST) && step->dst.buf == HK_BUF_IN)
		fault = "writes the input, which is read-only";
	if (!fault && step->after.lane != HK_NONE &&
	    (step->after.lane >= hk_plan_lanes(plan, rank) ||
	     step->after.step >= hk_plan_steps(plan, rank, step->after.lane)))
		fault = "depends on a step that the rank does not have";
	return fault;
}

/* ---- making ---- */

static const struct hk_algo *plan_find_algo(enum hk_coll coll, const char *name)
{
	for (uint32_t i = 0; hk__algo_at(i); i++) {
		const struct hk_algo *algo = hk__algo_at(i);

		if (algo->coll != coll)
			continue;
		if (!name || hk__name_equal(name, algo->info.name) ||
		    (algo->info.alias && hk__name_equal(name, algo->info.alias)))
			return algo;
	}
	return NULL;
}

static enum hk_status plan_no_algo(enum hk_coll coll, const char *name, struct hk_why *why)
{
	char names[HK_WHY_MAX / 2];
	struct hk__text text;

	hk__text_init(&text, names, sizeof(names));
	for (uint32_t i = 0; hk__algo_at(i); i++)
		if (hk__algo_at(i)->coll == coll)
			hk__text_add(&text, "%s%s", text.len ? ", " : "",
				     hk__algo_at(i)->info.name);
	return hk__why(why, HK_EINVAL, "%s has no algorithm '%s'; it has %s", hk_coll_name(coll),
		       name, names);
}

/* The fewest nodes (two or more) of at most 8 ranks each that divide n. */
static uint32_t plan_default_nodes(uint32_t n)
{
	for (uint32_t g = hk__min(n / 2, 8); g > 1; g--)
		if (n % g == 0)
			return n / g;
	return n;
}

static enum hk_status plan_check_nodes(const struct hk_algo *algo, uint32_t n,
				       const struct hk_plan_opts *opts, struct hk_why *why)
{
	if ((opts->nodes || opts->node_sizes) && !(algo->flags & HK_ALGO_NODES))
		return hk__why(why, HK_EINVAL,
			       "%s %s is flat and takes no nodes; its two-level form does",
			       hk_coll_name(algo->coll), algo->info.name);
	if (opts->node_sizes) {
		enum hk_status status = hk__nodes_check(n, opts->nodes, opts->node_sizes, why);

		if (status != HK_OK)
			return status;
		if (!(algo->flags & HK_ALGO_UNEVEN) &&
		    !hk__nodes_equal(opts->nodes, opts->node_sizes))
			return hk__why(
				why, HK_EINVAL,
				"%s %s takes nodes of equal sizes; its leader form takes any",
				hk_coll_name(algo->coll), algo->info.name);
		return HK_OK;
	}
	if (opts->nodes && (opts->nodes > n || n % opts->nodes))
		return hk__why(why, HK_EINVAL, "%u nodes do not divide %u ranks evenly",
			       opts->nodes, n);
	return HK_OK;
}

static enum hk_status plan_check_args(const struct hk_algo *algo, uint32_t n,
				      const struct hk_plan_opts *opts, struct hk_why *why)
{
	if (n == 0 || n > HK_RANKS_MAX)
		return hk__why(why, HK_ELIMIT, "%u ranks: a plan has 1 to %u", n, HK_RANKS_MAX);
	if (opts->root >= n)
		return hk__why(why, HK_EINVAL, "root %u is not one of the %u ranks (0 to %u)",
			       opts->root, n, n - 1);
	if (opts->root && !hk__coll_rooted(algo->coll))
		return hk__why(why, HK_EINVAL, "%s has no root", hk_coll_name(algo->coll));
	enum hk_status status = plan_check_nodes(algo, n, opts, why);
	if (status != HK_OK)
		return status;
	if (opts->nmsgs && algo->coll != HK_COLL_SENDRECV)
		return hk__why(why, HK_EINVAL, "%s takes no list of messages",
			       hk_coll_name(algo->coll));
	if (opts->nmsgs && !opts->msgs)
		return hk__why(why, HK_EINVAL, "%zu messages, but no list of them", opts->nmsgs);
	for (size_t i = 0; i < opts->nmsgs; i++)
		if (opts->msgs[i].src >= n || opts->msgs[i].dst >= n)
			return hk__why(
				why, HK_EINVAL,
				"message %zu goes from rank %u to %u, but there are %u ranks", i,
				opts->msgs[i].src, opts->msgs[i].dst, n);
	return HK_OK;
}

/* Each rank to the next: what sendrecv does when no messages are named. */
static enum hk_status plan_make_batch(struct hk_plan *plan, const struct hk_plan_opts *opts)
{
	if (opts->msgs)
		return hk__batch_create(plan->alloc, plan->n, opts->msgs, opts->nmsgs,
					&plan->batch);
	struct hk_msg *msgs = hk__mem_zalloc(plan->alloc, plan->n, sizeof(*msgs));
	if (!msgs)
		return HK_ENOMEM;
	for (uint32_t r = 0; r < plan->n; r++)
		msgs[r] = (struct hk_msg){ r, (r + 1) % plan->n };
	enum hk_status status = hk__batch_create(plan->alloc, plan->n, msgs, plan->n, &plan->batch);
	hk__mem_free(plan->alloc, msgs, plan->n, sizeof(*msgs));
	return status;
}

/* What has memory of its own, and what follows from all the rest. */
static enum hk_status plan_fill(struct hk_plan *plan, const struct hk_plan_opts *opts,
				struct hk_why *why)
{
	const struct hk_algo *algo = plan->algo;
	enum hk_status status = HK_OK;

	if (algo->flags & HK_ALGO_NODES)
		status = hk__nodes_store(plan,
					 opts->nodes ? opts->nodes : plan_default_nodes(plan->n),
					 opts->node_sizes);
	if (status != HK_OK)
		return hk__why(why, status, "no memory for the sizes of %u nodes", opts->nodes);
	if (plan->coll == HK_COLL_SENDRECV)
		status = plan_make_batch(plan, opts);
	if (status != HK_OK)
		return hk__why(why, status, "%s: %zu messages", hk_status_text(status),
			       opts->msgs ? opts->nmsgs : plan->n);
	if (algo->fits && !algo->fits(plan))
		return hk__why(why, HK_ELIMIT, "%s %s: too many ranks in a node; take more nodes",
			       hk_coll_name(plan->coll), algo->info.name);
	plan->parts = algo->parts ? algo->parts(plan) : 1;
	plan->widest = algo->widest ? algo->widest(plan) : 1;
	hk_assert(plan->widest > 0);
	return HK_OK;
}

enum hk_status hk_plan_create(enum hk_coll coll, uint32_t nranks, const struct hk_plan_opts *given,
			      struct hk_why *why, struct hk_plan **plan_out)
{
	struct hk_plan_opts opts;
	enum hk_status status = hk__opts_copy(&opts, sizeof(opts), given);

	if (status != HK_OK)
		return hk__why(why, status, "options of an unknown version");
	if ((unsigned)coll >= HK_COLL_COUNT)
		return hk__why(why, HK_EINVAL, "%u is not a collective", (unsigned)coll);
	const struct hk_algo *algo = plan_find_algo(coll, opts.algo);
	if (!algo)
		return plan_no_algo(coll, opts.algo ? opts.algo : "", why);
	status = plan_check_args(algo, nranks, &opts, why);
	if (status != HK_OK)
		return status;

	const struct hk_alloc *alloc = opts.alloc ? opts.alloc : &hk__alloc_default;
	struct hk_plan *plan = hk__mem_zalloc(alloc, 1, sizeof(*plan));
	if (!plan)
		return hk__why(why, HK_ENOMEM, "no memory for a plan");
	*plan = (struct hk_plan){ .algo = algo,
				  .alloc = alloc,
				  .coll = coll,
				  .n = nranks,
				  .root = opts.root,
				  .nodes = 1,
				  .slots = algo->slots ? algo->slots : 1,
				  .signals = (uint8_t)algo->signals,
				  .inplace = !(algo->flags & HK_ALGO_NOT_INPLACE) };
	status = plan_fill(plan, &opts, why);
	if (status != HK_OK) {
		hk_plan_free(plan);
		return status;
	}
	*plan_out = plan;
	return HK_OK;
}

void hk_plan_free(struct hk_plan *plan)
{
	if (!plan)
		return;
	if (plan->store)
		hk__store_destroy(plan);
	hk__batch_destroy(plan->alloc, plan->batch);
	hk__nodes_free(plan);
	hk__mem_free(plan->alloc, plan, 1, sizeof(*plan));
}

/* ---- asking ---- */

void hk_plan_describe(const struct hk_plan *plan, struct hk_plan_info *info_out)
{
	struct hk_plan_info full = {
		.coll = plan->coll,
		.algo = plan->store ? plan->store->algo : plan->algo->info.name,
		.nranks = plan->n,
		.root = plan->root,
		.nodes = plan->nodes,
		.parts = plan->parts,
		.slots = plan->slots,
		.inplace = plan->inplace,
		.msgs = plan->batch ? plan->batch->msgs : NULL,
		.nmsgs = plan->batch ? plan->batch->nmsgs : 0,
		.node_sizes = plan->node_sizes,
		.signals = (enum hk_signals)plan->signals,
	};
	hk__result_set(info_out, &full, sizeof(full));
}

uint32_t hk_plan_lanes(const struct hk_plan *plan, uint32_t rank)
{
	hk_assert(rank < plan->n);
	if (plan->store)
		return (uint32_t)plan->store->ranks[rank].lanes.count;
	if (plan->algo->lanes)
		return plan->algo->lanes(plan);
	return plan->algo->nlanes ? plan->algo->nlanes : 1;
}

uint32_t hk_plan_steps(const struct hk_plan *plan, uint32_t rank, uint32_t lane)
{
	hk_assert(lane < hk_plan_lanes(plan, rank));
	if (plan->store) {
		struct hk__store_lane *stored = hk__array_at(&plan->store->ranks[rank].lanes, lane);

		return (uint32_t)stored->steps.count;
	}
	return plan->algo->steps(plan, rank, lane);
}

void hk_plan_step(const struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t i,
		  struct hk_step *step_out)
{
	if (plan->store) {
		*step_out = *hk__store_step(plan, rank, lane, i);
		if (step_out->op == HK_OP_NOP || step_out->op == HK_OP_SIGNAL)
			step_out->count = 0; /* whatever else is stored, it moves nothing */
		return;
	}
	hk_assert(i < hk_plan_steps(plan, rank, lane));
	*step_out = hk__step_none;
	plan->algo->step(plan, rank, lane, i, step_out);
}

uint32_t hk__plan_signals(const struct hk_plan *plan, uint32_t rank)
{
	uint32_t count = 0;
	struct hk_step step;

	if (plan->signals == HK_SIGNALS_NONE)
		return 0;
	for (uint32_t l = 0; l < hk_plan_lanes(plan, rank); l++) {
		for (uint32_t i = 0; i < hk_plan_steps(plan, rank, l); i++) {
			hk_plan_step(plan, rank, l, i, &step);
			if (step.op == HK_OP_WAIT)
				count = hk__max(count, step.from.lane + 1);
		}
	}
	return count;
}

uint32_t hk__plan_widest(const struct hk_plan *plan)
{
	uint32_t widest = 1;

	if (plan->widest)
		return plan->widest;
	for (uint32_t r = 0; r < plan->n; r++) {
		for (uint32_t l = 0; l < hk_plan_lanes(plan, r); l++) {
			for (uint32_t i = 0; i < hk_plan_steps(plan, r, l); i++) {
				struct hk_step step;

				hk_plan_step(plan, r, l, i, &step);
				if (hk__op_sends(step.op))
					widest = hk__max(widest, step.count);
			}
		}
	}
	return widest;
}

static void plan_describe_algo(const struct hk_algo *algo, struct hk_algo_info *info_out)
{
	struct hk_algo_info full = {
		.coll = algo->coll,
		.name = algo->info.name,
		.alias = algo->info.alias,
		.about = algo->info.about,
		.steps = algo->info.steps,
		.sent = algo->info.sent,
		.reduced = algo->info.reduced,
		.scratch = algo->info.scratch,
		.limits = algo->info.limits,
		.nodes = algo->flags & HK_ALGO_NODES,
		.rooted = hk__coll_rooted(algo->coll),
		.inplace = !(algo->flags & HK_ALGO_NOT_INPLACE),
		.uneven = algo->flags & HK_ALGO_UNEVEN,
		.onesided = algo->signals != HK_SIGNALS_NONE,
	};
	hk__result_set(info_out, &full, sizeof(full));
}

bool hk_algo_get(uint32_t i, struct hk_algo_info *info_out)
{
	const struct hk_algo *algo = hk__algo_at(i);

	if (algo)
		plan_describe_algo(algo, info_out);
	return algo;
}

enum hk_status hk_algo_find(enum hk_coll coll, const char *name, struct hk_algo_info *info_out)
{
	const struct hk_algo *algo = plan_find_algo(coll, name);

	if (!algo)
		return HK_EINVAL;
	plan_describe_algo(algo, info_out);
	return HK_OK;
}
