/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_test.c - plans as JSON: written and read again they are the same bytes;
 * every malformed text is refused with one line that says where; no failure of
 * memory or of a stream goes unnoticed or leaks.
 */
#include "harness.h"
#include "naive/each.h"

#include <hocket/hocket.h>

#include <jansson.h>
#include <unistd.h>

/* ---- helpers ---- */

static char *json_text(const struct hk_plan *plan, const struct hk_print_opts *opts)
{
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	CHECK(file);
	CHECK_EQ(hk_plan_print_json(plan, opts, file, NULL), HK_OK);
	CHECK(fclose(file) == 0);
	return text;
}

static struct hk_plan *json_create(enum hk_coll coll, const char *algo, uint32_t n)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk_why why = { "" };
	struct hk_plan *plan;

	opts.algo = algo;
	if (hk_plan_create(coll, n, &opts, &why, &plan) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", why.text);
	return plan;
}

static void check_one_line(const char *text)
{
	CHECK(text[0] != '\0');
	CHECK(strlen(text) < HK_WHY_MAX);
	for (const char *c = text; *c; c++)
		CHECK((unsigned char)*c >= 0x20 && *c != 0x7f);
}

/* The text is refused so, and the plan is not touched. */
static void check_refused(const char *text, size_t len, enum hk_status status, const char *says)
{
	struct hk_plan *plan = (struct hk_plan *)&plan, *before = plan;
	struct hk_why why = { "" };

	CHECK_STR(hk_status_name(hk_plan_parse(text, len, "NAME", NULL, &why, &plan)),
		  hk_status_name(status));
	CHECK_HAS(why.text, says);
	check_one_line(why.text);
	CHECK(plan == before);
	/* The reason is optional. */
	CHECK_EQ(hk_plan_parse(text, len, "NAME", NULL, NULL, &plan), status);
}

/* ---- there and back ---- */

