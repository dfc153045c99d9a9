/* SPDX-License-Identifier: Apache-2.0 */
/* consent.c - see consent.h. Nothing here blocks: each poll goes as far as it can. */
#include "group/failure/consent.h"

#include "group/group.h"

#include <string.h>

#define KEPT 8u /* decided ones that a world still answers for */
#define SLOTS 4u
#define LANE 0xffff0000u /* and above: one for each agreement, in turn */
#define LANES 0x8000u
/* Of the time: for who is silent, until it is left out. So three may coordinate in turn. */
#define GATHER 8u

enum kind {
	STATE = 1,
	PROPOSE,
	ACCEPT,
	DECIDE,
	REFUSE
};

/* The head of a message; then who is left out, a bit each: proposed, or accepted. */
struct head {
	uint32_t kind;
	uint32_t ballot;   /* of the coordinator it is about: its rank + 1 */
	uint32_t accepted; /* STATE: the ballot of what was accepted; 0: nothing */
	uint32_t decided;  /* STATE: that was decided */
	uint64_t value;	   /* STATE: own; else the proposal's */
	uint64_t accepted_value;
};

/* What is proposed: who is left out, and the least value. */
struct proposal {
	uint32_t ballot; /* 0: none */
	uint64_t value;
	unsigned char *lost;
};

struct member {
	struct hk_chan *in, *out;
	bool stated; /* to this coordinator */
	bool accepted;
	bool told_propose, told_decide;
	uint32_t told_state; /* the ballot that this rank told it its state for */
	uint64_t lost_since;
};

struct hk__consent {
	struct hk__consent_spec spec;
	struct hk__consent *next;
	const struct hk_alloc *alloc;
	uint32_t *ranks;
	struct member *members;
	size_t set_bytes;
	uint32_t slot_bytes;
	uint32_t lane;
	uint32_t coordinator; /* as far as this rank knows */
	uint64_t all_called;  /* by when all who will have called this */
	uint64_t began;	      /* with this coordinator, and not before that */
	uint64_t proposed_at;
	uint32_t passed;       /* coordinators that were silent */
	uint32_t promised;     /* the highest ballot that this rank stated itself to */
	unsigned char *silent; /* who did not answer as coordinator */
	struct proposal own;   /* what this rank coordinates */
	struct proposal accepted;
	uint64_t least; /* of the values heard of */
	bool decided;
	bool held; /* who started it still looks at it */
	enum hk_status status;
	struct hk_why why;
};

/* ---- sets ---- */

static bool set_has(const unsigned char *set, uint32_t rank)
{
	return set[rank / 8] >> (rank % 8) & 1;
}

static void set_add(unsigned char *set, uint32_t rank)
{
	set[rank / 8] |= (unsigned char)(1u << rank % 8);
}

/* ---- who is who ---- */

static uint32_t world_rank(const struct hk__consent *consent, uint32_t rank)
{
	return consent->ranks ? consent->ranks[rank] : rank;
}

static enum hk__peer member_state(const struct hk__consent *consent, uint32_t rank)
{
	const struct hk__health *health = &consent->spec.world->health;

	return (enum hk__peer)health->states[world_rank(consent, rank)];
}

/* For who is silent, from when all have called this. */
static uint64_t gather_ns(const struct hk__consent *consent)
{
	return (consent->spec.timeout_ns - consent->spec.late_ns) / GATHER;
}

/* For good: nothing will ever come from it. */
static bool member_gone(const struct hk__consent *consent, uint32_t rank)
{
	enum hk__peer state = member_state(consent, rank);

	return rank != consent->spec.rank &&
	       (state == HK__PEER_DEAD || state == HK__PEER_LEFT || state == HK__PEER_OUT);
}

static void coordinator_find(struct hk__consent *consent)
{
	uint32_t rank = 0;

	while (rank < consent->spec.rank &&
	       (member_gone(consent, rank) || set_has(consent->silent, rank)))
		rank++;
	if (rank == consent->coordinator)
		return;
	consent->coordinator = rank;
	consent->began = hk__now_ns();
	if (consent->began < consent->all_called)
		consent->began = consent->all_called;
	consent->own.ballot = 0;
}

