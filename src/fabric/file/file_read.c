/* SPDX-License-Identifier: Apache-2.0 */
/* file_read.c - a fabric from its file: the whole, and its numbers. */
#include "fabric/file/file.h"

#include <errno.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- numbers ---- */

static const char *const link_keys[] = { "bw",	  "efficiency",	      "delay",
					 "wires", "oversubscription", "source",
					 NULL };
static const char *const wire_keys[] = { "send",       "recv",	      "flight",	   "send-byte",
					 "recv-byte",  "fresh-byte",  "cold-byte", "ahead-byte",
					 "kernel",     "gap",	      "overhead",  "slots",
					 "slot-bytes", "slice-bytes", "slices",	   "source",
					 NULL };
static const char *const device_keys[] = { "call",  "step",   "copy",	"reduce", "serial",
					   "cores", "switch", "source", NULL };

/* "[[0, 600 ns], [64 KiB, 1.9 us]]" */
static enum hk_status curve_read(struct hk__file *file, yaml_node_t *list,
				 const struct hk__constant *constant, struct hk__curve *curve)
{
	struct hk__yaml *yaml = &file->yaml;
	uint32_t n = hk__yaml_length(list);

	if (n > HK__POINTS_MAX)
		return hk__yaml_wrong(yaml, list, "expected up to %u points for %s, found %u",
				      HK__POINTS_MAX, constant->name, n);
	for (uint32_t i = 0; i < n; i++) {
		yaml_node_t *item = hk__yaml_item(yaml, list, i);
		yaml_node_t *x = hk__yaml_item(yaml, item, 0), *y = hk__yaml_item(yaml, item, 1);
		const char *bytes = hk__yaml_text(x), *value = hk__yaml_text(y);

		if (hk__yaml_length(item) != 2 || !bytes || !value ||
		    !hk__value_parse(bytes, "B", &curve->points[i].bytes) ||
		    !hk__value_parse(value, constant->unit, &curve->points[i].value))
			return hk__yaml_wrong(yaml, item,
					      "expected a point [BYTES, VALUE in %s] for %s",
					      constant->unit, constant->name);
	}
	curve->npoints = n;
	return HK_OK;
}

static enum hk_status constant_read(struct hk__file *file, const char *prefix, yaml_node_t *key,
				    yaml_node_t *value, const char *source)
{
	struct hk_fabric *fabric = file->fabric;
	struct hk__curve curve = { .npoints = 0 };
	char name[HK_WHY_MAX];
	enum hk_status status;
	double number;

	snprintf(name, sizeof(name), "%s.%s", prefix, hk__yaml_text(key));
	struct hk__constant *constant = hk__constant_find(fabric, name);
	if (!constant)
		return hk__yaml_wrong(&file->yaml, key,
				      "%.80s: this fabric has no such number here", name);
	if (value->type == YAML_SEQUENCE_NODE) {
		status = curve_read(file, value, constant, &curve);
		if (!status)
			status = hk__yaml_blame(&file->yaml, value,
						hk__constant_set_curve(fabric, constant, &curve,
								       source, file->yaml.why));
		return status;
	}
	const char *text = hk__yaml_text(value);
	if (!text || !hk__value_parse(text, constant->unit, &number))
		return hk__yaml_wrong(&file->yaml, value,
				      "expected a number%s%s%s for %s, found '%.40s'",
				      *constant->unit ? " of " : "", constant->unit,
				      constant->number == HK__NUMBER_CURVE ? ", or a list of points"
									   : "",
				      constant->name, text ? text : "a mapping");
	return hk__yaml_blame(&file->yaml, value,
			      hk__constant_set(fabric, constant, number, source, file->yaml.why));
}

/* All numbers of one link, wire or device. */
static enum hk_status block_read(struct hk__file *file, yaml_node_t *mapping, const char *prefix,
				 const char *const *keys)
{
	struct hk__yaml *yaml = &file->yaml;
	char source[HK__SOURCE_MAX];
	yaml_node_t *key, *value;

	snprintf(source, sizeof(source), "%.150s", yaml->name);
	enum hk_status status = hk__yaml_mapping(yaml, mapping, prefix, keys);
	if (!status)
		status = hk__yaml_string(yaml, mapping, "source", source, sizeof(source));
	for (uint32_t i = 0; !status && hk__yaml_pair(yaml, mapping, i, &key, &value); i++)
		if (strcmp(hk__yaml_text(key), "source") != 0)
			status = constant_read(file, prefix, key, value, source);
	return status;
}

