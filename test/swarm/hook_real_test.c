/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook_real_test.c - links that go wrong, of real transports, under groups whose
 * ranks are threads: every call ends with a status, and what succeeds is right.
 */
#include "group/group.h"
#include "harness.h"
#include "net/fixture.h"
#include "net/hook/hook.h"

#define RANKS 3u
#define COUNT 5000u
#define CALLS 12

struct seat {
	uint32_t rank;
	struct hk_net *net;
	bool unsure; /* of bytes */
	uint64_t timeout_ns;
	enum hk_status status;
	int calls;
};

static void sums_check(const struct seat *seat, const int32_t *out)
{
	for (uint32_t i = 0; !seat->unsure && i < COUNT; i++)
		CHECK_EQ(out[i], 3 * (int32_t)i + 3);
}

static void *seat_main(void *ctx)
{
	struct seat *seat = ctx;
	struct hk__world_spec world = { .timeout_ns = seat->timeout_ns,
					.watch_ns = 20000000,
					.silence_ns = 1000000000,
					.alloc = &hk__alloc_default };
	struct hk__world_over over = { .net = seat->net, .slots = 4, .slot_bytes = 16384 };
	int32_t *in = malloc(COUNT * sizeof(*in)), *out = malloc(COUNT * sizeof(*out));
	struct hk_opts opts = HK_OPTS_INIT;
	struct hk_group *group;

	CHECK(in && out);
	opts.algo = "ring";
	for (uint32_t i = 0; i < COUNT; i++)
		in[i] = (int32_t)(i + seat->rank);
	CHECK_EQ(hk__group_over(&world, &over, &group), HK_OK);
	while (seat->status == HK_OK && seat->calls < CALLS) {
		seat->status =
			hk_allreduce(group, in, out, COUNT, HK_TYPE_INT32, HK_REDOP_SUM, &opts);
		if (seat->status == HK_OK)
			sums_check(seat, out);
		else
			CHECK(hk_group_why(group)[0]);
		seat->calls += seat->status == HK_OK;
	}
	hk_group_free(group);
	free(in);
	free(out);
	return NULL;
}

/* Statuses of all ranks, or'ed as bits. */
static uint32_t wrong_run(enum hk__hook_what what, uint64_t at)
{
	struct hk__hook_fault fault = { what, 2, at, 50000000 };
	struct hk_net *nets[FIXTURE_RANKS_MAX] = { 0 };
	struct seat seats[RANKS];
	uint32_t seen = 0;

	fixture_open(RANKS, nets);
	for (uint32_t r = 0; r < RANKS; r++) {
		struct hk__hook_spec spec = { .net = nets[r], .faults = &fault, .nfaults = r == 1 };

		/* Short where it is waited for, far away where something else is. */
		seats[r] = (struct seat){
			.rank = r,
			.timeout_ns = what == HK__HOOK_STALL || what == HK__HOOK_DUPLICATE
					      ? UINT64_C(400000000)
					      : UINT64_C(30000000000),
			.unsure = what == HK__HOOK_CORRUPT || what == HK__HOOK_DUPLICATE
		};
		CHECK_EQ(hk__hook_open(&spec, &seats[r].net), HK_OK);
		nets[r] = NULL; /* groups close them */
	}
	fixture_run(RANKS, seat_main, (void *[]){ &seats[0], &seats[1], &seats[2] });
	fixture_close(RANKS, nets);
	for (uint32_t r = 0; r < RANKS; r++)
		seen |= 1u << -seats[r].status;
	return seen;
}

static uint32_t wrong_often(enum hk__hook_what what)
{
	uint32_t seen = 0;

	for (uint64_t at = 0; at < 20; at += 1 + at / 2)
		seen |= wrong_run(what, at);
	return seen;
}

TEST(drop)
{
	CHECK(wrong_often(HK__HOOK_DROP) & 1u << -HK_EPEER);
}

TEST(delay)
{
	CHECK_EQ(wrong_often(HK__HOOK_DELAY), 1u << HK_OK);
}

TEST(stall)
{
	CHECK(wrong_often(HK__HOOK_STALL) & 1u << -HK_ETIMEDOUT);
}

TEST(corrupt)
{
	CHECK_EQ(wrong_often(HK__HOOK_CORRUPT), 1u << HK_OK);
}

TEST(truncate)
{
	CHECK(wrong_often(HK__HOOK_TRUNCATE) & 1u << -HK_EIO);
}

TEST(duplicate)
{
	(void)wrong_often(HK__HOOK_DUPLICATE);
}
