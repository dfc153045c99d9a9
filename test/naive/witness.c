/* SPDX-License-Identifier: Apache-2.0 */
/* witness.c - many runs, and the table of verdicts. */
#include "naive/witness.h"

#include "harness.h"

void witness_init(struct witness *witness, uint64_t seed)
{
	*witness = (struct witness){ .naive = naive_create(), .seed = seed };
}

void witness_fini(struct witness *witness)
{
	naive_destroy(witness->naive);
}

/* Sizes 13, n + 1 and 1, and uneven blocks of which some are empty. */
void witness_open(struct witness *witness, const struct hk_plan *plan)
{
	struct hk_plan_info info = { .size = sizeof(info) };

	hk_plan_describe(plan, &info);
	struct hk_sizes sizes[WITNESS_SIZES] = {
		{ 13, NULL }, { 0, witness->counts }, { info.nranks + 1, NULL }, { 1, NULL }
	};
	uint64_t symbols = hk_plan_counts(plan);
	CHECK(symbols <= WITNESS_COUNTS_MAX);
	/* Neighbours of a row or a column are of unlike length. */
	for (uint64_t k = 0; k < symbols; k++)
		witness->counts[k] = (k * 7 + 4) % 11;
	for (uint32_t i = 0; i < WITNESS_SIZES; i++) {
		struct defn_spec spec = { .coll = info.coll,
					  .n = info.nranks,
					  .root = info.root,
					  .sizes = sizes[i],
					  .msgs = info.msgs,
					  .nmsgs = info.nmsgs };

		witness->data[i] = defn_create(&spec, ELEM_EXACT, i);
	}
}

void witness_close(struct witness *witness)
{
	for (uint32_t i = 0; i < WITNESS_SIZES; i++)
		defn_destroy(witness->data[i]);
}

bool witness_right(struct witness *witness, const struct hk_plan *plan, bool inplace, uint32_t runs,
		   struct evidence *evidence_out)
{
	struct hk_plan_info info = { .size = sizeof(info) };

	hk_plan_describe(plan, &info);
	naive_load(witness->naive, plan);
	for (uint32_t run = 0; run < runs; run++) {
		uint64_t random = test_random(&witness->seed);
		struct evidence e = { .sizes = run < 2 ? run : (uint32_t)(random % WITNESS_SIZES) };

		e.opts = (struct naive_opts){ .order = (enum naive_order)(run % NAIVE_ORDER_COUNT),
					      .seed = random,
					      .slots = info.slots,
					      .hold = random >> 63,
					      .inplace = inplace };
		if (naive_run(witness->naive, witness->data[e.sizes], &e.opts, &e.report) !=
		    NAIVE_OK) {
			*evidence_out = e;
			return false;
		}
	}
	return true;
}

void witness_print(const struct evidence *evidence, FILE *file)
{
	const struct naive_report *report = &evidence->report;

	fprintf(file, "  sizes %u, order %d, seed %" PRIu64 ", %u slots%s: ", evidence->sizes,
		(int)evidence->opts.order, evidence->opts.seed, evidence->opts.slots,
		evidence->opts.inplace ? ", in place" : "");
	fprintf(file, "rank %d lane %d step %d element %" PRIu64 ": %s\n", (int)report->rank,
		(int)report->lane, (int)report->step, report->index,
		naive_fault_text(report->fault));
}

bool witness_lanes(const struct hk_plan *plan)
{
	struct hk_plan_info info = { .size = sizeof(info) };

	hk_plan_describe(plan, &info);
	for (uint32_t r = 0; r < info.nranks; r++)
		if (hk_plan_lanes(plan, r) > 1)
			return true;
	return false;
}

/* ---- counting ---- */

void verdicts_count(struct verdicts *row, enum hk_refusal refusal, bool right)
{
	row->mutants++;
	if (refusal != HK_REFUSAL_NONE) {
		row->killed++;
		row->refused_right[refusal] += right;
	} else if (right) {
		row->equivalent++;
	} else {
		row->wrong++;
	}
}

void verdicts_head(const char *name)
{
	printf("%-36s %8s %8s %8s %6s |%26s%8s\n", "", "", "", "equiv-", "",
	       "refused though right:", "");
	printf("%-36s %8s %8s %8s %6s |%8s %8s %8s %8s %8s\n", name, "mutants", "killed", "alent",
	       "wrong", "form", "progress", "race", "result", "kills");
}

void verdicts_print(const struct verdicts *row)
{
	uint64_t to_kill = row->mutants - row->equivalent;

	printf("%-36s %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %6" PRIu64 " |", row->name,
	       row->mutants, row->killed, row->equivalent, row->wrong);
	printf("%8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %7.2f%%\n",
	       row->refused_right[HK_REFUSAL_FORM], row->refused_right[HK_REFUSAL_PROGRESS],
	       row->refused_right[HK_REFUSAL_RACE], row->refused_right[HK_REFUSAL_RESULT],
	       to_kill ? 100.0 * (double)row->killed / (double)to_kill : 100.0);
}
