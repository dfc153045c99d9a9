/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_test.c - what a simulation says: times that can be worked out by hand,
 * bounds, faults, several jobs, plans that get stuck, events, and refusals.
 */
#include "bed.h"
#include "naive/each.h"
#include "naive/mutant.h"

#include <math.h>

#define MIB 1048576.0

/* ---- artefacts that other simulators have ---- */

/* A switch does not store and forward: 8 ranks, 100 MiB, 50 GB/s, bound 3.67 ms. */
TEST(switched_ring_is_not_twice_too_slow)
{
	struct hk_sim_result ring =
		bed_time("switch:8", HK_COLL_ALLREDUCE, "ring", 100 * MIB, false);
	double bound = 2 * 7.0 / 8 * 100 * MIB / 50;

	bed_near("bound", ring.bound_bytes_ns, bound, 1e-12);
	bed_near("14 messages and 14 delays", ring.time_ns, bound + 14 * 500, 1e-6);
	bed_near("busbw", ring.busbw, 2 * 7.0 / 8 * 100 * MIB / ring.time_ns, 1e-12);
	CHECK_HAS(ring.bottleneck, "device.");
	CHECK(ring.busy > 0.99);
}

/* All of a rank's messages share its way out. */
TEST(direct_is_never_below_the_bound)
{
	struct hk_sim_result direct =
		bed_time("switch:8", HK_COLL_ALLREDUCE, "two-shot", 100 * MIB, true);

	CHECK(direct.time_ns >= direct.bound_ns);
	bed_near("two shots", direct.time_ns, 2 * 7.0 / 8 * 100 * MIB / 50 + 2 * 500, 1e-3);
	/* One shot sends everything seven times. */
	struct hk_sim_result all =
		bed_time("switch:8", HK_COLL_ALLREDUCE, "one-shot", 100 * MIB, true);
	bed_near("one shot", all.time_ns, 7 * 100 * MIB / 50 + 500, 1e-3);
}

/* k messages of one rank take k times as long as one. */
TEST(messages_of_one_rank_share_its_way_out)
{
	struct hk_fabric *fabric = bed_fabric("switch:9");
	struct hk_msg msgs[8];
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;

	for (uint32_t i = 0; i < 8; i++)
		msgs[i] = (struct hk_msg){ 0, i + 1 };
	opts.msgs = msgs;
	for (uint32_t k = 1; k <= 8; k++) {
		struct hk_plan *plan;

		opts.nmsgs = k;
		CHECK_EQ(hk_plan_create(HK_COLL_SENDRECV, 9, &opts, NULL, &plan), HK_OK);
		struct hk_sim_result result = bed_run(fabric, plan, 10 * MIB, NULL, NULL);
		bed_near("messages", result.time_ns, k * 10 * MIB / 50 + 500, 1e-3);
		hk_plan_free(plan);
	}
	hk_fabric_free(fabric);
}

/* An idle hop changes only the delay. */
TEST(hops_only_delay)
{
	struct hk_fabric *fabric = bed_fabric("dgx-h100:64");
	double times[2], delays[2];

	for (uint32_t i = 0; i < 2; i++) {
		/* On the same rail: to the next node, and below another leaf. */
		struct hk_msg msg = { 0, i ? 63 * 8 : 8 };
		struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
		struct hk_plan *plan;
		struct hk__path path;

		opts.msgs = &msg;
		opts.nmsgs = 1;
		CHECK_EQ(hk_plan_create(HK_COLL_SENDRECV, 512, &opts, NULL, &plan), HK_OK);
		times[i] = bed_run(fabric, plan, 100 * MIB, NULL, NULL).time_ns;
		hk__fabric_path(fabric, msg.src, msg.dst, &path);
		delays[i] = path.delay_ns;
		hk_plan_free(plan);
	}
	CHECK(delays[1] > delays[0]);
	bed_near("hops", times[1] - times[0], delays[1] - delays[0], 1e-6);
	hk_fabric_free(fabric);
}

/* ---- bounds ---- */

