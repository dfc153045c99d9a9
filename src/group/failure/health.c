/* SPDX-License-Identifier: Apache-2.0 */
/* health.c - states of ranks, notes between them, and groups that fail of it. */
#include "group/group.h"
#include "boot/conn.h"

#include <stdio.h>
#include <string.h>

/* For notes of a group that was given up: in all, while nothing moves, between looks. */
#define LEAVE_NS UINT64_C(1000000000)
#define LEAVE_STILL_NS UINT64_C(200000000)
#define LEAVE_LOOK_NS UINT64_C(1000000)

/* ---- notes ---- */

enum note_kind {
	NOTE_GONE = 1,
	NOTE_REVOKED,
	NOTE_DECIDED,
	NOTE_WAITS /* not told on: who is not near hears of it by who is */
};

/* What ranks tell each other; a kind uses what it needs. */
struct note {
	uint32_t kind;
	uint32_t state;		/* GONE: LOST, OUT or DEAD */
	uint32_t rank;		/* GONE: who */
	uint32_t by;		/* who saw it, or gave up */
	struct hk__group_id id; /* GONE: its context is the era of the rank, a clock */
	int32_t status;
	uint32_t ballot;
	uint64_t number;
};

#define NOTE_WORDS 11u
_Static_assert(NOTE_WORDS * 4 <= HK_NOTE_MAX, "a note fits");

static void note_write(const struct note *note, unsigned char bytes[NOTE_WORDS * 4])
{
	const uint32_t words[NOTE_WORDS] = { note->kind,
					     note->state,
					     note->rank,
					     note->by,
					     (uint32_t)note->id.context,
					     (uint32_t)(note->id.context >> 32),
					     note->id.first,
					     (uint32_t)note->status,
					     note->ballot,
					     (uint32_t)note->number,
					     (uint32_t)(note->number >> 32) };

	for (uint32_t i = 0; i < NOTE_WORDS * 4; i++)
		bytes[i] = (unsigned char)(words[i / 4] >> 8 * (i % 4));
}

/* A peer may say anything: false where it makes no sense among n ranks. */
static bool note_read(const unsigned char *bytes, uint32_t len, uint32_t n, struct note *note)
{
	uint32_t words[NOTE_WORDS] = { 0 };

	if (len != NOTE_WORDS * 4)
		return false;
	for (uint32_t i = 0; i < len; i++)
		words[i / 4] |= (uint32_t)bytes[i] << 8 * (i % 4);
	*note = (struct note){ words[0],
			       words[1],
			       words[2],
			       words[3],
			       { words[4] | (uint64_t)words[5] << 32, words[6] },
			       (int32_t)words[7],
			       words[8],
			       words[9] | (uint64_t)words[10] << 32 };
	if (note->by >= n || note->rank >= n || note->id.first >= n)
		return false;
	return note->kind == NOTE_GONE
		       ? note->state >= HK__PEER_LOST && note->state <= HK__PEER_DEAD
		       : note->kind >= NOTE_REVOKED && note->kind <= NOTE_WAITS;
}

static void note_tell(struct hk__world *world, const struct note *note)
{
	unsigned char bytes[NOTE_WORDS * 4];

	note_write(note, bytes);
	hk__net_tell(world->net, bytes, sizeof(bytes));
}

/* ---- what is known ---- */

enum hk_status hk__health_init(struct hk__health *health, const struct hk_alloc *alloc, uint32_t n)
{
	*health = (struct hk__health){ .alloc = alloc, .n = n, .disowned_by = HK_NONE };
	hk__array_init(&health->gone, alloc, sizeof(struct hk__gone));
	hk__array_init(&health->revoked, alloc, sizeof(struct hk__revoked));
	hk__array_init(&health->decided, alloc, sizeof(struct hk__decided));
	health->states = hk__mem_zalloc(alloc, n, 1);
	health->eras = hk__mem_zalloc(alloc, n, sizeof(*health->eras));
	return health->states && health->eras ? HK_OK : HK_ENOMEM;
}

void hk__health_fini(struct hk__health *health)
{
	if (!health->alloc)
		return;
	hk__array_fini(&health->gone);
	hk__array_fini(&health->revoked);
	hk__array_fini(&health->decided);
	hk__mem_free(health->alloc, health->states, health->n, 1);
	hk__mem_free(health->alloc, health->eras, health->n, sizeof(*health->eras));
}

