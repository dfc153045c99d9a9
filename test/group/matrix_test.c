/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matrix_test.c - collectives x algorithms x types x operations x places x
 * ranks, compared with the definition. `make test` walks over the product's
 * faces; HK_TEST_MATRIX=full (make test-matrix) over all of it, and with a number
 * instead over what has so many ranks.
 */
#include "group/op.h"
#include "harness.h"
#include "naive/naive.h"
#include "unit/reduce_oracle.h"

static const uint32_t ranks_all[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 0 };

/* Whether all of it is wanted with so many ranks. */
static bool matrix_wants(uint32_t n)
{
	const char *which = getenv("HK_TEST_MATRIX");

	return which && (strcmp(which, "full") == 0 || strtoul(which, NULL, 10) == n);
}

/* What ranks walk over, each of them alike. */
struct walk {
	struct hk_group *group;
	uint64_t seed;
	uint64_t operations;
};

/* In both places, where there are two. */
static void walk_places(struct walk *walk, struct op op)
{
	op.want.n = hk_group_size(walk->group);
	for (int place = 0; place < (op.want.coll == HK_COLL_ALLTOALL ? 1 : 2); place++) {
		op.inplace = place;
		op.heap = walk->seed % 3 == 0;
		op.want.seed = walk->seed++;
		op_do(walk->group, &op);
		walk->operations++;
	}
}

static void walk_roots(struct walk *walk, struct op op, bool all)
{
	uint32_t n = hk_group_size(walk->group);

	for (uint32_t root = 0; root < (want_rooted(op.want.coll) ? n : 1); root++) {
		if (!all && root != 0 && root != n - 1)
			continue;
		op.want.root = root;
		walk_places(walk, op);
	}
}

/* Even and, where there is such a form, uneven. */
static void walk_forms(struct walk *walk, struct op op, bool all_roots)
{
	for (int v = 0; v < (want_has_v(op.want.coll) ? 2 : 1); v++) {
		op.want.v = v;
		walk_roots(walk, op, all_roots);
	}
}

/* An even number of ranks compares what they call. */
static void kind_run(enum world_kind kind, const uint32_t *ranks, world_fn *fn)
{
	uint64_t *operations = world_shared(sizeof(*operations));

	for (uint32_t i = 0; ranks[i]; i++) {
		struct world_spec spec = { .kind = kind,
					   .n = ranks[i],
					   .check = ranks[i] % 2 == 0 };

		world_run(&spec, fn, operations);
	}
	printf("%s: %" PRIu64 " operations\n", world_name(kind), *operations);
	CHECK(*operations > 0);
}

#define RANKS(...) ((const uint32_t[]){ __VA_ARGS__, 0 })

static void walk_done(const struct walk *walk, struct world_seat *seat)
{
	if (seat->rank == 0)
		*(uint64_t *)seat->ctx += walk->operations;
}

/* ---- every algorithm ---- */

static void algo_sizes(struct walk *walk, const struct hk_algo_info *algo, enum hk_type type,
		       bool all)
{
	uint32_t n = hk_group_size(walk->group);
	const uint64_t sizes[] = { n + 1, 0, 130, 1, n - 1, n };

	for (size_t i = 0; i < (all ? sizeof(sizes) / sizeof(sizes[0]) : 2); i++) {
		struct op op = { .want = { .coll = algo->coll, .type = type, .count = sizes[i] },
				 .algo = algo->name };

		walk_forms(walk, op, all && i == 0);
	}
}

/* Two hosts are of one size only if ranks are even in number. */
static bool algo_fits(const struct world_seat *seat, const struct hk_algo_info *algo)
{
	bool mixed = seat->kind == WORLD_MIXED_THREADS || seat->kind == WORLD_MIXED_PROCESSES;

	if (algo->onesided)
		return false; /* groups refuse it */
	return !algo->nodes || algo->uneven || !mixed || seat->n == 1 || seat->n % 2 == 0;
}

