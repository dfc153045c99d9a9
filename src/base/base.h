/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base.h - what every other folder stands on: assertions, memory, one growable
 * array, one hash, bit arithmetic, one clock, and one-line messages.
 *
 * Owns no state but where lines of the log go (log.c), which descriptors are open
 * (fork.h), and that unknown variables were named (env.c). All memory goes through struct hk_alloc, so that a test can make the N-th
 * allocation fail.
 */
#ifndef HK_BASE_BASE_H
#define HK_BASE_BASE_H

#include <hocket/base.h>
#include <hocket/log.h>
#include <hocket/status.h>

#include <stdarg.h>
#include <stdio.h>

/* Which sanitizer this is compiled for, by clang or by GCC. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HK__ASAN 1
#elif __has_feature(thread_sanitizer)
#define HK__TSAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HK__ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define HK__TSAN 1
#endif

/* Programmer errors; on in release builds too. */
#define hk_assert(cond) ((cond) ? (void)0 : hk__panic(__FILE__, __LINE__, #cond))

void hk__panic(const char *file, int line, const char *cond)
	__attribute__((noreturn));

/* ---- one-line messages ---- */

/* Formats into why (which may be NULL) and returns status, for `return`. */
enum hk_status hk__why(struct hk_why *why, enum hk_status status, const char *fmt, ...)
	HK_PRINTF(3, 4);

/* Appends to a fixed buffer; what does not fit ends in "...". */
struct hk__text {
	char *at;
	size_t size;
	size_t len;
};
void hk__text_init(struct hk__text *text, char *at, size_t size);
void hk__text_add(struct hk__text *text, const char *fmt, ...) HK_PRINTF(2, 3);

/* Equal but for case, '-' and '_'. */
bool hk__name_equal(const char *a, const char *b);

/* ---- time ---- */

uint64_t hk__now_ns(void);	/* since some time in the past; for deadlines */
/* Virtual time, for tests; NULL: the system's. Set while nothing else runs. */
extern uint64_t (*hk__clock_virtual)(void);

/* ---- where this runs ---- */

#define HK__SYSTEM_MAX 40u

/* The name of the system that runs, new whenever it is started; false: errno says why. */
bool hk__system(char to_out[HK__SYSTEM_MAX]);

/* ---- what there is nobody to tell ---- */

/* One line, to whom hk_log_set() says; cut after 1023 bytes. For what is rare. */
void hk__log(enum hk_log_level level, const char *fmt, ...) HK_PRINTF(2, 3);

/* ---- option structs ---- */

/*
 * Copies a caller's option struct of another version: missing members become
 * zero; unknown ones must be zero. HK_EINVAL otherwise, or where size is 0.
 */
enum hk_status hk__opts_copy(void *to, size_t size, const void *from);
/*
 * Fills a caller's result struct of another version: what it does not know is left
 * out, what this library does not know becomes zero. HK_EINVAL: its size was not set.
 */
enum hk_status hk__result_copy(void *to, const void *from, size_t size);
/* The same where the call cannot fail: a size that was not set is a programmer error. */
void hk__result_set(void *to, const void *from, size_t size);

/* ---- memory ---- */

extern const struct hk_alloc hk__alloc_default;

/* Zeroed; NULL where there is none, or where count * size overflows. */
void *hk__mem_zalloc(const struct hk_alloc *alloc, size_t count, size_t size);
/* Frees what was allocated with the same count and size; accepts NULL. */
void hk__mem_free(const struct hk_alloc *alloc, void *ptr, size_t count, size_t size);

/* An address that came as a number: from a peer, where it was checked, or from a driver. */
static inline void *hk__mem_at(uint64_t at)
{
	return (void *)(uintptr_t)at; /* NOLINT(performance-no-int-to-ptr) */
}

/* ---- the growable array ---- */

struct hk__array {
	const struct hk_alloc *alloc;
	void *items;
	size_t count;
	size_t room;
	size_t item_size;
};
void hk__array_init(struct hk__array *array, const struct hk_alloc *alloc, size_t item_size);
void hk__array_fini(struct hk__array *array);
/* A zeroed new last item, or NULL. Pointers into the array end here. */
void *hk__array_push(struct hk__array *array);
void *hk__array_at(const struct hk__array *array, size_t index);

/* ---- the hash: two 64-bit keys to a 32-bit value ---- */

struct hk__hash_entry {
	uint64_t key[2];
	uint32_t value;
	uint32_t used;
};
struct hk__hash {
	const struct hk_alloc *alloc;
	struct hk__hash_entry *entries;
	size_t room;		/* a power of two, or 0 */
	size_t count;
};
void hk__hash_init(struct hk__hash *hash, const struct hk_alloc *alloc);
void hk__hash_fini(struct hk__hash *hash);
/*
 * The entry of that key; where there is none, a new one with value HK_NONE.
 * NULL only where memory ran out. Valid until the next call.
 */
struct hk__hash_entry *hk__hash_get(struct hk__hash *hash, uint64_t key0, uint64_t key1);
/* NULL: there is none. */
struct hk__hash_entry *hk__hash_find(const struct hk__hash *hash, uint64_t key0, uint64_t key1);
/* Others may move: entries that were found are found again. */
void hk__hash_remove(struct hk__hash *hash, struct hk__hash_entry *entry);

/* ---- bits ---- */

/* The largest k with 2^k <= x (x > 0), and the smallest with 2^k >= x. */
static inline uint32_t hk__flog2(uint32_t x)
{
	return 31u - (uint32_t)__builtin_clz(x);
}

static inline uint32_t hk__clog2(uint32_t x)
{
	return x <= 1 ? 0 : hk__flog2(x - 1) + 1;
}

static inline uint32_t hk__min(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline uint32_t hk__max(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* (a + b) mod n for a, b <= n < 2^31. */
static inline uint32_t hk__mod_add(uint32_t a, uint32_t b, uint32_t n)
{
	return (a + b) % n;
}

/* (a - b) mod n for a < n, b <= n. */
static inline uint32_t hk__mod_sub(uint32_t a, uint32_t b, uint32_t n)
{
	return (a + n - b) % n;
}

#endif
