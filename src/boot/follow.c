/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow.c - every rank but rank 0: finds it, says hello, gets the table.
 *
 * Rank 0 may come later than the others, and somebody else may be where it is
 * looked for. So all its places are tried in turn, until one proves that it
 * holds the job's key.
 *
 * A newcomer learns from the table which rank it is, and of how many: its own
 * place is there once.
 */
#include "boot/meet.h"
#include "base/fork.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* What a place gets to answer in: more each time, as it may only be slow. */
#define PATIENCE_NS HK__SECOND_NS
#define PATIENCE_MAX_NS (16 * HK__SECOND_NS)

struct follow {
	const struct hk__boot_spec *spec;
	struct hk_why *why;
	uint64_t deadline_ns;
	uint64_t patience_ns;
	struct hk__places places;
	struct hk__hello hello;
	int listen_fd;	    /* takes data connections; -1: not yet */
	int quiet_fd;	    /* holds the quiet port; -1: not yet */
	int fd;		    /* to rank 0 */
	struct hk_why last; /* of the last try */
	char name[40];	    /* of this rank, for messages */
};

static void follow_close_ports(struct follow *follow)
{
	if (follow->listen_fd >= 0)
		hk__fd_close(follow->listen_fd);
	if (follow->quiet_fd >= 0)
		hk__fd_close(follow->quiet_fd);
	follow->listen_fd = follow->quiet_fd = -1;
}

/* Data connections are taken where this one was made from. */
static enum hk_status follow_listen(struct follow *follow)
{
	struct hk__hello *hello = &follow->hello;
	struct hk__place here;

	follow_close_ports(follow);
	if (hk__place_of(follow->fd, &here) != HK_OK)
		return hk__why(follow->why, HK_EIO, "%s: the connection to rank 0 has no address",
			       follow->name);
	enum hk_status status = hk__meet_listen(follow->spec, &here, follow->why, &hello->place,
						&follow->listen_fd);
	if (status == HK_OK)
		status = hk__meet_quiet(follow->spec, &hello->place, follow->why,
					&hello->quiet_port, &follow->quiet_fd);
	return status;
}

static void follow_hang_up(struct follow *follow)
{
	if (follow->fd >= 0)
		hk__fd_close(follow->fd);
	follow->fd = -1;
}

/* Why a place was left; HK_INPROGRESS: others, or the same again, may do. */
static enum hk_status knock_failed(struct follow *follow, const struct hk__place *place,
				   enum hk_status status)
{
	int error = errno;
	const char *reason = status == HK_ETIMEDOUT ? "no answer"
			     : status == HK_EDENIED ? "it holds another key"
			     : status == HK_ESYNTAX ? "something else answers"
			     : status == HK_EPEER   ? "it hung up"
						    : strerrordesc_np(error);
	char text[HK__PLACE_TEXT];

	hk__place_text(place, text);
	(void)hk__why(&follow->last, status, "%s: %s", text, reason);
	follow_hang_up(follow);
	/* On a port made from the job's name it is another job; on a given one, a mistake. */
	if (status == HK_EDENIED && follow->spec->port)
		return hk__why(follow->why, HK_EDENIED,
			       "%s: the process at %s does not hold the job key: give all "
			       "ranks the same HOCKET_KEY",
			       follow->name, text);
	return HK_INPROGRESS;
}

static enum hk_status knock(struct follow *follow, const struct hk__place *place)
{
	unsigned char hello[HK__HELLO_BYTES];
	struct hk__claim claim = { follow->spec->key, "meet", hello, sizeof(hello) };
	uint64_t greet_ns = hk__now_ns() + follow->patience_ns;
	uint64_t verdict_ns = greet_ns + PATIENCE_MAX_NS;

	if (greet_ns > follow->deadline_ns)
		greet_ns = follow->deadline_ns;
	if (verdict_ns > follow->deadline_ns)
		verdict_ns = follow->deadline_ns;
	enum hk_status status = hk__conn_connect(place, greet_ns, &follow->fd);
	if (status != HK_OK)
		return knock_failed(follow, place, status);
	status = follow_listen(follow);
	if (status != HK_OK)
		return status;
	hk__hello_write(&follow->hello, hello);
	status = hk__conn_prove(follow->fd, &claim, greet_ns, verdict_ns);
	return status == HK_OK ? HK_OK : knock_failed(follow, place, status);
}

