/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chans.h - the channels of a group, shared by all its programs.
 *
 * Operations of a group follow each other in every lane, so the messages of
 * one channel belong to them in that order, on both ends: one channel for each
 * pair of lanes serves every plan. A channel is opened when it is first asked
 * for, and stays.
 */
#ifndef HK_EXEC_CHANS_H
#define HK_EXEC_CHANS_H

#include "fabric/cut.h"
#include "net/net.h"

struct hk__trace;

struct hk__chans {
	struct hk_net *net;		/* borrowed */
	uint64_t context;		/* of the group; no other group of a rank has it */
	const uint32_t *ranks;		/* of the net, by rank of the group; NULL: the same */
	struct hk__cut_rule cut;	/* the same for all ranks, before the first is opened */
	const struct hk_alloc *alloc;
	struct hk__trace *trace;	/* what its programs do is written there; mostly NULL */
	uint64_t number;		/* of the operation, for the trace */
	struct hk__array open;		/* struct hk_chan * */
	struct hk__hash index;
};

void hk__chans_init(struct hk__chans *chans, const struct hk_alloc *alloc);
void hk__chans_fini(struct hk__chans *chans);	/* closes them */
/* Nothing of the callers' memory is used for them any more. */
void hk__chans_cancel(struct hk__chans *chans);

struct hk__chans_want {
	bool sends;			/* to the peer; else from it */
	uint32_t peer;			/* of the group */
	uint32_t from_lane, to_lane;
	uint32_t slots, slot_bytes;	/* 0: as those of the group */
};

/* As wanted, opened if it is not; the same each time it is asked for. */
enum hk_status hk__chans_open(struct hk__chans *chans, const struct hk__chans_want *want,
			      struct hk_chan **chan_out);
/* NULL: it was not opened yet. */
struct hk_chan *hk__chans_find(const struct hk__chans *chans, bool sends, uint32_t peer,
			       uint32_t from_lane, uint32_t to_lane);
/* The channel to (sends) or from a rank of the group. */
enum hk_status hk__chans_get(struct hk__chans *chans, bool sends, uint32_t peer,
			     uint32_t from_lane, uint32_t to_lane, struct hk_chan **chan_out);

static inline uint32_t hk__chans_rank(const struct hk__chans *chans, uint32_t rank)
{
	return chans->ranks ? chans->ranks[rank] : rank;
}

#endif
