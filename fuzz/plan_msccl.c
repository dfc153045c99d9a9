/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan_msccl.c - any bytes as MSCCL XML. What is refused is refused with one
 * line; what is read can be checked, and what can be written as such XML again
 * is read again, and says as many messages.
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

/* Steps, and slots, or more than is worth the time. */
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

static enum hk_status fuzz_check(const struct hk_plan *plan, uint64_t *messages_out)
{
	struct hk_check_opts opts = HK_CHECK_OPTS_INIT;
	struct hk_check_report report = { .size = sizeof(report) };
	enum hk_status status = hk_check(plan, &opts, &report);

	fuzz_assert(status == HK_OK || status == HK_EREFUSED || status == HK_ELIMIT ||
			    status == HK_ENOMEM,
		    "a status that a check does not have");
	fuzz_assert(status != HK_EREFUSED || report.why.text[0], "refused without a reason");
	*messages_out = report.cost.messages;
	return status;
}

/* A plan that was proved is still proved after it was written and read. */
static void fuzz_round_trip(const struct hk_plan *plan, enum hk_status proved, uint64_t messages)
{
	struct hk_why why = { "" };
	struct hk_plan *again;
	uint64_t messages_again = 0;
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	fuzz_assert(file, "no stream");
	enum hk_status status = hk_plan_print_msccl(plan, file, &why);
	fclose(file);
	fuzz_assert(status == HK_OK || status == HK_EINVAL || status == HK_ELIMIT,
		    "a status that writing does not have");
	if (status == HK_OK && proved == HK_OK) {
		if (hk_plan_parse(text, len, "again", NULL, &why, &again) != HK_OK)
			fuzz_assert(false, why.text);
		fuzz_assert(fuzz_check(again, &messages_again) == HK_OK, "no longer proved");
		fuzz_assert(messages == messages_again, "other messages");
		hk_plan_free(again);
	}
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hk_why why = { "" };
	struct hk_plan *plan;

	if (size == 0 || data[0] != '<')
		return -1; /* another reader's */
	enum hk_status status = hk_plan_parse((const char *)data, size, "fuzz", NULL, &why, &plan);
	if (status != HK_OK) {
		fuzz_refused(status, &why);
		return 0;
	}
	if (fuzz_is_small(plan)) {
		uint64_t messages;
		enum hk_status proved = fuzz_check(plan, &messages);

		fuzz_round_trip(plan, proved, messages);
	}
	hk_plan_free(plan);
	return 0;
}