/* ---- beginning and end ---- */

static void member_close(struct member *member)
{
	if (member->in)
		hk__chan_close(member->in);
	if (member->out)
		hk__chan_close(member->out);
	member->in = member->out = NULL;
}

static void consent_destroy(struct hk__consent *consent)
{
	const struct hk_alloc *alloc = consent->alloc;
	uint32_t n = consent->spec.n;

	for (uint32_t m = 0; consent->members && m < n; m++)
		member_close(&consent->members[m]);
	hk__mem_free(alloc, consent->silent, consent->set_bytes, 1);
	hk__mem_free(alloc, consent->own.lost, consent->set_bytes, 1);
	hk__mem_free(alloc, consent->accepted.lost, consent->set_bytes, 1);
	hk__mem_free(alloc, consent->members, n, sizeof(struct member));
	if (consent->ranks)
		hk__mem_free(alloc, consent->ranks, n, sizeof(uint32_t));
	hk__mem_free(alloc, consent, 1, sizeof(*consent));
}

static enum hk_status consent_alloc(struct hk__consent *consent)
{
	const struct hk_alloc *alloc = consent->alloc;
	uint32_t n = consent->spec.n;

	consent->silent = hk__mem_zalloc(alloc, consent->set_bytes, 1);
	consent->own.lost = hk__mem_zalloc(alloc, consent->set_bytes, 1);
	consent->accepted.lost = hk__mem_zalloc(alloc, consent->set_bytes, 1);
	consent->members = hk__mem_zalloc(alloc, n, sizeof(struct member));
	if (consent->spec.ranks) {
		consent->ranks = hk__mem_zalloc(alloc, n, sizeof(uint32_t));
		if (consent->ranks)
			memcpy(consent->ranks, consent->spec.ranks, n * sizeof(uint32_t));
	}
	return consent->silent && consent->own.lost && consent->accepted.lost && consent->members &&
			       (consent->ranks || !consent->spec.ranks)
		       ? HK_OK
		       : HK_ENOMEM;
}

/* Of those that have ended, the last few are kept to answer others. */
static void consents_trim(struct hk__world *world)
{
	struct hk__consent **link = &world->consents;
	uint32_t kept = 0;

	while (*link) {
		struct hk__consent *consent = *link;

		if (consent->status != HK_INPROGRESS && ++kept > KEPT && !consent->held) {
			*link = consent->next;
			consent_destroy(consent);
		} else {
			link = &consent->next;
		}
	}
}

enum hk_status hk__consent_start(const struct hk__consent_spec *spec,
				 struct hk__consent **consent_out)
{
	struct hk__world *world = spec->world;
	struct hk__consent *consent = hk__mem_zalloc(world->alloc, 1, sizeof(*consent));

	if (!consent)
		return HK_ENOMEM;
	/* Not only where others are served: a program that never waits has these too. */
	consents_trim(world);
	consent->spec = *spec;
	hk_assert(spec->late_ns < spec->timeout_ns);
	consent->all_called = hk__now_ns() + spec->late_ns;
	consent->alloc = world->alloc;
	consent->least = spec->value;
	consent->status = HK_INPROGRESS;
	consent->held = true;
	consent->coordinator = HK_NONE;
	consent->set_bytes = (spec->n + 7) / 8;
	consent->slot_bytes = (uint32_t)(sizeof(struct head) + consent->set_bytes);
	consent->lane = LANE + spec->number % LANES;
	enum hk_status status = consent_alloc(consent);
	if (status != HK_OK) {
		consent_destroy(consent);
		return status;
	}
	consent->next = world->consents;
	world->consents = consent;
	*consent_out = consent;
	return HK_OK;
}

/* ---- messages ---- */

