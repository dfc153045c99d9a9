/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lead.c - rank 0: waits for all others at a gate, compares what they say,
 * numbers the hosts, and gives everybody the table.
 *
 * If it comes to nothing, those who have come, and those who still come in a
 * moment, get the line that says why.
 *
 * Where a group grows, its members have to come, and any newcomers will do: one
 * that leaves is replaced by the next, one too many is hung up on, and so is one
 * at a start: it stays in line, and comes again.
 */
#include "boot/gate.h"
#include "base/fork.h"
#include "boot/meet.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define BIND_NS (3 * HK__SECOND_NS)   /* for who held the port to leave */
#define LINGER_NS (2 * HK__SECOND_NS) /* to say why */
#define MISSING_SHOWN 8u
#define LIMIT_SPARE 64u /* descriptors besides those of guests */

/* Why one guest is turned away, while the others go on. */
enum refusal {
	REFUSAL_MEMORY,
	REFUSAL_STRAY,
	REFUSALS
};

static const char *const refusal_texts[REFUSALS] = {
	"the group shares memory where this newcomer does not, or the other way round: give it "
	"the HOCKET_NET of the group",
	"the group runs already, and only takes newcomers in: come as HOCKET_RANK=new",
};

struct lead {
	const struct hk__boot_spec *spec;
	const struct hk_alloc *alloc;
	struct hk_why why;
	uint64_t deadline_ns;
	struct hk__places places;
	struct hk__place place; /* of the gate */
	bool anywhere;		/* the gate is at all addresses of this host */
	int gate_fd;
	struct hk__gate *gate;
	struct hk__hello *hellos; /* of all ranks; n is 0: not come */
	uint32_t *guests;	  /* of all ranks: their numbers at the gate */
	uint32_t *ranks;	  /* of all guests; HK_NONE: not there */
	uint32_t room;		  /* of guests */
	uint32_t came;
	struct hk__place data; /* of rank 0 */
	unsigned char *bytes;  /* what all are told */
	size_t bytes_len;
	unsigned char refusals[REFUSALS][HK__ANSWER_BYTES + 160];
};

/* Ranks below this have to come as themselves. */
static uint32_t lead_members(const struct lead *lead)
{
	return lead->spec->meeting ? lead->spec->members : lead->spec->n;
}

/* ---- the gate ---- */

/* errno says why not. */
static bool gate_at(struct lead *lead, const struct hk__place *at)
{
	for (uint32_t i = 0; i < lead->places.nports; i++) {
		lead->place = *at;
		hk__place_port_set(&lead->place, lead->places.ports[i]);
		if (hk__place_listen(&lead->place, &lead->gate_fd) == HK_OK)
			return true;
		if (errno != EADDRINUSE)
			return false;
	}
	return false;
}

/* At the address that others know, if it is one of this host. */
static bool gate_try(struct lead *lead)
{
	struct hk__place any6 = hk__place_any(AF_INET6), any4 = hk__place_any(AF_INET);

	for (uint32_t i = 0; !lead->places.by_own_name && i < lead->places.count; i++) {
		if (gate_at(lead, &lead->places.at[i]))
			return true;
		if (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT)
			return false;
	}
	/* It may be one that leads to this host without being its own. */
	if (lead->spec->host_found && !lead->places.by_own_name)
		return false;
	lead->anywhere = true;
	return gate_at(lead, &any6) || (errno != EADDRINUSE && gate_at(lead, &any4));
}

static enum hk_status gate_failed(struct lead *lead, int error)
{
	struct hk__text where;
	char room[256];

	hk__text_init(&where, room, sizeof(room));
	hk__places_text(lead->spec, &lead->places, &where);
	if (error == EADDRNOTAVAIL && lead->spec->host_found && lead->spec->meeting)
		return hk__why(&lead->why, HK_EINVAL,
			       "rank 0 is no longer on %s, where the job began: give "
			       "hk_group_grow an address of its host",
			       lead->spec->host);
	if (error == EADDRNOTAVAIL && lead->spec->host_found)
		return hk__why(&lead->why, HK_EINVAL,
			       "rank 0 is not on %s, where %s tells the others to find it: set "
			       "HOCKET_ADDR=host:port of rank 0",
			       lead->spec->host, lead->spec->launcher);
	return hk__why(&lead->why, HK_EIO,
		       "rank 0 cannot listen at %s: %s; choose another port (HOCKET_ADDR), or wait "
		       "until the other job has ended",
		       room, strerrordesc_np(error));
}

