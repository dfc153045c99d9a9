/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric_test.c - fabrics by name: what they are made of, which way messages take,
 * what their numbers are called, and what is refused.
 */
#include "fabric/topology.h"
#include "harness.h"

#include <math.h>

static struct hk_fabric *opened(const char *spec)
{
	struct hk_why why = { "" };
	struct hk_fabric *fabric;

	if (hk_fabric_create(spec, NULL, &why, &fabric) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s: %s", spec, why.text);
	return fabric;
}

/* The names of a path's links, with blanks between. */
static const char *path_text(const struct hk_fabric *fabric, uint32_t from, uint32_t to)
{
	static char text[4096];
	struct hk__path path;
	double delay = 0;

	text[0] = '\0';
	hk__fabric_path(fabric, from, to, &path);
	for (uint32_t i = 0; i < path.nlinks; i++) {
		const struct hk__link_kind *kind = hk__fabric_kind(fabric, path.links[i]);

		delay += kind->delay_ns;
		CHECK(kind->bytes_per_ns > 0);
		CHECK(kind->bytes_per_ns == hk__fabric_link_speed(fabric, path.links[i]));
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s:%llu",
			 i ? " " : "", kind->name,
			 (unsigned long long)(path.links[i] - kind->first));
	}
	CHECK(fabs(delay - path.delay_ns) < 1e-6);
	return text;
}

static double value_of(const struct hk_fabric *fabric, const char *name)
{
	struct hk_fabric_constant constant = { .size = sizeof(constant) };

	for (uint32_t i = 0; hk_fabric_constant(fabric, i, &constant); i++)
		if (strcmp(constant.name, name) == 0)
			return constant.value;
	test_fail(__FILE__, __LINE__, "no constant %s", name);
}

/* ---- paths ---- */

TEST(a_switch_has_two_links_a_path)
{
	struct hk_fabric *fabric = opened("switch:4,bw=25,delay=700");
	struct hk__path path;

	CHECK_STR(path_text(fabric, 1, 3), "device.out:1 device.in:3");
	CHECK_STR(path_text(fabric, 2, 2), "");
	hk__fabric_path(fabric, 0, 1, &path);
	CHECK(path.delay_ns == 700);
	CHECK(hk__fabric_link_speed(fabric, path.links[0]) == 25);
	hk_fabric_free(fabric);
}

TEST(rails_meet_above_their_leaves)
{
	struct hk_fabric *fabric = opened("dgx-h100:512");

	/* Inside; the same rail and leaf; another rail; another leaf; another pod. */
	CHECK_STR(path_text(fabric, 1, 6), "nvlink.out:1 nvlink.in:6");
	CHECK_STR(path_text(fabric, 3, 8 + 3), "pcie.out:3 nic.out:3 nic.in:11 pcie.in:11");
	CHECK_STR(path_text(fabric, 3, 8 + 4),
		  "pcie.out:3 nic.out:3 leaf.up:3 leaf.down:4 nic.in:12 pcie.in:12");
	CHECK_STR(path_text(fabric, 3, 32 * 8 + 3),
		  "pcie.out:3 nic.out:3 leaf.up:3 leaf.down:11 nic.in:259 pcie.in:259");
	CHECK_STR(path_text(fabric, 3, 128 * 8 + 3),
		  "pcie.out:3 nic.out:3 leaf.up:3 pod.up:0 pod.down:1 leaf.down:35 nic.in:1027 "
		  "pcie.in:1027");
	hk_fabric_free(fabric);
}

TEST(small_systems_have_one_switch)
{
	struct hk_fabric *fabric = opened("dgx-h100:8");

	CHECK_STR(path_text(fabric, 0, 63), "pcie.out:0 nic.out:0 nic.in:63 pcie.in:63");
	CHECK(!hk__constant_find(fabric, "leaf.bw"));
	hk_fabric_free(fabric);
}

TEST(two_devices_share_a_nic)
{
	struct hk_fabric *fabric = opened("slingshot-a100:64");

	CHECK_STR(path_text(fabric, 4, 7), "nvlink.link:19");
	CHECK_STR(path_text(fabric, 0, 5), "pcie.out:0 nic.out:0 nic.in:2 pcie.in:5");
	CHECK_STR(path_text(fabric, 1, 4), "pcie.out:1 nic.out:0 nic.in:2 pcie.in:4");
	CHECK_STR(path_text(fabric, 1, 6),
		  "pcie.out:1 nic.out:0 leaf.up:0 leaf.down:1 nic.in:3 pcie.in:6");
	hk_fabric_free(fabric);
}

