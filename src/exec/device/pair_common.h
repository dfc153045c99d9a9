/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pair_common.h - what small messages (pair_small.h) and long ones (pair_run.h) have in
 * common: where things lie, who is told what, and how a launch fails.
 */
#ifndef HK_EXEC_DEVICE_PAIR_COMMON_H
#define HK_EXEC_DEVICE_PAIR_COMMON_H

#include "exec/device/interp.h"
#include "exec/device/pair.h"

struct small_block;
struct pair_block;

/* Which thread this is, of which block. */
struct pair_thread {
	struct pair_block *block;	/* NULL: small messages alone */
	struct small_block *small;
	uint32_t number, id, nthreads;
};

/* What a launch is about. */
struct pair_lists {
	const struct hk__pair_call *call;
	const struct hk__pair_op *ops;
	const struct hk__pair_index *index;
};

/* ---- the machine ---- */

#ifdef __CUDACC__
/* What was written before may be on another device. */
DEV uint32_t pair_add(uint32_t *word, bool far)
{
	if (far)
		__threadfence_system();
	else
		__threadfence();
	uint32_t before = atomicAdd(word, 1u);
	__threadfence();
	return before;
}

/* From 0 on again after `most`; orders nothing. */
DEV uint32_t pair_cycle(uint32_t *word, uint32_t most)
{
	return atomicInc(word, most);
}

DEV uint32_t pair_count(const uint32_t *word)
{
	uint32_t count;

	asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(count) : "l"(word) : "memory");
	return count;
}

DEV void pair_store(uint32_t *word, uint32_t value)
{
	*(volatile uint32_t *)word = value;
}

/* Others on the multiprocessor have more to do. */
DEV void pair_rest(void)
{
	__nanosleep(64);
}
#else
DEV uint32_t pair_add(uint32_t *word, bool far)
{
	(void)far;
	return __atomic_fetch_add(word, 1, __ATOMIC_ACQ_REL);
}

DEV uint32_t pair_cycle(uint32_t *word, uint32_t most)
{
	uint32_t before = __atomic_fetch_add(word, 1, __ATOMIC_ACQ_REL);

	if (before == most)
		__atomic_store_n(word, 0, __ATOMIC_RELAXED);
	return before;
}

DEV uint32_t pair_count(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

DEV void pair_store(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

DEV void pair_rest(void)
{
	flat_pause();
}
#endif

/* ---- places ---- */

/* What a rank keeps of a peer. */
DEV struct hk__pair_peer *pair_of(const struct hk__pair_call *call, uint32_t rank, uint32_t peer)
{
	struct hk__pair_head *head = (struct hk__pair_head *)(void *)call->segments[rank];

	return (struct hk__pair_peer *)(void *)(head + 1) + peer;
}

DEV uint32_t pair_home(uint64_t message)
{
	return (uint32_t)(message % HK__PAIR_CHANNELS);
}

/* Of mail, and of counts of parts. */
DEV uint32_t pair_turn(uint64_t message)
{
	return (uint32_t)(message / HK__PAIR_CHANNELS % HK__PAIR_SLOTS);
}

DEV uint64_t pair_what(const struct hk__pair_op *op)
{
	return (uint64_t)op->kind << 32 | op->tag;
}

DEV bool pair_is_small(const struct hk__pair_call *call, const struct hk__pair_op *op)
{
	return op->bytes <= call->small_bytes;
}

/* ---- words that carry their flag ---- */

#define PAIR_FLAG UINT32_C(0x80000000)

/* Of a number, whose low bits come round: never 0. */
DEV uint32_t pair_flag(uint64_t number)
{
	return (uint32_t)number | PAIR_FLAG;
}

/* To a sender: where a message is wanted. */
DEV void pair_write_mail(const struct hk__pair_call *call, const struct hk__pair_op *op,
			 uint64_t message)
{
	struct hk__pair_mail *mail = &pair_of(call, op->peer, call->rank)
					      ->mail[pair_home(message)][pair_turn(message)];

	mail->at = op->at;
	mail->bytes = op->bytes;
	mail->what = pair_what(op);
	flat_release(&mail->flag, message + 1, call->mode & HK__PAIR_FAR);
}

/* ---- giving up ---- */

enum pair_fault {
	PAIR_LATE,
	PAIR_DIFFERS
};

struct pair_other {
	uint32_t peer;
	const struct hk__pair_op *op;
	uint64_t bytes, what;	/* the peer's */
};

DEV_APART void pair_fail(const struct hk__pair_call *call, uint32_t sends, enum pair_fault fault,
			 bool aborted, struct pair_other other)
{
	struct hk__pair_head *head = (struct hk__pair_head *)(void *)call->segments[call->rank];
	struct hk__flat_report *report = call->report;

	pair_store(&head->broken, 1);
	if (flat_failed(report) || !flat_first(&head->reported))
		return;
	report->aborted = aborted;
	report->peer = other.peer;
	report->pair = sends ? HK__FLAT_SEND : HK__FLAT_RECV;
	report->differs = fault == PAIR_DIFFERS;
	report->bytes[0] = other.op->bytes;
	report->bytes[1] = other.bytes;
	report->whats[0] = pair_what(other.op);
	report->whats[1] = other.what;
	flat_publish(&report->failed);
}

#endif
