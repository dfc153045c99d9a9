/* SPDX-License-Identifier: Apache-2.0 */
/* nccl_test.c - what NCCL chooses, and how long that takes. */
#include "harness.h"
#include "model/nccl.h"

#include <hocket/sim.h>

#include <math.h>
#include <string.h>

#define KIB 1024.
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

/* ---- systems ---- */

static struct hk__nccl_system node_of(enum hk__nccl_arch arch, uint32_t n)
{
	static const double nvlinks[] = { 300, 450, 900 };

	return (struct hk__nccl_system){
		.arch = arch,
		.ranks = n,
		.nodes = 1,
		.node_ranks = n,
		.nvlink = nvlinks[arch],
		.nvswitch = true,
		.nvls = arch != HK__NCCL_AMPERE,
	};
}

static struct hk__nccl_system nodes_of(enum hk__nccl_arch arch, uint32_t nodes,
				       enum hk__nccl_net net, double nics, double nic)
{
	struct hk__nccl_system system = node_of(arch, 8);

	system.ranks = 8 * nodes;
	system.nodes = nodes;
	system.net = net;
	system.nics = nics;
	system.nic = nic;
	return system;
}

/* Polaris: four A100s, each linked to each, two NICs, NCCL 2.21. */
static struct hk__nccl_system polaris(uint32_t nodes)
{
	struct hk__nccl_system system = nodes_of(HK__NCCL_AMPERE, nodes, HK__NCCL_SLINGSHOT, 2, 25);

	system.ranks = 4 * nodes;
	system.node_ranks = 4;
	system.nvswitch = false;
	system.amd = true;
	system.version = 22100;
	return system;
}

/* "nvls/simple" */
static const char *choice(const struct hk__nccl_system *system, enum hk_coll coll, double bytes,
			  enum hk_type type)
{
	static char text[40];
	struct hk__nccl_choice found;

	hk__nccl_choose(system, coll, bytes, type, &found);
	(void)snprintf(text, sizeof(text), "%s/%s", hk__nccl_algo_name(found.algo),
		       hk__nccl_proto_name(found.proto));
	return text;
}

static double time_us(const struct hk__nccl_system *system, enum hk_coll coll, double bytes,
		      enum hk_type type)
{
	struct hk__nccl_prediction out;

	hk__nccl_predict(system, NULL, coll, bytes, type, &out);
	return out.us;
}

/* ---- choices ---- */

/* NVIDIA/nccl-tests#309: Ring and LL up to 1 MiB, NVLS from 2 MiB. */
TEST(eight_h100_take_ring_then_nvls)
{
	struct hk__nccl_system h100 = node_of(HK__NCCL_HOPPER, 8);

	for (double bytes = 8; bytes <= MIB; bytes *= 2)
		CHECK_STR(choice(&h100, HK_COLL_ALLREDUCE, bytes, HK_TYPE_FP32), "ring/ll");
	for (double bytes = 2 * MIB; bytes <= 16 * GIB; bytes *= 2)
		CHECK_STR(choice(&h100, HK_COLL_ALLREDUCE, bytes, HK_TYPE_FP32), "nvls/simple");
}

/* stas00/ml-engineering: at 8 GiB NVLS begins at 5 GPUs of an H200 node. */
TEST(nvls_begins_at_five_gpus)
{
	for (uint32_t n = 2; n <= 8; n++) {
		struct hk__nccl_system h200 = node_of(HK__NCCL_HOPPER, n);
		CHECK_STR(choice(&h200, HK_COLL_ALLREDUCE, 8 * GIB, HK_TYPE_BF16),
			  n < 5 ? "ring/simple" : "nvls/simple");
	}
}

/* The switch does not add bytes. */
TEST(nvls_has_types)
{
	struct hk__nccl_system h100 = node_of(HK__NCCL_HOPPER, 8);

	for (double bytes = 8; bytes <= 16 * GIB; bytes *= 2)
		CHECK(strcmp(choice(&h100, HK_COLL_ALLREDUCE, bytes, HK_TYPE_INT8),
			     "nvls/simple") != 0);
}