static enum hk_status name_unknown(struct hk__file *file, yaml_node_t *key, const char *section,
				   const char *names)
{
	const char *text = hk__yaml_text(key);

	return hk__yaml_wrong(&file->yaml, key, "expected one of %s in %s, found '%.40s'",
			      *names ? names : "none", section, text ? text : "no name");
}

/* The i-th name that a section may have; NULL past the last. */
struct section {
	const char *name;
	const char *const *keys;
	const char *(*at)(const struct hk_fabric *fabric, uint32_t i, char text[40]);
};

static const char *device_at(const struct hk_fabric *fabric, uint32_t i, char text[40])
{
	(void)text;
	return i < fabric->ndevices ? fabric->devices[i].type : NULL;
}

static const char *wire_at(const struct hk_fabric *fabric, uint32_t i, char text[40])
{
	(void)text;
	return i < fabric->nwires ? fabric->wires[i].name : NULL;
}

static const char *link_at(const struct hk_fabric *fabric, uint32_t i, char text[40])
{
	if (i >= fabric->nkinds)
		return NULL;
	snprintf(text, 40, "%s", fabric->kinds[i].name);
	*strrchr(text, '.') = '\0';
	return text;
}

static const struct section sections[] = {
	{ "links", link_keys, link_at },
	{ "wires", wire_keys, wire_at },
	{ "devices", device_keys, device_at },
};

static enum hk_status section_read(struct hk__file *file, const struct section *section)
{
	struct hk__yaml *yaml = &file->yaml;
	yaml_node_t *mapping = hk__yaml_get(yaml, file->root, section->name), *key, *value;
	const char *names[HK__KINDS_MAX + 1] = { NULL };
	char texts[HK__KINDS_MAX][40];
	enum hk_status status;
	uint32_t n = 0;

	if (!mapping)
		return HK_OK;
	for (uint32_t i = 0; i < HK__KINDS_MAX; i++) {
		const char *name = section->at(file->fabric, i, texts[i]);

		if (!name)
			break;
		/* Both directions of a link have one name. */
		if (n == 0 || strcmp(names[n - 1], name) != 0)
			names[n++] = name;
	}
	status = hk__yaml_mapping(yaml, mapping, section->name, names);
	for (uint32_t i = 0; !status && hk__yaml_pair(yaml, mapping, i, &key, &value); i++) {
		const char *prefix = hk__yaml_text(key);

		if (section->at == device_at && file->fabric->ndevices == 1)
			prefix = "device";
		status = block_read(file, value, prefix, section->keys);
	}
	return status;
}

static enum hk_status sources_read(struct hk__file *file)
{
	struct hk__yaml *yaml = &file->yaml;
	yaml_node_t *mapping = hk__yaml_get(yaml, file->root, "sources"), *key, *value;

	if (mapping && mapping->type != YAML_MAPPING_NODE)
		return hk__yaml_wrong(yaml, mapping, "expected a mapping for sources");
	for (uint32_t i = 0; mapping && hk__yaml_pair(yaml, mapping, i, &key, &value); i++) {
		const char *name = hk__yaml_text(key);
		struct hk__constant *constant = name ? hk__constant_find(file->fabric, name) : NULL;

		if (!constant)
			return hk__yaml_wrong(yaml, key,
					      "expected the name of a constant, found '%.40s'",
					      name ? name : "no name");
		enum hk_status status = hk__yaml_string(yaml, mapping, name, constant->source,
							sizeof(constant->source));
		if (status)
			return status;
	}
	return HK_OK;
}

/* A speed is what nobody can assume. */
static enum hk_status speeds_check(struct hk__file *file)
{
	yaml_node_t *links = hk__yaml_get(&file->yaml, file->root, "links");
	char name[40];

