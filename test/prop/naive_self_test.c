/* SPDX-License-Identifier: Apache-2.0 */
/* naive_self_test.c - the witness itself: plans made by hand, right and wrong. */
#include "harness.h"
#include "naive/naive.h"
#include "plan/store.h"

/* ---- plans made by hand ---- */

static struct hk_plan *plan_make(enum hk_coll coll, uint32_t n, uint32_t parts, uint32_t nlanes)
{
	struct hk__store_spec spec = { .coll = coll,
				       .algo = "hand",
				       .n = n,
				       .nodes = 1,
				       .parts = parts,
				       .slots = 1,
				       .inplace = true };
	struct hk_plan *plan;

	CHECK_EQ(hk__store_create(&hk__alloc_default, &spec, &plan), HK_OK);
	for (uint32_t r = 0; r < n; r++)
		for (uint32_t l = 0; l < nlanes; l++)
			CHECK(hk__store_add_lane(plan, r));
	return plan;
}

static struct hk_step *plan_add(struct hk_plan *plan, uint32_t rank, uint32_t lane, enum hk_op op)
{
	struct hk_step *step = hk__store_add_step(plan, rank, lane);

	CHECK(step);
	step->op = op;
	step->count = 1;
	return step;
}

static struct hk_span span(enum hk_buf buf, uint32_t first)
{
	return (struct hk_span){ .buf = buf, .first = first };
}

static void plan_send(struct hk_plan *plan, uint32_t rank, uint32_t peer, struct hk_span src)
{
	struct hk_step *step = plan_add(plan, rank, 0, HK_OP_SEND);

	step->to = (struct hk_port){ peer, 0 };
	step->src = src;
}

static void plan_recv(struct hk_plan *plan, uint32_t rank, uint32_t peer, struct hk_span dst)
{
	struct hk_step *step = plan_add(plan, rank, 0, HK_OP_RECV);

	step->from = (struct hk_port){ peer, 0 };
	step->dst = dst;
}

static void plan_copy(struct hk_plan *plan, uint32_t rank, struct hk_span src, struct hk_span dst)
{
	struct hk_step *step = plan_add(plan, rank, 0, HK_OP_COPY);

	step->src = src;
	step->dst = dst;
}

/* Two ranks allgather: each copies its own block and sends it over. */
static struct hk_plan *plan_exchange(void)
{
	struct hk_plan *plan = plan_make(HK_COLL_ALLGATHER, 2, 1, 1);

	for (uint32_t r = 0; r < 2; r++) {
		plan_send(plan, r, 1 - r, span(HK_BUF_IN, 0));
		plan_recv(plan, r, 1 - r, span(HK_BUF_OUT, 1 - r));
		plan_copy(plan, r, span(HK_BUF_IN, 0), span(HK_BUF_OUT, r));
	}
	return plan;
}

/* ---- running them ---- */

static const enum elem_type types[] = { ELEM_INT64, ELEM_DOUBLE, ELEM_FLOAT };

/* How many of some schedules of every order end with each fault. */
struct tally {
	uint32_t of[NAIVE_WRONG + 1];
	uint32_t runs;
};

static struct tally run_many(const struct hk_plan *plan, uint64_t count, uint32_t slots,
			     bool inplace)
{
	struct naive *naive = naive_create();
	struct tally tally = { .runs = 0 };
	struct hk_plan_info info = { .size = sizeof(info) };

	hk_plan_describe(plan, &info);
	naive_load(naive, plan);
	for (uint32_t i = 0; i < 120; i++) {
		struct defn_spec spec = { .coll = info.coll,
					  .type = types[i % 3],
					  .n = info.nranks,
					  .root = info.root,
					  .sizes = { count, NULL } };
		struct defn *data = defn_create(&spec, ELEM_EXACT, i);
		struct naive_opts opts = { .order = (enum naive_order)(i % NAIVE_ORDER_COUNT),
					   .seed = i,
					   .slots = slots,
					   .inplace = inplace };

		tally.of[naive_run(naive, data, &opts, NULL)]++;
		tally.runs++;
		defn_destroy(data);
	}
	naive_destroy(naive);
	return tally;
}

static void check_always(struct hk_plan *plan, uint32_t slots, enum naive_fault fault)
{
	struct tally tally = run_many(plan, 5, slots, false);

	CHECK_EQ(tally.of[fault], tally.runs);
	hk_plan_free(plan);
}

TEST(exchange_is_right)
{
	check_always(plan_exchange(), 1, NAIVE_OK);
	check_always(plan_exchange(), 7, NAIVE_OK);
}

TEST(exchange_in_place_is_right)
{
	struct hk_plan *plan = plan_exchange();
	struct tally tally = run_many(plan, 5, 1, true);

	CHECK_EQ(tally.of[NAIVE_OK], tally.runs);
	hk_plan_free(plan);
}

