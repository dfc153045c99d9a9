/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutation_test.c - does the checker refuse every plan that is wrong?
 *
 * Every built-in plan of 2 to 9 ranks is broken in every way of mutant.h, one
 * at a time (and many thousands of times in two ways at once), and given to
 * the checker, out of place and in place. A mutant that is refused is killed.
 * One that is accepted must be right: performed by the interpreter under many
 * interleavings it gives what the definition gives ("equivalent"), or the
 * test fails. Refused mutants that no tried interleaving shows wrong are
 * counted, by the kind of refusal; they are no failures: what races, or
 * computes what nobody reads, need not show. HK_TEST_VERBOSE=1 prints them.
 */
#include "harness.h"
#include "naive/each.h"
#include "naive/mutant.h"
#include "naive/witness.h"

#define ROWS_MAX 80
#define PRINTED_MAX 10

/* One plan under test, and what is counted over all plans. */
struct suite {
	struct witness witness;
	struct hk_plan *base; /* stored, never changed */
	struct hk_plan *work; /* the same, broken and mended again */
	struct hk_plan_info info;
	bool lanes; /* some rank has several */
	struct verdicts *row;
	struct verdicts rows[ROWS_MAX]; /* by algorithm */
	uint32_t nrows;
	struct verdicts families[MUTANT_COUNT];
	bool by_family;
	bool verbose;
	uint32_t printed;
};

/* ---- the plan under test ---- */

static struct suite *suite_create(uint64_t seed)
{
	struct suite *suite = calloc(1, sizeof(*suite));

	CHECK(suite);
	witness_init(&suite->witness, seed);
	suite->verbose = getenv("HK_TEST_VERBOSE");
	return suite;
}

static void suite_destroy(struct suite *suite)
{
	witness_fini(&suite->witness);
	free(suite);
}

static struct verdicts *suite_row(struct suite *suite)
{
	char name[sizeof(suite->rows[0].name)];

	snprintf(name, sizeof(name), "%s %s", hk_coll_name(suite->info.coll), suite->info.algo);
	for (uint32_t i = 0; i < suite->nrows; i++)
		if (strcmp(suite->rows[i].name, name) == 0)
			return &suite->rows[i];
	CHECK(suite->nrows < ROWS_MAX);
	struct verdicts *row = &suite->rows[suite->nrows++];
	memcpy(row->name, name, sizeof(name));
	return row;
}

static void suite_open(struct suite *suite, const struct hk_plan *plan)
{
	CHECK_EQ(hk__store_copy(&hk__alloc_default, plan, &suite->base), HK_OK);
	CHECK_EQ(hk__store_copy(&hk__alloc_default, plan, &suite->work), HK_OK);
	suite->info.size = sizeof(suite->info);
	hk_plan_describe(suite->base, &suite->info);
	suite->lanes = witness_lanes(suite->base);
	suite->row = suite_row(suite);
	witness_open(&suite->witness, suite->base);
}

static void suite_close(struct suite *suite)
{
	witness_close(&suite->witness);
	hk_plan_free(suite->base);
	hk_plan_free(suite->work);
}

/* ---- a mutant ---- */

static void complain(struct suite *suite, const struct mutant *mutants, uint32_t count,
		     const struct evidence *evidence)
{
	if (suite->printed++ >= PRINTED_MAX)
		return;
	printf("WRONG, but accepted: %s\n", each_name(suite->base));
	for (uint32_t i = 0; i < count; i++)
		mutant_print(&mutants[i], suite->base, suite->work, stdout);
	witness_print(evidence, stdout);
}

static void mention(struct suite *suite, const struct mutant *mutants, uint32_t count,
		    const struct hk_check_report *report)
{
	printf("refused, though right: %s\n  %s\n", each_name(suite->base), report->why.text);
	for (uint32_t i = 0; i < count; i++)
		mutant_print(&mutants[i], suite->base, suite->work, stdout);
}

/* Proves or refuses; anything else is a failure. */
static enum hk_refusal ask(struct suite *suite, const struct hk_plan *plan, bool inplace,
			   struct hk_check_report *report)
{
	struct hk_check_opts opts = HK_CHECK_OPTS_INIT;

