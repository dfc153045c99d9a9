/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grow.c - taking new ranks into a running group.
 *
 * Members and newcomers make a world of their own, beside the one that the
 * group lives in. Rank 0 opens a gate; the members hear of it in the old group,
 * with a number that tells them apart from anybody else who holds the job's key;
 * newcomers know the address. Whatever comes of it, the members then agree on it
 * in the old group, so all of them go on with the new group, or all with the old.
 * Newcomers go on when the members have.
 *
 * The time of a call has three parts: for the meeting, for a line that says why
 * it failed, and for the agreement.
 */
#include "boot/environment.h"
#include "group/group.h"
#include "boot/meet.h"

#include <string.h>

#define AGREE_MAX_NS (16 * HK__SECOND_NS)

/* What rank 0 tells the members: where to meet, or why nowhere. */
struct offer {
	int32_t status;
	uint32_t port;
	uint64_t meeting;
	char host[sizeof(((struct hk__boot_spec *)0)->host)];
	char why[256];
};

struct grow {
	struct hk_group *group;
	struct hk_grow_opts opts;
	struct hk__charter origin; /* of the new world */
	struct offer offer;
	bool offered;
	uint64_t agree_ns;    /* for the agreement, at least */
	uint64_t met_ns;      /* when all have to have met */
	uint64_t deadline_ns; /* of the call */
	struct hk_group *made;
};

/* What a peer calls a failure; HK_EIO if there is no such. */
static enum hk_status status_known(int64_t status)
{
#define STATUS_KNOWN(name, value, text) status == (value) ||
	if (!(HK_STATUS_MAP(STATUS_KNOWN) false) || status >= 0)
		return HK_EIO;
#undef STATUS_KNOWN
	return (enum hk_status)status;
}

static uint64_t left_until(uint64_t deadline_ns, uint64_t least_ns)
{
	uint64_t now = hk__now_ns();

	return now + least_ns < deadline_ns ? deadline_ns - now : least_ns;
}

/* ---- where ---- */

/* An address of this host by which others reach it, and the next free port. */
static enum hk_status place_own(struct grow *grow, struct hk_why *why)
{
	const struct hk__world *world = grow->group->world;
	struct hk__boot_spec *spec = &grow->origin.boot;
	struct hk__place place = { .len = 0 };
	char text[HK__PLACE_TEXT] = "127.0.0.1:0";

	if (!grow->opts.opened)
		return hk__why(why, HK_EINVAL,
			       "the job has no address that newcomers could know: give one, or "
			       "`opened`, which is told the address");
	if (spec->iface[0]) {
		enum hk_status status = hk__place_iface(spec->iface, AF_INET, why, &place);

		if (status != HK_OK)
			return status;
	} else if (world->boot.peers) {
		place.addr = world->boot.peers[world->rank].addr;
		place.len = world->boot.peers[world->rank].addr_len;
	}
	if (place.len) {
		hk__place_port_set(&place, 0);
		hk__place_text(&place, text);
	}
	hk_assert(hk__env_address(text, 0, spec));
	return HK_OK;
}

/* Rank 0 decides. */
static enum hk_status place_choose(struct grow *grow, struct hk_why *why)
{
	struct hk__boot_spec *spec = &grow->origin.boot;
	bool began_here = spec->rank == 0;
	enum hk_status status = HK_OK;

	if (grow->opts.address) {
		if (!hk__env_address(grow->opts.address, 0, spec))
			status = hk__why(why, HK_EINVAL,
					 "address \"%.100s\": host:port or [address]:port is "
					 "needed",
					 grow->opts.address);
	} else if (spec->host[0] && spec->port) {
		spec->host_found = !began_here;
	} else {
		status = place_own(grow, why);
	}
	if (status == HK_OK && !spec->port && !spec->key_given)
		status = hk__why(why, HK_EINVAL,
				 "a job without a key cannot grow at just any port: set "
				 "HOCKET_KEY, or give an address with a port");
	return status;
}

/* ---- meeting ---- */

/* All members know the offer. */
static enum hk_status offer_share(struct grow *grow, struct hk_why *why)
{
	struct hk_opts opts = HK_OPTS_INIT;
	struct offer *offer = &grow->offer;