static void algorithms(struct world_seat *seat)
{
	static const enum hk_type types[] = { HK_TYPE_INT32, HK_TYPE_BF16, HK_TYPE_FP64 };
	struct walk walk = { .group = seat->group, .seed = seat->n * 1000 };
	struct hk_algo_info algo = { .size = sizeof(algo) };

	for (uint32_t i = 0; hk_algo_get(i, &algo); i++) {
		if (algo.coll == HK_COLL_SENDRECV || !algo_fits(seat, &algo))
			continue;
		/* Types only matter to arithmetic, and to lengths. */
		bool all = seat->n <= 7 && seat->kind == WORLD_THREADS_SHM;
		for (size_t t = 0; t < (want_reduces(algo.coll) ? 3 : 1); t++)
			algo_sizes(&walk, &algo, types[t], all && t == 0);
	}
	walk_done(&walk, seat);
}

TEST(every_algorithm_threads_shm)
{
	kind_run(WORLD_THREADS_SHM, ranks_all, algorithms);
}

TEST(every_algorithm_threads_tcp)
{
	kind_run(WORLD_THREADS_TCP, RANKS(1, 2, 3, 5), algorithms);
}

TEST(every_algorithm_processes_shm)
{
	kind_run(WORLD_PROCESSES_SHM, RANKS(1, 2, 3, 6), algorithms);
}

TEST(every_algorithm_processes_tcp)
{
	kind_run(WORLD_PROCESSES_TCP, RANKS(1, 2, 4), algorithms);
}

TEST(every_algorithm_mixed_threads)
{
	kind_run(WORLD_MIXED_THREADS, RANKS(2, 4), algorithms);
}

TEST(every_algorithm_mixed_processes)
{
	kind_run(WORLD_MIXED_PROCESSES, RANKS(3, 4), algorithms);
}

/* ---- every type and operation ---- */

static void type_and_op(struct walk *walk, enum hk_coll coll, enum hk_type type, enum hk_redop op)
{
	static const uint64_t sizes[] = { 37, 400 };

	for (size_t i = 0; i < (want_reduces(coll) ? 2 : 1); i++) {
		struct op call = {
			.want = { .coll = coll, .type = type, .op = op, .count = sizes[i] }
		};

		walk_forms(walk, call, false);
	}
}

static void types(struct world_seat *seat)
{
	struct walk walk = { .group = seat->group, .seed = seat->n * 77777 };

	for (unsigned coll = 0; coll < HK_COLL_BARRIER; coll++) {
		unsigned ops = want_reduces((enum hk_coll)coll) ? HK_REDOP_COUNT : 1;

		for (unsigned type = 0; type < HK_TYPE_COUNT; type++) {
			for (unsigned op = 0; op < ops; op++) {
				if (hk_redop_valid((enum hk_type)type, (enum hk_redop)op))
					type_and_op(&walk, (enum hk_coll)coll, (enum hk_type)type,
						    (enum hk_redop)op);
			}
		}
	}
	walk_done(&walk, seat);
}

TEST(every_type_and_operation)
{
	kind_run(WORLD_THREADS_SHM, RANKS(1, 2, 3, 5), types);
}

/* ---- many slices ---- */

static void large(struct world_seat *seat)
{
	struct walk walk = { .group = seat->group, .seed = seat->n * 31 };
	struct hk_algo_info algo = { .size = sizeof(algo) };

	for (uint32_t i = 0; hk_algo_get(i, &algo); i++) {
		struct op op = { .want = { .coll = algo.coll, .type = HK_TYPE_INT64 },
				 .algo = algo.name };

		/* A part of a vector, and a block, are larger than a slot. */
		op.want.count = want_has_v(algo.coll) ? 35003 : 35003 * seat->n;
		if (algo.coll == HK_COLL_SENDRECV || algo.coll == HK_COLL_BARRIER ||
		    !algo_fits(seat, &algo))
			continue;
		walk_places(&walk, op);
		if (want_has_v(algo.coll)) {
			op.want.v = true;
			walk_places(&walk, op);
		}
		if (want_reduces(algo.coll)) {
			op.want.type = HK_TYPE_FP16; /* twice as wide on the way */
			op.want.op = HK_REDOP_AVG;
			op.want.count *= 2;
			walk_places(&walk, op);
		}
	}
	walk_done(&walk, seat);
}

