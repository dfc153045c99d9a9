/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap_ops.h - what the tests of heaps do in kernels, by hocket/device_ops.h: on a GPU by
 * heap_ops.cu, on the stand-in driver by the host, where a block is a thread.
 */
#ifndef HK_TEST_GPU_HEAP_OPS_H
#define HK_TEST_GPU_HEAP_OPS_H

#include <hocket/device_ops.h>

enum heap_what {
	HEAP_RING,		/* puts with signals to the right, gets from the left */
	HEAP_BARRIER,
	HEAP_ATOMICS,		/* all ranks on words of rank 0 */
	HEAP_STUCK		/* waits for what never comes */
};
enum heap_scope {
	HEAP_THREAD,
	HEAP_WARP,
	HEAP_BLOCK,
	HEAP_SCOPES
};

/* Of each rank; blocks have parts of their own of what offsets name. */
struct heap_call {
	struct hk_device_view view;
	uint64_t data;		/* offset of HEAP_PARTS * room bytes for each block */
	uint64_t room;
	uint64_t words;		/* offset of HEAP_WORDS signals for each block */
	uint64_t errors;	/* offset of a word */
	uint64_t bytes;		/* of a message */
	uint32_t skew;		/* by which it is off a boundary */
	uint32_t rounds;
	uint32_t what;
	uint32_t scope;
};
#define HEAP_PARTS 3u		/* out, in, back */
#define HEAP_WORDS 8u


/* One of those who act, and how many they are. */
struct heap_self {
	const struct heap_call *call;
	uint32_t block, id, of;
	uint64_t out, in, back, words;
	uint32_t left, right;
};

HK_DEV void heap_sync(const struct heap_self *self)
{
	if (self->call->scope == HEAP_BLOCK)
		hk__dev_sync_block();
	else if (self->call->scope == HEAP_WARP)
		hk__dev_sync_warp();
}

HK_DEV void heap_error(const struct heap_self *self, uint64_t count)
{
	const struct hk_device_view *view = &self->call->view;

	if (count)
		(void)hk_dev_amo_add(view, view->rank, self->call->errors, count);
}

HK_DEV unsigned char heap_byte(uint32_t rank, uint32_t block, uint32_t round, uint64_t i)
{
	return (unsigned char)(rank * 31 + block * 17 + round * 7 + i + (i >> 8));
}

HK_DEV void heap_put_signal(const struct heap_self *self, struct hk_dev_signal signal)
{
	const struct heap_call *call = self->call;
	const struct hk_device_view *view = &call->view;
	const char *from = view->own + self->out + call->skew;
	uint64_t to = self->in + call->skew;

	if (call->scope == HEAP_BLOCK)
		hk_dev_put_signal_block(view, self->right, to, from, call->bytes, signal);
	else if (call->scope == HEAP_WARP)
		hk_dev_put_signal_warp(view, self->right, to, from, call->bytes, signal);
	else
		hk_dev_put_signal(view, self->right, to, from, call->bytes, signal);
}

HK_DEV void heap_get(const struct heap_self *self)
{
	const struct heap_call *call = self->call;
	const struct hk_device_view *view = &call->view;
	char *to = view->own + self->back;

	if (call->scope == HEAP_BLOCK)
		hk_dev_get_block(view, self->left, self->out + call->skew, to, call->bytes);
	else if (call->scope == HEAP_WARP)
		hk_dev_get_warp(view, self->left, self->out + call->skew, to, call->bytes);
	else
		hk_dev_get(view, self->left, self->out + call->skew, to, call->bytes);
}

HK_DEV bool heap_wait(const struct heap_self *self, uint64_t word, enum hk_cmp cmp, uint64_t value)
{
	const struct hk_device_view *view = &self->call->view;
	uint64_t at = self->words + word * sizeof(uint64_t);

	if (self->call->scope == HEAP_BLOCK)
		return hk_dev_wait_until_block(view, at, cmp, value);
	if (self->call->scope == HEAP_WARP)
		return hk_dev_wait_until_warp(view, at, cmp, value);
	return hk_dev_wait_until(view, at, cmp, value);
}

HK_DEV bool heap_barrier(const struct heap_self *self)
{
	const struct hk_device_view *view = &self->call->view;

	if (self->call->scope == HEAP_BLOCK)
		return hk_dev_barrier_block(view, self->block);
	if (self->call->scope == HEAP_WARP)
		return hk_dev_barrier_warp(view, self->block);
	return hk_dev_barrier(view, self->block);
}

