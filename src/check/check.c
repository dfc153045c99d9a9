/* SPDX-License-Identifier: Apache-2.0 */
/* check.c - a proof from its beginning to its end, and what a plan costs. */
#include "check/cross.h"

#include <string.h>

/*
 * Slots of out and scratch of all ranks together, and (twice that) what every
 * lane keeps of its rank's slots. A slot costs 12 bytes, and every sum that is
 * formed some 50 more: a ring takes about 110 bytes a slot in all.
 */
#define CELLS_MAX (UINT64_C(1) << 27)
#define STEPS_MAX (UINT64_C(1) << 33) /* about half an hour */

const char *hk_refusal_name(enum hk_refusal refusal)
{
	switch (refusal) {
	case HK_REFUSAL_FORM:
		return "form";
	case HK_REFUSAL_PROGRESS:
		return "progress";
	case HK_REFUSAL_RACE:
		return "race";
	case HK_REFUSAL_RESULT:
		return "result";
	case HK_REFUSAL_NONE:
		break;
	}
	return "none";
}

/* ---- state ---- */

static void *proof_alloc(const struct proof *proof, uint64_t count, size_t size)
{
	return count > SIZE_MAX ? NULL : hk__mem_zalloc(proof->alloc, (size_t)count, size);
}

/* How many lanes and cells there are, and where each rank's begin. */
static enum hk_status proof_measure(struct proof *proof)
{
	const struct hk_plan *plan = proof->plan;
	uint64_t cells = 0, lanes = 0, more = 0; /* more: per lane */

	/* In a one-sided plan the clocks say who has come. */
	if (plan->coll == HK_COLL_BARRIER && plan->signals == HK_SIGNALS_NONE)
		proof->know_words = plan->n / 32 + 1;

	proof->cell_base = proof_alloc(proof, (uint64_t)plan->n + 1, sizeof(*proof->cell_base));
	proof->lane_base = proof_alloc(proof, (uint64_t)plan->n + 1, sizeof(*proof->lane_base));
	proof->nout = proof_alloc(proof, plan->n, sizeof(*proof->nout));
	if (!proof->cell_base || !proof->lane_base || !proof->nout)
		return HK_ENOMEM;
	for (uint32_t r = 0; r < plan->n; r++) {
		uint64_t here = (uint64_t)hk_plan_slots(plan, r, HK_BUF_OUT) +
				hk_plan_slots(plan, r, HK_BUF_SCRATCH);

		proof->cell_base[r] = cells;
		proof->lane_base[r] = (uint32_t)lanes;
		proof->nout[r] = hk_plan_slots(plan, r, HK_BUF_OUT);
		cells += here;
		lanes += hk_plan_lanes(plan, r);
		if (hk_plan_lanes(plan, r) > 1)
			more += hk_plan_lanes(plan, r) * here;
		more += (uint64_t)hk_plan_lanes(plan, r) * proof->know_words;
		if (here > proof->nmarks)
			proof->nmarks = (uint32_t)here;
		if (cells > CELLS_MAX || more > 2 * CELLS_MAX || lanes > UINT32_MAX / 2)
			return HK_ELIMIT;
	}
	proof->cell_base[plan->n] = proof->ncells = cells;
	proof->lane_base[plan->n] = proof->nlanes = (uint32_t)lanes;
	return HK_OK;
}

static enum hk_status proof_init_lanes(struct proof *proof)
{
	for (uint32_t r = 0; r < proof->plan->n; r++) {
		for (uint32_t id = proof->lane_base[r]; id < proof->lane_base[r + 1]; id++) {
			struct lane *lane = &proof->lanes[id];

			*lane = (struct lane){ .rank = r, .index = id - proof->lane_base[r] };
			lane->nsteps = hk_plan_steps(proof->plan, r, lane->index);
			proof->steps_total += lane->nsteps;
			if (proof->steps_total > STEPS_MAX)
				return HK_ELIMIT;
			lane->payload.at = lane->holds = HK_NONE;
			if (proof->know_words == 0)
				continue;
			lane->knows = proof_alloc(proof, proof->know_words, sizeof(uint32_t));
			if (!lane->knows)
				return HK_ENOMEM;
			lane->knows[r / 32] |= 1u << r % 32;
		}
	}
	return HK_OK;
}

