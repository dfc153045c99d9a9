/* SPDX-License-Identifier: Apache-2.0 */
/*
 * onesided_test.c - the checker on one-sided plans written by hand: right ones, and
 * each way in which one can be wrong, with what is said of it.
 */
#include "harness.h"
#include "plan/store.h"

#include <hocket/hocket.h>

/* ---- writing plans ---- */

static struct hk_plan *plan_empty(enum hk_coll coll, uint32_t parts, enum hk_signals signals)
{
	struct hk__store_spec spec = { .coll = coll,
				       .algo = "by-hand",
				       .n = 2,
				       .nodes = 1,
				       .parts = parts,
				       .slots = 1,
				       .signals = signals };
	struct hk_plan *plan;

	CHECK_EQ(hk__store_create(&hk__alloc_default, &spec, &plan), HK_OK);
	for (uint32_t r = 0; r < 2; r++) {
		plan->store->ranks[r].present = true;
		CHECK(hk__store_add_lane(plan, r));
	}
	return plan;
}

static struct hk_step *add(struct hk_plan *plan, uint32_t rank, uint32_t lane, enum hk_op op)
{
	while (plan->store->ranks[rank].lanes.count <= lane)
		CHECK(hk__store_add_lane(plan, rank));
	struct hk_step *step = hk__store_add_step(plan, rank, lane);

	CHECK(step);
	step->op = op;
	step->count = 1;
	return step;
}

static struct hk_span slot(enum hk_buf buf, uint32_t first)
{
	return (struct hk_span){ buf, first, 0, 0 };
}

static void put(struct hk_plan *plan, uint32_t rank, struct hk_span src, struct hk_span dst)
{
	struct hk_step *step = add(plan, rank, 0, HK_OP_PUT);

	step->to = (struct hk_port){ 1 - rank, 0 };
	step->src = src;
	step->dst = dst;
}

/* On a lane; all else is on lane 0. */
static void signal_on(struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t number)
{
	struct hk_step *step = add(plan, rank, lane, HK_OP_SIGNAL);

	step->to = (struct hk_port){ 1 - rank, number };
	step->count = 0;
}

static void signal(struct hk_plan *plan, uint32_t rank, uint32_t number)
{
	signal_on(plan, rank, 0, number);
}

static void wait_on(struct hk_plan *plan, uint32_t rank, uint32_t lane, uint32_t number,
		    uint32_t count)
{
	struct hk_step *step = add(plan, rank, lane, HK_OP_WAIT);

	step->from = (struct hk_port){ rank, number };
	step->count = count;
}

static void wait(struct hk_plan *plan, uint32_t rank, uint32_t number, uint32_t count)
{
	wait_on(plan, rank, 0, number, count);
}

static struct hk_step *copy(struct hk_plan *plan, uint32_t rank, uint32_t lane, struct hk_span src,
			    struct hk_span dst)
{
	struct hk_step *step = add(plan, rank, lane, HK_OP_COPY);

	step->src = src;
	step->dst = dst;
	return step;
}

static void drop(struct hk_plan *plan, uint32_t rank, uint32_t i)
{
	*hk__store_step(plan, rank, 0, i) = (struct hk_step){ .op = HK_OP_NOP,
							      .from = { HK_NONE, HK_NONE },
							      .to = { HK_NONE, HK_NONE },
							      .after = { HK_NONE, 0 } };
}

static void swap(struct hk_plan *plan, uint32_t rank, uint32_t i)
{
	struct hk_step *a = hk__store_step(plan, rank, 0, i), held = *a;

	a[0] = a[1];
	a[1] = held;
}

/* ---- expecting ---- */

static void expect_proved(struct hk_plan *plan)
{
	struct hk_check_report report = { .size = sizeof(report) };

	if (hk_check(plan, NULL, &report) != HK_OK)
		test_fail(__FILE__, __LINE__, "refused: %s", report.why.text);
	hk_plan_free(plan);
}

static void expect_refused(struct hk_plan *plan, uint32_t invariant, uint32_t rank, uint32_t step,
			   const char *says)
{
	struct hk_check_report report = { .size = sizeof(report) };

	CHECK_EQ(hk_check(plan, NULL, &report), HK_EREFUSED);
	CHECK_HAS(report.why.text, says);
	CHECK_EQ(report.invariant, invariant);
	CHECK_EQ(report.rank, rank);
	CHECK_EQ(report.step, step);
	CHECK(!strchr(report.why.text, '\n'));
	hk_plan_free(plan);
}

