/* SPDX-License-Identifier: Apache-2.0 */
/* samples_test.c - the plan files in test/plans: what is said of each. */
#include "harness.h"

#include <hocket/hocket.h>

/* A path from the folder this file lies in. */
static void sample_path(char *path, size_t size, const char *name)
{
	const char *end = strrchr(__FILE__, '/');

	snprintf(path, size, "%.*s%s", end ? (int)(end + 1 - __FILE__) : 0, __FILE__, name);
}

static void sample_slurp(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "r");

	CHECK(file);
	CHECK(fread(text, 1, size - 1, file) < size - 1);
	fclose(file);
}

static struct hk_plan *sample_read(const char *name, struct hk_why *why, enum hk_status *status_out)
{
	struct hk_plan *plan = NULL;
	char path[1024];

	sample_path(path, sizeof(path), name);
	*status_out = hk_plan_read(path, NULL, why, &plan);
	return plan;
}

TEST(samples_checked)
{
	static const struct {
		const char *name;
		enum hk_refusal refusal;
	} samples[] = {
		{ "../plans/allgather2-right.json", HK_REFUSAL_NONE },
		{ "../plans/allgather2-wrong-slot.json", HK_REFUSAL_RESULT },
		{ "../plans/allgather2-both-wait.json", HK_REFUSAL_PROGRESS },
	};

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		enum hk_status status;
		struct hk_why why = { "" };
		struct hk_check_report report = { .size = sizeof(report) };
		struct hk_plan *plan = sample_read(samples[i].name, &why, &status);

		if (status != HK_OK)
			test_fail(__FILE__, __LINE__, "%s", why.text);
		CHECK_EQ(hk_check(plan, NULL, &report),
			 samples[i].refusal == HK_REFUSAL_NONE ? HK_OK : HK_EREFUSED);
		CHECK_STR(hk_refusal_name(report.refusal), hk_refusal_name(samples[i].refusal));
		hk_plan_free(plan);
	}
}

TEST(samples_refused)
{
	static const struct {
		const char *name;
		enum hk_status status;
		const char *says;
	} samples[] = {
		{ "../plans/hostile-control.json", HK_ESYNTAX, "found \"\\u001B[31mred\\n\"" },
		{ "../plans/hostile-deep.json", HK_ESYNTAX,
		  ":1:2049: maximum parsing depth reached" },
		{ "../plans/hostile-empty.json", HK_ESYNTAX, "empty; expected a plan" },
		{ "../plans/hostile-not-utf8.json", HK_ESYNTAX,
		  ":3:45: unable to decode byte 0xff" },
		{ "../plans/hostile-nul.json", HK_ESYNTAX, ":3:46: a NUL byte: not text" },
		{ "../plans/hostile-part.json", HK_ESYNTAX, "programs for 1 of 2 ranks" },
		{ "../plans/hostile-parts.json", HK_ELIMIT,
		  "parts: expected a whole number from 1 to" },
		{ "../plans/hostile-peer.json", HK_ESYNTAX, "rank below 2, found [7, 0]" },
		{ "../plans/hostile-put.json", HK_ESYNTAX,
		  "put is one-sided, but the plan does not say whether signals are strong" },
		{ "../plans/hostile-rank-twice.json", HK_ESYNTAX, "rank 0 has a program already" },
		{ "../plans/hostile-ranks.json", HK_ESYNTAX, "programs for 2 of 16000000 ranks" },
		{ "../plans/hostile-truncated.json", HK_ESYNTAX, "expected near end of file" },
		{ "../plans/hostile-twice.json", HK_ESYNTAX, ":3:73: duplicate object key" },
	};

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		struct hk_why why = { "" };
		enum hk_status status;

		CHECK(!sample_read(samples[i].name, &why, &status));
		CHECK_STR(hk_status_name(status), hk_status_name(samples[i].status));
		CHECK_HAS(why.text, samples[i].says);
	}
}

/* The example of hocket-plan(5) is the file that is proved here. */
TEST(man_page_example)
{
	static char page[1 << 16], sample[1 << 12];
	struct hk_plan *plan = NULL;
	struct hk_why why = { "" };
	char path[1024];

	sample_path(path, sizeof(path), "../../man/hocket-plan.5");
	sample_slurp(path, page, sizeof(page));
	sample_path(path, sizeof(path), "../plans/allgather2-right.json");
	sample_slurp(path, sample, sizeof(sample));
	char *example = strstr(page, ".Bd -literal\n");
	CHECK(example);
	example += strlen(".Bd -literal\n");
	char *end = strstr(example, ".Ed\n");
	CHECK(end);
	*end = '\0';
	CHECK_STR(example, sample);
	CHECK_EQ(hk_plan_parse(example, strlen(example), "example", NULL, &why, &plan), HK_OK);
	CHECK_EQ(hk_check(plan, NULL,
			  &(struct hk_check_report){ .size = sizeof(struct hk_check_report) }),
		 HK_OK);
	hk_plan_free(plan);
}
