/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health.h - who of a world is still there, and which groups were given up.
 *
 * Nets say who is gone as soon as they find out; ranks tell each other, each
 * once, to all they are connected with, so everybody learns it from whoever saw
 * it first. What is heard while a net is being polled is only noted; progress
 * applies it: a group with a rank that is gone has failed, at once, on every
 * rank; so has one that a rank has given up. Groups without it go on.
 *
 * A rank that left in good order fails nothing by itself: only who still waits
 * for something from it.
 */
#ifndef HK_GROUP_FAILURE_HEALTH_H
#define HK_GROUP_FAILURE_HEALTH_H

#include "net/net.h"

struct hk_group;
struct hk__world;

enum hk__peer {
	HK__PEER_OK,
	HK__PEER_LEFT,			/* closed its end, as one does */
	HK__PEER_LOST,			/* out of reach; it may live */
	HK__PEER_OUT,			/* it may live; the others have agreed to go on */
	HK__PEER_DEAD			/* its process has ended */
};

/* A rank of the world that is LOST or DEAD. */
struct hk__gone {
	uint32_t rank;
	uint32_t by;			/* who saw it */
	uint64_t since;
	char why[120];
};

/* Groups of one context share no rank, so the first rank of one tells them apart. */
struct hk__group_id {
	uint64_t context;
	uint32_t first;			/* the world's rank of its rank 0 */
};

struct hk__revoked {
	struct hk__group_id id;
	uint32_t by;
	enum hk_status status;		/* why */
	uint64_t number;		/* of the operation */
	uint32_t suspect;		/* of a deadline that was missed: rank of the world */
};

/* A decision of an agreement that all have accepted (consent.h). */
struct hk__decided {
	struct hk__group_id id;
	uint32_t number;
	uint32_t ballot;
};

struct hk__health {
	const struct hk_alloc *alloc;
	uint32_t n;
	uint8_t *states;		/* enum hk__peer, by rank of the world */
	uint64_t *eras;			/* by rank: the clock of the context of the last group that
					   all agreed to have it in; LOST from before is old */
	struct hk__array gone;		/* struct hk__gone, in the order they were */
	struct hk__array revoked;	/* struct hk__revoked: the last few hundred */
	struct hk__array decided;	/* struct hk__decided: the same */
	size_t gone_applied, revoked_applied;
	uint32_t changes;		/* of states */
	uint32_t disowned_by;		/* who says that this rank is gone; HK_NONE: nobody */
	bool pending;			/* something is to be applied */
	bool unexplained;		/* one that is gone is not among `gone` */
};

enum hk_status hk__health_init(struct hk__health *health, const struct hk_alloc *alloc, uint32_t n);
void hk__health_fini(struct hk__health *health);

/* A group was made: with all that is known already. */
void hk__health_greet(struct hk_group *group);
/* What nets report; ctx is the world. */
void hk__health_event(void *ctx, const struct hk_net_event *event);
/* Groups that have to, fail. Where nets may be called. */
void hk__health_apply(struct hk__world *world);
/* Now and then while this rank waits: for those who wait for one that left. */
void hk__health_look(struct hk__world *world);

/* The survivors agreed to go on without it, even if it lives. */
void hk__health_exclude(struct hk__world *world, uint32_t rank, uint64_t era);
/* All agreed to go on with it, in a group of that clock: it was lost, and lives. */
void hk__health_readmit(struct hk__world *world, uint32_t rank, uint64_t era);
/*
 * This rank gives a group up: all others learn it, then it fails here, with that line.
 * suspect: who is to blame for a deadline, rank of the world; HK_NONE: nobody.
 */
void hk__health_revoke(struct hk_group *group, enum hk_status status, uint32_t suspect,
		       const char *line);
/* This rank waits, in the end for that one: for blame.h. */
void hk__health_tell_waits(struct hk__world *world, uint32_t suspect);
/* Whether somebody has, before the group was made here. */
const struct hk__revoked *hk__health_revoked(const struct hk__health *health,
					     const struct hk__group_id *id);
void hk__health_tell_decided(struct hk__world *world, const struct hk__decided *decided);
bool hk__health_has_decided(const struct hk__health *health, const struct hk__decided *decided);

enum hk__peer hk__health_of(const struct hk_group *group, uint32_t rank);
struct hk__group_id hk__group_id(const struct hk_group *group);
/* Of a rank of the world; HK_NONE: it is no rank of the group. */
uint32_t hk__group_rank_of(const struct hk_group *group, uint32_t rank);

#endif
