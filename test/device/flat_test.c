/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flat_test.c - every plan flattened, and performed by the device's interpreter
 * on the host: blocks are threads. Compared with the definition of its collective.
 */
#include "device/bed.h"
#include "harness.h"
#include "naive/each.h"

#define CALLS 3u
#define GUARD 64u
#define GUARD_BYTE 0xa5

/* ---- one rank's buffers ---- */

struct rank_data {
	char *space;
	size_t bytes;
	char *in, *out;
};

static void data_open(struct rank_data *data, const struct want *want, uint32_t rank, bool inplace)
{
	size_t size = hk_type_size(want->type), offset = want_offset(want, rank) * size;
	size_t in = want_in_len(want, rank) * size, out = want_out_len(want, rank) * size;
	/* Aligned to an element, and to no more; now and then all ranks alike. */
	size_t first = GUARD + (want->seed % 3 ? want->seed + rank : 0) % 8 * size;
	bool shared = inplace && in && out;

	data->bytes = first + in + GUARD + out + GUARD;
	CHECK_EQ(posix_memalign((void **)&data->space, 64, data->bytes), 0);
	memset(data->space, GUARD_BYTE, data->bytes);
	data->in = in ? data->space + first : NULL;
	data->out = out ? data->space + first + in + GUARD : NULL;
	if (shared && (want->coll == HK_COLL_REDUCESCATTER || want->coll == HK_COLL_SCATTER))
		data->out = data->in + offset;
	else if (shared)
		data->in = data->out + offset;
	if (data->in)
		want_input(want, rank, data->in);
}

static void data_check(const struct rank_data *data, const struct want *want, uint32_t rank,
		       const char *name)
{
	char *image = malloc(data->bytes), what[200];

	CHECK(image);
	memset(image, GUARD_BYTE, data->bytes);
	if (data->in)
		want_input(want, rank, image + (data->in - data->space));
	if (data->out)
		want_output(want, rank, image + (data->out - data->space));
	for (size_t i = 0; i < data->bytes; i++) {
		if (data->space[i] == image[i])
			continue;
		want_describe(want, what, sizeof(what));
		test_fail(__FILE__, __LINE__,
			  "%s: %s: rank %u: byte %zu (in %zd, out %zd) is wrong", name, what, rank,
			  i, data->in ? data->in - data->space : -1,
			  data->out ? data->out - data->space : -1);
	}
	free(image);
}

/* ---- one plan ---- */

/* No rank touches what is another's alone. */
static void refs_check(const struct hk__flat *flat, const char *name)
{
	for (uint32_t r = 0; r < flat->n; r++) {
		const struct hk__flat_program *program = flat->programs[r];
		const struct hk__flat_ref *refs =
			(const void *)((const char *)program + program->refs);

		for (uint32_t i = 0; i < program->nrefs; i++) {
			if (refs[i].kind <= HK__FLAT_OUT && refs[i].rank != r)
				test_fail(__FILE__, __LINE__, "%s: rank %u touches `%s` of rank %u",
					  name, r, refs[i].kind == HK__FLAT_IN ? "in" : "out",
					  refs[i].rank);
		}
	}
}

