/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.c - a YAML document, and questions whose failures name file and line. */
#include "fabric/file/yaml.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static unsigned yaml_line(const yaml_node_t *node)
{
	return node ? (unsigned)node->start_mark.line + 1 : 1;
}

enum hk_status hk__yaml_wrong(struct hk__yaml *yaml, const yaml_node_t *node, const char *fmt, ...)
{
	char text[HK_WHY_MAX];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	/* What a file says may be anything; a message is one line. */
	for (char *c = text; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = '?';
	return hk__why(yaml->why, HK_ESYNTAX, "%.200s:%u: %.500s", yaml->name, yaml_line(node),
		       text);
}

enum hk_status hk__yaml_blame(struct hk__yaml *yaml, const yaml_node_t *node, enum hk_status status)
{
	char text[HK_WHY_MAX];

	if (!yaml->why || status == HK_OK)
		return status;
	snprintf(text, sizeof(text), "%s", yaml->why->text);
	hk__yaml_wrong(yaml, node, "%s", text);
	return status;
}

/* ---- reading ---- */

static enum hk_status parser_wrong(const yaml_parser_t *parser, const char *name,
				   struct hk_why *why)
{
	if (parser->error == YAML_MEMORY_ERROR)
		return hk__why(why, HK_ENOMEM, "%.200s: out of memory", name);
	/* The reader counts bytes, not lines. */
	size_t line =
		parser->error == YAML_READER_ERROR ? parser->mark.line : parser->problem_mark.line;
	return hk__why(why, HK_ESYNTAX, "%.200s:%zu: expected YAML, found an error: %s%s%s", name,
		       line + 1, parser->problem ? parser->problem : "unreadable",
		       parser->context ? " " : "", parser->context ? parser->context : "");
}

enum hk_status hk__yaml_open(struct hk__yaml *yaml, const char *text, size_t len, const char *name,
			     struct hk_why *why)
{
	yaml_parser_t parser;
	yaml_document_t more;
	enum hk_status status = HK_OK;