TEST(hosts_share_memory_and_a_nic)
{
	struct hk_fabric *fabric = opened("tcp-cluster:4,ranks=3,leaf=2");
	struct hk__path path;

	CHECK_STR(path_text(fabric, 3, 5), "memory.link:1");
	CHECK_STR(path_text(fabric, 0, 5), "nic.out:0 nic.in:1");
	CHECK_STR(path_text(fabric, 0, 11), "nic.out:0 leaf.up:0 leaf.down:1 nic.in:3");
	hk__fabric_path(fabric, 0, 1, &path);
	CHECK_STR(fabric->wires[path.wire].name, "shm");
	hk__fabric_path(fabric, 0, 3, &path);
	CHECK_STR(fabric->wires[path.wire].name, "tcp");
	CHECK(hk__fabric_device(fabric, 0)->serial);
	hk_fabric_free(fabric);
}

TEST(a_torus_goes_the_shorter_way)
{
	struct hk_fabric *fabric = opened("torus:5x4");

	/* Links of a rank: x up, x down, y up, y down. */
	CHECK_STR(path_text(fabric, 0, 2), "torus.link:0 torus.link:4");
	CHECK_STR(path_text(fabric, 0, 4), "torus.link:1");
	CHECK_STR(path_text(fabric, 0, 10), "torus.link:2 torus.link:22");
	CHECK_STR(path_text(fabric, 0, 16), "torus.link:0 torus.link:7");
	hk_fabric_free(fabric);
}

TEST(a_dragonfly_takes_three_links_at_most)
{
	struct hk_fabric *fabric = opened("dragonfly:5x2x2");

	CHECK_STR(path_text(fabric, 0, 1), "device.out:0 device.in:1");
	CHECK_STR(path_text(fabric, 0, 3), "device.out:0 local.link:1 device.in:3");
	/* Groups 1 and 2 from router 0, 3 and 4 from router 1. */
	CHECK_STR(path_text(fabric, 0, 4), "device.out:0 global.link:1 local.link:6 device.in:4");
	CHECK_STR(path_text(fabric, 2, 6), "device.out:2 local.link:2 global.link:1 device.in:6");
	hk_fabric_free(fabric);
}

TEST(paths_of_large_fabrics_fit)
{
	struct hk_fabric *fabric = opened("torus:64x64x64");
	struct hk__path path;

	hk__fabric_path(fabric, 0, 32 + 64 * (32 + 64 * 32), &path);
	CHECK_EQ(path.nlinks, 96);
	hk_fabric_free(fabric);
	fabric = opened("dgx-h100:2097152");
	CHECK_EQ(fabric->ranks, 1 << 24);
	hk__fabric_path(fabric, 0, fabric->ranks - 1, &path);
	CHECK(path.links[path.nlinks - 1] < fabric->links);
	hk_fabric_free(fabric);
}

/* ---- ranks and links ---- */

TEST(ranks_have_places)
{
	struct hk_fabric *fabric = opened("dgx-b200:3");
	uint32_t node, local;
	struct hk_fabric_info info = { .size = sizeof(info) };

	hk__fabric_place(fabric, 21, &node, &local);
	CHECK_EQ(node, 2);
	CHECK_EQ(local, 5);
	CHECK_STR(hk__fabric_device(fabric, 21)->type, "b200");
	hk_fabric_describe(fabric, &info);
	CHECK_EQ(info.ranks, 24);
	CHECK_EQ(info.nodes, 3);
	CHECK_EQ(info.node_ranks, 8);
	CHECK_EQ(info.links, fabric->links);
	CHECK_STR(info.name, "dgx-b200:3");
	hk_fabric_free(fabric);
}

