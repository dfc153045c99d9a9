/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fabric_yaml.c - any bytes as the file of a fabric. What is refused is refused
 * with one line; what is read has paths whose links exist, can be drawn, and is
 * written and read again without a difference.
 */
#include "fabric/fabric.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_assert(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

static void fuzz_refused(enum hk_status status, const struct hk_why *why)
{
	fuzz_assert(status == HK_ESYNTAX || status == HK_ELIMIT || status == HK_ENOMEM ||
			    status == HK_EINVAL,
		    "a status that reading does not have");
	fuzz_assert(why->text[0] != '\0', "no reason");
	for (const char *c = why->text; *c; c++)
		fuzz_assert((unsigned char)*c >= 0x20 && *c != 0x7f, "not one line of text");
}

typedef enum hk_status (*fuzz_print)(const struct hk_fabric *fabric, FILE *file,
				     struct hk_why *why);

static char *fuzz_text(const struct hk_fabric *fabric, fuzz_print print, size_t *len_out)
{
	char *text = NULL;
	FILE *file = open_memstream(&text, len_out);

	fuzz_assert(file && print(fabric, file, NULL) == HK_OK, "cannot be written");
	fclose(file);
	return text;
}

static void fuzz_round_trip(const struct hk_fabric *fabric)
{
	struct hk_why why = { "" };
	struct hk_fabric *again = NULL;
	size_t len, len_again;
	char *text = fuzz_text(fabric, hk_fabric_print_file, &len);

	if (hk_fabric_parse(text, len, "again", NULL, &why, &again) != HK_OK) {
		fprintf(stderr, "%s\n%s\n", why.text, text);
		fuzz_assert(false, "cannot be read back");
	}
	char *text_again = fuzz_text(again, hk_fabric_print_file, &len_again);
	fuzz_assert(strcmp(text, text_again) == 0, "reads back as another");
	free(text);
	free(text_again);
	hk_fabric_free(again);
}

static void fuzz_paths(const struct hk_fabric *fabric)
{
	struct hk__path path;
	char name[96];

	for (uint32_t i = 0; i < 64; i++) {
		uint32_t from = (uint32_t)((uint64_t)i * 2654435761u % fabric->ranks);
		uint32_t to = (uint32_t)((uint64_t)(i + 7) * 40503u % fabric->ranks);

		hk__fabric_path(fabric, from, to, &path);
		fuzz_assert(from == to || path.nlinks > 0, "a path of nothing");
		for (uint32_t k = 0; k < path.nlinks; k++) {
			fuzz_assert(path.links[k] < fabric->links, "a link that is none");
			fuzz_assert(hk__fabric_link_speed(fabric, path.links[k]) > 0, "no speed");
			hk__fabric_link_name(fabric, path.links[k], name, sizeof(name));
		}
	}
}

static void fuzz_alike(const struct hk_fabric *fabric)
{
	struct hk__symmetry symmetry;
	struct hk__path path;
	uint64_t class, size;

	for (int outer = HK__OUTER_NONE; outer <= HK__OUTER_XOR; outer++) {
		hk__fabric_symmetry(fabric, fabric->ranks, (enum hk__outer)outer, &symmetry);
		fuzz_assert(hk__fabric_allows(fabric, &symmetry), "offers what it does not allow");
		hk__fabric_path(fabric, 0, fabric->ranks - 1, &path);
		for (uint32_t k = 0; k < path.nlinks; k++) {
			hk__fabric_link_class(fabric, &symmetry, path.links[k], &class, &size);
			fuzz_assert(class < hk__fabric_link_classes(fabric, &symmetry),
				    "a class that is none");
			fuzz_assert(size > 0 && size <= fabric->links, "an impossible size");
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hk_why why = { "" };
	struct hk_fabric *fabric;
	enum hk_status status =
		hk_fabric_parse((const char *)data, size, "fuzz", NULL, &why, &fabric);
	size_t len;

	if (status != HK_OK) {
		fuzz_refused(status, &why);
		return 0;
	}
	free(fuzz_text(fabric, hk_fabric_print, &len));
	fuzz_round_trip(fabric);
	fuzz_paths(fabric);
	fuzz_alike(fabric);
	hk_fabric_free(fabric);
	return 0;
}
