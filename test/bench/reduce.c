/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reduce.c - how fast the kernels are: GB/s read and written, for buffers in
 * the first cache, in the second, and in memory.
 *
 *	bench_reduce [TYPE [KERNEL]]
 *
 * It stands in test/ because it looks inside of the library. `into` is out of
 * place, `onto` is dst = dst op b, as a step of a ring does. The line of memcpy
 * says what the machine can do.
 */
#include "exec/reduce/reduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	BUFFERS = 3,
	SIZES = 3,
	ROUNDS = 7
};
static const size_t sizes[SIZES] = { 8u << 10, 256u << 10, 16u << 20 }; /* of a buffer */

static unsigned char *buffers[BUFFERS];

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct job {
	const char *kernel;
	const struct hk__reduce *reduce; /* NULL: memcpy */
	size_t count;
};

/* Bytes read and written. */
static size_t job_run(const struct job *job)
{
	const struct hk__reduce *reduce = job->reduce;
	void *dst = buffers[0], *a = buffers[1], *b = buffers[2];
	size_t count = job->count;

	if (!reduce) {
		memcpy(dst, a, count);
		return 2 * count;
	}
	if (!strcmp(job->kernel, "into")) {
		reduce->fold(dst, a, b, count);
		return 3 * reduce->size * count;
	}
	if (!strcmp(job->kernel, "onto")) {
		reduce->fold(dst, dst, b, count);
		return 3 * reduce->size * count;
	}
	if (!strcmp(job->kernel, "wide")) {
		reduce->wide_fold(dst, dst, b, count);
		return (2 * reduce->acc_size + reduce->size) * count;
	}
	if (!strcmp(job->kernel, "narrow")) {
		reduce->narrow_fold(dst, a, b, count);
		return (reduce->acc_size + 2 * reduce->size) * count;
	}
	reduce->finish(dst, 3, count);
	return 2 * reduce->size * count;
}

static double job_speed(const struct job *job)
{
	double best = 0;
	size_t runs = 1, bytes = job_run(job);

	while (runs * bytes < 64u << 20)
		runs *= 2;
	for (int round = 0; round < ROUNDS; round++) {
		double start = seconds();

		for (size_t i = 0; i < runs; i++)
			job_run(job);
		double speed = 1e-9 * (double)(runs * bytes) / (seconds() - start);
		best = speed > best ? speed : best;
	}
	return best;
}

/* Numbers of every kind but none too large: 1.something or small integers. */
static void fill(enum hk_type type)
{
	for (size_t i = 0; i < sizes[SIZES - 1]; i++)
		for (int j = 0; j < BUFFERS; j++)
			buffers[j][i] = type < HK_TYPE_FP16
						? (unsigned char)(i * 7 + (size_t)j)
						: (unsigned char)(0x38 + (i + (size_t)j) % 6);
}

static void print_row(const char *type, const char *op, const char *isa, struct job *job)
{
	printf("%-8s %-5s %-7s %-7s", type, op, job->kernel, isa);
	for (int i = 0; i < SIZES; i++) {
		size_t width = !job->reduce ? 1
			       : !strcmp(job->kernel, "wide") || !strcmp(job->kernel, "narrow")
				       ? job->reduce->acc_size
				       : job->reduce->size;

		job->count = sizes[i] / width;
		printf(" %8.1f", job_speed(job));
	}
	printf("\n");
	fflush(stdout);
}

static void measure(enum hk_type type, enum hk_redop op, const char *only)
{
	static const char *const kernels[] = { "into", "onto", "wide", "narrow", "finish" };

	fill(type);
	for (size_t k = 0; k < sizeof(kernels) / sizeof(kernels[0]); k++) {
		if (only ? strcmp(only, kernels[k]) != 0 : k > 1)
			continue;
		for (unsigned isa = 0; isa < HK__ISA_COUNT; isa++) {
			struct job job = { .kernel = kernels[k],
					   .reduce = hk__reduce_find_isa(type, op,
									 (enum hk__isa)isa) };

			if (job.reduce)
				print_row(hk_type_name(type), hk_redop_name(op),
					  hk__isa_name((enum hk__isa)isa), &job);
		}
	}
}

int main(int argc, char **argv)
{
	static const enum hk_redop ops[] = { HK_REDOP_SUM, HK_REDOP_PROD, HK_REDOP_MAX };
	enum hk_type only = HK_TYPE_COUNT;
	struct job copy = { .kernel = "memcpy" };

	if (argc > 1 && hk_type_parse(argv[1], &only) != HK_OK)
		return 2;
	for (int i = 0; i < BUFFERS; i++) {
		buffers[i] = aligned_alloc(4096, sizes[SIZES - 1]);
		if (!buffers[i])
			return 1;
		memset(buffers[i], 1, sizes[SIZES - 1]);
	}
	printf("GB/s                           3*8 KiB 3*256 KiB 3*16 MiB\n");
	print_row("-", "-", "-", &copy);
	for (unsigned type = 0; type < HK_TYPE_COUNT; type++)
		for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
			if (only == HK_TYPE_COUNT ? i == 0 : only == (enum hk_type)type)
				measure((enum hk_type)type, ops[i], argc > 2 ? argv[2] : NULL);
	for (int i = 0; i < BUFFERS; i++)
		free(buffers[i]);
	return 0;
}