/* Where published sweeps of A100 nodes jump: 1 MiB with 2 GPUs, 2 MiB with 4. */
TEST(a100_leaves_ll_where_it_was_seen_to)
{
	struct hk__nccl_system two = node_of(HK__NCCL_AMPERE, 2),
			       four = node_of(HK__NCCL_AMPERE, 4);

	CHECK_STR(choice(&two, HK_COLL_ALLREDUCE, MIB / 2, HK_TYPE_FP16), "ring/ll");
	CHECK_STR(choice(&two, HK_COLL_ALLREDUCE, MIB, HK_TYPE_FP16), "ring/simple");
	CHECK_STR(choice(&four, HK_COLL_ALLGATHER, MIB, HK_TYPE_FP16), "ring/ll");
	CHECK_STR(choice(&four, HK_COLL_ALLGATHER, 2 * MIB, HK_TYPE_FP16), "ring/simple");
}

/* Two nodes with few NICs: a tree may carry the vector across once, a ring twice. */
TEST(trees_win_where_nics_are_few)
{
	struct hk__nccl_system p4de = nodes_of(HK__NCCL_AMPERE, 2, HK__NCCL_EFA, 4, 12.5);
	struct hk__nccl_system dgx = nodes_of(HK__NCCL_AMPERE, 2, HK__NCCL_INFINIBAND, 8, 25);
	struct hk__nccl_system h100 = nodes_of(HK__NCCL_HOPPER, 2, HK__NCCL_INFINIBAND, 8, 50);

	CHECK_STR(choice(&p4de, HK_COLL_ALLREDUCE, GIB, HK_TYPE_FP32), "tree/simple");
	CHECK_STR(choice(&dgx, HK_COLL_ALLREDUCE, GIB, HK_TYPE_FP32), "ring/simple");
	CHECK_STR(choice(&h100, HK_COLL_ALLREDUCE, GIB, HK_TYPE_FP32), "nvlstree/simple");
	CHECK_STR(choice(&h100, HK_COLL_ALLREDUCE, 8, HK_TYPE_FP32), "tree/ll");
}

TEST(what_is_not_tuned)
{
	struct hk__nccl_system h100 = node_of(HK__NCCL_HOPPER, 8);
	struct hk__nccl_choice found;

	hk__nccl_choose(&h100, HK_COLL_ALLTOALL, GIB, HK_TYPE_FP32, &found);
	CHECK_STR(hk__nccl_algo_name(found.algo), "p2p");
	CHECK(isnan(found.us));
	CHECK(isnan(hk__nccl_expect(&h100, HK_COLL_BROADCAST, GIB, HK_TYPE_FP32, HK__NCCL_TREE,
				    HK__NCCL_SIMPLE)));
}

/* By hand: 6.6 + 14 hops of 0.6 us, and 1 MiB at 141 GB/s times 8/14. */
TEST(expects_what_nccl_expects)
{
	struct hk__nccl_system h100 = node_of(HK__NCCL_HOPPER, 8);
	double ring = hk__nccl_expect(&h100, HK_COLL_ALLREDUCE, MIB, HK_TYPE_FP32, HK__NCCL_RING,
				      HK__NCCL_LL);
	/* 25 us, and 8 heads of 40 GB/s: 85 %, 7 of 8, both ways, times 8/14. */
	double nvls = hk__nccl_expect(&h100, HK_COLL_ALLREDUCE, MIB, HK_TYPE_FP32, HK__NCCL_NVLS,
				      HK__NCCL_SIMPLE);

	CHECK(fabs(ring - (15 + MIB / (1000 * 141 * 8 / 14.))) < 1e-6);
	CHECK(fabs(nvls - (25 + MIB / (1000 * 8 * 40 * .85 * 7 / 8 * 2 * 8 / 14))) < 1e-6);
}

