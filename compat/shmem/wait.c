/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait.c - waits and tests: until words of this PE compare so. Words have the width and the
 * sign of their type. OpenSHMEM waits for ever; here a wait ends when a PE is lost, and the
 * job with it.
 */
#include "sma.h"

#include <sched.h>

/* A wait for any of several words sleeps on one of them, and looks at all so often. */
#define LOOK_NS UINT64_C(200000)
#define LOOKS_BEFORE_SLEEP 64

static bool compares_unsigned(uint64_t a, int cmp, uint64_t b)
{
	switch (cmp) {
	case SHMEM_CMP_EQ:
		return a == b;
	case SHMEM_CMP_NE:
		return a != b;
	case SHMEM_CMP_GT:
		return a > b;
	case SHMEM_CMP_GE:
		return a >= b;
	case SHMEM_CMP_LT:
		return a < b;
	default:
		return a <= b;
	}
}

static bool compares(uint64_t a, int cmp, uint64_t b, bool is_signed)
{
	/* Moves the order of signed numbers onto that of unsigned ones. */
	const uint64_t shift = is_signed ? UINT64_C(1) << 63 : 0;

	return compares_unsigned(a ^ shift, cmp, b ^ shift);
}

/* The word as it is now, widened as its type is. Pairs with the release of who wrote it. */
static uint64_t load(const struct hk__sma_word *word)
{
	switch (word->width) {
	case 2: {
		uint16_t value = __atomic_load_n((const uint16_t *)word->at, __ATOMIC_ACQUIRE);

		return word->is_signed ? (uint64_t)(int16_t)value : value;
	}
	case 4: {
		uint32_t value = __atomic_load_n((const uint32_t *)word->at, __ATOMIC_ACQUIRE);

		return word->is_signed ? (uint64_t)(int32_t)value : value;
	}
	default:
		return __atomic_load_n((const uint64_t *)word->at, __ATOMIC_ACQUIRE);
	}
}

static void check(const struct hk__sma_word *word, const char *call)
{
	if (word->cmp < SHMEM_CMP_EQ || word->cmp > SHMEM_CMP_LE)
		hk__sma_die(call, "%d is none of SHMEM_CMP_EQ, ..., SHMEM_CMP_LE", word->cmp);
	hk__sma_must_run(call);
	if (!hk__sma.check)
		return;
	if (!hk__sma_space_of(word->at, word->width))
		hk__sma_die(call, "%p is no symmetric address", word->at);
	if (hk__sma_space_of(word->at, word->width) == &hk__sma.heap)
		hk__sma_check_block(word->at, word->width, call);
}

static struct hk_until until_of(const struct hk__sma_word *word)
{
	return (struct hk_until){
		.size = sizeof(struct hk_until),
		.at = word->at,
		.width = word->width,
		.is_signed = word->is_signed,
		.cmp = (enum hk_cmp)word->cmp,
		.value = word->value,
		.rank = HK_NONE,
	};
}

static bool holds(const struct hk__sma_word *word)
{
	return compares(load(word), word->cmp, word->value, word->is_signed);
}

void hk__sma_wait(const struct hk__sma_word *word, const char *call)
{
	struct hk_until until = until_of(word);

	check(word, call);
	while (!holds(word)) {
		enum hk_status status = hk_wait_until(hk__sma.group, &until, NULL);

		if (status != HK_OK && status != HK_ETIMEDOUT)
			hk__sma_fail(call, hk__sma.group, status);
	}
}

static bool test(const struct hk__sma_word *word, const char *call)
{
	struct hk_until until = until_of(word);

	check(word, call);
	return holds(word) || hk_test_until(hk__sma.group, &until, NULL);
}

/* ---- sets of words ---- */

struct set {
	struct hk__sma_word word; /* the first; the others follow it */
	size_t n;
	const int *status;  /* nonzero: not of the set; NULL: all are */
	const void *values; /* one for each; NULL: word.value for all */
};

static bool in_set(const struct set *set, size_t i)
{
	return !set->status || set->status[i] == 0;
}

static struct hk__sma_word word_of(const struct set *set, size_t i)
{
	struct hk__sma_word word = set->word;

	word.at = (const char *)word.at + i * word.width;
	if (set->values) {
		struct hk__sma_word value = word;

		value.at = (const char *)set->values + i * word.width;
		word.value = load(&value);
	}
	return word;
}