TEST(exchange_without_slots_deadlocks)
{
	check_always(plan_exchange(), 0, NAIVE_DEADLOCK);
}

TEST(exchange_ordered_needs_no_slots)
{
	struct hk_plan *plan = plan_exchange();
	struct hk_step *first = hk__store_step(plan, 1, 0, 0), *second = first + 1;
	struct hk_step swap = *first;

	*first = *second;
	*second = swap;
	check_always(plan, 0, NAIVE_OK);
}

TEST(nobody_sends_is_deadlock)
{
	struct hk_plan *plan = plan_exchange();

	hk__store_step(plan, 0, 0, 0)->op = HK_OP_NOP;
	check_always(plan, 1, NAIVE_DEADLOCK);
}

TEST(after_itself_is_deadlock)
{
	struct hk_plan *plan = plan_exchange();

	hk__store_step(plan, 0, 0, 2)->after = (struct hk_after){ 0, 2 };
	check_always(plan, 1, NAIVE_DEADLOCK);
}

TEST(leftover_message)
{
	struct hk_plan *plan = plan_exchange();

	plan_send(plan, 0, 1, span(HK_BUF_OUT, 0));
	check_always(plan, 4, NAIVE_LEFTOVER);
}

TEST(missing_block_is_wrong)
{
	struct hk_plan *plan = plan_exchange();

	hk__store_step(plan, 1, 0, 2)->op = HK_OP_NOP;
	check_always(plan, 1, NAIVE_WRONG);
}

TEST(swapped_block_is_wrong)
{
	struct hk_plan *plan = plan_exchange();

	hk__store_step(plan, 1, 0, 1)->dst.first = 1;
	check_always(plan, 1, NAIVE_WRONG);
}

TEST(lengths_are_compared)
{
	static const uint64_t counts[] = { 2, 3 };
	struct defn_spec spec = { .coll = HK_COLL_ALLGATHER, .n = 2, .sizes = { 0, counts } };
	struct defn *data = defn_create(&spec, ELEM_EXACT, 1);
	struct naive *naive = naive_create();
	struct naive_opts opts = { .slots = 1 };
	struct naive_report report;
	struct hk_plan *plan = plan_exchange();

	naive_load(naive, plan);
	CHECK_EQ(naive_run(naive, data, &opts, NULL), NAIVE_OK);
	hk__store_step(plan, 1, 0, 1)->dst.first = 1;
	naive_load(naive, plan);
	CHECK_EQ(naive_run(naive, data, &opts, &report), NAIVE_LENGTH);
	CHECK_EQ(report.rank, 1);
	CHECK_EQ(report.step, 1);
	naive_destroy(naive);
	defn_destroy(data);
	hk_plan_free(plan);
}

TEST(nonsense_is_reported)
{
	struct hk_plan *plan = plan_exchange();

	hk__store_step(plan, 0, 0, 0)->to.rank = 2;
	check_always(plan, 1, NAIVE_RANGE);
	plan = plan_exchange();
	hk__store_step(plan, 0, 0, 0)->to.lane = 1;
	check_always(plan, 1, NAIVE_RANGE);
	plan = plan_exchange();
	hk__store_step(plan, 0, 0, 2)->dst.buf = HK_BUF_SCRATCH;
	check_always(plan, 1, NAIVE_RANGE);
	plan = plan_exchange();
	hk__store_step(plan, 0, 0, 2)->src.buf = HK_BUF_NONE;
	check_always(plan, 1, NAIVE_RANGE);
	plan = plan_exchange();
	hk__store_step(plan, 0, 0, 2)->after = (struct hk_after){ 0, 3 };
	check_always(plan, 1, NAIVE_RANGE);
	plan = plan_exchange();
	hk__store_step(plan, 0, 0, 2)->after = (struct hk_after){ 1, 0 };
	check_always(plan, 1, NAIVE_RANGE);
	plan = plan_exchange();
	hk__store_step(plan, 0, 0, 2)->dst = span(HK_BUF_IN, 0);
	check_always(plan, 1, NAIVE_INPUT);
	plan = plan_exchange();
	hk__store_step(plan, 0, 0, 2)->op = HK_OP_PUT;
	check_always(plan, 1, NAIVE_RESERVED);
}

TEST(undefined_scratch_is_seen)
{
	struct hk_plan *plan = plan_exchange();

	plan->store->ranks[0].scratch = 1;
	hk__store_step(plan, 0, 0, 2)->src = span(HK_BUF_SCRATCH, 0);
	check_always(plan, 1, NAIVE_UNDEFINED);
}