/* Every place once. */
static enum hk_status knock_around(struct follow *follow)
{
	for (uint32_t i = 0; i < follow->places.nports; i++) {
		for (uint32_t j = 0; j < follow->places.count; j++) {
			struct hk__place place = follow->places.at[j];

			hk__place_port_set(&place, follow->places.ports[i]);
			enum hk_status status = knock(follow, &place);
			if (status != HK_INPROGRESS)
				return status;
		}
	}
	return HK_INPROGRESS;
}

static enum hk_status follow_too_late(struct follow *follow)
{
	char room[256];
	struct hk__text where;

	hk__text_init(&where, room, sizeof(room));
	hk__places_text(follow->spec, &follow->places, &where);
	return hk__why(follow->why, HK_ETIMEDOUT,
		       "%s (%s): rank 0 has not answered at %s in %.3g s; last try: %.200s; does "
		       "it run there? HOCKET_ADDR sets its address, HOCKET_TIMEOUT the time",
		       follow->name, follow->spec->launcher, room,
		       (double)follow->spec->timeout_ns / (double)HK__SECOND_NS, follow->last.text);
}

static enum hk_status follow_find(struct follow *follow)
{
	uint64_t pause_ns = 0;

	for (;;) {
		enum hk_status status = HK_INPROGRESS;

		/* A name may become known only when rank 0 is started. */
		if (follow->places.count ||
		    hk__places_find(follow->spec, &follow->last, &follow->places) == HK_OK)
			status = knock_around(follow);
		if (status != HK_INPROGRESS)
			return status;
		status = hk__meet_look(follow->spec, follow->deadline_ns, follow->why);
		if (status == HK_ETIMEDOUT)
			break;
		if (status != HK_OK)
			return status;
		if (follow->patience_ns < PATIENCE_MAX_NS)
			follow->patience_ns *= 2;
		hk__conn_pause(&pause_ns, follow->deadline_ns);
	}
	return follow_too_late(follow);
}

/* ---- the table ---- */

static enum hk_status conn_lost(const struct follow *follow, enum hk_status status)
{
	if (status == HK_ETIMEDOUT)
		return hk__why(follow->why, status,
			       "%s: reached rank 0, but not all ranks joined within %.3g s",
			       follow->name,
			       (double)follow->spec->timeout_ns / (double)HK__SECOND_NS);
	return hk__why(follow->why, HK_EPEER,
		       "%s: rank 0 ended before all ranks had joined; see its own message",
		       follow->name);
}

/* Rank 0 says why there will be no group. */
static enum hk_status refusal_read(struct follow *follow, enum hk_status status, uint32_t len)
{
	uint64_t deadline_ns = follow->deadline_ns + HK__GRACE_NS;
	char text[HK_WHY_MAX];

	if (len >= sizeof(text))
		return hk__why(follow->why, HK_EIO, "rank 0 sent an invalid answer");
	enum hk_status read = hk__conn_read(follow->fd, text, len, deadline_ns);
	if (read != HK_OK)
		return conn_lost(follow, read);
	for (uint32_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			text[i] = '?';
	text[len] = '\0';
	(void)hk__conn_write(follow->fd, "k", 1, deadline_ns);
	return hk__why(follow->why, status, "%s", text);
}

static bool place_fits(const struct follow *follow, const struct hk__boot_peer *peer)
{
	return peer->addr_len == follow->hello.place.len &&
	       hk__place_port(&(struct hk__place){ peer->addr, peer->addr_len }) ==
		       hk__place_port(&follow->hello.place);
}

/* Which rank a newcomer is: where its place is, and no other has the same. */
static uint32_t place_find(const struct follow *follow, const struct hk__table *table)
{
	char own[HK__PLACE_TEXT], other[HK__PLACE_TEXT];
	uint32_t rank = HK_NONE, found = 0;

	hk__place_text(&follow->hello.place, own);
	for (uint32_t r = 0; r < table->n; r++) {
		const struct hk__boot_peer *peer = &table->peers[r];

		if (!place_fits(follow, peer))
			continue;
		hk__place_text(&(struct hk__place){ peer->addr, peer->addr_len }, other);
		if (strcmp(own, other) == 0) {
			rank = r;
			found++;
		}
	}
	return found == 1 ? rank : HK_NONE;
}

static bool table_fits(const struct follow *follow, const struct hk__table *table)
{
	uint32_t rank = follow->spec->rank;

	return hk__boot_is_newcomer(follow->spec) ? place_find(follow, table) != HK_NONE
						  : place_fits(follow, &table->peers[rank]);
}

static enum hk_status table_take(struct follow *follow, unsigned char *bytes, size_t len,
				 struct hk__table *table)
{
	const struct hk_alloc *alloc =
		follow->spec->alloc ? follow->spec->alloc : &hk__alloc_default;
	uint32_t *counts = hk__mem_zalloc(alloc, table->n, sizeof(uint32_t));