TEST(many_slices_tcp)
{
	kind_run(WORLD_THREADS_TCP, RANKS(2), large);
}

TEST(many_slices_mixed)
{
	kind_run(WORLD_MIXED_THREADS, RANKS(3), large);
}

/* Machines of unlike sizes, and what a group chooses for them. */
static void uneven(struct world_seat *seat)
{
	struct walk walk = { .group = seat->group, .seed = seat->n * 131 };

	for (unsigned coll = 0; coll <= HK_COLL_BARRIER; coll++) {
		static const uint64_t sizes[] = { 1, 30000 };

		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			struct op op = { .want = { .coll = (enum hk_coll)coll,
						   .type = HK_TYPE_FP32,
						   .count = sizes[i] } };

			walk_forms(&walk, op, false);
		}
	}
	walk_done(&walk, seat);
}

TEST(hosts_even_and_uneven)
{
	static const uint32_t hosts[][4] = { { 4, 4 }, { 3, 1, 4 }, { 1, 2 }, { 2, 1, 2, 1 } };
	static const uint32_t nhosts[] = { 2, 3, 2, 4 };
	uint64_t *operations = world_shared(sizeof(*operations));

	for (size_t i = 0; i < sizeof(nhosts) / sizeof(nhosts[0]); i++) {
		struct world_spec spec = { .kind = i % 2 ? WORLD_MIXED_PROCESSES
							 : WORLD_MIXED_THREADS,
					   .hosts = hosts[i],
					   .nhosts = nhosts[i],
					   .check = i < 2 };

		for (uint32_t h = 0; h < nhosts[i]; h++)
			spec.n += hosts[i][h];
		world_run(&spec, uneven, operations);
	}
	CHECK(*operations > 0);
}

TEST(many_slices)
{
	kind_run(WORLD_THREADS_SHM, RANKS(2, 3), large);
}

/* ---- all of it ---- */

/* A size, and uneven where there is such a form: with every turn it is another one. */
static void everything_of(struct walk *walk, const struct hk_algo_info *algo, enum hk_type type,
			  enum hk_redop redop, uint32_t turn)
{
	uint32_t n = hk_group_size(walk->group);
	/* The last is past the path for small operations; many slices have tests of their own. */
	const uint64_t sizes[] = {
		n + 1, 1, 3 * n + 2, 0, 100, n - 1, n, want_has_v(algo->coll) ? 5000 / n : 5000
	};
	uint64_t size = sizes[turn % (sizeof(sizes) / sizeof(sizes[0]))];
	struct op op = { .want = { .coll = algo->coll, .type = type, .op = redop, .count = size },
			 .algo = algo->name };

	walk_forms(walk, op, size == 100);
}

static void everything(struct world_seat *seat)
{
	struct walk walk = { .group = seat->group, .seed = seat->n };
	uint32_t turn = seat->n;
	struct hk_algo_info algo = { .size = sizeof(algo) };

	for (uint32_t i = 0; hk_algo_get(i, &algo); i++) {
		unsigned ops = want_reduces(algo.coll) ? HK_REDOP_COUNT : 1;

		for (unsigned type = 0; type < HK_TYPE_COUNT && algo_fits(seat, &algo); type++) {
			for (unsigned op = 0; op < ops && algo.coll < HK_COLL_BARRIER; op++) {
				if (hk_redop_valid((enum hk_type)type, (enum hk_redop)op))
					everything_of(&walk, &algo, (enum hk_type)type,
						      (enum hk_redop)op, turn++);
			}
		}
	}
	walk_done(&walk, seat);
}