static enum hk_status gate_open(struct lead *lead)
{
	uint64_t until_ns = hk__now_ns() + BIND_NS, pause_ns = 0;
	enum hk_status status;

	if (until_ns > lead->deadline_ns)
		until_ns = lead->deadline_ns;
	/* A name may become known only after its host is up. */
	while ((status = hk__places_find(lead->spec, &lead->why, &lead->places)) != HK_OK) {
		if (hk__now_ns() >= until_ns)
			return status;
		hk__conn_pause(&pause_ns, until_ns);
	}
	while (!gate_try(lead)) {
		int error = errno;

		if (error != EADDRINUSE || hk__now_ns() >= until_ns)
			return gate_failed(lead, error);
		hk__conn_pause(&pause_ns, until_ns);
	}
	struct hk__gate_spec spec = { .listen_fd = lead->gate_fd,
				      .key = lead->spec->key,
				      .purpose = "meet",
				      .who = "rank 0, where ranks meet,",
				      .hello_len = HK__HELLO_BYTES,
				      .guests = lead->spec->n - 1,
				      .alloc = lead->alloc };
	status = hk__gate_create(&spec, &lead->gate);
	if (status != HK_OK)
		return hk__why(&lead->why, status, "rank 0 cannot wait for %u ranks: %s",
			       spec.guests,
			       status == HK_ENOMEM ? "no memory" : strerrordesc_np(errno));
	lead->room = hk__gate_room(lead->gate);
	return HK_OK;
}

/* ---- who comes ---- */

static void guest_text(const struct lead *lead, uint32_t guest, char text_out[HK__PLACE_TEXT])
{
	struct hk__place place = { .len = sizeof(place.addr) };

	if (getpeername(hk__gate_fd(lead->gate, guest), (struct sockaddr *)&place.addr,
			&place.len) == 0)
		hk__place_text(&place, text_out);
	else
		(void)snprintf(text_out, HK__PLACE_TEXT, "a place unknown");
}

static enum hk_status guest_refuse(struct lead *lead, uint32_t guest, const struct hk__hello *hello)
{
	const struct hk__hello *own = &lead->hellos[0];
	char text[HK__PLACE_TEXT], other[HK__PLACE_TEXT] = "rank 0 itself";

	guest_text(lead, guest, text);
	if (hello->n != own->n)
		return hk__why(&lead->why, HK_EINVAL,
			       "rank %u, from %s, says %u ranks, rank 0 says %u: %s all ranks "
			       "with the same number",
			       hello->rank, text, hello->n, own->n,
			       lead->spec->meeting ? "grow" : "start");
	if (hello->share != own->share || hello->segment_bytes != own->segment_bytes)
		return hk__why(&lead->why, HK_EINVAL,
			       "rank %u, from %s, shares %" PRIu64
			       " bytes of memory, rank 0 %" PRIu64
			       ": give all ranks the same HOCKET_NET and options",
			       hello->rank, text, hello->segment_bytes, own->segment_bytes);
	if (hello->encrypt != own->encrypt)
		return hk__why(&lead->why, HK_EINVAL,
			       "rank %u, from %s, %s, rank 0 does%s: give all ranks the same "
			       "HOCKET_ENCRYPT",
			       hello->rank, text, hello->encrypt ? "encrypts" : "does not encrypt",
			       own->encrypt ? "" : " not");
	if (hello->rank)
		guest_text(lead, lead->guests[hello->rank], other);
	return hk__why(
		&lead->why, HK_EINVAL,
		"rank %u joined twice, from %s and from %s: give each process a rank of its own",
		hello->rank, other, text);
}

/* Where rank 0 takes data connections if its gate is anywhere: where others reach it. */
static void data_prefer(struct lead *lead, uint32_t guest)
{
	struct hk__place here;

	if (!lead->anywhere || hk__place_of(hk__gate_fd(lead->gate, guest), &here) != HK_OK)
		return;
	if (!lead->data.len ||
	    (hk__place_is_loopback(&lead->data) && !hk__place_is_loopback(&here)))
		lead->data = here;
}

static void guest_seat(struct lead *lead, uint32_t guest, const struct hk__hello *hello)
{
	lead->hellos[hello->rank] = *hello;
	lead->guests[hello->rank] = guest;
	lead->ranks[guest] = hello->rank;
	lead->came++;
	data_prefer(lead, guest);
}

