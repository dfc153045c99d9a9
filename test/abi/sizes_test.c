/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sizes_test.c - the sizes of structs, as recorded (64-bit).
 *
 * Hot ones grow only on purpose. Of the installed ones, those that begin with
 * `size` may grow at their end; any other change breaks programs that are
 * built already, and needs a new soname.
 */
#include "base/base.h"
#include "harness.h"
#include "plan/plan.h"

#include <hocket/fabric.h>
#include <hocket/hocket.h>

TEST(hot)
{
	CHECK_EQ(sizeof(struct hk_step), 64); /* a cache line */
	CHECK_EQ(sizeof(struct hk_span), 16);
	CHECK_EQ(sizeof(struct hk_port), 8);
	CHECK_EQ(sizeof(struct hk_after), 8);
	CHECK_EQ(sizeof(struct hk__hash_entry), 24);
}

TEST(plan_is_small_at_any_scale)
{
	CHECK_EQ(sizeof(struct hk_plan), 80);
}

TEST(installed)
{
	CHECK_EQ(sizeof(struct hk_alloc), 16);
	CHECK_EQ(sizeof(struct hk_msg), 8);
	CHECK_EQ(sizeof(struct hk_plan_info), 80);
	CHECK_EQ(sizeof(struct hk_sizes), 16);
	CHECK_EQ(sizeof(struct hk_algo_info), 88);
	CHECK_EQ(sizeof(struct hk_why), 768);
	CHECK_EQ(sizeof(struct hk_check_cost), 80);
	CHECK_EQ(sizeof(struct hk_rank_cost), 56);
	CHECK_EQ(sizeof(struct hk_check_report), 1400);
	CHECK_EQ(sizeof(struct hk_fabric_info), 48);
	CHECK_EQ(sizeof(struct hk_fabric_constant), 40);
	CHECK_EQ(sizeof(struct hk_fabric_name), 40);
	CHECK_EQ(sizeof(struct hk_env_info), 168);
	CHECK_EQ(sizeof(struct hk_device_view), 72);
}

/* So that each may grow at its end. */
TEST(results_begin_with_their_size)
{
	CHECK_EQ(offsetof(struct hk_plan_info, size), 0);
	CHECK_EQ(offsetof(struct hk_algo_info, size), 0);
	CHECK_EQ(offsetof(struct hk_check_report, size), 0);
	CHECK_EQ(offsetof(struct hk_rank_cost, size), 0);
	CHECK_EQ(offsetof(struct hk_fabric_info, size), 0);
	CHECK_EQ(offsetof(struct hk_fabric_constant, size), 0);
	CHECK_EQ(offsetof(struct hk_fabric_name, size), 0);
	CHECK_EQ(offsetof(struct hk_env_info, size), 0);
	CHECK_EQ(offsetof(struct hk_sim_result, size), 0);
	CHECK_EQ(offsetof(struct hk_sim_candidate, size), 0);
	CHECK_EQ(offsetof(struct hk_sim_fit_result, size), 0);
	CHECK_EQ(offsetof(struct hk_sim_nccl_result, size), 0);
	CHECK_EQ(offsetof(struct hk_choice, size), 0);
	CHECK_EQ(offsetof(struct hk_device_view, size), 0);
}

/* A program built with an older header gets what it knows; with a newer one, zeroes. */
TEST(results_of_other_versions)
{
	struct {
		struct hk_choice known;
		uint64_t later;
	} newer = { .known.size = sizeof(newer), .later = 7 };
	struct hk_choice full = { .algo = "ring", .net = "shm" }, older = { .net = "kept" };

	older.size = offsetof(struct hk_choice, net);
	CHECK_EQ(hk__result_copy(&older, &full, sizeof(full)), HK_OK);
	CHECK_STR(older.algo, "ring");
	CHECK_STR(older.net, "kept");
	CHECK_EQ(hk__result_copy(&newer, &full, sizeof(full)), HK_OK);
	CHECK_STR(newer.known.net, "shm");
	CHECK_EQ(newer.later, 0);
	CHECK_EQ(newer.known.size, sizeof(newer));
	older.size = 0;
	CHECK_EQ(hk__result_copy(&older, &full, sizeof(full)), HK_EINVAL);
}

TEST(installed_options)
{
	CHECK_EQ(sizeof(struct hk_plan_opts), 56);
	CHECK_EQ(sizeof(struct hk_check_opts), 40);
	CHECK_EQ(sizeof(struct hk_print_opts), 16);
	CHECK_EQ(sizeof(struct hk_export_opts), 32);
	CHECK_EQ(sizeof(struct hk_grow_opts), 40);
	CHECK_EQ(sizeof(struct hk_win_opts), 24);
	CHECK_EQ(sizeof(struct hk_until), 56);
	CHECK_EQ(sizeof(struct hk_device_heap_opts), 32);
	CHECK_EQ(offsetof(struct hk_plan_opts, size), 0);
	CHECK_EQ(offsetof(struct hk_check_opts, size), 0);
	CHECK_EQ(offsetof(struct hk_print_opts, size), 0);
	CHECK_EQ(offsetof(struct hk_export_opts, size), 0);
	CHECK_EQ(offsetof(struct hk_grow_opts, size), 0);
	CHECK_EQ(offsetof(struct hk_win_opts, size), 0);
	CHECK_EQ(offsetof(struct hk_until, size), 0);
	CHECK_EQ(offsetof(struct hk_device_heap_opts, size), 0);
}

/* The initialisers say the size and nothing else. */
TEST(initialisers)
{
	struct hk_plan_opts plan = HK_PLAN_OPTS_INIT;
	struct hk_check_opts check = HK_CHECK_OPTS_INIT;
	struct hk_print_opts print = HK_PRINT_OPTS_INIT;
	struct hk_grow_opts grow = HK_GROW_OPTS_INIT;
	struct hk_win_opts win = HK_WIN_OPTS_INIT;
	struct hk_device_heap_opts heap = HK_DEVICE_HEAP_OPTS_INIT;

	CHECK_EQ(plan.size, sizeof(plan));
	CHECK_EQ(check.size, sizeof(check));
	CHECK_EQ(print.size, sizeof(print));
	CHECK_EQ(grow.size, sizeof(grow));
	CHECK(!grow.address && !grow.timeout_ns && !grow.opened && !grow.ctx);
	CHECK(!plan.algo && !plan.msgs && !plan.alloc && !plan.node_sizes);
	CHECK(!check.inplace && !check.set_slots && !check.alloc && !check.progress);
	CHECK(!print.one_rank && !print.rank);
	CHECK_EQ(win.size, sizeof(win));
	CHECK(!win.remap && !win.timeout_ns);
	CHECK_EQ(heap.size, sizeof(heap));
	CHECK(!heap.stream && !heap.timeout_ns && !heap.ipc);
}
