/* SPDX-License-Identifier: Apache-2.0 */
/* base_test.c - src/base: statuses, texts, option structs, memory, array, hash. */
#include "base/base.h"
#include "harness.h"

#include <hocket/hocket.h>

/* ---- an allocator that counts, checks sizes and fails when it is told to ---- */

struct counted {
	struct hk_alloc alloc;
	size_t calls;
	size_t fail_at; /* this call fails, and all after it; 0: none */
	size_t bytes;	/* held now */
	size_t blocks;
};

static void *counted_resize(void *ctx, void *ptr, size_t size_old, size_t size_new)
{
	struct counted *counted = ctx;

	CHECK((ptr == NULL) == (size_old == 0));
	if (size_new && counted->fail_at && ++counted->calls >= counted->fail_at)
		return NULL;
	CHECK(counted->bytes >= size_old);
	counted->bytes += size_new - size_old;
	counted->blocks += !ptr;
	if (size_new)
		return realloc(ptr, size_new);
	free(ptr);
	counted->blocks--;
	return NULL;
}

static void counted_init(struct counted *counted, size_t fail_at)
{
	*counted = (struct counted){ .alloc = { counted_resize, counted }, .fail_at = fail_at };
}

static void counted_check_empty(const struct counted *counted)
{
	CHECK_EQ(counted->blocks, 0);
	CHECK_EQ(counted->bytes, 0);
}

/* ---- statuses ---- */

