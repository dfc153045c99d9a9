/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choose.c - all algorithms of a collective on a fabric: which is fastest.
 *
 * The algorithms' formulas, with the fabric's constants, give each an estimate. Those
 * that come near the best are simulated; the others are too far off to win, and
 * their estimate is what is known of them.
 */
#include "sim/choose.h"

#include "model/formula.h"

#include <math.h>
#include <string.h>

/*
 * Whose estimate is so many times the best time that was found, and the best
 * estimate, is not looked at: estimates may all be too high, or some too low.
 */
#define NEAR_THE_BEST_TIME 2.0
#define NEAR_THE_BEST_ESTIMATE 3.0

/* Levels have to gain something: what is so near the best, and flat, is taken. */
#define AS_GOOD_AS_THE_BEST 1.01

/* ---- candidates ---- */

struct choice {
	const struct hk_fabric *fabric;
	const struct hk_sim_choice *what;
	const struct hk_sim_opts *opts;
	const struct hk__fabric_view *view;
	struct hk_sim_candidate *candidates;
	uint32_t count;
};

static int by_estimate(const void *a, const void *b)
{
	const struct hk_sim_candidate *x = a, *y = b;

	return (x->estimate_ns > y->estimate_ns) - (x->estimate_ns < y->estimate_ns);
}

/* The best that is known of it. */
static double candidate_ns(const struct hk_sim_candidate *candidate)
{
	return candidate->simulated ? candidate->result.time_ns : candidate->estimate_ns;
}

static int by_time(const void *a, const void *b)
{
	double x = candidate_ns(a), y = candidate_ns(b);

	return (x > y) - (x < y);
}

/* Few and short: and those that take equally long keep their order. */
static void candidates_sort(struct hk_sim_candidate *candidates, uint32_t count,
			    int (*compare)(const void *a, const void *b))
{
	for (uint32_t i = 1; i < count; i++) {
		struct hk_sim_candidate candidate = candidates[i];
		uint32_t k = i;

		for (; k > 0 && compare(&candidates[k - 1], &candidate) > 0; k--)
			candidates[k] = candidates[k - 1];
		candidates[k] = candidate;
	}
}

static void choice_estimate(struct choice *choice)
{
	struct hk_algo_info algo = { .size = sizeof(algo) };

	for (uint32_t i = 0; hk_algo_get(i, &algo) && choice->count < HK_SIM_CANDIDATES_MAX; i++) {
		if (algo.coll != choice->what->coll)
			continue;
		double price = hk__select_price(choice->view, &algo, choice->what->bytes);
		if (isinf(price))
			continue;
		uint32_t n = choice->view->n, nodes = algo.nodes ? choice->view->nodes : 1;
		choice->candidates[choice->count++] = (struct hk_sim_candidate){
			.size = sizeof(struct hk_sim_candidate),
			.result.size = sizeof(struct hk_sim_result),
			.algo = algo.name,
			.estimate_ns = price,
			.steps = hk__formula(algo.steps, n, nodes),
			.sent = hk__formula(algo.sent, n, nodes),
			.reduced = hk__formula(algo.reduced, n, nodes),
		};
	}
	candidates_sort(choice->candidates, choice->count, by_estimate);
}

static bool candidate_flat(const struct choice *choice, const struct hk_sim_candidate *candidate)
{
	struct hk_algo_info algo = { .size = sizeof(algo) };

	return hk_algo_find(choice->what->coll, candidate->algo, &algo) == HK_OK && !algo.nodes;
}

/* Of those that the model cannot tell apart, the plainer one comes first. */
static void choice_prefer_flat(struct choice *choice)
{
	struct hk_sim_candidate *all = choice->candidates;
	double most = AS_GOOD_AS_THE_BEST * candidate_ns(&all[0]);
	uint32_t flat = 0;

	while (flat < choice->count && candidate_ns(&all[flat]) <= most &&
	       !candidate_flat(choice, &all[flat]))
		flat++;
	if (flat == choice->count || candidate_ns(&all[flat]) > most || !all[flat].simulated)
		return;
	struct hk_sim_candidate taken = all[flat];
	memmove(&all[1], &all[0], flat * sizeof(*all));
	all[0] = taken;
}

static enum hk_status candidate_plan(const struct choice *choice, const char *name,
				     struct hk_why *why, struct hk_plan **plan_out)
{
	struct hk_plan_opts opts;
	struct hk_algo_info algo = { .size = sizeof(algo) };
	enum hk_status status = hk_algo_find(choice->what->coll, name, &algo);

	if (status != HK_OK)
		return status;
	hk__select_plan_opts(choice->view, &algo, &opts);
	opts.root = choice->what->root;
	opts.alloc = choice->fabric->alloc;
	return hk_plan_create(choice->what->coll, choice->what->ranks, &opts, why, plan_out);
}

