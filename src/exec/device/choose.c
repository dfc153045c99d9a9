/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choose.c - which algorithm, and by lines or by flags: every candidate is flattened
 * once, both ways, and priced for all sizes (model/device.h). What is left is a table.
 */
#include "exec/device/unit.h"
#include "exec/device/load.h"

#include <math.h>

/* A block is worth so many bytes of a chunk, by lines; shared by moves that go at once. */
#define LINES_SLICE (2u << 10)

/* On a device nothing is far: what moves least data, or takes fewest hops. */
static const char *const allreduce[] = { "one-shot", "two-shot", "halving-doubling", NULL };
static const char *const broadcast[] = { "binomial", "two-shot", NULL };
static const char *const reduce[] = { "binomial", "two-shot", NULL };
static const char *const others[] = { NULL, NULL }; /* the first */

const char *const *hk__gpu_candidates(enum hk_coll coll)
{
	switch (coll) {
	case HK_COLL_ALLREDUCE:
		return allreduce;
	case HK_COLL_BROADCAST:
		return broadcast;
	case HK_COLL_REDUCE:
		return reduce;
	default:
		return others;
	}
}

bool hk__gpu_wide(enum hk_coll coll, uint32_t n, enum hk_type type, enum hk_redop op)
{
	bool rounds = op == HK_REDOP_SUM || op == HK_REDOP_PROD || op == HK_REDOP_AVG ||
		      op == HK_REDOP_PREMULSUM;
	bool small = type == HK_TYPE_FP16 || type == HK_TYPE_BF16 || type == HK_TYPE_FP8E4M3 ||
		     type == HK_TYPE_FP8E5M2;

	return rounds && small && n > 2 && hk__coll_reduces(coll);
}

/* ---- shapes ---- */

/* Operands of all ranks' programs by lines are kept on chip. */
static bool lines_fit(const struct hk__flat *flat, uint32_t *together_out)
{
	*together_out = 1;
	for (uint32_t r = 0; r < flat->n; r++) {
		*together_out = hk__max(*together_out, flat->programs[r]->together);
		if (flat->programs[r]->nrefs * HK__FLAT_OPERAND_BYTES > SHARED_MAX / 4 * 3)
			return false;
	}
	return true;
}

enum hk_status hk__gpu_shape(const struct hk__flat_limits *limits, const struct hk__flat *flat,
			     const struct hk_plan *plan, const struct hk_sizes *sizes,
			     struct hk__flat_call *call)
{
	struct hk__flat_limits changed = *limits;
	uint32_t together;

	if (call->mode & HK__FLAT_LINES) {
		if (sizes->counts || !lines_fit(flat, &together))
			return HK_ELIMIT;
		changed.slice_min = LINES_SLICE / together;
	}
	return hk__flat_shape(flat, plan, sizes, &changed, call);
}

/* ---- prices ---- */

static void table_offer(const struct gpu_choosing *choosing, const struct hk__flat *flat,
			const struct hk_plan *plan, const struct hk__flat_profile *profile,
			const struct hk__flat_call *like, uint8_t candidate,
			struct gpu_table *table)
{
	bool lines = like->mode & HK__FLAT_LINES;

	for (uint32_t i = 0; i < GPU_CLASSES; i++) {
		uint64_t count = (UINT64_C(1) << i) / hk_type_size((enum hk_type)like->type);
		struct hk_sizes sizes = { count ? count : 1, NULL };
		struct hk__device_load load;
		struct hk__flat_call call = *like;

		if (hk__gpu_shape(&choosing->limits, flat, plan, &sizes, &call) != HK_OK)
			continue;
		hk__flat_load(profile, &call,
			      plan->coll == HK_COLL_BARRIER ? 0 : hk_plan_length(plan, &sizes, 0),
			      &load);
		double ns = hk__device_price(choosing->prices, &load);
		bool better = ns < table->ns[i];
		/* Whoever asks for lines has them wherever they fit. */
		if (choosing->protocol == HK__GPU_LINES && lines != table->lines[i])
			better = lines || table->ns[i] == INFINITY;
		if (better) {
			table->ns[i] = ns;
			table->candidate[i] = candidate;
			table->lines[i] = lines;
		}
	}
}

static enum hk_status table_try(const struct gpu_choosing *choosing, const struct hk__gpu_ask *ask,
				const struct hk_plan *plan, uint8_t candidate, bool lines,
				struct hk_why *why, struct gpu_table *table)
{
	bool wide = hk__gpu_wide(ask->coll, choosing->n, ask->type, ask->op);
	struct hk__flat_spec spec = { .plan = plan,
				      .wide = wide,
				      .lines = lines,
				      .apart = choosing->apart,
				      .alloc = choosing->alloc };
	struct hk__flat_call like = { .n = choosing->n,
				      .type = ask->type,
				      .mode = (wide ? HK__FLAT_WIDE : 0) |
					      (lines ? HK__FLAT_LINES : 0) };
	struct hk__flat_profile profile;
	struct hk__flat *flat;
	enum hk_status status = hk__flat_create(&spec, why, &flat);

	if (status != HK_OK)
		return status;
	status = hk__flat_profile(flat, lines, &profile);
	if (status == HK_OK)
		table_offer(choosing, flat, plan, &profile, &like, candidate, table);
	else
		(void)hk__why(why, status, "no memory to price a plan");
	hk__flat_destroy(flat);
	return status;
}

