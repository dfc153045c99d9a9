/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.h - ranks of one thread, in virtual time: what happens, and when, follows
 * from a seed alone.
 *
 * Every rank is a fiber that runs the code of any rank, on a net that keeps the
 * contract of net.h. Who waits hands over to a scheduler, which moves the clock
 * (hk__now_ns) to the next thing that happens. Messages, notes and freed slots take
 * a time from the seed to arrive; who is next of those that could run is drawn, too.
 *
 * Ranks of one host are joined as by shared memory: what was posted stays, and who
 * is gone is found by looking. Ranks of different hosts are joined as by TCP: a
 * connection breaks with what it had not delivered, both ends notice, channels of
 * before give HK_EPEER, and those opened later are of the next connection.
 *
 * What can be done to ranks: killed (when it next touches its net for the k-th time,
 * or at a time), stopped for a while, slowed; and to hosts: cut off from the others,
 * or a connection dropped.
 */
#ifndef HK_NET_SIM_SIM_H
#define HK_NET_SIM_SIM_H

#include "net/net.h"

struct hk__simnet;

#define HK__SIMNET_RANKS_MAX 64u

struct hk__simnet_spec {
	uint32_t n;
	uint64_t seed;
	const uint32_t *hosts;		/* by rank; copied; NULL: all of one */
	uint64_t delay_ns;		/* up to that takes a message; 0: 2 us */
	uint64_t look_ns;		/* a poll takes so long; 0: 100 ns */
	uint64_t silence_ns;		/* until who is cut off is lost; 0: 4 s */
	uint64_t verify_ns;		/* until a lost one is known to be dead, at most; 0: 1 ms */
	bool met;			/* connected as after a first recursive doubling */
	const struct hk_alloc *alloc;	/* NULL: the default */
};

/* One at a time: it is what the clock shows. */
enum hk_status hk__simnet_create(const struct hk__simnet_spec *spec,
				 struct hk__simnet **simnet_out);
void hk__simnet_destroy(struct hk__simnet *simnet);	/* accepts NULL */

/* The end of a rank. It lives as long as the rank does, with memory of `alloc`. */
enum hk_status hk__simnet_open(struct hk__simnet *simnet, uint32_t rank,
			       const struct hk_alloc *alloc, struct hk_net **net_out);

/*
 * Runs main(ctx, rank) for every rank, until each has returned or was killed.
 * HK_ETIMEDOUT: some had not after limit_ns of virtual time; what they held stays.
 */
enum hk_status hk__simnet_run(struct hk__simnet *simnet, void (*main)(void *ctx, uint32_t rank),
			      void *ctx, uint64_t limit_ns);

/* ---- faults; before or during a run ---- */

/* At its act number k from now on, before that act; 0: the next. */
void hk__simnet_kill_at_act(struct hk__simnet *simnet, uint32_t rank, uint64_t k);

enum hk__simnet_what {
	HK__SIMNET_KILL,		/* rank */
	HK__SIMNET_STOP,		/* rank, until `until` */
	HK__SIMNET_SLOW,		/* rank: each look takes `look_ns`, until `until` */
	HK__SIMNET_CUT,			/* hosts of mask from all others, until `until` */
	HK__SIMNET_DROP			/* the connection of rank and peer */
};

struct hk__simnet_fault {
	enum hk__simnet_what what;
	uint64_t at;			/* virtual time, from the beginning */
	uint64_t until;
	uint32_t rank, peer;
	uint64_t look_ns;
	uint64_t mask;			/* bit h: host h */
};
enum hk_status hk__simnet_fault(struct hk__simnet *simnet, const struct hk__simnet_fault *fault);

/* ---- questions ---- */

enum hk__simnet_state {
	HK__SIMNET_RUNS,
	HK__SIMNET_KILLED,
	HK__SIMNET_OVER			/* its main has returned */
};
enum hk__simnet_state hk__simnet_state(const struct hk__simnet *simnet, uint32_t rank);
uint64_t hk__simnet_now(const struct hk__simnet *simnet);
/* Things a rank did that others can see: messages, channels, notes, sleep. */
uint64_t hk__simnet_acts(const struct hk__simnet *simnet, uint32_t rank);
/* Of everything that has happened, in order. */
uint64_t hk__simnet_hash(const struct hk__simnet *simnet);
/* Moves on by itself in time, as a rank that computes. */
void hk__simnet_sleep(struct hk__simnet *simnet, uint64_t ns);

#endif