/* The two ends with a member, opened when they are first wanted. */
static enum hk_status member_open(struct hk__consent *consent, uint32_t rank)
{
	struct member *member = &consent->members[rank];
	struct hk_net *net = consent->spec.world->net;
	struct hk_chan_spec spec = { .key = { .peer = world_rank(consent, rank),
					      .from_lane = consent->lane,
					      .to_lane = consent->lane,
					      .context = consent->spec.id.context },
				     .slots = SLOTS,
				     .slot_bytes = consent->slot_bytes };
	enum hk_status status = HK_OK;

	if (!member->in)
		status = hk__chan_open_recv(net, &spec, &member->in);
	if (status == HK_OK && !member->out)
		status = hk__chan_open_send(net, &spec, &member->out);
	return status;
}

/* The connection broke: what was said may be lost, and is said again on the next. */
static void member_reopen(struct member *member)
{
	member_close(member);
	member->told_state = 0;
	member->told_propose = member->told_decide = false;
}

/* What a peer that is out of reach says is nothing; whether it lives will show. */
static bool member_send(struct hk__consent *consent, uint32_t rank, const struct head *head,
			const unsigned char *lost)
{
	struct member *member = &consent->members[rank];
	void *slot;

	if (member_open(consent, rank) != HK_OK)
		return false;
	if (hk__chan_reserve(member->out, consent->slot_bytes, &slot) != HK_OK) {
		member_reopen(member);
		return false;
	}
	if (!slot)
		return false;
	memcpy(slot, head, sizeof(*head));
	memcpy((char *)slot + sizeof(*head), lost, consent->set_bytes);
	hk__chan_post(member->out, consent->slot_bytes, 0);
	return true;
}

static void proposal_take(struct hk__consent *consent, struct proposal *to, uint32_t ballot,
			  uint64_t value, const unsigned char *lost)
{
	to->ballot = ballot;
	to->value = value;
	memmove(to->lost, lost, consent->set_bytes);
}

/* ---- the others' side ---- */

static void decide(struct hk__consent *consent, const struct proposal *proposal)
{
	struct hk__decided decided = { consent->spec.id, consent->spec.number, proposal->ballot };

	if (consent->status != HK_INPROGRESS)
		return;
	if (proposal != &consent->accepted)
		proposal_take(consent, &consent->accepted, proposal->ballot, proposal->value,
			      proposal->lost);
	hk__health_tell_decided(consent->spec.world, &decided);
	consent->decided = true;
	consent->status = HK_OK;
	if (set_has(consent->accepted.lost, consent->spec.rank))
		consent->status = hk__why(&consent->why, HK_EPEER,
					  "rank %u: the others continued without this rank: it did "
					  "not answer in time",
					  consent->spec.rank);
}

static bool state_tell(struct hk__consent *consent)
{
	uint32_t to = consent->coordinator, ballot = to + 1;
	struct head head = { .kind = STATE,
			     .ballot = ballot,
			     .accepted = consent->accepted.ballot,
			     .decided = consent->decided,
			     .value = consent->spec.value,
			     .accepted_value = consent->accepted.value };

	if (consent->members[to].told_state == ballot)
		return false;
	if (!member_send(consent, to, &head, consent->accepted.lost))
		return false;
	consent->members[to].told_state = ballot;
	consent->promised = hk__max(consent->promised, ballot);
	return true;
}

/* ---- the coordinator's side ---- */

static void state_hear(struct hk__consent *consent, uint32_t from, const struct head *head,
		       const unsigned char *lost)
{
	/* It may know before this rank does that this one coordinates. */
	if (head->ballot != consent->spec.rank + 1)
		return;
	consent->members[from].stated = true;
	if (head->value < consent->least)
		consent->least = head->value;
	struct proposal told = { head->accepted, head->accepted_value, (unsigned char *)lost };

	if (consent->status != HK_INPROGRESS)
		return;
	if (head->decided && head->accepted)
		decide(consent, &told);
	else if (head->accepted > consent->accepted.ballot)
		proposal_take(consent, &consent->accepted, told.ballot, told.value, told.lost);
}