TEST(few_bytes_take_few_channels)
{
	struct hk__nccl_system h100 = node_of(HK__NCCL_HOPPER, 8);
	struct hk__nccl_choice found;

	hk__nccl_choose(&h100, HK_COLL_ALLREDUCE, 8, HK_TYPE_FP32, &found);
	CHECK_EQ(found.channels, 1);
	hk__nccl_choose(&h100, HK_COLL_ALLREDUCE, 128 * KIB, HK_TYPE_FP32, &found);
	CHECK_EQ(found.channels, 4);
	hk__nccl_choose(&h100, HK_COLL_ALLREDUCE, MIB, HK_TYPE_FP32, &found);
	CHECK_EQ(found.channels, 24);
}

/* ---- times ---- */

/* Some rows of sweeps that anybody can read; all of them are in docs/VALIDATION.md. */
TEST(published_times)
{
	struct hk__nccl_system h100 = node_of(HK__NCCL_HOPPER, 8);
	struct hk__nccl_system four = nodes_of(HK__NCCL_HOPPER, 4, HK__NCCL_INFINIBAND, 8, 50);
	struct hk__nccl_system alcf = polaris(8);
	const struct {
		const struct hk__nccl_system *system;
		enum hk_coll coll;
		double bytes, us;
	} rows[] = {
		/* NVIDIA/dgxc-benchmarking, nccl/README.md */
		{ &h100, HK_COLL_ALLREDUCE, 1024, 16.9 },
		{ &h100, HK_COLL_ALLREDUCE, MIB, 27.4 },
		{ &h100, HK_COLL_ALLREDUCE, 64 * MIB, 324.7 },
		{ &h100, HK_COLL_ALLREDUCE, 16 * GIB, 62648 },
		/* NVIDIA/nccl-tests#309 */
		{ &four, HK_COLL_ALLREDUCE, 64 * MIB, 579.1 },
		{ &four, HK_COLL_ALLREDUCE, 16 * GIB, 90986 },
		/* argonne-lcf/alcf-nccl-tests, results_polaris/nccl_2_21 */
		{ &alcf, HK_COLL_ALLGATHER, 4096, 265.3 },
		{ &alcf, HK_COLL_ALLGATHER, GIB, 28602 },
		{ &alcf, HK_COLL_ALLREDUCE, GIB, 57191 },
		{ &alcf, HK_COLL_ALLTOALL, GIB, 199367 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double us = time_us(rows[i].system, rows[i].coll, rows[i].bytes, HK_TYPE_FP32);
		if (fabs(us / rows[i].us - 1) > .2)
			printf("%s of %g bytes: %g us, measured %g\n", hk_coll_name(rows[i].coll),
			       rows[i].bytes, us, rows[i].us);
		CHECK(fabs(us / rows[i].us - 1) <= .2);
	}
}

static void each(void (*check)(const struct hk__nccl_system *system, enum hk_coll coll))
{
	const struct hk__nccl_system systems[] = {
		node_of(HK__NCCL_AMPERE, 2),
		node_of(HK__NCCL_HOPPER, 8),
		node_of(HK__NCCL_BLACKWELL, 72),
		polaris(2),
		polaris(540),
		nodes_of(HK__NCCL_AMPERE, 2, HK__NCCL_EFA, 4, 12.5),
		nodes_of(HK__NCCL_HOPPER, 2, HK__NCCL_TCPXO, 8, 25),
		nodes_of(HK__NCCL_HOPPER, 16, HK__NCCL_INFINIBAND, 8, 50),
		nodes_of(HK__NCCL_BLACKWELL, 16384, HK__NCCL_ETHERNET, 8, 50),
		nodes_of(HK__NCCL_AMPERE, 4, HK__NCCL_TCP, 1, .1),
	};

	for (size_t i = 0; i < sizeof(systems) / sizeof(systems[0]); i++)
		for (unsigned coll = 0; coll < HK_COLL_COUNT; coll++)
			if (coll != HK_COLL_BARRIER)
				check(&systems[i], (enum hk_coll)coll);
}

static void check_bound(const struct hk__nccl_system *system, enum hk_coll coll)
{
	struct hk__nccl_prediction out;

	for (double bytes = 0; bytes <= 1e15; bytes = bytes > 0 ? bytes * 4 : 1)
		for (unsigned type = 0; type < HK_TYPE_COUNT; type++) {
			hk__nccl_predict(system, NULL, coll, bytes, (enum hk_type)type, &out);
			CHECK(isfinite(out.us) && out.us > 0);
			CHECK(out.us >= out.bound_us && out.bound_us >= 0);
			CHECK(out.choice.channels >= 1 && out.choice.channels <= 64);
			CHECK(out.limit != NULL);
		}
}

TEST(never_below_what_the_wires_allow)
{
	each(check_bound);
}

/*
 * More bytes take longer, but for where the choice changes: NCCL's are no better
 * than its model, and what it leaves may have been the slower one by far.
 */
static void check_growth(const struct hk__nccl_system *system, enum hk_coll coll)
{
	struct hk__nccl_prediction less, more;

	for (double bytes = 1; bytes <= 64 * GIB; bytes *= 2) {
		hk__nccl_predict(system, NULL, coll, bytes, HK_TYPE_FP32, &less);
		hk__nccl_predict(system, NULL, coll, 2 * bytes, HK_TYPE_FP32, &more);
		bool same = less.choice.algo == more.choice.algo &&
			    less.choice.proto == more.choice.proto &&
			    less.choice.channels == more.choice.channels;
		CHECK(!same || more.us >= less.us);
		CHECK(!same || more.us <= 2.05 * less.us);
	}
	CHECK(time_us(system, coll, GIB, HK_TYPE_FP32) >
	      time_us(system, coll, 16 * MIB, HK_TYPE_FP32));
}

TEST(more_bytes_take_longer)
{
	each(check_growth);
}

TEST(more_nodes_take_longer)
{
	const enum hk_coll colls[] = { HK_COLL_ALLREDUCE, HK_COLL_ALLGATHER, HK_COLL_ALLTOALL };

	for (size_t i = 0; i < 3; i++) {
		double last = 0;
		for (uint32_t nodes = 2; nodes <= 4096; nodes *= 2) {
			struct hk__nccl_system system =
				nodes_of(HK__NCCL_HOPPER, nodes, HK__NCCL_INFINIBAND, 8, 50);
			double us = time_us(&system, colls[i], KIB, HK_TYPE_FP32);
			CHECK(us > last);
			last = us;
		}
	}
}

/* ---- on fabrics ---- */

static struct hk_fabric *fabric_of(const char *spec)
{
	struct hk_fabric *fabric = NULL;
	struct hk_why why;

	if (hk_fabric_create(spec, NULL, &why, &fabric) != HK_OK)
		printf("%s: %s\n", spec, why.text);
	CHECK(fabric != NULL);
	return fabric;
}

static struct hk_sim_nccl_result ask(const struct hk_fabric *fabric, enum hk_coll coll, uint32_t n,
				     double bytes)
{
	struct hk_sim_nccl_call call = { coll, n, bytes, HK_TYPE_FP32 };
	struct hk_sim_nccl_result result = { .size = sizeof(result) };
	struct hk_why why;
	enum hk_status status = hk_sim_nccl(fabric, &call, &why, &result);

	if (status)
		printf("%s\n", why.text);
	CHECK_EQ(status, HK_OK);
	return result;
}

TEST(named_fabrics_are_known)
{
	static const char *const specs[] = { "dgx-a100:4",	"dgx-h100:4",
					     "dgx-h200:4",	"dgx-b200:4",
					     "gb200-nvl72:2",	"dgx-h100:4,net=ethernet",
					     "slingshot-a100:8" };

	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		struct hk_fabric *fabric = fabric_of(specs[i]);
		struct hk_fabric_info info = { .size = sizeof(info) };
		hk_fabric_describe(fabric, &info);
		struct hk_sim_nccl_result all = ask(fabric, HK_COLL_ALLREDUCE, info.ranks, GIB);
		struct hk_sim_nccl_result two = ask(fabric, HK_COLL_ALLREDUCE, 2, GIB);
		CHECK(all.time_ns > two.time_ns && two.time_ns > two.bound_ns);
		CHECK(all.busbw > all.algbw);
		CHECK(fabs(all.algbw - GIB / all.time_ns) < 1e-9 * all.algbw);
		hk_fabric_free(fabric);
	}
}