static bool id_equal(const struct hk__group_id *a, const struct hk__group_id *b)
{
	return a->context == b->context && a->first == b->first;
}

const struct hk__revoked *hk__health_revoked(const struct hk__health *health,
					     const struct hk__group_id *id)
{
	for (size_t i = 0; i < health->revoked.count; i++) {
		const struct hk__revoked *revoked = hk__array_at(&health->revoked, i);

		if (id_equal(&revoked->id, id))
			return revoked;
	}
	return NULL;
}

bool hk__health_has_decided(const struct hk__health *health, const struct hk__decided *decided)
{
	for (size_t i = health->decided.count; i-- > 0;) {
		const struct hk__decided *known = hk__array_at(&health->decided, i);

		if (id_equal(&known->id, &decided->id) && known->number == decided->number &&
		    known->ballot == decided->ballot)
			return true;
	}
	return false;
}

static struct hk__gone *gone_find(const struct hk__health *health, uint32_t rank)
{
	for (size_t i = 0; i < health->gone.count; i++) {
		struct hk__gone *gone = hk__array_at(&health->gone, i);

		if (gone->rank == rank)
			return gone;
	}
	return NULL;
}

/*
 * Whether that was news. A rank that left in good order is not missed; that one was
 * lost before all agreed to have it among them again is old.
 */
static bool peer_note(struct hk__world *world, const struct note *note, const char *why)
{
	struct hk__health *health = &world->health;
	enum hk__peer state = (enum hk__peer)note->state;
	uint32_t rank = note->rank, by = note->by;

	if (state == HK__PEER_LOST || state == HK__PEER_OUT) {
		if (note->id.context < health->eras[rank])
			return false;
		health->eras[rank] = note->id.context;
	}
	if (rank == world->rank) {
		health->disowned_by = by;
		health->pending = true;
		return false;
	}
	if (health->states[rank] >= state || health->states[rank] == HK__PEER_LEFT)
		return false;
	health->states[rank] = (uint8_t)state;
	health->changes++;
	if (state == HK__PEER_LEFT)
		return true;
	struct hk__gone *gone = gone_find(health, rank);
	if (!gone)
		gone = hk__array_push(&health->gone);
	health->pending = true;
	if (!gone) {
		health->unexplained = true;
		return true;
	}
	*gone = (struct hk__gone){ .rank = rank, .by = by, .since = hk__now_ns() };
	(void)snprintf(gone->why, sizeof(gone->why), "%s", why);
	return true;
}

/*
 * Rows of the last notes: a note that comes again by another path is not passed on
 * again, and a group that this rank has not finished creating is found revoked. Older
 * ones are forgotten: a program may revoke groups, and agree, for as long as it runs.
 */
#define ROWS_KEPT ((size_t)256)

/* Forgets the oldest of `applied` rows, once there are twice as many as are kept. */
static size_t rows_forget(struct hk__array *rows, size_t applied)
{
	size_t drop = applied < ROWS_KEPT ? applied : ROWS_KEPT;

	if (rows->count < 2 * ROWS_KEPT || drop == 0)
		return 0;
	const void *rest = hk__array_at(rows, drop);
	rows->count -= drop;
	memmove(rows->items, rest, rows->count * rows->item_size);
	return drop;
}

static bool revoked_note(struct hk__health *health, const struct note *note)
{
	struct hk__revoked *revoked;

	if (hk__health_revoked(health, &note->id))
		return false;
	health->revoked_applied -= rows_forget(&health->revoked, health->revoked_applied);
	revoked = hk__array_push(&health->revoked);
	if (!revoked)
		return false; /* its deadline will say so */
	*revoked = (struct hk__revoked){ .id = note->id,
					 .by = note->by,
					 .status = (enum hk_status)note->status,
					 .number = note->number,
					 .suspect = note->state ? note->rank : HK_NONE };
	health->pending = true;
	return true;
}

static bool decided_note(struct hk__health *health, const struct hk__decided *decided)
{
	struct hk__decided *known;

	if (hk__health_has_decided(health, decided))
		return false;
	(void)rows_forget(&health->decided, health->decided.count);
	known = hk__array_push(&health->decided);
	if (known)
		*known = *decided;
	return known != NULL;
}