/* Whether there is nothing to wait for from a member any more. */
static bool member_settled(struct hk__consent *consent, uint32_t rank, uint64_t now)
{
	struct member *member = &consent->members[rank];

	if (rank == consent->spec.rank || member->stated || set_has(consent->silent, rank) ||
	    member_state(consent, rank) >= HK__PEER_OUT)
		return true;
	if (member_state(consent, rank) != HK__PEER_OK) {
		if (!member->lost_since)
			member->lost_since = now;
		/* Lost: it may connect again. Left: what it said last may be under way. */
		if (now - member->lost_since > consent->spec.silence_ns)
			return true;
	}
	return now > consent->began && now - consent->began > gather_ns(consent);
}

/* To all who answered and have not got it yet; what is decided, to all. */
static void spread(struct hk__consent *consent, enum kind kind, bool *moved)
{
	/* What was decided may be another's, whatever this one has proposed. */
	const struct proposal *what = kind == DECIDE ? &consent->accepted : &consent->own;
	struct head head = { .kind = kind, .ballot = what->ballot, .value = what->value };

	for (uint32_t r = 0; r < consent->spec.n; r++) {
		struct member *member = &consent->members[r];
		bool *told = kind == PROPOSE ? &member->told_propose : &member->told_decide;

		if (r == consent->spec.rank || *told || member_gone(consent, r) ||
		    (kind != DECIDE && !member->stated))
			continue; /* one that states itself later is told later */
		*told = member_send(consent, r, &head, what->lost);
		*moved |= *told;
	}
}

/*
 * Whether these may go on without the others. Any two sets that may have a rank in
 * common: more than half of all that the group began with, or half with its first.
 * Counting the dead out would not do, as some may have agreed, without this rank,
 * before they died. Where everybody else is dead there is nobody to differ from.
 */
static bool is_quorum(const struct hk__consent *consent, bool (*has)(const struct member *))
{
	uint32_t n = consent->spec.n, in = 0, out = 0;
	bool first = false;

	for (uint32_t r = 0; r < n; r++) {
		bool self = r == consent->spec.rank;

		if (self || (!member_gone(consent, r) && has(&consent->members[r]))) {
			in++;
			first |= r == 0;
		} else {
			out += member_state(consent, r) != HK__PEER_DEAD;
		}
	}
	return out == 0 || 2 * in > n || (2 * in == n && first);
}

static bool has_stated(const struct member *member)
{
	return member->stated;
}

static bool has_accepted(const struct member *member)
{
	return member->accepted;
}

static bool majority(struct hk__consent *consent)
{
	uint32_t answered = 1;

	if (is_quorum(consent, has_stated))
		return true;
	for (uint32_t r = 0; r < consent->spec.n; r++)
		answered += r != consent->spec.rank && !member_gone(consent, r) &&
			    consent->members[r].stated;
	consent->status = hk__why(&consent->why, HK_EPEER,
				  "rank %u: only %u of %u ranks can be reached: the others may "
				  "continue, these must not",
				  consent->spec.rank, answered, consent->spec.n);
	return false;
}

static bool propose(struct hk__consent *consent, uint64_t now, bool *moved)
{
	uint32_t self = consent->spec.rank;

	for (uint32_t r = 0; r < consent->spec.n; r++)
		if (!member_settled(consent, r, now))
			return false;
	if (!majority(consent)) {
		consent->own.ballot = self + 1;
		spread(consent, REFUSE, moved);
		return true;
	}
	if (consent->accepted.ballot) {
		proposal_take(consent, &consent->own, self + 1, consent->accepted.value,
			      consent->accepted.lost);
	} else {
		consent->own.ballot = self + 1;
		consent->own.value = consent->least;
		memset(consent->own.lost, 0, consent->set_bytes);
		for (uint32_t r = 0; r < consent->spec.n; r++)
			if (r != self && (!consent->members[r].stated || member_gone(consent, r)))
				set_add(consent->own.lost, r);
	}
	proposal_take(consent, &consent->accepted, self + 1, consent->own.value, consent->own.lost);
	consent->proposed_at = now;
	return true;
}

