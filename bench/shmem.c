/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shmem.c - one-sided operations of two PEs, by OpenSHMEM: the same program on any
 * library of it. PE 0 prints a line for each batch: what, bytes, microseconds per call.
 *
 * shmem [ROUNDS [MILLISECONDS]]: a batch takes about that long.
 */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES_MAX ((size_t)8 << 20)

static char *there, *here;
static uint64_t *word;
static long *done;

static double now_us(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec * 1e6 + (double)at.tv_nsec / 1e3;
}

/* ---- operations; `i` counts their calls, from 1 ---- */

struct op {
	const char *name;
	void (*call)(size_t bytes, uint64_t i);
	int both; /* PE 1 takes part */
	size_t least, most;
};

static void put_quiet(size_t bytes, uint64_t i)
{
	(void)i;
	shmem_putmem(there, here, bytes, 1);
	shmem_quiet();
}

static void get(size_t bytes, uint64_t i)
{
	(void)i;
	shmem_getmem(here, there, bytes, 1);
}

static void fetch_add(size_t bytes, uint64_t i)
{
	(void)bytes, (void)i;
	(void)shmem_long_atomic_fetch_add(done, 1, 1);
}

static void wait_for(uint64_t i)
{
	shmem_uint64_wait_until(word, SHMEM_CMP_GE, i);
}

/* Data, and then the word that says so. Version 1.4 has no signals. */
static void put_word(size_t bytes, uint64_t i, int pe)
{
#if SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION >= 5
	shmem_putmem_signal(there, here, bytes, word, i, SHMEM_SIGNAL_SET, pe);
#else
	shmem_putmem(there, here, bytes, pe);
	shmem_fence();
	shmem_uint64_p(word, i, pe);
#endif
}

/* There and back. */
static void put_signal(size_t bytes, uint64_t i)
{
	if (shmem_my_pe() == 0)
		put_word(bytes, i, 1);
	wait_for(i);
	if (shmem_my_pe() == 1)
		put_word(bytes, i, 0);
}

static void barrier(size_t bytes, uint64_t i)
{
	(void)bytes, (void)i;
	shmem_barrier_all();
}

static const struct op ops[] = {
	{ "put+quiet", put_quiet, 0, 8, BYTES_MAX },
	{ "get", get, 0, 8, BYTES_MAX },
	{ "fetch-add", fetch_add, 0, 8, 8 },
	{ "put-signal", put_signal, 1, 8, 1024 },
	{ "barrier", barrier, 1, 0, 0 },
};

/* ---- batches ---- */

/* Microseconds of `calls` calls, on PE 0. */
static double batch(const struct op *op, size_t bytes, uint64_t calls)
{
	int mine = op->both || shmem_my_pe() == 0;

	*word = 0;
	shmem_barrier_all();
	double begin = now_us();
	for (uint64_t i = 1; mine && i <= calls; i++)
		op->call(bytes, i);
	double took = now_us() - begin;
	shmem_barrier_all();
	return took;
}

/* How many calls take that long: PE 0 says. */
static uint64_t calls_for(const struct op *op, size_t bytes, double ms)
{
	static uint64_t calls, told;

	batch(op, bytes, 3);
	for (calls = 8; calls < 1000000; calls *= 4) {
		double took = batch(op, bytes, calls);

		told = 0;
		shmem_barrier_all();
		if (shmem_my_pe() == 0) {
			uint64_t enough = took > ms * 250 ? 1 : 2;

			shmem_uint64_p(&told, enough, 1);
			told = enough;
			if (enough == 1)
				calls = (uint64_t)((double)calls * ms * 1000 / took) + 1;
		}
		shmem_barrier_all();
		if (told == 1)
			break;
	}
	shmem_barrier_all();
	if (shmem_my_pe() == 1)
		shmem_getmem(&calls, &calls, sizeof(calls), 0);
	shmem_barrier_all();
	return calls;
}

static void measure(const struct op *op, size_t bytes, int rounds, double ms)
{
	uint64_t calls = calls_for(op, bytes, ms);
	double legs = op->call == put_signal ? 2 : 1;

	for (int r = 0; r < rounds; r++) {
		double took = batch(op, bytes, calls);

		if (shmem_my_pe() == 0)
			printf("%s %zu %.5f\n", op->name, bytes, took / (double)calls / legs);
	}
	fflush(stdout);
}

/* PE 1 computes; how long a get from it takes at the worst. */
static void measure_busy(int rounds)
{
	for (int r = 0; r < rounds; r++) {
		shmem_barrier_all();
		double begin = now_us(), worst = 0;
		while (shmem_my_pe() == 1 && now_us() - begin < 100000)
			;
		for (int i = 0; shmem_my_pe() == 0 && i < 10; i++) {
			double at = now_us();

			get(8, 0);
			worst = now_us() - at > worst ? now_us() - at : worst;
		}
		if (shmem_my_pe() == 0)
			printf("get-busy 8 %.5f\n", worst);
		shmem_barrier_all();
	}
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 5;
	double ms = argc > 2 ? atof(argv[2]) : 10;

	shmem_init();
	if (shmem_n_pes() != 2) {
		if (shmem_my_pe() == 0)
			fprintf(stderr, "shmem: takes 2 PEs, not %d\n", shmem_n_pes());
		shmem_global_exit(2);
	}
	there = shmem_malloc(BYTES_MAX);
	word = shmem_calloc(2, sizeof(uint64_t));
	here = aligned_alloc(4096, BYTES_MAX); /* where it is decides how fast a copy is */
	if (!there || !word || !here)
		shmem_global_exit(1);
	done = (long *)(word + 1);
	memset(here, 1, BYTES_MAX);
	memset(there, 0, BYTES_MAX);
	for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++)
		for (size_t bytes = ops[o].least; bytes <= ops[o].most;
		     bytes = bytes ? bytes * 8 : BYTES_MAX)
			measure(&ops[o], bytes, rounds, ms);
	measure_busy(rounds);
	shmem_finalize();
	free(here);
	return 0;
}