static void product_run(enum world_kind kind)
{
	bool wanted = false;

	for (uint32_t i = 0; ranks_all[i]; i++) {
		if (!matrix_wants(ranks_all[i]))
			continue;
		printf("%u ranks as ", ranks_all[i]);
		fflush(stdout);
		kind_run(kind, RANKS(ranks_all[i]), everything);
		fflush(stdout);
		wanted = true;
	}
	if (!wanted && getenv("HK_TEST_MATRIX"))
		test_fail(__FILE__, __LINE__, "HK_TEST_MATRIX=%s: full, 1 to 9 or 16 is expected",
			  getenv("HK_TEST_MATRIX"));
	if (!wanted)
		SKIP("it takes long: make test-matrix");
}

TEST(whole_threads_shm)
{
	product_run(WORLD_THREADS_SHM);
}

TEST(whole_threads_tcp)
{
	product_run(WORLD_THREADS_TCP);
}

TEST(whole_processes_shm)
{
	product_run(WORLD_PROCESSES_SHM);
}

TEST(whole_processes_tcp)
{
	product_run(WORLD_PROCESSES_TCP);
}

TEST(whole_mixed_threads)
{
	product_run(WORLD_MIXED_THREADS);
}

TEST(whole_mixed_processes)
{
	product_run(WORLD_MIXED_PROCESSES);
}

/* ---- rounded once ---- */

#define ROUNDED_COUNT 61u

/* Small floats of all magnitudes, what the plan makes of them in fp32, and what came. */
struct rounded {
	const struct hk_plan *plan;
	struct hk_plan_info info;
	enum hk_type type;
	uint64_t in[WORLD_RANKS_MAX][ROUNDED_COUNT * WORLD_RANKS_MAX];
	uint64_t out[WORLD_RANKS_MAX][ROUNDED_COUNT];
};

/* Positive, so that no order comes near cancellation. */
static void rounded_choose(struct rounded *rounded, struct defn *data, uint64_t seed)
{
	for (uint32_t r = 0; r < data->spec.n; r++) {
		for (uint64_t i = 0; i < data->in[r].len; i++) {
			union elem wide = { .bits = 0 };

			wide.f = (float)(1 + (test_random(&seed) & 0xffffff)) *
				 (test_random(&seed) % 2 ? 0x1p-24f : 0x1p-19f);
			rounded->in[r][i] = oracle_narrow(rounded->type, wide.bits);
			data->in[r].at[i].bits = oracle_widen(rounded->type, rounded->in[r][i]);
		}
	}
}

static void rounded_expect(struct rounded *rounded, struct naive *naive, uint64_t seed)
{
	struct defn_spec spec = { .coll = rounded->info.coll,
				  .type = ELEM_FLOAT,
				  .n = rounded->info.nranks,
				  .root = rounded->info.root,
				  .sizes = { ROUNDED_COUNT, NULL } };
	struct defn *data = defn_create(&spec, ELEM_ROUNDING, 1);
	struct naive_opts opts = { .slots = 2, .hold = true };
	struct naive_report report;

	rounded_choose(rounded, data, seed);
	naive_load(naive, rounded->plan);
	(void)naive_run(naive, data, &opts, &report);
	CHECK(report.fault == NAIVE_OK || report.fault == NAIVE_WRONG); /* of other inputs */
	for (uint32_t r = 0; r < spec.n; r++) {
		for (uint64_t i = 0; i < data->out[r].len; i++) {
			double sum = 0;
			uint64_t got = oracle_narrow(rounded->type, naive_out(naive, r)[i].bits);
			uint64_t first = spec.coll == HK_COLL_REDUCESCATTER ? r * ROUNDED_COUNT : 0;

			for (uint32_t s = 0; s < spec.n; s++)
				sum += (double)data->in[s].at[first + i].f;
			union elem exact = { .bits = 0 };
			exact.f = (float)sum;
			uint64_t best = oracle_narrow(rounded->type, exact.bits);
			CHECK(got + 1 >= best && got <= best + 1); /* a step of the type at most */
			rounded->out[r][i] = got;
		}
	}
	defn_destroy(data);
}

