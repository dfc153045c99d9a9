/* SPDX-License-Identifier: Apache-2.0 */
/* wait.c - the slow part of waiting: the clock, the scheduler, sleep. */
#include "exec/wait.h"

#include <sched.h>
#include <time.h>

static enum hk_status wait_left(struct hk__wait *wait, uint64_t *left_out)
{
	uint64_t now = hk__now_ns();

	if (!wait->deadline)
		wait->deadline = hk__deadline_ns(now, wait->timeout_ns);
	if (now >= wait->deadline)
		return HK_ETIMEDOUT;
	*left_out = wait->deadline - now;
	return HK_OK;
}

/* Looks after peers when it is time to; how long to sleep at most. */
static uint64_t wait_watch(const struct hk__wait *wait, uint64_t left)
{
	uint64_t now = wait->deadline - left;

	if (now - wait->net->watched >= wait->watch_ns) {
		wait->net->watched = now;
		hk__net_watch(wait->net);
	}
	return left < wait->watch_ns ? left : wait->watch_ns;
}

/*
 * How often a core is given away between looks at the clock. Where cores are few
 * each may last as long as everybody else's turn: thousands of them are seconds.
 */
#define WAIT_YIELDS 16u

enum hk_status hk__wait_longer(struct hk__wait *wait)
{
	uint64_t left;

	if (wait->idle <= wait->spins + wait->yields) {
		sched_yield();
		if (wait->idle % WAIT_YIELDS)
			return HK_OK;
		enum hk_status late = wait_left(wait, &left);
		if (late == HK_OK && wait->watch_ns)
			(void)wait_watch(wait, left);
		return late;
	}
	enum hk_status status = wait_left(wait, &left);
	if (status != HK_OK)
		return status;
	if (wait->sleeps)
		wait->sleeps(wait->sleeps_ctx, wait->deadline - left);
	if (wait->watch_ns)
		left = wait_watch(wait, left);
	return hk__net_wait(wait->net, left);
}

/* How many pieces between looks at the clock: a peer that trickles is late too. */
#define WAIT_PIECES 16u

enum hk_status hk__wait_piece(struct hk__wait *wait)
{
	uint64_t left;

	wait->seen = wait->net->moved;
	wait->idle = 0;
	return ++wait->pieces % WAIT_PIECES ? HK_OK : wait_left(wait, &left);
}