	opts.inplace = inplace;
	enum hk_status status = hk_check(plan, &opts, report);
	if (status != HK_OK && status != HK_EREFUSED)
		test_fail(__FILE__, __LINE__, "%s: %s", each_name(suite->base),
			  hk_status_name(status));
	CHECK_EQ(report->proved, status == HK_OK);
	CHECK_EQ(report->refusal == HK_REFUSAL_NONE, status == HK_OK);
	CHECK(status == HK_OK || report->why.text[0]);
	return report->refusal;
}

/* Asks about work, which differs from base by the mutants. */
static void judge(struct suite *suite, const struct mutant *mutants, uint32_t count, bool inplace)
{
	struct hk_check_report report = { .size = sizeof(report) };
	struct evidence evidence;
	enum hk_refusal refusal = ask(suite, suite->work, inplace, &report);
	/* Most runs go where a wrong answer is a failure, and where lanes can race. */
	uint32_t runs = refusal == HK_REFUSAL_NONE ? 24 : 12;
	bool right = witness_right(&suite->witness, suite->work, inplace,
				   suite->lanes ? 4 * runs : runs, &evidence);

	if (refusal == HK_REFUSAL_NONE && !right)
		complain(suite, mutants, count, &evidence);
	if (refusal != HK_REFUSAL_NONE && right && suite->verbose)
		mention(suite, mutants, count, &report);
	verdicts_count(suite->row, refusal, right);
	if (count == 1)
		verdicts_count(&suite->families[mutants[0].family], refusal, right);
	suite->by_family |= count == 1;
}

static void judge_both(struct suite *suite, const struct mutant *mutants, uint32_t count)
{
	for (int inplace = 0; inplace <= suite->info.inplace; inplace++)
		judge(suite, mutants, count, inplace);
}

static void mutate_step(struct suite *suite, uint32_t rank, uint32_t lane, uint32_t step)
{
	for (int family = 0; family < MUTANT_COUNT; family++) {
		struct mutant mutant = { .family = (enum mutant_family)family,
					 .rank = rank,
					 .lane = lane,
					 .step = step };
		enum mutant_made made = MUTANT_SAME;

		for (; made != MUTANT_END; mutant.variant++) {
			made = mutant_apply(suite->work, &mutant);
			if (made == MUTANT_MADE)
				judge_both(suite, &mutant, 1);
			mutant_undo(suite->work, suite->base, &mutant);
		}
	}
}

static void mutate_plan(const struct hk_plan *plan, void *ctx)
{
	struct suite *suite = ctx;
	struct hk_check_report report = { .size = sizeof(report) };

	suite_open(suite, plan);
	for (int inplace = 0; inplace <= suite->info.inplace; inplace++)
		if (ask(suite, suite->base, inplace, &report) != HK_REFUSAL_NONE)
			test_fail(__FILE__, __LINE__, "%s%s: %s", each_name(suite->base),
				  inplace ? " in place" : "", report.why.text);
	for (uint32_t r = 0; r < suite->info.nranks; r++)
		for (uint32_t l = 0; l < hk_plan_lanes(plan, r); l++)
			for (uint32_t i = 0; i < hk_plan_steps(plan, r, l); i++)
				mutate_step(suite, r, l, i);
	suite_close(suite);
}

/* ---- the tests ---- */

static void suite_print(struct suite *suite, const char *name)
{
	uint64_t wrong = 0;

	verdicts_head(name);
	for (uint32_t i = 0; i < suite->nrows; i++) {
		verdicts_print(&suite->rows[i]);
		wrong += suite->rows[i].wrong;
	}
	printf("\n");
	if (suite->by_family)
		verdicts_head("what was done to a step");
	for (int f = 0; f < MUTANT_COUNT; f++) {
		struct verdicts *row = &suite->families[f];

		snprintf(row->name, sizeof(row->name), "%s",
			 mutant_family_text((enum mutant_family)f));
		if (row->mutants)
			verdicts_print(row);
	}
	CHECK(suite->nrows > 0);
	CHECK_EQ(wrong, 0);
}