static void check_bound(const struct hk_plan *plan, void *ctx)
{
	static const double sizes[] = { 0, 100, 1e5, 1e8 };

	/* bed_run ends the test where a time is below its bound. */
	for (int i = 0; i < 4; i++) {
		struct hk_sim_result result = bed_run(ctx, plan, sizes[i], NULL, NULL);

		CHECK(result.bound_ns >= 0 && result.p95_ns >= 0);
		CHECK(result.busy >= 0 && result.busy <= 1);
		CHECK(result.bottleneck[0]);
	}
}

TEST(nothing_is_below_its_bound)
{
	static const char *const specs[] = { "switch:12", "dgx-h100:2", "tcp-cluster:3,ranks=4",
					     "torus:4x3", "dgx-b200:2,net=ethernet" };

	for (int i = 0; i < 5; i++) {
		struct hk_fabric *fabric = bed_fabric(specs[i]);

		for (unsigned coll = 0; coll < HK_COLL_COUNT; coll++) {
			struct each_opts opts = { .n_min = 1,
						  .n_max = 12,
						  .roots = EACH_ROOT_ENDS,
						  .batches = 2,
						  .seed = 3 };

			each_plan((enum hk_coll)coll, &opts, check_bound, fabric);
		}
		hk_fabric_free(fabric);
	}
}

/* ---- what is amiss ---- */

static struct hk_sim_result run_fault(const struct hk_fabric *fabric, const struct hk_plan *plan,
				      struct hk_sim_fault fault, uint32_t samples)
{
	struct hk_sim_opts opts = HK_SIM_OPTS_INIT;

	opts.faults = &fault;
	opts.nfaults = 1;
	opts.samples = samples;
	return bed_run(fabric, plan, 8 * MIB, &opts, NULL);
}

TEST(faults)
{
	struct hk_fabric *fabric = bed_fabric("dgx-h100:4,leaf=2");
	struct hk_plan *plan = bed_plan(fabric, HK_COLL_ALLREDUCE, "two-level", 32);
	double plain = bed_run(fabric, plan, 8 * MIB, NULL, NULL).time_ns;
	struct hk_sim_fault late = { .kind = HK_SIM_LATE_RANK, .rank = 5, .ns = 1e6 };
	struct hk_sim_fault slow = { .kind = HK_SIM_SLOW_RANK, .rank = 5, .factor = 50 };
	struct hk_sim_fault link = { .kind = HK_SIM_SLOW_LINK, .link = "nic.out:5", .factor = 100 };
	struct hk_sim_fault lossy = {
		.kind = HK_SIM_LOSSY_LINK, .link = "nic.out:5", .factor = 0.2, .ns = 1e5
	};
	struct hk_sim_fault dead = { .kind = HK_SIM_DEAD_LINK, .link = "nic.out:5" };
	struct hk_sim_fault wire = { .kind = HK_SIM_DEAD_LINK, .link = "leaf.up:1" };

	bed_near("late", run_fault(fabric, plan, late, 0).time_ns, plain + 1e6, 0.05);
	CHECK(run_fault(fabric, plan, slow, 0).time_ns > plain);
	CHECK(run_fault(fabric, plan, link, 0).time_ns > 2 * plain);
	CHECK(run_fault(fabric, plan, dead, 0).time_ns > plain);
	CHECK(run_fault(fabric, plan, wire, 0).time_ns >= plain);
	CHECK(!run_fault(fabric, plan, late, 0).folded);
	struct hk_sim_result lost = run_fault(fabric, plan, lossy, 8);
	CHECK(lost.time_ns > plain + 1e5 && lost.p95_ns >= lost.time_ns);
	hk_plan_free(plan);
	hk_fabric_free(fabric);
}

TEST(no_way_round)
{
	struct hk_fabric *fabric = bed_fabric("switch:4");
	struct hk_plan *plan = bed_plan(fabric, HK_COLL_ALLREDUCE, "ring", 4);
	struct hk_sim_fault fault = { .kind = HK_SIM_DEAD_LINK, .link = "device.out:2" };
	struct hk_sim_opts opts = HK_SIM_OPTS_INIT;
	struct hk_sim_job job = { .plan = plan, .bytes = 100 };
	struct hk_sim_result result = { .size = sizeof(result) };
	struct hk_why why = { "" };

	opts.faults = &fault;
	opts.nfaults = 1;
	CHECK_EQ(hk_sim_run(fabric, &job, 1, &opts, &why, &result), HK_EREFUSED);
	CHECK_HAS(why.text, "avoids the dead");
	hk_plan_free(plan);
	hk_fabric_free(fabric);
}

