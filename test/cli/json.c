/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - json FILE [PATH]: fails unless the file is one JSON document; prints
 * the value at a path such as results.0.size, or the length of a list.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const json_t *step(const json_t *at, const char *key)
{
	if (json_is_array(at))
		return json_array_get(at, (size_t)strtoul(key, NULL, 10));
	return json_object_get(at, key);
}

static int print(const json_t *value)
{
	if (json_is_array(value))
		return printf("%zu\n", json_array_size(value));
	char *text = json_dumps(value, JSON_ENCODE_ANY);
	if (!text)
		return -1;
	int written = puts(text);
	free(text);
	return written;
}

int main(int argc, char **argv)
{
	json_error_t error;
	char path[256];

	if (argc < 2)
		return 2;
	json_t *root = json_load_file(argv[1], JSON_REJECT_DUPLICATES, &error);
	if (!root) {
		fprintf(stderr, "%s:%d: %s\n", argv[1], error.line, error.text);
		return 1;
	}
	const json_t *at = root;
	snprintf(path, sizeof(path), "%s", argc > 2 ? argv[2] : "");
	for (char *save, *key = strtok_r(path, ".", &save); key && at;
	     key = strtok_r(NULL, ".", &save))
		at = step(at, key);
	if (!at)
		fprintf(stderr, "%s: there is no %s\n", argv[1], argv[2]);
	int status = !at || (argc > 2 && print(at) < 0);
	json_decref(root);
	return status;
}
