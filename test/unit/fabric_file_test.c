/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric_file_test.c - fabrics as files: what is written reads back the same, every
 * error names its line and what was expected, and no failure of memory leaks.
 */
#include "fabric/file/file.h"
#include "harness.h"

#include <dirent.h>

static struct hk_fabric *parsed(const char *text)
{
	struct hk_why why = { "" };
	struct hk_fabric *fabric;

	if (hk_fabric_parse(text, strlen(text), "F", NULL, &why, &fabric) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", why.text);
	return fabric;
}

static char *written(const struct hk_fabric *fabric)
{
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	CHECK(file);
	CHECK_EQ(hk_fabric_print_file(fabric, file, NULL), HK_OK);
	CHECK(fclose(file) == 0);
	return text;
}

/* All that a simulation sees of two fabrics is the same. */
static void check_same(const struct hk_fabric *a, const struct hk_fabric *b)
{
	struct hk__path p, q;
	struct hk_fabric_constant x = { .size = sizeof(x) }, y = { .size = sizeof(y) };

	CHECK_EQ(a->ranks, b->ranks);
	CHECK_EQ(a->nodes, b->nodes);
	CHECK_EQ(a->links, b->links);
	CHECK_EQ(a->can, b->can);
	CHECK_EQ(a->constants.count, b->constants.count);
	CHECK(memcmp(&a->gpu, &b->gpu, sizeof(a->gpu)) == 0);
	for (uint32_t i = 0; hk_fabric_constant(a, i, &x); i++) {
		CHECK(hk_fabric_constant(b, i, &y));
		CHECK_STR(x.name, y.name);
		CHECK(x.value == y.value);
		CHECK_STR(x.source, y.source);
	}
	for (uint32_t i = 0; i < a->nwires; i++)
		CHECK(memcmp(&a->wires[i], &b->wires[i], sizeof(a->wires[i])) == 0);
	for (uint32_t from = 0; from < a->ranks; from += 1 + a->ranks / 50)
		for (uint32_t to = 0; to < a->ranks; to += 1 + a->ranks / 50) {
			hk__fabric_path(a, from, to, &p);
			hk__fabric_path(b, from, to, &q);
			CHECK_EQ(p.nlinks, q.nlinks);
			CHECK_EQ(p.wire, q.wire);
			CHECK(p.delay_ns == q.delay_ns);
			CHECK(memcmp(p.links, q.links, p.nlinks * sizeof(p.links[0])) == 0);
		}
}

static void round_trip(const struct hk_fabric *fabric)
{
	char *first = written(fabric);
	struct hk_fabric *again = parsed(first);
	char *second = written(again);

	CHECK_STR(second, first);
	check_same(fabric, again);
	hk_fabric_free(again);
	free(first);
	free(second);
}

TEST(names_read_back)
{
	static const char *const specs[] = {
		"dgx-a100:30",
		"dgx-h100:1",
		"dgx-h100:300,net=ethernet,routing=hash",
		"dgx-h200:9",
		"dgx-b200:64",
		"gb200-nvl72:3",
		"slingshot-a100:70",
		"tcp-cluster:1",
		"tcp-cluster:9,ranks=3,leaf=2,net=100GbE",
		"switch:1",
		"switch:77,bw=3",
		"torus:5x4x3",
		"torus:7",
		"dragonfly:9x4x2",
		"here",
		"here:1",
	};

	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
		struct hk_fabric *fabric;

		CHECK_EQ(hk_fabric_create(specs[i], NULL, NULL, &fabric), HK_OK);
		round_trip(fabric);
		CHECK_EQ(hk_fabric_change(fabric,
					  fabric->nkinds
						  ? fabric->ranks > 1 && hk__constant_find(fabric,
											   "nic.bw")
							    ? "nic.bw=1.1x"
							    : "device.call=1.1x"
						  : "device.call=3",
					  NULL),
			 HK_OK);
		round_trip(fabric);
		hk_fabric_free(fabric);
	}
}

/* ---- the examples ---- */

static void example_path(char *path, size_t size, const char *name)
{
	const char *end = strrchr(__FILE__, '/');

	snprintf(path, size, "%.*s/../../fabrics/%s", end ? (int)(end - __FILE__) : 1,
		 end ? __FILE__ : ".", name);
}

