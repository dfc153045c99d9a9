/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_now.c - what the flight recorder is told when a rank has time: where its
 * lanes are, before it sleeps, and why, when a group has failed.
 */
#include "group/record/record_write.h"

#include <stdio.h>

#define LOOKS 256u /* in vain, until it is written down where things stand */

/* ---- where things stand ---- */

static void lane_fill(const struct hk_group *group, const struct hk__lane_position *position,
		      struct hk_record_lane *lane)
{
	static const uint32_t waits[] = { [HK__LANE_READY] = HK_RECORD_READY,
					  [HK__LANE_MESSAGE] = HK_RECORD_MESSAGE,
					  [HK__LANE_SLOT] = HK_RECORD_SLOT,
					  [HK__LANE_LANE] = HK_RECORD_LANE,
					  [HK__LANE_READER] = HK_RECORD_READER };

	*lane = (struct hk_record_lane){ .lane = position->lane,
					 .step = position->step,
					 .steps = position->steps,
					 .slice = position->slice,
					 .slices = position->slices,
					 .op = position->op,
					 .waits = waits[position->waits],
					 .peer = position->rank,
					 .peer_world = HK_NONE };
	if (position->rank != HK_NONE)
		lane->peer_world = hk__chans_rank(&group->chans, position->rank);
}

static void now_fill_lanes(const struct hk_group *group, struct hk_record_now *now)
{
	struct hk__lane_position positions[HK_RECORD_LANES];
	const struct hk_request *request = group->head;

	now->number = request ? request->sig.number : 0;
	if (!request || !request->program)
		return;
	now->stage = request->stage != HK__STAGE_RUN;
	now->nlanes = hk__program_positions(request->program, positions, HK_RECORD_LANES);
	for (uint32_t i = 0; i < now->nlanes && i < HK_RECORD_LANES; i++)
		lane_fill(group, &positions[i], &now->lanes[i]);
}

static void now_fill_moves(const struct hk_group *group, struct hk_record_now *now)
{
	for (const struct hk_request *request = group->transfers; request;
	     request = request->next) {
		if (now->nmoves < HK_RECORD_MOVES)
			now->moves[now->nmoves] = (struct hk_record_move){
				.kind = request->transfer.sends ? HK_RECORD_SEND : HK_RECORD_RECV,
				.peer = request->peer,
				.peer_world = hk__chans_rank(&group->chans, request->peer),
				.tag = request->sig.tag,
				.left = request->transfer.left
			};
		now->nmoves++;
	}
}

static bool now_is_same(const struct hk_record_now *a, const struct hk_record_now *b)
{
	return a->number == b->number && a->stage == b->stage && a->nlanes == b->nlanes &&
	       a->nmoves == b->nmoves && memcmp(a->lanes, b->lanes, sizeof(a->lanes)) == 0 &&
	       memcmp(a->moves, b->moves, sizeof(a->moves)) == 0;
}

/* When the collective was called: as was seen then, or else now for the first time. */
static uint64_t now_called(const struct hk_record_group *row, uint64_t number, uint64_t now)
{
	const struct hk_record_op *entry = entry_newest((struct hk_record_group *)row);

	if (entry && entry->kind == HK_RECORD_COLL && number == row->called && entry->called_ns)
		return entry->called_ns;
	return row->now.number == number && row->now.called_ns ? row->now.called_ns : now;
}

static void group_publish(struct hk_group *group, uint64_t now_ns)
{
	struct hk_record_group *row = group->row;
	struct hk_record_now now = { .written_ns = now_ns };

	if (!row)
		return;
	now_fill_lanes(group, &now);
	now_fill_moves(group, &now);
	now.called_ns = now_called(row, now.number, now_ns);
	now.progress_ns = now_is_same(&now, &row->now) ? row->now.progress_ns : now_ns;
	seq_begin(&row->now.seq);
	now.seq = row->now.seq;
	row->now = now;
	seq_end(&row->now.seq);
	number_set(&row->seen_ns, now_ns);
}

void hk__record_sleep(void *ctx, uint64_t now)
{
	struct hk__world *world = ctx;

	if (!world->recorder)
		return;
	/* A progress thread is about to sleep without it; a caller that waits holds it. */
	if (world->threaded)
		hk__world_lock(world);
	for (struct hk_group *group = world->active; group; group = group->next_active)
		group_publish(group, now);
	if (world->threaded)
		hk__world_unlock(world);
}

