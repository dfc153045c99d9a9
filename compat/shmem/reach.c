/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reach.c - from an address of this PE to the same object of another one, where the short
 * way of sma.h does not do: other contexts, PEs that are far, and everything while accesses
 * are checked.
 */
#include "sma.h"

#include <stdlib.h>

static bool space_has(const struct hk__sma_space *space, const void *addr, size_t len)
{
	size_t offset = (uintptr_t)addr - space->start;

	return offset < space->bytes && len <= space->bytes - offset;
}

const struct hk__sma_space *hk__sma_space_of(const void *addr, size_t len)
{
	const struct hk__sma_space *const spaces[] = { &hk__sma.heap, &hk__sma.statics,
						       &hk__sma.inner };

	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		if (space_has(spaces[i], addr, len))
			return spaces[i];
	}
	return NULL;
}

static _Noreturn void die_unknown(const void *addr, size_t len, const char *call)
{
	const struct hk__sma_space *begins = hk__sma_space_of(addr, 1);

	if (begins)
		hk__sma_die(call, "%zu bytes from %p on go past the end of %s", len, addr,
			    begins->what);
	hk__sma_die(call,
		    "%p is no symmetric address: neither in the heap (%#zx, %zu bytes) nor "
		    "static data of the executable (%#zx, %zu bytes)",
		    addr, (size_t)hk__sma.heap.start, hk__sma.heap.bytes,
		    (size_t)hk__sma.statics.start, hk__sma.statics.bytes);
}

void hk__sma_find_slow(struct hk__sma_at *at, shmem_ctx_t handle, const void *addr, size_t len,
		       int pe, const char *call)
{
	struct shmemx_ctx *ctx = hk__sma_ctx(handle);

	hk__sma_must_run(call);
	if (!ctx)
		hk__sma_die(call, "the context is SHMEM_CTX_INVALID");
	if (pe < 0 || (uint32_t)pe >= ctx->team->n)
		hk__sma_die(call, "there is no PE %d: the %s has %u PEs", pe,
			    ctx->team == &hk__sma.world ? "job" : "context's team", ctx->team->n);
	at->space = hk__sma_space_of(addr, len);
	if (!at->space)
		die_unknown(addr, len, call);
	if (hk__sma.check && at->space == &hk__sma.heap)
		hk__sma_check_block(addr, len, call);
	at->offset = (uintptr_t)addr - at->space->start;
	at->pe = ctx->team->pes[pe];
	at->ctx = ctx->ctx;
	at->near = at->space->peer[at->pe];
	if (at->near)
		at->near += at->offset;
}

bool hk__sma_space_begin(struct hk__sma_space *space, struct hk_win *win, const char *what)
{
	char **peer = calloc(hk__sma.n, sizeof(*peer));

	if (!peer)
		return false;
	for (uint32_t pe = 0; pe < hk__sma.n; pe++) {
		peer[pe] = hk_win_ptr(win, pe, 0);
		if (!peer[pe])
			hk__sma.near = false;
	}
	*space = (struct hk__sma_space){
		.start = (uintptr_t)hk_win_base(win),
		.bytes = hk_win_bytes(win, hk__sma.me),
		.peer = peer,
		.win = win,
		.what = what,
	};
	return true;
}

void hk__sma_space_end(struct hk__sma_space *space)
{
	free(space->peer);
	*space = (struct hk__sma_space){ 0 };
}