	for (uint32_t i = 0; i < file->fabric->nkinds; i++)
		if (!(file->fabric->kinds[i].wire_speed > 0))
			return hk__yaml_wrong(&file->yaml, links ? links : file->root,
					      "expected a bw for %s in links, found none",
					      link_at(file->fabric, i, name));
	return HK_OK;
}

enum hk_status hk__file_constants(struct hk__file *file)
{
	enum hk_status status = HK_OK;

	for (size_t i = 0; i < COUNT(sections) && !status; i++)
		status = section_read(file, &sections[i]);
	if (!status)
		status = speeds_check(file);
	return status ? status : sources_read(file);
}

/* ---- names ---- */

static enum hk_status name_find(struct hk__file *file, yaml_node_t *mapping, const char *key,
				const struct section *section, uint32_t *index)
{
	yaml_node_t *node = hk__yaml_get(&file->yaml, mapping, key);
	const char *text = node ? hk__yaml_text(node) : NULL, *name;
	char list[256], buffer[40];
	struct hk__text out;

	if (!node)
		return HK_OK;
	hk__text_init(&out, list, sizeof(list));
	for (uint32_t i = 0; (name = section->at(file->fabric, i, buffer)); i++) {
		hk__text_add(&out, "%s%s", i ? ", " : "", name);
		if (text && strcmp(text, name) == 0) {
			*index = i;
			return HK_OK;
		}
	}
	return name_unknown(file, node, key, list);
}

enum hk_status hk__file_device(struct hk__file *file, yaml_node_t *mapping, const char *key,
			       uint32_t *index)
{
	return name_find(file, mapping, key, &sections[2], index);
}

enum hk_status hk__file_wire(struct hk__file *file, yaml_node_t *mapping, const char *key,
			     uint32_t *index)
{
	return name_find(file, mapping, key, &sections[1], index);
}

/* ---- what is known of the system ---- */

static enum hk_status can_read(struct hk__file *file)
{
	static const char *const names[] = { "reduce-node", "reduce-net", "multicast-node",
					     "multicast-net" };
	static const unsigned bits[] = { HK__CAN_REDUCE_NODE, HK__CAN_REDUCE_NET,
					 HK__CAN_MULTICAST_NODE, HK__CAN_MULTICAST_NET };
	yaml_node_t *list = hk__yaml_get(&file->yaml, file->root, "can");

	if (!list)
		return HK_OK;
	if (list->type != YAML_SEQUENCE_NODE)
		return hk__yaml_wrong(&file->yaml, list, "expected a list for can");
	file->fabric->can = 0;
	for (uint32_t i = 0; i < hk__yaml_length(list); i++) {
		yaml_node_t *item = hk__yaml_item(&file->yaml, list, i);
		const char *text = hk__yaml_text(item);
		unsigned bit = 0;

		for (size_t k = 0; k < COUNT(names); k++)
			if (text && strcmp(text, names[k]) == 0)
				bit = bits[k];
		if (!bit)
			return name_unknown(file, item, "can",
					    "reduce-node, reduce-net, multicast-node, "
					    "multicast-net");
		file->fabric->can |= bit;
	}
	return HK_OK;
}

static enum hk_status speed_read(struct hk__file *file, yaml_node_t *mapping, const char *key,
				 double *speed)
{
	yaml_node_t *node = hk__yaml_get(&file->yaml, mapping, key);
	const char *text = node ? hk__yaml_text(node) : NULL;

	if (node && (!text || !hk__value_parse(text, "GB/s", speed) || !(*speed >= 0)))
		return hk__yaml_wrong(&file->yaml, node, "expected a speed for %s, found '%.40s'",
				      key, text ? text : "no number");
	return HK_OK;
}

static enum hk_status gpu_read(struct hk__file *file)
{
	static const char *const keys[] = { "arch", "nvlink", "nvswitch", "nvls", "sharp", "nics",
					    "nic",  "net",    "cpu",	  "nccl", NULL };
	struct hk__yaml *yaml = &file->yaml;
	struct hk__gpu_system *gpu = &file->fabric->gpu;
	yaml_node_t *node = hk__yaml_get(yaml, file->root, "gpu");

