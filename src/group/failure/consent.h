/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consent.h - survivors of a group agree on who is left, and on a number.
 *
 * The lowest rank that is not gone coordinates; which one that is, each rank
 * decides for itself, from what it knows.
 *
 *	all          -> coordinator  STATE    here I am, my number, and what I have
 *	                                      accepted before, if anything
 *	coordinator  -> all          PROPOSE  who is left out, and the least number
 *	all          -> coordinator  ACCEPT
 *	coordinator  -> all          DECIDE   and, in a note that everybody passes on
 *
 * If the coordinator is gone before all know the decision, the next one asks all
 * again. Who states itself to one accepts nothing of those before it any more, and
 * what is decided was accepted by enough ranks for the next one to hear of it and
 * to propose the same: whatever some rank has returned, all will (it is Paxos,
 * with a rank for a ballot).
 *
 * Who is dead is left out at once. Who is silent, out of reach or stopped is
 * waited for, and then left out only if those who answered are more than half of
 * the group, or half of it with rank 0: two parts of a job that cannot see each
 * other never go on both. Who left in good order counts as silent: it may know.
 * Where it is not enough, the coordinator says REFUSE.
 */
#ifndef HK_GROUP_FAILURE_CONSENT_H
#define HK_GROUP_FAILURE_CONSENT_H

#include "group/failure/health.h"

struct hk__consent;

struct hk__consent_spec {
	struct hk__world *world;
	struct hk__group_id id;
	uint32_t rank;
	uint32_t n;
	const uint32_t *ranks;		/* of the world; NULL: the same; copied */
	uint32_t number;		/* of this agreement in its group */
	uint64_t value;
	uint64_t timeout_ns;
	uint64_t silence_ns;		/* for who is out of reach */
	uint64_t late_ns;		/* others may call this so much later, and are not silent */
};

/* Belongs to the world: it answers others for a while after it is decided, and stays at
   least until it is released. */
enum hk_status hk__consent_start(const struct hk__consent_spec *spec,
				 struct hk__consent **consent_out);
/* HK_INPROGRESS, HK_OK (decided), or why it came to nothing. */
enum hk_status hk__consent_poll(struct hk__consent *consent, bool *moved);
/* Nobody waits for it any more: this rank has no part in it. */
void hk__consent_give_up(struct hk__consent *consent, enum hk_status status);
/* Under the world's lock: who started it does not look at it any more. Whoever drives
   the nets frees it. */
void hk__consent_release(struct hk__consent *consent);
struct hk__consent *hk__consent_next(const struct hk__consent *consent);
const enum hk_status *hk__consent_status(const struct hk__consent *consent);
const char *hk__consent_why(const struct hk__consent *consent);
uint64_t hk__consent_value(const struct hk__consent *consent);
bool hk__consent_has(const struct hk__consent *consent, uint32_t rank);	/* survives */
/* Where it stands, for messages. */
void hk__consent_describe(const struct hk__consent *consent, struct hk__text *text);

/* Answers for those that are decided; frees those too many. */
void hk__consents_serve(struct hk__world *world);
void hk__consents_end(struct hk__world *world);

#endif