/* ---- what is heard ---- */

static void note_hear(struct hk__world *world, const struct hk_net_event *event)
{
	static const char *const reasons[] = { [HK__PEER_LOST] = "it is out of reach",
					       [HK__PEER_OUT] =
						       "the others have gone on without it",
					       [HK__PEER_DEAD] = "its process has ended" };
	struct note note;
	bool news = false;

	if (!note_read(event->note, event->len, world->n, &note))
		return;
	if (note.kind == NOTE_GONE)
		news = peer_note(world, &note, reasons[note.state]);
	else if (note.kind == NOTE_REVOKED)
		news = revoked_note(&world->health, &note);
	else if (note.kind == NOTE_WAITS)
		hk__blame_hear(world, event->rank, note.rank);
	else
		news = decided_note(&world->health,
				    &(struct hk__decided){ note.id, (uint32_t)note.number,
							   note.ballot });
	if (news)
		note_tell(world, &note);
}

void hk__health_event(void *ctx, const struct hk_net_event *event)
{
	static const enum hk__peer states[] = { [HK_NET_LEFT] = HK__PEER_LEFT,
						[HK_NET_LOST] = HK__PEER_LOST,
						[HK_NET_DEAD] = HK__PEER_DEAD };
	struct hk__world *world = ctx;

	if (event->rank >= world->n)
		return;
	if (event->what == HK_NET_TOLD) {
		note_hear(world, event);
		return;
	}
	struct note note = { .kind = NOTE_GONE,
			     .state = states[event->what],
			     .rank = event->rank,
			     .by = world->rank,
			     .id = { world->health.eras[event->rank], 0 } };
	if (peer_note(world, &note, event->why ? event->why : "") && note.state != HK__PEER_LEFT)
		note_tell(world, &note);
}

void hk__health_exclude(struct hk__world *world, uint32_t rank, uint64_t era)
{
	struct note note = { .kind = NOTE_GONE,
			     .state = HK__PEER_OUT,
			     .rank = rank,
			     .by = world->rank,
			     .id = { era, 0 } };

	if (note.id.context < world->health.eras[rank])
		note.id.context = world->health.eras[rank];

	/* If it lives it will hear of it, and not wait for the others. */
	if (peer_note(world, &note, "the others have gone on without it"))
		note_tell(world, &note);
}

void hk__health_readmit(struct hk__world *world, uint32_t rank, uint64_t era)
{
	struct hk__health *health = &world->health;
	struct hk__gone *gone = health->gone.items;

	if (health->eras[rank] >= era)
		return; /* lost since, and others have said so first */
	health->eras[rank] = era;
	if (rank == world->rank)
		health->disowned_by = HK_NONE; /* that was before */
	if (health->states[rank] != HK__PEER_LOST)
		return;
	health->states[rank] = HK__PEER_OK;
	health->changes++;
	for (size_t i = 0; i < health->gone.count; i++) {
		if (gone[i].rank != rank)
			continue;
		memmove(&gone[i], &gone[i + 1], (health->gone.count - i - 1) * sizeof(*gone));
		health->gone.count--;
		health->gone_applied -= i < health->gone_applied;
		break;
	}
}

/* ---- what this rank says ---- */

struct hk__group_id hk__group_id(const struct hk_group *group)
{
	return (struct hk__group_id){ group->chans.context, hk__chans_rank(&group->chans, 0) };
}

/*
 * The caller may make no call for long, and then nobody writes the rest of a message
 * that a note is behind. Who reads has it soon; who does not is not waited for.
 */
static void notes_leave(struct hk__world *world)
{
	struct hk_net *net = world->net;
	uint64_t began = hk__now_ns(), now = began, moved_at = began, moved = net->moved;

	while (hk__net_untold(net) && now - began < LEAVE_NS && now - moved_at < LEAVE_STILL_NS) {
		if (hk__net_wait(net, LEAVE_LOOK_NS) != HK_OK || hk__net_poll(net) != HK_OK)
			return; /* the next call says so */
		now = hk__now_ns();
		if (moved != net->moved)
			moved_at = now;
		moved = net->moved;
	}
}

