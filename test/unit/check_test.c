/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_test.c - the checker on plans written by hand, each wrong in one way:
 * the refusal has the right kind, names the right step and says the right
 * thing. And what it reports of plans that are right.
 */
#include "harness.h"
#include "plan/store.h"

#include <hocket/hocket.h>

/* ---- writing plans ---- */

static struct hk_plan *plan_empty(enum hk_coll coll, uint32_t n, uint32_t parts, uint32_t nlanes)
{
	struct hk__store_spec spec = {
		.coll = coll, .algo = "by hand", .n = n, .nodes = 1, .parts = parts, .slots = 1
	};
	struct hk_plan *plan;

	CHECK_EQ(hk__store_create(&hk__alloc_default, &spec, &plan), HK_OK);
	for (uint32_t r = 0; r < n; r++) {
		plan->store->ranks[r].present = true;
		for (uint32_t l = 0; l < nlanes; l++)
			CHECK(hk__store_add_lane(plan, r));
	}
	return plan;
}

static struct hk_step *add(struct hk_plan *plan, uint32_t rank, uint32_t lane, enum hk_op op)
{
	struct hk_step *step = hk__store_add_step(plan, rank, lane);

	CHECK(step);
	step->op = op;
	step->count = 1;
	return step;
}

static struct hk_step *add_send(struct hk_plan *plan, uint32_t rank, uint32_t lane,
				struct hk_port to, enum hk_buf buf, uint32_t slot)
{
	struct hk_step *step = add(plan, rank, lane, HK_OP_SEND);

	step->to = to;
	step->src = (struct hk_span){ buf, slot, 0, 0 };
	return step;
}

static struct hk_step *add_recv(struct hk_plan *plan, uint32_t rank, uint32_t lane,
				struct hk_port from, enum hk_buf buf, uint32_t slot)
{
	struct hk_step *step = add(plan, rank, lane, HK_OP_RECV);

	step->from = from;
	step->dst = (struct hk_span){ buf, slot, 0, 0 };
	return step;
}

static struct hk_step *add_copy(struct hk_plan *plan, uint32_t rank, uint32_t lane,
				enum hk_buf from, uint32_t at, enum hk_buf to, uint32_t slot)
{
	struct hk_step *step = add(plan, rank, lane, HK_OP_COPY);

	step->src = (struct hk_span){ from, at, 0, 0 };
	step->dst = (struct hk_span){ to, slot, 0, 0 };
	return step;
}

static struct hk_port at(uint32_t rank, uint32_t lane)
{
	return (struct hk_port){ rank, lane };
}

/* Two ranks exchange their blocks; every test breaks this one. */
static struct hk_plan *allgather2(void)
{
	struct hk_plan *plan = plan_empty(HK_COLL_ALLGATHER, 2, 1, 1);

	for (uint32_t r = 0; r < 2; r++) {
		add_copy(plan, r, 0, HK_BUF_IN, 0, HK_BUF_OUT, r);
		add_send(plan, r, 0, at(1 - r, 0), HK_BUF_IN, 0);
		add_recv(plan, r, 0, at(1 - r, 0), HK_BUF_OUT, 1 - r);
	}
	return plan;
}

/* ---- expecting ---- */

static void expect_refused(struct hk_plan *plan, bool inplace, enum hk_refusal kind, uint32_t rank,
			   uint32_t step, const char *says)
{
	struct hk_check_opts opts = HK_CHECK_OPTS_INIT;
	struct hk_check_report report = { .size = sizeof(report) };

	opts.inplace = inplace;
	CHECK_EQ(hk_check(plan, &opts, &report), HK_EREFUSED);
	CHECK(!report.proved);
	CHECK_STR(hk_refusal_name(report.refusal), hk_refusal_name(kind));
	CHECK_HAS(report.why.text, says);
	CHECK_EQ(report.rank, rank);
	CHECK_EQ(report.step, step);
	CHECK(!strchr(report.why.text, '\n'));
	hk_plan_free(plan);
}