static void check_same(const struct hk_plan *plan, void *ctx)
{
	char *text = json_text(plan, NULL);
	struct hk_why why = { "" };
	struct hk_plan *read;

	(void)ctx;
	if (hk_plan_parse(text, strlen(text), "text", NULL, &why, &read) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s: %s", each_name(plan), why.text);
	char *again = json_text(read, NULL);
	if (strcmp(text, again) != 0)
		test_fail(__FILE__, __LINE__, "%s: reads differently", each_name(plan));
	free(again);
	free(text);
	hk_plan_free(read);
}

TEST(round_trip)
{
	struct each_opts opts = { .n_min = 1, .n_max = 9, .roots = EACH_ROOT_MANY, .batches = 4 };
	uint32_t count = 0;

	for (unsigned coll = 0; coll < HK_COLL_COUNT; coll++)
		count += each_plan((enum hk_coll)coll, &opts, check_same, NULL);
	CHECK(count > 500);
}

/* The same numbers, asked for one by one. */
TEST(read_plan_is_the_plan)
{
	struct hk_plan *plan = json_create(HK_COLL_ALLREDUCE, "double-tree", 7);
	char *text = json_text(plan, NULL);
	struct hk_plan_info info = { .size = sizeof(info) }, info_read = info;
	struct hk_step step, step_read;
	struct hk_plan *read;

	CHECK_EQ(hk_plan_parse(text, strlen(text), "text", NULL, NULL, &read), HK_OK);
	hk_plan_describe(plan, &info);
	hk_plan_describe(read, &info_read);
	CHECK_EQ(info.coll, info_read.coll);
	CHECK_STR(info.algo, info_read.algo);
	CHECK_EQ(info.nranks, info_read.nranks);
	CHECK_EQ(info.parts, info_read.parts);
	CHECK_EQ(info.slots, info_read.slots);
	CHECK_EQ(info.inplace, info_read.inplace);
	for (uint32_t r = 0; r < 7; r++) {
		CHECK_EQ(hk_plan_lanes(plan, r), hk_plan_lanes(read, r));
		for (uint32_t l = 0; l < hk_plan_lanes(plan, r); l++) {
			CHECK_EQ(hk_plan_steps(plan, r, l), hk_plan_steps(read, r, l));
			for (uint32_t i = 0; i < hk_plan_steps(plan, r, l); i++) {
				hk_plan_step(plan, r, l, i, &step);
				hk_plan_step(read, r, l, i, &step_read);
				CHECK(memcmp(&step, &step_read, sizeof(step)) == 0);
			}
		}
	}
	free(text);
	hk_plan_free(read);
	hk_plan_free(plan);
}

/* Blanks and the order of fields mean nothing. */
TEST(layout_is_free)
{
	static const char text[] =
		"\r\n{\"programs\":[{\"lanes\":[[{\"dst\":[\"out\",0],\"op\":\"copy\",\t"
		"\"count\":1,\"src\":[\"in\",0,1,5]}]],\"scratch\":0,\"rank\":0}],\"nodes\":1,"
		"\"inplace\":true,\"slots\":64,\"parts\":1,\"ranks\":1,"
		"\"algorithm\":\"A-z_0.9+\",\"collective\":\"allreduce\",\"hocket_plan\":1}  ";
	struct hk_why why = { "" };
	struct hk_plan *plan;

	if (hk_plan_parse(text, strlen(text), "text", NULL, &why, &plan) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", why.text);
	check_same(plan, NULL);
	hk_plan_free(plan);
}

TEST(one_rank_is_part_of_a_plan)
{
	struct hk_plan *plan = json_create(HK_COLL_ALLREDUCE, "ring", 4);
	struct hk_print_opts opts = HK_PRINT_OPTS_INIT;

	opts.one_rank = true;
	opts.rank = 2;
	char *text = json_text(plan, &opts);
	CHECK_HAS(text, "{\"rank\": 2,");
	check_refused(text, strlen(text), HK_ESYNTAX, "NAME: programs for 1 of 4 ranks: this is");
	free(text);
	hk_plan_free(plan);
}

/* ---- malformed ---- */

static const char json_good[] =
	"{\n"
	"  \"hocket_plan\": 1,\n"
	"  \"collective\": \"allreduce\", \"algorithm\": \"mine\", \"ranks\": 2,\n"
	"  \"parts\": 2,\n"
	"  \"slots\": 1, \"inplace\": true,\n"
	"  \"programs\": [\n"
	"    {\"rank\": 0, \"scratch\": 2, \"lanes\": [\n"
	"      [\n"
	"        {\"op\": \"send\", \"to\": [1, 0], \"src\": [\"in\", 0], \"count\": 2},\n"
	"        {\"op\": \"recv\", \"from\": [1, 0], \"dst\": [\"out\", 0, 1, 1], \"count\": 2}\n"
	"      ]\n"
	"    ]},\n"
	"    {\"rank\": 1, \"scratch\": 0, \"lanes\": [\n"
	"      [\n"
	"        {\"op\": \"recv-reduce-send\", \"from\": [0, 0], \"to\": [0, 0], "
	"\"src\": [\"in\", 0], \"dst\": [\"out\", 0], \"count\": 2},\n"
	"        {\"op\": \"nop\", \"after\": [0, 0]}\n"
	"      ]\n"
	"    ]}\n"
	"  ]\n"
	"}\n";

/* What of the good plan is replaced by what, and what is then said. */
struct bad {
	const char *was;
	const char *is;
	enum hk_status status;
	const char *says;
};

static const struct bad json_bad[] = {
	/* not JSON */
	{ "{\n  \"hocket", "\n  \"hocket", HK_ESYNTAX, "NAME:2:" },
	{ "\"ranks\": 2,", "\"ranks\": 2", HK_ESYNTAX, "NAME:4:9: '}' expected near '\"parts\"'" },
	{ "\"ranks\": 2,", "\"ranks\": 02,", HK_ESYNTAX, "NAME:3:" },
	{ "\"ranks\": 2,", "\"ranks\": NaN,", HK_ESYNTAX, "NAME:3:" },
	{ "\"ranks\": 2,", "\"ranks\": 1e999,", HK_ESYNTAX, "NAME:3:" },
	{ "\"ranks\": 2,", "\"ranks\": 99999999999999999999,", HK_ESYNTAX, "too big integer" },
	{ "\"mine\"", "\"mi\nne\"", HK_ESYNTAX, "NAME:3:" },
	{ "\"mine\"", "\"mi\x1b[31mne\"", HK_ESYNTAX, "NAME:3:" },
	{ "\"mine\"", "\"mi\xffne\"", HK_ESYNTAX, "unable to decode byte 0xff" },
	{ "\"mine\"", "\"mi\xed\xa0\x80ne\"", HK_ESYNTAX, "unable to decode byte 0xed" },
	{ "\"mine\"", "\"mi\\u0000ne\"", HK_ESYNTAX, "\\u0000 is not allowed" },
	{ "\"mine\"", "\"mi\\ud800ne\"", HK_ESYNTAX, "invalid Unicode" },
	{ "}\n  ]\n}\n", "}\n  ]\n} {}\n", HK_ESYNTAX, "end of file expected near '{'" },
	{ "}\n  ]\n}\n", "}\n  ]\n", HK_ESYNTAX, "expected near end of file" },
	{ "\"parts\": 2,", "\"parts\": 2, \"parts\": 2,", HK_ESYNTAX,
	  "NAME:4:21: duplicate object key" },
	{ "\"to\": [1, 0]", "\"to\": [1, 0], \"to\": [1, 0]", HK_ESYNTAX, "duplicate object key" },

	/* not a plan */
	{ "\"hocket_plan\": 1,\n", "", HK_ESYNTAX,
	  "NAME: not a plan: no object with a field 'hocket_plan'" },
	{ "\"hocket_plan\": 1,", "\"hocket_plan\": 2,", HK_ESYNTAX,
	  "NAME: hocket_plan: expected 1, the version of the format that is known, found 2" },
	{ "\"hocket_plan\": 1,", "\"hocket_plan\": \"1\",", HK_ESYNTAX, "found \"1\"" },
	{ "\"hocket_plan\": 1,", "\"hocket_plan\": 1.0,", HK_ESYNTAX, "found 1.0" },
	{ "\"hocket_plan\": 1,", "\"hocket_plan\": 1, \"name\": \"x\",", HK_ESYNTAX,
	  "NAME: unknown field 'name'; known are hocket_plan, collective, algorithm, ranks, root, "
	  "nodes, parts, slots, inplace, signals, messages, programs" },
	{ "\"hocket_plan\": 1,", "\"hocket_plan\": 1, \"\\u001b[2J\": 0,", HK_ESYNTAX,
	  "unknown field '\\x1b[2J'" },

	/* the head */
	{ "\"collective\": \"allreduce\", ", "", HK_ESYNTAX,
	  "NAME: collective: missing; expected one of allreduce, allgather, " },
	{ "\"allreduce\"", "\"Allreduce\"", HK_ESYNTAX, "barrier, sendrecv, found \"Allreduce\"" },
	{ "\"allreduce\"", "7", HK_ESYNTAX, "NAME: collective: expected one of " },
	{ "\"allreduce\"", "\"barrier\"", HK_ESYNTAX, "NAME: parts: barrier has none" },
	{ "\"allreduce\"", "\"broadcast\"", HK_ESYNTAX,
	  "NAME: root: missing; expected a whole number from 0 to 1" },
	{ "\"allreduce\"", "\"broadcast\", \"root\": 2", HK_ESYNTAX,
	  "NAME: root: expected a whole number from 0 to 1, found 2" },
	{ "\"allreduce\"", "\"allreduce\", \"root\": 0", HK_ESYNTAX,
	  "NAME: root: allreduce has none" },
	{ "\"algorithm\": \"mine\", ", "", HK_ESYNTAX,
	  "NAME: algorithm: missing; expected a name of 1 to 63 letters" },
	{ "\"mine\"", "\"\"", HK_ESYNTAX, "NAME: algorithm: expected a name of 1 to 63" },
	{ "\"mine\"", "\"my own\"", HK_ESYNTAX, "found \"my own\"" },
	{ "\"mine\"", "\"mi\\\"ne\"", HK_ESYNTAX, "NAME: algorithm: " },
	{ "\"mine\"", "\"mi\\u202ene\"", HK_ESYNTAX, "found \"mi\\u202Ene\"" },
	{ "\"mine\"", "\"0123456789012345678901234567890123456789012345678901234567890123\"",
	  HK_ESYNTAX, "NAME: algorithm: expected a name of 1 to 63" },
	{ "\"mine\"", "true", HK_ESYNTAX, "NAME: algorithm: expected a name of 1 to 63" },
	{ ", \"ranks\": 2", "", HK_ESYNTAX, "NAME: ranks: missing" },
	{ "\"ranks\": 2", "\"ranks\": 0", HK_ESYNTAX,
	  "NAME: ranks: expected a whole number from 1 to 16777216, found 0" },
	{ "\"ranks\": 2", "\"ranks\": -2", HK_ESYNTAX, "found -2" },
	{ "\"ranks\": 2", "\"ranks\": 2.5", HK_ESYNTAX, "found 2.5" },
	{ "\"ranks\": 2", "\"ranks\": \"2\"", HK_ESYNTAX, "found \"2\"" },
	{ "\"ranks\": 2", "\"ranks\": null", HK_ESYNTAX, "found null" },
	{ "\"ranks\": 2", "\"ranks\": 16777217", HK_ELIMIT, "to 16777216, found 16777217" },
	{ "\"ranks\": 2", "\"ranks\": 9223372036854775807", HK_ELIMIT, "NAME: ranks: " },
	{ "\"ranks\": 2", "\"ranks\": 16000000", HK_ESYNTAX,
	  "NAME: programs for 2 of 16000000 ranks: this is only part of a plan" },
	{ "\"ranks\": 2", "\"ranks\": 1", HK_ESYNTAX, "NAME: programs for 2 of 1 ranks" },
	{ "\"parts\": 2", "\"nodes\": 0, \"parts\": 2", HK_ESYNTAX,
	  "NAME: nodes: expected a whole number from 1 to 2, found 0" },
	{ "\"parts\": 2", "\"nodes\": 3, \"parts\": 2", HK_ESYNTAX, "NAME: nodes: " },
	{ "\"parts\": 2", "\"nodes\": \"1+1\", \"parts\": 2", HK_ESYNTAX, "NAME: nodes: " },
	{ "\"parts\": 2", "\"nodes\": [], \"parts\": 2", HK_ESYNTAX,
	  "NAME: nodes: expected a number of nodes, or a list of their sizes, found []" },
	{ "\"parts\": 2", "\"nodes\": [1, 2], \"parts\": 2", HK_ESYNTAX,
	  "NAME: nodes: nodes of 3 ranks in all, but there are 2" },
	{ "\"parts\": 2", "\"nodes\": [1, 1, 0], \"parts\": 2", HK_ESYNTAX,
	  "NAME: nodes: 3 nodes are more than 2 ranks" },
	{ "\"parts\": 2", "\"nodes\": [1, 3], \"parts\": 2", HK_ESYNTAX,
	  "NAME: nodes[1]: expected the ranks of a node, 1 to 2, found 3" },
	{ "\"parts\": 2", "\"nodes\": [1, true], \"parts\": 2", HK_ESYNTAX, "NAME: nodes[1]: " },
	{ "\"parts\": 2,", "", HK_ESYNTAX, "NAME: parts: missing" },
	{ "\"parts\": 2", "\"parts\": 0", HK_ESYNTAX, "NAME: parts: " },
	{ "\"parts\": 2", "\"parts\": 1048577", HK_ELIMIT, "from 1 to 1048576, found 1048577" },
	{ "\"slots\": 1, ", "", HK_ESYNTAX, "NAME: slots: missing" },
	{ "\"slots\": 1", "\"slots\": 65", HK_ELIMIT,
	  "NAME: slots: expected a whole number from 0 to 64, found 65" },
	{ "\"slots\": 1", "\"slots\": false", HK_ESYNTAX, "found false" },
	{ "\"inplace\": true,", "", HK_ESYNTAX, "NAME: inplace: missing; expected true or false" },
	{ "\"inplace\": true", "\"inplace\": 1", HK_ESYNTAX, "expected true or false, found 1" },
	{ "\"parts\": 2", "\"messages\": [], \"parts\": 2", HK_ESYNTAX,
	  "NAME: messages: allreduce has none" },
	{ "\"programs\": [", "\"programs\": {}, \"x\": [", HK_ESYNTAX, "unknown field 'x'" },

	/* programs */
	{ "{\"rank\": 0, ", "{", HK_ESYNTAX, "NAME: programs[0].rank: missing" },
	{ "\"rank\": 0", "\"rank\": 2", HK_ESYNTAX,
	  "NAME: programs[0].rank: expected a whole number from 0 to 1, found 2" },
	{ "\"rank\": 0", "\"rank\": 1", HK_ESYNTAX,
	  "NAME: programs[1].rank: rank 1 has a program already" },
	{ "\"rank\": 0", "\"rank\": 0, \"gpu\": 3", HK_ESYNTAX,
	  "NAME: programs[0]: unknown field 'gpu'; known are rank, scratch, lanes" },
	{ "\"scratch\": 2, ", "", HK_ESYNTAX, "NAME: programs[0].scratch: missing" },
	{ "\"scratch\": 2", "\"scratch\": 1048577", HK_ELIMIT, "NAME: programs[0].scratch: " },
	{ "\"scratch\": 2, \"lanes\": [", "\"scratch\": 2, \"lanes\": [7,", HK_ESYNTAX,
	  "NAME: programs[0].lanes[0]: expected a list of steps, found 7" },
	{ "\"scratch\": 2, \"lanes\": [", "\"scratch\": 2, \"lanes\": [[true],", HK_ESYNTAX,
	  "NAME: programs[0].lanes[0][0]: expected a step, found true" },

	/* steps */
	{ "\"op\": \"send\", ", "", HK_ESYNTAX,
	  "NAME: programs[0].lanes[0][0].op: missing; expected one of nop, send, recv, "
	  "recv-reduce, recv-send, recv-reduce-send, copy, reduce" },
	{ "\"op\": \"send\"", "\"op\": \"sned\"", HK_ESYNTAX, "signal, wait, found \"sned\"" },
	{ "\"op\": \"send\"", "\"op\": 1", HK_ESYNTAX, ".op: expected one of nop, send" },
	{ "\"op\": \"send\"", "\"op\": \"put\"", HK_ESYNTAX,
	  "NAME: programs[0].lanes[0][0].dst: missing; put needs it" },
	{ "\"op\": \"send\"", "\"op\": \"multicast\"", HK_ESYNTAX, "'multicast' is reserved" },
	{ "\"op\": \"send\"", "\"op\": \"send\", \"via\": 1", HK_ESYNTAX,
	  "NAME: programs[0].lanes[0][0]: unknown field 'via'; known are op, from, to, src, dst, "
	  "count, signal, after" },
	{ "\"op\": \"send\", ", "\"op\": \"send\", \"from\": [1, 0], ", HK_ESYNTAX,
	  "NAME: programs[0].lanes[0][0].from: send takes none" },
	{ "\"op\": \"send\", ", "\"op\": \"send\", \"dst\": [\"out\", 0], ", HK_ESYNTAX,
	  ".dst: send takes none" },
	{ "\"op\": \"recv\", ", "\"op\": \"recv\", \"to\": [1, 0], ", HK_ESYNTAX,
	  "NAME: programs[0].lanes[0][1].to: recv takes none" },
	{ "\"op\": \"recv\", ", "\"op\": \"recv\", \"src\": [\"in\", 0], ", HK_ESYNTAX,
	  ".src: recv takes none" },
	{ "\"op\": \"nop\", ", "\"op\": \"nop\", \"count\": 0, ", HK_ESYNTAX,
	  "NAME: programs[1].lanes[0][1].count: nop takes none" },
	{ "\"to\": [1, 0], ", "", HK_ESYNTAX,
	  "NAME: programs[0].lanes[0][0].to: missing; send needs it" },
	{ "\"from\": [1, 0], ", "", HK_ESYNTAX, "[1].from: missing; recv needs it" },
	{ ", \"src\": [\"in\", 0], \"count\": 2}", ", \"count\": 2}", HK_ESYNTAX,
	  "NAME: programs[0].lanes[0][0].src: missing; send needs it" },
	{ "\"dst\": [\"out\", 0, 1, 1], ", "", HK_ESYNTAX, "[1].dst: missing; recv needs it" },
	{ "\"to\": [1, 0]", "\"to\": [7, 0]", HK_ESYNTAX,
	  "NAME: programs[0].lanes[0][0].to: expected [rank, lane] with rank below 2, "
	  "found [7, 0]" },
	{ "\"to\": [1, 0]", "\"to\": [1, 256]", HK_ESYNTAX,
	  ".to: expected [rank, lane] with lane below 256, found [1, 256]" },
	{ "\"to\": [1, 0]", "\"to\": [1, 1]", HK_ESYNTAX,
	  "NAME: programs[0].lanes[0][0]: send names a lane the peer does not have" },
	{ "\"to\": [1, 0]", "\"to\": [1]", HK_ESYNTAX, "found [1]" },
	{ "\"to\": [1, 0]", "\"to\": [1, 0, 0]", HK_ESYNTAX, "found [1, 0, 0]" },
	{ "\"to\": [1, 0]", "\"to\": 1", HK_ESYNTAX, ".to: expected [rank, lane]" },
	{ "\"to\": [1, 0]", "\"to\": [-1, 0]", HK_ESYNTAX, "found [-1, 0]" },
	{ "\"to\": [1, 0]", "\"to\": {\"rank\": 1}", HK_ESYNTAX, "found {\"rank\": 1}" },
	{ "\"src\": [\"in\", 0]", "\"src\": [\"inn\", 0]", HK_ESYNTAX,
	  ".src: expected [buffer, first] or [buffer, first, run, period] with buffer \"in\", "
	  "\"out\" or \"scratch\", found [\"inn\", 0]" },
	{ "\"src\": [\"in\", 0]", "\"src\": [\"none\", 0]", HK_ESYNTAX, "found [\"none\", 0]" },
	{ "\"src\": [\"in\", 0]", "\"src\": [\"in\", 0, 1]", HK_ESYNTAX, "found [\"in\", 0, 1]" },
	{ "\"src\": [\"in\", 0]", "\"src\": [\"in\", 0, 0, 1]", HK_ESYNTAX,
	  ".src: expected whole numbers up to 67108864 and a run of 1 or more" },
	{ "\"src\": [\"in\", 0]", "\"src\": [\"in\", 0, 1, -1]", HK_ESYNTAX,
	  "found [\"in\", 0, 1, -1]" },
	{ "\"src\": [\"in\", 0]", "\"src\": [\"in\", 67108865]", HK_ESYNTAX, ".src: expected" },
	{ "\"src\": [\"in\", 0]", "\"src\": [\"in\", 2]", HK_ESYNTAX,
	  "send names a slot past the end of the rank's buffer" },
	{ "\"src\": [\"in\", 0], \"count\": 2", "\"src\": [\"in\", 0], \"count\": 3", HK_ESYNTAX,
	  "send names more slots than the rank's buffer has" },
	{ "\"dst\": [\"out\", 0, 1, 1]", "\"dst\": [\"in\", 0]", HK_ESYNTAX,
	  "NAME: programs[0].lanes[0][1]: recv writes the input, which is read-only" },
	{ "\"dst\": [\"out\", 0], ", "\"dst\": [\"scratch\", 0], ", HK_ESYNTAX,
	  "NAME: programs[1].lanes[0][0]: recv-reduce-send names more slots than" },
	{ "\"count\": 2", "\"count\": -1", HK_ESYNTAX,
	  "NAME: programs[0].lanes[0][0].count: expected a whole number from 0 to 67108864" },
	{ "\"count\": 2", "\"count\": 67108865", HK_ESYNTAX, ".count: expected a whole number" },
	{ "\"after\": [0, 0]", "\"after\": [0]", HK_ESYNTAX,
	  "NAME: programs[1].lanes[0][1].after: expected [lane, step] of the same rank, "
	  "found [0]" },
	{ "\"after\": [0, 0]", "\"after\": [0, 4294967295]", HK_ESYNTAX, ".after: expected" },
	{ "\"after\": [0, 0]", "\"after\": [0, 2]", HK_ESYNTAX,
	  "NAME: programs[1].lanes[0][1]: nop depends on a step that the rank does not have" },
	{ "\"after\": [0, 0]", "\"after\": [1, 0]", HK_ESYNTAX, "nop depends on a step" },

	/* whole texts */
	{ NULL, "", HK_ESYNTAX, "NAME: empty; expected a plan" },
	{ NULL, " \t\r\n\n", HK_ESYNTAX, "NAME: empty; expected a plan" },
	{ NULL, "7", HK_ESYNTAX, "NAME:1:1: '[' or '{' expected near '7'" },
	{ NULL, "plan", HK_ESYNTAX, "NAME:1:" },
	{ NULL, "[]", HK_ESYNTAX, "NAME: not a plan: no object" },
	{ NULL, "{}", HK_ESYNTAX, "NAME: not a plan: no object" },
	{ NULL, "\xef\xbb\xbf{}", HK_ESYNTAX, "NAME:1:" },
	{ NULL,
	  "{\"hocket_plan\": 1, \"collective\": \"alltoall\", \"algorithm\": \"x\", \"ranks\": 1, "
	  "\"slots\": 1, \"inplace\": false}",
	  HK_ESYNTAX, "NAME: programs: missing; expected a list of programs" },
	{ NULL,
	  "{\"hocket_plan\": 1, \"collective\": \"alltoall\", \"algorithm\": \"x\", \"ranks\": 1, "
	  "\"slots\": 1, \"inplace\": false, \"programs\": [{\"rank\": 0, \"scratch\": 0}]}",
	  HK_ESYNTAX, "NAME: programs[0].lanes: missing; expected a list of lanes" },
	{ NULL,
	  "{\"hocket_plan\": 1, \"collective\": \"alltoall\", \"algorithm\": \"x\", \"ranks\": 1, "
	  "\"slots\": 1, \"inplace\": false, \"programs\": [[]]}",
	  HK_ESYNTAX, "NAME: programs[0]: expected a program, found []" },
	{ NULL,
	  "{\"hocket_plan\": 1, \"collective\": \"sendrecv\", \"algorithm\": \"x\", \"ranks\": 1, "
	  "\"slots\": 1, \"inplace\": false, \"programs\": [[]]}",
	  HK_ESYNTAX, "NAME: messages: missing; expected a list of messages" },
	{ NULL,
	  "{\"hocket_plan\": 1, \"collective\": \"sendrecv\", \"algorithm\": \"x\", \"ranks\": 1, "
	  "\"slots\": 1, \"inplace\": false, \"messages\": [[0, 0], [0, 1]], \"programs\": [[]]}",
	  HK_ESYNTAX,
	  "NAME: messages[1]: expected [source, destination] with ranks below 1, found [0, 1]" },
};

/* The good plan with the change; *len_out leaves room for nothing after it. */
static char *bad_text(const struct bad *bad, size_t *len_out)
{
	const char *at = bad->was ? strstr(json_good, bad->was) : NULL;

	if (bad->was && !at)
		test_fail(__FILE__, __LINE__, "the good plan has no %s", bad->was);
	size_t head = at ? (size_t)(at - json_good) : 0, is = strlen(bad->is);
	size_t tail = at ? strlen(at) - strlen(bad->was) : 0;
	/* Exactly as long as it is: a sanitizer sees every byte too much. */
	char *text = malloc(head + is + tail ? head + is + tail : 1);
	CHECK(text);
	memcpy(text, json_good, head);
	memcpy(text + head, bad->is, is);
	if (at)
		memcpy(text + head + is, at + strlen(bad->was), tail);
	*len_out = head + is + tail;
	return text;
}

TEST(malformed)
{
	struct hk_why why = { "" };
	struct hk_plan *plan;

	if (hk_plan_parse(json_good, strlen(json_good), "good", NULL, &why, &plan) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", why.text);
	hk_plan_free(plan);
	for (size_t i = 0; i < sizeof(json_bad) / sizeof(json_bad[0]); i++) {
		size_t len;
		char *text = bad_text(&json_bad[i], &len);

		check_refused(text, len, json_bad[i].status, json_bad[i].says);
		free(text);
	}
	CHECK(sizeof(json_bad) / sizeof(json_bad[0]) >= 60);
}

/* Every beginning of a plan is no plan, and no byte after it is looked at. */
TEST(every_prefix)
{
	for (size_t len = 0; len + 1 < strlen(json_good); len++) {
		char *text = malloc(len ? len : 1);

		CHECK(text);
		memcpy(text, json_good, len);
		check_refused(text, len, HK_ESYNTAX, "NAME:");
		free(text);
	}
}

/* Whatever a byte becomes, there is a plan or a reason. */
TEST(every_byte_changed)
{
	static const char bytes[] = { '\0', '"', '0', '9', ',', ']', '}', 'x', '\xff', '\n' };
	char text[sizeof(json_good)];
	struct hk_plan *plan;

	for (size_t at = 0; at < strlen(json_good); at++) {
		for (size_t i = 0; i < sizeof(bytes); i++) {
			struct hk_why why = { "" };

			memcpy(text, json_good, sizeof(text));
			text[at] = bytes[i];
			if (hk_plan_parse(text, strlen(json_good), "NAME", NULL, &why, &plan) ==
			    HK_OK)
				hk_plan_free(plan);
			else
				check_one_line(why.text);
		}
	}
}

TEST(nul_bytes)
{
	char text[sizeof(json_good)];

	memcpy(text, json_good, sizeof(text));
	text[0] = '\0';
	check_refused(text, strlen(json_good), HK_ESYNTAX, "NAME:1:1: a NUL byte: not text");
	memcpy(text, json_good, sizeof(text));
	text[9] = '\0';
	check_refused(text, strlen(json_good), HK_ESYNTAX, "NAME:2:8: a NUL byte: not text");
	check_refused(json_good, sizeof(json_good), HK_ESYNTAX, "a NUL byte");
}

/* A name comes from outside too. */
TEST(strange_names)
{
	char name[2048];
	struct hk_why why = { "" };
	struct hk_plan *plan;

	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	CHECK_EQ(hk_plan_parse("{}", 2, name, NULL, &why, &plan), HK_ESYNTAX);
	CHECK_HAS(why.text, "not a plan");
	check_one_line(why.text);
	CHECK_EQ(hk_plan_parse("{}", 2, "a\nb\x1b[2Jc", NULL, &why, &plan), HK_ESYNTAX);
	CHECK_HAS(why.text, "a?b?[2Jc: not a plan");
	CHECK_EQ(hk_plan_parse("{}", 2, NULL, NULL, &why, &plan), HK_ESYNTAX);
	CHECK_HAS(why.text, "plan: not a plan");
	CHECK_EQ(hk_plan_parse(NULL, 0, "nothing", NULL, &why, &plan), HK_ESYNTAX);
	CHECK_HAS(why.text, "nothing: empty");
}

/* ---- too much ---- */

/* Counts what is held, and fails when it is told to. */
struct counted {
	struct hk_alloc alloc;
	size_t calls;
	size_t fail_at; /* this call fails, and all after it; 0: none */
	size_t bytes;
	size_t bytes_max;
};

static void *counted_resize(void *ctx, void *ptr, size_t size_old, size_t size_new)
{
	struct counted *counted = ctx;

	CHECK((ptr == NULL) == (size_old == 0));
	if (size_new && ++counted->calls >= counted->fail_at && counted->fail_at)
		return NULL;
	CHECK(counted->bytes >= size_old);
	counted->bytes += size_new - size_old;
	if (counted->bytes_max < counted->bytes)
		counted->bytes_max = counted->bytes;
	if (size_new)
		return realloc(ptr, size_new);
	free(ptr);
	return NULL;
}

static void counted_init(struct counted *counted, size_t fail_at)
{
	*counted = (struct counted){ .alloc = { counted_resize, counted }, .fail_at = fail_at };
}

/* A small text that speaks of much makes the reader hold little. */
TEST(small_text_small_memory)
{
	static const char text[] =
		"{\"hocket_plan\": 1, \"collective\": \"allreduce\", \"algorithm\": \"x\", "
		"\"ranks\": 1, \"parts\": 1048576, \"slots\": 64, \"inplace\": false, "
		"\"programs\": [{\"rank\": 0, \"scratch\": 1048576, \"lanes\": [[{\"op\": "
		"\"send\", "
		"\"to\": [0, 0], \"src\": [\"in\", 0], \"count\": 1048576}]]}]}";
	struct counted counted;
	struct hk_plan *plan;

	counted_init(&counted, 0);
	CHECK_EQ(hk_plan_parse(text, strlen(text), "text", &counted.alloc, NULL, &plan), HK_OK);
	CHECK(counted.bytes_max < 4096);
	hk_plan_free(plan);
	CHECK_EQ(counted.bytes, 0);
}

static char *repeat(const char *head, const char *text, size_t count, const char *tail)
{
	size_t len = strlen(text), at = strlen(head);
	char *all = malloc(at + count * len + strlen(tail) + 1);

	CHECK(all);
	memcpy(all, head, at);
	for (size_t i = 0; i < count; i++, at += len)
		memcpy(all + at, text, len);
	memcpy(all + at, tail, strlen(tail) + 1);
	return all;
}

TEST(too_much)
{
	char *text = repeat("", "[", 100000, "");

	check_refused(text, strlen(text), HK_ESYNTAX, "NAME:1:2049: maximum parsing depth");
	free(text);
	text = repeat("[", "{},", 5 << 20, "{}]");
	check_refused(text, strlen(text), HK_ELIMIT, "NAME: too many values: more than 1024 MiB");
	free(text);
	text = repeat("{\"", "x", 1 << 20, "\": 1}");
	check_refused(text, strlen(text), HK_ESYNTAX, "NAME: not a plan");
	free(text);
	text = calloc(1, HK_PLAN_FILE_MAX + 1);
	CHECK(text);
	check_refused(text, HK_PLAN_FILE_MAX + 1, HK_ELIMIT, "NAME: more than 67108864 bytes");
	free(text);
	text = repeat(
		"{\"hocket_plan\": 1, \"collective\": \"allgather\", \"algorithm\": \"x\", "
		"\"ranks\": 1, \"slots\": 1, \"inplace\": false, \"programs\": [{\"rank\": 0, "
		"\"scratch\": 0, \"lanes\": [",
		"[],", 256, "[]]}]}");
	check_refused(text, strlen(text), HK_ELIMIT,
		      "NAME: programs[0].lanes: expected at most 256 lanes, found 257");
	free(text);
}

/* Vectors of 2^20 parts, and work for rank 0 alone. */
static char *vast_text(uint32_t nranks, uint32_t scratch, const char *steps)
{
	char *text = malloc(4096 + strlen(steps)), *at = text;

	CHECK(text && nranks <= 16);
	at += sprintf(at,
		      "{\"hocket_plan\": 1, \"collective\": \"allreduce\", \"algorithm\": \"x\", "
		      "\"ranks\": %u, \"parts\": 1048576, \"slots\": 1, \"inplace\": false, "
		      "\"programs\": [{\"rank\": 0, \"scratch\": %u, \"lanes\": [[%s]]}",
		      nranks, scratch, steps);
	for (uint32_t r = 1; r < nranks; r++)
		at += sprintf(at, ", {\"rank\": %u, \"scratch\": 0, \"lanes\": []}", r);
	strcpy(at, "]}");
	return text;
}

/* The limit itself can be read; one more cannot. Frees both. */
static void check_limit(char *most, char *more, const char *says)
{
	struct hk_why why = { "" };
	struct hk_plan *plan;

	if (hk_plan_parse(most, strlen(most), "most", NULL, &why, &plan) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s", why.text);
	hk_plan_free(plan);
	check_refused(more, strlen(more), HK_ELIMIT, says);
	free(most);
	free(more);
}

TEST(too_many_slots)
{
	check_limit(vast_text(8, 0, ""), vast_text(8, 1, ""),
		    "NAME: 16777217 slots in all buffers of all ranks, counted once per lane; at");
}

TEST(too_many_chunks)
{
	static const char send[] = "{\"op\": \"send\", \"to\": [0, 0], \"src\": [\"in\", 0], "
				   "\"count\": 1048576}, ";
	char *most = repeat("", send, 16, "{\"op\": \"nop\"}");
	/* No buffer bounds what is only passed on. */
	char *more =
		repeat("", send, 16, "{\"op\": \"recv-send\", \"from\": [0, 0], \"to\": [0, 0]}");

	check_limit(vast_text(1, 0, most), vast_text(1, 0, more),
		    "NAME: moves more than 16777216 chunks in all");
	free(more);
	free(most);
}

/* ---- memory runs out ---- */

TEST(parse_without_memory)
{
	struct hk_plan *plan = json_create(HK_COLL_SENDRECV, NULL, 9);
	char *text = json_text(plan, NULL);
	enum hk_status status = HK_ENOMEM;
	struct counted counted;
	size_t fail_at;

	hk_plan_free(plan);
	for (fail_at = 1; status != HK_OK; fail_at++) {
		struct hk_why why = { "" };

		plan = NULL;
		counted_init(&counted, fail_at);
		status = hk_plan_parse(text, strlen(text), "text", &counted.alloc, &why, &plan);
		if (status == HK_OK)
			break;
		CHECK_EQ(status, HK_ENOMEM);
		CHECK_STR(why.text, "text: no memory to read it");
		CHECK(!plan);
		CHECK_EQ(counted.bytes, 0);
	}
	CHECK(fail_at > 20);
	hk_plan_free(plan);
	CHECK_EQ(counted.bytes, 0);
	free(text);
}

TEST(create_without_memory)
{
	struct hk_algo_info algo = { .size = sizeof(algo) };

	for (uint32_t i = 0; hk_algo_get(i, &algo); i++) {
		enum hk_status status = HK_ENOMEM;

		for (size_t fail_at = 1; status != HK_OK; fail_at++) {
			struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
			struct hk_why why = { "" };
			struct hk_plan *plan = NULL;
			struct counted counted;

			counted_init(&counted, fail_at);
			opts.algo = algo.name;
			opts.alloc = &counted.alloc;
			status = hk_plan_create(algo.coll, 6, &opts, &why, &plan);
			CHECK(status == HK_OK || status == HK_ENOMEM);
			CHECK((status == HK_OK) == (plan != NULL));
			if (status != HK_OK)
				check_one_line(why.text);
			hk_plan_free(plan);
			CHECK_EQ(counted.bytes, 0);
		}
	}
}

/* The JSON library has an allocator of its own. */
static size_t jansson_left;

static void *jansson_malloc(size_t size)
{
	return jansson_left && --jansson_left ? malloc(size) : NULL;
}

TEST(parse_without_memory_for_the_tree)
{
	enum hk_status status = HK_ENOMEM;
	size_t tried;

	json_set_alloc_funcs(jansson_malloc, free);
	for (tried = 1; status != HK_OK; tried++) {
		struct hk_plan *plan = NULL;
		struct hk_why why = { "" };

		jansson_left = tried;
		status = hk_plan_parse(json_good, strlen(json_good), "text", NULL, &why, &plan);
		if (status != HK_OK)
			check_one_line(why.text);
		CHECK((status == HK_OK) == (plan != NULL));
		hk_plan_free(plan);
	}
	CHECK(tried > 50);
}

/* ---- files and streams ---- */

TEST(files)
{
	char path[] = "/tmp/hocket-json-test-XXXXXX";
	struct hk_why why = { "" };
	struct hk_plan *plan = NULL;
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	CHECK_EQ(hk_plan_read(path, NULL, &why, &plan), HK_ESYNTAX);
	CHECK_HAS(why.text, "empty; expected a plan");
	CHECK(write(fd, json_good, strlen(json_good)) == (ssize_t)strlen(json_good));
	CHECK_EQ(hk_plan_read(path, NULL, &why, &plan), HK_OK);
	hk_plan_free(plan);
	CHECK(ftruncate(fd, HK_PLAN_FILE_MAX + 1l) == 0);
	CHECK_EQ(hk_plan_read(path, NULL, &why, &plan), HK_ELIMIT);
	CHECK_HAS(why.text, "more than 67108864 bytes");
	close(fd);
	unlink(path);
	CHECK_EQ(hk_plan_read(path, NULL, &why, &plan), HK_EIO);
	CHECK_HAS(why.text, "cannot be opened: No such file or directory");
	CHECK_EQ(hk_plan_read("/", NULL, &why, &plan), HK_EIO);
	CHECK_STR(why.text, "/: cannot be read: Is a directory");
}

TEST(file_without_memory)
{
	char path[] = "/tmp/hocket-json-test-XXXXXX";
	int fd = mkstemp(path);
	struct counted counted;
	enum hk_status status = HK_ENOMEM;

	CHECK(fd >= 0);
	/* Blanks make it long, so that the text grows more than once. */
	for (int i = 0; i < 5000; i++)
		CHECK(write(fd, "          ", 10) == 10);
	CHECK(write(fd, json_good, strlen(json_good)) == (ssize_t)strlen(json_good));
	close(fd);
	for (size_t fail_at = 1; status != HK_OK; fail_at++) {
		struct hk_plan *plan = NULL;

		counted_init(&counted, fail_at);
		status = hk_plan_read(path, &counted.alloc, NULL, &plan);
		CHECK(status == HK_OK || status == HK_ENOMEM);
		hk_plan_free(plan);
		CHECK_EQ(counted.bytes, 0);
	}
	unlink(path);
}

TEST(standard_input)
{
	char path[] = "/tmp/hocket-json-test-XXXXXX";
	struct hk_plan *plan = NULL;
	struct hk_why why = { "" };
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	CHECK(write(fd, json_good, strlen(json_good)) == (ssize_t)strlen(json_good));
	close(fd);
	CHECK(freopen(path, "r", stdin));
	unlink(path);
	CHECK_EQ(hk_plan_read("-", NULL, &why, &plan), HK_OK);
	hk_plan_free(plan);
	CHECK_EQ(hk_plan_read("-", NULL, &why, &plan), HK_ESYNTAX);
	CHECK_STR(why.text, "standard input: empty; expected a plan");
}