/* It has no part in this: it is told so, and the others go on. */
static void guest_turn_away(struct lead *lead, uint32_t guest, enum refusal refusal)
{
	unsigned char *bytes = lead->refusals[refusal];
	size_t len = strlen(refusal_texts[refusal]);

	hk_assert(HK__ANSWER_BYTES + len <= sizeof(lead->refusals[refusal]));
	hk__answer_write(HK_EINVAL, (uint32_t)len, bytes);
	memcpy(bytes + HK__ANSWER_BYTES, refusal_texts[refusal], len);
	lead->ranks[guest] = HK_NONE;
	hk__gate_tell(lead->gate, guest,
		      &(struct hk__gate_message){ .bytes = bytes, .len = HK__ANSWER_BYTES + len });
}

/* A newcomer gets the lowest rank that is left. */
static void newcomer_add(struct lead *lead, uint32_t guest, struct hk__hello *hello)
{
	const struct hk__hello *own = &lead->hellos[0];
	uint32_t rank = lead_members(lead);

	while (rank < lead->spec->n && lead->hellos[rank].n)
		rank++;
	if (rank == lead->spec->n) {
		lead->ranks[guest] = HK_NONE;
		hk__gate_drop(lead->gate, guest); /* and stays in line */
		return;
	}
	if (hello->share != own->share || hello->segment_bytes != own->segment_bytes) {
		guest_turn_away(lead, guest, REFUSAL_MEMORY);
		return;
	}
	hello->rank = rank;
	hello->n = own->n;
	guest_seat(lead, guest, hello);
}

static enum hk_status guest_add(struct lead *lead, uint32_t guest, const unsigned char *bytes)
{
	const struct hk__hello *own = &lead->hellos[0];
	struct hk__hello hello;
	bool reads = hk__hello_read(bytes, &hello);

	if (reads && hello.rank == HK_NONE && hello.n == 0 && !hello.meeting) {
		newcomer_add(lead, guest, &hello);
		return HK_OK;
	}
	if ((lead->spec->meeting && !reads) || (reads && hello.meeting != lead->spec->meeting)) {
		guest_turn_away(lead, guest, REFUSAL_STRAY);
		return HK_OK;
	}
	lead->ranks[guest] = 0; /* a guest to be told, whatever it says */
	if (!reads || (hello.n == own->n && hello.rank >= lead_members(lead)))
		return hk__why(&lead->why, HK_EIO, "a rank sent an invalid hello");
	if (hello.n != own->n || hello.share != own->share ||
	    hello.segment_bytes != own->segment_bytes || hello.encrypt != own->encrypt ||
	    lead->hellos[hello.rank].n)
		return guest_refuse(lead, guest, &hello);
	guest_seat(lead, guest, &hello);
	return HK_OK;
}

/* "ranks 3, 7 and 12 others of 64" */
static void missing_show(const struct lead *lead, uint32_t missing, struct hk__text *text)
{
	uint32_t members = lead_members(lead), shown = 0;

	hk__text_add(text, "rank%s", missing > 1 ? "s" : "");
	for (uint32_t r = 1; r < members && shown < MISSING_SHOWN; r++) {
		if (lead->hellos[r].n)
			continue;
		bool last = shown > 0 && shown + 1 == missing;

		hk__text_add(text, "%s%u", last ? " and " : shown ? ", " : " ", r);
		shown++;
	}
	if (missing > shown)
		hk__text_add(text, " and %u other%s", missing - shown,
			     missing - shown > 1 ? "s" : "");
	hk__text_add(text, " of %u", members);
}

/* "ranks 3, 7 and 12 others of 64 have not joined at HOST:PORT in 60 s" */
static enum hk_status lead_too_late(struct lead *lead)
{
	uint32_t missing = 0, absent = lead->spec->n - lead->came;
	uint32_t denied = hk__gate_denied(lead->gate), strangers = hk__gate_strangers(lead->gate);
	struct hk__text text;
	char room[HK_WHY_MAX], where[HK__PLACE_TEXT];