static void expect_proved(struct hk_plan *plan, bool inplace, struct hk_check_report *report)
{
	struct hk_check_opts opts = HK_CHECK_OPTS_INIT;

	opts.inplace = inplace;
	enum hk_status status = hk_check(plan, &opts, report);
	if (status != HK_OK)
		test_fail(__FILE__, __LINE__, "refused: %s", report->why.text);
	CHECK(report->proved);
	CHECK_EQ(report->refusal, HK_REFUSAL_NONE);
	hk_plan_free(plan);
}

TEST(right_plan_is_proved)
{
	struct hk_check_report report = { .size = sizeof(report) };

	expect_proved(allgather2(), false, &report);
	CHECK_EQ(report.cost.critical, 1);
	CHECK_EQ(report.cost.busiest_sent, 1);
	CHECK_EQ(report.cost.busiest_received, 1);
	CHECK_EQ(report.cost.busiest_copied, 1);
	CHECK_EQ(report.cost.messages, 2);
	CHECK_EQ(report.cost.chunks, 2);
	CHECK_EQ(report.cost.steps_total, 6);
	expect_proved(allgather2(), true, &report);
}

/* ---- result ---- */

TEST(wrong_output_slot)
{
	struct hk_plan *plan = allgather2();

	/* Rank 0 puts what comes from rank 1 into its own slot. */
	hk__store_step(plan, 0, 0, 2)->dst.first = 0;
	expect_refused(
		plan, false, HK_REFUSAL_RESULT, 0, 2,
		"rank 0 lane 0 step 2: stores rank 1's in[0] in out[0], which is for rank 0's "
		"in[0] and may have another length");
}

TEST(missing_block)
{
	struct hk_plan *plan = plan_empty(HK_COLL_ALLGATHER, 1, 1, 1);

	expect_refused(plan, false, HK_REFUSAL_RESULT, 0, HK_NONE,
		       "rank 0: out[0] should hold rank 0's in[0], but holds nothing");
}

static struct hk_plan *allreduce2(void)
{
	struct hk_plan *plan = plan_empty(HK_COLL_ALLREDUCE, 2, 1, 1);

	for (uint32_t r = 0; r < 2; r++) {
		add_send(plan, r, 0, at(1 - r, 0), HK_BUF_IN, 0);
		struct hk_step *step = add_recv(plan, r, 0, at(1 - r, 0), HK_BUF_OUT, 0);
		step->op = HK_OP_RECV_REDUCE;
		step->src = (struct hk_span){ HK_BUF_IN, 0, 0, 0 };
	}
	return plan;
}

TEST(contribution_missing)
{
	struct hk_plan *plan = allreduce2();

	hk__store_step(plan, 1, 0, 1)->op = HK_OP_RECV;
	expect_refused(plan, false, HK_REFUSAL_RESULT, 1, 1,
		       "out[0] should hold the sum of in[0] over all 2 ranks, but holds rank 0's "
		       "in[0]");
}

TEST(contribution_twice)
{
	struct hk_plan *plan = allreduce2();
	struct hk_step *again = add(plan, 0, 0, HK_OP_REDUCE);

	again->src = (struct hk_span){ HK_BUF_IN, 0, 0, 0 };
	again->dst = (struct hk_span){ HK_BUF_OUT, 0, 0, 0 };
	expect_refused(plan, false, HK_REFUSAL_RESULT, 0, 2,
		       "holds the sum of in[0] over ranks 0-1 (rank 0 more than once)");
}

/* Doubling a sum forty times must cost forty steps, not 2^40. */
TEST(contribution_counted_2_to_the_40)
{
	struct hk_plan *plan = allreduce2();

	for (int i = 0; i < 40; i++) {
		struct hk_step *again = add(plan, 0, 0, HK_OP_REDUCE);

		again->src = again->dst = (struct hk_span){ HK_BUF_OUT, 0, 0, 0 };
	}
	expect_refused(plan, false, HK_REFUSAL_RESULT, 0, 41, "more than once");
}

TEST(other_part_added)
{
	struct hk_plan *plan = plan_empty(HK_COLL_ALLREDUCE, 1, 2, 1);
	struct hk_step *step;

	add_copy(plan, 0, 0, HK_BUF_IN, 0, HK_BUF_OUT, 0);
	step = add(plan, 0, 0, HK_OP_REDUCE);
	step->src = (struct hk_span){ HK_BUF_IN, 1, 0, 0 };
	step->dst = (struct hk_span){ HK_BUF_OUT, 0, 0, 0 };
	expect_refused(plan, false, HK_REFUSAL_RESULT, 0, 1, "which is a chunk of another length");
}

