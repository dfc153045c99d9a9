/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_json.c - any bytes as a rank's record: read, or refused with one line.
 * What was read is written, read again, and written the same.
 */
#include <hocket/record.h>

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

static char *text_of(const struct hk_record *record, size_t *len_out)
{
	char *text = NULL;
	FILE *file = open_memstream(&text, len_out);

	fuzz_assert(file != NULL, "no memory");
	fuzz_assert(hk_record_print_json(record, file) == HK_OK, "it is not written");
	fuzz_assert(fclose(file) == 0, "it is not written to its end");
	return text;
}

/* Whatever it says, looking at all of it stays inside. */
static uint64_t look_through(const struct hk_record *record)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < record->rows; i++) {
		const struct hk_record_group *row = hk_record_row(record, i);

		fuzz_assert(row->rank < row->size, "a rank beyond its group");
		for (uint32_t e = 0; e < hk_record_entries(record, row); e++) {
			const struct hk_record_op *entry = hk_record_entry(record, row, e);

			fuzz_assert(entry->coll < HK_COLL_COUNT && entry->type < HK_TYPE_COUNT &&
					    entry->op < HK_REDOP_COUNT,
				    "a call that cannot be");
			sum += entry->bytes + strlen(entry->algo);
		}
		sum += strlen(row->why);
	}
	return sum + strlen(record->run) + strlen(record->host) + strlen(record->hosts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hk_record *record = NULL, *again = NULL;
	struct hk_why why = { "" };
	size_t len, len_again;

	if (hk_record_parse((const char *)data, size, NULL, &why, &record) != HK_OK) {
		fuzz_assert(why.text[0] != '\0', "no reason");
		return 0;
	}
	(void)look_through(record);
	char *text = text_of(record, &len);
	if (hk_record_parse(text, len, NULL, &why, &again) != HK_OK) {
		fprintf(stderr, "%s\n%s\n", why.text, text);
		abort();
	}
	char *text_again = text_of(again, &len_again);
	fuzz_assert(strcmp(text, text_again) == 0, "it is not read as it was written");
	free(text);
	free(text_again);
	hk_record_free(record);
	hk_record_free(again);
	return 0;
}