/* In place, the cells of out that are input hold it from the start. */
static void proof_init_inputs(struct proof *proof)
{
	for (uint32_t r = 0; proof->inplace && r < proof->plan->n; r++) {
		for (uint32_t k = 0; k < hk_plan_slots(proof->plan, r, HK_BUF_IN); k++) {
			uint32_t out = hk_plan_inplace_slot(proof->plan, r, k);

			if (out == HK_NONE)
				continue;
			/* One memory, one length (I6). */
			hk_assert(hk_plan_symbol(proof->plan, r, HK_BUF_IN, k) ==
				  hk_plan_symbol(proof->plan, r, HK_BUF_OUT, out));
			proof->cells[proof->cell_base[r] + out].value =
				hk__value_input(&proof->values, r, k);
		}
	}
}

static enum hk_status proof_init(struct proof *proof)
{
	enum hk_status status;

	hk__array_init(&proof->channels, proof->alloc, sizeof(struct channel));
	hk__array_init(&proof->messages, proof->alloc, sizeof(struct message));
	hk__array_init(&proof->pool.words, proof->alloc, sizeof(uint32_t));
	hk__hash_init(&proof->channel_of, proof->alloc);
	memset(proof->pool.free, 0xff, sizeof(proof->pool.free));
	proof->messages_free = HK_NONE;
	proof->nothing.rank = HK_NONE;
	status = hk__values_init(&proof->values, proof->plan, proof->alloc);
	if (status == HK_OK)
		status = proof_measure(proof);
	if (status != HK_OK)
		return status;
	proof->cells = proof_alloc(proof, proof->ncells, sizeof(*proof->cells));
	proof->lanes = proof_alloc(proof, proof->nlanes, sizeof(*proof->lanes));
	proof->queue = proof_alloc(proof, proof->nlanes, sizeof(*proof->queue));
	proof->orders = proof_alloc(proof, proof->plan->n, sizeof(*proof->orders));
	proof->tallies = proof_alloc(proof, proof->plan->n, sizeof(*proof->tallies));
	proof->marks = proof_alloc(proof, proof->nmarks, sizeof(*proof->marks));
	if (!proof->cells || !proof->lanes || !proof->queue || !proof->orders || !proof->tallies ||
	    !proof->marks)
		return HK_ENOMEM;
	proof_init_inputs(proof);
	status = proof_init_lanes(proof);
	if (status == HK_OK && proof->plan->signals != HK_SIGNALS_NONE)
		status = hk__cross_init(proof);
	if (status == HK_OK && proof->cross)
		status = hk__onesided_scan(proof);
	for (uint32_t r = 0; r < proof->plan->n && status == HK_OK; r++)
		status = hk__order_init(proof, r);
	return status;
}

static void proof_fini(struct proof *proof)
{
	const struct hk_alloc *alloc = proof->alloc;
	size_t n = proof->plan->n;

	for (uint32_t i = 0; proof->lanes && i < proof->nlanes; i++)
		hk__mem_free(alloc, proof->lanes[i].knows, proof->know_words, sizeof(uint32_t));
	for (uint32_t r = 0; proof->orders && r < n; r++)
		hk__order_fini(proof, r);
	hk__cross_fini(proof);
	hk__mem_free(alloc, proof->marks, proof->nmarks, sizeof(*proof->marks));
	hk__mem_free(alloc, proof->tallies, n, sizeof(*proof->tallies));
	hk__mem_free(alloc, proof->orders, n, sizeof(*proof->orders));
	hk__mem_free(alloc, proof->queue, proof->nlanes, sizeof(*proof->queue));
	hk__mem_free(alloc, proof->lanes, proof->nlanes, sizeof(*proof->lanes));
	hk__mem_free(alloc, proof->cells, (size_t)proof->ncells, sizeof(*proof->cells));
	hk__mem_free(alloc, proof->nout, n, sizeof(*proof->nout));
	hk__mem_free(alloc, proof->lane_base, n + 1, sizeof(*proof->lane_base));
	hk__mem_free(alloc, proof->cell_base, n + 1, sizeof(*proof->cell_base));
	hk__values_fini(&proof->values, alloc);
	hk__hash_fini(&proof->channel_of);
	hk__array_fini(&proof->pool.words);
	hk__array_fini(&proof->messages);
	hk__array_fini(&proof->channels);
}

/* ---- cost ---- */

static void cost_max(uint64_t *max, uint64_t value)
{
	if (value > *max)
		*max = value;
}

