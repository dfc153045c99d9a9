/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blame.h - who is to blame for a wait.
 *
 * A rank that is stopped, slow or elsewhere says nothing, and who waits for it
 * keeps others waiting that wait for them: most of those who miss their deadline
 * do not wait for the culprit itself. So a rank that has waited for an eighth of
 * its deadline tells who is near whom it waits for; if that one tells the same,
 * it is the end of the chain that it tells next. At the deadline who is blamed is
 * whoever says nothing.
 */
#ifndef HK_GROUP_FAILURE_BLAME_H
#define HK_GROUP_FAILURE_BLAME_H

#include "base/base.h"

struct hk_group;
struct hk_request;
struct hk__world;

/* What a rank has last told of its wait. */
struct hk__told_wait {
	uint64_t heard;			/* when; 0: never */
	uint32_t suspect;		/* rank of the world */
};

/* A rank says that it waits, in the end for that suspect; both of the world. */
void hk__blame_hear(struct hk__world *world, uint32_t by, uint32_t suspect);
/* Now and then, while this rank waits for a request of the group. */
void hk__blame_look(struct hk_group *group, const struct hk_request *request);
/* Whom a request waits for in the end: rank of the world; HK_NONE: nobody. */
uint32_t hk__blame_of(const struct hk_request *request);

#endif