/* ---- two ranks put their blocks into each other's out ---- */

enum {
	G_COPY,
	G_BEGUN,
	G_WAIT_BEGUN,
	G_PUT,
	G_SIGNAL,
	G_WAIT
};

static struct hk_plan *gather(enum hk_signals signals)
{
	struct hk_plan *plan = plan_empty(HK_COLL_ALLGATHER, 1, signals);

	for (uint32_t r = 0; r < 2; r++) {
		copy(plan, r, 0, slot(HK_BUF_IN, 0), slot(HK_BUF_OUT, r));
		signal(plan, r, 0);
		wait(plan, r, 0, 1);
		put(plan, r, slot(HK_BUF_IN, 0), slot(HK_BUF_OUT, r));
		signal(plan, r, 1);
		wait(plan, r, 1, 1);
	}
	return plan;
}

TEST(right)
{
	expect_proved(gather(HK_SIGNALS_STRONG));
	expect_proved(gather(HK_SIGNALS_WEAK));
}

TEST(costs)
{
	struct hk_plan *plan = gather(HK_SIGNALS_STRONG);
	struct hk_check_report report = { .size = sizeof(report) };
	struct hk_rank_cost cost = { .size = sizeof(cost) };

	CHECK_EQ(hk_check(plan, NULL, &report), HK_OK);
	CHECK_EQ(report.cost.critical, 2);
	CHECK_EQ(report.cost.messages, 6);
	CHECK_EQ(report.cost.busiest_sent, 1);
	CHECK_EQ(report.cost.sent, 2);
	hk_check_rank_cost(plan, 1, &cost);
	CHECK_EQ(cost.sent, 1);
	CHECK_EQ(hk__plan_signals(plan, 0), 2);
	hk_plan_free(plan);
}

TEST(put_before_the_peer_has_begun)
{
	struct hk_plan *plan = gather(HK_SIGNALS_STRONG);

	swap(plan, 0, G_WAIT_BEGUN);
	expect_refused(plan, 5, 0, G_WAIT_BEGUN,
		       "puts into out[0] of rank 1, which is not known to have begun");
}

TEST(signal_dropped)
{
	struct hk_plan *plan = gather(HK_SIGNALS_STRONG);

	drop(plan, 0, G_SIGNAL);
	expect_refused(plan, 3, 1, G_WAIT,
		       "waits for 1 of its signal 1, but the plan sends it 0: it waits forever");
}

TEST(signal_before_its_put)
{
	struct hk_plan *plan = gather(HK_SIGNALS_STRONG);

	swap(plan, 1, G_PUT);
	expect_refused(plan, 5, 1, G_SIGNAL,
		       "puts into out[1] of rank 0, which can end before it lands: no wait says");
}

TEST(wait_dropped)
{
	struct hk_plan *plan = gather(HK_SIGNALS_STRONG);

	drop(plan, 1, G_WAIT);
	expect_refused(plan, 5, 0, G_PUT,
		       "puts into out[0] of rank 1, which can end before it lands: no wait says");
}

TEST(signal_too_many)
{
	struct hk_plan *plan = gather(HK_SIGNALS_STRONG);

	signal(plan, 0, 1);
	expect_refused(plan, 4, 0, 6,
		       "signal 1 of rank 1 is sent 2 times, but the rank waits for 1: the rest is "
		       "left for a later operation");
}

TEST(both_wait)
{
	struct hk_plan *plan = gather(HK_SIGNALS_STRONG);

	swap(plan, 0, G_BEGUN);
	swap(plan, 1, G_BEGUN);
	expect_refused(
		plan, 3, 0, G_BEGUN,
		"waits for 1 of its signal 0, 0 came, the next is from rank 1 lane 0, which "
		"at step 1 waits for 1 of its signal 0, 0 came, the next is from rank 0 lane "
		"0: a circle of 2");
}