static void proof_report_cost(struct proof *proof)
{
	struct hk_check_cost *cost = &proof->report->cost;

	*cost = (struct hk_check_cost){ .steps_total = proof->steps_done,
					.messages = proof->messages_sent,
					.critical = proof->critical,
					.chunks = hk__plan_chunks(proof->plan) };
	for (uint32_t r = 0; r < proof->plan->n; r++) {
		const struct tally *tally = &proof->tallies[r];
		uint32_t nlanes = proof->lane_base[r + 1] - proof->lane_base[r];

		cost_max(&cost->busiest_sent, tally->sent);
		cost_max(&cost->busiest_received, tally->received);
		cost_max(&cost->busiest_reduced, tally->reduced);
		cost_max(&cost->busiest_copied, tally->copied);
		cost->sent += tally->sent;
		uint32_t scratch = hk_plan_slots(proof->plan, r, HK_BUF_SCRATCH);

		if (scratch > cost->scratch_max)
			cost->scratch_max = scratch;
		if (tally->scratch > cost->scratch_used)
			cost->scratch_used = tally->scratch;
		if (nlanes > cost->lanes_max)
			cost->lanes_max = nlanes;
	}
}

void hk_check_rank_cost(const struct hk_plan *plan, uint32_t rank, struct hk_rank_cost *cost_out)
{
	struct hk_rank_cost cost = { .size = sizeof(cost),
				     .scratch = hk_plan_slots(plan, rank, HK_BUF_SCRATCH) };

	for (uint32_t l = 0; l < hk_plan_lanes(plan, rank); l++) {
		for (uint32_t i = 0; i < hk_plan_steps(plan, rank, l); i++) {
			struct hk_step step;

			hk_plan_step(plan, rank, l, i, &step);
			cost.steps++;
			if (hk__op_sends(step.op) || step.op == HK_OP_PUT)
				cost.sent += step.count;
			cost.received += hk__op_receives(step.op) ? step.count : 0;
			cost.reduced += hk__op_reduces(step.op) ? step.count : 0;
			cost.copied += step.op == HK_OP_COPY ? step.count : 0;
		}
	}
	hk__result_set(cost_out, &cost, sizeof(cost));
}

/* ---- the proof ---- */

/* The report as far as the caller knows it, and the status to return. */
static enum hk_status report_give(const struct hk_check_report *report, enum hk_status status,
				  struct hk_check_report *report_out)
{
	enum hk_status copied = hk__result_copy(report_out, report, sizeof(*report));

	return copied == HK_OK ? status : copied;
}

enum hk_status hk_check(const struct hk_plan *plan, const struct hk_check_opts *given,
			struct hk_check_report *report_out)
{
	struct hk_check_opts opts;
	struct hk_check_report report = {
		.size = sizeof(report), .rank = HK_NONE, .lane = HK_NONE, .step = HK_NONE
	};

	if (hk__opts_copy(&opts, sizeof(opts), given) != HK_OK) {
		hk__why(&report.why, HK_EINVAL, "options of an unknown version");
		return report_give(&report, HK_EINVAL, report_out);
	}
	if (opts.inplace && !hk__coll_inplace(plan->coll)) {
		hk__why(&report.why, HK_EINVAL, "%s has no in-place form",
			hk_coll_name(plan->coll));
		return report_give(&report, HK_EINVAL, report_out);
	}
	struct proof proof = { .plan = plan,
			       .alloc = opts.alloc ? opts.alloc : &hk__alloc_default,
			       .inplace = opts.inplace,
			       .slots = opts.set_slots ? opts.slots
						       : hk__min(plan->slots, HK_SLOTS_MIN),
			       .opts = &opts,
			       .report = &report };
	enum hk_status status = proof_init(&proof);
	if (status == HK_OK)
		status = hk__run(&proof);
	if (status == HK_OK)
		status = hk__promise_check(&proof);
	report.proved = status == HK_OK;
	if (status == HK_OK)
		proof_report_cost(&proof);
	else if (status == HK_ENOMEM)
		hk__why(&report.why, status, "no memory for the proof");
	else if (status == HK_ELIMIT && proof.cross && proof.cross->full)
		hk__why(&report.why, status,
			"the one-sided steps of %u lanes take more memory than a proof can take; "
			"check it with fewer ranks",
			proof.nlanes);
	else if (status == HK_ELIMIT)
		hk__why(&report.why, status,
			"the plan has more slots or steps than a proof can take; check it with "
			"fewer ranks");
	proof_fini(&proof);
	return report_give(&report, status, report_out);
}