/* Plans of messages, or those that put and signal: each is half of the work. */
static void mutate_half(enum hk_coll coll, bool puts)
{
	struct each_opts opts = {
		.n_min = 2, .n_max = 9, .roots = EACH_ROOT_ALL, .batches = 4, .seed = 1
	};
	struct suite *suite = suite_create(1);
	struct hk_algo_info algo = { .size = sizeof(algo) };

	opts.messages = !puts;
	if (!puts)
		(void)each_plan(coll, &opts, mutate_plan, suite);
	for (uint32_t i = 0; puts && hk_algo_get(i, &algo); i++) {
		opts.algo = algo.name;
		if (algo.coll == coll && algo.onesided)
			(void)each_plan(coll, &opts, mutate_plan, suite);
	}
	suite_print(suite, hk_coll_name(coll));
	suite_destroy(suite);
}

static void mutate_coll(enum hk_coll coll)
{
	mutate_half(coll, false);
}

TEST(allreduce)
{
	mutate_coll(HK_COLL_ALLREDUCE);
}

TEST(allreduce_puts)
{
	mutate_half(HK_COLL_ALLREDUCE, true);
}

TEST(allgather_puts)
{
	mutate_half(HK_COLL_ALLGATHER, true);
}

TEST(reducescatter_puts)
{
	mutate_half(HK_COLL_REDUCESCATTER, true);
}

TEST(alltoall_puts)
{
	mutate_half(HK_COLL_ALLTOALL, true);
}

TEST(broadcast_puts)
{
	mutate_half(HK_COLL_BROADCAST, true);
}

TEST(barrier_puts)
{
	mutate_half(HK_COLL_BARRIER, true);
}

TEST(allgather)
{
	mutate_coll(HK_COLL_ALLGATHER);
}

TEST(reducescatter)
{
	mutate_coll(HK_COLL_REDUCESCATTER);
}

TEST(alltoall)
{
	mutate_coll(HK_COLL_ALLTOALL);
}

TEST(broadcast)
{
	mutate_coll(HK_COLL_BROADCAST);
}

TEST(reduce)
{
	mutate_coll(HK_COLL_REDUCE);
}

TEST(gather)
{
	mutate_coll(HK_COLL_GATHER);
}

TEST(scatter)
{
	mutate_coll(HK_COLL_SCATTER);
}

TEST(barrier)
{
	mutate_coll(HK_COLL_BARRIER);
}

TEST(sendrecv)
{
	mutate_coll(HK_COLL_SENDRECV);
}

/* ---- places that are used again ---- */

static struct hk_step *chain_add(struct hk_plan *plan, uint32_t rank, enum hk_op op)
{
	struct hk_step *step = hk__store_add_step(plan, rank, 0);

	CHECK(step);
	step->op = op;
	return step;
}

static void chain_signal(struct hk_plan *plan, uint32_t rank, uint32_t to, uint32_t number)
{
	chain_add(plan, rank, HK_OP_SIGNAL)->to = (struct hk_port){ to, number };
}

static void chain_wait(struct hk_plan *plan, uint32_t rank, uint32_t number, uint32_t count)
{
	struct hk_step *step = chain_add(plan, rank, HK_OP_WAIT);

	step->from = (struct hk_port){ rank, number };
	step->count = count;
}

/* Signal 0 counts chunks that came, signal 1 places that are free again. */
static void chain_chunk(struct hk_plan *plan, uint32_t rank, uint32_t k, uint32_t places)
{
	struct hk_step *copy, *put;

	if (rank > 0)
		chain_wait(plan, rank, 0, k + 1);
	copy = chain_add(plan, rank, HK_OP_COPY);
	copy->count = 1;
	copy->src =
		(struct hk_span){ rank ? HK_BUF_SCRATCH : HK_BUF_IN, rank ? k % places : k, 0, 0 };
	copy->dst = (struct hk_span){ HK_BUF_OUT, k, 0, 0 };
	if (rank > 0)
		chain_signal(plan, rank, rank - 1, 1);
	if (rank == plan->n - 1)
		return;
	if (k >= places)
		chain_wait(plan, rank, 1, k - places + 1);
	put = chain_add(plan, rank, HK_OP_PUT);
	put->count = 1;
	put->to = (struct hk_port){ rank + 1, 0 };
	put->src = (struct hk_span){ HK_BUF_OUT, k, 0, 0 };
	put->dst = (struct hk_span){ HK_BUF_SCRATCH, k % places, 0, 0 };
	chain_signal(plan, rank, rank + 1, 0);
}

