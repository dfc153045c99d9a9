/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deed.h - what a rank does with its group while something fails under it: one
 * line for each thing that a group can be asked for.
 */
#ifndef HK_TEST_INJECT_DEED_H
#define HK_TEST_INJECT_DEED_H

#include <hocket/group.h>

struct deed {
	const char *name;
	/* *why: of a group that it made; if none, the group's own says why. */
	enum hk_status (*run)(struct hk_group *group, const struct deed *deed,
			      struct hk_why *why);
	/* Of collectives. */
	enum hk_coll coll;
	const char *algo;	/* NULL: the group chooses */
	uint64_t count;
	bool v;
	bool heals;		/* waits for those who do not answer */
};

/* Row i; false: there are no more. First what is not a collective of its own. */
bool deed_get(uint32_t i, struct deed *deed_out);

/* All of them, one after the other, that a group can do; the first status that is bad. */
enum hk_status deed_all(struct hk_group *group, struct hk_why *why);

#endif