	hk__text_init(&text, room, sizeof(room));
	for (uint32_t r = 1; r < lead_members(lead); r++)
		missing += lead->hellos[r].n == 0;
	if (missing)
		missing_show(lead, missing, &text);
	if (absent > missing)
		hk__text_add(&text, "%s%u of %u newcomer%s", missing ? " and " : "",
			     absent - missing, lead->spec->n - lead_members(lead),
			     lead->spec->n - lead_members(lead) > 1 ? "s" : "");
	hk__place_text(&lead->place, where);
	hk__text_add(&text, " %s not joined at %s%s%s in %.3g s", absent > 1 ? "have" : "has",
		     lead->anywhere ? lead->spec->host : "", lead->anywhere ? " by " : "", where,
		     (double)lead->spec->timeout_ns / (double)HK__SECOND_NS);
	if (denied)
		hk__text_add(&text, "; %u had another key: give all the same HOCKET_KEY", denied);
	if (strangers)
		hk__text_add(&text, "; %u connected and did not authenticate", strangers);
	return hk__why(&lead->why, HK_ETIMEDOUT, "%s", room);
}

static enum hk_status gate_broken(struct lead *lead)
{
	return hk__why(&lead->why, HK_EIO,
		       "rank 0 can take no more connections: %s; %u of %u ranks had joined%s",
		       strerrordesc_np(errno), lead->came, lead->spec->n,
		       errno == EMFILE ? "; raise ulimit -n" : "");
}

/* The seat of a newcomer is for the next one; a member's is not. */
static enum hk_status guest_left(struct lead *lead, uint32_t guest)
{
	uint32_t rank = lead->ranks[guest];

	lead->ranks[guest] = HK_NONE;
	if (rank == HK_NONE)
		return HK_OK; /* one that was turned away */
	if (rank < lead_members(lead))
		return hk__why(
			&lead->why, HK_EPEER,
			"rank %u joined, and left before all ranks had joined; see its own message",
			rank);
	lead->hellos[rank].n = 0;
	lead->came--;
	return HK_OK;
}

static enum hk_status lead_gather(struct lead *lead)
{
	enum hk_status status = HK_OK;

	while (lead->came < lead->spec->n && status == HK_OK) {
		struct hk__gate_event event;

		if (hk__gate_next(lead->gate, hk__meet_look_at(lead->spec, lead->deadline_ns),
				  &event) != HK_OK)
			return gate_broken(lead);
		if (event.what == HK__GATE_TIMEOUT)
			status = hk__meet_look(lead->spec, lead->deadline_ns, &lead->why);
		else if (event.what == HK__GATE_CAME)
			status = guest_add(lead, event.guest, event.hello);
		else
			status = guest_left(lead, event.guest);
	}
	return status == HK_ETIMEDOUT ? lead_too_late(lead) : status;
}

static bool hosts_same(const struct hk__hello *a, const struct hk__hello *b)
{
	return memcmp(a->host, b->host, HK__HOST_BYTES) == 0;
}

static void seat_move(struct lead *lead, uint32_t from, uint32_t to)
{
	struct hk__hello hello = lead->hellos[from];
	uint32_t guest = lead->guests[from];

	memmove(lead->hellos + to + 1, lead->hellos + to, (from - to) * sizeof(hello));
	memmove(lead->guests + to + 1, lead->guests + to, (from - to) * sizeof(guest));
	lead->hellos[to] = hello;
	lead->guests[to] = guest;
	for (uint32_t r = to; r <= from; r++) {
		lead->hellos[r].rank = r;
		lead->ranks[lead->guests[r]] = r;
	}
}

/* Newcomers of one host sit side by side, as plans of two levels want it. */
static void newcomers_arrange(struct lead *lead)
{
	uint32_t members = lead_members(lead);

	for (uint32_t r = members; r < lead->spec->n; r++) {
		uint32_t to = r;

		while (to >= members && !hosts_same(&lead->hellos[to - 1], &lead->hellos[r]))
			to--;
		if (to >= members && to < r)
			seat_move(lead, r, to);
	}
}

/* ---- what they are told ---- */

static enum hk_status answer_make(struct lead *lead, enum hk_status status, size_t len)
{
	lead->bytes_len = HK__ANSWER_BYTES + len;
	lead->bytes = hk__mem_zalloc(lead->alloc, lead->bytes_len, 1);
	if (!lead->bytes)
		return hk__why(&lead->why, HK_ENOMEM, "no memory for an answer to %u ranks",
			       lead->spec->n);
	hk__answer_write(status, (uint32_t)len, lead->bytes);
	return HK_OK;
}

/* Newcomers are told nothing of a meeting that failed: they see the connection end, and come again. */
static bool guest_is_newcomer(const unsigned char *bytes)
{
	struct hk__hello hello;

	return hk__hello_read(bytes, &hello) && hello.rank == HK_NONE;
}

