/* SPDX-License-Identifier: Apache-2.0 */
/* calls_rest.c - setup, memory, teams, contexts, order, locks: what has no type. */
#include "calls.h"

static long lock;
static int counter;

static void test_setup(void)
{
	char name[SHMEM_MAX_NAME_LEN];
	int major, minor, provided, is_up;

	shmem_info_get_version(&major, &minor);
	shmem_info_get_name(name);
	EXPECT("info", major == 1 && minor == 6 && strcmp(name, SHMEM_VENDOR_STRING) == 0);
	shmem_query_initialized(&is_up);
	EXPECT("query_initialized", is_up);
	/* Calls nest. */
	shmem_init();
	EXPECT("init_thread", shmem_init_thread(SHMEM_THREAD_SINGLE, &provided) == 0);
	shmem_query_thread(&is_up);
	EXPECT("query_thread", is_up == provided);
	shmem_finalize();
	shmem_finalize();
	start_pes(0);
	EXPECT("_my_pe", _my_pe() == me && _num_pes() == n);
	EXPECT("pe_accessible", shmem_pe_accessible(n - 1) && !shmem_pe_accessible(n));
	EXPECT("addr_accessible", shmem_addr_accessible(&lock, to));
	EXPECT("addr_accessible", !shmem_addr_accessible(&major, to));
	shmem_pcontrol(1);
	if (n < 0)
		shmem_global_exit(1);
}

static void test_memory(void)
{
	long *a = (long *)shmem_malloc(100 * sizeof(long));
	long *b = (long *)shmem_align(4096, 10 * sizeof(long));
	long *c = (long *)shmem_calloc(10, sizeof(long));
	long *d = (long *)shmem_malloc_with_hints(64, SHMEM_MALLOC_SIGNAL_REMOTE);
	long *e = (long *)shmalloc(64), *f = (long *)shmemalign(256, 64);

	EXPECT("malloc", a && b && c && d && e && f);
	EXPECT("malloc", !shmem_malloc(0) && !shmem_calloc(0, 8) && !shmem_malloc(SIZE_MAX / 2));
	EXPECT("align", (uintptr_t)b % 4096 == 0 && (uintptr_t)f % 256 == 0);
	EXPECT("calloc", c[0] == 0 && c[9] == 0);
	a[0] = me;
	a[99] = n;
	a = (long *)shmem_realloc(a, 100000 * sizeof(long));
	EXPECT("realloc", a && a[0] == me && a[99] == n);
	a = (long *)shrealloc(a, 8);
	EXPECT("shrealloc", a && a[0] == me);
	shmem_barrier_all();
	shmem_long_p(a, me, to);
	shmem_barrier_all();
	EXPECT("realloc", a[0] == from);
	shmem_free(a);
	shmem_free(b);
	shmem_free(c);
	shmem_free(d);
	shfree(e);
	shfree(f);
	shmem_free(NULL);
}

static void test_ptr(void)
{
	int *peer = (int *)shmem_ptr(&counter, to);

	shmem_barrier_all();
	EXPECT("team_ptr", shmem_team_ptr(SHMEM_TEAM_WORLD, &counter, to) == peer);
	EXPECT("ptr", !shmem_ptr(&peer, to));
	/* All PEs of one host, unless they were told otherwise. */
	if (peer) {
		*peer = me + 1;
	} else {
		EXPECT("ptr", getenv("HOCKET_NET") || getenv("HOCKET_HOST"));
		shmem_int_p(&counter, me + 1, to);
	}
	shmem_barrier_all();
	EXPECT("ptr", counter == from + 1);
	shmem_barrier_all();
	counter = 0;
	shmem_barrier_all();
}