/* The same system, given by hand and by name. */
TEST(a_fabric_is_what_it_says)
{
	struct hk__nccl_system h100 = nodes_of(HK__NCCL_HOPPER, 4, HK__NCCL_INFINIBAND, 8, 50);
	struct hk_fabric *fabric = fabric_of("dgx-h100:4");

	for (double bytes = 8; bytes <= GIB; bytes *= 8)
		CHECK(fabs(ask(fabric, HK_COLL_ALLREDUCE, 32, bytes).time_ns /
				   (1000 * time_us(&h100, HK_COLL_ALLREDUCE, bytes, HK_TYPE_FP32)) -
			   1) < 1e-9);
	hk_fabric_free(fabric);
}

TEST(a_change_moves_what_it_should)
{
	struct hk_fabric *base = fabric_of("dgx-h100:4"), *nics = fabric_of("dgx-h100:4"),
			 *nvlink = fabric_of("dgx-h100:4");
	struct hk_why why;

	CHECK_EQ(hk_fabric_change(nics, "nic.bw=2x", &why), HK_OK);
	CHECK_EQ(hk_fabric_change(nvlink, "nvlink.bw=0.5x", &why), HK_OK);
	/* Faster NICs: large operations across nodes gain, those of a node do not notice. */
	CHECK(ask(nics, HK_COLL_ALLTOALL, 32, GIB).time_ns <
	      .6 * ask(base, HK_COLL_ALLTOALL, 32, GIB).time_ns);
	CHECK(ask(nics, HK_COLL_ALLREDUCE, 32, GIB).time_ns <
	      .9 * ask(base, HK_COLL_ALLREDUCE, 32, GIB).time_ns);
	CHECK_EQ(ask(nics, HK_COLL_ALLREDUCE, 8, GIB).time_ns,
		 ask(base, HK_COLL_ALLREDUCE, 8, GIB).time_ns);
	/* Slower NVLinks: a node's large operations take about twice as long, short ones not. */
	CHECK(ask(nvlink, HK_COLL_ALLGATHER, 8, GIB).time_ns >
	      1.8 * ask(base, HK_COLL_ALLGATHER, 8, GIB).time_ns);
	CHECK(ask(nvlink, HK_COLL_ALLREDUCE, 8, 8).time_ns <
	      1.05 * ask(base, HK_COLL_ALLREDUCE, 8, 8).time_ns);
	hk_fabric_free(base);
	hk_fabric_free(nics);
	hk_fabric_free(nvlink);
}