void hk__record_look(struct hk__world *world)
{
	if (!world->recorder || ++world->recorder->looks % LOOKS)
		return;
	uint64_t now = hk__now_ns();
	for (struct hk_group *group = world->active; group; group = group->next_active)
		group_publish(group, now);
}

/* ---- failures ---- */

static void gone_fill(const struct hk__health *health, struct hk_record *record)
{
	seq_begin(&record->seq);
	record->ngone = (uint32_t)health->gone.count;
	for (uint32_t i = 0; i < record->ngone && i < HK_RECORD_GONE; i++) {
		const struct hk__gone *gone = hk__array_at(&health->gone, i);

		record->gone[i] =
			(struct hk_record_gone){ .rank = gone->rank,
						 .how = health->states[gone->rank] == HK__PEER_DEAD
								? HK_RECORD_DEAD
								: HK_RECORD_LOST,
						 .by = gone->by,
						 .since_ns = gone->since };
		text_set(record->gone[i].why, sizeof(record->gone[i].why), gone->why);
	}
	seq_end(&record->seq);
}

static void row_fail(struct hk_group *group, uint64_t now)
{
	struct hk_record_group *row = group->row;
	struct hk__group_id id = hk__group_id(group);
	const struct hk__revoked *revoked = hk__health_revoked(&group->world->health, &id);

	if (!row)
		return;
	seq_begin(&row->seq);
	row->state = HK_RECORD_FAILED;
	row->status = group->failed;
	row->revoked_by = revoked ? revoked->by : HK_NONE;
	row->failed_ns = now;
	text_set(row->why, sizeof(row->why), group->failure.text);
	seq_end(&row->seq);
}

/* The failure ends in where to read more, whatever else has to go. */
static void failure_name_file(struct hk_group *group, const char *path)
{
	char *text = group->failure.text;
	size_t len = strlen(text), more = strlen(path) + strlen("; see ");

	if (more + 80 > HK_WHY_MAX)
		return;
	const char *cut = len + more >= HK_WHY_MAX ? "..." : "";
	if (*cut)
		len = HK_WHY_MAX - 1 - more - strlen(cut);
	(void)snprintf(text + len, HK_WHY_MAX - len, "%s; see %s", cut, path);
}

/* As a copy has it: the newest entries say how far they have come. */
static void rows_close(struct hk_record *record)
{
	for (uint32_t i = 0; i < record->rows; i++) {
		struct hk_record_group *row = hk__record_row(record, i);
		struct hk_record_op *entry = entry_newest(row);

		if (entry)
			number_set(&entry->last,
				   entry->kind == HK_RECORD_COLL ? row->called : row->moves_called);
	}
}

static void group_dump(struct hk_group *group, uint64_t now)
{
	struct hk__recorder *recorder = group->world->recorder;
	struct hk_why why;
	char path[512];

	if (!recorder->files)
		return;
	recorder->at->read_ns = now;
	rows_close(recorder->at);
	/*
	 * A file that is not from here is of hocket run, which ends this run: what
	 * it saw before says more than what has come of that.
	 */
	enum hk_status status =
		hk_record_save(recorder->at, recorder->dir[0] ? recorder->dir : NULL,
			       recorder->wrote, &why, path, sizeof(path));
	recorder->wrote = true;
	if (status == HK_OK)
		failure_name_file(group, path);
	else
		hk__log(HK_LOG_ERROR, "rank %u: cannot write the flight recorder: %s", group->rank,
			why.text);
}

void hk__record_fail(struct hk_group *group)
{
	struct hk__world *world = group->world;
	struct hk_why dropped;

	if (!world->recorder)
		return;
	uint64_t now = hk__now_ns();
	group_publish(group, now);
	hk__world_why(world, &dropped); /* of looks at channels that are broken */
	gone_fill(&world->health, world->recorder->at);
	row_fail(group, now);
	group_dump(group, now);
}

void hk__record_abandon(struct hk_group *group)
{
	if (!group->row || (!group->head && !group->transfers))
		return;
	uint64_t now = hk__now_ns();
	group_publish(group, now);
	group_dump(group, now);
}
