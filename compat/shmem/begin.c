/* SPDX-License-Identifier: Apache-2.0 */
/*
 * begin.c - from shmem_init to shmem_finalize: the world's group, three windows of symmetric
 * memory, the predefined teams. Calls nest; after the last shmem_finalize the library may
 * begin again.
 */
#include "sma.h"

#include <stdio.h>
#include <stdlib.h>

#define WAIT_NS UINT64_C(1000000000000000) /* 11 days: OpenSHMEM waits for ever */

struct hk__sma hk__sma = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool flag_of(const char *name)
{
	struct hk_env_info info = { .size = sizeof(info) };

	return hk_env_find(name, &info) == HK_OK && info.number != 0;
}

static bool is_set(const char *name)
{
	struct hk_env_info info = { .size = sizeof(info) };

	return hk_env_find(name, &info) == HK_OK && info.text;
}

static bool say(struct hk_why *why, const char *what, enum hk_status status)
{
	const char *reason = hk__sma.group ? hk_group_why(hk__sma.group) : "";

	snprintf(why->text, sizeof(why->text), "%s: %s", what,
		 *reason ? reason : hk_status_text(status));
	return false;
}

static bool join(int level, struct hk_why *why)
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;

	opts.timeout_ns = is_set("HOCKET_TIMEOUT") ? 0 : WAIT_NS;
	opts.progress = level == SHMEM_THREAD_MULTIPLE;
	opts.check = hk__sma.check;
	if (hk_group_create(&opts, why, &hk__sma.group) != HK_OK) {
		hk__sma.group = NULL;
		return false;
	}
	hk__sma.n = hk_group_size(hk__sma.group);
	hk__sma.me = hk_group_rank(hk__sma.group);
	return true;
}

/* All PEs must run one program: an offset means the same object everywhere. */
static bool statics_equal(const void *start, size_t bytes, struct hk_why *why)
{
	uint64_t mine[2] = { bytes, (uintptr_t)start & 0xfff };
	uint64_t *all = calloc(hk__sma.n, sizeof(mine));
	enum hk_status status;
	bool equal = true;

	if (!all)
		return say(why, "statics", HK_ENOMEM);
	status = hk_allgather(hk__sma.group, mine, all, 2, HK_TYPE_UINT64, NULL);
	if (status != HK_OK)
		equal = say(why, "statics", status);
	for (uint32_t pe = 0; equal && pe < hk__sma.n; pe++) {
		if (all[(size_t)pe * 2] == mine[0])
			continue;
		snprintf(why->text, sizeof(why->text),
			 "PE %u has %llu bytes of static data, PE %u %zu: all PEs must run one "
			 "program",
			 pe, (unsigned long long)all[(size_t)pe * 2], hk__sma.me, bytes);
		equal = false;
	}
	free(all);
	return equal;
}

static bool statics_begin(struct hk_why *why)
{
	struct hk_win_opts opts = HK_WIN_OPTS_INIT;
	struct hk_win *win;
	enum hk_status status;
	size_t bytes;
	void *start;

	if (!hk__sma_statics_find(&start, &bytes))
		bytes = 0;
	if (!statics_equal(start, bytes, why))
		return false;
	opts.remap = bytes > 0;
	status = hk_win_create(hk__sma.group, bytes > 0 ? start : NULL, bytes, &opts, &win);
	if (status != HK_OK)
		return say(why, "static data", status);
	return hk__sma_space_begin(&hk__sma.statics, win, "static data of the executable") ||
	       say(why, "static data", HK_ENOMEM);
}

static bool spaces_begin(size_t heap_bytes, struct hk_why *why)
{
	struct hk_win *inner;
	enum hk_status status;

	hk__sma.near = true;
	status = hk_heap_create(hk__sma.group, heap_bytes, NULL, &hk__sma.blocks);
	if (status != HK_OK)
		return say(why, "the symmetric heap", status);
	if (!hk__sma_space_begin(&hk__sma.heap, hk_heap_win(hk__sma.blocks), "the symmetric heap"))
		return say(why, "the symmetric heap", HK_ENOMEM);
	status = hk_win_create(hk__sma.group, NULL, sizeof(struct hk__sma_inner), NULL, &inner);
	if (status != HK_OK)
		return say(why, "memory of the library", status);
	if (!hk__sma_space_begin(&hk__sma.inner, inner, "memory of the library"))
		return say(why, "memory of the library", HK_ENOMEM);
	return statics_begin(why);
}

static void finalize_last(void)
{
	struct hk_win *statics = hk__sma.statics.win;
	struct hk_win *inner = hk__sma.inner.win;

	hk__sma_barrier("shmem_finalize");
	hk__sma_watch_stop();
	hk__sma.fast = 0;
	hk__sma_teams_end();
	hk__sma_space_end(&hk__sma.statics);
	hk__sma_space_end(&hk__sma.inner);
	hk__sma_space_end(&hk__sma.heap);
	hk__sma_blocks_drop();
	hk_win_free(statics);
	hk_win_free(inner);
	hk_heap_free(hk__sma.blocks);
	hk_group_free(hk__sma.group);
	hk__sma.group = NULL;
	hk__sma.n = 0;
	hk__sma.depth = 0;
}

/* A program that ends well without shmem_finalize means it; one that fails ends the job. */
static void at_exit(int status, void *arg)
{
	(void)arg;
	if (hk__sma.depth == 0)
		return;
	if (status != 0)
		hk__sma_end_job(status);
	finalize_last();
}

