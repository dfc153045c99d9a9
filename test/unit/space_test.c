/* SPDX-License-Identifier: Apache-2.0 */
/* space_test.c - src/base/space.c: places that only the calls decide. */
#include "base/space.h"
#include "harness.h"

#include <string.h>

static struct hk__space opened(size_t first, size_t end)
{
	struct hk__space space;

	hk__space_init(&space, &hk__alloc_default, first, end);
	return space;
}

static size_t got(struct hk__space *space, size_t bytes, size_t align)
{
	size_t at = SIZE_MAX;

	CHECK_EQ(hk__space_get(space, bytes, align, &at), HK_OK);
	return at;
}

static void refused(struct hk__space *space, size_t bytes, size_t align, enum hk_status status)
{
	size_t at = 12345, count = space->blocks.count;

	CHECK_EQ(hk__space_get(space, bytes, align, &at), status);
	CHECK_EQ(at, 12345);
	CHECK_EQ(space->blocks.count, count);
}

TEST(the_first_place_that_is_large_enough)
{
	struct hk__space space = opened(0, 100);

	CHECK_EQ(got(&space, 10, 1), 0);
	CHECK_EQ(got(&space, 20, 1), 10);
	CHECK_EQ(got(&space, 30, 1), 30);
	CHECK(hk__space_put(&space, 10));
	CHECK_EQ(got(&space, 21, 1), 60); /* the hole has 20 */
	CHECK_EQ(got(&space, 20, 1), 10);
	CHECK_EQ(got(&space, 19, 1), 81);
	refused(&space, 1, 1, HK_ELIMIT);
	CHECK(hk__space_put(&space, 99 - 18));
	CHECK_EQ(got(&space, 1, 1), 81);
	hk__space_fini(&space);
}

TEST(places_are_aligned)
{
	struct hk__space space = opened(3, 4096);

	CHECK_EQ(got(&space, 5, 1), 3);
	CHECK_EQ(got(&space, 5, 8), 8);
	CHECK_EQ(got(&space, 1, 256), 256);
	CHECK_EQ(got(&space, 3, 16), 16); /* in the hole behind 13 */
	CHECK_EQ(got(&space, 2048, 2048), 2048);
	refused(&space, 1, 4096, HK_ELIMIT);
	hk__space_fini(&space);
}

TEST(a_hole_is_filled_exactly)
{
	struct hk__space space = opened(64, 64 + 192);

	for (size_t i = 1; i <= 3; i++)
		CHECK_EQ(got(&space, 64, 64), i * 64);
	CHECK(hk__space_put(&space, 128));
	refused(&space, 65, 1, HK_ELIMIT);
	CHECK_EQ(got(&space, 64, 64), 128);
	refused(&space, 1, 1, HK_ELIMIT);
	hk__space_fini(&space);
}

TEST(what_is_refused)
{
	struct hk__space space = opened(16, 1024), empty = opened(0, 0), last;

	refused(&space, 0, 1, HK_EINVAL);
	refused(&space, 1, 0, HK_EINVAL);
	refused(&space, 1, 3, HK_EINVAL);
	refused(&space, 1009, 1, HK_ELIMIT);
	refused(&space, SIZE_MAX, 1, HK_ELIMIT);
	refused(&space, 1, (size_t)1 << 63, HK_ELIMIT);
	refused(&empty, 1, 1, HK_ELIMIT);
	CHECK(!hk__space_put(&empty, 0));
	/* No place is beyond all numbers. */
	last = opened(SIZE_MAX - 10, SIZE_MAX);
	refused(&last, 1, 16, HK_ELIMIT);
	CHECK_EQ(got(&last, 10, 1), SIZE_MAX - 10);
	refused(&last, 1, 1, HK_ELIMIT);
	refused(&last, 1, 2, HK_ELIMIT);
	hk__space_fini(&last);
	hk__space_fini(&empty);
	hk__space_fini(&space);
}

TEST(only_a_block_goes_back)
{
	struct hk__space space = opened(0, 1000);

	CHECK_EQ(got(&space, 100, 1), 0);
	CHECK_EQ(got(&space, 100, 1), 100);
	CHECK_EQ(hk__space_block(&space, 0), 100);
	CHECK_EQ(hk__space_block(&space, 100), 100);
	CHECK_EQ(hk__space_block(&space, 50), 0);
	CHECK_EQ(hk__space_block(&space, 200), 0);
	CHECK(!hk__space_put(&space, 50));
	CHECK(!hk__space_put(&space, 200));
	CHECK(hk__space_put(&space, 0));
	CHECK(!hk__space_put(&space, 0));
	CHECK_EQ(hk__space_block(&space, 0), 0);
	hk__space_fini(&space);
}

/* ---- beside a map of bytes ---- */

#define BYTES 512u

static void map_set(unsigned char *map, size_t at, size_t bytes, unsigned char value)
{
	for (size_t i = at; i < at + bytes; i++) {
		CHECK_EQ(map[i], !value);
		map[i] = value;
	}
}

/* The first aligned run of free bytes; BYTES: none. */
static size_t map_find(const unsigned char *map, size_t bytes, size_t align)
{
	for (size_t at = 0; at + bytes <= BYTES; at += align) {
		if (!memchr(map + at, 1, bytes))
			return at;
	}
	return BYTES;
}

TEST(as_a_map_of_bytes)
{
	uint64_t seed = 1;

	for (int run = 0; run < 50; run++) {
		struct hk__space space = opened(0, BYTES);
		unsigned char map[BYTES] = { 0 };

		for (int i = 0; i < 400; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			size_t bytes = 1 + (seed >> 33) % 60, align = (size_t)1 << (seed >> 50) % 7;
			size_t count = space.blocks.count;

			if (count && (seed >> 40) % 3 == 0) {
				const struct hk__space_block *blocks = space.blocks.items;
				struct hk__space_block block = blocks[(seed >> 20) % count];

				CHECK(hk__space_put(&space, block.at));
				map_set(map, block.at, block.bytes, 0);
				continue;
			}
			size_t at = map_find(map, bytes, align);
			if (at == BYTES) {
				refused(&space, bytes, align, HK_ELIMIT);
				continue;
			}
			CHECK_EQ(got(&space, bytes, align), at);
			CHECK_EQ(hk__space_block(&space, at), bytes);
			map_set(map, at, bytes, 1);
		}
		hk__space_fini(&space);
	}
}

static void *none(void *ctx, void *ptr, size_t size_old, size_t size_new)
{
	(void)ctx, (void)ptr, (void)size_old, (void)size_new;
	return NULL;
}

TEST(no_memory)
{
	const struct hk_alloc alloc = { none, NULL };
	struct hk__space space;

	hk__space_init(&space, &alloc, 0, 100);
	refused(&space, 1, 1, HK_ENOMEM);
	hk__space_fini(&space);
}