static void rounded_rank(struct world_seat *seat)
{
	const struct rounded *rounded = seat->ctx;
	const struct hk_plan_info *info = &rounded->info;
	size_t size = hk_type_size(rounded->type);
	uint32_t blocks = info->coll == HK_COLL_REDUCESCATTER ? seat->n : 1;
	char in[ROUNDED_COUNT * WORLD_RANKS_MAX * 2], out[ROUNDED_COUNT * 2];
	struct op_run run = { .op = { .want = { .coll = info->coll,
						.type = rounded->type,
						.op = HK_REDOP_SUM,
						.n = seat->n,
						.root = info->root,
						.count = ROUNDED_COUNT } },
			      .in = in,
			      .out = out };
	struct hk_opts opts = HK_OPTS_INIT;

	opts.algo = info->algo;
	for (uint64_t i = 0; i < (uint64_t)ROUNDED_COUNT * blocks; i++)
		oracle_put(in, size, i, rounded->in[seat->rank][i]);
	/* And the same when it is done again. */
	for (int again = 0; again < 2; again++) {
		CHECK_EQ(op_call(seat->group, &run, &opts), HK_OK);
		if (info->coll == HK_COLL_REDUCE && seat->rank != info->root)
			continue;
		for (uint64_t i = 0; i < ROUNDED_COUNT; i++) {
			if (oracle_get(out, size, i) != rounded->out[seat->rank][i])
				test_fail(__FILE__, __LINE__,
					  "%s by %s of %s n=%u rank %u: element %" PRIu64
					  " is %#" PRIx64 ", not %#" PRIx64,
					  hk_coll_name(info->coll), info->algo,
					  hk_type_name(rounded->type), seat->n, seat->rank, i,
					  oracle_get(out, size, i), rounded->out[seat->rank][i]);
		}
	}
}

static void rounded_algo(struct rounded *rounded, struct naive *naive,
			 const struct hk_algo_info *algo, uint32_t n)
{
	static const enum hk_type small[] = { HK_TYPE_FP16, HK_TYPE_BF16, HK_TYPE_FP8E4M3,
					      HK_TYPE_FP8E5M2 };
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct world_spec spec = { .kind = WORLD_THREADS_SHM, .n = n, .check = true };
	struct hk_plan *plan;

	opts.algo = algo->name;
	opts.nodes = algo->nodes ? 1 : 0;
	opts.root = algo->rooted ? n - 1 : 0;
	CHECK_EQ(hk_plan_create(algo->coll, n, &opts, NULL, &plan), HK_OK);
	for (size_t t = 0; t < sizeof(small) / sizeof(small[0]); t++) {
		rounded->plan = plan;
		rounded->info.size = sizeof(rounded->info);
		hk_plan_describe(plan, &rounded->info);
		rounded->type = small[t];
		rounded_expect(rounded, naive, n * 100 + t);
		world_run(&spec, rounded_rank, rounded);
	}
	hk_plan_free(plan);
}

/*
 * Sums of 8 and 16 bit floats are those of fp32, in the order in which the plan
 * adds, rounded once in the end: to the bit, on every rank, every time.
 */
TEST(sums_are_rounded_once)
{
	struct rounded *rounded = world_shared(sizeof(*rounded));
	struct naive *naive = naive_create();
	struct hk_algo_info algo = { .size = sizeof(algo) };

	for (uint32_t i = 0; hk_algo_get(i, &algo); i++) {
		for (uint32_t n = 3; n <= 9 && want_reduces(algo.coll) && !algo.onesided; n++)
			rounded_algo(rounded, naive, &algo, n);
	}
	naive_destroy(naive);
}