int hk__sma_try_begin(int level, struct hk_why *why)
{
	static bool hooked;
	size_t heap_bytes;

	if (hk__sma.depth > 0) {
		hk__sma.depth++;
		return 0;
	}
	hk__sma.check = flag_of("HOCKET_CHECK");
	hk__sma.debug = hk__sma_env("DEBUG") != NULL;
	hk__sma.level = level;
	if (!hk__sma_env_heap(&heap_bytes, why) || !join(level, why) ||
	    !spaces_begin(heap_bytes, why) || !hk__sma_teams_begin(why))
		return 1;
	if (!hooked && on_exit(at_exit, NULL) == 0)
		hooked = true;
	if (!hk__sma_watch_start() && hk__sma.me == 0)
		fprintf(stderr, "hocket-shmem: no thread: shmem_global_exit will not reach PEs "
				"that make no calls\n");
	hk__sma.fast = hk__sma.check ? 0 : hk__sma.n;
	hk__sma.depth = 1;
	hk__sma_env_print();
	if (hk__sma.debug)
		fprintf(stderr,
			"hocket-shmem: PE %u of %u: heap %#zx, %zu bytes; statics %#zx, %zu "
			"bytes; %s\n",
			hk__sma.me, hk__sma.n, (size_t)hk__sma.heap.start, hk__sma.heap.bytes,
			(size_t)hk__sma.statics.start, hk__sma.statics.bytes,
			hk__sma.near ? "all PEs share memory" : "some PEs are reached by messages");
	hk__sma_barrier("shmem_init");
	return 0;
}

void hk__sma_begin(int level, const char *call)
{
	struct hk_why why = { "" };

	if (hk__sma_try_begin(level, &why) != 0)
		hk__sma_die(call, "%s", why.text);
}

/* ---- the functions ---- */

FN(void, shmem_init, (void))
{
	hk__sma_begin(SHMEM_THREAD_SINGLE, "shmem_init");
}

FN(int, shmem_init_thread, (int requested, int *provided))
{
	struct hk_why why = { "" };

	if (requested < SHMEM_THREAD_SINGLE || requested > SHMEM_THREAD_MULTIPLE)
		return 1;
	if (hk__sma_try_begin(requested, &why) != 0) {
		fprintf(stderr, "hocket-shmem: shmem_init_thread: %s\n", why.text);
		return 1;
	}
	*provided = hk__sma.level;
	return 0;
}

FN(void, shmem_query_thread, (int *provided))
{
	*provided = hk__sma.level;
}

FN(void, shmem_query_initialized, (int *initialized))
{
	*initialized = hk__sma.depth > 0;
}

FN(void, shmem_finalize, (void))
{
	hk__sma_must_run("shmem_finalize");
	if (hk__sma.depth > 1)
		hk__sma.depth--;
	else
		finalize_last();
}

FN(int, shmem_my_pe, (void))
{
	hk__sma_must_run("shmem_my_pe");
	return (int)hk__sma.me;
}

FN(int, shmem_n_pes, (void))
{
	hk__sma_must_run("shmem_n_pes");
	return (int)hk__sma.n;
}

FN(int, shmem_pe_accessible, (int pe))
{
	hk__sma_must_run("shmem_pe_accessible");
	return pe >= 0 && (uint32_t)pe < hk__sma.n;
}

FN(int, shmem_addr_accessible, (const void *addr, int pe))
{
	const struct hk__sma_space *space = hk__sma_space_of(addr, 1);

	hk__sma_must_run("shmem_addr_accessible");
	return pe >= 0 && (uint32_t)pe < hk__sma.n && space && space != &hk__sma.inner;
}

static void *ptr(struct shmemx_team *team, const void *dest, int pe)
{
	const struct hk__sma_space *space = hk__sma_space_of(dest, 1);
	char *peer;

	if (!team || pe < 0 || (uint32_t)pe >= team->n || !space)
		return NULL;
	peer = space->peer[team->pes[pe]];
	return peer ? peer + ((uintptr_t)dest - space->start) : NULL;
}

FN(void *, shmem_ptr, (const void *dest, int pe))
{
	hk__sma_must_run("shmem_ptr");
	return ptr(&hk__sma.world, dest, pe);
}

FN(void *, shmem_team_ptr, (shmem_team_t team, const void *dest, int pe))
{
	hk__sma_must_run("shmem_team_ptr");
	return ptr(hk__sma_team(team), dest, pe);
}

FN(void, shmem_info_get_version, (int *major, int *minor))
{
	*major = SHMEM_MAJOR_VERSION;
	*minor = SHMEM_MINOR_VERSION;
}

FN(void, shmem_info_get_name, (char *name))
{
	memcpy(name, SHMEM_VENDOR_STRING, sizeof(SHMEM_VENDOR_STRING));
}

FN(void, shmem_pcontrol, (int level, ...))
{
	(void)level;
}

/* ---- deprecated ---- */

FN(void, start_pes, (int npes))
{
	(void)npes;
	/* It may be called again, which means nothing. */
	if (hk__sma.depth == 0)
		hk__sma_begin(SHMEM_THREAD_SINGLE, "start_pes");
}

FN(int, _my_pe, (void))
{
	return pshmem_my_pe();
}

FN(int, _num_pes, (void))
{
	return pshmem_n_pes();
}