static enum hk_status candidate_simulate(const struct choice *choice,
					 struct hk_sim_candidate *candidate, struct hk_why *why)
{
	struct hk_plan *plan;
	enum hk_status status = candidate_plan(choice, candidate->algo, why, &plan);

	if (status != HK_OK)
		return status;
	struct hk_sim_job job = { .plan = plan, .bytes = choice->what->bytes };
	status = hk_sim_run(choice->fabric, &job, 1, choice->opts, why, &candidate->result);
	candidate->simulated = status == HK_OK;
	hk_plan_free(plan);
	return status;
}

static enum hk_status choice_simulate(struct choice *choice, struct hk_why *why)
{
	double best = INFINITY, most = NEAR_THE_BEST_ESTIMATE * choice->candidates[0].estimate_ns;
	/* Formulas count what follows each other; ranks that share cores take all of it in turn. */
	bool all = choice->what->all || hk__fabric_cores_shared(choice->fabric);

	for (uint32_t i = 0; i < choice->count; i++) {
		struct hk_sim_candidate *candidate = &choice->candidates[i];

		if (!all && candidate->estimate_ns > fmax(NEAR_THE_BEST_TIME * best, most))
			break;
		enum hk_status status = candidate_simulate(choice, candidate, why);
		/* Too much to be simulated is no reason to know nothing of the others. */
		if (status != HK_OK && status != HK_ELIMIT)
			return status;
		best = fmin(best, candidate_ns(candidate));
	}
	candidates_sort(choice->candidates, choice->count, by_time);
	choice_prefer_flat(choice);
	return HK_OK;
}

enum hk_status hk__candidates(const struct hk_fabric *fabric, const struct hk__fabric_view *view,
			      const struct hk_sim_choice *what, const struct hk_sim_opts *opts,
			      struct hk_why *why, struct hk_sim_candidate *candidates_out,
			      uint32_t *count_out)
{
	struct choice choice = { .fabric = fabric,
				 .what = what,
				 .opts = opts,
				 .view = view,
				 .candidates = candidates_out };

	choice_estimate(&choice);
	*count_out = choice.count;
	return choice_simulate(&choice, why);
}

/* ---- any fabric ---- */

/* Ranks of each node among the first n; sizes has room for n. The number of nodes. */
static uint32_t nodes_count(const struct hk_fabric *fabric, uint32_t n, uint32_t *sizes)
{
	uint32_t nodes = 0, last = HK_NONE;

	for (uint32_t r = 0; r < n; r++) {
		uint32_t node, local;

		hk__fabric_place(fabric, r, &node, &local);
		if (node != last)
			sizes[nodes++] = 0;
		sizes[nodes - 1]++;
		last = node;
	}
	return nodes;
}

enum hk_status hk_sim_candidates(const struct hk_fabric *fabric, const struct hk_sim_choice *what,
				 const struct hk_sim_opts *opts, struct hk_why *why,
				 struct hk_sim_candidate *candidates_out, uint32_t *count_out)
{
	struct hk_sim_candidate rows[HK_SIM_CANDIDATES_MAX];
	size_t stride = candidates_out->size;
	struct hk__fabric_view view;

	*count_out = 0;
	if (what->ranks == 0 || what->ranks > fabric->ranks)
		return hk__why(why, HK_EINVAL, "%u ranks on a fabric of %u", what->ranks,
			       fabric->ranks);
	if (hk__coll_rooted(what->coll) && what->root >= what->ranks)
		return hk__why(why, HK_EINVAL, "root %u of %u ranks", what->root, what->ranks);
	uint32_t *sizes = hk__mem_zalloc(fabric->alloc, what->ranks, sizeof(*sizes));
	if (!sizes)
		return hk__why(why, HK_ENOMEM, "no memory for %u ranks", what->ranks);
	uint32_t nodes = nodes_count(fabric, what->ranks, sizes);
	hk__fabric_view_init(&view, fabric, what->ranks, nodes, sizes);
	enum hk_status status = hk__candidates(fabric, &view, what, opts, why, rows, count_out);
	hk__mem_free(fabric->alloc, sizes, what->ranks, sizeof(*sizes));
	for (uint32_t i = 0; status == HK_OK && i < *count_out; i++) {
		void *row = (char *)candidates_out + i * stride;

		memcpy(row, &stride, sizeof(stride));
		if (hk__result_copy(row, &rows[i], sizeof(rows[i])) != HK_OK)
			status = hk__why(
				why, HK_EINVAL,
				"the size of the first struct hk_sim_candidate was not set");
	}
	return status;
}
