/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_mutate.c - a built-in plan of a few ranks whose steps are changed as the
 * bytes say, then checked and shown. The plan may be as wrong as one likes: it
 * is proved or refused, and never breaks what looks at it.
 */
#include "plan/store.h"

#include <hocket/hocket.h>

#include <stdlib.h>
#include <string.h>

#define FUZZ_RANKS_MAX 8u
#define FUZZ_EDITS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes that are left; zeros when there are none. */
struct choices {
	const uint8_t *at;
	size_t left;
};

static uint32_t choose(struct choices *choices, uint32_t count)
{
	if (choices->left == 0 || count == 0)
		return 0;
	choices->left--;
	return *choices->at++ % count;
}

/* Mostly small; sometimes at the edge of what a field can hold. */
static uint32_t choose_number(struct choices *choices)
{
	static const uint32_t edges[] = { HK_NONE,	HK_NONE - 1,  1u << 31, 1u << 26,
					  HK_RANKS_MAX, HK_LANES_MAX, 255,	65536 };
	uint32_t number = choose(choices, 256);

	return number < 240 ? number % 20 : edges[number % 8];
}

static void fuzz_assert(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

/* A stored copy of a built-in plan, or NULL where these choices make none. */
static struct hk_plan *fuzz_create(struct choices *choices)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk_algo_info info = { .size = sizeof(info) };
	struct hk_plan *plan, *copy;
	uint32_t count = 0;

	while (hk_algo_get(count, &info))
		count++;
	fuzz_assert(hk_algo_get(choose(choices, count), &info), "no algorithm");
	uint32_t n = 1 + choose(choices, FUZZ_RANKS_MAX);
	opts.algo = info.name;
	opts.root = info.rooted ? choose(choices, n) : 0;
	uint32_t sizes[2] = { n, 0 };
	if (info.uneven && n > 1) {
		sizes[0] = 1 + choose(choices, n - 1);
		sizes[1] = n - sizes[0];
		opts.nodes = 2;
		opts.node_sizes = sizes;
	}
	if (hk_plan_create(info.coll, n, &opts, NULL, &plan) != HK_OK)
		return NULL;
	enum hk_status status = hk__store_copy(&hk__alloc_default, plan, &copy);
	hk_plan_free(plan);
	return status == HK_OK ? copy : NULL;
}

static void edit_span(struct hk_span *span, struct choices *choices)
{
	switch (choose(choices, 4)) {
	case 0:
		span->buf = (enum hk_buf)choose(choices, HK_BUF_SCRATCH + 1);
		break;
	case 1:
		span->first = choose_number(choices);
		break;
	case 2:
		span->run = choose_number(choices);
		break;
	default:
		span->period = choose_number(choices);
		break;
	}
}

static void edit_port(struct hk_port *port, struct choices *choices)
{
	if (choose(choices, 2))
		port->rank = choose_number(choices);
	else
		port->lane = choose_number(choices);
}

static void edit_step(struct hk_step *step, struct choices *choices)
{
	switch (choose(choices, 7)) {
	case 0:
		step->op = (enum hk_op)choose(choices, HK_OP_COUNT);
		break;
	case 1:
		step->count = choose_number(choices);
		break;
	case 2:
		edit_port(&step->from, choices);
		break;
	case 3:
		edit_port(&step->to, choices);
		break;
	case 4:
		edit_span(&step->src, choices);
		break;
	case 5:
		edit_span(&step->dst, choices);
		break;
	default:
		step->after.lane = choose_number(choices);
		step->after.step = choose_number(choices);
		break;
	}
}

/* Changes a step, or the plan around it. */
static void fuzz_edit(struct hk_plan *plan, struct choices *choices)
{
	uint32_t rank = choose(choices, plan->n), nlanes = hk_plan_lanes(plan, rank);
	uint32_t kind = choose(choices, 16);

	if (kind == 0)
		plan->slots = choose(choices, 4);
	if (kind == 0)
		plan->signals = (uint8_t)choose(choices, HK_SIGNALS_WEAK + 1);
	if (kind == 1)
		plan->store->ranks[rank].scratch = choose(choices, 12);
	if (kind == 2 && nlanes < 4)
		(void)hk__store_add_lane(plan, rank);
	if (kind <= 2 || nlanes == 0)
		return;
	uint32_t lane = choose(choices, nlanes), nsteps = hk_plan_steps(plan, rank, lane);
	if (kind == 3 || nsteps == 0) {
		struct hk_step *step = hk__store_add_step(plan, rank, lane);

		if (step)
			edit_step(step, choices);
		return;
	}
	uint32_t i = choose(choices, nsteps);
	if (kind == 4) {
		struct hk_step step = *hk__store_step(plan, rank, lane, i);

		*hk__store_step(plan, rank, lane, i) = *hk__store_step(plan, rank, lane, 0);
		*hk__store_step(plan, rank, lane, 0) = step;
		return;
	}
	edit_step(hk__store_step(plan, rank, lane, i), choices);
}

/* The picture runs the plan by itself: it has to agree about who gets stuck. */
static void fuzz_agree(const char *picture, enum hk_status status,
		       const struct hk_check_report *report)
{
	bool stuck = strstr(picture, "\nstuck: ") || strstr(picture, "nobody receives");

	fuzz_assert(!stuck || status != HK_OK, "proved, but drawn as stuck");
	fuzz_assert(stuck || status != HK_EREFUSED || report->refusal != HK_REFUSAL_PROGRESS,
		    "refused for progress, but drawn to the end");
}

static void fuzz_picture(const struct hk_plan *plan, bool agree, enum hk_status checked,
			 const struct hk_check_report *report)
{
	struct hk_why why = { "" };
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	fuzz_assert(file, "no stream");
	enum hk_status status = hk_plan_print_picture(plan, NULL, file, &why);
	fuzz_assert(status == HK_OK || status == HK_ELIMIT || status == HK_EINVAL, "no picture");
	fclose(file);
	if (status == HK_OK && agree)
		fuzz_agree(text, checked, report);
	free(text);
}

static void fuzz_show(const struct hk_plan *plan)
{
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	fuzz_assert(file, "no stream");
	fuzz_assert(hk_plan_print_table(plan, NULL, file, NULL) == HK_OK, "no table");
	fuzz_assert(hk_plan_print_json(plan, NULL, file, NULL) == HK_OK, "no file");
	fuzz_assert(hk_plan_print_dot(plan, NULL, file, NULL) == HK_OK, "no graph");
	fclose(file);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct choices choices = { data, size };
	struct hk_check_opts opts = HK_CHECK_OPTS_INIT;
	struct hk_check_report report = { .size = sizeof(report) };
	struct hk_plan *plan = fuzz_create(&choices);

	if (!plan)
		return 0;
	opts.inplace = choose(&choices, 2) && hk__coll_inplace(plan->coll);
	opts.set_slots = choose(&choices, 2);
	opts.slots = choose(&choices, 3);
	for (int i = 0; i < FUZZ_EDITS_MAX && choices.left; i++)
		fuzz_edit(plan, &choices);
	enum hk_status status = hk_check(plan, &opts, &report);
	fuzz_assert(status == HK_OK || status == HK_EREFUSED || status == HK_ELIMIT ||
			    status == HK_ENOMEM,
		    "a status that a check does not have");
	fuzz_assert(status != HK_EREFUSED || report.why.text[0], "refused without a reason");
	fuzz_show(plan);
	fuzz_picture(plan, !opts.set_slots, status, &report);
	hk_plan_free(plan);
	return 0;
}