/* What a weak signal says is of the step before alone. */
TEST(weak_signal_apart_from_its_put)
{
	struct hk_plan *plan = gather(HK_SIGNALS_WEAK);

	drop(plan, 0, G_COPY);
	copy(plan, 0, 0, slot(HK_BUF_IN, 0), slot(HK_BUF_OUT, 0));
	struct hk_step *steps = hk__store_step(plan, 0, 0, G_SIGNAL), last = steps[2];
	steps[2] = steps[1];
	steps[1] = steps[0];
	steps[0] = last;
	expect_refused(plan, 5, 0, G_PUT, "which can end before it lands: no wait says");
}

TEST(wrong_place)
{
	struct hk_plan *plan = gather(HK_SIGNALS_STRONG);

	hk__store_step(plan, 1, 0, G_COPY)->dst = slot(HK_BUF_SCRATCH, 0);
	plan->store->ranks[1].scratch = 1;
	expect_refused(plan, 2, 1, HK_NONE, "out[1] should hold rank 1's in[0], but holds nothing");
}

TEST(lengths_differ)
{
	struct hk_plan *plan = gather(HK_SIGNALS_STRONG);

	drop(plan, 1, G_COPY);
	hk__store_step(plan, 0, 0, G_PUT)->dst.first = 1;
	expect_refused(plan, 6, 0, G_PUT, "stores rank 0's in[0] in out[1], which is for");
}

TEST(form)
{
	static const struct {
		uint32_t step;
		uint32_t rank, lane, count;
		enum hk_buf dst;
		const char *says;
	} faults[] = {
		{ G_PUT, 0, 0, 1, HK_BUF_OUT, "put is for its own rank" },
		{ G_PUT, 2, 0, 1, HK_BUF_OUT, "put names a peer that is no rank" },
		{ G_PUT, 1, 1, 1, HK_BUF_OUT, "put names a lane, but no lane of the peer takes" },
		{ G_PUT, 1, 0, 1, HK_BUF_IN, "put writes the input of the peer" },
		{ G_PUT, 1, 0, 1, HK_BUF_NONE, "put names no buffer" },
		{ G_PUT, 1, 0, 1, HK_BUF_SCRATCH, "put names more slots than" },
		{ G_SIGNAL, 0, 0, 0, HK_BUF_NONE, "signal is for its own rank" },
		{ G_SIGNAL, 1, HK_SIGNALS_MAX, 0, HK_BUF_NONE, "signal names a signal past" },
		{ G_WAIT, 1, 1, 1, HK_BUF_NONE, "wait waits for a signal of another rank" },
		{ G_WAIT, 0, HK_SIGNALS_MAX, 1, HK_BUF_NONE, "wait names a signal past" },
		{ G_WAIT, 0, 1, 0, HK_BUF_NONE, "wait waits for no signal at all" },
	};

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct hk_plan *plan = gather(HK_SIGNALS_STRONG);
		struct hk_step *step = hk__store_step(plan, 0, 0, faults[i].step);

		*(faults[i].step == G_WAIT ? &step->from : &step->to) =
			(struct hk_port){ faults[i].rank, faults[i].lane };
		step->dst.buf = faults[i].dst;
		step->count = faults[i].count;
		expect_refused(plan, 1, 0, faults[i].step, faults[i].says);
	}
}

/* ---- rank 0 broadcasts two chunks through scratch, one signal after each ---- */

enum {
	B_PUT_0,
	B_SIGNAL_0,
	B_PUT_1,
	B_SIGNAL_1,
	B_WAIT_0 = 0,
	B_COPY_0,
	B_WAIT_1,
	B_COPY_1
};

static struct hk_plan *chain(enum hk_signals signals)
{
	struct hk_plan *plan = plan_empty(HK_COLL_BROADCAST, 2, signals);

	plan->store->ranks[1].scratch = 2;
	for (uint32_t k = 0; k < 2; k++) {
		put(plan, 0, slot(HK_BUF_IN, k), slot(HK_BUF_SCRATCH, k));
		signal(plan, 0, 0);
		wait(plan, 1, 0, k + 1);
		copy(plan, 1, 0, slot(HK_BUF_SCRATCH, k), slot(HK_BUF_OUT, k));
	}
	for (uint32_t k = 0; k < 2; k++)
		copy(plan, 0, 0, slot(HK_BUF_IN, k), slot(HK_BUF_OUT, k));
	signal(plan, 1, 0);
	wait(plan, 0, 0, 1);
	return plan;
}