TEST(reads_nothing)
{
	struct hk_plan *plan = allgather2();

	plan->store->ranks[0].scratch = 2;
	add_copy(plan, 0, 0, HK_BUF_SCRATCH, 1, HK_BUF_SCRATCH, 0);
	expect_refused(plan, false, HK_REFUSAL_RESULT, 0, 3,
		       "reads scratch[1], which holds nothing yet");
}

/* Right out of place; in place its input is gone before it is sent. */
TEST(in_place_overwrites_its_input)
{
	struct hk_plan *plan = allreduce2();
	struct hk_check_report report = { .size = sizeof(report) };
	struct hk_check_opts opts = HK_CHECK_OPTS_INIT;

	/* Rank 0: receive into out first, then send in, then add in. */
	*hk__store_step(plan, 0, 0, 0) = *hk__store_step(plan, 0, 0, 1);
	hk__store_step(plan, 0, 0, 0)->op = HK_OP_RECV;
	*hk__store_step(plan, 0, 0, 1) = hk__step_none;
	struct hk_step *send = hk__store_step(plan, 0, 0, 1);
	send->op = HK_OP_SEND;
	send->count = 1;
	send->to = at(1, 0);
	send->src = (struct hk_span){ HK_BUF_IN, 0, 0, 0 };
	struct hk_step *sum = add(plan, 0, 0, HK_OP_REDUCE);
	sum->src = (struct hk_span){ HK_BUF_IN, 0, 0, 0 };
	sum->dst = (struct hk_span){ HK_BUF_OUT, 0, 0, 0 };
	CHECK_EQ(hk_check(plan, NULL, &report), HK_OK);
	opts.inplace = true;
	CHECK_EQ(hk_check(plan, &opts, &report), HK_EREFUSED);
	CHECK_EQ(report.refusal, HK_REFUSAL_RESULT);
	hk_plan_free(plan);
}

TEST(barrier_leaves_early)
{
	struct hk_plan *plan = plan_empty(HK_COLL_BARRIER, 3, 1, 1);

	/* Round a ring of three once: nobody hears of the one behind. */
	for (uint32_t r = 0; r < 3; r++) {
		add_send(plan, r, 0, at((r + 1) % 3, 0), HK_BUF_NONE, 0)->count = 0;
		add_recv(plan, r, 0, at((r + 2) % 3, 0), HK_BUF_NONE, 0)->count = 0;
	}
	expect_refused(plan, false, HK_REFUSAL_RESULT, 0, HK_NONE,
		       "leaves the barrier without knowing that rank 1 came");
}

/* ---- progress ---- */

TEST(both_wait_first)
{
	struct hk_plan *plan = allgather2();

	for (uint32_t r = 0; r < 2; r++) {
		struct hk_step send = *hk__store_step(plan, r, 0, 1);

		*hk__store_step(plan, r, 0, 1) = *hk__store_step(plan, r, 0, 2);
		*hk__store_step(plan, r, 0, 2) = send;
	}
	expect_refused(plan, false, HK_REFUSAL_PROGRESS, 0, 1,
		       "rank 0 lane 0 step 1: waits for a message from rank 1 lane 0, which at "
		       "step 1 waits for a message from rank 0 lane 0: a circle");
}

TEST(peer_has_ended)
{
	struct hk_plan *plan = allgather2();

	add_recv(plan, 0, 0, at(1, 0), HK_BUF_OUT, 1);
	expect_refused(plan, false, HK_REFUSAL_PROGRESS, 0, 3,
		       "waits for a message from rank 1 lane 0, which has ended");
}

TEST(message_never_received)
{
	struct hk_plan *plan = allgather2();

	add_send(plan, 1, 0, at(0, 0), HK_BUF_IN, 0);
	expect_refused(plan, false, HK_REFUSAL_PROGRESS, 1, 3,
		       "sends to rank 0 lane 0, which never receives it");
}

/* Two messages ahead of the receiver need two slots. */
static struct hk_plan *two_ahead(uint32_t slots)
{
	struct hk_plan *plan = plan_empty(HK_COLL_ALLREDUCE, 2, 2, 1);