TEST(links_have_names)
{
	struct hk_fabric *fabric = opened("slingshot-a100:64");
	struct hk_why why = { "" };
	char text[96];
	uint64_t link;

	CHECK_EQ(hk__fabric_link_find(fabric, "nic.out:3", &why, &link), HK_OK);
	hk__fabric_link_name(fabric, link, text, sizeof(text));
	CHECK_STR(text, "nic.out of ranks 6 to 7");
	CHECK_EQ(hk__fabric_link_find(fabric, "pcie.in:255", &why, &link), HK_OK);
	hk__fabric_link_name(fabric, link, text, sizeof(text));
	CHECK_STR(text, "pcie.in of rank 255");
	CHECK_EQ(hk__fabric_link_find(fabric, "leaf.up:3", &why, &link), HK_OK);
	hk__fabric_link_name(fabric, link, text, sizeof(text));
	CHECK_STR(text, "leaf.up of ranks 128 to 255, rail 1");
	CHECK_EQ(hk__fabric_link_find(fabric, "nvlink.link:6", &why, &link), HK_OK);
	hk__fabric_link_name(fabric, link, text, sizeof(text));
	CHECK_STR(text, "nvlink.link of rank 1 to its number 2");
	CHECK_EQ(hk__fabric_link_find(fabric, "pcie.in:256", &why, &link), HK_EINVAL);
	CHECK_HAS(why.text, "expected pcie.in:0 to pcie.in:255");
	CHECK_EQ(hk__fabric_link_find(fabric, "pcie.in", &why, &link), HK_EINVAL);
	CHECK_EQ(hk__fabric_link_find(fabric, "pcie.in:-1", &why, &link), HK_EINVAL);
	CHECK_EQ(hk__fabric_link_find(fabric, "wing:1", &why, &link), HK_EINVAL);
	CHECK_HAS(why.text, "nvlink.link, pcie.out, pcie.in, nic.out, nic.in, leaf.up, leaf.down");
	hk_fabric_free(fabric);
}

/* ---- constants ---- */

TEST(every_constant_has_a_source)
{
	struct hk_fabric_name name = { .size = sizeof(name) };
	struct hk_fabric_constant constant = { .size = sizeof(constant) };
	char spec[64];

	for (uint32_t k = 0; hk_fabric_name_get(k, &name); k++) {
		const char *size = strcmp(name.name, "torus") == 0	 ? "4x4"
				   : strcmp(name.name, "dragonfly") == 0 ? "4x4x4"
									 : "300";

		snprintf(spec, sizeof(spec), "%s:%s", name.name, size);
		struct hk_fabric *fabric = opened(spec);
		for (uint32_t i = 0; hk_fabric_constant(fabric, i, &constant); i++) {
			CHECK(constant.source[0]);
			CHECK(strcmp(constant.source, "not given") != 0);
			CHECK(isfinite(constant.value) && constant.value >= 0);
			if (strcmp(constant.unit, "GB/s") == 0)
				CHECK(constant.value > 0);
		}
		hk_fabric_free(fabric);
	}
}

TEST(a_change_moves_both_directions)
{
	struct hk_fabric *fabric = opened("dgx-h100:300");
	uint64_t out, in, up;

	CHECK_EQ(hk__fabric_link_find(fabric, "nic.out:0", NULL, &out), HK_OK);
	CHECK_EQ(hk__fabric_link_find(fabric, "nic.in:0", NULL, &in), HK_OK);
	CHECK_EQ(hk__fabric_link_find(fabric, "leaf.up:0", NULL, &up), HK_OK);
	CHECK(fabs(hk__fabric_link_speed(fabric, out) - 47) < 1e-9);
	CHECK_EQ(hk_fabric_change(fabric, "nic.bw=2x", NULL), HK_OK);
	CHECK(fabs(hk__fabric_link_speed(fabric, out) - 94) < 1e-9);
	CHECK(fabs(hk__fabric_link_speed(fabric, in) - 94) < 1e-9);
	CHECK_EQ(hk_fabric_change(fabric, "nic.bw=400 Gb/s", NULL), HK_OK);
	CHECK(value_of(fabric, "nic.bw") == 50);
	CHECK_EQ(hk_fabric_change(fabric, "nic.delay=1 us", NULL), HK_OK);
	CHECK(hk__fabric_kind(fabric, in)->delay_ns == 1000);
	/* Twice the oversubscription: half of the wires. */
	CHECK_EQ(hk__fabric_kind(fabric, up)->width, 32);
	CHECK_EQ(hk_fabric_change(fabric, "leaf.oversubscription=2", NULL), HK_OK);
	CHECK_EQ(hk__fabric_kind(fabric, up)->width, 16);
	CHECK(fabs(hk__fabric_link_speed(fabric, up) - 16 * 47) < 1e-9);
	/* A curve is scaled, or becomes a constant. */
	CHECK_EQ(hk_fabric_change(fabric, "nvlink.flight=0.5x", NULL), HK_OK);
	CHECK(hk__curve_at(&fabric->wires[0].flight_ns, 1e9) == 1700);
	CHECK_EQ(hk_fabric_change(fabric, "nvlink.flight=250", NULL), HK_OK);
	CHECK(hk__curve_at(&fabric->wires[0].flight_ns, 1e9) == 250);
	CHECK_EQ(hk_fabric_change(fabric, "device.serial=true", NULL), HK_OK);
	CHECK(hk__fabric_device(fabric, 0)->serial);
	hk_fabric_free(fabric);
}

