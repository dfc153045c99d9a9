/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait.h - how to wait: look again a few times, then give the core away, then
 * sleep. With more ranks than cores the first two are short: whoever spins
 * keeps from running the one it waits for.
 */
#ifndef HK_EXEC_WAIT_H
#define HK_EXEC_WAIT_H

#include "net/net.h"

struct hk__wait {
	struct hk_net *net;
	uint32_t spins;			/* looks before the core is given away */
	uint32_t yields;		/* and before sleep */
	uint64_t timeout_ns;
	uint64_t watch_ns;		/* between looks after peers; 0: none */
	void (*sleeps)(void *ctx, uint64_t now); /* called before each sleep; NULL: nothing is */
	void *sleeps_ctx;
	uint32_t idle;			/* looks that found nothing, in a row */
	uint64_t deadline;		/* 0: no clock was read yet */
	uint64_t seen;			/* net->moved at the last look */
	uint32_t pieces;		/* looks that found parts of messages alone */
};

/* Far away where somebody means for ever. */
static inline uint64_t hk__deadline_ns(uint64_t now, uint64_t timeout_ns)
{
	return timeout_ns < UINT64_MAX - now ? now + timeout_ns : UINT64_MAX;
}

/* After a look that found nothing: waits a little. HK_ETIMEDOUT when it is time. */
enum hk_status hk__wait_longer(struct hk__wait *wait);

/* After a look that found part of a message: no step further, but no idleness. */
enum hk_status hk__wait_piece(struct hk__wait *wait);

/* After every look. */
static inline enum hk_status hk__wait_step(struct hk__wait *wait, bool moved)
{
	if (moved) {
		wait->idle = 0;
		return HK_OK;
	}
	if (wait->seen != wait->net->moved)
		return hk__wait_piece(wait);
	if (++wait->idle <= wait->spins) {
#if defined(__x86_64__)
		__builtin_ia32_pause();
#endif
		return HK_OK;
	}
	return hk__wait_longer(wait);
}

#endif