	plan->slots = slots;
	for (uint32_t r = 0; r < 2; r++)
		for (uint32_t k = 0; k < 2; k++)
			add_send(plan, r, 0, at(1 - r, 0), HK_BUF_IN, k);
	for (uint32_t r = 0; r < 2; r++) {
		for (uint32_t k = 0; k < 2; k++) {
			struct hk_step *step = add_recv(plan, r, 0, at(1 - r, 0), HK_BUF_OUT, k);

			step->op = HK_OP_RECV_REDUCE;
			step->src = (struct hk_span){ HK_BUF_IN, k, 0, 0 };
		}
	}
	return plan;
}

TEST(too_few_slots)
{
	struct hk_check_report report = { .size = sizeof(report) };

	expect_proved(two_ahead(2), false, &report);
	expect_refused(two_ahead(1), false, HK_REFUSAL_PROGRESS, 0, 1,
		       "waits for a free slot (of 1) to rank 1 lane 0");
	expect_refused(two_ahead(0), false, HK_REFUSAL_PROGRESS, 0, 0,
		       "waits for rank 1 lane 0 to take its message");
}

TEST(rendezvous_where_one_receives_first)
{
	struct hk_plan *plan = allgather2();
	struct hk_step send = *hk__store_step(plan, 1, 0, 1);
	struct hk_check_report report = { .size = sizeof(report) };

	*hk__store_step(plan, 1, 0, 1) = *hk__store_step(plan, 1, 0, 2);
	*hk__store_step(plan, 1, 0, 2) = send;
	plan->slots = 0;
	expect_proved(plan, false, &report);
}

TEST(lanes_wait_for_each_other)
{
	struct hk_plan *plan = plan_empty(HK_COLL_ALLGATHER, 1, 1, 2);

	add_copy(plan, 0, 0, HK_BUF_IN, 0, HK_BUF_OUT, 0)->after = (struct hk_after){ 1, 0 };
	add(plan, 0, 1, HK_OP_NOP)->after = (struct hk_after){ 0, 0 };
	expect_refused(plan, false, HK_REFUSAL_PROGRESS, 0, 0, "waits for its own lane 1 step 0");
}

/* ---- race ---- */

/* Lane 0 receives into scratch, lane 1 copies it out. */
static struct hk_plan *two_lanes(bool ordered)
{
	struct hk_plan *plan = plan_empty(HK_COLL_BROADCAST, 2, 1, 2);
	struct hk_step *copy;

	plan->store->ranks[1].scratch = 1;
	add_send(plan, 0, 0, at(1, 0), HK_BUF_IN, 0);
	add_copy(plan, 0, 0, HK_BUF_IN, 0, HK_BUF_OUT, 0);
	add_recv(plan, 1, 0, at(0, 0), HK_BUF_SCRATCH, 0);
	copy = add_copy(plan, 1, 1, HK_BUF_SCRATCH, 0, HK_BUF_OUT, 0);
	if (ordered)
		copy->after = (struct hk_after){ 0, 0 };
	return plan;
}

TEST(read_and_write_unordered)
{
	struct hk_check_report report = { .size = sizeof(report) };

	expect_proved(two_lanes(true), false, &report);
	expect_refused(two_lanes(false), false, HK_REFUSAL_RACE, 1, 0,
		       "rank 1 lane 1 step 0: reads scratch[0], which lane 0 step 0 writes, and no "
		       "dependency orders the two");
}

TEST(two_writes_unordered)
{
	struct hk_plan *plan = plan_empty(HK_COLL_ALLGATHER, 1, 1, 2);

	add_copy(plan, 0, 0, HK_BUF_IN, 0, HK_BUF_OUT, 0);
	add_copy(plan, 0, 1, HK_BUF_IN, 0, HK_BUF_OUT, 0);
	expect_refused(plan, false, HK_REFUSAL_RACE, 0, 0, "writes out[0], which lane 0 step 0");
}

