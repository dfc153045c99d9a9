/* SPDX-License-Identifier: Apache-2.0 */
/* choose_test.c - the fastest algorithm, calls in a row, and constants from times. */
#include "bed.h"

#include <math.h>

static uint32_t candidates(const struct hk_fabric *fabric, struct hk_sim_choice what,
			   const struct hk_sim_opts *opts, struct hk_sim_candidate *all)
{
	struct hk_why why = { "" };
	uint32_t count;

	all[0].size = sizeof(all[0]);
	if (hk_sim_candidates(fabric, &what, opts, &why, all, &count) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", why.text);
	CHECK(count > 0);
	return count;
}

/* ---- which algorithm ---- */

TEST(every_algorithm_in_the_order_of_its_time)
{
	static const enum hk_coll colls[] = { HK_COLL_ALLREDUCE, HK_COLL_ALLGATHER,
					      HK_COLL_ALLTOALL, HK_COLL_BROADCAST };
	struct hk_fabric *fabric = bed_fabric("dgx-h100:4");

	for (size_t c = 0; c < sizeof(colls) / sizeof(colls[0]); c++) {
		struct hk_sim_candidate all[HK_SIM_CANDIDATES_MAX];
		struct hk_sim_choice what = {
			.coll = colls[c], .ranks = 32, .bytes = 1 << 22, .all = true
		};
		uint32_t count = candidates(fabric, what, NULL, all), fit = 0;
		struct hk_algo_info algo = { .size = sizeof(algo) };

		for (uint32_t i = 0; hk_algo_get(i, &algo); i++)
			fit += algo.coll == colls[c] && !algo.onesided;
		CHECK_EQ(count, fit);
		for (uint32_t i = 0; i < count; i++) {
			struct hk_plan *plan = bed_plan(fabric, colls[c], all[i].algo, 32);
			struct hk_sim_result alone = bed_run(fabric, plan, 1 << 22, NULL, NULL);

			CHECK(all[i].simulated);
			bed_near(all[i].algo, all[i].result.time_ns, alone.time_ns, 1e-12);
			/* But for the first, which is flat where that costs next to nothing. */
			CHECK(i == 0 || all[i].result.time_ns >=
						all[i - 1].result.time_ns / (i == 1 ? 1.01 : 1));
			hk_plan_free(plan);
		}
	}
	hk_fabric_free(fabric);
}

/* An algorithm of levels is first only if every flat one takes more than 1 % longer. */
static bool flat_or_faster(enum hk_coll coll, const struct hk_sim_candidate *all, uint32_t count)
{
	struct hk_algo_info algo = { .size = sizeof(algo) };

	CHECK_EQ(hk_algo_find(coll, all[0].algo, &algo), HK_OK);
	for (uint32_t i = 1; i < count && algo.nodes; i++) {
		struct hk_algo_info other = { .size = sizeof(other) };

		CHECK_EQ(hk_algo_find(coll, all[i].algo, &other), HK_OK);
		CHECK(other.nodes || all[i].result.time_ns > 1.01 * all[0].result.time_ns);
	}
	return !algo.nodes;
}

TEST(levels_have_to_gain_something)
{
	static const enum hk_coll colls[] = { HK_COLL_ALLREDUCE, HK_COLL_ALLGATHER,
					      HK_COLL_ALLTOALL, HK_COLL_BROADCAST };
	/* A rank on each machine, where they are rarely faster; eight, where they are. */
	struct hk_fabric *flat = bed_fabric("tcp-cluster:4,ranks=1");
	struct hk_fabric *deep = bed_fabric("dgx-h100:2");
	struct hk_sim_candidate all[HK_SIM_CANDIDATES_MAX];
	uint32_t taken[2] = { 0 };

	for (size_t c = 0; c < sizeof(colls) / sizeof(colls[0]); c++) {
		for (double bytes = 64; bytes < 1e8; bytes *= 64) {
			struct hk_sim_choice what = {
				.coll = colls[c], .ranks = 4, .bytes = bytes, .all = true
			};
			uint32_t count = candidates(flat, what, NULL, all);

			taken[0] += flat_or_faster(colls[c], all, count);
			what.ranks = 16;
			count = candidates(deep, what, NULL, all);
			taken[1] += flat_or_faster(colls[c], all, count);
		}
	}
	CHECK(taken[0] > taken[1]);
	hk_fabric_free(flat);
	hk_fabric_free(deep);
}

/* What is left to estimates does not hide the fastest. */
TEST(those_not_simulated_are_no_faster)
{
	static const char *const specs[] = { "dgx-h100:4", "switch:16", "tcp-cluster:4,ranks=4" };

	for (size_t f = 0; f < sizeof(specs) / sizeof(specs[0]); f++) {
		struct hk_fabric *fabric = bed_fabric(specs[f]);

		for (double bytes = 64; bytes < 1e8; bytes *= 64) {
			struct hk_sim_candidate some[HK_SIM_CANDIDATES_MAX],
				all[HK_SIM_CANDIDATES_MAX];
			struct hk_sim_choice what = { .coll = HK_COLL_ALLREDUCE,
						      .ranks = 16,
						      .bytes = bytes };

			candidates(fabric, what, NULL, some);
			what.all = true;
			candidates(fabric, what, NULL, all);
			CHECK(some[0].simulated);
			/* Estimates are rough: a little may be lost, not much. */
			CHECK(some[0].result.time_ns <= 1.1 * all[0].result.time_ns);
		}
		hk_fabric_free(fabric);
	}
}

TEST(limits_and_refusals)
{
	struct hk_fabric *fabric = bed_fabric("switch:8");
	struct hk_sim_candidate all[HK_SIM_CANDIDATES_MAX];
	struct hk_sim_opts opts = HK_SIM_OPTS_INIT;
	struct hk_sim_choice what = { .coll = HK_COLL_ALLREDUCE, .ranks = 8, .bytes = 1 << 20 };
	struct hk_why why = { "" };
	uint32_t count;

	opts.full = true;
	opts.messages_max = 60;
	count = candidates(fabric, what, &opts, all);
	bool simulated = false, estimated = false;
	for (uint32_t i = 0; i < count; i++) {
		simulated |= all[i].simulated;
		estimated |= !all[i].simulated;
		CHECK(all[i].estimate_ns > 0);
	}
	CHECK(simulated && estimated);
	what.ranks = 9;
	CHECK_EQ(hk_sim_candidates(fabric, &what, NULL, &why, all, &count), HK_EINVAL);
	CHECK_HAS(why.text, "9 ranks on a fabric of 8");
	what = (struct hk_sim_choice){
		.coll = HK_COLL_BROADCAST, .ranks = 8, .root = 8, .bytes = 8
	};
	CHECK_EQ(hk_sim_candidates(fabric, &what, NULL, &why, all, &count), HK_EINVAL);
	CHECK_HAS(why.text, "root 8 of 8 ranks");
	hk_fabric_free(fabric);
}

/* ---- calls in a row ---- */

TEST(calls_in_a_row)
{
	struct hk_fabric *fabric = bed_fabric("tcp-cluster:4");
	struct hk_sim_opts opts = HK_SIM_OPTS_INIT;

	opts.calls = 16;
	/* A ring waits for all of its ranks: nothing is gained but what ends overlap. */
	struct hk_plan *ring = bed_plan(fabric, HK_COLL_ALLREDUCE, "ring", 4);
	double one = bed_run(fabric, ring, 1 << 20, NULL, NULL).time_ns;
	double row = bed_run(fabric, ring, 1 << 20, &opts, NULL).time_ns;
	bed_near("ring", row, one, 0.2);
	/* The root of a broadcast runs ahead of the others. */
	struct hk_plan *chain = bed_plan(fabric, HK_COLL_BROADCAST, "chain", 4);
	one = bed_run(fabric, chain, 64, NULL, NULL).time_ns;
	row = bed_run(fabric, chain, 64, &opts, NULL).time_ns;
	CHECK(row < 0.7 * one);
	opts.calls = 1;
	bed_near("one call", bed_run(fabric, chain, 64, &opts, NULL).time_ns, one, 0);
	opts.calls = 100000;
	struct hk_sim_job job = { .plan = chain, .bytes = 64 };
	struct hk_sim_result result = { .size = sizeof(result) };
	struct hk_why why = { "" };
	CHECK_EQ(hk_sim_run(fabric, &job, 1, &opts, &why, &result), HK_EINVAL);
	CHECK_HAS(why.text, "100000 calls");
	hk_plan_free(ring);
	hk_plan_free(chain);
	hk_fabric_free(fabric);
}

/* ---- constants from times ---- */

/* ---- lanes that nothing holds back ---- */

/* Among n hosts of one rank, with the fabric changed in turn; NULL ends it. */
static double hosts_time(uint32_t n, const char *const *changes, enum hk_coll coll,
			 const char *algo)
{
	uint32_t one_each[4] = { 1, 1, 1, 1 };
	struct hk_fabric *fabric;
	struct hk_why why = { "" };

	CHECK_EQ(hk_fabric_hosts(NULL, one_each, n, NULL, &why, &fabric), HK_OK);
	for (; *changes; changes++)
		CHECK_EQ(hk_fabric_change(fabric, *changes, &why), HK_OK);
	struct hk_plan *plan = bed_plan(fabric, coll, algo, n);
	double ns = bed_run(fabric, plan, 16 << 20, NULL, NULL).time_ns;
	hk_plan_free(plan);
	hk_fabric_free(fabric);
	return ns;
}

static double tcp_time(const char *change, enum hk_coll coll, const char *algo)
{
	return hosts_time(2, (const char *const[]){ change, NULL }, coll, algo);
}

/* Only what a lane sends that does not receive, in a rank that does. */
TEST(sending_ahead_costs)
{
	const char *none = "tcp.ahead-byte=0", *some = "tcp.ahead-byte=1";

	CHECK(tcp_time(some, HK_COLL_ALLREDUCE, "two-shot") >
	      1.2 * tcp_time(none, HK_COLL_ALLREDUCE, "two-shot"));
	CHECK(tcp_time(some, HK_COLL_ALLGATHER, "direct") >
	      1.2 * tcp_time(none, HK_COLL_ALLGATHER, "direct"));
	CHECK(tcp_time(some, HK_COLL_ALLREDUCE, "ring") ==
	      tcp_time(none, HK_COLL_ALLREDUCE, "ring"));
	CHECK(tcp_time(some, HK_COLL_BROADCAST, "binomial") ==
	      tcp_time(none, HK_COLL_BROADCAST, "binomial"));
}

/* Where links are no limit. */
static double copies_time(const char *kernel, enum hk_coll coll, const char *algo)
{
	const char *const changes[] = { "nic.bw=10000", "tcp.recv-byte=0.2", "tcp.send-byte=0.2",
					kernel, NULL };

	return hosts_time(4, changes, coll, algo);
}

/* Who passes on what it received pays for both copies; who sends its own, for one. */
TEST(kernels_copy_each_way)
{
	const char *no = "tcp.kernel=0", *yes = "tcp.kernel=1";

	CHECK(copies_time(yes, HK_COLL_ALLREDUCE, "ring") >
	      1.4 * copies_time(no, HK_COLL_ALLREDUCE, "ring"));
	CHECK(copies_time(yes, HK_COLL_BROADCAST, "chain") >
	      1.4 * copies_time(no, HK_COLL_BROADCAST, "chain"));
	CHECK(copies_time(yes, HK_COLL_ALLTOALL, "direct") ==
	      copies_time(no, HK_COLL_ALLTOALL, "direct"));
}

static const struct {
	enum hk_coll coll;
	const char *algo;
} probes[] = {
	{ HK_COLL_ALLREDUCE, "one-shot" }, { HK_COLL_ALLREDUCE, "ring" },
	{ HK_COLL_ALLGATHER, "ring" },	   { HK_COLL_ALLTOALL, "bruck" },
	{ HK_COLL_BROADCAST, "binomial" },
};
#define PROBES (sizeof(probes) / sizeof(probes[0]))
#define SIZES 6u

/* Whether a constant says that it was fitted. */
static bool is_cited(const struct hk_fabric *fabric, const char *name)
{
	struct hk_fabric_constant constant = { .size = sizeof(constant) };

	for (uint32_t i = 0; hk_fabric_constant(fabric, i, &constant); i++)
		if (strcmp(constant.name, name) == 0)
			return strstr(constant.source, "fitted to 30 measured times") != NULL;
	return false;
}

/* Times on a machine unlike the one that is assumed are explained all the same. */
static void find_constants(bool shared)
{
	static const char *const changes[] = { "device.call=3x",   "device.step=0.5x",
					       "shm.flight=4x",	   "shm.send-byte=3x",
					       "shm.recv-byte=2x", "device.reduce=2x" };
	uint32_t two = 2;
	struct hk_fabric *real, *found;
	struct hk_sim_sample samples[PROBES * SIZES];
	struct hk_sim_fit_what what = { .device = true, .wire = "shm" };
	struct hk_sim_fit_result result = { .size = sizeof(result) };
	struct hk_why why = { "" };
	uint32_t count = 0;

	CHECK_EQ(hk_fabric_hosts(NULL, &two, 1, NULL, &why, &real), HK_OK);
	CHECK_EQ(hk_fabric_hosts(NULL, &two, 1, NULL, &why, &found), HK_OK);
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		CHECK_EQ(hk_fabric_change(real, changes[i], &why), HK_OK);
	if (shared) {
		CHECK_EQ(hk_fabric_change(real, "device.cores=1", &why), HK_OK);
		CHECK_EQ(hk_fabric_change(real, "device.switch=900", &why), HK_OK);
		CHECK_EQ(hk_fabric_change(found, "device.cores=1", &why), HK_OK);
		CHECK_EQ(hk_fabric_change(found, "device.switch=300", &why), HK_OK);
	}
	for (size_t p = 0; p < PROBES; p++) {
		for (uint32_t s = 0; s < SIZES; s++) {
			struct hk_plan *plan = bed_plan(real, probes[p].coll, probes[p].algo, 2);
			double bytes = (double)(UINT64_C(8) << 4 * s);

			samples[count++] = (struct hk_sim_sample){
				.plan = plan,
				.bytes = bytes,
				.time_ns = bed_run(real, plan, bytes, NULL, NULL).time_ns
			};
		}
	}
	CHECK_EQ(hk_sim_fit(found, &what, samples, count, NULL, &why, &result), HK_OK);
	printf("%u constants, median error %.2f %%, p90 %.2f %%\n", result.constants,
	       100 * result.median_error, 100 * result.p90_error);
	CHECK(result.median_error < 0.03 && result.p90_error < 0.15);
	CHECK(is_cited(found, "shm.flight"));
	CHECK_EQ(is_cited(found, "device.switch"), shared);
	what.wire = "nvlink";
	what.device = false;
	CHECK_EQ(hk_sim_fit(found, &what, samples, count, NULL, &why, &result), HK_EINVAL);
	CHECK_HAS(why.text, "nothing to fit");
	for (uint32_t i = 0; i < count; i++)
		hk_plan_free((struct hk_plan *)samples[i].plan);
	hk_fabric_free(real);
	hk_fabric_free(found);
}

TEST(constants_are_found)
{
	find_constants(false);
}

TEST(constants_of_ranks_that_share_a_core_are_found)
{
	find_constants(true);
}

/* ---- hosts ---- */

TEST(hosts_of_any_sizes)
{
	uint32_t even[3] = { 4, 4, 4 }, uneven[4] = { 3, 1, 1, 4 }, many[20];
	struct hk_fabric *a, *b, *c;
	struct hk_fabric_info info = { .size = sizeof(info) };
	struct hk_why why = { "" };

	CHECK_EQ(hk_fabric_hosts(NULL, even, 3, NULL, &why, &a), HK_OK);
	hk_fabric_describe(a, &info);
	CHECK_EQ(info.ranks, 12);
	CHECK_EQ(info.nodes, 3);
	CHECK_EQ(info.node_ranks, 4);
	CHECK_EQ(hk_fabric_change(a, "tcp.flight=2x", &why), HK_OK);
	CHECK_EQ(hk_fabric_change(a, "nic.bw=7", &why), HK_OK);
	/* Its constants, on other hosts, also where each kind has its own. */
	CHECK_EQ(hk_fabric_hosts(a, uneven, 4, NULL, &why, &b), HK_OK);
	struct hk__path path;
	hk__fabric_path(b, 0, 8, &path);
	bed_near("nic", hk__fabric_link_speed(b, path.links[0]), 7, 1e-9);
	CHECK_STR(b->wires[path.wire].name, "tcp");
	bed_near("flight", hk__curve_at(&b->wires[path.wire].flight_ns, 8),
		 hk__curve_at(&a->wires[path.wire].flight_ns, 8), 0);
	hk__fabric_path(b, 0, 2, &path);
	CHECK_STR(b->wires[path.wire].name, "shm");
	for (uint32_t i = 0; i < 20; i++)
		many[i] = 1 + i % 2;
	CHECK_EQ(hk_fabric_hosts(a, many, 20, NULL, &why, &c), HK_ELIMIT);
	CHECK_EQ(hk_fabric_hosts(a, many, 0, NULL, &why, &c), HK_EINVAL);
	/* The same constants have one digest. */
	CHECK_EQ(hk_fabric_hosts(a, even, 3, NULL, &why, &c), HK_OK);
	CHECK(hk__fabric_digest(a) == hk__fabric_digest(c));
	CHECK_EQ(hk_fabric_change(c, "shm.send=1.001x", &why), HK_OK);
	CHECK(hk__fabric_digest(a) != hk__fabric_digest(c));
	hk_fabric_free(a);
	hk_fabric_free(b);
	hk_fabric_free(c);
}

static struct hk_fabric *crowded(uint32_t ranks, uint32_t crowd)
{
	struct hk_fabric *fabric;

	CHECK_EQ(hk_fabric_hosts(NULL, &ranks, 1, NULL, NULL, &fabric), HK_OK);
	hk__fabric_crowd(fabric, crowd);
	return fabric;
}

static double crowded_ns(const struct hk_fabric *fabric, const char *algo, double bytes)
{
	struct hk_plan_opts plan_opts = HK_PLAN_OPTS_INIT;
	struct hk_sim_opts opts = HK_SIM_OPTS_INIT;
	struct hk_sim_result result = { .size = sizeof(result) };
	struct hk_plan *plan;

	plan_opts.algo = algo;
	CHECK_EQ(hk_plan_create(HK_COLL_BROADCAST, 8, &plan_opts, NULL, &plan), HK_OK);
	struct hk_sim_job job = { .plan = plan, .bytes = bytes };
	CHECK_EQ(hk_sim_run(fabric, &job, 1, &opts, NULL, &result), HK_OK);
	hk_plan_free(plan);
	return result.time_ns;
}

/*
 * 8 ranks on 2 cores: whoever waits leaves the core to others, so what counts is all the
 * work there is. A broadcast in parts copies everything twice, and by exchanges.
 */
TEST(ranks_that_share_cores_broadcast_whole)
{
	static const double sizes[] = { 4096, 32768, 262144 };
	struct hk_fabric *apart = crowded(8, 1), *two = crowded(8, 4);

	CHECK(!hk__fabric_cores_shared(apart));
	CHECK(hk__fabric_cores_shared(two));
	CHECK_EQ(two->devices[0].cores, 2);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct hk_sim_candidate candidates[HK_SIM_CANDIDATES_MAX];
		struct hk_sim_choice what = { .coll = HK_COLL_BROADCAST,
					      .ranks = 8,
					      .bytes = sizes[i] };
		struct hk_sim_opts opts = HK_SIM_OPTS_INIT;
		uint32_t count;

		CHECK(crowded_ns(two, "chain", sizes[i]) > crowded_ns(apart, "chain", sizes[i]));
		candidates[0].size = sizeof(candidates[0]);
		CHECK_EQ(hk_sim_candidates(two, &what, &opts, NULL, candidates, &count), HK_OK);
		CHECK(!strcmp(candidates[0].algo, "chain") ||
		      !strcmp(candidates[0].algo, "binomial"));
	}
	/* What a probe found stays. */
	hk__fabric_crowd(two, 8);
	CHECK_EQ(two->devices[0].cores, 2);
	hk_fabric_free(apart);
	hk_fabric_free(two);
}
