/* SPDX-License-Identifier: Apache-2.0 */
/* ends.c - programs that do something wrong, or end early: what `ends` asks for by name. */
#include <shmem.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long word, lock;
static long in[8], out[8];
static int me, n;

static int is(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/* As a PE that computes, and makes no calls. */
static void loop(void)
{
	for (;;)
		pause();
}

static void misuse(const char *what)
{
	long *heap = shmem_malloc(10 * sizeof(*heap));
	long local = 0;

	if (is(what, "stack"))
		shmem_long_p(&local, 1, 0);
	if (is(what, "pe"))
		shmem_long_p(&word, 1, n);
	if (is(what, "past_heap"))
		shmem_putmem(heap, &local, (size_t)1 << 40, 0);
	if (is(what, "cmp"))
		shmem_long_wait_until(&word, 9, 1);
	if (is(what, "relock")) {
		if (me == 0)
			shmem_set_lock(&lock);
		if (me == 0)
			shmem_set_lock(&lock);
	}
	if (is(what, "free_twice")) {
		shmem_free(heap);
		shmem_free(heap);
	}
	if (is(what, "active") && me == 0)
		shmem_sync(1, 0, n - 1, in);
	/* What only HOCKET_CHECK=1 sees. */
	if (is(what, "past_block"))
		shmem_long_put(heap + 8, in, 3, 0);
	if (is(what, "unequal_size"))
		shmem_malloc((size_t)me + 1);
	if (is(what, "unequal_count"))
		shmem_long_sum_reduce(SHMEM_TEAM_WORLD, out, in, (size_t)me + 1);
	if (is(what, "unequal_root"))
		shmem_long_broadcast(SHMEM_TEAM_WORLD, out, in, 1, me);
	if (is(what, "overlap"))
		shmem_long_fcollect(SHMEM_TEAM_WORLD, out, out + 1, 2);
	if (is(what, "overlap_put"))
		shmem_long_put(out, out + 1, 2, me);
	if (is(what, "signal_in_data"))
		shmem_long_put_signal(out, in, 2, (uint64_t *)&out[1], 1, SHMEM_SIGNAL_SET, 0);
	if (is(what, "after_free")) {
		shmem_free(heap);
		shmem_long_p(heap, 1, 0);
	}
	shmem_barrier_all();
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (is(what, "before"))
		shmem_barrier_all();
	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	if (is(what, "global_exit") || is(what, "global_exit_zero")) {
		if (me != n - 1)
			loop();
		printf("flushed");
		shmem_global_exit(is(what, "global_exit") ? 7 : 0);
	}
	if (is(what, "exit")) {
		if (me != n - 1)
			loop();
		exit(3);
	}
	if (is(what, "killed")) {
		if (me == n - 1)
			raise(SIGKILL);
		shmem_long_wait_until(&word, SHMEM_CMP_NE, 0);
	}
	misuse(what);
	shmem_finalize();
	return 0;
}