/* Ordered through a third lane: dependencies add up. */
TEST(order_through_another_lane)
{
	struct hk_plan *plan = plan_empty(HK_COLL_ALLGATHER, 1, 1, 3);
	struct hk_check_report report = { .size = sizeof(report) };

	plan->store->ranks[0].scratch = 1;
	add_copy(plan, 0, 0, HK_BUF_IN, 0, HK_BUF_SCRATCH, 0);
	add(plan, 0, 1, HK_OP_NOP)->after = (struct hk_after){ 0, 0 };
	add(plan, 0, 1, HK_OP_NOP);
	add_copy(plan, 0, 2, HK_BUF_SCRATCH, 0, HK_BUF_OUT, 0)->after = (struct hk_after){ 1, 1 };
	expect_proved(plan, false, &report);
}

/*
 * The dependency is on a step before the write, though in this run the whole
 * lane happens to be over by then: that is no order.
 */
TEST(order_by_luck_is_none)
{
	struct hk_plan *plan = plan_empty(HK_COLL_ALLGATHER, 1, 1, 2);

	plan->store->ranks[0].scratch = 1;
	add(plan, 0, 0, HK_OP_NOP);
	add_copy(plan, 0, 0, HK_BUF_IN, 0, HK_BUF_SCRATCH, 0);
	add_copy(plan, 0, 1, HK_BUF_SCRATCH, 0, HK_BUF_OUT, 0)->after = (struct hk_after){ 0, 0 };
	expect_refused(plan, false, HK_REFUSAL_RACE, 0, 0, "reads scratch[0]");
}

/* ---- form ---- */

TEST(form_faults)
{
	static const struct {
		enum hk_op op;
		uint32_t to_rank, to_lane;
		enum hk_buf src;
		uint32_t first, count;
		enum hk_buf dst;
		uint32_t after_lane;
		const char *says;
	} faults[] = {
		{ HK_OP_SEND, 7, 0, HK_BUF_IN, 0, 1, HK_BUF_NONE, HK_NONE,
		  "send names a peer that is no rank of the plan" },
		{ HK_OP_SEND, 1, 3, HK_BUF_IN, 0, 1, HK_BUF_NONE, HK_NONE,
		  "send names a lane the peer does not have" },
		{ HK_OP_SEND, 1, 0, HK_BUF_IN, 1, 1, HK_BUF_NONE, HK_NONE,
		  "names a slot past the end" },
		{ HK_OP_SEND, 1, 0, HK_BUF_OUT, 0, 3, HK_BUF_NONE, HK_NONE,
		  "names more slots than" },
		{ HK_OP_SEND, 1, 0, HK_BUF_NONE, 0, 1, HK_BUF_NONE, HK_NONE, "names no buffer" },
		{ HK_OP_SEND, 1, 0, HK_BUF_SCRATCH, 0, 1, HK_BUF_NONE, HK_NONE,
		  "names more slots than" },
		{ HK_OP_COPY, 0, 0, HK_BUF_IN, 0, 1, HK_BUF_IN, HK_NONE,
		  "copy writes the input, which is read-only" },
		{ HK_OP_PUT, 1, 0, HK_BUF_IN, 0, 1, HK_BUF_NONE, HK_NONE,
		  "put is one-sided, but the plan does not say whether signals are strong" },
		{ HK_OP_MULTICAST, 1, 0, HK_BUF_IN, 0, 1, HK_BUF_NONE, HK_NONE,
		  "multicast is a reserved operation that cannot be proved yet" },
		{ HK_OP_COPY, 0, 0, HK_BUF_IN, 0, 1, HK_BUF_OUT, 5,
		  "depends on a step that the rank does not have" },
	};

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct hk_plan *plan = allgather2();
		struct hk_step *step = add(plan, 0, 0, faults[i].op);

		step->to = at(faults[i].to_rank, faults[i].to_lane);
		step->src = (struct hk_span){ faults[i].src, faults[i].first, 0, 0 };
		step->dst = (struct hk_span){ faults[i].dst, 0, 0, 0 };
		step->count = faults[i].count;
		step->after.lane = faults[i].after_lane;
		expect_refused(plan, false, HK_REFUSAL_FORM, 0, 3, faults[i].says);
	}
}