	opts.timeout_ns = left_until(grow->met_ns, HK__MS_NS);
	enum hk_status status =
		hk_broadcast(grow->group, offer, offer, sizeof(*offer), HK_TYPE_UINT8, 0, &opts);
	if (status != HK_OK)
		return hk__why(why, status, "%s", hk_group_why(grow->group));
	offer->host[sizeof(offer->host) - 1] = '\0';
	offer->why[sizeof(offer->why) - 1] = '\0';
	return HK_OK;
}

/* Rank 0's gate is open. */
static enum hk_status grow_opened(void *ctx, uint16_t port, struct hk_why *why)
{
	struct grow *grow = ctx;
	const char *host = grow->origin.boot.host;
	char address[sizeof(grow->offer.host) + 16];

	grow->offered = true;
	grow->offer.port = port;
	(void)snprintf(grow->offer.host, sizeof(grow->offer.host), "%s", host);
	enum hk_status status = offer_share(grow, why);
	if (status != HK_OK || !grow->opts.opened)
		return status;
	(void)snprintf(address, sizeof(address), strchr(host, ':') ? "[%s]:%u" : "%s:%u", host,
		       port);
	grow->opts.opened(grow->opts.ctx, address);
	return HK_OK;
}

static void look_job(void *ctx)
{
	struct hk__world *world = ctx;
	uint64_t now = hk__now_ns();
	bool moved;

	if (now - world->net->watched >= world->watch_ns) {
		world->net->watched = now;
		hk__net_watch(world->net);
	}
	hk__world_progress(world, &moved);
}

/* Nobody waits in the old group meanwhile: is it still whole? */
static enum hk_status grow_look(void *ctx, struct hk_why *why)
{
	struct hk_group *group = ((struct grow *)ctx)->group;

	hk__world_run(group->world, look_job, group->world);
	enum hk_status status = hk__group_failed(group);
	return status == HK_OK ? HK_OK : hk__why(why, status, "%s", hk_group_why(group));
}

/* Without a key, the port is what keeps strays out, as at the start. */
static void key_make(struct hk__boot_spec *spec)
{
	if (spec->key_given)
		return;
	(void)snprintf(spec->job, sizeof(spec->job), "port-%u", spec->port);
	hk__auth_key(spec->job, spec->key);
}

static void meeting_number(uint64_t *number_out)
{
	unsigned char nonce[HK__NONCE_BYTES];

	for (*number_out = 0; !*number_out;) {
		hk__auth_nonce(nonce);
		memcpy(number_out, nonce, sizeof(*number_out));
	}
}

static enum hk_status grow_lead(struct grow *grow, struct hk_why *why)
{
	struct hk__boot_spec *spec = &grow->origin.boot;
	enum hk_status status = place_choose(grow, why);

	spec->rank = 0;
	key_make(spec);
	meeting_number(&grow->offer.meeting);
	spec->meeting = grow->offer.meeting;
	spec->opened = grow_opened;
	spec->timeout_ns = left_until(grow->met_ns, HK__MS_NS);
	if (status == HK_OK)
		status = hk__group_found(&grow->origin, why, &grow->made);
	if (grow->offered)
		return status;
	grow->offer.status = status;
	(void)snprintf(grow->offer.why, sizeof(grow->offer.why), "%s", why->text);
	(void)offer_share(grow, NULL); /* who does not hear of it learns it by the agreement */
	return status;
}

static enum hk_status grow_follow(struct grow *grow, struct hk_why *why)
{
	struct hk__boot_spec *spec = &grow->origin.boot;
	const struct offer *offer = &grow->offer;
	enum hk_status status = offer_share(grow, why);

	if (status != HK_OK)
		return status;
	if (offer->status != HK_OK)
		return hk__why(why, status_known(offer->status), "rank 0: %s", offer->why);
	if (offer->port == 0 || offer->port > UINT16_MAX || !offer->meeting || !offer->host[0])
		return hk__why(why, HK_EIO, "rank 0 gave no address to meet at");
	spec->rank = grow->group->rank;
	memcpy(spec->host, offer->host, sizeof(spec->host));
	spec->port = (uint16_t)offer->port;
	key_make(spec);
	spec->meeting = offer->meeting;
	spec->timeout_ns = left_until(grow->met_ns, HK__MS_NS);
	return hk__group_found(&grow->origin, why, &grow->made);
}

/* ---- agreeing ---- */

