/* SPDX-License-Identifier: Apache-2.0 */
/*
 * yaml.h - a YAML document, and questions whose failures name file and line.
 *
 * libyaml reads; this adds what a format needs: known keys, no key twice, values
 * of a kind, and "FILE:LINE: expected ..., found ..." where that is not so.
 */
#ifndef HK_FABRIC_FILE_YAML_H
#define HK_FABRIC_FILE_YAML_H

#include "fabric/topology.h"

#include <yaml.h>

struct hk__yaml {
	const char *name;		/* of the file, for messages */
	struct hk_why *why;
	yaml_document_t document;
};

enum hk_status hk__yaml_open(struct hk__yaml *yaml, const char *text, size_t len, const char *name,
			     struct hk_why *why);
void hk__yaml_close(struct hk__yaml *yaml);

/* "NAME:LINE: ..." and HK_ESYNTAX, for `return`. */
enum hk_status hk__yaml_wrong(struct hk__yaml *yaml, const yaml_node_t *node, const char *fmt, ...)
	HK_PRINTF(3, 4);
/* Puts "NAME:LINE: " before what why says, and returns status. */
enum hk_status hk__yaml_blame(struct hk__yaml *yaml, const yaml_node_t *node,
			      enum hk_status status);

/* The text of a scalar; NULL for anything else. Zero bytes end it early: see open. */
const char *hk__yaml_text(const yaml_node_t *node);

/* A mapping whose keys are among those of the list, which NULL ends; or HK_ESYNTAX. */
enum hk_status hk__yaml_mapping(struct hk__yaml *yaml, yaml_node_t *node, const char *what,
				const char *const *keys);
/* The value of a key, or NULL. */
yaml_node_t *hk__yaml_get(struct hk__yaml *yaml, yaml_node_t *mapping, const char *key);

/* The i-th pair of a mapping, or the i-th item of a list; false past the last. */
bool hk__yaml_pair(struct hk__yaml *yaml, yaml_node_t *mapping, uint32_t i, yaml_node_t **key_out,
		   yaml_node_t **value_out);
yaml_node_t *hk__yaml_item(struct hk__yaml *yaml, yaml_node_t *list, uint32_t i);
uint32_t hk__yaml_length(const yaml_node_t *node);

/* Values of keys; what a mapping has not stays as it was. */
enum hk_status hk__yaml_count(struct hk__yaml *yaml, yaml_node_t *mapping, const char *key,
			      uint32_t min, uint32_t max, uint32_t *value);
enum hk_status hk__yaml_bool(struct hk__yaml *yaml, yaml_node_t *mapping, const char *key,
			     bool *value);
/* One of a list of words, which NULL ends. */
enum hk_status hk__yaml_choice(struct hk__yaml *yaml, yaml_node_t *mapping, const char *key,
			       const char *const *choices, uint32_t *choice);
/* A text without line ends, cut at nothing: longer ones are refused. */
enum hk_status hk__yaml_string(struct hk__yaml *yaml, yaml_node_t *mapping, const char *key,
			       char *text, size_t size);
/* A name: letters, digits, '-', '_', and nothing else. */
enum hk_status hk__yaml_name(struct hk__yaml *yaml, yaml_node_t *mapping, const char *key,
			     char *text, size_t size);
bool hk__name_is_plain(const char *name);

#endif
