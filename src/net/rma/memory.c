/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - one-sided operations by loads and stores, and what they mean for a
 * word. The target of messages applies atomics by the same functions, so all of
 * them are atomic to each other.
 */
#include "net/rma/rma.h"

/* ---- words ---- */

#define WORD_UPDATE(type) \
	static uint64_t update_##type(type *at, const struct hk_rma_op *op) \
	{ \
		type value = (type)op->value, expected = (type)op->compare; \
\
		switch (op->amo) { \
		case HK_AMO_SET: \
			if (!op->old_out) { \
				__atomic_store_n(at, value, __ATOMIC_RELEASE); \
				return 0; \
			} \
			return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST); \
		case HK_AMO_ADD: \
			return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST); \
		case HK_AMO_AND: \
			return __atomic_fetch_and(at, value, __ATOMIC_SEQ_CST); \
		case HK_AMO_OR: \
			return __atomic_fetch_or(at, value, __ATOMIC_SEQ_CST); \
		case HK_AMO_XOR: \
			return __atomic_fetch_xor(at, value, __ATOMIC_SEQ_CST); \
		case HK_AMO_CAS: \
			(void)__atomic_compare_exchange_n(at, &expected, value, false, \
							  __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
			return expected; \
		default: \
			return __atomic_load_n(at, __ATOMIC_SEQ_CST); \
		} \
	}
WORD_UPDATE(uint32_t)
WORD_UPDATE(uint64_t)
#undef WORD_UPDATE

uint64_t hk__word_update(void *at, const struct hk_rma_op *op)
{
	return op->width == 4 ? update_uint32_t(at, op) : update_uint64_t(at, op);
}

static uint64_t word_load(const struct hk_word *word)
{
	switch (word->width) {
	case 1:
		return __atomic_load_n((const uint8_t *)word->at, __ATOMIC_ACQUIRE);
	case 2:
		return __atomic_load_n((const uint16_t *)word->at, __ATOMIC_ACQUIRE);
	case 4:
		return __atomic_load_n((const uint32_t *)word->at, __ATOMIC_ACQUIRE);
	default:
		return __atomic_load_n((const uint64_t *)word->at, __ATOMIC_ACQUIRE);
	}
}

/* Of the word's width, in order: a signed one is moved up by half its range. */
static uint64_t word_rank(const struct hk_word *word, uint64_t x)
{
	uint64_t mask = word->width < 8 ? (UINT64_C(1) << 8 * word->width) - 1 : UINT64_MAX;

	return word->is_signed ? (x & mask) ^ (mask / 2 + 1) : x & mask;
}

bool hk__word_compares(const struct hk_word *word, uint64_t *seen_out)
{
	uint64_t seen = word_load(word);
	uint64_t a = word_rank(word, seen), b = word_rank(word, word->value);

	*seen_out = seen;
	switch (word->cmp) {
	case HK_CMP_EQ:
		return a == b;
	case HK_CMP_NE:
		return a != b;
	case HK_CMP_GT:
		return a > b;
	case HK_CMP_GE:
		return a >= b;
	case HK_CMP_LT:
		return a < b;
	default:
		return a <= b;
	}
}

/* ---- the table ---- */

static enum hk_status memory_start(struct hk_remote *remote, struct hk_queue *queue,
				   struct hk_rma_op *op)
{
	char *at = remote->at + op->offset;

	(void)queue;
	if (op->what == HK_RMA_PUT) {
		hk__bytes_store(at, op->src, op->len);
	} else if (op->what == HK_RMA_GET) {
		hk__bytes_load(op->dst, at, op->len);
	} else {
		uint64_t old = hk__word_update(at, op);

		if (op->old_out)
			*op->old_out = old;
	}
	if (op->done)
		*op->done = true;
	return HK_OK;
}

const struct hk_remote_ops hk__remote_memory = {
	.size = sizeof(struct hk_remote_ops),
	.name = "memory",
	.reach = HK_REACH_MEMORY,
	.widths = 4 + 8,
	.start = memory_start,
};