	if (!node)
		return HK_OK;
	enum hk_status status = hk__yaml_mapping(yaml, node, "gpu", keys);
	if (!status)
		status = hk__yaml_name(yaml, node, "arch", gpu->arch, sizeof(gpu->arch));
	if (!status)
		status = speed_read(file, node, "nvlink", &gpu->nvlink_gbps);
	if (!status)
		status = hk__yaml_bool(yaml, node, "nvswitch", &gpu->nvswitch);
	if (!status)
		status = hk__yaml_bool(yaml, node, "nvls", &gpu->nvls);
	if (!status)
		status = hk__yaml_bool(yaml, node, "sharp", &gpu->sharp);
	if (!status)
		status = hk__yaml_count(yaml, node, "nics", 0, 4096, &gpu->nics);
	if (!status)
		status = speed_read(file, node, "nic", &gpu->nic_gbps);
	if (!status)
		status = hk__yaml_name(yaml, node, "net", gpu->net, sizeof(gpu->net));
	if (!status)
		status = hk__yaml_name(yaml, node, "cpu", gpu->cpu, sizeof(gpu->cpu));
	if (!status)
		status = hk__yaml_string(yaml, node, "nccl", gpu->nccl, sizeof(gpu->nccl));
	return status;
}

/* ---- the whole ---- */

static enum hk_status base_read(struct hk__file *file, yaml_node_t *base,
				const struct hk_alloc *alloc)
{
	const char *text = hk__yaml_text(base);
	yaml_node_t *other = hk__yaml_get(&file->yaml, file->root, "nodes");

	if (!other)
		other = hk__yaml_get(&file->yaml, file->root, "network");
	if (other)
		return hk__yaml_wrong(&file->yaml, other,
				      "expected no nodes and no network beside a base");
	if (!text)
		return hk__yaml_wrong(&file->yaml, base, "expected the name of a fabric for base");
	return hk__yaml_blame(&file->yaml, base,
			      hk__fabric_named(text, alloc, file->yaml.why, &file->fabric));
}

/* The names of devices and wires, before anything refers to them. */
static enum hk_status names_read(struct hk__file *file, const char *section)
{
	struct hk__yaml *yaml = &file->yaml;
	yaml_node_t *mapping = hk__yaml_get(yaml, file->root, section), *key, *value;
	enum hk_status status = HK_OK;
	uint32_t index;

	if (!mapping || mapping->type != YAML_MAPPING_NODE || !hk__yaml_length(mapping))
		return hk__yaml_wrong(yaml, mapping ? mapping : file->root,
				      "expected a mapping of names for %s, or a base", section);
	for (uint32_t i = 0; !status && hk__yaml_pair(yaml, mapping, i, &key, &value); i++) {
		const char *name = hk__yaml_text(key);

		if (!name || !hk__name_is_plain(name) || strlen(name) > 31)
			return hk__yaml_wrong(yaml, key,
					      "expected a name of up to 31 letters, digits, '-' "
					      "and '_' in %s",
					      section);
		status = section[0] == 'd'
				 ? hk__fabric_add_device(file->fabric, name, yaml->why, &index)
				 : hk__fabric_add_wire(file->fabric, name, yaml->why, &index);
		status = hk__yaml_blame(yaml, key, status);
	}
	return status;
}

static enum hk_status plain_read(struct hk__file *file, const struct hk_alloc *alloc)
{
	enum hk_status status = hk__fabric_create(alloc, file->yaml.why, &file->fabric);

	if (status)
		return status;
	snprintf(file->fabric->name, sizeof(file->fabric->name), "%.90s", file->yaml.name);
	status = names_read(file, "devices");
	if (!status)
		status = names_read(file, "wires");
	return status ? status : hk__file_network(file);
}

static enum hk_status root_read(struct hk__file *file, const struct hk_alloc *alloc)
{
	static const char *const keys[] = { "fabric",  "about", "base",	   "devices",
					    "wires",   "nodes", "network", "links",
					    "sources", "can",	"gpu",	   NULL };
	struct hk__yaml *yaml = &file->yaml;
	yaml_node_t *base;
	enum hk_status status = hk__yaml_mapping(yaml, file->root, "a fabric", keys);