/* Whether what came from the left is so: by a put, and by a get. */
HK_DEV void heap_compare(const struct heap_self *self, uint32_t round)
{
	const struct heap_call *call = self->call;
	const volatile char *in = call->view.own + self->in + call->skew;
	const volatile char *back = call->view.own + self->back;
	uint64_t wrong = 0;

	for (uint64_t i = self->id; i < call->bytes; i += self->of) {
		unsigned char wanted = heap_byte(self->left, self->block, round, i);

		wrong += (unsigned char)in[i] != wanted;
		wrong += (unsigned char)back[i] != wanted;
	}
	heap_error(self, wrong);
}

HK_DEV void heap_ring(const struct heap_self *self)
{
	const struct heap_call *call = self->call;
	const struct hk_device_view *view = &call->view;
	char *out = view->own + self->out + call->skew;

	for (uint32_t round = 1; round <= call->rounds; round++) {
		struct hk_dev_signal come = { self->words, 1, HK_AMO_ADD };
		struct hk_dev_signal seen = { self->words + 8, round, HK_AMO_SET };

		for (uint64_t i = self->id; i < call->bytes; i += self->of)
			out[i] = (char)heap_byte(view->rank, self->block, round, i);
		heap_sync(self);
		heap_put_signal(self, come);
		if (!heap_wait(self, 0, HK_CMP_GE, round))
			return heap_error(self, 1);
		heap_get(self);
		heap_compare(self, round);
		heap_sync(self);
		if (self->id == 0)
			hk_dev_signal(view, self->left, seen);
		if (!heap_wait(self, 1, HK_CMP_EQ, round))
			return heap_error(self, 1);
	}
}

HK_DEV void heap_barriers(const struct heap_self *self)
{
	const struct heap_call *call = self->call;
	const struct hk_device_view *view = &call->view;

	for (uint32_t round = 1; round <= call->rounds; round++) {
		for (uint32_t r = self->id; r < view->n; r += self->of) {
			*(volatile uint64_t *)hk_dev_ptr(view, r, self->in + view->rank * 8) = round;
		}
		if (!heap_barrier(self))
			return heap_error(self, 1);
		for (uint32_t r = self->id; r < view->n; r += self->of)
			heap_error(self, *(volatile uint64_t *)hk_dev_ptr(view, view->rank,
									   self->in + r * 8) !=
						 round);
		if (!heap_barrier(self))
			return heap_error(self, 1);
	}
}

HK_DEV void heap_atomics(const struct heap_self *self)
{
	const struct heap_call *call = self->call;
	const struct hk_device_view *view = &call->view;
	uint64_t at = call->words; /* all blocks use those of the first */

	if (self->id)
		return;
	for (uint32_t round = 0; round < call->rounds; round++) {
		uint64_t seen = hk_dev_amo_fetch(view, 0, at + 24), before;

		(void)hk_dev_amo_add(view, 0, at, 3);
		(void)hk_dev_amo32_add(view, 0, at + 8, 5);
		(void)hk_dev_amo_xor(view, 0, at + 16, (uint64_t)1 << view->rank);
		while ((before = hk_dev_amo_cas(view, 0, at + 24, seen, seen + 1)) != seen)
			seen = before;
	}
	(void)hk_dev_amo_or(view, 0, at + 32, (uint64_t)1 << (8 * (view->rank % 8)));
	(void)hk_dev_amo_and(view, 0, at + 40, ~((uint64_t)1 << view->rank));
	heap_error(self, hk_dev_amo_set(view, view->rank, self->words + 48, 9) != 0);
	heap_error(self, hk_dev_amo32_cas(view, view->rank, self->words + 48, 9, 11) != 9);
	heap_error(self, hk_dev_amo32_fetch(view, view->rank, self->words + 48) != 11);
}

HK_DEV void heap_run(const struct heap_call *call, uint32_t block, uint32_t id, uint32_t of)
{
	const struct hk_device_view *view = &call->view;
	uint64_t parts = call->data + block * HEAP_PARTS * call->room;
	struct heap_self self = { call,
				  block,
				  id,
				  of,
				  parts,
				  parts + call->room,
				  parts + 2 * call->room,
				  call->words + block * HEAP_WORDS * sizeof(uint64_t),
				  (view->rank + view->n - 1) % view->n,
				  (view->rank + 1) % view->n };

	if (call->what == HEAP_RING)
		heap_ring(&self);
	else if (call->what == HEAP_BARRIER)
		heap_barriers(&self);
	else if (call->what == HEAP_ATOMICS)
		heap_atomics(&self);
	else
		heap_error(&self, heap_wait(&self, 0, HK_CMP_NE, 0));
}

#endif
