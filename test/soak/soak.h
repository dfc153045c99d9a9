/* SPDX-License-Identifier: Apache-2.0 */
/*
 * soak.h - a rank that does all kinds of things for a long time, and what it holds
 * meanwhile. What is done in a round follows from the seed and its number, alike on
 * all ranks.
 */
#ifndef HK_TEST_SOAK_SOAK_H
#define HK_TEST_SOAK_SOAK_H

#include "kill/work.h"

#include <sys/types.h>

/*	name          what a round of it does */
#define SOAK_ACT_MAP(X) \
	X(collectives, "operations of all kinds, some by requests") \
	X(tags,        "messages with several tags, received in another order") \
	X(batch,       "sends, receives and a sum in one batch") \
	X(requests,    "several sums at once, waited for in several manners") \
	X(split,       "groups of some ranks, in another order") \
	X(shrink,      "a group of those who are left: all") \
	X(revoke,      "a group that one rank gives up, and one of all made of it") \
	X(timeout,     "a rank that is late, and a group of all made after it") \
	X(fork,        "a child in the middle of an operation") \
	X(memory,      "buffers of hk_mem_alloc") \
	X(world,       "another meeting, and groups that share nothing with the first")

enum soak_act {
#define SOAK_ACT_ENUM(name, what) SOAK_##name,
	SOAK_ACT_MAP(SOAK_ACT_ENUM)
#undef SOAK_ACT_ENUM
	SOAK_ACTS
};

#define SOAK_CHILDREN 4u

struct soak {
	struct hk_group_opts opts;
	struct hk_group *root;
	uint32_t rank, n;
	uint64_t seed;
	uint64_t operations;	/* so far; alike on all ranks */
	uint64_t acts[SOAK_ACTS];
	uint32_t *in, *out;	/* WORK_BYTES each */
	int fds;		/* before there was a group */
	pid_t children[SOAK_CHILDREN]; /* 0: none */
	char wrong[400];	/* "": nothing yet */
};

/* Waits for the children that are left; false: one of them was not content. */
bool soak_children_end(struct soak *soak);
uint64_t soak_random(uint64_t *state);

/* ---- acts.c, acts_group.c ---- */

/* False: soak->wrong says what. random: of this round, the same on all ranks. */
#define SOAK_ACT_DECLARE(name, what) bool soak_##name(struct soak *soak, uint64_t random);
SOAK_ACT_MAP(SOAK_ACT_DECLARE)
#undef SOAK_ACT_DECLARE
/* Notes what is wrong, the first time, and returns false. */
bool soak_wrong(struct soak *soak, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool soak_good(struct soak *soak, struct hk_group *group, enum hk_status status, const char *what);
/* So many operations at random on a group of all ranks or some. */
bool soak_work(struct soak *soak, struct hk_group *group, uint32_t count, const char *where);

/* ---- holds.c ---- */

/* What this process holds. */
struct holds {
	uint64_t heap_kib;	/* of the library's allocator: exact */
	uint64_t rss_kib;	/* in memory */
	uint64_t mapped_kib;	/* addresses */
	uint64_t shared_kib;	/* pages of segments that exist, whoever touched them */
	int fds, threads, maps;
};
struct holds holds_now(void);
extern const struct hk_alloc holds_alloc; /* that counts */

#endif