TEST(strong_signals_come_in_order)
{
	expect_proved(chain(HK_SIGNALS_STRONG));
}

/* The mistake of a published example of a ring: signals of chunks are counted. */
TEST(later_chunk_can_satisfy_a_wait)
{
	expect_refused(chain(HK_SIGNALS_WEAK), 5, 1, B_COPY_0,
		       "reads scratch[0], which is the place of the put of rank 0 lane 0 step 0, "
		       "and the wait of lane 0 step 0 needs fewer signals than there are: a later "
		       "chunk can satisfy it");
}

TEST(signals_of_their_own_mend_it)
{
	struct hk_plan *plan = chain(HK_SIGNALS_WEAK);

	hk__store_step(plan, 0, 0, B_SIGNAL_1)->to.lane = 1;
	*hk__store_step(plan, 1, 0, B_WAIT_1) = *hk__store_step(plan, 1, 0, B_WAIT_0);
	hk__store_step(plan, 1, 0, B_WAIT_1)->from.lane = 1;
	expect_proved(plan);
}

TEST(waiting_for_all_mends_it)
{
	struct hk_plan *plan = chain(HK_SIGNALS_WEAK);

	hk__store_step(plan, 1, 0, B_WAIT_0)->count = 2;
	expect_proved(plan);
}

TEST(two_lanes_signal_one_word)
{
	struct hk_plan *plan = chain(HK_SIGNALS_STRONG);

	drop(plan, 0, B_SIGNAL_1);
	signal_on(plan, 0, 1, 0);
	hk__store_step(plan, 0, 1, 0)->after = (struct hk_after){ 0, B_PUT_1 };
	expect_refused(plan, 5, 1, B_COPY_0, "a later chunk can satisfy it");
}

TEST(wait_lowered)
{
	struct hk_plan *plan = chain(HK_SIGNALS_STRONG);

	hk__store_step(plan, 1, 0, B_WAIT_1)->count = 1;
	expect_refused(plan, 5, 1, B_COPY_1,
		       "reads scratch[1], which is the place of the put of rank 0 lane 0 step 2, "
		       "and no wait says that it has landed");
}

/* No chunk is read too early, but a signal is left over. */
TEST(last_wait_dropped)
{
	struct hk_plan *plan = chain(HK_SIGNALS_STRONG);

	drop(plan, 1, B_WAIT_1);
	hk__store_step(plan, 1, 0, B_COPY_1)->src.first = 0;
	expect_refused(plan, 6, 1, B_COPY_1, "stores rank 0's in[0] in out[1]");
	plan = chain(HK_SIGNALS_STRONG);
	drop(plan, 1, B_WAIT_1);
	drop(plan, 1, B_COPY_1);
	expect_refused(plan, 5, 0, B_PUT_1, "can end before it lands: no wait says");
}

/* The rank writes where a put may land at any time. */
TEST(written_by_both)
{
	struct hk_plan *plan = chain(HK_SIGNALS_STRONG);

	struct hk_step *step = hk__store_step(plan, 1, 0, B_WAIT_1);
	*step = *hk__store_step(plan, 1, 0, B_COPY_0);
	step->dst = slot(HK_BUF_SCRATCH, 1);
	expect_refused(plan, 5, 1, B_WAIT_1, "writes scratch[1], which is the place of the put");
}

/* One place for both chunks: the second needs word that the first was read. */
static struct hk_plan *one_place(bool acknowledged)
{
	struct hk_plan *plan = plan_empty(HK_COLL_BROADCAST, 2, HK_SIGNALS_STRONG);

	plan->store->ranks[1].scratch = 1;
	for (uint32_t k = 0; k < 2; k++) {
		put(plan, 0, slot(HK_BUF_IN, k), slot(HK_BUF_SCRATCH, 0));
		signal(plan, 0, 0);
		if (acknowledged || k == 1)
			wait(plan, 0, 0, acknowledged ? k + 1 : 2);
		wait(plan, 1, 0, k + 1);
		copy(plan, 1, 0, slot(HK_BUF_SCRATCH, 0), slot(HK_BUF_OUT, k));
		signal(plan, 1, 0);
		copy(plan, 0, 0, slot(HK_BUF_IN, k), slot(HK_BUF_OUT, k));
	}
	return plan;
}