/* A plan both ways. One that has too many moves for a program is no candidate. */
static enum hk_status table_add(const struct gpu_choosing *choosing, const struct hk__gpu_ask *ask,
				const struct hk_plan *plan, uint8_t candidate, struct hk_why *why,
				struct gpu_table *table)
{
	enum hk_status status = HK_OK;

	for (uint32_t lines = 0; lines < 2 && status == HK_OK; lines++) {
		/* What has no data has no words to carry flags. */
		if (lines && (choosing->protocol == HK__GPU_FLAGS || ask->coll == HK_COLL_BARRIER))
			continue;
		status = table_try(choosing, ask, plan, candidate, lines, why, table);
		if (status == HK_ELIMIT)
			status = HK_OK;
	}
	return status;
}

enum hk_status hk__gpu_table(const struct gpu_choosing *choosing, const struct hk__gpu_ask *ask,
			     struct hk_why *why, struct gpu_table *table_out)
{
	const char *const asked[] = { ask->algo, NULL };
	const char *const *names = ask->algo ? asked : hk__gpu_candidates(ask->coll);
	struct gpu_table table = { .candidate = { 0 } };
	enum hk_status status = HK_OK;

	for (uint32_t i = 0; i < GPU_CLASSES; i++)
		table.ns[i] = INFINITY;
	if (ask->given)
		status = table_add(choosing, ask, ask->given, 0, why, &table);
	for (uint8_t i = 0; !ask->given && status == HK_OK && (i == 0 || names[i]); i++) {
		struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
		struct hk_plan *plan;

		opts.algo = names[i];
		opts.alloc = choosing->alloc;
		status = hk_plan_create(ask->coll, choosing->n, &opts, why, &plan);
		if (status == HK_OK) {
			status = table_add(choosing, ask, plan, i, why, &table);
			hk_plan_free(plan);
		} else if (!ask->algo && status == HK_EINVAL) {
			status = HK_OK; /* not for so many ranks */
		}
	}
	if (status == HK_OK)
		*table_out = table;
	return status;
}

/* ---- what was chosen before ---- */

struct gpu_choice {
	struct hk__gpu_ask ask; /* count does not matter */
	struct gpu_table table;
};

void hk__gpu_choices_free(struct hk__gpu *gpu)
{
	for (size_t i = 0; i < gpu->choices.count; i++)
		hk__mem_free(gpu->alloc, ((struct gpu_choice **)gpu->choices.items)[i], 1,
			     sizeof(struct gpu_choice));
	hk__array_fini(&gpu->choices);
}

/* Types of one size cost the same, but for sums that are fp32 meanwhile. */
static bool ask_equal(const struct hk__gpu *gpu, const struct hk__gpu_ask *a,
		      const struct hk__gpu_ask *b)
{
	return a->coll == b->coll && a->algo == b->algo && a->given == b->given &&
	       hk_type_size(a->type) == hk_type_size(b->type) &&
	       hk__gpu_wide(a->coll, gpu->spec.n, a->type, a->op) ==
		       hk__gpu_wide(b->coll, gpu->spec.n, b->type, b->op);
}

static enum hk_status choice_add(struct hk__gpu *gpu, const struct hk__gpu_ask *ask,
				 struct hk_why *why, struct gpu_choice **choice_out)
{
	struct gpu_choosing choosing = { .n = gpu->spec.n,
					 .apart = gpu->spec.apart,
					 .protocol = gpu->spec.protocol,
					 .limits = gpu->limits,
					 .prices = &hk__device_h200,
					 .alloc = gpu->alloc };
	struct gpu_choice *choice = hk__mem_zalloc(gpu->alloc, 1, sizeof(*choice));

	if (!choice)
		return hk__why(why, HK_ENOMEM, "no memory for a choice");
	choice->ask = *ask;
	enum hk_status status = hk__gpu_table(&choosing, ask, why, &choice->table);
	struct gpu_choice **place = status == HK_OK ? hk__array_push(&gpu->choices) : NULL;
	if (!place) {
		hk__mem_free(gpu->alloc, choice, 1, sizeof(*choice));
		return status == HK_OK ? hk__why(why, HK_ENOMEM, "no memory for a choice") : status;
	}
	*place = *choice_out = choice;
	return HK_OK;
}

/* The first class that has room for so many bytes. */
static uint32_t class_of(uint64_t bytes)
{
	uint32_t class = 0;

	while (class + 1 < GPU_CLASSES && UINT64_C(1) << class < bytes)
		class ++;
	return class;
}

enum hk_status hk__gpu_choose(struct hk__gpu *gpu, const struct hk__gpu_ask *ask,
			      struct hk_why *why, struct hk__gpu_answer *answer_out)
{
	uint32_t class = class_of(ask->count * hk_type_size(ask->type));
	struct gpu_choice *found = NULL;
	enum hk_status status = HK_OK;

	pthread_mutex_lock(&gpu->lock);
	for (size_t i = 0; i < gpu->choices.count && !found; i++) {
		struct gpu_choice *choice = ((struct gpu_choice **)gpu->choices.items)[i];

		if (ask_equal(gpu, ask, &choice->ask))
			found = choice;
	}
	if (!found)
		status = choice_add(gpu, ask, why, &found);
	pthread_mutex_unlock(&gpu->lock);
	if (status != HK_OK)
		return status;
	hk_assert(found);
	const char *const *names = hk__gpu_candidates(ask->coll);
	*answer_out =
		(struct hk__gpu_answer){ .algo = ask->algo ? ask->algo
							   : names[found->table.candidate[class]],
					 .lines = found->table.lines[class] };
	return HK_OK;
}
