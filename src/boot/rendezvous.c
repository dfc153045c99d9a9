/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rendezvous.c - joining: one meeting of all ranks at rank 0, then one of each
 * host's; and leaving.
 *
 * Rank 0 picks the number of the run. From it and the job's key comes the key
 * of this run, which everything after the meeting is proved with.
 */
#include "boot/meet.h"
#include "base/fork.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define TIMEOUT_MAX_NS (UINT64_MAX / 4) /* a deadline, and some grace, are still numbers */
#define LOOK_NS (100 * HK__MS_NS)

/* ---- what both sides do ---- */

void hk__meet_hello(const struct hk__boot_spec *spec, struct hk__hello *hello_out)
{
	unsigned char hash[HK__KEY_BYTES];
	char text[sizeof(spec->host_id) + 8];

	(void)snprintf(text, sizeof(text), "host %s", spec->host_id);
	hk__auth_key(text, hash);
	*hello_out = (struct hk__hello){ .rank = spec->rank,
					 .n = spec->n,
					 .share = spec->share,
					 .segment_bytes = spec->share ? spec->segment_bytes : 0,
					 .encrypt = spec->encrypt,
					 .meeting = spec->meeting,
					 .info = spec->info };
	memcpy(hello_out->host, hash, HK__HOST_BYTES);
}

enum hk_status hk__meet_listen(const struct hk__boot_spec *spec, const struct hk__place *at,
			       struct hk_why *why, struct hk__place *place_out, int *fd_out)
{
	char text[HK__PLACE_TEXT];

	*place_out = *at;
	if (spec->iface[0]) {
		enum hk_status status =
			hk__place_iface(spec->iface, at->addr.ss_family, why, place_out);

		if (status != HK_OK)
			return status;
	}
	hk__place_port_set(place_out, 0);
	if (hk__place_listen(place_out, fd_out) == HK_OK)
		return HK_OK;
	hk__place_text(place_out, text);
	return hk__why(why, HK_EIO, "rank %u cannot listen at %s: %s", spec->rank, text,
		       strerrordesc_np(errno));
}

enum hk_status hk__meet_quiet(const struct hk__boot_spec *spec, const struct hk__place *at,
			      struct hk_why *why, uint16_t *port_out, int *fd_out)
{
	struct hk__place place = *at;
	char text[HK__PLACE_TEXT];

	if (hk__place_quiet(&place, fd_out) == HK_OK) {
		*port_out = hk__place_port(&place);
		return HK_OK;
	}
	hk__place_text(&place, text);
	return hk__why(why, HK_EIO, "rank %u cannot bind a second port at %s: %s%s", spec->rank,
		       text, strerrordesc_np(errno), errno == EMFILE ? "; raise ulimit -n" : "");
}

uint64_t hk__meet_look_at(const struct hk__boot_spec *spec, uint64_t deadline_ns)
{
	uint64_t next_ns = hk__now_ns() + LOOK_NS;

	return spec->look && next_ns < deadline_ns ? next_ns : deadline_ns;
}

enum hk_status hk__meet_look(const struct hk__boot_spec *spec, uint64_t deadline_ns,
			     struct hk_why *why)
{
	if (hk__now_ns() >= deadline_ns)
		return HK_ETIMEDOUT;
	return spec->look ? spec->look(spec->ctx, why) : HK_OK;
}

/* ---- after the meeting ---- */

static void key_make(const struct hk__boot_spec *spec, const unsigned char run[HK__RUN_BYTES],
		     unsigned char key_out[HK__KEY_BYTES])
{
	static const char about[] = "hocket key of a run 1";
	struct hk__auth auth = { .about = about, .about_len = sizeof(about) };

	_Static_assert(HK__RUN_BYTES == HK__NONCE_BYTES && HK__KEY_BYTES == HK__PROOF_BYTES,
		       "a key is a proof about the run");
	memcpy(auth.key, spec->key, HK__KEY_BYTES);
	memcpy(auth.connects, run, HK__RUN_BYTES);
	hk__auth_prove(&auth, HK__AUTH_CONNECTS, key_out);
}

/* nnodes, nlocal, locals. */
static enum hk_status locals_find(struct hk__boot *boot)
{
	uint32_t node = boot->peers[boot->rank].node;

