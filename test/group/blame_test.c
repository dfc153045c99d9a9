/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blame_test.c - a rank that does not come: all who wait, for it or for each
 * other, name that one at their deadline.
 */
#include "group/world.h"
#include "harness.h"

#define COUNT 5000
#define DEADLINE_NS UINT64_C(3000000000)

static void absent_is_named(struct world_seat *seat)
{
	static const uint32_t absent = 2;
	int32_t in[COUNT] = { 0 }, out[COUNT];
	struct hk_opts opts = HK_OPTS_INIT;
	struct hk_group *group;
	char stopped[40], unknown[40];

	CHECK_EQ(hk_group_split(seat->group, 0, 0, &group), HK_OK);
	opts.timeout_ns = DEADLINE_NS;
	opts.algo = "ring"; /* only its neighbours ever wait for it */
	if (seat->rank != absent) {
		enum hk_status status =
			hk_allreduce(group, in, out, COUNT, HK_TYPE_INT32, HK_REDOP_SUM, &opts);

		CHECK(status == HK_ETIMEDOUT || status == HK_EREVOKED);
		(void)snprintf(unknown, sizeof(unknown), "rank %u is not known to be dead", absent);
		(void)snprintf(stopped, sizeof(stopped), "rank %u is stopped, slow", absent);
		CHECK_HAS(hk_group_why(group), status == HK_ETIMEDOUT ? unknown : stopped);
	}
	world_meet(seat);
	/* It learns that it was waited for. */
	if (seat->rank == absent) {
		CHECK_EQ(hk_allreduce(group, in, out, COUNT, HK_TYPE_INT32, HK_REDOP_SUM, &opts),
			 HK_EREVOKED);
		CHECK_HAS(hk_group_why(group), "this rank kept it waiting");
	}
	world_meet(seat);
	hk_group_free(group);
}

static void run(enum world_kind kind, bool progress)
{
	struct world_spec spec = { .kind = kind, .n = 5, .progress = progress };

	world_run(&spec, absent_is_named, NULL);
}

TEST(who_does_not_come_is_named_over_shm)
{
	run(WORLD_THREADS_SHM, false);
	run(WORLD_PROCESSES_SHM, true);
}

TEST(who_does_not_come_is_named_over_tcp)
{
	run(WORLD_PROCESSES_TCP, false);
	run(WORLD_THREADS_TCP, true);
}

TEST(who_does_not_come_is_named_over_both)
{
	run(WORLD_MIXED_PROCESSES, false);
	run(WORLD_MIXED_THREADS, true);
}