/* Decided is what enough ranks have accepted; those who are late are waited for a while. */
static bool all_accepted(const struct hk__consent *consent, uint64_t now)
{
	bool late = now - consent->proposed_at > gather_ns(consent);

	for (uint32_t r = 0; r < consent->spec.n && !late; r++) {
		const struct member *member = &consent->members[r];

		if (r != consent->spec.rank && member->stated && !member->accepted &&
		    member_state(consent, r) == HK__PEER_OK)
			return false;
	}
	return is_quorum(consent, has_accepted);
}

static void coordinate(struct hk__consent *consent, bool *moved)
{
	uint64_t now = hk__now_ns();

	if (!consent->decided && !consent->own.ballot && propose(consent, now, moved))
		*moved = true;
	if (consent->status == HK_INPROGRESS && consent->own.ballot) {
		spread(consent, PROPOSE, moved);
		if (all_accepted(consent, now)) {
			decide(consent, &consent->own);
			*moved = true;
		}
	}
	/* Here, or under another, who may be gone: for those who have not heard. */
	if (consent->decided)
		spread(consent, DECIDE, moved);
}

/* ---- both ---- */

static void propose_hear(struct hk__consent *consent, uint32_t from, const struct head *head,
			 const unsigned char *lost)
{
	struct head answer = { .kind = ACCEPT, .ballot = head->ballot };

	if (head->ballot != from + 1 || head->ballot < consent->accepted.ballot ||
	    head->ballot < consent->promised)
		return;
	if (consent->status == HK_INPROGRESS)
		proposal_take(consent, &consent->accepted, head->ballot, head->value, lost);
	/* A full channel: it is the coordinator's patience that ends then. */
	(void)member_send(consent, from, &answer, consent->accepted.lost);
}

static void message_hear(struct hk__consent *consent, uint32_t from, const unsigned char *bytes)
{
	struct head head;
	const unsigned char *lost = bytes + sizeof(head);

	memcpy(&head, bytes, sizeof(head));
	if (head.ballot == 0 || head.ballot > consent->spec.n || head.accepted > consent->spec.n)
		return;
	if (head.kind == STATE) {
		state_hear(consent, from, &head, lost);
	} else if (head.kind == PROPOSE) {
		propose_hear(consent, from, &head, lost);
	} else if (head.kind == ACCEPT && head.ballot == consent->own.ballot) {
		consent->members[from].accepted = true;
	} else if (head.kind == DECIDE) {
		struct proposal proposal = { head.ballot, head.value, (unsigned char *)lost };

		decide(consent, &proposal);
	} else if (head.kind == REFUSE && consent->status == HK_INPROGRESS) {
		consent->status = hk__why(&consent->why, HK_EPEER,
					  "rank %u: rank %u says that too few ranks can be "
					  "reached: the others may continue, these must not",
					  consent->spec.rank, from);
	}
}

static void hear_all(struct hk__consent *consent, bool *moved)
{
	for (uint32_t r = 0; r < consent->spec.n; r++) {
		struct member *member = &consent->members[r];
		enum hk_status status = HK_OK;
		struct hk_message message = { 0 };

		while (member->in && status == HK_OK) {
			status = hk__chan_peek(member->in, &message);
			if (status != HK_OK || !message.data)
				break;
			struct hk_chan *in = member->in;
			if (message.len == consent->slot_bytes)
				message_hear(consent, r, message.data);
			*moved = true;
			if (member->in != in)
				break; /* closed while it was answered */
			status = hk__chan_release(in);
		}
		if (status != HK_OK)
			member_reopen(member);
	}
}