	boot->nnodes = 0;
	boot->nlocal = 0;
	for (uint32_t r = 0; r < boot->n; r++) {
		boot->nlocal += boot->peers[r].node == node;
		if (boot->peers[r].node >= boot->nnodes)
			boot->nnodes = boot->peers[r].node + 1;
	}
	boot->locals = hk__mem_zalloc(boot->alloc, boot->nlocal, sizeof(uint32_t));
	if (!boot->locals)
		return HK_ENOMEM;
	for (uint32_t r = 0; r < boot->n; r++)
		if (boot->peers[r].node == node)
			boot->locals[boot->peers[r].local] = r;
	return HK_OK;
}

static enum hk_status meet(const struct hk__boot_spec *spec, uint64_t deadline_ns,
			   struct hk_why *why, struct hk__boot *boot)
{
	unsigned char run[HK__RUN_BYTES];
	enum hk_status status = HK_OK;

	if (spec->n == 1) {
		hk__auth_nonce(run);
		boot->peers[0].info = spec->info;
	} else if (spec->rank == 0) {
		status = hk__meet_lead(spec, deadline_ns, why, boot, run);
	} else {
		status = hk__meet_follow(spec, deadline_ns, why, boot, run);
	}
	if (status != HK_OK)
		return status;
	key_make(spec, run, boot->key);
	status = locals_find(boot);
	if (status != HK_OK)
		return hk__why(why, status, "no memory for the ranks of this host");
	if (hk__boot_is_newcomer(spec) && deadline_ns > hk__now_ns() + HK__SETTLE_NS)
		deadline_ns = hk__now_ns() + HK__SETTLE_NS;
	return spec->share ? hk__hostshare(spec, deadline_ns, why, boot) : HK_OK;
}

static enum hk_status spec_check(const struct hk__boot_spec *spec, struct hk_why *why)
{
	bool newcomer = hk__boot_is_newcomer(spec) && spec->n == 0;

	if (!newcomer && (spec->n == 0 || spec->n > HK_RANKS_MAX || spec->rank >= spec->n))
		return hk__why(why, HK_EINVAL, "rank %u of %u: no such rank", spec->rank, spec->n);
	if (newcomer && !spec->host[0])
		return hk__why(why, HK_EINVAL,
			       "a newcomer needs the address of rank 0: HOCKET_ADDR");
	if (spec->n > 1 && !spec->host[0])
		return hk__why(why, HK_EINVAL, "%u ranks need the address of rank 0: HOCKET_ADDR",
			       spec->n);
	if (hk__auth_ready() != HK_OK)
		return hk__why(why, HK_EIO, "the system provides no random numbers");
	return HK_OK;
}

enum hk_status hk__boot_join(const struct hk__boot_spec *spec, struct hk_why *why,
			     struct hk__boot *boot_out)
{
	struct hk__boot boot = { .rank = spec->rank, .n = spec->n, .alloc = spec->alloc };
	bool newcomer = hk__boot_is_newcomer(spec);
	enum hk_status status = spec_check(spec, why);

	if (status != HK_OK)
		return status;
	if (!boot.alloc)
		boot.alloc = &hk__alloc_default;
	boot.listen_fd = -1;
	boot.quiet_fd = -1;
	boot.segment_fd = -1;
	if (!newcomer)
		boot.peers = hk__mem_zalloc(boot.alloc, boot.n, sizeof(struct hk__boot_peer));
	if (!boot.peers && !newcomer)
		return hk__why(why, HK_ENOMEM, "no memory for a table of %u ranks", boot.n);
	uint64_t timeout_ns = spec->timeout_ns < TIMEOUT_MAX_NS ? spec->timeout_ns : TIMEOUT_MAX_NS;
	status = meet(spec, hk__now_ns() + timeout_ns, why, &boot);
	if (status != HK_OK)
		hk__boot_leave(&boot);
	else
		*boot_out = boot;
	return status;
}

void hk__boot_leave(struct hk__boot *boot)
{
	if (boot->n == 0)
		return;
	if (boot->listen_fd >= 0)
		hk__fd_close(boot->listen_fd);
	if (boot->quiet_fd >= 0)
		hk__fd_close(boot->quiet_fd);
	if (boot->segment_fd >= 0)
		hk__fd_close(boot->segment_fd);
	for (uint32_t i = 0; boot->bells && i < boot->nlocal; i++)
		if (boot->bells[i] >= 0)
			hk__fd_close(boot->bells[i]);
	hk__mem_free(boot->alloc, boot->bells, boot->nlocal, sizeof(int));
	hk__mem_free(boot->alloc, boot->locals, boot->nlocal, sizeof(uint32_t));
	hk__mem_free(boot->alloc, boot->peers, boot->n, sizeof(struct hk__boot_peer));
	*boot = (struct hk__boot){ .listen_fd = -1, .quiet_fd = -1, .segment_fd = -1 };
}
