/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_json.c - any bytes as a plan file. What is refused is refused with one
 * line; what is read can be shown in every way, checked, and written and read
 * again without a difference.
 */
#include <hocket/hocket.h>

#include <stdlib.h>
#include <string.h>

#define FUZZ_STEPS_MAX 20000u
#define FUZZ_SLOTS_MAX (1u << 16)

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
	fuzz_assert(status == HK_ESYNTAX || status == HK_ELIMIT || status == HK_ENOMEM,
		    "a status that reading does not have");
	fuzz_assert(why->text[0] != '\0', "no reason");
	for (const char *c = why->text; *c; c++)
		fuzz_assert((unsigned char)*c >= 0x20 && *c != 0x7f, "not one line of text");
}

/* Steps and slots, or more than is worth the time. */
static bool fuzz_is_small(const struct hk_plan *plan)
{
	struct hk_plan_info info = { .size = sizeof(info) };
	uint64_t nsteps = 0, nslots = 0;

	hk_plan_describe(plan, &info);
	for (uint32_t r = 0; r < info.nranks; r++) {
		for (uint32_t l = 0; l < hk_plan_lanes(plan, r); l++)
			nsteps += hk_plan_steps(plan, r, l);
		for (enum hk_buf buf = HK_BUF_IN; buf <= HK_BUF_SCRATCH; buf++)
			nslots += hk_plan_slots(plan, r, buf);
	}
	return nsteps <= FUZZ_STEPS_MAX && nslots <= FUZZ_SLOTS_MAX;
}

static char *fuzz_json(const struct hk_plan *plan, size_t *len_out)
{
	char *text = NULL;
	FILE *file = open_memstream(&text, len_out);

	fuzz_assert(file && hk_plan_print_json(plan, NULL, file, NULL) == HK_OK,
		    "cannot be written");
	fclose(file);
	return text;
}

static void fuzz_round_trip(const struct hk_plan *plan)
{
	struct hk_why why = { "" };
	struct hk_plan *again;
	size_t len, len_again;
	char *text = fuzz_json(plan, &len);

	if (hk_plan_parse(text, len, "again", NULL, &why, &again) != HK_OK)
		fuzz_assert(false, why.text);
	char *text_again = fuzz_json(again, &len_again);
	fuzz_assert(len == len_again && memcmp(text, text_again, len) == 0, "reads differently");
	hk_plan_free(again);
	free(text_again);
	free(text);
}

static void fuzz_show(const struct hk_plan *plan)
{
	struct hk_print_opts opts = HK_PRINT_OPTS_INIT;
	struct hk_why why = { "" };
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	fuzz_assert(file, "no stream");
	fuzz_assert(hk_plan_print_table(plan, NULL, file, NULL) == HK_OK, "no table");
	fuzz_assert(hk_plan_print_dot(plan, NULL, file, NULL) == HK_OK, "no graph");
	opts.one_rank = true;
	opts.rank = 0;
	fuzz_assert(hk_plan_print_dot(plan, &opts, file, NULL) == HK_OK, "no graph of a rank");
	enum hk_status status = hk_plan_print_picture(plan, NULL, file, &why);
	fuzz_assert(status == HK_OK || status == HK_ELIMIT, "no picture");
	fclose(file);
	free(text);
}

static void fuzz_check(const struct hk_plan *plan, bool inplace)
{
	struct hk_check_opts opts = HK_CHECK_OPTS_INIT;
	struct hk_check_report report = { .size = sizeof(report) };

	opts.inplace = inplace;
	enum hk_status status = hk_check(plan, &opts, &report);
	fuzz_assert(status == HK_OK || status == HK_EREFUSED || status == HK_ELIMIT ||
			    status == HK_ENOMEM,
		    "a status that a check does not have");
	fuzz_assert(status != HK_EREFUSED || report.why.text[0], "refused without a reason");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hk_why why = { "" };
	struct hk_plan *plan;
	enum hk_status status = hk_plan_parse((const char *)data, size, "fuzz", NULL, &why, &plan);

	if (status != HK_OK) {
		fuzz_refused(status, &why);
		return 0;
	}
	if (fuzz_is_small(plan)) {
		struct hk_plan_info info = { .size = sizeof(info) };

		hk_plan_describe(plan, &info);
		fuzz_round_trip(plan);
		fuzz_show(plan);
		fuzz_check(plan, false);
		if (info.inplace)
			fuzz_check(plan, true);
	}
	hk_plan_free(plan);
	return 0;
}