TEST(a_barrier_is_an_allreduce)
{
	struct hk_fabric *fabric = fabric_of("dgx-h100:1");

	CHECK_EQ(ask(fabric, HK_COLL_BARRIER, 8, 0).time_ns,
		 ask(fabric, HK_COLL_ALLREDUCE, 8, 4).time_ns);
	CHECK_EQ(ask(fabric, HK_COLL_BARRIER, 8, 0).algbw, 0);
	hk_fabric_free(fabric);
}

static void refused(const struct hk_fabric *fabric, uint32_t n, double bytes, const char *part)
{
	struct hk_sim_nccl_call call = { HK_COLL_ALLREDUCE, n, bytes, HK_TYPE_FP32 };
	struct hk_sim_nccl_result result = { .size = sizeof(result) };
	struct hk_why why;

	CHECK_EQ(hk_sim_nccl(fabric, &call, &why, &result), HK_EINVAL);
	if (!strstr(why.text, part))
		printf("'%s' does not say '%s'\n", why.text, part);
	CHECK(strstr(why.text, part) != NULL);
}

TEST(refuses)
{
	struct hk_fabric *gpus = fabric_of("dgx-h100:2"), *cpus = fabric_of("tcp-cluster:8");

	refused(gpus, 1, 8, "2 to 16 ranks");
	refused(gpus, 17, 8, "2 to 16 ranks");
	refused(gpus, 12, 8, "whole nodes");
	refused(gpus, 16, -1, "give 0 to 1e18");
	refused(gpus, 16, NAN, "give 0 to 1e18");
	refused(cpus, 8, 8, "GPUs with NVLink");
	hk_fabric_free(gpus);
	hk_fabric_free(cpus);
}
