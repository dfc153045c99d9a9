/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder.h - writes the flight recorder (hocket/record.h), one for each world.
 *
 * An operation that takes the fast path costs two stores: what it is like was
 * written when the first of its kind came, and clocks are read now and then
 * alone, or where bytes take far longer than a clock does. Where lanes stand is
 * written when the rank is about to sleep, as it then has the time, and when a
 * group fails. Whoever touches nets writes (thread.c), so there is one writer.
 */
#ifndef HK_GROUP_RECORD_RECORDER_H
#define HK_GROUP_RECORD_RECORDER_H

#include "group/group.h"

/* NULL where there is none to be had: a group works without. */
struct hk__recorder *hk__recorder_create(const struct hk__record_env *env,
					 const struct hk__world *world);
void hk__recorder_destroy(struct hk__recorder *recorder);	/* accepts NULL */

/* ---- groups ---- */

void hk__record_join(struct hk_group *group);
/* Counts from here on: what came before was not the caller's. */
void hk__record_restart(struct hk_group *group);
void hk__record_leave(struct hk_group *group);
/*
 * The group has failed, and its failure's text says why: that is noted, and
 * everything written to a file, which the text then names. Channels are open.
 */
void hk__record_fail(struct hk_group *group);
/* Something is still in flight when the group is freed: as a failure. */
void hk__record_abandon(struct hk_group *group);

/* ---- operations ---- */

/* A call was submitted, and has its number. */
void hk__record_call(const struct hk_request *request);
/* Which algorithm it is performed by, when that is known. */
void hk__record_algo(const struct hk_request *request);
/* It is over, and went well. */
void hk__record_over(const struct hk_request *request);
/* Before the world's rank sleeps; ctx is the world. */
void hk__record_sleep(void *ctx, uint64_t now);
/* A request was looked at in vain by who does not sleep. */
void hk__record_look(struct hk__world *world);

/* ---- the fast path ---- */

/* What is recorded of a call like the recent one. */
void hk__record_remember(const struct hk_request *request, struct hk__recent *recent);
void hk__record_again_more(struct hk_group *group, const struct hk__recent *recent);
void hk__record_done_more(struct hk_group *group);

#define HK__RECORD_CLOCK 64u	/* operations between looks at the clock */

/* One more, which has its number. */
static inline void hk__record_again(struct hk_group *group, const struct hk__recent *recent)
{
	if (!group->row)
		return;
	if (group->row_like != recent || recent->timed || group->number % HK__RECORD_CLOCK == 0)
		hk__record_again_more(group, recent);
	__atomic_store_n(&group->row->called, group->number, __ATOMIC_RELEASE);
}

static inline void hk__record_done(struct hk_group *group, const struct hk__recent *recent)
{
	if (!group->row)
		return;
	__atomic_store_n(&group->row->done, group->number, __ATOMIC_RELEASE);
	if (recent->timed)
		hk__record_done_more(group);
}

/* ---- files and copies (record_*.c) ---- */

/* A zeroed one with room for so much; NULL where there is no memory. */
struct hk_record *hk__record_alloc(const struct hk_alloc *alloc, uint32_t rows, uint32_t ring);
/* As those of the header, to be written to. */
static inline struct hk_record_group *hk__record_row(struct hk_record *record, uint32_t i)
{
	return (struct hk_record_group *)hk_record_row(record, i);
}

static inline struct hk_record_op *hk__record_ring(struct hk_record_group *row)
{
	return (struct hk_record_op *)hk_record_ring(row);
}

/* Names of the enumerations, as files have them; those that do not exist are "". */
const char *hk__record_kind_name(uint32_t kind);
const char *hk__record_state_name(uint32_t state);
const char *hk__record_wait_name(uint32_t waits);
const char *hk__record_end_name(uint32_t how);

#endif