void hk__health_revoke(struct hk_group *group, enum hk_status status, uint32_t suspect,
		       const char *line)
{
	struct hk__world *world = group->world;
	struct note note = { .kind = NOTE_REVOKED,
			     .state = suspect != HK_NONE,
			     .rank = suspect != HK_NONE ? suspect : 0,
			     .by = world->rank,
			     .id = hk__group_id(group),
			     .status = status,
			     .number = group->number };

	/* First the others learn why: what they were lent is taken back next. */
	bool tells = group->n > 1 && revoked_note(&world->health, &note);
	if (tells)
		note_tell(world, &note);
	hk__group_fail(group, status, line);
	if (tells && !world->threaded)
		notes_leave(world);
}

void hk__health_tell_waits(struct hk__world *world, uint32_t suspect)
{
	struct note note = { .kind = NOTE_WAITS, .rank = suspect, .by = world->rank };

	note_tell(world, &note);
}

void hk__health_tell_decided(struct hk__world *world, const struct hk__decided *decided)
{
	struct note note = { .kind = NOTE_DECIDED,
			     .by = world->rank,
			     .id = decided->id,
			     .ballot = decided->ballot,
			     .number = decided->number };

	if (decided_note(&world->health, decided))
		note_tell(world, &note);
}

/* ---- groups that fail of it ---- */

uint32_t hk__group_rank_of(const struct hk_group *group, uint32_t rank)
{
	if (!group->ranks)
		return rank;
	for (uint32_t r = 0; r < group->n; r++)
		if (group->ranks[r] == rank)
			return r;
	return HK_NONE;
}

enum hk__peer hk__health_of(const struct hk_group *group, uint32_t rank)
{
	return (enum hk__peer)group->world->health.states[hk__chans_rank(&group->chans, rank)];
}

static void text_add_by(const struct hk_group *group, uint32_t by, struct hk__text *text)
{
	uint32_t seen = hk__group_rank_of(group, by);

	if (by == group->world->rank)
		return;
	if (seen == HK_NONE)
		hk__text_add(text, ", seen by a rank of another group");
	else
		hk__text_add(text, ", seen by rank %u", seen);
}

static void group_lose(struct hk_group *group, uint32_t rank, const struct hk__gone *gone)
{
	char line[HK_WHY_MAX];
	struct hk__text text;
	char where[HK__PLACE_TEXT + 16];

	hk__world_where(group->world, gone->rank, where, sizeof(where));
	hk__text_init(&text, line, sizeof(line));
	hk__group_describe(group, &text);
	hk__text_add(&text, "rank %u (%s) is %s: %s", rank, where,
		     group->world->health.states[gone->rank] == HK__PEER_DEAD ? "dead" : "lost",
		     gone->why);
	text_add_by(group, gone->by, &text);
	hk__group_describe_step(group, &text);
	hk__group_fail(group, HK_EPEER, line);
}

static void text_add_suspect(const struct hk_group *group, uint32_t suspect, struct hk__text *text)
{
	uint32_t rank = suspect == group->world->rank ? HK_NONE : hk__group_rank_of(group, suspect);

	if (suspect == group->world->rank)
		hk__text_add(text, ": this rank kept it waiting");
	else if (rank != HK_NONE)
		hk__text_add(text, ": rank %u is stopped, slow, or has not called it", rank);
}

static void group_give_up(struct hk_group *group, const struct hk__revoked *revoked)
{
	bool same = revoked->status == HK_EMISMATCH;
	uint32_t by = hk__group_rank_of(group, revoked->by);
	char line[HK_WHY_MAX];
	struct hk__text text;

	hk__text_init(&text, line, sizeof(line));
	hk__group_describe(group, &text);
	hk__text_add(&text, "rank %u revoked the group at operation %llu: %s", by,
		     (unsigned long long)revoked->number,
		     revoked->status == HK_EREVOKED ? "it called hk_group_revoke"
						    : hk_status_text(revoked->status));
	text_add_suspect(group, revoked->suspect, &text);
	hk__group_describe_step(group, &text);
	hk__group_fail(group, same ? HK_EMISMATCH : HK_EREVOKED, line);
}