	if (status)
		return status;
	base = hk__yaml_get(yaml, file->root, "base");
	status = base ? base_read(file, base, alloc) : plain_read(file, alloc);
	if (status)
		return status;
	struct hk_fabric *fabric = file->fabric;
	status = hk__yaml_string(yaml, file->root, "fabric", fabric->name, sizeof(fabric->name));
	if (!status)
		status = hk__yaml_string(yaml, file->root, "about", fabric->about,
					 sizeof(fabric->about));
	if (!status)
		status = hk__file_constants(file);
	if (!status)
		status = can_read(file);
	if (!status)
		status = gpu_read(file);
	if (!status && fabric->ops->ready)
		status = hk__yaml_blame(yaml, hk__yaml_get(yaml, file->root, "network"),
					fabric->ops->ready(fabric, yaml->why));
	return status;
}

static enum hk_status file_parse(const char *text, size_t len, const char *name, const char *folder,
				 const struct hk_alloc *alloc, struct hk_why *why,
				 struct hk_fabric **fabric_out)
{
	struct hk_why local = { "" };
	struct hk__file file = { .folder = folder };
	char plain[256];

	/* A path may be made of any bytes; messages and names are not. */
	snprintf(plain, sizeof(plain), "%s", name);
	for (char *c = plain; *c; c++)
		if (*c < 0x20 || *c == 0x7f)
			*c = '?';
	/* Reasons are passed on from deeper down, with a line put before them. */
	enum hk_status status = hk__yaml_open(&file.yaml, text, len, plain, why ? why : &local);

	if (status)
		return status;
	file.root = yaml_document_get_root_node(&file.yaml.document);
	status = root_read(&file, alloc);
	hk__yaml_close(&file.yaml);
	if (status) {
		hk_fabric_free(file.fabric);
		return status;
	}
	*fabric_out = file.fabric;
	return HK_OK;
}

enum hk_status hk_fabric_parse(const char *text, size_t len, const char *name,
			       const struct hk_alloc *alloc, struct hk_why *why,
			       struct hk_fabric **fabric_out)
{
	return file_parse(text, len, name, NULL, alloc, why, fabric_out);
}

enum hk_status hk__file_load(const char *path, size_t max, const struct hk_alloc *alloc,
			     struct hk_why *why, char **text_out, size_t *len_out)
{
	FILE *stream = fopen(path, "rb");
	size_t room = max + 1;

	if (!stream)
		return hk__why(why, HK_EIO, "cannot open %.200s: %s", path,
			       strerror(errno)); /* NOLINT(concurrency-mt-unsafe) */
	char *buffer = hk__mem_zalloc(alloc, room, 1);
	size_t len = buffer ? fread(buffer, 1, room, stream) : 0;
	bool failed = ferror(stream);
	fclose(stream);
	if (!buffer)
		return hk__why(why, HK_ENOMEM, "%.200s: out of memory", path);
	if (failed || len > max) {
		hk__mem_free(alloc, buffer, room, 1);
		return failed ? hk__why(why, HK_EIO, "cannot read %.200s", path)
			      : hk__why(why, HK_ELIMIT, "%.200s has more than %zu bytes", path,
					max);
	}
	*text_out = buffer;
	*len_out = len;
	return HK_OK;
}

enum hk_status hk__fabric_open_file(const char *path, const struct hk_alloc *alloc,
				    struct hk_why *why, struct hk_fabric **fabric_out)
{
	const char *slash = strrchr(path, '/');
	char folder[512], *text = NULL;
	size_t len = 0;

	if (!alloc)
		alloc = &hk__alloc_default;
	if (strlen(path) >= sizeof(folder))
		return hk__why(why, HK_EINVAL, "the path %.40s... is too long", path);
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path + 1) : 0, path);
	enum hk_status status = hk__file_load(path, HK_FABRIC_FILE_MAX, alloc, why, &text, &len);
	if (status)
		return status;
	status = file_parse(text, len, path, folder, alloc, why, fabric_out);
	hk__mem_free(alloc, text, HK_FABRIC_FILE_MAX + 1, 1);
	return status;
}