TEST(jitter_is_seeded)
{
	struct hk_fabric *fabric = bed_fabric("dgx-h100:2");
	struct hk_plan *plan = bed_plan(fabric, HK_COLL_ALLREDUCE, "ring", 16);
	struct hk_sim_opts opts = HK_SIM_OPTS_INIT;
	double plain = bed_run(fabric, plan, 1e5, &opts, NULL).time_ns;

	opts.jitter = 1;
	opts.samples = 4;
	struct hk_sim_result a = bed_run(fabric, plan, 1e5, &opts, NULL);
	struct hk_sim_result b = bed_run(fabric, plan, 1e5, &opts, NULL);
	opts.seed = 1000;
	struct hk_sim_result c = bed_run(fabric, plan, 1e5, &opts, NULL);
	CHECK(a.time_ns == b.time_ns && a.p95_ns == b.p95_ns);
	CHECK(a.time_ns != c.time_ns);
	CHECK(a.time_ns > plain && a.p95_ns >= a.time_ns);
	hk_plan_free(plan);
	hk_fabric_free(fabric);
}

/* Flows that keep a wire collide; those that are spread do not. */
TEST(hashed_flows_collide)
{
	static const char *const hash = "dgx-h100:16,net=ethernet,leaf=4,routing=hash";
	static const char *const ideal = "dgx-h100:16,net=ethernet,leaf=4,routing=adaptive";
	double spread = bed_time(ideal, HK_COLL_ALLGATHER, "pat", 1e7, false).time_ns;
	struct hk_sim_result full = bed_time(hash, HK_COLL_ALLGATHER, "pat", 1e7, true);
	struct hk_sim_result folded = bed_time(hash, HK_COLL_ALLGATHER, "pat", 1e7, false);

	printf("spread %g us, hashed %g (full), %g (folded), p95 %g and %g\n", spread / 1e3,
	       full.time_ns / 1e3, folded.time_ns / 1e3, full.p95_ns / 1e3, folded.p95_ns / 1e3);
	CHECK(folded.folded && !full.folded);
	CHECK(full.time_ns > 1.02 * spread && folded.time_ns > 1.02 * spread);
	CHECK(full.p95_ns > full.time_ns);
	bed_near("collisions", folded.time_ns, full.time_ns, 0.35);
}

/* ---- several at once ---- */

TEST(jobs_share_links)
{
	struct hk_fabric *fabric = bed_fabric("switch:8");
	struct hk_plan *plan = bed_plan(fabric, HK_COLL_ALLREDUCE, "ring", 8);
	struct hk_plan *pair = bed_plan(fabric, HK_COLL_ALLTOALL, "pairwise", 2);
	struct hk_sim_opts opts = HK_SIM_OPTS_INIT;
	uint32_t far[2] = { 6, 7 };
	struct hk_sim_job jobs[2] = { { .plan = plan, .bytes = 8 * MIB },
				      { .plan = plan, .bytes = 8 * MIB } };
	struct hk_sim_result one = { .size = sizeof(one) }, two = { .size = sizeof(two) },
			     later = { .size = sizeof(later) }, other = { .size = sizeof(other) };
	struct hk_why why = { "" };

	CHECK_EQ(hk_sim_run(fabric, jobs, 1, &opts, &why, &one), HK_OK);
	CHECK_EQ(hk_sim_run(fabric, jobs, 2, &opts, &why, &two), HK_OK);
	CHECK(two.folded);
	bed_near("both", two.time_ns, 2 * one.time_ns - 14 * 500, 1e-3);
	opts.full = true;
	CHECK_EQ(hk_sim_run(fabric, jobs, 2, &opts, &why, &other), HK_OK);
	bed_near("full", other.time_ns, two.time_ns, 1e-9);
	jobs[1].start_ns = 2 * one.time_ns;
	CHECK_EQ(hk_sim_run(fabric, jobs, 2, &opts, &why, &later), HK_OK);
	bed_near("one after the other", later.time_ns, 3 * one.time_ns, 1e-6);
	CHECK(later.time_ns >= later.bound_ns);
	/* On other devices a job of two ranks slows the ring down as well. */
	jobs[1] = (struct hk_sim_job){ .plan = pair, .bytes = 16 * MIB, .devices = far };
	CHECK_EQ(hk_sim_run(fabric, jobs, 2, &opts, &why, &other), HK_OK);
	CHECK(other.time_ns > one.time_ns && !other.folded);
	hk_plan_free(plan);
	hk_plan_free(pair);
	hk_fabric_free(fabric);
}