/* A coordinator that lives but says nothing is passed over. */
static void patience_end(struct hk__consent *consent)
{
	uint64_t now = hk__now_ns();
	/* Long enough for it to have passed over who is silent to it. */
	uint64_t patience = gather_ns(consent) * (consent->passed ? 2 : 3);
	uint32_t rank = consent->coordinator;

	if (rank == consent->spec.rank)
		return;
	if (member_state(consent, rank) == HK__PEER_LOST) {
		struct member *member = &consent->members[rank];

		if (!member->lost_since)
			member->lost_since = now;
		if (now - member->lost_since > consent->spec.silence_ns)
			set_add(consent->silent, rank);
	}
	if (now > consent->began && now - consent->began > patience &&
	    !set_has(consent->silent, rank)) {
		set_add(consent->silent, rank);
		consent->passed++;
	}
}

static void consent_move(struct hk__consent *consent, bool *moved)
{
	struct hk__decided decided = { consent->spec.id, consent->spec.number,
				       consent->accepted.ballot };

	coordinator_find(consent);
	if (consent->coordinator == consent->spec.rank) {
		for (uint32_t r = 0; r < consent->spec.n; r++)
			if (r != consent->spec.rank && !member_gone(consent, r))
				(void)member_open(consent, r);
	} else {
		*moved |= state_tell(consent);
	}
	hear_all(consent, moved);
	if (consent->status == HK_INPROGRESS && consent->accepted.ballot &&
	    hk__health_has_decided(&consent->spec.world->health, &decided))
		decide(consent, &consent->accepted);
	if (consent->coordinator == consent->spec.rank)
		coordinate(consent, moved);
	else if (consent->status == HK_INPROGRESS)
		patience_end(consent);
}

enum hk_status hk__consent_poll(struct hk__consent *consent, bool *moved)
{
	enum hk_status before = consent->status;

	if (before == HK_INPROGRESS)
		consent_move(consent, moved);
	if (before == HK_INPROGRESS && consent->status != HK_INPROGRESS)
		*moved = true;
	return consent->status;
}

void hk__consent_give_up(struct hk__consent *consent, enum hk_status status)
{
	if (consent->status == HK_INPROGRESS)
		consent->status = status;
}

void hk__consent_release(struct hk__consent *consent)
{
	consent->held = false;
}

struct hk__consent *hk__consent_next(const struct hk__consent *consent)
{
	return consent->next;
}

const enum hk_status *hk__consent_status(const struct hk__consent *consent)
{
	return &consent->status;
}

const char *hk__consent_why(const struct hk__consent *consent)
{
	return consent->why.text;
}

uint64_t hk__consent_value(const struct hk__consent *consent)
{
	return consent->accepted.value;
}

bool hk__consent_has(const struct hk__consent *consent, uint32_t rank)
{
	return !set_has(consent->accepted.lost, rank);
}

void hk__consent_describe(const struct hk__consent *consent, struct hk__text *text)
{
	if (consent->coordinator != consent->spec.rank) {
		hk__text_add(text, "waits for rank %u, which coordinates", consent->coordinator);
		return;
	}
	hk__text_add(text, "coordinates, and waits for");
	for (uint32_t r = 0, named = 0; r < consent->spec.n && named < 8; r++) {
		const struct member *member = &consent->members[r];
		bool done =
			consent->own.ballot ? member->accepted || !member->stated : member->stated;

		if (r != consent->spec.rank && !done && !member_gone(consent, r))
			hk__text_add(text, "%s rank %u", named++ ? "," : "", r);
	}
}

/* ---- after the end ---- */

void hk__consents_serve(struct hk__world *world)
{
	bool moved = false;

	consents_trim(world);
	for (struct hk__consent *consent = world->consents; consent; consent = consent->next)
		if (consent->decided)
			consent_move(consent, &moved);
}

void hk__consents_end(struct hk__world *world)
{
	while (world->consents) {
		struct hk__consent *consent = world->consents;

		world->consents = consent->next;
		consent_destroy(consent);
	}
}
