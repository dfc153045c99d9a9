/* SPDX-License-Identifier: Apache-2.0 */
/* tune_test.c - each trial chooses the fastest copy method. */
#include "group/group.h"
#include "harness.h"

#define BYTES_CLASS 21u /* 2 MiB */

/* Calls, until the ranks have to agree: no more than a caller would stand. */
static void calls_until_due(struct hk__tuner *tuner)
{
	for (unsigned calls = 0; !hk__tuner_due(tuner); calls++) {
		struct hk__call call = { 0 };
		uint64_t start;

		CHECK(calls < 2048);
		hk__tuner_begin(tuner, &call, &start);
		hk__tuner_end(tuner, start);
	}
}

/* From whichever method it had, to whichever is the fastest now. */
TEST(the_fastest_method_is_taken_whatever_was_before)
{
	for (unsigned before = 0; before < HK__COPY_COUNT; before++) {
		for (unsigned now = 0; now < HK__COPY_COUNT; now++) {
			struct hk_net shm = { 0 };
			struct hk__world world = { .shm = &shm };
			struct hk_group group = { .world = &world, .n = 2 };
			struct hk__tuner *tuner =
				hk__tuner_of(&group, HK_COLL_ALLGATHER, BYTES_CLASS);

			for (unsigned turn = 0; turn < 2; turn++) {
				unsigned best = turn ? now : before;
				uint64_t worst[HK__AGREE_WORDS];

				calls_until_due(tuner);
				for (unsigned m = 0; m < HK__COPY_COUNT; m++)
					worst[m] = m == best ? 1000 : 2000;
				hk__tuner_decide(&group, tuner, worst);
				CHECK_EQ(tuner->method, best);
				CHECK_EQ(group.method, best);
			}
		}
	}
}

/* Ways that take equally long: no change without a gain. */
TEST(a_method_no_faster_changes_nothing)
{
	for (unsigned before = 0; before < HK__COPY_COUNT; before++) {
		struct hk_group group = { .n = 2 };
		struct hk__tuner tuner = { .method = (enum hk__copy_method)before };
		const uint64_t worst[HK__AGREE_WORDS] = { 1000, 1000, 1000 };

		hk__tuner_decide(&group, &tuner, worst);
		CHECK_EQ(tuner.method, before);
	}
}

/* Trying again takes a hundredth of the time at most, and comes soon enough. */
TEST(trying_again_costs_a_hundredth)
{
	static const uint64_t times[][HK__AGREE_WORDS] = {
		{ 100, 100, 100 },
		{ 140, 300, 320 },
		{ 600, 150, 140 },
		{ 90, 180000, 170 },
	};

	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
		struct hk_net shm = { 0 };
		struct hk__world world = { .shm = &shm };
		struct hk_group group = { .world = &world, .n = 2 };
		struct hk__tuner *tuner = hk__tuner_of(&group, HK_COLL_ALLREDUCE, BYTES_CLASS);
		uint64_t tried = 0, kept = 0;

		/* The second time is as the times after it. */
		for (unsigned turn = 0; turn < 2; turn++) {
			calls_until_due(tuner);
			hk__tuner_decide(&group, tuner, times[i]);
			while (turn == 0 && hk__tuner_fresh(tuner))
				;
		}
		for (unsigned m = 0; m < HK__COPY_COUNT; m++)
			tried += 3 * (times[i][m] - times[i][tuner->method]);
		while (hk__tuner_fresh(tuner))
			kept++;
		CHECK(kept >= 255 && kept < 65536);
		CHECK(kept == 65535 || tried * 99 <= (kept + 1) * times[i][tuner->method]);
	}
}

/* Few long calls decide at first: soon tried again, unless the others were far behind. */
TEST(what_was_near_is_tried_again_soon)
{
	static const struct {
		uint64_t times[HK__AGREE_WORDS];
		bool soon;
	} rows[] = {
		{ { 100, 110, 300 }, true },
		{ { 300, 110, 100 }, true },
		{ { 100, 125, 130 }, false },
		{ { 300, 100, 150 }, false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct hk_net shm = { 0 };
		struct hk__world world = { .shm = &shm };
		struct hk_group group = { .world = &world, .n = 2 };
		struct hk__tuner *tuner = hk__tuner_of(&group, HK_COLL_ALLTOALL, BYTES_CLASS);
		unsigned kept = 0;

		calls_until_due(tuner);
		hk__tuner_decide(&group, tuner, rows[i].times);
		while (hk__tuner_fresh(tuner))
			kept++;
		CHECK_EQ(kept < 64, rows[i].soon);
	}
}