/* Where lanes take turns, two jobs take as long as both. */
TEST(serial_devices_take_turns)
{
	struct hk_fabric *fabric = bed_fabric("tcp-cluster:2");
	struct hk_plan *plan = bed_plan(fabric, HK_COLL_ALLGATHER, "direct", 2);
	struct hk_sim_result serial = { .size = sizeof(serial) }, free = { .size = sizeof(free) };

	fabric->devices[0].step_ns = 1e6;
	fabric->devices[0].serial = true;
	serial = bed_run(fabric, plan, 8, NULL, NULL);
	fabric->devices[0].serial = false;
	free = bed_run(fabric, plan, 8, NULL, NULL);
	/* A send, a copy and a receive: one after the other, or two at once. */
	CHECK(serial.time_ns > 2.99e6 && free.time_ns < 2.5e6);
	CHECK_STR(serial.bottleneck, "steps of ranks");
	hk_plan_free(plan);
	hk_fabric_free(fabric);
}

/* Ranks that share a core take turns as well: what one does the other waits for. */
TEST(ranks_that_share_cores_take_turns)
{
	struct hk_fabric *fabric = bed_fabric("tcp-cluster:4");
	struct hk_plan *plan = bed_plan(fabric, HK_COLL_ALLGATHER, "direct", 4);
	struct hk__device *device = &fabric->devices[0];
	struct hk_sim_result own = { .size = sizeof(own) }, many = { .size = sizeof(many) },
			     two = { .size = sizeof(two) }, one = { .size = sizeof(one) },
			     switched = { .size = sizeof(switched) };

	device->step_ns = 1e6;
	device->serial = true;
	own = bed_run(fabric, plan, 8, NULL, NULL);
	device->cores = 4;
	many = bed_run(fabric, plan, 8, NULL, NULL);
	device->cores = 2;
	two = bed_run(fabric, plan, 8, NULL, NULL);
	device->cores = 1;
	one = bed_run(fabric, plan, 8, NULL, NULL);
	/* Three sends, a copy and three receives of each rank, one after the other. */
	bed_near("as many cores as ranks", many.time_ns, own.time_ns, 1e-12);
	bed_near("a core each", own.time_ns, 7e6, 0.01);
	bed_near("a core for two", two.time_ns, 14e6, 0.01);
	bed_near("one core for all", one.time_ns, 28e6, 0.01);
	CHECK(own.folded && !two.folded && !one.folded);
	CHECK_STR(own.bottleneck, "steps of ranks");
	CHECK_STR(one.bottleneck, "cores that ranks share");
	/* Who has its turn goes on while it can: four ranks send, and receive, and no more. */
	device->switch_ns = 1e5;
	switched = bed_run(fabric, plan, 8, NULL, NULL);
	CHECK(switched.time_ns > one.time_ns + 2.9e5 && switched.time_ns < one.time_ns + 8.1e5);
	hk_plan_free(plan);
	hk_fabric_free(fabric);
}

/* Of two ranks on one core one waits for the other: nobody has to wait for the core. */
TEST(who_waits_leaves_its_core_to_others)
{
	struct hk_fabric *fabric = bed_fabric("tcp-cluster:4");
	struct hk__device *device = &fabric->devices[0];
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk_msg msg = { 0, 1 };
	struct hk_sim_result own = { .size = sizeof(own) }, shared = { .size = sizeof(shared) };
	struct hk_plan *plan;

	opts.msgs = &msg;
	opts.nmsgs = 1;
	CHECK_EQ(hk_plan_create(HK_COLL_SENDRECV, 4, &opts, NULL, &plan), HK_OK);
	device->step_ns = 1e6;
	device->serial = true;
	own = bed_run(fabric, plan, 8, NULL, NULL);
	device->cores = 1;
	shared = bed_run(fabric, plan, 8, NULL, NULL);
	bed_near("a step of each", own.time_ns, 2e6, 0.01);
	bed_near("nothing to wait for", shared.time_ns, own.time_ns, 1e-9);
	hk_plan_free(plan);
	hk_fabric_free(fabric);
}