/* One that is in the set; SIZE_MAX: it is empty. */
static size_t member(const struct set *set, size_t from)
{
	for (size_t k = 0; k < set->n; k++) {
		if (in_set(set, (from + k) % set->n))
			return (from + k) % set->n;
	}
	return SIZE_MAX;
}

static size_t look_some(const struct set *set, size_t *indices)
{
	size_t found = 0;

	for (size_t i = 0; i < set->n; i++) {
		struct hk__sma_word word;

		if (!in_set(set, i))
			continue;
		word = word_of(set, i);
		if (holds(&word))
			indices[found++] = i;
	}
	return found;
}

/* Begins elsewhere every time, so that every word that holds is found at some time. */
static size_t look_any(const struct set *set)
{
	static size_t turn;
	size_t from = __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED);

	for (size_t k = 0; k < set->n; k++) {
		size_t i = (from + k) % set->n;
		struct hk__sma_word word;

		if (!in_set(set, i))
			continue;
		word = word_of(set, i);
		if (holds(&word))
			return i;
	}
	return SIZE_MAX;
}

/* Nothing holds: lets others run, and the group move on. */
static void pause_for(const struct set *set, size_t round, const char *call)
{
	struct hk__sma_word word = word_of(set, member(set, round));
	struct hk_until until = until_of(&word);
	enum hk_status status;

	if (round < LOOKS_BEFORE_SLEEP) {
		(void)hk_test_until(hk__sma.group, &until, NULL);
		sched_yield();
		return;
	}
	until.timeout_ns = LOOK_NS;
	status = hk_wait_until(hk__sma.group, &until, NULL);
	if (status != HK_OK && status != HK_ETIMEDOUT)
		hk__sma_fail(call, hk__sma.group, status);
}

static bool empty(const struct set *set, const char *call)
{
	if (set->n == 0 || member(set, 0) == SIZE_MAX)
		return true;
	check(&set->word, call);
	return false;
}

static void wait_all(const struct set *set, const char *call)
{
	for (size_t i = 0; i < set->n; i++) {
		if (in_set(set, i)) {
			struct hk__sma_word word = word_of(set, i);

			hk__sma_wait(&word, call);
		}
	}
}

static size_t wait_any(const struct set *set, const char *call)
{
	if (empty(set, call))
		return SIZE_MAX;
	for (size_t round = 0;; round++) {
		size_t i = look_any(set);

		if (i != SIZE_MAX)
			return i;
		pause_for(set, round, call);
	}
}

static size_t wait_some(const struct set *set, size_t *indices, const char *call)
{
	if (empty(set, call))
		return 0;
	for (size_t round = 0;; round++) {
		size_t found = look_some(set, indices);

		if (found > 0)
			return found;
		pause_for(set, round, call);
	}
}

/* One step of progress, for a test that found nothing. */
static void step(const struct set *set)
{
	struct hk__sma_word word = word_of(set, member(set, 0));
	struct hk_until until = until_of(&word);

	(void)hk_test_until(hk__sma.group, &until, NULL);
}

static int test_all(const struct set *set, const char *call)
{
	if (empty(set, call))
		return 1;
	for (size_t i = 0; i < set->n; i++) {
		struct hk__sma_word word;

		if (!in_set(set, i))
			continue;
		word = word_of(set, i);
		if (!test(&word, call))
			return 0;
	}
	return 1;
}

static size_t test_any(const struct set *set, const char *call)
{
	size_t i;

	if (empty(set, call))
		return SIZE_MAX;
	i = look_any(set);
	if (i == SIZE_MAX)
		step(set);
	return i;
}

static size_t test_some(const struct set *set, size_t *indices, const char *call)
{
	size_t found;

	if (empty(set, call))
		return 0;
	found = look_some(set, indices);
	if (found == 0)
		step(set);
	return found;
}

/* ---- the functions ---- */

#define WORD(TYPE, POINTER, VALUE) \
	{ \
		.at = (POINTER), .width = sizeof(TYPE), .is_signed = (TYPE)-1 < (TYPE)1, \
		.cmp = cmp, .value = (uint64_t)(VALUE) \
	}
#define SET(TYPE, VALUE, VALUES) \
	&(struct set) \
	{ \
		WORD(TYPE, ivars, VALUE), nelems, status, VALUES \
	}