	if (!counts)
		return hk__why(follow->why, HK_ENOMEM, "no memory for a table of %u ranks",
			       table->n);
	enum hk_status status =
		hk__conn_read(follow->fd, bytes, len, follow->deadline_ns + HK__GRACE_NS);
	if (status != HK_OK)
		status = conn_lost(follow, status);
	else if (!hk__table_read(bytes, len, counts, table) || !table_fits(follow, table))
		status = hk__why(follow->why, HK_EIO, "rank 0 sent an invalid table");
	hk__mem_free(alloc, counts, table->n, sizeof(uint32_t));
	return status;
}

/* A newcomer has had no room for peers until now. */
static enum hk_status peers_make(struct follow *follow, uint32_t len, struct hk__boot *boot)
{
	if (!hk__boot_is_newcomer(follow->spec))
		return HK_OK;
	uint32_t n = hk__table_ranks(len);
	if (n == 0)
		return HK_OK; /* which is no table of any: it will show */
	boot->peers = hk__mem_zalloc(boot->alloc, n, sizeof(struct hk__boot_peer));
	if (!boot->peers)
		return hk__why(follow->why, HK_ENOMEM, "no memory for a table of %u ranks", n);
	boot->n = n;
	return HK_OK;
}

static enum hk_status table_read(struct follow *follow, struct hk__boot *boot,
				 struct hk__table *table)
{
	unsigned char head[HK__ANSWER_BYTES];
	uint64_t deadline_ns = follow->deadline_ns + HK__GRACE_NS;
	enum hk_status status = hk__conn_read(follow->fd, head, sizeof(head), deadline_ns), said;
	uint32_t len;

	if (status != HK_OK)
		return conn_lost(follow, status);
	bool sense = hk__answer_read(head, &said, &len);
	if (sense && said != HK_OK)
		return refusal_read(follow, said, len);
	if (sense)
		status = peers_make(follow, len, boot);
	if (status != HK_OK)
		return status;
	size_t bytes_len = hk__table_bytes(boot->n);
	if (!sense || !boot->peers || len != bytes_len)
		return hk__why(follow->why, HK_EIO, "rank 0 sent an invalid answer");
	*table = (struct hk__table){ .n = boot->n, .peers = boot->peers };
	unsigned char *bytes = hk__mem_zalloc(boot->alloc, bytes_len, 1);
	if (!bytes)
		return hk__why(follow->why, HK_ENOMEM, "no memory for a table of %u ranks",
			       table->n);
	status = table_take(follow, bytes, bytes_len, table);
	hk__mem_free(boot->alloc, bytes, bytes_len, 1);
	if (status != HK_OK)
		return status;
	if (hk__boot_is_newcomer(follow->spec))
		boot->rank = place_find(follow, table);
	status = hk__conn_write(follow->fd, "k", 1, deadline_ns);
	return status == HK_OK ? HK_OK : conn_lost(follow, status);
}

enum hk_status hk__meet_follow(const struct hk__boot_spec *spec, uint64_t deadline_ns,
			       struct hk_why *why, struct hk__boot *boot,
			       unsigned char run_out[HK__RUN_BYTES])
{
	struct follow follow = { .spec = spec,
				 .why = why,
				 .deadline_ns = deadline_ns,
				 .patience_ns = PATIENCE_NS,
				 .listen_fd = -1,
				 .quiet_fd = -1,
				 .fd = -1 };
	struct hk__table table = { .n = 0 };

	if (hk__boot_is_newcomer(spec))
		(void)snprintf(follow.name, sizeof(follow.name), "a newcomer");
	else
		(void)snprintf(follow.name, sizeof(follow.name), "rank %u of %u", spec->rank,
			       spec->n);
	hk__meet_hello(spec, &follow.hello);
	enum hk_status status = follow_find(&follow);
	if (status == HK_OK)
		status = table_read(&follow, boot, &table);
	follow_hang_up(&follow);
	if (status == HK_OK) {
		memcpy(run_out, table.run, HK__RUN_BYTES);
		boot->listen_fd = follow.listen_fd;
		boot->quiet_fd = follow.quiet_fd;
	} else {
		follow_close_ports(&follow);
	}
	return status;
}