/* Two ranks allreduce one vector in every way a step can add. */
TEST(reductions_are_right)
{
	struct hk_plan *plan = plan_make(HK_COLL_ALLREDUCE, 2, 1, 1);
	struct hk_step *step;

	plan_send(plan, 0, 1, span(HK_BUF_IN, 0));
	plan_recv(plan, 0, 1, span(HK_BUF_OUT, 0));
	step = plan_add(plan, 1, 0, HK_OP_RECV_REDUCE_SEND);
	step->from = step->to = (struct hk_port){ 0, 0 };
	step->src = span(HK_BUF_IN, 0);
	step->dst = span(HK_BUF_OUT, 0);
	check_always(plan, 0, NAIVE_OK);

	plan = plan_make(HK_COLL_ALLREDUCE, 2, 1, 1);
	for (uint32_t r = 0; r < 2; r++) {
		plan->store->ranks[r].scratch = 1;
		plan_send(plan, r, 1 - r, span(HK_BUF_IN, 0));
		plan_copy(plan, r, span(HK_BUF_IN, 0), span(HK_BUF_OUT, 0));
		plan_recv(plan, r, 1 - r, span(HK_BUF_SCRATCH, 0));
		step = plan_add(plan, r, 0, HK_OP_REDUCE);
		step->src = span(HK_BUF_SCRATCH, 0);
		step->dst = span(HK_BUF_OUT, 0);
	}
	check_always(plan, 1, NAIVE_OK);
}

TEST(twice_added_is_wrong)
{
	struct hk_plan *plan = plan_make(HK_COLL_ALLREDUCE, 1, 1, 1);
	struct hk_step *step;

	plan_copy(plan, 0, span(HK_BUF_IN, 0), span(HK_BUF_OUT, 0));
	step = plan_add(plan, 0, 0, HK_OP_REDUCE);
	step->src = span(HK_BUF_IN, 0);
	step->dst = span(HK_BUF_OUT, 0);
	check_always(plan, 1, NAIVE_WRONG);
}

/* One rank, two lanes: the second copies on what the first has written. */
static struct hk_plan *plan_two_lanes(bool ordered)
{
	struct hk_plan *plan = plan_make(HK_COLL_ALLREDUCE, 1, 2, 2);
	struct hk_step *step;

	plan->store->ranks[0].scratch = 1;
	plan_copy(plan, 0, span(HK_BUF_IN, 1), span(HK_BUF_OUT, 1));
	plan_copy(plan, 0, span(HK_BUF_IN, 0), span(HK_BUF_OUT, 0));
	/* Lane 1 writes what out[0] holds back into it: right only once it is there. */
	step = plan_add(plan, 0, 1, HK_OP_COPY);
	step->src = span(HK_BUF_OUT, 0);
	step->dst = span(HK_BUF_OUT, 0);
	if (ordered)
		step->after = (struct hk_after){ 0, 1 };
	return plan;
}

TEST(race_is_exposed)
{
	struct hk_plan *plan = plan_two_lanes(false);
	struct tally tally = run_many(plan, 6, 1, false);

	/* It shows only where one lane writes between the other's read and its write. */
	CHECK(tally.of[NAIVE_OK] > 5);
	CHECK(tally.of[NAIVE_WRONG] > 5);
	CHECK_EQ(tally.of[NAIVE_OK] + tally.of[NAIVE_WRONG], tally.runs);
	hk_plan_free(plan);
	check_always(plan_two_lanes(true), 1, NAIVE_OK);
}

/* Reads and then writes: in place this destroys what is still to be read. */
/* Rank 1 stores what it receives before it sends its own: right only apart. */
TEST(in_place_is_the_same_memory)
{
	struct hk_plan *plan = plan_make(HK_COLL_ALLREDUCE, 2, 1, 1);
	struct hk_step *step;

	plan_send(plan, 0, 1, span(HK_BUF_IN, 0));
	step = plan_add(plan, 0, 0, HK_OP_RECV_REDUCE);
	step->from = (struct hk_port){ 1, 0 };
	step->src = span(HK_BUF_IN, 0);
	step->dst = span(HK_BUF_OUT, 0);
	plan_recv(plan, 1, 0, span(HK_BUF_OUT, 0));
	plan_send(plan, 1, 0, span(HK_BUF_IN, 0));
	step = plan_add(plan, 1, 0, HK_OP_REDUCE);
	step->src = span(HK_BUF_IN, 0);
	step->dst = span(HK_BUF_OUT, 0);
	struct tally tally = run_many(plan, 3, 1, true);
	CHECK_EQ(tally.of[NAIVE_WRONG], tally.runs);
	check_always(plan, 1, NAIVE_OK);
}

