/* SPDX-License-Identifier: Apache-2.0 */
/*
 * msccl_test.c - plans as MSCCL XML: written and read again every plan is still
 * proved and sends what it sent; files that others write are understood; every
 * malformed one is refused with its line.
 */
#include "harness.h"
#include "naive/each.h"

#include <hocket/hocket.h>

/* ---- helpers ---- */

static char *msccl_text(const struct hk_plan *plan)
{
	struct hk_why why = { "" };
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	CHECK(file);
	if (hk_plan_print_msccl(plan, file, &why) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s: %s", each_name(plan), why.text);
	CHECK(fclose(file) == 0);
	return text;
}

static struct hk_plan *msccl_parse(const char *text)
{
	struct hk_why why = { "" };
	struct hk_plan *plan;

	if (hk_plan_parse(text, strlen(text), "NAME", NULL, &why, &plan) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s\n%s", why.text, text);
	return plan;
}

static void prove(const struct hk_plan *plan, bool inplace, const char *text,
		  struct hk_check_report *report)
{
	struct hk_check_opts opts = HK_CHECK_OPTS_INIT;

	opts.inplace = inplace;
	if (hk_check(plan, &opts, report) != HK_OK)
		test_fail(__FILE__, __LINE__, "%s%s: %s\n%s", each_name(plan),
			  inplace ? " in place" : "", report->why.text, text ? text : "");
}

/* ---- there and back ---- */

static void same_after_a_round_trip(const struct hk_plan *plan, void *ctx)
{
	uint32_t *different_scratch = ctx;
	char *text = msccl_text(plan);
	struct hk_plan *again = msccl_parse(text);
	struct hk_plan_info info = { .size = sizeof(info) },
			    info_again = { .size = sizeof(info_again) };
	struct hk_check_report before = { .size = sizeof(before) },
			       after = { .size = sizeof(after) };

	hk_plan_describe(plan, &info);
	hk_plan_describe(again, &info_again);
	CHECK_EQ(info.coll, info_again.coll);
	CHECK_EQ(info.nranks, info_again.nranks);
	CHECK_EQ(info.root, info_again.root);
	CHECK_EQ(info.parts, info_again.parts);
	CHECK_EQ(info.inplace, info_again.inplace);
	CHECK_STR(info.algo, info_again.algo);
	for (int inplace = 0; inplace <= (int)info.inplace; inplace++) {
		prove(plan, inplace, NULL, &before);
		prove(again, inplace, text, &after);
		CHECK_EQ(before.cost.messages, after.cost.messages);
		CHECK_EQ(before.cost.busiest_sent, after.cost.busiest_sent);
		CHECK_EQ(before.cost.busiest_received, after.cost.busiest_received);
		CHECK_EQ(before.cost.busiest_reduced, after.cost.busiest_reduced);
		CHECK_EQ(before.cost.critical, after.cost.critical);
		CHECK_EQ(before.consistent, after.consistent);
	}
	*different_scratch += before.cost.scratch_max != after.cost.scratch_max;
	/* What was read is written as the same text again: nothing was lost. */
	char *text_again = msccl_text(again);
	struct hk_plan *third = msccl_parse(text_again);
	prove(third, false, text_again, &after);
	CHECK_EQ(before.cost.messages, after.cost.messages);
	hk_plan_free(third);
	free(text_again);
	hk_plan_free(again);
	free(text);
}

TEST(round_trip_keeps_proof_and_cost)
{
	struct each_opts opts = {
		.n_min = 1, .n_max = 8, .roots = EACH_ROOT_ALL, .messages = true
	};
	uint32_t plans = 0, staged = 0;

	for (unsigned c = 0; c < HK_COLL_COUNT; c++)
		if (c != HK_COLL_BARRIER && c != HK_COLL_SENDRECV)
			plans +=
				each_plan((enum hk_coll)c, &opts, same_after_a_round_trip, &staged);
	CHECK(plans > 1000);
	CHECK(staged > 0); /* chunks that lie apart have gone through scratch */
}

TEST(what_msccl_has_not)
{
	static const enum hk_coll none[] = { HK_COLL_BARRIER, HK_COLL_SENDRECV };

	for (size_t i = 0; i < 2; i++) {
		struct hk_why why = { "" };
		struct hk_plan *plan;
		char *text = NULL;
		size_t len;
		FILE *file = open_memstream(&text, &len);

		CHECK(file);
		CHECK_EQ(hk_plan_create(none[i], 4, NULL, NULL, &plan), HK_OK);
		CHECK_EQ(hk_plan_print_msccl(plan, file, &why), HK_EINVAL);
		CHECK_HAS(why.text, hk_coll_name(none[i]));
		CHECK(fclose(file) == 0);
		CHECK_EQ(len, 0);
		free(text);
		hk_plan_free(plan);
	}
}

/* ---- files of others ---- */

#define STEP(s, type, src, srcoff, dst, dstoff, cnt, depid, deps, hasdep) \
	"<step s=\"" #s "\" type=\"" type "\" srcbuf=\"" src "\" srcoff=\"" #srcoff \
	"\" dstbuf=\"" dst "\" dstoff=\"" #dstoff "\" cnt=\"" #cnt "\" depid=\"" #depid \
	"\" deps=\"" #deps "\" hasdep=\"" #hasdep "\"/>\n"
#define NOP(s, depid, deps) STEP(s, "nop", "i", -1, "o", -1, 0, depid, deps, 0)

/* All pairs, as msccl-tools writes it: one buffer, which is input and output. */
#define PAIR(me, other, send, keep) \
	"<gpu id=\"" #me "\" i_chunks=\"2\" o_chunks=\"0\" s_chunks=\"1\">\n" \
	"<tb id=\"0\" send=\"-1\" recv=\"-1\" chan=\"0\">\n" STEP( \
		0, "re", "s", 0, "i", keep, 1, 1, 1, \
		1) "</tb>\n" \
		   "<tb id=\"1\" send=\"" #other "\" recv=\"" #other \
		   "\" chan=\"0\">\n" STEP(0, "s", "i", send, "s", 0, 1, -1, -1, \
					   0) STEP(1, "r", "i", keep, "s", 0, 1, -1, -1, 1) \
			   STEP(2, "s", "i", keep, "i", keep, 1, 0, 0, 0) \
				   STEP(3, "r", "i", send, "i", send, 1, -1, -1, 0) "</tb>\n" \
										    "</gpu>\n"
#define ALGO(coll, chunks, gpus, more) \
	"<algo name=\"a b\" proto=\"LL\" nchannels=\"1\" nchunksperloop=\"" #chunks \
	"\" ngpus=\"" #gpus "\" coll=\"" coll "\" " more ">\n"

static void check_proved(const char *text, bool inplace)
{
	struct hk_plan *plan = msccl_parse(text);
	struct hk_check_report report = { .size = sizeof(report) };
	struct hk_plan_info info = { .size = sizeof(info) };

	hk_plan_describe(plan, &info);
	CHECK_EQ(info.inplace, inplace);
	for (int i = 0; i <= (int)info.inplace; i++)
		prove(plan, i, text, &report);
	hk_plan_free(plan);
}

TEST(one_buffer_allreduce)
{
	check_proved(ALGO("allreduce", 2, 2, "inplace=\"1\"") PAIR(0, 1, 1, 0)
			     PAIR(1, 0, 0, 1) "</algo>\n",
		     true);
}

/* Own block at its place in the output; blocks of two chunks that travel together. */
#define GATHER(me, other, own, its) \
	"<gpu id=\"" #me "\" i_chunks=\"2\" o_chunks=\"4\" s_chunks=\"0\">" \
	"<tb id=\"0\" send=\"" #other "\" recv=\"" #other \
	"\" chan=\"3\">" STEP(0, "s", "o", own, "o", own, 2, -1, -1, 0) \
		STEP(1, "r", "o", its, "o", its, 2, -1, -1, 0) "</tb></gpu>"

TEST(one_buffer_allgather)
{
	check_proved(ALGO("allgather", 4, 2, "inplace=\"1\"") GATHER(0, 1, 0, 2)
			     GATHER(1, 0, 2, 0) "</algo>",
		     true);
}

/* The sum ends in the input, where the output lies. */
#define SCATTER(me, other) \
	"<gpu id=\"" #me "\" i_chunks=\"2\" o_chunks=\"0\" s_chunks=\"0\">" \
	"<tb id=\"0\" send=\"" #other "\" recv=\"" #other \
	"\" chan=\"0\">" STEP(0, "s", "i", other, "i", other, 1, -1, -1, 0) \
		STEP(1, "rrc", "i", me, "i", me, 1, -1, -1, 0) "</tb></gpu>"

TEST(one_buffer_reducescatter)
{
	check_proved(ALGO("reducescatter", 2, 2, "inplace=\"1\"") SCATTER(0, 1)
			     SCATTER(1, 0) "</algo>",
		     true);
}

/* Blocks change places where they lie. */
#define EXCHANGE(me, other) \
	"<gpu id=\"" #me "\" i_chunks=\"2\" o_chunks=\"2\" s_chunks=\"0\">" \
	"<tb id=\"0\" send=\"" #other "\" recv=\"" #other \
	"\" chan=\"0\">" STEP(0, "s", "i", other, "o", me, 1, -1, -1, 0) \
		STEP(1, "r", "i", me, "o", other, 1, -1, -1, 0) "</tb></gpu>"

TEST(one_buffer_alltoall)
{
	check_proved(ALGO("alltoall", 2, 2, "inplace=\"1\"") EXCHANGE(0, 1)
			     EXCHANGE(1, 0) "</algo>",
		     false);
}

#define ROOT_SENDS \
	"<gpu id=\"0\" i_chunks=\"1\" o_chunks=\"1\" s_chunks=\"0\">" \
	"<tb id=\"0\" send=\"1\" recv=\"-1\" chan=\"0\">" STEP(0, "s", "i", 0, "i", 0, 1, -1, -1, \
							       0) "</tb></gpu>"
#define OTHER_TAKES(buffer) \
	"<gpu id=\"1\" i_chunks=\"1\" o_chunks=\"1\" s_chunks=\"0\">" \
	"<tb id=\"0\" send=\"-1\" recv=\"0\" chan=\"0\">" STEP(0, "r", buffer, 0, buffer, 0, 1, \
							       -1, -1, 0) "</tb></gpu>"

TEST(one_buffer_broadcast)
{
	check_proved(ALGO("broadcast", 1, 2, "inplace=\"1\"") ROOT_SENDS OTHER_TAKES("i") "</algo>",
		     true);
}

/* A root that is not the first rank sums up; the other's input stays as it is. */
TEST(one_buffer_reduce)
{
	check_proved(ALGO("reduce", 1, 2, "inplace=\"1\" root=\"1\"") ROOT_SENDS
		     "<gpu id=\"1\" i_chunks=\"1\" o_chunks=\"1\" s_chunks=\"0\">"
		     "<tb id=\"0\" send=\"-1\" recv=\"0\" chan=\"0\">" STEP(0, "rrc", "i", 0, "i",
									    0, 1, -1, -1,
									    0) "</tb></gpu></algo>",
		     true);
}

/* ---- malformed ones ---- */

static void check_refused(const char *text, enum hk_status status, const char *says)
{
	struct hk_plan *plan = (struct hk_plan *)&plan, *before = plan;
	struct hk_why why = { "" };

	CHECK_STR(hk_status_name(hk_plan_parse(text, strlen(text), "NAME", NULL, &why, &plan)),
		  hk_status_name(status));
	CHECK_HAS(why.text, says);
	CHECK(plan == before);
	CHECK_EQ(hk_plan_parse(text, strlen(text), NULL, NULL, NULL, &plan), status);
}

#define TWO(first, second) ALGO("broadcast", 1, 2, "inplace=\"0\"") first second "\n</algo>"

TEST(refused_with_a_line)
{
	check_refused("<", HK_ESYNTAX, "NAME:1: ");
	check_refused("<algo/>", HK_ESYNTAX, "NAME:1: <algo> coll: expected allreduce");
	check_refused("\n<gpu/>", HK_ESYNTAX, "NAME:2: expected <algo>, found <gpu>");
	check_refused("<!DOCTYPE a [<!ENTITY b \"c\">]>\n<algo/>", HK_ESYNTAX, "a document type");
	check_refused(ALGO("barrier", 1, 2, ""), HK_ESYNTAX, "coll: expected");
	check_refused(ALGO("allreduce", 0, 2, ""), HK_ESYNTAX,
		      "nchunksperloop: expected a whole number from 1 to 1048576, found 0");
	check_refused(ALGO("allreduce", 1, 99999999, ""), HK_ESYNTAX, "ngpus: expected");
	check_refused(ALGO("allgather", 3, 2, "") "</algo>", HK_ESYNTAX,
		      "3 chunks are not the blocks of 2 gpus");
	check_refused(ALGO("allreduce", 2, 16777216, "") "</algo>", HK_ESYNTAX,
		      "expected a <gpu> for each of 16777216, found 0");
	check_refused(TWO(ROOT_SENDS, ROOT_SENDS), HK_ESYNTAX, "<gpu> id: 0 is there already");
	check_refused(TWO(ROOT_SENDS, OTHER_TAKES("x")), HK_ESYNTAX, "expected i, o or s, found x");
	check_refused(ALGO("gather", 2, 2, "inplace=\"1\"") ROOT_SENDS OTHER_TAKES("o") "</algo>",
		      HK_ELIMIT, "one buffer");
	check_refused("<algo\n>", HK_ESYNTAX, "NAME:1:");
}

/* Two ranks; the second receives as the test says. */
static void check_second(const char *tb, enum hk_status status, const char *says)
{
	char text[4096];

	snprintf(text, sizeof(text),
		 TWO("%s", "<gpu id=\"1\" i_chunks=\"0\" o_chunks=\"1\" s_chunks=\"0\">%s</gpu>"),
		 ROOT_SENDS, tb);
	check_refused(text, status, says);
}

#define TB(id, send, recv, steps) \
	"<tb id=\"" #id "\" send=\"" #send "\" recv=\"" #recv "\" chan=\"0\">" steps "</tb>"

TEST(refused_thread_blocks)
{
	check_second(TB(0, -1, 0, STEP(0, "r", "i", 0, "i", 0, 1, -1, -1, 0)), HK_ESYNTAX,
		     "of a buffer that has 0");
	check_second(TB(0, -1, 0, STEP(0, "r", "o", 0, "o", 1, 1, -1, -1, 0)), HK_ESYNTAX,
		     "chunks 1 to 1 of a buffer that has 1");
	check_second(TB(0, -1, 0, STEP(1, "r", "o", 0, "o", 0, 1, -1, -1, 0)), HK_ESYNTAX,
		     "<step> s: expected 0");
	check_second(TB(0, -1, 0, STEP(0, "x", "o", 0, "o", 0, 1, -1, -1, 0)), HK_ESYNTAX,
		     "<step> type: expected s, r");
	check_second(TB(0, -1, 0, STEP(0, "r", "o", 0, "o", 0, 1, 0, 1, 0)), HK_ESYNTAX,
		     "depends on step 1 of thread block 0, which gpu 1 has not");
	check_second(TB(0, -1, 0, STEP(0, "s", "o", 0, "o", 0, 1, -1, -1, 0)), HK_ESYNTAX,
		     "has no peer for that");
	check_second(TB(1, -1, 0, ""), HK_ESYNTAX, "<tb> id: 1 is too large");
	check_second(TB(0, -1, 0, "") TB(0, -1, -1, ""), HK_ESYNTAX, "0 is there already");
	check_second(TB(0, -1, 0, "") TB(1, -1, 0, ""), HK_ESYNTAX, "which has 2 for that");
	check_second(TB(0, -1, -1, ""), HK_ESYNTAX, "which has 0 for that");
	check_second(TB(0, 1, 0, STEP(0, "rcs", "o", 0, "o", 0, 1, -1, -1, 0)), HK_ESYNTAX,
		     "itself for a peer");
	check_second(TB(0, -1, 0, "<step/>"), HK_ESYNTAX, "found none");
	check_second(TB(0, -1, 0, "<tb/>"), HK_ESYNTAX, "expected <step>, found <tb>");
}

TEST(blocks_cut_apart_are_refused)
{
	check_refused(
		ALGO("allgather", 4, 2,
		     "inplace=\"0\"") "<gpu id=\"0\" i_chunks=\"2\" o_chunks=\"4\" "
				      "s_chunks=\"0\">" TB(0, -1, -1,
							   STEP(0, "cpy", "i", 1, "o", 1, 1, -1, -1,
								0)) "</gpu><gpu id=\"1\" "
								    "i_chunks=\"2\" o_chunks=\"4\" "
								    "s_chunks=\"0\"></gpu></algo>",
		HK_ELIMIT, "cut into 2; only whole blocks can be read");
}

/* ---- memory ---- */

struct ration {
	int left;
};

static void *ration_resize(void *ctx, void *ptr, size_t size_old, size_t size_new)
{
	struct ration *ration = ctx;

	if (size_new == 0) {
		free(ptr);
		return NULL;
	}
	if (size_new > size_old && ration->left-- <= 0)
		return NULL;
	return realloc(ptr, size_new);
}

/* Each allocation fails once, of writing and of reading; nothing leaks. */
TEST(memory_fails_everywhere)
{
	struct ration ration = { 1000 };
	const struct hk_alloc alloc = { ration_resize, &ration };
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	enum hk_status status = HK_ENOMEM;
	struct hk_plan *plan, *again;

	opts.algo = "bruck";
	opts.alloc = &alloc;
	CHECK_EQ(hk_plan_create(HK_COLL_ALLTOALL, 5, &opts, NULL, &plan), HK_OK);
	for (int allowed = 0; status == HK_ENOMEM; allowed++) {
		char *text = NULL;
		size_t len;
		FILE *file = open_memstream(&text, &len);
		struct hk_why why = { "" };

		CHECK(file && allowed < 1000);
		ration.left = allowed;
		status = hk_plan_print_msccl(plan, file, &why);
		CHECK(fclose(file) == 0);
		CHECK(status == HK_OK || why.text[0]);
		free(text);
	}
	CHECK_EQ(status, HK_OK);
	ration.left = 1000;
	char *text = msccl_text(plan);
	status = HK_ENOMEM;
	for (int allowed = 0; status == HK_ENOMEM; allowed++) {
		CHECK(allowed < 1000);
		ration.left = allowed;
		status = hk_plan_parse(text, strlen(text), "NAME", &alloc, NULL, &again);
	}
	CHECK_EQ(status, HK_OK);
	hk_plan_free(again);
	hk_plan_free(plan);
	free(text);
}