TEST(changes_that_cannot_be)
{
	static const char *const changes[][2] = {
		{ "nic.bw", "expected NAME=VALUE or NAME=FACTORx" },
		{ "=2x", "expected NAME=VALUE or NAME=FACTORx" },
		{ "wing.bw=2", "has no constant 'wing.bw'; it has nvlink.bw" },
		{ "nic.bw=", "expected a number of GB/s, or a factor as 2x" },
		{ "nic.bw=fast", "expected a number of GB/s" },
		{ "nic.bw=3 ns", "expected a number of GB/s" },
		{ "nic.bw=2xx", "expected a number of GB/s" },
		{ "nic.bw=nan", "expected a number of GB/s" },
		{ "nic.bw=-1", "nic.bw cannot be -1" },
		{ "nic.bw=0x", "nic.bw cannot be 0" },
		{ "nic.efficiency=1.5", "expected a number from 1e-09 to 1" },
		{ "nvlink.slots=2.5", "expected a whole number from 1" },
		{ "nvlink.flight=-1x", "nvlink.flight cannot be -600" },
	};
	struct hk_fabric *fabric = opened("dgx-h100:2");

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct hk_why why = { "" };

		CHECK_EQ(hk_fabric_change(fabric, changes[i][0], &why), HK_EINVAL);
		CHECK_HAS(why.text, changes[i][1]);
		CHECK_EQ(hk_fabric_change(fabric, changes[i][0], NULL), HK_EINVAL);
	}
	CHECK(value_of(fabric, "nic.bw") == 50);
	hk_fabric_free(fabric);
}

TEST(values_have_units)
{
	static const struct {
		const char *text, *unit;
		double value;
	} rows[] = {
		{ "400 Gb/s", "GB/s", 50 },  { "50GB/s", "GB/s", 50 },
		{ "50", "GB/s", 50 },	     { "100 Mb/s", "GB/s", 0.0125 },
		{ "1.5 us", "ns", 1500 },    { "2 ms", "ns", 2e6 },
		{ "256 KiB", "B", 262144 },  { "1 MB", "B", 1e6 },
		{ "8 GB/s", "ns/B", 0.125 }, { "94 %", "", 0.94 },
		{ "true", "", 1 },	     { "false", "", 0 },
		{ "1e3", "ns", 1000 },	     { ".5", "ns", 0.5 },
	};
	static const char *const wrong[] = { "",	 "x",	  "0x10", "nan", "inf", "1 2",
					     "3 Gb/s s", "1e999", "1 GB", "- 1", "true" };
	double value;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK(hk__value_parse(rows[i].text, rows[i].unit, &value));
		CHECK(fabs(value - rows[i].value) < 1e-12 * fabs(rows[i].value) + 1e-15);
	}
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(!hk__value_parse(wrong[i], "GB/s", &value));
}

/* ---- names that are refused ---- */