static void test_teams(void)
{
	shmem_team_config_t config = { 2 };
	shmem_team_t odd, reversed, x, y;
	int half = n / 2;

	EXPECT("team",
	       shmem_team_my_pe(SHMEM_TEAM_WORLD) == me && shmem_team_n_pes(SHMEM_TEAM_WORLD) == n);
	EXPECT("team", shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1 &&
			       shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1);
	EXPECT("split", shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n + 1, NULL, 0, &x) != 0 &&
				x == SHMEM_TEAM_INVALID);
	if (half > 0) {
		EXPECT("split", shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 2, half, &config,
							 SHMEM_TEAM_NUM_CONTEXTS, &odd) == 0);
		EXPECT("split", (odd != SHMEM_TEAM_INVALID) == (me % 2 == 1));
		EXPECT("translate", shmem_team_translate_pe(SHMEM_TEAM_WORLD, me, odd) ==
					    (me % 2 ? me / 2 : -1));
		if (odd != SHMEM_TEAM_INVALID) {
			config.num_contexts = 0;
			EXPECT("config",
			       shmem_team_get_config(odd, SHMEM_TEAM_NUM_CONTEXTS, &config) == 0 &&
				       config.num_contexts == 2);
			EXPECT("team_sync", shmem_team_sync(odd) == 0);
			EXPECT("translate",
			       shmem_team_translate_pe(odd, half - 1, SHMEM_TEAM_WORLD) ==
				       half * 2 - 1);
		}
		shmem_team_destroy(odd);
	}
	EXPECT("split",
	       shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, -1, n, NULL, 0, &reversed) == 0);
	EXPECT("reversed", shmem_team_my_pe(reversed) == n - 1 - me);
	EXPECT("2d", shmem_team_split_2d(reversed, 3, NULL, 0, &x, NULL, 0, &y) == 0);
	EXPECT("2d",
	       shmem_team_my_pe(x) == (n - 1 - me) % 3 && shmem_team_my_pe(y) == (n - 1 - me) / 3);
	EXPECT("team_sync", shmem_team_sync(x) == 0 && shmem_team_sync(y) == 0 &&
				    shmem_team_sync(SHMEM_TEAM_INVALID) != 0);
	shmem_team_destroy(y);
	shmem_team_destroy(x);
	shmem_team_destroy(reversed);
	shmem_team_destroy(SHMEM_TEAM_INVALID);
}

static void test_contexts(void)
{
	shmem_ctx_session_config_t session = { 100 };
	shmem_ctx_t mine;
	shmem_team_t reversed, team;
	int last = shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, -1, n, NULL, 0, &reversed);

	EXPECT("split", last == 0);
	EXPECT("ctx", shmem_team_create_ctx(reversed, SHMEM_CTX_PRIVATE, &mine) == 0);
	EXPECT("ctx_get_team", shmem_ctx_get_team(mine, &team) == 0 && team == reversed);
	EXPECT("ctx_get_team",
	       shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &team) == 0 && team == SHMEM_TEAM_WORLD);
	EXPECT("ctx_get_team", shmem_ctx_get_team(SHMEM_CTX_INVALID, &team) != 0);
	shmem_ctx_session_start(mine, SHMEM_CTX_SESSION_BATCH, &session,
				SHMEM_CTX_SESSION_TOTAL_OPS);
	shmem_barrier_all();
	/* PE 0 of the context is the last of the world. */
	if (me == 0) {
		shmem_ctx_int_p(mine, &counter, 5, 0);
		shmem_ctx_fence(mine);
		shmem_ctx_int_atomic_inc(mine, &counter, 0);
		shmem_ctx_pe_quiet(mine, &me, 1);
	}
	shmem_ctx_session_stop(mine);
	shmem_ctx_quiet(mine);
	shmem_barrier_all();
	EXPECT("ctx of a team", counter == (me == n - 1 ? 6 : 0));
	counter = 0;
	shmem_ctx_destroy(mine);
	shmem_ctx_destroy(SHMEM_CTX_INVALID);
	shmem_ctx_quiet(SHMEM_CTX_INVALID);
	shmem_ctx_fence(SHMEM_CTX_INVALID);
	shmem_team_destroy(reversed);
}

static void test_order(void)
{
	shmem_barrier_all();
	shmem_int_p(&counter, 1, to);
	shmem_fence();
	shmem_int_p(&counter, 2, to);
	shmem_quiet();
	shmem_pe_quiet(&to, 1);
	shmem_sync_all();
	EXPECT("fence", counter == 2);
	shmem_sync_all();
	counter = 0;
	shmem_barrier_all();
}

static void test_locks(void)
{
	shmem_barrier_all();
	for (int i = 0; i < 50; i++) {
		if (i % 2)
			shmem_set_lock(&lock);
		else
			while (shmem_test_lock(&lock))
				shmem_quiet();
		shmem_int_p(&counter, shmem_int_g(&counter, 0) + 1, 0);
		shmem_clear_lock(&lock);
	}
	shmem_barrier_all();
	EXPECT("lock", shmem_int_g(&counter, 0) == 50 * n && lock == 0);
	shmem_barrier_all();
	counter = 0;
	shmem_barrier_all();
}

void test_rest(void)
{
	test_setup();
	test_memory();
	test_ptr();
	test_teams();
	test_contexts();
	test_order();
	test_locks();
}