/* CALLS calls with other data each, one behind the other, in place and not by turns. */
static void plan_run(const struct hk_plan *plan, struct bed *bed, struct want want, bool lines,
		     bool apart)
{
	struct rank_data data[CALLS][RANKS_MAX];
	struct hk__flat_call calls[CALLS][RANKS_MAX];
	uint64_t counts[RANKS_MAX];
	uint32_t mode = mode_of(&want, lines);
	struct hk__flat *flat = flatten(plan, mode, apart);
	struct hk_sizes sizes = { want.count, want.v ? counts : NULL };

	if (apart || lines)
		refs_check(flat, each_name(plan));
	for (uint32_t r = 0; want.v && r < want.n; r++)
		counts[r] = want_count(&want, r);
	for (uint32_t i = 0; i < CALLS; i++) {
		want.seed += i && !want.v;
		for (uint32_t r = 0; r < want.n; r++) {
			call_fill(bed, flat, &want, mode, r, &calls[i][r]);
			data_open(&data[i][r], &want, r, plan->inplace && i % 2);
			calls[i][r].in = (uint64_t)(uintptr_t)data[i][r].in;
			calls[i][r].out = (uint64_t)(uintptr_t)data[i][r].out;
			CHECK_EQ(hk__flat_shape(flat, plan, &sizes, &bed->limits, &calls[i][r]),
				 HK_OK);
		}
	}
	calls_run(bed, calls, CALLS, HK_NONE);
	want.seed -= want.v ? 0 : CALLS - 1;
	for (uint32_t i = 0; i < CALLS; i++) {
		want.seed += i && !want.v;
		for (uint32_t r = 0; r < want.n; r++) {
			if (bed->reports[r].failed)
				test_fail(__FILE__, __LINE__,
					  "%s: rank %u gave up: lane %u step %u", each_name(plan),
					  r, bed->reports[r].lane, bed->reports[r].step);
			data_check(&data[i][r], &want, r, each_name(plan));
			free(data[i][r].space);
		}
	}
	hk__flat_destroy(flat);
}

/* Types, operations and counts by turns, so that all plans together see all of them. */
struct turns {
	struct bed bed;
	uint32_t turn;
	uint32_t plans;
};

static void plan_by_turns(const struct hk_plan *plan, void *ctx)
{
	static const uint64_t counts[] = { 1000, 1, 7, 0, 333, 64, 2049 };
	struct turns *turns = ctx;
	struct want want = { .coll = plan->coll, .n = plan->n, .root = plan->root };

	for (uint32_t k = 0; k < 3; k++) {
		bool lines = k == 1, apart = k == 2;

		turns->turn++;
		want.type = (enum hk_type)(turns->turn % HK_TYPE_COUNT);
		want.op = want_reduces(plan->coll)
				  ? (enum hk_redop)(turns->turn / 3 % HK_REDOP_COUNT)
				  : HK_REDOP_SUM;
		if (!hk_redop_valid(want.type, want.op))
			want.op = HK_REDOP_SUM;
		want.count = counts[turns->turn % (sizeof(counts) / sizeof(counts[0]))];
		want.seed = turns->turn;
		want.v = want_has_v(plan->coll) && plan->coll != HK_COLL_ALLTOALL &&
			 turns->turn % 4 == 3;
		if (turns->bed.n != plan->n) {
			bed_close(&turns->bed);
			bed_open(&turns->bed, plan->n, 3);
		}
		plan_run(plan, &turns->bed, want, lines, apart);
	}
	turns->plans++;
}

static void coll_by_turns(enum hk_coll coll)
{
	struct turns turns = { .turn = (uint32_t)coll * 5 };
	struct each_opts opts = {
		.n_min = 1, .n_max = 8, .roots = EACH_ROOT_ENDS, .messages = true
	};

	each_plan(coll, &opts, plan_by_turns, &turns);
	bed_close(&turns.bed);
	CHECK(turns.plans > 8);
}

TEST(allreduce)
{
	coll_by_turns(HK_COLL_ALLREDUCE);
}

TEST(allgather)
{
	coll_by_turns(HK_COLL_ALLGATHER);
}

TEST(reducescatter)
{
	coll_by_turns(HK_COLL_REDUCESCATTER);
}

TEST(alltoall)
{
	coll_by_turns(HK_COLL_ALLTOALL);
}

TEST(broadcast)
{
	coll_by_turns(HK_COLL_BROADCAST);
}

TEST(reduce)
{
	coll_by_turns(HK_COLL_REDUCE);
}

TEST(gather)
{
	coll_by_turns(HK_COLL_GATHER);
}

TEST(scatter)
{
	coll_by_turns(HK_COLL_SCATTER);
}

/* ---- what flattening is for ---- */