TEST(examples_read_back)
{
	char path[1024];
	uint32_t count = 0;

	example_path(path, sizeof(path), "");
	DIR *folder = opendir(path);
	CHECK(folder);
	for (struct dirent *entry; (entry = readdir(folder));) {
		struct hk_why why = { "" };
		struct hk_fabric *fabric;

		if (!strstr(entry->d_name, ".yaml"))
			continue;
		example_path(path, sizeof(path), entry->d_name);
		if (hk_fabric_create(path, NULL, &why, &fabric) != HK_OK)
			test_fail(__FILE__, __LINE__, "%s", why.text);
		round_trip(fabric);
		hk_fabric_free(fabric);
		count++;
	}
	closedir(folder);
	CHECK(count >= 5);
}

static struct hk_fabric *example(const char *name)
{
	char path[1024];
	struct hk_why why = { "" };
	struct hk_fabric *fabric;

	example_path(path, sizeof(path), name);
	if (hk_fabric_create(path, NULL, &why, &fabric) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", why.text);
	return fabric;
}

static double speed(const struct hk_fabric *fabric, const char *name)
{
	struct hk_why why = { "" };
	uint64_t link;

	if (hk__fabric_link_find(fabric, name, &why, &link) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", why.text);
	return hk__fabric_link_speed(fabric, link);
}

TEST(a_base_is_changed)
{
	struct hk_fabric *fabric = example("older-network.yaml");

	CHECK_EQ(fabric->ranks, 512);
	CHECK(speed(fabric, "nic.out:0") == 25 * 0.94);
	CHECK(speed(fabric, "leaf.up:0") == 25 * 0.94 * 16);
	CHECK_STR(hk__constant_find(fabric, "nic.bw")->source,
		  "assumed: NICs of the generation before");
	hk_fabric_free(fabric);
}

TEST(curves_are_read)
{
	struct hk_fabric *fabric = example("cpu-node.yaml");
	const struct hk__wire *shm = &fabric->wires[0];

	CHECK(fabric->devices[0].serial);
	CHECK(hk__curve_at(&shm->send_ns, 0) == 40);
	CHECK(hk__curve_at(&shm->send_ns, 2048) == 50);
	CHECK(hk__curve_at(&shm->send_byte_ns, 1) == 0.05);
	CHECK(hk__curve_at(&fabric->wires[1].send_byte_ns, 1) == 0.125);
	hk_fabric_free(fabric);
}

TEST(kinds_of_nodes_are_mixed)
{
	struct hk_fabric *fabric = example("two-kinds.yaml");
	struct hk_fabric_info info = { .size = sizeof(info) };
	struct hk__path path;
	struct hk__symmetry s;

	hk_fabric_describe(fabric, &info);
	CHECK_EQ(info.ranks, 64);
	CHECK_EQ(info.node_ranks, 0);
	CHECK_STR(hk__fabric_device(fabric, 31)->type, "h100");
	CHECK_STR(hk__fabric_device(fabric, 32)->type, "a100");
	/* From the last big node to the first small one, which has another leaf. */
	hk__fabric_path(fabric, 31, 35, &path);
	CHECK_EQ(path.nlinks, 6);
	CHECK_STR(hk__fabric_kind(fabric, path.links[1])->name, "big.nic.out");
	CHECK_STR(hk__fabric_kind(fabric, path.links[2])->name, "leaf.up");
	CHECK_STR(hk__fabric_kind(fabric, path.links[4])->name, "small.nic.in");
	hk__fabric_symmetry(fabric, 64, HK__OUTER_SHIFT, &s);
	CHECK_EQ(s.outer, HK__OUTER_NONE);
	hk_fabric_free(fabric);
}

TEST(a_graph_finds_its_ways)
{
	struct hk_fabric *fabric = example("graph.yaml");
	struct hk__path path;

	hk__fabric_path(fabric, 0, 1, &path);
	CHECK_EQ(path.nlinks, 1);
	CHECK(path.delay_ns == 100);
	/* Not through right.1, although that would be shorter: it passes nothing on. */
	hk__fabric_path(fabric, 2, 4, &path);
	CHECK_EQ(path.nlinks, 3);
	CHECK(path.delay_ns == 6000);
	hk__fabric_path(fabric, 4, 2, &path);
	CHECK(path.delay_ns == 6000);
	hk_fabric_free(fabric);
}

/* ---- NCCL's topology ---- */

TEST(a_node_by_its_topology)
{
	struct hk_fabric *fabric = example("nccl-node.yaml");

	CHECK_EQ(fabric->ranks, 8);
	CHECK(speed(fabric, "nvlink.link:1") == 80);
	CHECK(speed(fabric, "pcie.out:0") == 24);
	CHECK(speed(fabric, "nic.out:7") == 25 * 0.94);
	CHECK_STR(fabric->gpu.arch, "ampere");
	CHECK_STR(fabric->gpu.cpu, "amd");
	CHECK_EQ(fabric->gpu.nics, 2);
	hk_fabric_free(fabric);
}

static enum hk_status topology(const char *text, struct hk__nccl_node *node, struct hk_why *why)
{
	return hk__nccl_topology_parse(text, strlen(text), "T", &hk__alloc_default, why, node);
}

TEST(topologies_with_switches_and_without_nvlink)
{
	struct hk__nccl_node node;
	struct hk_why why = { "" };

	CHECK_EQ(topology("<system version='1'><cpu vendor='GenuineIntel'>"
			  "<pci link_speed='32.0 GT/s PCIe' link_width='16'><gpu sm='90'>"
			  "<nvlink count='18' tclass='0x068000'/></gpu></pci>"
			  "<pci link_speed='32.0 GT/s PCIe' link_width='8'><gpu sm='90'>"
			  "<nvlink count='16' tclass='0x068000'/></gpu></pci>"
			  "<nic><net speed='400000'/><net/></nic></cpu></system>",
			  &node, &why),
		 HK_OK);
	CHECK_EQ(node.gpus, 2);
	CHECK_EQ(node.nics, 2);
	CHECK_EQ(node.inside, HK__INSIDE_SWITCH);
	CHECK(node.nvlink > 329 && node.nvlink < 330); /* 16 links of 20.6 */
	CHECK(node.pcie == 24);
	CHECK(node.nic == 1.25);
	CHECK_STR(node.cpu, "intel");
	CHECK_EQ(topology("<system><pci link_speed='16.0 GT/s PCIe' link_width='16'>"
			  "<gpu sm='86'/></pci><pci><gpu sm='86'/></pci></system>",
			  &node, &why),
		 HK_OK);
	CHECK_EQ(node.inside, HK__INSIDE_SWITCH);
	CHECK(node.nvlink == 0 && node.pcie == 24);
}

TEST(topologies_that_are_refused)
{
	static const struct {
		const char *text;
		enum hk_status status;
		const char *says;
	} rows[] = {
		{ "", HK_ESYNTAX, "T:1: expected XML, found an error: no element found" },
		{ "<system>\n<cpu>\n</system>", HK_ESYNTAX, "T:3: expected XML" },
		{ "<graphs/>", HK_ESYNTAX, "T:1: expected <system>, found 'graphs'" },
		{ "<system/>", HK_ESYNTAX, "T: expected a <gpu>, found none" },
		{ "<!DOCTYPE a [<!ENTITY b 'c'>]><system/>", HK_ESYNTAX, "expected no DOCTYPE" },
		{ "<system>\n<gpu sm='ninety'/></system>", HK_ESYNTAX,
		  "T:2: expected sm of up to 999, found 'ninety'" },
		{ "<system><gpu sm='90'/><gpu sm='80'/></system>", HK_ESYNTAX,
		  "expected GPUs of one kind" },
		{ "<system><nvlink count='2'/></system>", HK_ESYNTAX,
		  "expected nvlink inside gpu only" },
		{ "<system><gpu sm='70'><nvlink count='1' tclass='0x030200'/></gpu><gpu sm='70'/>"
		  "<gpu sm='70'/></system>",
		  HK_EINVAL, "expected NVLinks to switches or between all pairs" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hk__nccl_node node;
		struct hk_why why = { "" };

		CHECK_EQ(topology(rows[i].text, &node, &why), rows[i].status);
		CHECK_HAS(why.text, rows[i].says);
	}
}

/* ---- what is refused ---- */

#define REST "devices: {cpu: {}}\nwires: {shm: {}}\nnetwork: {kind: clos}\nlinks: {nic: {bw: 1}}\n"
#define NODES "nodes: {devices: 1, device: cpu}\n"

static const struct {
	const char *text;
	const char *says;
} refused[] = {
	{ "", "F:1: expected a fabric, found nothing" },
	{ "a: [1, 2\n", "F:2: expected YAML, found an error: did not find expected ',' or ']'" },
	{ "a: \"\\q\"", "F:1: expected YAML" },
	{ "\xff\xfe\x01", "F:1: expected YAML" },
	{ "- a\n", "F:1: expected a mapping for a fabric, found a list" },
	{ "fabric: a\nwings: 2\n",
	  "F:2: expected a key of a fabric (fabric, about, base, devices, wires, nodes, network, "
	  "links, sources, can, gpu), found 'wings'" },
	{ "fabric: a\nabout: b\nfabric: c\n", "F:3: expected each key once, found 'fabric' again" },
	{ "fabric: a\n---\nfabric: b\n", "F:3: expected the end of the file, found a second" },
	{ "fabric: a\n", "F:1: expected a mapping of names for devices, or a base" },
	{ "devices: {1a: {}}\n", "F:1: expected a name of up to 31 letters" },
	{ "devices: {cpu: {}}\n\nwires: 3\n", "F:3: expected a mapping of names for wires" },
	{ "base: cray-1:3\n", "F:1: 'cray-1' is not a fabric: expected one of dgx-a100:NODES" },
	{ "base: [a]\n", "F:1: expected the name of a fabric for base" },
	{ "base: switch:3\nnodes: {}\n", "F:2: expected no nodes and no network beside a base" },
	{ "base: switch:3\nlinks:\n  nic: {bw: 3}\n",
	  "F:3: expected a key of links (device), found 'nic'" },
	{ "base: switch:3\nlinks:\n  device: {bw: fast}\n",
	  "F:3: expected a number of GB/s for device.bw, found 'fast'" },
	{ "base: switch:3\nlinks:\n  device:\n    bw: 3 ns\n",
	  "F:4: expected a number of GB/s for device.bw, found '3 ns'" },
	{ "base: switch:3\nlinks:\n  device: {bw: -3}\n",
	  "F:3: device.bw cannot be -3: expected a number from 1e-09 to 1e+06 GB/s" },
	{ "base: switch:3\nlinks:\n  device: {speed: 3}\n",
	  "F:3: expected a key of device (bw, efficiency, delay, wires, oversubscription, source), "
	  "found 'speed'" },
	{ "base: switch:3\nlinks: {device: {wires: 3}}\n",
	  "F:2: device.wires: this fabric has no such number here" },
	{ "base: switch:3\nlinks: {device: 3}\n", "F:2: expected a mapping for device, found '3'" },
	{ "base: switch:3\nwires: {tcp: {}}\n",
	  "F:2: expected a key of wires (switch), found 'tcp'" },
	{ "base: switch:3\nwires: {switch: {flight: [[0]]}}\n",
	  "F:2: expected a point [BYTES, VALUE in ns] for switch.flight" },
	{ "base: switch:3\nwires: {switch: {flight: [[0, 1 GB/s]]}}\n", "F:2: expected a point" },
	{ "base: switch:3\nwires: {switch: {flight: [[8, 1], [8, 2]]}}\n",
	  "F:2: switch.flight: expected points in order of their bytes, found 8" },
	{ "base: switch:3\nwires: {switch: {gap: [[8, 1], [9, 2]]}}\n",
	  "F:2: switch.gap is one number: expected no list of points" },
	{ "base: switch:3\nwires: {switch: {slots: 1.5}}\n",
	  "F:2: switch.slots cannot be 1.5: expected a whole number from 1" },
	{ "base: switch:3\ndevices: {device: {cores: 1.5}}\n",
	  "F:2: device.cores cannot be 1.5: expected a whole number from 0" },
	{ "base: switch:3\ndevices: {device: {serial: maybe}}\n",
	  "F:2: expected a number for device.serial, found 'maybe'" },
	{ "base: switch:3\nsources: {wing.bw: me}\n",
	  "F:2: expected the name of a constant, found 'wing.bw'" },
	{ "base: switch:3\nsources: {device.bw: \"a\\nb\"}\n",
	  "F:2: expected a line of up to 159" },
	{ "base: switch:3\nsources: 3\n", "F:2: expected a mapping for sources" },
	{ "base: switch:3\nabout: \"a\\0b\"\n",
	  "F:2: expected a line of up to 159 bytes for about" },
	{ "base: switch:3\ncan: fly\n", "F:2: expected a list for can" },
	{ "base: switch:3\ncan: [fly]\n", "F:2: expected one of reduce-node, reduce-net" },
	{ "base: switch:3\ngpu: {arch: '4 legs'}\n", "F:2: expected a name for arch" },
	{ "base: switch:3\ngpu: {nics: 5000}\n",
	  "F:2: expected a whole number from 0 to 4096 for nics, found '5000'" },
	{ "base: switch:3\ngpu: {nvls: 1}\n", "F:2: expected one of false, true for nvls" },
	{ "base: switch:3\ngpu: {nvlink: -1}\n", "F:2: expected a speed for nvlink, found '-1'" },
	{ "devices: {cpu: {}}\nwires: {shm: {}}\n",
	  "F:1: expected a mapping for network, or a base" },
	{ "devices: {cpu: {}}\nwires: {shm: {}}\nnetwork: {kind: ring}\n",
	  "F:3: expected one of clos, torus, dragonfly, graph for kind, found 'ring'" },
	{ REST, "F:1: expected nodes, or a base" },
	{ REST "nodes: []\n", "F:5: expected 1 to 8 kinds of nodes, found 0" },
	{ REST "nodes: {wheels: 4}\n", "F:5: expected a key of nodes (name, count, devices" },
	{ REST "nodes: {device: gpu}\n", "F:5: expected one of cpu in device, found 'gpu'" },
	{ REST "nodes: {count: 16777216, devices: 2, inside: memory}\n",
	  "F:5: 16777216 nodes of 2 devices: a fabric has 1 to 16777216 devices" },
	{ REST "nodes: {devices: 2}\n", "F:3: nodes of 2 devices need links inside" },
	{ REST "nodes: {devices: 4, inside: memory, nics: 3}\n",
	  "F:3: 3 NICs for 4 devices of a node: one number must divide the other" },
	{ REST "nodes: {devices: 4, inside: memory, link: nic}\n",
	  "F:3: two kinds of links are called nic: expected a name for each" },
	{ REST "nodes: {devices: 4, inside: magic}\n",
	  "F:5: expected one of none, switch, pairs, memory for inside, found 'magic'" },
	{ REST "nodes: {devices: 2, inside: memory}\n",
	  "F:4: expected a bw for link in links, found none" },
	{ REST "nodes: {nccl-topology: a.xml}\n",
	  "F:5: expected no nccl-topology in a text that is not a file" },
	{ "devices: {cpu: {}}\nwires: {shm: {}}\nnetwork: {pod-nodes: 3, leaf-nodes: 2}\n" NODES,
	  "F:3: a pod of 3 nodes is not made of leaves of 2" },
	{ "devices: {cpu: {}}\nwires: {shm: {}}\nnetwork: {wire: tcp}\n" NODES,
	  "F:3: expected one of shm in wire, found 'tcp'" },
	{ "devices: {cpu: {}}\nwires: {shm: {}}\nnetwork: {kind: torus}\n",
	  "F:3: expected dimensions: a list of 1 to 6 numbers" },
	{ "devices: {cpu: {}}\nwires: {shm: {}}\nnetwork: {kind: torus, dimensions: [2, x]}\n",
	  "F:3: expected dimensions" },
	{ "devices: {cpu: {}}\nwires: {shm: {}}\nnetwork: {kind: torus, dimensions: [900, 900]}\n",
	  "F:3: a torus has up to 16777216 devices, and paths of up to 96 links" },
	{ "devices: {cpu: {}}\nwires: {shm: {}}\nnetwork: {kind: dragonfly, groups: 3}\n",
	  "F:3: expected groups, routers and devices" },
};

static void check_one_line(const char *text)
{
	CHECK(text[0] != '\0');
	for (const char *c = text; *c; c++)
		CHECK((unsigned char)*c >= 0x20 && *c != 0x7f);
}

TEST(errors_line_by_line)
{
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct hk_fabric *fabric = NULL;
		struct hk_why why = { "" };
		size_t len = strlen(refused[i].text);
		enum hk_status status =
			hk_fabric_parse(refused[i].text, len, "F", NULL, &why, &fabric);

		if (status == HK_OK)
			test_fail(__FILE__, __LINE__, "taken: %s", refused[i].text);
		CHECK_HAS(why.text, refused[i].says);
		check_one_line(why.text);
		CHECK(!fabric);
		CHECK_EQ(hk_fabric_parse(refused[i].text, len, "F", NULL, NULL, &fabric), status);
	}
}

#define GRAPH(switches, items) \
	"devices: {gpu: {}}\nwires: {net: {}}\nnodes: [{name: a, devices: 2}]\n" \
	"links: {cable: {bw: 1 GB/s}}\nnetwork:\n  kind: graph\n  switches: " switches "\n" \
	"  links:\n" items

TEST(graphs_that_are_refused)
{
	static const char *const rows[][2] = {
		{ GRAPH("1", "  - [a.0, switch0]\n"), "F:9: expected a link as [FROM, TO, KIND]" },
		{ GRAPH("1", "  - [a.0, switch1, cable]\n"), "F:9: expected a device (deviceRANK" },
		{ GRAPH("1", "  - [a.2, switch0, cable]\n"), "F:9: expected a device" },
		{ GRAPH("1", "  - [a.0, switch0, wire]\n"),
		  "F:9: expected a kind that links: describes, found 'wire'" },
		{ GRAPH("1", "  - [a.0, a.0, cable]\n"), "F:9: expected two ends" },
		{ GRAPH("1", "  - [a.0, switch0, cable]\n"),
		  "F:6: F: no path leads from device 1 to device 0" },
		{ GRAPH("[3s]", "  - [a.0, a.1, cable]\n"), "F:7: expected the name of a switch" },
		{ GRAPH("70000", "  - [a.0, a.1, cable]\n"), "F:7: expected a whole number" },
	};
	struct hk_fabric *fabric = NULL;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hk_why why = { "" };

		CHECK(hk_fabric_parse(rows[i][0], strlen(rows[i][0]), "F", NULL, &why, &fabric));
		CHECK_HAS(why.text, rows[i][1]);
	}
	fabric = parsed(GRAPH("1", "  - [a.0, switch0, cable]\n  - [switch0, device1, cable]\n"));
	round_trip(fabric);
	hk_fabric_free(fabric);
}

TEST(files_that_are_too_large)
{
	size_t len = HK_FABRIC_FILE_MAX + 1;
	char *text = malloc(len);
	struct hk_why why = { "" };
	struct hk_fabric *fabric;

	CHECK(text);
	memset(text, ' ', len);
	CHECK_EQ(hk_fabric_parse(text, len, "F", NULL, &why, &fabric), HK_ELIMIT);
	free(text);
	CHECK_EQ(hk_fabric_create("/dev/zero", NULL, &why, &fabric), HK_ELIMIT);
	CHECK_HAS(why.text, "/dev/zero has more than 4194304 bytes");
}

/* ---- no memory ---- */

struct counted {
	struct hk_alloc alloc;
	size_t calls, fail_at, bytes;
};

static void *counted_resize(void *ctx, void *ptr, size_t size_old, size_t size_new)
{
	struct counted *counted = ctx;

	CHECK((ptr == NULL) == (size_old == 0));
	if (size_new && ++counted->calls >= counted->fail_at && counted->fail_at)
		return NULL;
	CHECK(counted->bytes >= size_old);
	counted->bytes += size_new - size_old;
	if (size_new)
		return realloc(ptr, size_new);
	free(ptr);
	return NULL;
}

TEST(every_allocation_fails_once)
{
	static const char *const names[] = { "graph.yaml", "two-kinds.yaml",  "nccl-node.yaml",
					     "torus:3x3",  "dragonfly:3x2x2", "dgx-h100:300",
					     "here" };
	char path[1024];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		enum hk_status status = HK_ENOMEM;

		example_path(path, sizeof(path), names[i]);
		for (size_t fail_at = 1; status != HK_OK; fail_at++) {
			struct counted counted = { .fail_at = fail_at };
			struct hk_why why = { "" };
			struct hk_fabric *fabric = NULL;

			counted.alloc = (struct hk_alloc){ counted_resize, &counted };
			status = hk_fabric_create(strstr(names[i], ".yaml") ? path : names[i],
						  &counted.alloc, &why, &fabric);
			if (status != HK_OK) {
				CHECK(status == HK_ENOMEM || status == HK_ELIMIT);
				check_one_line(why.text);
			}
			hk_fabric_free(fabric);
			CHECK_EQ(counted.bytes, 0);
		}
	}
}
