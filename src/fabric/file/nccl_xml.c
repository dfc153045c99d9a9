/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_xml.c - a node's inside as NCCL's topology file has it.
 *
 * <system><cpu><pci link_speed link_width><gpu sm><nvlink target count tclass/>
 * and <nic><net speed/>: counted, with the speeds that NCCL gives them. What its
 * search makes of the tree (sockets, PCIe switches) is not looked at.
 */
#include "fabric/file/file.h"

#include <ctype.h>
#include <expat.h>
#include <stdlib.h>
#include <string.h>

#define XML_FILE_MAX (1u << 20)
#define XML_DEPTH_MAX 32u
#define XML_GPUS_MAX 1024u

struct gpu {
	uint32_t switched; /* NVLinks to switches */
	uint32_t paired;   /* and to other GPUs */
	uint32_t peers;	   /* GPUs it has links to */
	uint32_t least;	   /* links to the one with the fewest */
};

struct xml {
	XML_Parser parser;
	const struct hk_alloc *alloc;
	const char *name;
	struct hk_why *why;
	enum hk_status status;
	uint32_t depth;
	double pcie[XML_DEPTH_MAX]; /* the narrowest link from the root to here */
	struct hk__array gpus;
	bool in_gpu;
	struct hk__nccl_node node;
};