TEST(status_table)
{
#define STATUS_CHECK(name, value, text) \
	CHECK_EQ(HK_##name, value); \
	CHECK_STR(hk_status_name(HK_##name), "HK_" #name); \
	CHECK_STR(hk_status_text(HK_##name), text);
	HK_STATUS_MAP(STATUS_CHECK)
#undef STATUS_CHECK
}

TEST(status_values_differ)
{
#define STATUS_VALUE(name, value, text) value,
	static const int values[] = { HK_STATUS_MAP(STATUS_VALUE) };
#undef STATUS_VALUE

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		for (size_t j = 0; j < i; j++)
			CHECK(values[i] != values[j]);
}

TEST(status_unknown)
{
	CHECK_STR(hk_status_name((enum hk_status) - 12345), "HK_?");
	CHECK_STR(hk_status_text((enum hk_status) - 12345), "not a status");
}

TEST(version)
{
	char text[32];

	snprintf(text, sizeof(text), "%d.%d.%d", HK_VERSION_MAJOR, HK_VERSION_MINOR,
		 HK_VERSION_PATCH);
	CHECK_STR(hk_version(), text);
}

/* ---- one-line messages ---- */

TEST(why)
{
	struct hk_why why;

	CHECK_EQ(hk__why(&why, HK_EINVAL, "rank %d of %d", 7, 4), HK_EINVAL);
	CHECK_STR(why.text, "rank 7 of 4");
	CHECK_EQ(hk__why(NULL, HK_EIO, "nobody reads %s", "this"), HK_EIO);
}

TEST(why_truncates)
{
	struct hk_why why;

	memset(&why, 'x', sizeof(why));
	CHECK_EQ(hk__why(&why, HK_ELIMIT, "%*s", 2 * HK_WHY_MAX, "end"), HK_ELIMIT);
	CHECK_EQ(strlen(why.text), HK_WHY_MAX - 1);
}

TEST(text_builds)
{
	struct hk__text text;
	char at[32];

	hk__text_init(&text, at, sizeof(at));
	CHECK_STR(at, "");
	hk__text_add(&text, "rank %d", 3);
	hk__text_add(&text, ", %s", "step 4");
	CHECK_STR(at, "rank 3, step 4");
	CHECK_EQ(text.len, strlen(at));
}

/* Every length around the size: what fits is whole, what does not ends in "...". */
TEST(text_truncates)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t size = 4; size <= sizeof(digits); size++) {
		for (int len = 0; len < (int)sizeof(digits); len++) {
			struct hk__text text;
			char at[sizeof(digits) + 1];

			memset(at, '#', sizeof(at));
			hk__text_init(&text, at, size);
			hk__text_add(&text, "%.*s", len, digits);
			if ((size_t)len < size) {
				CHECK_EQ(strlen(at), len);
				CHECK(strncmp(at, digits, (size_t)len) == 0);
			} else {
				CHECK_EQ(strlen(at), size - 1);
				CHECK(strncmp(at, digits, size - 4) == 0);
				CHECK_STR(at + size - 4, "...");
				hk__text_add(&text, "more");
				CHECK_STR(at + size - 4, "...");
			}
			CHECK_EQ(at[size], '#');
		}
	}
}

TEST(text_truncates_when_full)
{
	struct hk__text text;
	char at[8];

	hk__text_init(&text, at, sizeof(at));
	hk__text_add(&text, "1234567");
	CHECK_STR(at, "1234567");
	hk__text_add(&text, "%s", "");
	CHECK_STR(at, "1234567");
	hk__text_add(&text, "8");
	CHECK_STR(at, "1234...");
}

TEST(name_equal)
{
	static const char *const equal[][2] = {
		{ "", "" },
		{ "", "-_-" },
		{ "ring", "ring" },
		{ "reduce-scatter", "ReduceScatter" },
		{ "two_shot", "twoshot" },
		{ "-ring_", "r-i-n-g" },
	};
	static const char *const other[][2] = {
		{ "", "a" },	    { "ring", "rin" },	     { "rin", "ring" },
		{ "ring", "rang" }, { "gather", "gatherv" }, { "two shot", "twoshot" },
	};

	for (size_t i = 0; i < sizeof(equal) / sizeof(equal[0]); i++) {
		CHECK(hk__name_equal(equal[i][0], equal[i][1]));
		CHECK(hk__name_equal(equal[i][1], equal[i][0]));
	}
	for (size_t i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		CHECK(!hk__name_equal(other[i][0], other[i][1]));
		CHECK(!hk__name_equal(other[i][1], other[i][0]));
	}
}

/* ---- option structs: what an older and a newer program hand over ---- */

struct opts {
	size_t size;
	uint64_t a;
	uint64_t b;
};

struct opts_newer {
	struct opts opts;
	uint64_t c;
};

TEST(opts_none)
{
	struct opts to = { 1, 2, 3 };

	CHECK_EQ(hk__opts_copy(&to, sizeof(to), NULL), HK_OK);
	CHECK_EQ(to.size, sizeof(to));
	CHECK_EQ(to.a, 0);
	CHECK_EQ(to.b, 0);
}

TEST(opts_same)
{
	struct opts from = { sizeof(from), 5, 6 }, to;

	CHECK_EQ(hk__opts_copy(&to, sizeof(to), &from), HK_OK);
	CHECK(memcmp(&to, &from, sizeof(to)) == 0);
}

TEST(opts_smaller)
{
	struct opts from = { offsetof(struct opts, b), 5, 6 }, to;

	CHECK_EQ(hk__opts_copy(&to, sizeof(to), &from), HK_OK);
	CHECK_EQ(to.size, sizeof(to));
	CHECK_EQ(to.a, 5);
	CHECK_EQ(to.b, 0);
}

TEST(opts_larger)
{
	struct opts_newer from = { { sizeof(from), 5, 6 }, 0 };
	struct opts to;

	CHECK_EQ(hk__opts_copy(&to, sizeof(to), &from), HK_OK);
	CHECK_EQ(to.size, sizeof(to));
	CHECK_EQ(to.a, 5);
	CHECK_EQ(to.b, 6);
	from.c = 1; /* asks for what this library does not know */
	CHECK_EQ(hk__opts_copy(&to, sizeof(to), &from), HK_EINVAL);
}

TEST(opts_no_size)
{
	struct opts from = { 0, 5, 6 }, to;

	CHECK_EQ(hk__opts_copy(&to, sizeof(to), &from), HK_EINVAL);
	from.size = sizeof(size_t) - 1;
	CHECK_EQ(hk__opts_copy(&to, sizeof(to), &from), HK_EINVAL);
	from.size = sizeof(size_t);
	CHECK_EQ(hk__opts_copy(&to, sizeof(to), &from), HK_OK);
}

/* ---- memory ---- */

TEST(mem_zeroed)
{
	struct counted counted;

	counted_init(&counted, 0);
	unsigned char *ptr = hk__mem_zalloc(&counted.alloc, 100, 3);
	CHECK(ptr);
	for (size_t i = 0; i < 300; i++)
		CHECK_EQ(ptr[i], 0);
	CHECK_EQ(counted.bytes, 300);
	hk__mem_free(&counted.alloc, ptr, 100, 3);
	hk__mem_free(&counted.alloc, NULL, 100, 3);
	counted_check_empty(&counted);
}

TEST(mem_of_nothing)
{
	struct counted counted;

	counted_init(&counted, 0);
	void *ptr = hk__mem_zalloc(&counted.alloc, 0, 8);
	CHECK(ptr);
	hk__mem_free(&counted.alloc, ptr, 0, 8);
	counted_check_empty(&counted);
}

TEST(mem_overflow)
{
	CHECK(!hk__mem_zalloc(&hk__alloc_default, SIZE_MAX / 2, 3));
	CHECK(!hk__mem_zalloc(&hk__alloc_default, SIZE_MAX, SIZE_MAX));
}

TEST(mem_default)
{
	void *ptr = hk__mem_zalloc(&hk__alloc_default, 1, 16);

	CHECK(ptr);
	hk__mem_free(&hk__alloc_default, ptr, 1, 16);
}

TEST(mem_fails)
{
	struct counted counted;

	counted_init(&counted, 1);
	CHECK(!hk__mem_zalloc(&counted.alloc, 1, 1));
	counted_check_empty(&counted);
}

/* ---- the array ---- */

struct item {
	uint64_t index;
	char fill[13]; /* an awkward size */
};

TEST(array_grows)
{
	struct counted counted;
	struct hk__array array;

	counted_init(&counted, 0);
	hk__array_init(&array, &counted.alloc, sizeof(struct item));
	for (size_t i = 0; i < 5000; i++) {
		struct item *item = hk__array_push(&array);

		CHECK(item);
		CHECK_EQ(item->index, 0);
		CHECK_EQ(item->fill[12], 0);
		*item = (struct item){ .index = i, .fill = { [12] = (char)(i % 100) } };
	}
	CHECK_EQ(array.count, 5000);
	for (size_t i = 0; i < 5000; i++) {
		struct item *item = hk__array_at(&array, i);

		CHECK_EQ(item->index, i);
		CHECK_EQ(item->fill[12], i % 100);
	}
	hk__array_fini(&array);
	CHECK_EQ(array.count, 0);
	counted_check_empty(&counted);
}

TEST(array_empty)
{
	struct counted counted;
	struct hk__array array;

	counted_init(&counted, 1);
	hk__array_init(&array, &counted.alloc, 4);
	hk__array_fini(&array);
	counted_check_empty(&counted);
}

/* Whichever allocation fails: NULL, the items so far stand, nothing leaks. */
TEST(array_fails)
{
	for (size_t fail_at = 1; fail_at <= 6; fail_at++) {
		struct counted counted;
		struct hk__array array;
		uint32_t *item;

		counted_init(&counted, fail_at);
		hk__array_init(&array, &counted.alloc, sizeof(*item));
		while ((item = hk__array_push(&array)))
			*item = (uint32_t)array.count;
		CHECK_EQ(array.count, fail_at == 1 ? 0 : 8u << (fail_at - 2));
		CHECK(!hk__array_push(&array));
		for (size_t i = 0; i < array.count; i++) {
			item = hk__array_at(&array, i);
			CHECK_EQ(*item, i + 1);
		}
		hk__array_fini(&array);
		counted_check_empty(&counted);
	}
}

TEST(array_overflow)
{
	struct hk__array array;

	hk__array_init(&array, &hk__alloc_default, SIZE_MAX / 4);
	CHECK(!hk__array_push(&array));
	hk__array_fini(&array);
}

/* ---- the hash ---- */

/* Keys as the checker has them: small, dense, in both halves. */
TEST(hash_dense_keys)
{
	struct counted counted;
	struct hk__hash hash;

	counted_init(&counted, 0);
	hk__hash_init(&hash, &counted.alloc);
	for (uint32_t i = 0; i < 10000; i++) {
		struct hk__hash_entry *entry = hk__hash_get(&hash, i % 100, i / 100);

		CHECK(entry);
		CHECK_EQ(entry->value, HK_NONE);
		entry->value = i;
	}
	CHECK_EQ(hash.count, 10000);
	for (uint32_t i = 0; i < 10000; i++)
		CHECK_EQ(hk__hash_get(&hash, i % 100, i / 100)->value, i);
	CHECK_EQ(hash.count, 10000);
	hk__hash_fini(&hash);
	counted_check_empty(&counted);
}

/* Against an array: entries come and go, in any order, and none is lost. */
TEST(hash_entries_are_removed)
{
	static uint32_t held[512];
	uint64_t seed = test_seed(7);
	struct hk__hash hash;
	size_t count = 0;

	memset(held, 0, sizeof(held));
	hk__hash_init(&hash, &hk__alloc_default);
	CHECK(!hk__hash_find(&hash, 1, 2));
	for (uint32_t i = 1; i < 200000; i++) {
		uint32_t key = (uint32_t)(test_random(&seed) % 512);
		struct hk__hash_entry *entry = hk__hash_find(&hash, key % 8, key / 8);

		CHECK_EQ(entry ? entry->value : 0, held[key]);
		/* Mostly full for a while, then mostly empty. */
		if (entry && test_random(&seed) % 4 <= (i / 20000) % 2 * 3) {
			hk__hash_remove(&hash, entry);
			held[key] = 0;
			count--;
		} else if (!entry && test_random(&seed) % 4 >= (i / 20000) % 2 * 3) {
			entry = hk__hash_get(&hash, key % 8, key / 8);
			CHECK(entry && entry->value == HK_NONE);
			entry->value = held[key] = i;
			count++;
		}
		CHECK_EQ(hash.count, count);
	}
	CHECK(hash.room <= 1024);
	for (uint32_t key = 0; key < 512; key++)
		CHECK_EQ(hk__hash_find(&hash, key % 8, key / 8) != NULL, held[key] != 0);
	hk__hash_fini(&hash);
}

TEST(hash_random_keys)
{
	enum {
		KEYS = 20000
	};
	static uint64_t keys[KEYS][2];
	struct hk__hash hash;
	uint64_t seed = test_seed(1);

	hk__hash_init(&hash, &hk__alloc_default);
	for (uint32_t i = 0; i < KEYS; i++) {
		/* Neighbours share a half. */
		keys[i][0] = i % 2 ? keys[i - 1][0] : test_random(&seed);
		keys[i][1] = test_random(&seed);
		hk__hash_get(&hash, keys[i][0], keys[i][1])->value = i;
	}
	CHECK_EQ(hash.count, KEYS);
	for (uint32_t i = 0; i < KEYS; i++) {
		struct hk__hash_entry *entry = hk__hash_get(&hash, keys[i][0], keys[i][1]);

		CHECK_EQ(entry->value, i);
		CHECK(entry->key[0] == keys[i][0] && entry->key[1] == keys[i][1]);
	}
	hk__hash_fini(&hash);
}

TEST(hash_extreme_keys)
{
	static const uint64_t halves[] = { 0, 1, UINT32_MAX, UINT64_MAX - 1, UINT64_MAX };
	struct hk__hash hash;

	hk__hash_init(&hash, &hk__alloc_default);
	for (uint32_t i = 0; i < 25; i++)
		hk__hash_get(&hash, halves[i / 5], halves[i % 5])->value = i;
	for (uint32_t i = 0; i < 25; i++)
		CHECK_EQ(hk__hash_get(&hash, halves[i / 5], halves[i % 5])->value, i);
	CHECK_EQ(hash.count, 25);
	hk__hash_fini(&hash);
}

/* Whichever allocation fails: NULL, the keys so far stand, nothing leaks. */
TEST(hash_fails)
{
	for (size_t fail_at = 1; fail_at <= 6; fail_at++) {
		struct counted counted;
		struct hk__hash hash;
		struct hk__hash_entry *entry;
		uint32_t count = 0;

		counted_init(&counted, fail_at);
		hk__hash_init(&hash, &counted.alloc);
		while ((entry = hk__hash_get(&hash, count, 7)))
			entry->value = count++;
		CHECK_EQ(count, fail_at == 1 ? 0 : 48u << (fail_at - 2));
		CHECK_EQ(hash.count, count);
		/* It is full, not broken: memory that comes back is used. */
		counted.fail_at = 0;
		for (uint32_t i = 0; i < count; i++)
			CHECK_EQ(hk__hash_get(&hash, i, 7)->value, i);
		CHECK_EQ(hk__hash_get(&hash, count, 7)->value, HK_NONE);
		hk__hash_fini(&hash);
		counted_check_empty(&counted);
	}
}

/* ---- bits ---- */

TEST(logarithms)
{
	for (uint32_t x = 1; x < 5000; x++) {
		uint32_t floor = hk__flog2(x), ceil = hk__clog2(x);

		CHECK(1u << floor <= x && x < 2u << floor);
		CHECK(x <= 1u << ceil && (ceil == 0 || x > 1u << (ceil - 1)));
	}
	CHECK_EQ(hk__flog2(UINT32_MAX), 31);
	CHECK_EQ(hk__clog2(UINT32_MAX), 32);
	CHECK_EQ(hk__clog2(HK_RANKS_MAX), 24);
}

TEST(modular)
{
	for (uint32_t n = 1; n <= 17; n++)
		for (uint32_t a = 0; a < n; a++)
			for (uint32_t b = 0; b <= n; b++) {
				CHECK_EQ(hk__mod_add(a, b, n), (a + b) % n);
				CHECK_EQ(hk__mod_add(hk__mod_sub(a, b, n), b, n), a);
			}
}