/* ---- plans that cannot be performed ---- */

struct broken {
	const struct hk_fabric *fabric;
	uint32_t stuck, ended;
};

static void broken_run(struct broken *broken, const struct hk_plan *plan)
{
	struct hk_sim_job job = { .plan = plan, .bytes = 1000 };
	struct hk_sim_opts opts = HK_SIM_OPTS_INIT;
	struct hk_sim_result result = { .size = sizeof(result) };
	struct hk_why why = { "" };
	enum hk_status status = hk_sim_run(broken->fabric, &job, 1, &opts, &why, &result);

	CHECK(status == HK_OK || status == HK_EREFUSED);
	CHECK(status == HK_OK || why.text[0]);
	broken->stuck += status != HK_OK && strstr(why.text, "deadlocks: rank");
	broken->ended += status == HK_OK;
}

/* Every family of mutants, at every step of one rank. */
static void broken_plan(struct broken *broken, const struct hk_plan *plan, uint32_t rank)
{
	struct hk_plan *base, *work;

	CHECK_EQ(hk__store_copy(&hk__alloc_default, plan, &base), HK_OK);
	CHECK_EQ(hk__store_copy(&hk__alloc_default, plan, &work), HK_OK);
	for (unsigned family = 0; family < MUTANT_COUNT; family++) {
		for (uint32_t l = 0; l < hk_plan_lanes(plan, rank); l++) {
			for (uint32_t i = 0; i < hk_plan_steps(plan, rank, l); i++) {
				struct mutant mutant = { (enum mutant_family)family, rank, l, i,
							 0 };

				if (mutant_apply(work, &mutant) != MUTANT_MADE)
					continue;
				broken_run(broken, work);
				mutant_undo(work, base, &mutant);
			}
		}
	}
	hk_plan_free(base);
	hk_plan_free(work);
}

/* Whatever a broken plan does, it ends: with a time, or with who is stuck where. */
TEST(broken_plans_end)
{
	struct hk_fabric *fabric = bed_fabric("dgx-h100:1");
	struct broken broken = { .fabric = fabric };
	struct hk_algo_info algo = { .size = sizeof(algo) };

	for (uint32_t i = 0; hk_algo_get(i, &algo); i++) {
		struct hk_plan *plan = bed_plan(fabric, algo.coll, algo.name, 4);

		broken_plan(&broken, plan, i % 4);
		hk_plan_free(plan);
	}
	printf("%u got stuck, %u came to an end\n", broken.stuck, broken.ended);
	CHECK(broken.stuck > 100 && broken.ended > 100);
	hk_fabric_free(fabric);
}

/* ---- events ---- */

struct seen {
	double bytes, last_ns;
	uint32_t steps, messages;
	uint64_t sum;
};

static void see(void *ctx, const struct hk_sim_event *event)
{
	struct seen *seen = ctx;

	CHECK(event->end_ns >= event->start_ns && event->start_ns >= 0);
	CHECK(event->rank < 16 && event->lane < 3);
	seen->last_ns = fmax(seen->last_ns, event->end_ns);
	if (event->message) {
		CHECK(event->to < 16 && event->to != event->rank);
		seen->messages++;
		seen->bytes += event->bytes;
	} else {
		seen->steps++;
	}
}

TEST(events)
{
	struct hk_fabric *fabric = bed_fabric("dgx-h100:2");
	struct hk_plan *plan = bed_plan(fabric, HK_COLL_ALLREDUCE, "two-level", 16);
	struct hk_sim_opts opts = HK_SIM_OPTS_INIT;
	struct seen seen = { 0 };

	opts.event = see;
	opts.ctx = &seen;
	opts.full = true;
	struct hk_sim_result result = bed_run(fabric, plan, 1e6, &opts, NULL);
	CHECK_EQ(seen.messages, result.messages);
	/* 2 (g-1)/g + 2 (N-1)/n of a vector, by each rank. */
	bed_near("bytes", seen.bytes, 16 * 1e6 * (2 * 7.0 / 8 + 2 * 1.0 / 16), 1e-9);
	CHECK(seen.last_ns <= result.time_ns && seen.last_ns > 0.5 * result.time_ns);
	CHECK(seen.steps > seen.messages);
	hk_plan_free(plan);
	hk_fabric_free(fabric);
}