/* Says why there will be no group to all who are there, or come in a moment. */
static void lead_dissolve(struct lead *lead, enum hk_status status)
{
	uint64_t until_ns = hk__now_ns() + LINGER_NS;
	uint32_t left = 0, told = 0, members = lead_members(lead);
	struct hk_why why = lead->why;

	if (answer_make(lead, status, strlen(why.text)) != HK_OK)
		return;
	memcpy(lead->bytes + HK__ANSWER_BYTES, why.text, strlen(why.text));
	struct hk__gate_message message = { .bytes = lead->bytes, .len = lead->bytes_len };
	for (uint32_t g = 0; g < lead->room; g++) {
		if (lead->ranks[g] >= members)
			continue;
		hk__gate_tell(lead->gate, g, &message);
		left++;
	}
	told = left;
	/* Of those who are too late, nobody waits for more. */
	while (left || (told + 1 < members && status == HK_EINVAL)) {
		struct hk__gate_event event;

		if (hk__gate_next(lead->gate, until_ns, &event) != HK_OK ||
		    event.what == HK__GATE_TIMEOUT)
			return;
		bool came = event.what == HK__GATE_CAME;
		if (came && guest_is_newcomer(event.hello)) {
			lead->ranks[event.guest] = HK_NONE;
			hk__gate_drop(lead->gate, event.guest);
		} else if (came) {
			lead->ranks[event.guest] = 0;
			hk__gate_tell(lead->gate, event.guest, &message);
			left++;
			told++;
		} else if (lead->ranks[event.guest] < members) {
			left--;
		}
	}
}

/* Hosts are numbered by their lowest rank. */
static enum hk_status hosts_number(struct lead *lead, struct hk__boot_peer *peers)
{
	struct hk__hash nodes;
	struct hk__array counts; /* of the ranks of each node */
	enum hk_status status = HK_ENOMEM;

	hk__hash_init(&nodes, lead->alloc);
	hk__array_init(&counts, lead->alloc, sizeof(uint32_t));
	for (uint32_t r = 0; r < lead->spec->n; r++) {
		const struct hk__hello *hello = &lead->hellos[r];
		uint64_t host[2];

		memcpy(host, hello->host, sizeof(host));
		struct hk__hash_entry *entry = hk__hash_get(&nodes, host[0], host[1]);
		if (!entry)
			goto done;
		if (entry->value == HK_NONE) {
			entry->value = (uint32_t)counts.count;
			if (!hk__array_push(&counts))
				goto done;
		}
		uint32_t *count = hk__array_at(&counts, entry->value);
		peers[r] = (struct hk__boot_peer){ .node = entry->value,
						   .local = (*count)++,
						   .addr = hello->place.addr,
						   .addr_len = hello->place.len,
						   .quiet_port = hello->quiet_port,
						   .info = hello->info };
	}
	status = HK_OK;
done:
	hk__array_fini(&counts);
	hk__hash_fini(&nodes);
	return status == HK_OK ? HK_OK
			       : hk__why(&lead->why, status, "no memory for a table of hosts");
}

static enum hk_status confirmations(struct lead *lead)
{
	for (uint32_t left = lead->spec->n - 1; left > 0; left--) {
		struct hk__gate_event event;

		do {
			enum hk_status status =
				hk__gate_next(lead->gate, lead->deadline_ns + HK__GRACE_NS, &event);

			if (status != HK_OK)
				return gate_broken(lead);
			/* One too many is told nothing, and sees the connection end. */
			if (event.what == HK__GATE_CAME)
				lead->ranks[event.guest] = HK_NONE;
		} while (event.what != HK__GATE_TIMEOUT && lead->ranks[event.guest] == HK_NONE);
		if (event.what == HK__GATE_TIMEOUT)
			return hk__why(&lead->why, HK_ETIMEDOUT,
				       "%u of %u ranks joined, but did not take the table in time",
				       left, lead->spec->n);
		if (event.what == HK__GATE_GONE)
			return hk__why(
				&lead->why, HK_EPEER,
				"rank %u left after all ranks had joined; see its own message",
				lead->ranks[event.guest]);
	}
	return HK_OK;
}

static enum hk_status lead_tell(struct lead *lead, struct hk__table *table)
{
	enum hk_status status = answer_make(lead, HK_OK, hk__table_bytes(table->n));

