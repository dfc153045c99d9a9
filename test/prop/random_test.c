/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_test.c - plans by dice, where the checker has to be right both ways.
 *
 * lanes: the steps of a built-in plan are dealt to several lanes, with some,
 * none or all of the dependencies that keep their order; so they race, wait
 * for each other in circles, or do neither by a hair.
 * steps: small plans of random steps and messages, few of which are right.
 *
 * A plan that is accepted must be right under every interleaving tried. One
 * that is refused for its form or result and yet always right is counted.
 */
#include "harness.h"
#include "naive/each.h"
#include "naive/witness.h"
#include "plan/store.h"

struct suite {
	struct witness witness;
	struct verdicts rows[HK_COLL_COUNT];
	bool verbose;
	uint32_t printed;
};

/* Plans of these collectives may add. */
static bool coll_adds(enum hk_coll coll)
{
	return coll == HK_COLL_ALLREDUCE || coll == HK_COLL_REDUCE || coll == HK_COLL_REDUCESCATTER;
}

static uint32_t roll(struct suite *suite, uint32_t sides)
{
	return (uint32_t)(test_random(&suite->witness.seed) % sides);
}

/* ---- judging ---- */

static void plan_show(const struct hk_plan *plan)
{
	struct hk_plan_info info = { .size = sizeof(info) };

	hk_plan_describe(plan, &info);
	printf("%s, %u slots\n", each_name(plan), info.slots);
	for (uint32_t r = 0; r < info.nranks; r++) {
		for (uint32_t l = 0; l < hk_plan_lanes(plan, r); l++) {
			for (uint32_t i = 0; i < hk_plan_steps(plan, r, l); i++) {
				const struct hk_step *s = hk__store_step(plan, r, l, i);

				printf("  %u.%u.%u %s x%u from %d.%d to %d.%d ", r, l, i,
				       hk_op_name(s->op), s->count, (int)s->from.rank,
				       (int)s->from.lane, (int)s->to.rank, (int)s->to.lane);
				printf("src %s[%u/%u/%u] dst %s[%u/%u/%u] after %d.%d\n",
				       hk_buf_name(s->src.buf), s->src.first, s->src.run,
				       s->src.period, hk_buf_name(s->dst.buf), s->dst.first,
				       s->dst.run, s->dst.period, (int)s->after.lane,
				       (int)s->after.step);
			}
		}
	}
}

static void judge(struct suite *suite, const struct hk_plan *plan, bool inplace)
{
	struct hk_check_opts opts = HK_CHECK_OPTS_INIT;
	struct hk_check_report report = { .size = sizeof(report) };
	struct hk_plan_info info = { .size = sizeof(info) };
	struct evidence evidence;

	hk_plan_describe(plan, &info);
	opts.inplace = inplace;
	enum hk_status status = hk_check(plan, &opts, &report);
	if (status != HK_OK && status != HK_EREFUSED) {
		plan_show(plan);
		test_fail(__FILE__, __LINE__, "%s", hk_status_name(status));
	}
	bool right = witness_right(&suite->witness, plan, inplace, status == HK_OK ? 100 : 30,
				   &evidence);
	verdicts_count(&suite->rows[info.coll], report.refusal, right);
	if (status == HK_OK && !right && suite->printed++ < 5) {
		printf("WRONG, but accepted: ");
		plan_show(plan);
		witness_print(&evidence, stdout);
	}
	if (status != HK_OK && right && suite->verbose) {
		printf("refused, though right%s: %s\n", inplace ? " in place" : "",
		       report.why.text);
		plan_show(plan);
	}
}

static struct suite *suite_create(void)
{
	struct suite *suite = calloc(1, sizeof(*suite));

	CHECK(suite);
	witness_init(&suite->witness, test_seed(1));
	suite->verbose = getenv("HK_TEST_VERBOSE");
	return suite;
}

static void suite_finish(struct suite *suite, const char *name)
{
	uint64_t wrong = 0, right = 0;

	verdicts_head(name);
	for (int coll = 0; coll < HK_COLL_COUNT; coll++) {
		struct verdicts *row = &suite->rows[coll];

		snprintf(row->name, sizeof(row->name), "%s", hk_coll_name((enum hk_coll)coll));
		verdicts_print(row);
		wrong += row->wrong;
		right += row->equivalent;
	}
	witness_fini(&suite->witness);
	free(suite);
	CHECK_EQ(wrong, 0);
	CHECK(right > 0);
}