/* ---- refusals, memory ---- */

TEST(refusals)
{
	struct hk_fabric *fabric = bed_fabric("switch:4");
	struct hk_fabric *large = bed_fabric("switch:8");
	struct hk_plan *plan = bed_plan(large, HK_COLL_ALLREDUCE, "ring", 8);
	uint32_t places[8] = { 0, 1, 2, 3, 0, 1, 2, 4 };
	struct hk_sim_job job = { .plan = plan, .bytes = 100 };
	struct hk_sim_opts opts = HK_SIM_OPTS_INIT;
	struct hk_sim_fault fault = { .kind = HK_SIM_SLOW_RANK, .rank = 9, .factor = 2 };
	struct hk_sim_result result = { .size = sizeof(result), .time_ns = -1 };
	struct hk_why why = { "" };

	CHECK_EQ(hk_sim_run(fabric, &job, 1, &opts, &why, &result), HK_EINVAL);
	CHECK_HAS(why.text, "8 ranks, but");
	job.devices = places;
	CHECK_EQ(hk_sim_run(fabric, &job, 1, &opts, &why, &result), HK_EINVAL);
	CHECK_HAS(why.text, "rank 7 is placed on device 4");
	places[7] = 3;
	CHECK_EQ(hk_sim_run(fabric, &job, 1, &opts, &why, &result), HK_OK);
	job.devices = NULL;
	CHECK_EQ(hk_sim_run(large, &job, 0, &opts, &why, &result), HK_EINVAL);
	job.bytes = -1;
	CHECK_EQ(hk_sim_run(large, &job, 1, &opts, &why, &result), HK_EINVAL);
	job.bytes = NAN;
	CHECK_EQ(hk_sim_run(large, &job, 1, &opts, &why, &result), HK_EINVAL);
	job.bytes = 1;
	opts.faults = &fault;
	opts.nfaults = 1;
	CHECK_EQ(hk_sim_run(large, &job, 1, &opts, &why, &result), HK_EINVAL);
	CHECK_HAS(why.text, "no rank 9");
	fault = (struct hk_sim_fault){ .kind = HK_SIM_SLOW_LINK, .link = "nic.out:1", .factor = 2 };
	CHECK_EQ(hk_sim_run(large, &job, 1, &opts, &why, &result), HK_EINVAL);
	CHECK_HAS(why.text, "nic.out:1");
	fault = (struct hk_sim_fault){ .kind = HK_SIM_SLOW_RANK, .rank = 0, .factor = 0 };
	CHECK_EQ(hk_sim_run(large, &job, 1, &opts, &why, &result), HK_EINVAL);
	opts.nfaults = 0;
	opts.jitter = -1;
	CHECK_EQ(hk_sim_run(large, &job, 1, &opts, &why, &result), HK_EINVAL);
	hk_plan_free(plan);
	hk_fabric_free(fabric);
	hk_fabric_free(large);
}

/* Every request for memory fails once: nothing leaks, and the status says so. */
TEST(memory_runs_out)
{
	struct hk_fabric *fabric = bed_fabric("dgx-h100:8,leaf=2");
	struct hk_plan *plan = bed_plan(fabric, HK_COLL_ALLREDUCE, "ring", 64);
	struct hk_sim_job job = { .plan = plan, .bytes = 1 << 20 };
	struct hk_sim_opts opts = HK_SIM_OPTS_INIT;
	struct bed_alloc counted;
	uint64_t at = 1;

	for (;; at++) {
		struct hk_sim_result result = { .size = sizeof(result) };
		struct hk_why why = { "" };

		bed_alloc_init(&counted, at);
		opts.alloc = &counted.alloc;
		enum hk_status status = hk_sim_run(fabric, &job, 1, &opts, &why, &result);
		CHECK_EQ(counted.held, 0);
		if (status == HK_OK)
			break;
		CHECK_EQ(status, HK_ENOMEM);
		CHECK(why.text[0]);
	}
	printf("%llu requests\n", (unsigned long long)at);
	CHECK(at > 50);
	hk_plan_free(plan);
	hk_fabric_free(fabric);
}