#define ONE(NAME, TYPE) \
	FN(void, shmem_##NAME##_wait_until, (TYPE * ivar, int cmp, TYPE cmp_value)) \
	{ \
		hk__sma_wait(&(struct hk__sma_word)WORD(TYPE, ivar, cmp_value), \
			     "shmem_" #NAME "_wait_until"); \
	} \
	FN(int, shmem_##NAME##_test, (TYPE * ivar, int cmp, TYPE cmp_value)) \
	{ \
		return test(&(struct hk__sma_word)WORD(TYPE, ivar, cmp_value), \
			    "shmem_" #NAME "_test"); \
	}
#define ALL(RESULT, NAME, TYPE, VERB, DO, RETURN) \
	FN(RESULT, shmem_##NAME##_##VERB, \
	   (TYPE * ivars, size_t nelems, const int *status, int cmp, TYPE cmp_value)) \
	{ \
		RETURN DO(SET(TYPE, cmp_value, NULL), "shmem_" #NAME "_" #VERB); \
	} \
	FN(RESULT, shmem_##NAME##_##VERB##_vector, \
	   (TYPE * ivars, size_t nelems, const int *status, int cmp, const TYPE *cmp_values)) \
	{ \
		RETURN DO(SET(TYPE, 0, cmp_values), "shmem_" #NAME "_" #VERB "_vector"); \
	}
#define SOME(NAME, TYPE, VERB, DO) \
	FN(size_t, shmem_##NAME##_##VERB, \
	   (TYPE * ivars, size_t nelems, size_t * indices, const int *status, int cmp, \
	    TYPE cmp_value)) \
	{ \
		return DO(SET(TYPE, cmp_value, NULL), indices, "shmem_" #NAME "_" #VERB); \
	} \
	FN(size_t, shmem_##NAME##_##VERB##_vector, \
	   (TYPE * ivars, size_t nelems, size_t * indices, const int *status, int cmp, \
	    const TYPE *cmp_values)) \
	{ \
		return DO(SET(TYPE, 0, cmp_values), indices, "shmem_" #NAME "_" #VERB "_vector"); \
	}
#define WAIT_T(F, NAME, TYPE) \
	ONE(NAME, TYPE) \
	ALL(void, NAME, TYPE, wait_until_all, wait_all, ) \
	ALL(size_t, NAME, TYPE, wait_until_any, wait_any, return ) \
	SOME(NAME, TYPE, wait_until_some, wait_some) \
	ALL(int, NAME, TYPE, test_all, test_all, return ) \
	ALL(size_t, NAME, TYPE, test_any, test_any, return ) \
	SOME(NAME, TYPE, test_some, test_some)
SHMEMX_AMO_TYPES(WAIT_T, )

FN(uint64_t, shmem_signal_wait_until, (uint64_t * sig_addr, int cmp, uint64_t cmp_value))
{
	const struct hk__sma_word word = WORD(uint64_t, sig_addr, cmp_value);
	struct hk_until until = until_of(&word);
	uint64_t seen;

	check(&word, "shmem_signal_wait_until");
	/* The value that was seen to hold, as the word may change at once. */
	for (;;) {
		enum hk_status status;

		seen = load(&word);
		if (compares(seen, cmp, cmp_value, false))
			return seen;
		status = hk_wait_until(hk__sma.group, &until, &seen);
		if (status == HK_OK)
			return seen;
		if (status != HK_ETIMEDOUT)
			hk__sma_fail("shmem_signal_wait_until", hk__sma.group, status);
	}
}

/* ---- deprecated ---- */

ONE(short, short)
ONE(ushort, unsigned short)

FN(void, shmem_wait_until, (long *ivar, int cmp, long cmp_value))
{
	hk__sma_wait(&(struct hk__sma_word)WORD(long, ivar, cmp_value), "shmem_wait_until");
}

/* Until it differs. */
#define WAIT(NAME, TYPE) \
	FN(void, NAME, (TYPE * ivar, TYPE cmp_value)) \
	{ \
		const int cmp = SHMEM_CMP_NE; \
\
		hk__sma_wait(&(struct hk__sma_word)WORD(TYPE, ivar, cmp_value), #NAME); \
	}
WAIT(shmem_wait, long)
WAIT(shmem_short_wait, short)
WAIT(shmem_int_wait, int)
WAIT(shmem_long_wait, long)
WAIT(shmem_longlong_wait, long long)