/* A ring of fused steps: who keeps a message's slot while sending needs two. */
TEST(held_slots_can_deadlock)
{
	struct hk_plan *plan = plan_make(HK_COLL_ALLGATHER, 3, 1, 1);
	struct defn_spec spec = { .coll = HK_COLL_ALLGATHER, .n = 3, .sizes = { 2, NULL } };
	struct defn *data = defn_create(&spec, ELEM_EXACT, 1);
	struct naive *naive = naive_create();
	struct naive_opts opts = { .order = NAIVE_ROUND_ROBIN, .slots = 1, .hold = true };

	for (uint32_t r = 0; r < 3; r++) {
		uint32_t next = (r + 1) % 3, previous = (r + 2) % 3;

		plan_send(plan, r, next, span(HK_BUF_IN, 0));
		struct hk_step *step = plan_add(plan, r, 0, HK_OP_RECV_SEND);
		step->from = (struct hk_port){ previous, 0 };
		step->to = (struct hk_port){ next, 0 };
		step->dst = span(HK_BUF_OUT, previous);
		plan_recv(plan, r, previous, span(HK_BUF_OUT, next));
		plan_copy(plan, r, span(HK_BUF_IN, 0), span(HK_BUF_OUT, r));
	}
	naive_load(naive, plan);
	CHECK_EQ(naive_run(naive, data, &opts, NULL), NAIVE_DEADLOCK);
	opts.slots = 2;
	CHECK_EQ(naive_run(naive, data, &opts, NULL), NAIVE_OK);
	opts = (struct naive_opts){ .slots = 1 };
	CHECK_EQ(naive_run(naive, data, &opts, NULL), NAIVE_OK);
	naive_destroy(naive);
	defn_destroy(data);
	hk_plan_free(plan);
}

static struct hk_plan *plan_barrier(bool back)
{
	struct hk_plan *plan = plan_make(HK_COLL_BARRIER, 2, 1, 1);

	plan_send(plan, 0, 1, span(HK_BUF_NONE, 0));
	plan_recv(plan, 1, 0, span(HK_BUF_NONE, 0));
	if (back) {
		plan_send(plan, 1, 0, span(HK_BUF_NONE, 0));
		plan_recv(plan, 0, 1, span(HK_BUF_NONE, 0));
	}
	for (uint32_t r = 0; r < 2; r++)
		for (uint32_t i = 0; i < hk_plan_steps(plan, r, 0); i++)
			hk__store_step(plan, r, 0, i)->count = 0;
	return plan;
}

TEST(barrier_knows_who_came)
{
	check_always(plan_barrier(true), 1, NAIVE_OK);
	check_always(plan_barrier(false), 1, NAIVE_EARLY);
}

/* The definition on numbers small enough to work out by hand. */
TEST(definition_by_hand)
{
	static const uint64_t counts[] = { 1, 2, 0, 3 };
	struct defn_spec spec = { .coll = HK_COLL_ALLTOALL, .n = 2, .sizes = { 0, counts } };
	struct defn *data = defn_create(&spec, ELEM_EXACT, 1);

	/* Rank 0 has 1 + 2, rank 1 has 0 + 3: rank 0 gets 1 + 0, rank 1 gets 2 + 3. */
	CHECK_EQ(data->in[0].len, 3);
	CHECK_EQ(data->in[1].len, 3);
	CHECK_EQ(data->out[0].len, 1);
	CHECK_EQ(data->out[1].len, 5);
	CHECK_EQ(data->out[0].at[0].i, data->in[0].at[0].i);
	CHECK_EQ(data->out[1].at[1].i, data->in[0].at[2].i);
	CHECK_EQ(data->out[1].at[2].i, data->in[1].at[0].i);
	defn_destroy(data);

	spec = (struct defn_spec){ .coll = HK_COLL_REDUCESCATTER, .n = 2, .sizes = { 0, counts } };
	data = defn_create(&spec, ELEM_EXACT, 1);
	CHECK_EQ(data->out[1].len, 2);
	CHECK_EQ(data->out[1].at[1].i, data->in[0].at[2].i + data->in[1].at[2].i);
	defn_destroy(data);

	struct hk_msg msgs[] = { { 1, 0 }, { 0, 0 }, { 1, 0 }, { 1, 1 } };
	spec = (struct defn_spec){
		.coll = HK_COLL_SENDRECV, .n = 2, .sizes = { 2, NULL }, .msgs = msgs, .nmsgs = 4
	};
	data = defn_create(&spec, ELEM_EXACT, 1);
	CHECK_EQ(data->in[1].len, 6);
	CHECK_EQ(data->out[0].len, 6);
	CHECK_EQ(data->out[0].at[4].i, data->in[1].at[2].i);
	CHECK_EQ(data->out[1].at[0].i, data->in[1].at[4].i);
	defn_destroy(data);
}