TEST(place_reused_after_word)
{
	expect_proved(one_place(true));
}

TEST(place_reused_early)
{
	expect_refused(
		one_place(false), 5, 0, 3,
		"puts into scratch[0] of rank 1, which is the place of the put of rank 0 lane "
		"0 step 0, and no wait says that it has landed");
}

/* The source of a put is free once it has landed, not once it was issued. */
TEST(source_written_early)
{
	struct hk_plan *plan = plan_empty(HK_COLL_BROADCAST, 2, HK_SIGNALS_STRONG);

	plan->store->ranks[0].scratch = 1;
	plan->store->ranks[1].scratch = 2;
	for (uint32_t k = 0; k < 2; k++) {
		copy(plan, 0, 0, slot(HK_BUF_IN, k), slot(HK_BUF_SCRATCH, 0));
		put(plan, 0, slot(HK_BUF_SCRATCH, 0), slot(HK_BUF_SCRATCH, k));
		signal(plan, 0, 0);
	}
	expect_refused(plan, 5, 0, 3,
		       "writes scratch[0], which is the source of the put of rank 0 lane 0 step 1, "
		       "and no wait says that it has landed");
}

/* Nothing tells rank 0 that rank 1 has begun: two operations on it may overtake it. */
TEST(ends_before_the_peer_begins)
{
	struct hk_plan *plan = chain(HK_SIGNALS_STRONG);

	plan->store->ranks[0].lanes.count = 0;
	CHECK(hk__store_add_lane(plan, 0));
	for (uint32_t k = 0; k < 2; k++) {
		put(plan, 0, slot(HK_BUF_IN, k), slot(HK_BUF_SCRATCH, k));
		signal(plan, 0, 0);
		copy(plan, 0, 0, slot(HK_BUF_IN, k), slot(HK_BUF_OUT, k));
	}
	drop(plan, 1, 4);
	expect_refused(plan, 5, 0, 0, "but rank 0 can end before rank 1 begins");
}

/* A message tells it as well. */
TEST(messages_are_order_too)
{
	struct hk_plan *plan = gather(HK_SIGNALS_STRONG);

	for (uint32_t r = 0; r < 2; r++) {
		*hk__store_step(plan, r, 0, G_BEGUN) = (struct hk_step){ .op = HK_OP_SEND,
									 .to = { 1 - r, 0 },
									 .after = { HK_NONE, 0 } };
		*hk__store_step(plan, r, 0, G_WAIT_BEGUN) = (struct hk_step){
			.op = HK_OP_RECV, .from = { 1 - r, 0 }, .after = { HK_NONE, 0 }
		};
	}
	expect_proved(plan);
}

/* Lane 1 waits, lane 0 reads: only a dependency hands on what lane 1 knows. */
static struct hk_plan *waits_elsewhere(bool ordered)
{
	struct hk_plan *plan = chain(HK_SIGNALS_STRONG);

	drop(plan, 1, B_WAIT_0);
	drop(plan, 1, B_WAIT_1);
	wait_on(plan, 1, 1, 0, 1);
	wait_on(plan, 1, 1, 0, 2);
	for (uint32_t k = 0; k < 2 && ordered; k++)
		hk__store_step(plan, 1, 0, k ? B_COPY_1 : B_COPY_0)->after =
			(struct hk_after){ 1, k };
	return plan;
}

TEST(dependencies_hand_on)
{
	struct hk_plan *plan = waits_elsewhere(true);

	expect_proved(plan);
	plan = waits_elsewhere(true);
	hk__store_step(plan, 1, 0, B_COPY_1)->after.step = 0;
	expect_refused(plan, 5, 1, B_COPY_1, "reads scratch[1], which is the place of the put");
	CHECK_EQ(hk_check(plan = waits_elsewhere(false), NULL,
			  &(struct hk_check_report){ .size = sizeof(struct hk_check_report) }),
		 HK_EREFUSED);
	hk_plan_free(plan);
}

/* ---- a barrier of signals ---- */