/* Rank 0's moves of a plan of 8 ranks: how many, and the first one's operands. */
static void check_shape(enum hk_coll coll, const char *algo, uint32_t nmoves, uint32_t nsrc,
			uint32_t ndst)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk_plan *plan;
	struct hk_why why;

	opts.algo = algo;
	CHECK_EQ(hk_plan_create(coll, 8, &opts, &why, &plan), HK_OK);
	struct hk__flat *flat = flatten(plan, 0, false);
	for (uint32_t r = 0; r < 8; r++) {
		const struct hk__flat_program *program = flat->programs[r];
		const struct hk__flat_move *move =
			(const void *)((const char *)program + program->moves);

		CHECK_EQ(program->nmoves, nmoves);
		CHECK_EQ(move->nsrc, nsrc);
		CHECK_EQ(move->ndst, ndst);
		CHECK_EQ(move->nwait, 7); /* for all to have begun, and nothing else */
		CHECK_EQ(program->nlast, 7);
	}
	CHECK_EQ(flat->bufs, 0);
	hk__flat_destroy(flat);
	hk_plan_free(plan);
}

TEST(two_shot_reads_and_writes_once)
{
	check_shape(HK_COLL_ALLREDUCE, "two-shot", 1, 8, 8);
}

TEST(allgather_reads_once)
{
	check_shape(HK_COLL_ALLGATHER, "direct", 1, 1, 8);
}

TEST(reducescatter_keeps_nothing)
{
	check_shape(HK_COLL_REDUCESCATTER, "direct", 1, 8, 1);
}

/* Apart, each rank puts what others want into buffers of its own, once, and waits for nobody. */
static void check_apart(enum hk_coll coll, const char *algo, uint32_t nmoves, uint32_t bufs)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk_plan *plan;
	struct hk_why why;

	opts.algo = algo;
	CHECK_EQ(hk_plan_create(coll, 8, &opts, &why, &plan), HK_OK);
	struct hk__flat *flat = flatten(plan, 0, true);
	for (uint32_t r = 0; r < 8; r++) {
		const struct hk__flat_program *program = flat->programs[r];
		const struct hk__flat_move *move =
			(const void *)((const char *)program + program->moves);

		CHECK_EQ(program->nmoves, nmoves);
		CHECK_EQ(program->nmail, 0);
		CHECK_EQ(move->nwait, 0);
	}
	CHECK_EQ(flat->bufs, bufs);
	hk__flat_destroy(flat);
	hk_plan_free(plan);
}

TEST(apart_what_all_want_is_in_one_room)
{
	check_apart(HK_COLL_ALLGATHER, "direct", 1 + 7, 1);
	check_apart(HK_COLL_ALLTOALL, "direct", 8 + 7, 7);
	check_apart(HK_COLL_ALLREDUCE, "one-shot", 1 + 1, 1);
	check_apart(HK_COLL_ALLREDUCE, "two-shot", 7 + 1 + 7, 8);
}

/* ---- epochs that come round ---- */

#define ROUND (UINT64_C(1) << 32)

static struct hk_plan *plan_make(uint32_t n, const char *algo)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk_plan *plan;
	struct hk_why why;

	opts.algo = algo;
	CHECK_EQ(hk_plan_create(HK_COLL_ALLREDUCE, n, &opts, &why, &plan), HK_OK);
	return plan;
}

/* CALLS calls, by lines, by flags in place, or by flags apart. */
enum how {
	BY_LINES,
	IN_PLACE,
	APART
};

static void some_calls(struct bed *bed, const char *algo, enum how how)
{
	struct want want = { .coll = HK_COLL_ALLREDUCE,
			     .n = bed->n,
			     .type = HK_TYPE_INT32,
			     .count = 700,
			     .seed = (uint64_t)how + 1 };
	struct hk_plan *plan = plan_make(bed->n, algo);

	plan_run(plan, bed, want, how == BY_LINES, how == APART);
	hk_plan_free(plan);
}

/* From every place just below, so that every call of a row is the first of a round. */
static void comes_round(const char *algo, enum how how, uint64_t round)
{
	for (uint32_t before = 1; before <= CALLS + 2; before++) {
		struct bed bed;

		bed_open(&bed, 4, 3);
		bed_set_epoch(&bed, round - before);
		some_calls(&bed, algo, how);
		some_calls(&bed, algo, how);
		bed_close(&bed);
	}
}