TEST(names_that_cannot_be)
{
	static const char *const specs[][2] = {
		{ "dgx-h100", "expected dgx-h100:NODES, as dgx-h100:128" },
		{ "dgx-h100:", "expected dgx-h100:NODES" },
		{ "dgx-h100:0", "expected dgx-h100:NODES" },
		{ "dgx-h100:8x8", "expected dgx-h100:NODES" },
		{ "dgx-h100:8z", "expected dgx-h100:NODES" },
		{ "dgx-h100:99999999999999999999", "expected dgx-h100:NODES" },
		{ "dgx-h100:8,wing=3", "no option 'wing'; dgx-h100 takes net=infiniband|ethernet" },
		{ "dgx-h100:8,net", "no option 'net'" },
		{ "dgx-h100:8,net=token-ring",
		  "expected net=infiniband|ethernet, found 'token-ring'" },
		{ "dgx-h100:8,leaf=x", "expected leaf=NUMBER from 1" },
		{ "switch:8,bw=-1", "expected bw=NUMBER from 1e-06 to 1e+06, found '-1'" },
		{ "torus:8x8x8x8x8x8x8", "expected torus:XxYxZ" },
		{ "dragonfly:3x3", "expected dragonfly:GROUPSxROUTERSxDEVICES" },
		{ "cray-1:4", "'cray-1' is not a fabric: expected one of dgx-a100:NODES" },
		{ "", "is not a fabric" },
	};
	struct hk_fabric *fabric = NULL;
	struct hk_why why;

	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		why.text[0] = '\0';
		CHECK_EQ(hk_fabric_create(specs[i][0], NULL, &why, &fabric), HK_EINVAL);
		CHECK_HAS(why.text, specs[i][1]);
		CHECK(!fabric);
	}
	CHECK_EQ(hk_fabric_create("dgx-h100:16777216", NULL, &why, &fabric), HK_ELIMIT);
	CHECK_EQ(hk_fabric_create("torus:1024x4", NULL, &why, &fabric), HK_ELIMIT);
	CHECK_EQ(hk_fabric_create("dragonfly:4096x4096x2", NULL, &why, &fabric), HK_ELIMIT);
	CHECK_EQ(hk_fabric_create("no/such/file", NULL, &why, &fabric), HK_EIO);
	CHECK_HAS(why.text, "cannot open no/such/file: No such file");
	CHECK(!fabric);
}

TEST(options_change_what_is_built)
{
	struct hk_fabric *fabric =
		opened("dgx-h100:64,net=ethernet,routing=hash,oversubscription=4");
	uint64_t up;

	CHECK_STR(fabric->gpu.net, "ethernet");
	CHECK_STR(fabric->wires[fabric->wire_net].name, "roce");
	CHECK_EQ(hk__fabric_link_find(fabric, "leaf.up:0", NULL, &up), HK_OK);
	CHECK_EQ(hk__fabric_kind(fabric, up)->routing, HK__ROUTE_HASH);
	CHECK_EQ(hk__fabric_kind(fabric, up)->width, 8);
	CHECK_EQ(fabric->can & HK__CAN_REDUCE_NET, 0);
	CHECK(fabric->gpu.nvls && fabric->gpu.nvswitch);
	hk_fabric_free(fabric);
	fabric = opened("DGX_A100:2");
	CHECK(!fabric->gpu.nvls);
	CHECK_STR(fabric->gpu.arch, "ampere");
	hk_fabric_free(fabric);
}

/* ---- this machine ---- */

TEST(this_machine)
{
	struct hk_fabric *fabric = opened("here");
	struct hk_fabric_info info = { .size = sizeof(info) };

	hk_fabric_describe(fabric, &info);
	CHECK(info.ranks >= 1);
	CHECK_EQ(info.nodes, 1);
	CHECK_HAS(info.about, "core");
	if (info.ranks > 1)
		CHECK(path_text(fabric, 0, info.ranks - 1)[0]);
	hk_fabric_free(fabric);
	hk_fabric_free(NULL);
}

/* More ranks than cores take turns on them, as in a group. */
TEST(this_machine_with_more_ranks)
{
	struct hk_fabric *fabric = opened("here"), *crowded;
	struct hk_why why;
	char spec[32];

	uint32_t cores = fabric->ranks;
	CHECK(!hk__fabric_cores_shared(fabric));
	if (strcmp(fabric->devices[0].type, "cpu") != 0)
		SKIP("its ranks are GPUs");
	snprintf(spec, sizeof(spec), "here:%u", 3 * cores);
	crowded = opened(spec);
	CHECK_EQ(crowded->ranks, 3 * cores);
	CHECK_EQ(crowded->nodes, 1);
	CHECK(hk__fabric_cores_shared(crowded));
	CHECK_EQ((uint32_t)crowded->devices[0].cores, cores);
	hk_fabric_free(crowded);
	hk_fabric_free(fabric);
	for (size_t i = 0; i < 5; i++) {
		static const char *const wrong[] = { "here:", "here:0", "here:-2", "here:8x",
						     "here:99999999999" };

		CHECK_EQ(hk_fabric_create(wrong[i], NULL, &why, &fabric), HK_EINVAL);
		CHECK_HAS(why.text, "here:RANKS takes 1 to");
	}
}