/* ---- steps dealt to lanes ---- */

#define LANES_MAX 3
#define STEPS_MAX 256
#define RANKS_MAX 5

/* A step of the original plan, and where it was dealt to. */
struct card {
	struct hk_step step;
	uint32_t lane, index; /* in the original */
	uint32_t new_lane, new_index;
	uint32_t message_in, message_out; /* its place among the messages of its channel */
};

struct deal {
	uint32_t nlanes;
	uint32_t count[RANKS_MAX];
	struct card cards[RANKS_MAX][STEPS_MAX]; /* of a rank, in an order it may run in */
};

/* Which message of its channel the step sends or receives: how many went before. */
static uint32_t message_number(const struct hk_plan *plan, uint32_t rank, uint32_t lane,
			       uint32_t index, bool sends, struct hk_port peer)
{
	uint32_t number = 0;

	for (uint32_t i = 0; i < index; i++) {
		struct hk_step step;

		hk_plan_step(plan, rank, lane, i, &step);
		const struct hk_port *port = sends ? &step.to : &step.from;
		if ((sends ? hk__op_sends(step.op) : hk__op_receives(step.op)) &&
		    port->rank == peer.rank && port->lane == peer.lane)
			number++;
	}
	return number;
}

static bool card_done(const struct card *cards, uint32_t count, struct hk_after after)
{
	for (uint32_t c = 0; c < count; c++)
		if (cards[c].lane == after.lane && cards[c].index == after.step)
			return true;
	return after.lane == HK_NONE;
}

/* The steps of all lanes of a rank in one row that keeps every order there is. */
static void deal_rank(struct suite *suite, struct deal *deal, const struct hk_plan *plan,
		      uint32_t rank)
{
	uint32_t next[HK_LANES_MAX] = { 0 }, total = 0, *count = &deal->count[rank];

	for (uint32_t l = 0; l < hk_plan_lanes(plan, rank); l++)
		total += hk_plan_steps(plan, rank, l);
	CHECK(total <= STEPS_MAX);
	*count = 0;
	for (uint32_t l = 0; *count < total; l = (l + 1) % hk_plan_lanes(plan, rank)) {
		struct card card = { .lane = l,
				     .index = next[l],
				     .new_lane = roll(suite, deal->nlanes) };

		if (next[l] == hk_plan_steps(plan, rank, l))
			continue;
		hk_plan_step(plan, rank, l, next[l], &card.step);
		if (!card_done(deal->cards[rank], *count, card.step.after))
			continue;
		if (hk__op_receives(card.step.op))
			card.message_in =
				message_number(plan, rank, l, next[l], false, card.step.from);
		if (hk__op_sends(card.step.op))
			card.message_out =
				message_number(plan, rank, l, next[l], true, card.step.to);
		for (uint32_t c = 0; c < *count; c++)
			card.new_index += deal->cards[rank][c].new_lane == card.new_lane;
		deal->cards[rank][(*count)++] = card;
		next[l]++;
	}
}

/* The other end of a card's message: where that step was dealt to. */
static uint32_t deal_peer_lane(const struct deal *deal, uint32_t rank, const struct card *card,
			       bool sends)
{
	struct hk_port peer = sends ? card->step.to : card->step.from;

	for (uint32_t c = 0; c < deal->count[peer.rank]; c++) {
		const struct card *other = &deal->cards[peer.rank][c];
		struct hk_port back = sends ? other->step.from : other->step.to;
		bool meets = sends ? hk__op_receives(other->step.op) : hk__op_sends(other->step.op);

		if (meets && other->lane == peer.lane && back.rank == rank &&
		    back.lane == card->lane &&
		    (sends ? other->message_in == card->message_out
			   : other->message_out == card->message_in))
			return other->new_lane;
	}
	test_fail(__FILE__, __LINE__, "a built-in plan sends a message nobody receives");
}

/* Mostly after the step before it in the row; now and then after another or none. */
static struct hk_after deal_after(struct suite *suite, const struct deal *deal, uint32_t rank,
				  uint32_t c, uint32_t looseness)
{
	const struct card *before = c ? &deal->cards[rank][c - 1] : NULL;

	if (!before || roll(suite, 8) < looseness)
		return (struct hk_after){ HK_NONE, 0 };
	if (roll(suite, 8) < looseness)
		before = &deal->cards[rank][roll(suite, c)];
	if (before->new_lane == deal->cards[rank][c].new_lane)
		return (struct hk_after){ HK_NONE, 0 };
	return (struct hk_after){ before->new_lane, before->new_index };
}

