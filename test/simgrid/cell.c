/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell.c - a plan from arguments, for both sides alike. It has the public headers
 * alone, so that what SimGrid is given does not depend on our simulator.
 */
#include "cell.h"

#include <stdlib.h>
#include <string.h>

#define MSGS_EACH 4u

static bool number_parse(const char *text, double max, double *number_out)
{
	char *end;

	*number_out = strtod(text, &end);
	return end != text && *end == '\0' && *number_out >= 1 && *number_out <= max;
}

/*
 * Some receivers get many of these and some none: rates that are not all equal.
 * One from each quarter of the ranks that follow, so that no two have the same ends.
 */
static struct hk_msg *msgs_draw(uint32_t n, size_t *count_out)
{
	struct hk_msg *msgs = calloc((size_t)n * MSGS_EACH, sizeof(*msgs));
	uint32_t quarter = (n - 1) / MSGS_EACH;
	uint64_t state = 1;

	for (uint32_t i = 0; msgs && i < n * MSGS_EACH; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		uint32_t drawn = (uint32_t)(state >> 33) % quarter;
		uint32_t distance = 1 + i % MSGS_EACH * quarter + drawn;

		msgs[i] = (struct hk_msg){ i / MSGS_EACH, (i / MSGS_EACH + distance) % n };
	}
	*count_out = (size_t)n * MSGS_EACH;
	return msgs;
}

/* What the bytes are divided into: a vector's parts, or blocks. */
static uint32_t chunks_of(const struct hk_plan *plan)
{
	struct hk_plan_info info = { .size = sizeof(info) };

	hk_plan_describe(plan, &info);
	switch (info.coll) {
	case HK_COLL_ALLREDUCE:
	case HK_COLL_REDUCE:
	case HK_COLL_BROADCAST:
		return info.parts;
	case HK_COLL_BARRIER:
	case HK_COLL_SENDRECV:
	case HK_COLL_COUNT:
		return 1;
	case HK_COLL_ALLGATHER:
	case HK_COLL_REDUCESCATTER:
	case HK_COLL_ALLTOALL:
	case HK_COLL_GATHER:
	case HK_COLL_SCATTER:
		break;
	}
	return info.nranks;
}

bool cell_open(char **args, struct cell *cell_out)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk_why why = { 0 };
	enum hk_coll coll;
	struct hk_msg *msgs = NULL;
	double ranks, bytes;

	if (hk_coll_parse(args[0], &coll) != HK_OK) {
		fprintf(stderr, "cell: no collective is called %s\n", args[0]);
		return false;
	}
	if (!number_parse(args[2], 1 << 20, &ranks) || !number_parse(args[3], 1 << 30, &bytes)) {
		fprintf(stderr, "cell: %s ranks and %s bytes cannot be\n", args[2], args[3]);
		return false;
	}
	opts.algo = args[1];
	if (coll == HK_COLL_SENDRECV && strcmp(args[1], "random") == 0 && ranks > MSGS_EACH) {
		opts.algo = NULL;
		opts.msgs = msgs = msgs_draw((uint32_t)ranks, &opts.nmsgs);
		if (!msgs) {
			fprintf(stderr, "cell: no memory for the messages of %s ranks\n", args[2]);
			return false;
		}
	}
	cell_out->ranks = (uint32_t)ranks;
	cell_out->bytes = bytes;
	enum hk_status status = hk_plan_create(coll, cell_out->ranks, &opts, &why, &cell_out->plan);
	free(msgs);
	if (status != HK_OK) {
		fprintf(stderr, "cell: %s\n", why.text);
		return false;
	}
	cell_out->chunk = bytes / chunks_of(cell_out->plan);
	cell_out->lanes = 1;
	for (uint32_t r = 0; r < cell_out->ranks; r++)
		if (cell_out->lanes < hk_plan_lanes(cell_out->plan, r))
			cell_out->lanes = hk_plan_lanes(cell_out->plan, r);
	return true;
}

void cell_close(struct cell *cell)
{
	hk_plan_free(cell->plan);
}