/* Somebody says that this rank is gone: with that one it can do nothing any more. */
static void apply_disowned(struct hk__world *world)
{
	uint32_t by = world->health.disowned_by;
	char line[HK_WHY_MAX];
	struct hk__text text;

	world->health.disowned_by = HK_NONE;
	for (struct hk_group *group = world->groups; group; group = group->next_group) {
		uint32_t rank = hk__group_rank_of(group, by);

		if (rank == HK_NONE || group->failed != HK_OK)
			continue;
		hk__text_init(&text, line, sizeof(line));
		hk__group_describe(group, &text);
		hk__text_add(&text, "rank %u could not reach this rank, and goes on without it",
			     rank);
		hk__group_describe_step(group, &text);
		hk__group_fail(group, HK_EPEER, line);
	}
}

static void apply_gone(struct hk__world *world, const struct hk__gone *gone)
{
	for (struct hk_group *group = world->groups; group; group = group->next_group) {
		uint32_t rank = hk__group_rank_of(group, gone->rank);

		if (rank != HK_NONE && group->failed == HK_OK)
			group_lose(group, rank, gone);
	}
}

static void apply_revoked(struct hk__world *world, const struct hk__revoked *revoked)
{
	for (struct hk_group *group = world->groups; group; group = group->next_group) {
		struct hk__group_id id = hk__group_id(group);

		if (id_equal(&id, &revoked->id) && group->failed == HK_OK)
			group_give_up(group, revoked);
	}
}

void hk__health_greet(struct hk_group *group)
{
	const struct hk__health *health = &group->world->health;
	struct hk__group_id id = hk__group_id(group);
	const struct hk__revoked *revoked = hk__health_revoked(health, &id);

	for (size_t i = 0; i < health->gone_applied && group->failed == HK_OK; i++) {
		const struct hk__gone *gone = hk__array_at(&health->gone, i);
		uint32_t rank = hk__group_rank_of(group, gone->rank);

		if (rank != HK_NONE)
			group_lose(group, rank, gone);
	}
	if (revoked && group->failed == HK_OK)
		group_give_up(group, revoked);
}

void hk__health_apply(struct hk__world *world)
{
	struct hk__health *health = &world->health;

	health->pending = false;
	/* There was no memory for the reason; that they are gone is known all the same. */
	for (uint32_t r = 0; health->unexplained && r < world->n; r++)
		if (health->states[r] >= HK__PEER_LOST)
			apply_gone(world, &(struct hk__gone){ .rank = r, .by = world->rank });
	health->unexplained = false;
	if (health->disowned_by != HK_NONE)
		apply_disowned(world);
	/* Who is gone goes first: that a group was given up follows from it. */
	for (; health->gone_applied < health->gone.count; health->gone_applied++)
		apply_gone(world, hk__array_at(&health->gone, health->gone_applied));
	while (health->revoked_applied < health->revoked.count) {
		/* A copy: rows move when one is added. */
		struct hk__revoked revoked =
			*(struct hk__revoked *)hk__array_at(&health->revoked,
							    health->revoked_applied);

		health->revoked_applied++;
		apply_revoked(world, &revoked);
	}
}

/* ---- who waits for one that left ---- */

static bool request_waits_for_left(const struct hk_request *request, uint32_t *rank_out)
{
	const struct hk_group *group = request->group;
	uint32_t ranks[8], count = 0;

	if (request->transfers && !request->held)
		ranks[count++] = request->peer;
	else if (request->program)
		count = hk__program_waits(request->program, ranks, 8);
	for (uint32_t i = 0; i < count; i++) {
		if (hk__health_of(group, ranks[i]) == HK__PEER_LEFT) {
			*rank_out = ranks[i];
			return true;
		}
	}
	return false;
}

static void group_look(struct hk_group *group)
{
	struct hk_request *request = group->head ? group->head : group->transfers;
	char line[HK_WHY_MAX];
	struct hk__text text;
	uint32_t rank;

	if (request)
		hk__blame_look(group, request);
	if (!request || !request_waits_for_left(request, &rank)) {
		group->left_looks = 0;
		return;
	}
	/* What it sent before may still be on its way through this rank. */
	if (++group->left_looks < 3)
		return;
	hk__text_init(&text, line, sizeof(line));
	hk__group_describe(group, &text);
	hk__text_add(&text, "rank %u has left the job", rank);
	hk__group_describe_step(group, &text);
	hk__health_revoke(group, HK_EPEER, HK_NONE, line);
}

void hk__health_look(struct hk__world *world)
{
	struct hk_group *next;

	for (struct hk_group *group = world->active; group; group = next) {
		next = group->next_active;
		group_look(group);
	}
}