static struct hk_plan *deal_plan(struct suite *suite, const struct deal *deal,
				 const struct hk_plan *plan)
{
	uint32_t looseness = roll(suite, 4);
	struct hk_plan *dealt;

	CHECK_EQ(hk__store_copy(&hk__alloc_default, plan, &dealt), HK_OK);
	dealt->slots = roll(suite, 3);
	for (uint32_t r = 0; r < dealt->n; r++) {
		struct hk__store_rank *stored = &dealt->store->ranks[r];

		for (size_t l = 0; l < stored->lanes.count; l++)
			((struct hk__store_lane *)hk__array_at(&stored->lanes, l))->steps.count = 0;
		while (stored->lanes.count < deal->nlanes)
			CHECK(hk__store_add_lane(dealt, r));
		for (uint32_t c = 0; c < deal->count[r]; c++) {
			const struct card *card = &deal->cards[r][c];
			struct hk_step *step = hk__store_add_step(dealt, r, card->new_lane);

			CHECK(step);
			*step = card->step;
			if (hk__op_receives(step->op))
				step->from.lane = deal_peer_lane(deal, r, card, false);
			if (hk__op_sends(step->op))
				step->to.lane = deal_peer_lane(deal, r, card, true);
			step->after = deal_after(suite, deal, r, c, looseness);
		}
	}
	return dealt;
}

static void deal_many(const struct hk_plan *plan, void *ctx)
{
	struct suite *suite = ctx;
	struct deal *deal = calloc(1, sizeof(*deal));
	struct hk_plan_info info = { .size = sizeof(info) };

	CHECK(deal);
	hk_plan_describe(plan, &info);
	witness_open(&suite->witness, plan);
	for (uint32_t i = 0; i < 40; i++) {
		deal->nlanes = 1 + roll(suite, LANES_MAX);
		for (uint32_t r = 0; r < info.nranks; r++)
			deal_rank(suite, deal, plan, r);
		struct hk_plan *dealt = deal_plan(suite, deal, plan);
		for (int inplace = 0; inplace <= info.inplace; inplace++)
			judge(suite, dealt, inplace);
		hk_plan_free(dealt);
	}
	witness_close(&suite->witness);
	free(deal);
}

TEST(lanes)
{
	struct each_opts opts = { .n_min = 1, .n_max = RANKS_MAX, .batches = 4, .seed = 1 };
	struct suite *suite = suite_create();

	for (int coll = 0; coll < HK_COLL_COUNT; coll++)
		(void)each_plan((enum hk_coll)coll, &opts, deal_many, suite);
	suite_finish(suite, "steps dealt to lanes");
}

/* ---- random steps ---- */

static struct hk_span random_span(struct suite *suite, const struct hk_plan *plan, uint32_t rank,
				  bool dst)
{
	enum hk_buf buf = dst ? roll(suite, 3) ? HK_BUF_OUT : HK_BUF_SCRATCH
			      : (enum hk_buf)(HK_BUF_IN + roll(suite, 3));
	uint32_t slots = hk_plan_slots(plan, rank, buf);

	struct hk_span span = { .buf = buf, .first = slots ? roll(suite, slots) : 0 };
	if (roll(suite, 4) == 0) {
		span.run = 1 + roll(suite, 2);
		span.period = roll(suite, 3);
	}
	return span;
}

/* One chunk, or now and then two. */
static uint32_t random_count(struct suite *suite, const struct hk_plan *plan)
{
	return plan->coll == HK_COLL_BARRIER ? 0 : roll(suite, 5) ? 1 : 2;
}

static struct hk_step *random_step(struct suite *suite, struct hk_plan *plan, uint32_t rank,
				   uint32_t lane, enum hk_op op, uint32_t count)
{
	struct hk_step *step = hk__store_add_step(plan, rank, lane);

	CHECK(step);
	step->op = op;
	step->count = count;
	step->src = random_span(suite, plan, rank, false);
	step->dst = random_span(suite, plan, rank, true);
	if (roll(suite, 3) == 0)
		step->dst.first = step->src.first % (hk_plan_slots(plan, rank, step->dst.buf) + 1);
	if (roll(suite, 3) == 0) {
		uint32_t other = roll(suite, hk_plan_lanes(plan, rank));
		uint32_t steps = hk_plan_steps(plan, rank, other);

		/* One past the last is sometimes added later, sometimes never. */
		step->after = (struct hk_after){
			other, roll(suite, steps + (steps == 0 || roll(suite, 16) == 0))
		};
	}
	return step;
}