TEST(counts_of_both_ends_differ)
{
	struct hk_plan *plan = allgather2();

	hk__store_step(plan, 0, 0, 2)->count = 2;
	hk__store_step(plan, 0, 0, 2)->dst.first = 0;
	expect_refused(plan, false, HK_REFUSAL_FORM, 0, 2,
		       "expects a message of 2 chunks, but finds one of 1, sent by rank 1 lane 0 "
		       "step 1");
}

TEST(step_overlaps_itself)
{
	struct hk_plan *plan = plan_empty(HK_COLL_ALLREDUCE, 3, 3, 1);
	struct hk_step *step = add_copy(plan, 0, 0, HK_BUF_IN, 0, HK_BUF_OUT, 0);

	step->count = 2;
	step->dst = (struct hk_span){ HK_BUF_OUT, 0, 1, 3 }; /* 0, then 3 mod 3 */
	expect_refused(plan, false, HK_REFUSAL_FORM, 0, 0, "writes out[0] twice");

	plan = plan_empty(HK_COLL_ALLREDUCE, 3, 3, 1);
	add_copy(plan, 0, 0, HK_BUF_IN, 0, HK_BUF_OUT, 0)->count = 3;
	step = add_copy(plan, 0, 0, HK_BUF_OUT, 0, HK_BUF_OUT, 1);
	step->count = 2;
	expect_refused(plan, false, HK_REFUSAL_FORM, 0, 1,
		       "reads out[1] for one chunk and overwrites it with another");
}

/* ---- words for many ranks ---- */

TEST(the_missing_one_of_hundred)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk_plan *plan, *copy;

	opts.algo = "ring";
	CHECK_EQ(hk_plan_create(HK_COLL_ALLREDUCE, 100, &opts, NULL, &plan), HK_OK);
	CHECK_EQ(hk__store_copy(&hk__alloc_default, plan, &copy), HK_OK);
	hk_plan_free(plan);
	/* Rank 42 passes one partial sum on without adding to it. */
	hk__store_step(copy, 42, 0, 7)->op = HK_OP_RECV_SEND;
	hk__store_step(copy, 42, 0, 7)->dst.buf = HK_BUF_NONE;
	expect_refused(copy, false, HK_REFUSAL_RESULT, 0, 165,
		       "over ranks 0-41,43-99; without rank 42");
}

TEST(a_long_circle)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk_plan *plan, *copy;

	opts.algo = "ring";
	CHECK_EQ(hk_plan_create(HK_COLL_ALLREDUCE, 8, &opts, NULL, &plan), HK_OK);
	CHECK_EQ(hk__store_copy(&hk__alloc_default, plan, &copy), HK_OK);
	hk_plan_free(plan);
	copy->slots = 0;
	expect_refused(copy, false, HK_REFUSAL_PROGRESS, 0, 0, ", ...: a circle of 8");
}

/* Two blocks that share memory would need one length: alltoall's do not. */
TEST(no_alltoall_in_place)
{
	struct hk_check_opts opts = HK_CHECK_OPTS_INIT;
	struct hk_check_report report = { .size = sizeof(report) };
	struct hk_plan *plan;

	CHECK_EQ(hk_plan_create(HK_COLL_ALLTOALL, 3, NULL, NULL, &plan), HK_OK);
	opts.inplace = true;
	CHECK_EQ(hk_check(plan, &opts, &report), HK_EINVAL);
	CHECK_STR(report.why.text, "alltoall has no in-place form");
	CHECK(!report.proved);
	hk_plan_free(plan);
}

/* A plan may not lean on more slots than every transport has. */
TEST(slots_beyond_the_least)
{
	struct hk_plan *plan = plan_empty(HK_COLL_ALLREDUCE, 2, 3, 1);

	plan->slots = 3;
	for (uint32_t r = 0; r < 2; r++)
		for (uint32_t k = 0; k < 3; k++)
			add_send(plan, r, 0, at(1 - r, 0), HK_BUF_IN, k);
	for (uint32_t r = 0; r < 2; r++)
		for (uint32_t k = 0; k < 3; k++)
			add_recv(plan, r, 0, at(1 - r, 0), HK_BUF_OUT, k);
	expect_refused(plan, false, HK_REFUSAL_PROGRESS, 0, 2, "waits for a free slot (of 2)");
}

/* ---- reports ---- */