/* Of the members, the least number but UINT64_MAX says what went wrong. */
static enum hk_status grow_agree(struct grow *grow, enum hk_status status, struct hk_why *why)
{
	uint64_t value = status == HK_OK ? UINT64_MAX : (uint64_t)(-(int64_t)status);
	/* The last may come when the time of the meeting, and of its line, is over, or be slow. */
	uint64_t late_ns =
		left_until(grow->met_ns + HK__GRACE_NS + grow->agree_ns / 2, grow->agree_ns / 4);
	uint64_t left_ns = left_until(grow->deadline_ns, 0);
	if (left_ns < late_ns + grow->agree_ns / 4)
		left_ns = late_ns + grow->agree_ns / 4;
	enum hk_status agreed = hk__group_consent(grow->group, &value, left_ns, late_ns);

	if (agreed != HK_OK)
		return hk__why(why, agreed, "%s", grow->group->why.text);
	if (value == UINT64_MAX)
		return HK_OK;
	agreed = status_known(value <= INT32_MAX ? -(int64_t)value : 1);
	if (status == HK_OK)
		return hk__why(why, agreed,
			       "rank %u: the group did not grow, as another rank failed: %s; see "
			       "its own message",
			       grow->group->rank, hk_status_text(agreed));
	return agreed;
}

static enum hk_status grow_run(struct grow *grow, struct hk_why *why)
{
	enum hk_status status =
		grow->group->rank == 0 ? grow_lead(grow, why) : grow_follow(grow, why);

	status = grow_agree(grow, status, why);
	/* Whoever dies from here on dies in the new group: what comes of it, its calls say. */
	if (status == HK_OK)
		(void)hk__group_enter(grow->made,
				      left_until(grow->deadline_ns, grow->agree_ns / 2));
	else if (grow->made)
		hk__group_destroy(grow->made);
	return status;
}

/* ---- what users call ---- */

static enum hk_status grow_prepare(struct grow *grow, uint32_t nranks)
{
	struct hk_group *group = grow->group;
	uint64_t timeout_ns = grow->opts.timeout_ns ? grow->opts.timeout_ns : group->timeout_ns;
	uint64_t now = hk__now_ns();

	if (nranks <= group->n || nranks > HK_RANKS_MAX)
		return hk__group_refuse(group, HK_EINVAL,
					"grow to %u ranks: the group has %u, and may get %u",
					nranks, group->n, HK_RANKS_MAX);
	if (hk__auth_ready() != HK_OK)
		return hk__group_refuse(group, HK_EIO, "the system provides no random numbers");
	if (timeout_ns > UINT64_MAX / 4)
		timeout_ns = UINT64_MAX / 4;
	grow->agree_ns = timeout_ns / 4 < AGREE_MAX_NS ? timeout_ns / 4 : AGREE_MAX_NS;
	grow->deadline_ns = now + timeout_ns;
	grow->met_ns = grow->deadline_ns - grow->agree_ns;
	if (timeout_ns >= 4 * HK__GRACE_NS)
		grow->met_ns -= HK__GRACE_NS;
	grow->origin = group->world->origin;
	grow->origin.boot.alloc = group->alloc;
	grow->origin.boot.n = nranks;
	grow->origin.boot.members = group->n;
	grow->origin.boot.look = grow_look;
	grow->origin.boot.ctx = grow;
	return HK_OK;
}

enum hk_status hk_group_grow(struct hk_group *group, uint32_t nranks,
			     const struct hk_grow_opts *given, struct hk_group **group_out)
{
	struct grow grow = { .group = group, .opts = HK_GROW_OPTS_INIT };
	struct hk_why why = { "" };

	if (!group || !group_out || hk__world_inherited(group->world))
		return HK_EINVAL;
	*group_out = NULL;
	if (given && hk__opts_copy(&grow.opts, sizeof(grow.opts), given) != HK_OK)
		return hk__group_refuse(group, HK_EINVAL,
					"options of an unknown size or version: initialize them "
					"with HK_GROW_OPTS_INIT");
	if (group->batching)
		return hk__group_refuse(group, HK_EINVAL, "grow inside a batch");
	enum hk_status status = hk__group_failed(group);
	if (status == HK_OK)
		status = grow_prepare(&grow, nranks);
	if (status != HK_OK)
		return status;
	status = grow_run(&grow, &why);
	if (status != HK_OK) {
		group->refused = true; /* it says more than that the group has failed, if it has */
		return hk__group_refuse(group, status, "%s", why.text);
	}
	grow.made->world->origin = group->world->origin; /* not what was of this meeting alone */
	*group_out = grow.made;
	return HK_OK;
}