TEST(epochs_come_round)
{
	static const char *const algos[] = { "one-shot", "two-shot", "ring" };

	for (uint32_t i = 0; i < 3; i++) {
		for (uint32_t how = 0; how < 3; how++) {
			comes_round(algos[i], (enum how)how, ROUND);
			comes_round(algos[i], (enum how)how, 7 * ROUND);
			comes_round(algos[i], (enum how)how, ROUND / 2);
		}
	}
}

/* Words that no call has touched for a whole round are not taken for new ones. */
TEST(words_of_the_round_before)
{
	for (uint32_t epoch = 0; epoch < 5; epoch++) {
		for (uint32_t first = 0; first < 2; first++) {
			struct bed bed;

			bed_open(&bed, 4, 3);
			bed_set_epoch(&bed, ROUND - CALLS - 1);
			bed_fill_lines(&bed, epoch);
			/* Whatever comes before, what is by lines finds none of them. */
			some_calls(&bed, "one-shot", first ? IN_PLACE : BY_LINES);
			some_calls(&bed, "two-shot", BY_LINES);
			some_calls(&bed, "one-shot", BY_LINES);
			bed_close(&bed);
		}
	}
}

/*
 * Flags that no call has needed for long are not taken for new ones either, however
 * many calls by lines come between: now and then these renew them.
 */
TEST(flags_of_long_ago)
{
	struct bed bed;

	for (uint64_t quarters = 1; quarters <= 5; quarters++) {
		bed_open(&bed, 4, 3);
		for (uint64_t i = 1; i <= quarters; i++) {
			bed_set_epoch_alone(&bed, i * (ROUND / 4) - 1);
			some_calls(&bed, "one-shot", BY_LINES);
		}
		/* Up to where the next ones would be renewed. */
		bed_set_epoch_alone(&bed, (quarters + 1) * (ROUND / 4) - CALLS - 3);
		some_calls(&bed, "two-shot", IN_PLACE);
		bed_close(&bed);
	}
}

/* ---- giving up ---- */

TEST(a_missing_rank_is_named)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct want want = {
		.coll = HK_COLL_ALLREDUCE, .n = 3, .type = HK_TYPE_FP32, .count = 100
	};
	struct hk__flat_call calls[1][RANKS_MAX];
	struct rank_data data[3];
	struct hk_plan *plan;
	struct hk_why why;
	struct bed bed;

	bed_open(&bed, 3, 2);
	opts.algo = "two-shot";
	CHECK_EQ(hk_plan_create(HK_COLL_ALLREDUCE, 3, &opts, &why, &plan), HK_OK);
	struct hk__flat *flat = flatten(plan, 0, false);
	for (uint32_t r = 0; r < 3; r++) {
		struct hk_sizes sizes = { want.count, NULL };

		call_fill(&bed, flat, &want, 0, r, &calls[0][r]);
		data_open(&data[r], &want, r, false);
		calls[0][r].in = (uint64_t)(uintptr_t)data[r].in;
		calls[0][r].out = (uint64_t)(uintptr_t)data[r].out;
		calls[0][r].timeout_ns = 20 * 1000 * 1000;
		CHECK_EQ(hk__flat_shape(flat, plan, &sizes, &bed.limits, &calls[0][r]), HK_OK);
	}
	calls_run(&bed, calls, 1, 2);
	for (uint32_t r = 0; r < 2; r++) {
		CHECK_EQ(bed.reports[r].failed, 1);
		CHECK_EQ(bed.reports[r].aborted, 0);
		CHECK_EQ(bed.reports[r].peer, 2);
		CHECK_EQ(bed.reports[r].epoch, 1);
	}
	/* And who is told to give up does, long before its time. */
	bed_close(&bed);
	bed_open(&bed, 3, 2);
	for (uint32_t r = 0; r < 3; r++) {
		bed.reports[r].abort = 1;
		memcpy(calls[0][r].segments, bed.segments, sizeof(bed.segments));
		calls[0][r].timeout_ns = UINT64_C(1000000000000);
	}
	calls_run(&bed, calls, 1, 2);
	CHECK_EQ(bed.reports[0].aborted, 1);
	for (uint32_t r = 0; r < 3; r++)
		free(data[r].space);
	hk__flat_destroy(flat);
	hk_plan_free(plan);
	bed_close(&bed);
}