/* Same sums in another order are right, but not the same bits. */
TEST(order_of_reduction_is_seen)
{
	struct hk_plan *plan = plan_empty(HK_COLL_ALLREDUCE, 3, 1, 1);
	struct hk_check_report report = { .size = sizeof(report) };

	for (uint32_t r = 0; r < 3; r++) {
		for (uint32_t d = 1; d < 3; d++)
			add_send(plan, r, 0, at((r + d) % 3, 0), HK_BUF_IN, 0);
		for (uint32_t d = 1; d < 3; d++) {
			struct hk_step *step =
				add_recv(plan, r, 0, at((r + d) % 3, 0), HK_BUF_OUT, 0);

			step->op = HK_OP_RECV_REDUCE;
			step->src = (struct hk_span){ d == 1 ? HK_BUF_IN : HK_BUF_OUT, 0, 0, 0 };
		}
	}
	expect_proved(plan, false, &report);
	CHECK(!report.consistent);

	CHECK_EQ(hk_plan_create(HK_COLL_ALLREDUCE, 3, NULL, NULL, &plan), HK_OK);
	expect_proved(plan, false, &report);
	CHECK(report.consistent);
}

static void *fail_resize(void *ctx, void *ptr, size_t size_old, size_t size_new)
{
	int *left = ctx;

	if (size_new && (*left)-- <= 0)
		return NULL;
	return hk__alloc_default.resize(NULL, ptr, size_old, size_new);
}

/* The N-th allocation fails: a status each time, and (under ASan) no leak. */
TEST(every_allocation_may_fail)
{
	static const enum hk_coll colls[] = { HK_COLL_ALLREDUCE, HK_COLL_BARRIER,
					      HK_COLL_SENDRECV };

	for (size_t c = 0; c < sizeof(colls) / sizeof(colls[0]); c++) {
		enum hk_status status = HK_ENOMEM;
		int n;

		for (n = 0; status == HK_ENOMEM; n++) {
			int left = n;
			struct hk_alloc alloc = { fail_resize, &left };
			struct hk_check_opts check_opts = HK_CHECK_OPTS_INIT;
			struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
			struct hk_check_report report = { .size = sizeof(report) };
			struct hk_plan *plan;

			opts.alloc = check_opts.alloc = &alloc;
			if (colls[c] == HK_COLL_ALLREDUCE)
				opts.algo = "two-level";
			status = hk_plan_create(colls[c], 6, &opts, NULL, &plan);
			if (status != HK_OK)
				continue;
			status = hk_check(plan, &check_opts, &report);
			CHECK(status == HK_OK || status == HK_ENOMEM);
			hk_plan_free(plan);
			CHECK(n < 10000);
		}
		CHECK_EQ(status, HK_OK);
		CHECK(n > 10);
	}
}

static void count_progress(void *ctx, uint64_t done, uint64_t total)
{
	uint64_t *seen = ctx;

	CHECK(done <= total);
	CHECK(done == 0 || done > seen[1]);
	CHECK_EQ(total, 256 * (2 * 256 - 1));
	seen[0]++;
	seen[1] = done;
}

TEST(progress_is_told)
{
	struct hk_check_opts opts = HK_CHECK_OPTS_INIT;
	struct hk_plan_opts plan_opts = HK_PLAN_OPTS_INIT;
	struct hk_check_report report = { .size = sizeof(report) };
	struct hk_plan *plan;
	uint64_t seen[2] = { 0 };

	plan_opts.algo = "ring";
	CHECK_EQ(hk_plan_create(HK_COLL_ALLREDUCE, 256, &plan_opts, NULL, &plan), HK_OK);
	opts.progress = count_progress;
	opts.ctx = seen;
	CHECK_EQ(hk_check(plan, &opts, &report), HK_OK);
	CHECK_EQ(seen[0], 2); /* at the start, and after 65536 of 130816 steps */
	hk_plan_free(plan);
}

TEST(options_of_another_version)
{
	struct hk_check_opts opts = HK_CHECK_OPTS_INIT;
	struct hk_plan *plan = allgather2();
	struct hk_check_report report = { .size = sizeof(report) };

	opts.size = 1;
	CHECK_EQ(hk_check(plan, &opts, &report), HK_EINVAL);
	hk_plan_free(plan);
}