	if (status != HK_OK)
		return status;
	hk__table_write(table, lead->bytes + HK__ANSWER_BYTES);
	struct hk__gate_message message = { .bytes = lead->bytes, .len = lead->bytes_len };
	for (uint32_t r = 1; r < table->n; r++)
		hk__gate_tell(lead->gate, lead->guests[r], &message);
	return confirmations(lead);
}

/* ---- the meeting ---- */

/* Each guest is a descriptor. The limit is the process's: it is not the library's to change. */
static enum hk_status limit_check(struct lead *lead)
{
	rlim_t want = (rlim_t)lead->spec->n + LIMIT_SPARE;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= want)
		return HK_OK;
	return hk__why(&lead->why, HK_ELIMIT,
		       "rank 0 needs about %llu descriptors to meet %u ranks, and may open %llu: "
		       "raise its limit (ulimit -n; up to %llu without privileges)",
		       (unsigned long long)want, lead->spec->n, (unsigned long long)limit.rlim_cur,
		       (unsigned long long)limit.rlim_max);
}

static enum hk_status lead_prepare(struct lead *lead)
{
	enum hk_status status = limit_check(lead);

	if (status == HK_OK)
		status = gate_open(lead);
	if (status != HK_OK)
		return status;
	lead->hellos = hk__mem_zalloc(lead->alloc, lead->spec->n, sizeof(struct hk__hello));
	lead->guests = hk__mem_zalloc(lead->alloc, lead->spec->n, sizeof(uint32_t));
	lead->ranks = hk__mem_zalloc(lead->alloc, lead->room, sizeof(uint32_t));
	if (!lead->hellos || !lead->guests || !lead->ranks)
		return hk__why(&lead->why, HK_ENOMEM, "no memory for a table of %u ranks",
			       lead->spec->n);
	for (uint32_t g = 0; g < lead->room; g++)
		lead->ranks[g] = HK_NONE;
	hk__meet_hello(lead->spec, &lead->hellos[0]);
	lead->came = 1;
	if (!lead->anywhere)
		lead->data = lead->place;
	return HK_OK;
}

static void lead_finish(struct lead *lead)
{
	hk__gate_destroy(lead->gate);
	if (lead->gate_fd >= 0)
		hk__fd_close(lead->gate_fd);
	hk__mem_free(lead->alloc, lead->bytes, lead->bytes_len, 1);
	hk__mem_free(lead->alloc, lead->ranks, lead->room, sizeof(uint32_t));
	hk__mem_free(lead->alloc, lead->guests, lead->spec->n, sizeof(uint32_t));
	hk__mem_free(lead->alloc, lead->hellos, lead->spec->n, sizeof(struct hk__hello));
}

static enum hk_status lead_meet(struct lead *lead, struct hk__boot *boot,
				unsigned char run_out[HK__RUN_BYTES])
{
	struct hk__table table = { .n = lead->spec->n, .peers = boot->peers };
	enum hk_status status = lead_prepare(lead);

	if (status != HK_OK)
		return status;
	if (lead->spec->opened)
		status = lead->spec->opened(lead->spec->ctx, hk__place_port(&lead->place),
					    &lead->why);
	if (status == HK_OK)
		status = lead_gather(lead);
	if (status == HK_OK)
		newcomers_arrange(lead);
	if (status == HK_OK)
		status = hk__meet_listen(lead->spec, &lead->data, &lead->why,
					 &lead->hellos[0].place, &boot->listen_fd);
	if (status == HK_OK)
		status = hk__meet_quiet(lead->spec, &lead->hellos[0].place, &lead->why,
					&lead->hellos[0].quiet_port, &boot->quiet_fd);
	if (status == HK_OK)
		status = hosts_number(lead, boot->peers);
	if (status != HK_OK) {
		lead_dissolve(lead, status);
		return status;
	}
	hk__auth_nonce(table.run);
	memcpy(run_out, table.run, HK__RUN_BYTES);
	return lead_tell(lead, &table);
}

enum hk_status hk__meet_lead(const struct hk__boot_spec *spec, uint64_t deadline_ns,
			     struct hk_why *why, struct hk__boot *boot,
			     unsigned char run_out[HK__RUN_BYTES])
{
	struct lead lead = {
		.spec = spec, .alloc = boot->alloc, .deadline_ns = deadline_ns, .gate_fd = -1
	};
	enum hk_status status = lead_meet(&lead, boot, run_out);

	lead_finish(&lead);
	return status == HK_OK ? HK_OK : hk__why(why, status, "%s", lead.why.text);
}
