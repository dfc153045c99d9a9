/* SPDX-License-Identifier: Apache-2.0 */
/*
 * put_test.c - puts and signals in virtual time: rank 0 puts its data into rank 1's out
 * and signals, once rank 1 has signalled that it has begun.
 */
#include "bed.h"
#include "plan/store.h"

#include <math.h>

enum {
	ROOT_COPY,
	ROOT_WAIT,
	ROOT_PUT,
	ROOT_SIGNAL
};
enum {
	LEAF_SIGNAL,
	LEAF_WAIT
};

static struct hk_step *add(struct hk_plan *plan, uint32_t rank, enum hk_op op)
{
	struct hk_step *step = hk__store_add_step(plan, rank, 0);

	CHECK(step);
	step->op = op;
	step->count = 1;
	step->src = (struct hk_span){ .buf = HK_BUF_IN };
	step->dst = (struct hk_span){ .buf = HK_BUF_OUT };
	if (op == HK_OP_WAIT)
		step->from = (struct hk_port){ rank, 3 };
	else
		step->to = (struct hk_port){ 1 - rank, op == HK_OP_SIGNAL ? 3 : 0 };
	return step;
}

static struct hk_plan *plan_new(bool puts)
{
	struct hk__store_spec spec = { .coll = HK_COLL_BROADCAST,
				       .algo = "by-hand",
				       .n = 2,
				       .nodes = 1,
				       .parts = 1,
				       .slots = 1,
				       .signals = puts ? HK_SIGNALS_WEAK : HK_SIGNALS_NONE };
	struct hk_plan *plan;

	CHECK_EQ(hk__store_create(&hk__alloc_default, &spec, &plan), HK_OK);
	for (uint32_t r = 0; r < 2; r++)
		CHECK(hk__store_add_lane(plan, r));
	add(plan, 0, HK_OP_COPY);
	if (!puts) {
		add(plan, 1, HK_OP_SEND)->count = 0;
		add(plan, 0, HK_OP_RECV)->count = 0;
		hk__store_step(plan, 0, 0, 1)->from = (struct hk_port){ 1, 0 };
		add(plan, 0, HK_OP_SEND);
		add(plan, 1, HK_OP_RECV)->from = (struct hk_port){ 0, 0 };
		return plan;
	}
	add(plan, 1, HK_OP_SIGNAL);
	add(plan, 1, HK_OP_WAIT);
	add(plan, 0, HK_OP_WAIT);
	add(plan, 0, HK_OP_PUT);
	add(plan, 0, HK_OP_SIGNAL);
	return plan;
}

static double time_of(const struct hk_fabric *fabric, const struct hk_plan *plan, double bytes)
{
	return bed_run(fabric, plan, bytes, NULL, NULL).time_ns;
}

/* The way is the same; the target's copy is saved, and the signal is one message more. */
TEST(a_put_costs_its_sender_and_its_way)
{
	static const char *const specs[] = { "switch:2", "dgx-h100:1", "tcp-cluster:1,ranks=2" };
	static const double sizes[] = { 8, 4096, 1 << 16 };

	for (int i = 0; i < 3; i++) {
		struct hk_fabric *fabric = bed_fabric(specs[i]);
		struct hk_plan *puts = plan_new(true), *sends = plan_new(false);
		const struct hk__device *device = hk__fabric_device(fabric, 1);
		struct hk__path path;

		hk__fabric_path(fabric, 0, 1, &path);
		const struct hk__wire *wire = &fabric->wires[path.wire];
		for (int k = 0; k < 3; k++) {
			double put = time_of(fabric, puts, sizes[k]);
			double sent = time_of(fabric, sends, sizes[k]);
			double footprint = 1e9; /* copies cost most then */
			double received =
				hk__curve_at(&wire->recv_ns, sizes[k]) +
				hk__curve_at(&wire->recv_ns, 0) +
				sizes[k] * (hk__curve_at(&wire->recv_byte_ns, footprint) +
					    hk__curve_at(&wire->fresh_byte_ns, footprint) +
					    hk__curve_at(&device->copy_ns, footprint));
			double signalled =
				2 * device->step_ns + 2 * hk__curve_at(&wire->send_ns, 8) +
				2 * hk__curve_at(&wire->flight_ns, 8) + wire->gap_ns + 1000;

			if (put > sent + signalled || put < sent - received - 1)
				test_fail(__FILE__, __LINE__, "%s, %g bytes: put %g, sent %g ns",
					  specs[i], sizes[k], put, sent);
		}
		hk_plan_free(puts);
		hk_plan_free(sends);
		hk_fabric_free(fabric);
	}
}

TEST(counts)
{
	struct hk_fabric *fabric = bed_fabric("switch:2");
	struct hk_plan *plan = plan_new(true);
	struct hk_sim_opts opts = HK_SIM_OPTS_INIT;
	struct hk_sim_result one = bed_run(fabric, plan, 1 << 20, NULL, NULL);

	opts.slice_bytes = 1 << 18;
	opts.calls = 3;
	struct hk_sim_result many = bed_run(fabric, plan, 1 << 20, &opts, NULL);

	CHECK(one.messages % 3 == 0);
	CHECK_EQ(many.messages, 3 * 4 * 3); /* calls, slices, and what each has */
	hk_plan_free(plan);
	hk_fabric_free(fabric);
}

/* A wait for more than comes is reported, not waited for. */
TEST(a_signal_that_never_comes)
{
	struct hk_fabric *fabric = bed_fabric("switch:2");
	struct hk_plan *plan = plan_new(true);
	struct hk_sim_result result = { .size = sizeof(result) };
	struct hk_sim_job job = { .plan = plan, .bytes = 64 };
	struct hk_why why = { "" };

	hk__store_step(plan, 1, 0, LEAF_WAIT)->count = 2;
	CHECK_EQ(hk_sim_run(fabric, &job, 1, NULL, &why, &result), HK_EREFUSED);
	CHECK_HAS(why.text, "rank 1 lane 0 step 1 (wait for 2 of signal 3) waits for signals that "
			    "never come");
	hk__store_step(plan, 1, 0, LEAF_SIGNAL)->to.rank = 1;
	CHECK_EQ(hk_sim_run(fabric, &job, 1, NULL, &why, &result), HK_EREFUSED);
	CHECK_HAS(why.text, "is for its own rank");
	hk_plan_free(plan);
	hk_fabric_free(fabric);
}

TEST(memory_may_fail)
{
	struct hk_fabric *fabric = bed_fabric("switch:2");
	struct hk_plan *plan = plan_new(true);
	enum hk_status status = HK_ENOMEM;

	for (uint64_t at = 1; status == HK_ENOMEM; at++) {
		struct hk_sim_opts opts = HK_SIM_OPTS_INIT;
		struct hk_sim_result result = { .size = sizeof(result) };
		struct hk_sim_job job = { .plan = plan, .bytes = 64 };
		struct bed_alloc alloc;

		bed_alloc_init(&alloc, at);
		opts.alloc = &alloc.alloc;
		status = hk_sim_run(fabric, &job, 1, &opts, NULL, &result);
		CHECK_EQ(alloc.held, 0);
	}
	CHECK_EQ(status, HK_OK);
	hk_plan_free(plan);
	hk_fabric_free(fabric);
}