	*yaml = (struct hk__yaml){ .name = name, .why = why };
	if (len > HK_FABRIC_FILE_MAX)
		return hk__why(why, HK_ELIMIT, "%.200s: %zu bytes, and a fabric has up to %u", name,
			       len, HK_FABRIC_FILE_MAX);
	if (!yaml_parser_initialize(&parser))
		return hk__why(why, HK_ENOMEM, "%.200s: out of memory", name);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
	if (!yaml_parser_load(&parser, &yaml->document)) {
		status = parser_wrong(&parser, name, why);
		yaml_parser_delete(&parser);
		return status;
	}
	if (!yaml_parser_load(&parser, &more)) {
		status = parser_wrong(&parser, name, why);
	} else {
		if (yaml_document_get_root_node(&more))
			status = hk__yaml_wrong(yaml, yaml_document_get_root_node(&more),
						"expected the end of the file, found a second "
						"document");
		yaml_document_delete(&more);
	}
	yaml_parser_delete(&parser);
	if (!status && !yaml_document_get_root_node(&yaml->document))
		status = hk__yaml_wrong(yaml, NULL, "expected a fabric, found nothing");
	if (status)
		yaml_document_delete(&yaml->document);
	return status;
}

void hk__yaml_close(struct hk__yaml *yaml)
{
	yaml_document_delete(&yaml->document);
}

/* ---- asking ---- */

const char *hk__yaml_text(const yaml_node_t *node)
{
	/* A zero byte would hide what is behind it. */
	if (!node || node->type != YAML_SCALAR_NODE ||
	    memchr(node->data.scalar.value, 0, node->data.scalar.length))
		return NULL;
	return (const char *)node->data.scalar.value;
}

static const char *yaml_found(const yaml_node_t *node, char found[64])
{
	const char *text = hk__yaml_text(node);

	if (text)
		snprintf(found, 64, "'%.40s%s'", text, strlen(text) > 40 ? "..." : "");
	else
		snprintf(found, 64, "%s",
			 node->type == YAML_MAPPING_NODE    ? "a mapping"
			 : node->type == YAML_SEQUENCE_NODE ? "a list"
							    : "unreadable text");
	return found;
}

yaml_node_t *hk__yaml_item(struct hk__yaml *yaml, yaml_node_t *list, uint32_t i)
{
	if (list->type != YAML_SEQUENCE_NODE || i >= hk__yaml_length(list))
		return NULL;
	return yaml_document_get_node(&yaml->document, list->data.sequence.items.start[i]);
}

uint32_t hk__yaml_length(const yaml_node_t *node)
{
	if (node->type == YAML_SEQUENCE_NODE)
		return (uint32_t)(node->data.sequence.items.top - node->data.sequence.items.start);
	if (node->type == YAML_MAPPING_NODE)
		return (uint32_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
	return 0;
}

bool hk__yaml_pair(struct hk__yaml *yaml, yaml_node_t *mapping, uint32_t i, yaml_node_t **key_out,
		   yaml_node_t **value_out)
{
	if (mapping->type != YAML_MAPPING_NODE || i >= hk__yaml_length(mapping))
		return false;
	*key_out =
		yaml_document_get_node(&yaml->document, mapping->data.mapping.pairs.start[i].key);
	*value_out =
		yaml_document_get_node(&yaml->document, mapping->data.mapping.pairs.start[i].value);
	return true;
}

yaml_node_t *hk__yaml_get(struct hk__yaml *yaml, yaml_node_t *mapping, const char *key)
{
	yaml_node_t *at, *value;

	for (uint32_t i = 0; hk__yaml_pair(yaml, mapping, i, &at, &value); i++) {
		const char *text = hk__yaml_text(at);

		if (text && strcmp(text, key) == 0)
			return value;
	}
	return NULL;
}

static enum hk_status key_check(struct hk__yaml *yaml, yaml_node_t *key, const char *what,
				const char *const *keys)
{
	const char *text = hk__yaml_text(key);
	char list[400], found[64];
	struct hk__text out;

	hk__text_init(&out, list, sizeof(list));
	for (uint32_t k = 0; keys[k]; k++) {
		hk__text_add(&out, "%s%s", k ? ", " : "", keys[k]);
		if (text && strcmp(text, keys[k]) == 0)
			return HK_OK;
	}
	return hk__yaml_wrong(yaml, key, "expected a key of %s (%s), found %s", what, list,
			      yaml_found(key, found));
}

enum hk_status hk__yaml_mapping(struct hk__yaml *yaml, yaml_node_t *node, const char *what,
				const char *const *keys)
{
	yaml_node_t *key, *value, *other;
	enum hk_status status;
	char found[64];

	if (node->type != YAML_MAPPING_NODE)
		return hk__yaml_wrong(yaml, node, "expected a mapping for %s, found %s", what,
				      yaml_found(node, found));
	for (uint32_t i = 0; hk__yaml_pair(yaml, node, i, &key, &value); i++) {
		status = key_check(yaml, key, what, keys);
		if (status)
			return status;
		for (uint32_t k = 0; k < i; k++)
			if (hk__yaml_pair(yaml, node, k, &other, &value) &&
			    strcmp(hk__yaml_text(other), hk__yaml_text(key)) == 0)
				return hk__yaml_wrong(yaml, key,
						      "expected each key once, found %s again",
						      yaml_found(key, found));
	}
	return HK_OK;
}

/* ---- values of keys ---- */

enum hk_status hk__yaml_count(struct hk__yaml *yaml, yaml_node_t *mapping, const char *key,
			      uint32_t min, uint32_t max, uint32_t *value)
{
	yaml_node_t *node = hk__yaml_get(yaml, mapping, key);
	char found[64], *end = NULL;

	if (!node)
		return HK_OK;
	const char *text = hk__yaml_text(node);
	unsigned long long number =
		text && isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
	if (!end || *end || number < min || number > max)
		return hk__yaml_wrong(yaml, node,
				      "expected a whole number from %u to %u for %s, found %s", min,
				      max, key, yaml_found(node, found));
	*value = (uint32_t)number;
	return HK_OK;
}

enum hk_status hk__yaml_choice(struct hk__yaml *yaml, yaml_node_t *mapping, const char *key,
			       const char *const *choices, uint32_t *choice)
{
	yaml_node_t *node = hk__yaml_get(yaml, mapping, key);
	char list[256], found[64];
	struct hk__text out;

	if (!node)
		return HK_OK;
	const char *text = hk__yaml_text(node);
	hk__text_init(&out, list, sizeof(list));
	for (uint32_t i = 0; choices[i]; i++) {
		hk__text_add(&out, "%s%s", i ? ", " : "", choices[i]);
		if (text && strcmp(text, choices[i]) == 0) {
			*choice = i;
			return HK_OK;
		}
	}
	return hk__yaml_wrong(yaml, node, "expected one of %s for %s, found %s", list, key,
			      yaml_found(node, found));
}

enum hk_status hk__yaml_bool(struct hk__yaml *yaml, yaml_node_t *mapping, const char *key,
			     bool *value)
{
	static const char *const choices[] = { "false", "true", NULL };
	uint32_t choice = *value;
	enum hk_status status = hk__yaml_choice(yaml, mapping, key, choices, &choice);

	*value = choice;
	return status;
}

enum hk_status hk__yaml_string(struct hk__yaml *yaml, yaml_node_t *mapping, const char *key,
			       char *text, size_t size)
{
	yaml_node_t *node = hk__yaml_get(yaml, mapping, key);
	char found[64];

	if (!node)
		return HK_OK;
	const char *value = hk__yaml_text(node);
	bool plain = value && strlen(value) < size;
	for (const char *c = value; plain && *c; c++)
		plain = !iscntrl((unsigned char)*c);
	if (!plain)
		return hk__yaml_wrong(yaml, node,
				      "expected a line of up to %zu bytes for %s, found %s",
				      size - 1, key, yaml_found(node, found));
	snprintf(text, size, "%s", value);
	return HK_OK;
}

bool hk__name_is_plain(const char *name)
{
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && *c != '-' && *c != '_')
			return false;
	return isalpha((unsigned char)*name);
}

enum hk_status hk__yaml_name(struct hk__yaml *yaml, yaml_node_t *mapping, const char *key,
			     char *text, size_t size)
{
	yaml_node_t *node = hk__yaml_get(yaml, mapping, key);
	char found[64];

	if (!node)
		return HK_OK;
	const char *value = hk__yaml_text(node);
	if (!value || strlen(value) >= size || !hk__name_is_plain(value))
		return hk__yaml_wrong(yaml, node,
				      "expected a name for %s: up to %zu letters, digits, '-' and "
				      "'_', a letter first; found %s",
				      key, size - 1, yaml_found(node, found));
	snprintf(text, size, "%s", value);
	return HK_OK;
}