/* One message: a step that sends it and one that receives it, each at a lane's end. */
static void random_message(struct suite *suite, struct hk_plan *plan)
{
	uint32_t from = roll(suite, plan->n), to = roll(suite, plan->n);
	uint32_t from_lane = roll(suite, hk_plan_lanes(plan, from));
	uint32_t to_lane = roll(suite, hk_plan_lanes(plan, to));
	bool adds = coll_adds(plan->coll) && roll(suite, 2);
	uint32_t count = random_count(suite, plan);
	struct hk_step *step = random_step(suite, plan, from, from_lane, HK_OP_SEND, count);

	step->to = (struct hk_port){ to, to_lane };
	step = random_step(suite, plan, to, to_lane, adds ? HK_OP_RECV_REDUCE : HK_OP_RECV, count);
	step->from = (struct hk_port){ from, from_lane };
	if (roll(suite, 3))
		return;
	/* Passed on at once, by a fused step. */
	uint32_t third = roll(suite, plan->n), third_lane = roll(suite, hk_plan_lanes(plan, third));
	step->op = adds ? HK_OP_RECV_REDUCE_SEND : HK_OP_RECV_SEND;
	step->to = (struct hk_port){ third, third_lane };
	if (roll(suite, 2))
		step->dst.buf = HK_BUF_NONE;
	step = random_step(suite, plan, third, third_lane, HK_OP_RECV, count);
	step->from = (struct hk_port){ to, to_lane };
}

static struct hk_plan *random_plan(struct suite *suite)
{
	struct hk_msg msgs[2] = { { 0, 0 }, { 0, 0 } };
	struct hk__store_spec spec = { .coll = (enum hk_coll)roll(suite, HK_COLL_COUNT),
				       .algo = "random",
				       .n = 1 + roll(suite, 3),
				       .nodes = 1,
				       .slots = roll(suite, 3),
				       .inplace = true,
				       .msgs = msgs };
	struct hk_plan *plan;

	spec.parts = hk__coll_vector(spec.coll) ? 1 + roll(suite, 4) / 3 : 1;
	spec.root = hk__coll_rooted(spec.coll) ? roll(suite, spec.n) : 0;
	spec.nmsgs = spec.coll == HK_COLL_SENDRECV ? 1 + roll(suite, 2) : 0;
	for (size_t k = 0; k < spec.nmsgs; k++)
		msgs[k] = (struct hk_msg){ roll(suite, spec.n), roll(suite, spec.n) };
	CHECK_EQ(hk__store_create(&hk__alloc_default, &spec, &plan), HK_OK);
	for (uint32_t r = 0; r < spec.n; r++) {
		plan->store->ranks[r].present = true;
		plan->store->ranks[r].scratch = roll(suite, 3);
		for (uint32_t lanes = 1 + roll(suite, 2); lanes > 0; lanes--)
			CHECK(hk__store_add_lane(plan, r));
	}
	for (uint32_t events = 1 + roll(suite, 6); events > 0; events--) {
		uint32_t rank = roll(suite, spec.n);
		enum hk_op op =
			coll_adds(spec.coll) && roll(suite, 3) == 0 ? HK_OP_REDUCE : HK_OP_COPY;

		if (spec.n > 1 && roll(suite, 2))
			random_message(suite, plan);
		else
			random_step(suite, plan, rank, roll(suite, hk_plan_lanes(plan, rank)), op,
				    random_count(suite, plan));
	}
	return plan;
}

TEST(steps)
{
	struct suite *suite = suite_create();

	for (uint32_t i = 0; i < 400000; i++) {
		struct hk_plan *plan = random_plan(suite);

		witness_open(&suite->witness, plan);
		judge(suite, plan, i % 2 && hk__coll_inplace(plan->coll));
		witness_close(&suite->witness);
		hk_plan_free(plan);
	}
	suite_finish(suite, "random steps");
}