static void xml_stop(struct xml *xml, enum hk_status status, const char *what, const char *found)
{
	char plain[64];

	if (xml->status)
		return;
	/* What a file says may be anything; a message is one line. */
	snprintf(plain, sizeof(plain), "%s", found ? found : "");
	for (char *c = plain; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
	xml->status = hk__why(xml->why, status, "%.200s:%lu: %s%s%.60s%s", xml->name,
			      XML_GetCurrentLineNumber(xml->parser), what, found ? ", found '" : "",
			      plain, found ? "'" : "");
	XML_StopParser(xml->parser, XML_FALSE);
}

static const char *attribute(const char **attributes, const char *name)
{
	for (; attributes[0]; attributes += 2)
		if (strcmp(attributes[0], name) == 0)
			return attributes[1];
	return NULL;
}

/* A whole number; `otherwise` where there is no such attribute. */
static uint32_t number(struct xml *xml, const char **attributes, const char *name, uint32_t max,
		       uint32_t otherwise)
{
	const char *text = attribute(attributes, name);
	char *end, what[64];

	if (!text)
		return otherwise;
	unsigned long value = strtoul(text, &end, 10);
	if (end == text || *end || text[0] == '-' || value > max) {
		snprintf(what, sizeof(what), "expected %s of up to %u", name, max);
		xml_stop(xml, HK_ESYNTAX, what, text);
		return otherwise;
	}
	return (uint32_t)value;
}

/* "16.0 GT/s PCIe" and a width, as NCCL counts: 12 GB/s for 16 lanes of generation 3. */
static double pcie_speed(struct xml *xml, const char **attributes)
{
	static const struct {
		double gt, per_lane;
	} speeds[] = { { 2.5, 15 }, { 5, 30 }, { 8, 60 }, { 16, 120 }, { 32, 240 }, { 64, 480 } };
	const char *text = attribute(attributes, "link_speed");
	uint32_t width = number(xml, attributes, "link_width", 64, 0);
	double gt = text ? strtod(text, NULL) : 0;

	for (size_t i = 0; i < sizeof(speeds) / sizeof(speeds[0]); i++)
		if (gt == speeds[i].gt)
			return width * speeds[i].per_lane / 80;
	return 0;
}

static void pci_begin(struct xml *xml, const char **attributes)
{
	double above = xml->depth ? xml->pcie[xml->depth - 1] : 0;
	double speed = pcie_speed(xml, attributes);

	xml->pcie[xml->depth] = speed > 0 && (above == 0 || speed < above) ? speed : above;
}

static void gpu_begin(struct xml *xml, const char **attributes)
{
	double pcie = xml->depth ? xml->pcie[xml->depth - 1] : 0;
	uint32_t sm = number(xml, attributes, "sm", 999, 0);

	if (xml->gpus.count == XML_GPUS_MAX || !hk__array_push(&xml->gpus)) {
		xml_stop(xml, HK_ELIMIT, "expected fewer GPUs", NULL);
		return;
	}
	if (pcie > 0 && (xml->node.pcie == 0 || pcie < xml->node.pcie))
		xml->node.pcie = pcie;
	if (xml->gpus.count > 1 && sm != xml->node.sm)
		xml_stop(xml, HK_ESYNTAX, "expected GPUs of one kind", attribute(attributes, "sm"));
	xml->node.sm = sm;
	xml->in_gpu = true;
}

static void nvlink_begin(struct xml *xml, const char **attributes)
{
	uint32_t count = number(xml, attributes, "count", 1024, 0);
	const char *class = attribute(attributes, "tclass");

	if (!xml->in_gpu) {
		xml_stop(xml, HK_ESYNTAX, "expected nvlink inside gpu only", NULL);
		return;
	}
	struct gpu *gpu = hk__array_at(&xml->gpus, xml->gpus.count - 1);
	/* 0x0680: a bridge that is NVSwitch; 0x03: a GPU; a CPU's is not counted. */
	if (class && strncmp(class, "0x0680", 6) == 0) {
		gpu->switched += count;
	} else if (!class || strncmp(class, "0x03", 4) == 0) {
		gpu->paired += count;
		gpu->least = gpu->peers == 0 ? count : hk__min(gpu->least, count);
		gpu->peers++;
	}
}

static void net_begin(struct xml *xml, const char **attributes)
{
	/* NCCL takes what has no speed for 10 Gb/s. */
	double speed = number(xml, attributes, "speed", 100000000, 10000) / 8000.0;

	if (xml->node.nics == 0 || speed < xml->node.nic)
		xml->node.nic = speed;
	xml->node.nics++;
}

static void cpu_begin(struct xml *xml, const char **attributes)
{
	const char *vendor = attribute(attributes, "vendor"), *arch = attribute(attributes, "arch");
	const char *cpu = "";

	if (vendor && strcmp(vendor, "GenuineIntel") == 0)
		cpu = "intel";
	else if (vendor && strcmp(vendor, "AuthenticAMD") == 0)
		cpu = "amd";
	else if (arch && strcmp(arch, "arm64") == 0)
		cpu = "arm";
	snprintf(xml->node.cpu, sizeof(xml->node.cpu), "%s", cpu);
}

static void XMLCALL element_begin(void *ctx, const char *name, const char **attributes)
{
	struct xml *xml = ctx;

	if (xml->depth == XML_DEPTH_MAX) {
		xml_stop(xml, HK_ELIMIT, "expected fewer levels", name);
		return;
	}
	if (xml->depth == 0 && strcmp(name, "system") != 0) {
		xml_stop(xml, HK_ESYNTAX, "expected <system>", name);
		return;
	}
	xml->pcie[xml->depth] = xml->depth ? xml->pcie[xml->depth - 1] : 0;
	if (strcmp(name, "pci") == 0)
		pci_begin(xml, attributes);
	else if (strcmp(name, "gpu") == 0)
		gpu_begin(xml, attributes);
	else if (strcmp(name, "nvlink") == 0)
		nvlink_begin(xml, attributes);
	else if (strcmp(name, "net") == 0)
		net_begin(xml, attributes);
	else if (strcmp(name, "cpu") == 0)
		cpu_begin(xml, attributes);
	xml->depth++;
}

static void XMLCALL element_end(void *ctx, const char *name)
{
	struct xml *xml = ctx;

	if (strcmp(name, "gpu") == 0)
		xml->in_gpu = false;
	xml->depth--;
}

/* Nothing here needs entities, and they are how small files grow. */
static void XMLCALL doctype_begin(void *ctx, const char *name, const char *system,
				  const char *public, int inside)
{
	(void)system;
	(void)public;
	(void)inside;
	xml_stop(ctx, HK_ESYNTAX, "expected no DOCTYPE", name);
}

/* GB/s of one NVLink, as NCCL counts. */
static double nvlink_speed(uint32_t sm)
{
	static const struct {
		uint32_t sm;
		double speed;
	} links[] = { { 100, 40.1 }, { 90, 20.6 }, { 86, 12 }, { 70, 20 }, { 60, 18 } };

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		if (sm >= links[i].sm)
			return links[i].speed;
	return 20;
}

static enum hk_status xml_judge(struct xml *xml)
{
	struct hk__nccl_node *node = &xml->node;
	uint32_t n = (uint32_t)xml->gpus.count, switched = UINT32_MAX, least = UINT32_MAX;

	if (n == 0)
		return hk__why(xml->why, HK_ESYNTAX, "%.200s: expected a <gpu>, found none",
			       xml->name);
	bool paired = n > 1, linked = false;
	for (uint32_t i = 0; i < n; i++) {
		const struct gpu *gpu = hk__array_at(&xml->gpus, i);

		switched = hk__min(switched, gpu->switched);
		least = hk__min(least, gpu->least);
		paired &= gpu->peers == n - 1;
		linked |= gpu->switched > 0 || gpu->paired > 0;
	}
	node->gpus = n;
	node->inside = n == 1 ? HK__INSIDE_NONE : paired ? HK__INSIDE_PAIRS : HK__INSIDE_SWITCH;
	if (switched > 0)
		node->inside = HK__INSIDE_SWITCH;
	if (linked && switched == 0 && !paired && n > 1)
		return hk__why(
			xml->why, HK_EINVAL,
			"%.200s: expected NVLinks to switches or between all pairs; describe "
			"this node as a graph",
			xml->name);
	node->nvlink = nvlink_speed(node->sm) * (switched > 0 ? switched : paired ? least : 0);
	return HK_OK;
}

enum hk_status hk__nccl_topology_parse(const char *text, size_t len, const char *name,
				       const struct hk_alloc *alloc, struct hk_why *why,
				       struct hk__nccl_node *node_out)
{
	struct xml xml = { .alloc = alloc, .name = name, .why = why };

	if (len > XML_FILE_MAX)
		return hk__why(why, HK_ELIMIT, "%.200s has more than %u bytes", name, XML_FILE_MAX);
	xml.parser = XML_ParserCreate(NULL);
	if (!xml.parser)
		return hk__why(why, HK_ENOMEM, "%.200s: out of memory", name);
	hk__array_init(&xml.gpus, alloc, sizeof(struct gpu));
	XML_SetUserData(xml.parser, &xml);
	XML_SetElementHandler(xml.parser, element_begin, element_end);
	XML_SetStartDoctypeDeclHandler(xml.parser, doctype_begin);
	if (XML_Parse(xml.parser, text, (int)len, 1) != XML_STATUS_OK && !xml.status)
		xml.status =
			hk__why(why, HK_ESYNTAX, "%.200s:%lu: expected XML, found an error: %s",
				name, XML_GetCurrentLineNumber(xml.parser),
				XML_ErrorString(XML_GetErrorCode(xml.parser)));
	if (!xml.status)
		xml.status = xml_judge(&xml);
	XML_ParserFree(xml.parser);
	hk__array_fini(&xml.gpus);
	if (!xml.status)
		*node_out = xml.node;
	return xml.status;
}

enum hk_status hk__nccl_topology(const char *path, const struct hk_alloc *alloc, struct hk_why *why,
				 struct hk__nccl_node *node_out)
{
	size_t len = 0;
	char *text = NULL;
	enum hk_status status = hk__file_load(path, XML_FILE_MAX, alloc, why, &text, &len);

	if (status)
		return status;
	status = hk__nccl_topology_parse(text, len, path, alloc, why, node_out);
	hk__mem_free(alloc, text, XML_FILE_MAX + 1, 1);
	return status;
}