/* A broadcast of `parts` chunks along a chain of ranks with so many places each. */
static struct hk_plan *chain_plan(uint32_t n, uint32_t parts, uint32_t places)
{
	struct hk__store_spec spec = { .coll = HK_COLL_BROADCAST,
				       .algo = "put-chain",
				       .n = n,
				       .nodes = 1,
				       .parts = parts,
				       .slots = 1,
				       .inplace = true,
				       .signals = HK_SIGNALS_STRONG };
	struct hk_plan *plan;

	CHECK_EQ(hk__store_create(&hk__alloc_default, &spec, &plan), HK_OK);
	for (uint32_t r = 0; r < n; r++) {
		plan->store->ranks[r].present = true;
		plan->store->ranks[r].scratch = r ? places : 0;
		CHECK(hk__store_add_lane(plan, r));
		for (uint32_t k = 0; k < parts; k++)
			chain_chunk(plan, r, k, places);
		if (r + 1 < n)
			chain_wait(plan, r, 1, parts);
	}
	return plan;
}

/* A wait for a free place that is lowered, or gone: the place is used a round early. */
TEST(places_used_again)
{
	struct suite *suite = suite_create(1);

	for (uint32_t n = 2; n <= 4; n++) {
		for (uint32_t places = 1; places <= 3; places++) {
			struct hk_plan *plan = chain_plan(n, 5, places);

			mutate_plan(plan, suite);
			hk_plan_free(plan);
		}
	}
	suite_print(suite, "chains of puts");
	suite_destroy(suite);
}

/* ---- two at once ---- */

#define PAIRS_A_PLAN 300

/* A random mutant of work as it is; false where the dice fell on none. */
static bool mutant_roll(struct suite *suite, struct mutant *mutant_out)
{
	uint64_t *seed = &suite->witness.seed;
	uint32_t rank = (uint32_t)(test_random(seed) % suite->info.nranks);
	uint32_t nlanes = hk_plan_lanes(suite->work, rank);
	uint32_t lane = nlanes ? (uint32_t)(test_random(seed) % nlanes) : 0;
	uint32_t nsteps = nlanes ? hk_plan_steps(suite->work, rank, lane) : 0;

	if (nsteps == 0)
		return false;
	*mutant_out = (struct mutant){
		.family = (enum mutant_family)(test_random(seed) % MUTANT_COUNT),
		.rank = rank,
		.lane = lane,
		.step = (uint32_t)(test_random(seed) % nsteps),
		.variant = (uint32_t)(test_random(seed) % 4),
	};
	return mutant_apply(suite->work, mutant_out) == MUTANT_MADE;
}

static void mutate_pairs(const struct hk_plan *plan, void *ctx)
{
	struct suite *suite = ctx;

	suite_open(suite, plan);
	for (uint32_t pair = 0; pair < PAIRS_A_PLAN; pair++) {
		struct mutant mutants[2];
		uint32_t made = 0;

		for (uint32_t tries = 0; tries < 40 && made < 2; tries++)
			made += mutant_roll(suite, &mutants[made]);
		if (made == 2)
			judge_both(suite, mutants, 2);
		for (uint32_t i = 0; i < made; i++)
			mutant_undo(suite->work, suite->base, &mutants[i]);
	}
	suite_close(suite);
}

TEST(random_pairs)
{
	struct each_opts opts = { .n_min = 2, .n_max = 9, .roots = EACH_ROOT_ENDS, .batches = 4 };
	struct suite *suite;

	opts.seed = test_seed(1);
	suite = suite_create(opts.seed);
	for (int coll = 0; coll < HK_COLL_COUNT; coll++)
		(void)each_plan((enum hk_coll)coll, &opts, mutate_pairs, suite);
	suite_print(suite, "two at once");
	suite_destroy(suite);
}
