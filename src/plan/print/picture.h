/* SPDX-License-Identifier: Apache-2.0 */
/*
 * picture.h - what a picture of a plan is made from: messages with their rounds
 * and chunks, and where every lane got to. picture_run.c fills it, and
 * print_picture.c draws it. Only for plans of few ranks.
 */
#ifndef HK_PLAN_PRINT_PICTURE_H
#define HK_PLAN_PRINT_PICTURE_H

#include "plan/plan.h"

#define HK__PICTURE_RANKS_MAX 16u

struct hk__picture_lane {
	struct hk_port port;
	uint32_t nsteps;
	uint32_t at;			/* the step it is in */
	uint32_t first_step;		/* of all steps, in picture->rounds */
	uint32_t round;			/* of the last message that had to come first */
	uint32_t carried;		/* labels between the halves of a fused step */
	uint32_t sent;			/* its message, or HK_NONE */
	uint32_t holds;			/* the message whose slot it uses, or HK_NONE */
};

struct hk__picture_msg {
	uint32_t round;
	uint32_t from;
	uint32_t from_lane;
	uint32_t to;
	uint32_t first_label;		/* in picture->labels */
	uint32_t count;
	uint32_t next;			/* in its channel */
	uint32_t number;		/* in the order of sending */
	uint32_t channel;
	bool received;
	bool reduced;			/* by the step that received it */
	bool over;			/* that step is over */
	bool drawn;
};

struct hk__picture {
	const struct hk_plan *plan;
	struct hk_why *why;

	/* The run. */
	uint32_t nsteps;
	uint32_t nslots;
	uint32_t nlost;			/* messages that nobody received */
	bool show_lanes;		/* lanes other than 0 send */
	bool some_reduced;
	uint32_t *rounds;		/* when each step was over */
	uint32_t *held;			/* the symbol in each slot; HK_NONE: none */
	uint32_t lane_first[HK__PICTURE_RANKS_MAX];
	uint32_t slot_first[HK__PICTURE_RANKS_MAX][HK_BUF_SCRATCH + 1];
	struct hk__array lanes;		/* struct hk__picture_lane */
	struct hk__array channels;	/* struct picture_channel (picture_run.c) */
	struct hk__array msgs;		/* struct hk__picture_msg, as they were sent */
	struct hk__array labels;	/* uint32_t: symbols that messages carry */
	struct hk__hash channel_of;	/* ports to channel */

	/* The drawing, which also puts msgs into its own order. */
	uint32_t pitch;			/* characters from rank to rank */
	bool some_short;		/* labels that had to be shortened */
};

/*
 * HK_ELIMIT where the plan is too large for a picture, HK_EINVAL where a step
 * is malformed, HK_ENOMEM. fini is due in any case.
 */
enum hk_status hk__picture_init(struct hk__picture *picture, const struct hk_plan *plan,
				struct hk_why *why);
void hk__picture_fini(struct hk__picture *picture);

/* Runs the plan to its end, or until nobody can go on: that is HK_OK too. */
enum hk_status hk__picture_run(struct hk__picture *picture);

static inline struct hk__picture_msg *hk__picture_msg(const struct hk__picture *picture,
						      uint32_t i)
{
	return hk__array_at(&picture->msgs, i);
}

/* The symbol of a chunk that a message carries; HK_NONE: it has no name. */
static inline uint32_t hk__picture_label(const struct hk__picture *picture, uint32_t i)
{
	return *(uint32_t *)hk__array_at(&picture->labels, i);
}

#endif