TEST(barrier)
{
	struct hk_plan *plan = plan_empty(HK_COLL_BARRIER, 1, HK_SIGNALS_WEAK);

	for (uint32_t r = 0; r < 2; r++) {
		signal(plan, r, 7);
		wait(plan, r, 7, 1);
	}
	CHECK_EQ(hk__plan_signals(plan, 1), 8);
	expect_proved(plan);
	plan = plan_empty(HK_COLL_BARRIER, 1, HK_SIGNALS_WEAK);
	signal(plan, 0, 0);
	wait(plan, 1, 0, 1);
	expect_refused(plan, 5, 0, 0, "but rank 0 can end before rank 1 begins");
}

/* ---- files ---- */

TEST(files_are_read_strictly)
{
	static const struct {
		const char *head, *step;
		enum hk_status status;
		const char *says;
	} files[] = {
		{ "\"signals\": \"weak\",", "\"signal\": 0", HK_OK, "" },
		{ "\"signals\": \"strong\",", "\"signal\": 0, \"count\": 1", HK_OK, "" },
		{ "\"signals\": \"loud\",", "\"signal\": 0", HK_ESYNTAX,
		  "text: signals: expected \"strong\" or \"weak\", found \"loud\"" },
		{ "", "\"signal\": 0", HK_ESYNTAX,
		  "text: programs[0].lanes[0][0]: signal is one-sided, but the plan does not say" },
		{ "\"signals\": \"weak\",", "\"to\": 1, \"signal\": 0", HK_ESYNTAX,
		  "text: programs[0].lanes[0][1].to: wait takes none" },
		{ "\"signals\": \"weak\",", "\"count\": 1", HK_ESYNTAX,
		  "[1].signal: missing; wait needs it" },
		{ "\"signals\": \"weak\",", "\"signal\": 4096", HK_ELIMIT,
		  "[1].signal: expected a whole number from 0 to 4095, found 4096" },
		{ "\"signals\": \"weak\",", "\"signal\": 0, \"count\": 0", HK_ESYNTAX,
		  "wait waits for no signal at all" },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct hk_why why = { "" };
		struct hk_plan *plan;
		char text[1024];

		snprintf(text, sizeof(text),
			 "{\"hocket_plan\": 1, \"collective\": \"barrier\", "
			 "\"algorithm\": \"mine\", \"ranks\": 2, \"slots\": 1, "
			 "\"inplace\": false, %s \"programs\": [\n"
			 "{\"rank\": 0, \"scratch\": 0, \"lanes\": [[{\"op\": \"signal\", "
			 "\"to\": 1, \"signal\": 0}, {\"op\": \"wait\", %s}]]},\n"
			 "{\"rank\": 1, \"scratch\": 0, \"lanes\": [[{\"op\": \"signal\", "
			 "\"to\": 0, \"signal\": 0}, {\"op\": \"wait\", \"signal\": 0}]]}]}",
			 files[i].head, files[i].step);
		CHECK_EQ(hk_plan_parse(text, strlen(text), "text", NULL, &why, &plan),
			 files[i].status);
		CHECK_HAS(why.text, files[i].says);
		if (files[i].status == HK_OK)
			expect_proved(plan);
	}
}

/* ---- memory ---- */

struct scarce {
	uint64_t left;
	int64_t held;
};

static void *scarce_resize(void *ctx, void *ptr, size_t size_old, size_t size_new)
{
	struct scarce *scarce = ctx;

	if (size_new && scarce->left-- == 0)
		return NULL;
	void *now = hk__alloc_default.resize(NULL, ptr, size_old, size_new);
	scarce->held += (int64_t)size_new - (int64_t)size_old;
	return now;
}

TEST(every_allocation_may_fail)
{
	struct hk_plan *plan = waits_elsewhere(true);
	enum hk_status status = HK_ENOMEM;
	uint64_t at = 0;

	for (; status == HK_ENOMEM; at++) {
		struct hk_check_opts opts = HK_CHECK_OPTS_INIT;
		struct hk_check_report report = { .size = sizeof(report) };
		struct scarce scarce = { .left = at };
		struct hk_alloc alloc = { .resize = scarce_resize, .ctx = &scarce };

		opts.alloc = &alloc;
		status = hk_check(plan, &opts, &report);
		CHECK_EQ(scarce.held, 0);
	}
	CHECK_EQ(status, HK_OK);
	CHECK(at > 20);
	hk_plan_free(plan);
}
