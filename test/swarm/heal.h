/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heal.h - what a program does that survives: operations, and, when ranks have
 * failed, shrinking until an operation succeeds on all who are left.
 */
#ifndef HK_TEST_SWARM_HEAL_H
#define HK_TEST_SWARM_HEAL_H

#include "group/oracle.h"
#include "swarm/bed.h"

#define HEAL_ROUNDS_MAX 6u

struct heal_op {
	struct want want;
	const char *algo;		/* NULL: the group chooses */
	bool unsure;			/* bytes may be changed on their way, and nobody can know */
};

/* What one rank has seen; kept by the test, so that it outlives the rank. */
struct heal_seen {
	bool called;			/* the operation */
	enum hk_status status;		/* of it */
	char why[HK_WHY_MAX];
	bool shrank;			/* it called shrink */
	uint32_t rounds;		/* shrinks that have returned */
	enum hk_status shrunk[HEAL_ROUNDS_MAX];
	uint32_t members[HEAL_ROUNDS_MAX]; /* a bit for each rank of the world */
	bool well;			/* in the end all went on together */
	bool over;
};

struct heal {
	struct heal_op op;
	uint64_t shrink_timeout_ns;	/* 0: the group's */
	uint64_t linger_ns;		/* who went on computes for so long, and is silent */
	struct heal_seen seen[BED_RANKS_MAX];
};

/* The call with its buffers: HK_OK with the right result, or why not. */
enum hk_status heal_do(struct bed_seat *seat, struct hk_group *group, const struct heal_op *op,
		       const struct hk_opts *opts);

/* Shrinks until all went well, or this rank is out; frees the groups, of which one is given. */
void heal_shrink(struct bed_seat *seat, struct heal *heal);
/* A rank's part; ctx is a struct heal. */
void heal_main(struct bed_seat *seat, void *ctx);

/*
 * Whatever was done to ranks: those that live and whose shrinking succeeded, round
 * after round, have the same members, and are among them.
 */
void heal_check_safe(const struct bed *bed, const struct heal *heal);
/*
 * Where ranks were only killed: survivors have the same members in every round, the
 * living among them, those killed before they took part not, and went on in the end.
 */
void heal_check(const struct bed *bed, const struct heal *heal);

#endif
