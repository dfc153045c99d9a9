/* SPDX-License-Identifier: Apache-2.0 */
/* bed.c - ranks, and elements of every type. */
#include "bed.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void bed_check(ncclResult_t result, const char *call, const char *file, int line)
{
	if (result != ncclSuccess)
		test_fail(file, line, "%s: %s: %s", call, ncclGetErrorString(result),
			  ncclGetLastError(NULL));
}

/* ---- ranks ---- */

struct runner {
	struct bed_rank rank;
	bed_run run;
	pthread_t thread;
};

static void *runner_run(void *ctx)
{
	struct runner *runner = ctx;

	runner->run(&runner->rank);
	return NULL;
}

void bed_threads(int n, bed_run run, void *ctx)
{
	struct runner runners[BED_RANKS_MAX];
	ncclUniqueId id;

	NCCL(ncclGetUniqueId(&id));
	for (int r = 0; r < n; r++) {
		runners[r] = (struct runner){ .rank = { r, n, id, ctx }, .run = run };
		CHECK_EQ(pthread_create(&runners[r].thread, NULL, runner_run, &runners[r]), 0);
	}
	for (int r = 0; r < n; r++)
		pthread_join(runners[r].thread, NULL);
}

/*
 * A process that makes an id and keeps it until it is killed: it is none of the
 * ranks, and those are forked from one that has no threads.
 */
static pid_t keeper_start(ncclUniqueId *id)
{
	int ends[2];

	CHECK_EQ(pipe(ends), 0);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		NCCL(ncclGetUniqueId(id));
		CHECK_EQ(write(ends[1], id, sizeof(*id)), (ssize_t)sizeof(*id));
		for (;;)
			pause();
	}
	close(ends[1]);
	CHECK_EQ(read(ends[0], id, sizeof(*id)), (ssize_t)sizeof(*id));
	close(ends[0]);
	return pid;
}

void bed_processes_but(int n, bed_run run, void *ctx, int dies)
{
	pid_t pids[BED_RANKS_MAX];
	ncclUniqueId id;
	pid_t keeper = keeper_start(&id);
	bool skipped = false;

	for (int r = 0; r < n; r++) {
		struct bed_rank rank = { r, n, id, ctx };

		pids[r] = fork();
		CHECK(pids[r] >= 0);
		if (pids[r] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			run(&rank);
			exit(0);
		}
	}
	for (int r = 0; r < n; r++) {
		int status = 0;

		CHECK_EQ(waitpid(pids[r], &status, 0), pids[r]);
		skipped |= WIFEXITED(status) && WEXITSTATUS(status) == 77;
		if (r != dies && !skipped)
			CHECK_EQ(status, 0);
	}
	kill(keeper, SIGKILL);
	CHECK_EQ(waitpid(keeper, NULL, 0), keeper);
	if (skipped)
		SKIP("its ranks were");
}

void bed_processes(int n, bed_run run, void *ctx)
{
	bed_processes_but(n, run, ctx, -1);
}

struct bed_pipes bed_pipes_open(void)
{
	struct bed_pipes pipes;

	CHECK_EQ(pipe(pipes.come), 0);
	CHECK_EQ(pipe(pipes.gone), 0);
	return pipes;
}

void bed_tell(const int *ends)
{
	CHECK_EQ(write(ends[1], "x", 1), 1);
}

void bed_hear(const int *ends)
{
	char x;

	CHECK_EQ(read(ends[0], &x, 1), 1);
}

/* ---- elements ---- */

size_t bed_size(ncclDataType_t type)
{
	static const size_t sizes[ncclNumTypes] = { 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1 };

	return sizes[type];
}

bool bed_integer(ncclDataType_t type)
{
	return type <= ncclUint64;
}

static int exponent_bits(ncclDataType_t type)
{
	return type == ncclBfloat16 ? 8 : type == ncclFloat8e4m3 ? 4 : 5;
}

/* Of values that the type has exactly, and that are normal in it. */
static uint32_t small_put(ncclDataType_t type, double value)
{
	int bits = (int)bed_size(type) * 8, exponent;
	int fraction_bits = bits - 1 - exponent_bits(type);
	int bias = (1 << (exponent_bits(type) - 1)) - 1;

	if (value == 0)
		return 0;
	double fraction = frexp(fabs(value), &exponent); /* 0.5 <= fraction < 1 */
	uint32_t mantissa = (uint32_t)ldexp(fraction * 2 - 1, fraction_bits);
	return (uint32_t)(value < 0) << (bits - 1) |
	       (uint32_t)(exponent - 1 + bias) << fraction_bits | mantissa;
}

static double small_get(ncclDataType_t type, uint32_t word)
{
	int bits = (int)bed_size(type) * 8;
	int fraction_bits = bits - 1 - exponent_bits(type);
	int bias = (1 << (exponent_bits(type) - 1)) - 1;
	int exponent = (int)(word >> fraction_bits) & ((1 << exponent_bits(type)) - 1);
	double fraction = ldexp(word & ((1u << fraction_bits) - 1), -fraction_bits);
	double sign = word >> (bits - 1) ? -1 : 1;

	return sign *
	       (exponent == 0 ? ldexp(fraction, 1 - bias) : ldexp(1 + fraction, exponent - bias));
}

#define AT(ctype) (((ctype *)at)[i])

void bed_put(ncclDataType_t type, void *at, size_t i, double value)
{
	switch (type) {
	case ncclInt8:
		AT(int8_t) = (int8_t)value;
		break;
	case ncclUint8:
		AT(uint8_t) = (uint8_t)value;
		break;
	case ncclInt32:
		AT(int32_t) = (int32_t)value;
		break;
	case ncclUint32:
		AT(uint32_t) = (uint32_t)value;
		break;
	case ncclInt64:
		AT(int64_t) = (int64_t)value;
		break;
	case ncclUint64:
		AT(uint64_t) = (uint64_t)value;
		break;
	case ncclFloat32:
		AT(float) = (float)value;
		break;
	case ncclFloat64:
		AT(double) = value;
		break;
	case ncclFloat16:
	case ncclBfloat16:
		AT(uint16_t) = (uint16_t)small_put(type, value);
		break;
	default:
		AT(uint8_t) = (uint8_t)small_put(type, value);
		break;
	}
}

#undef AT
#define AT(ctype) (((const ctype *)at)[i])

double bed_get(ncclDataType_t type, const void *at, size_t i)
{
	switch (type) {
	case ncclInt8:
		return AT(int8_t);
	case ncclUint8:
		return AT(uint8_t);
	case ncclInt32:
		return AT(int32_t);
	case ncclUint32:
		return AT(uint32_t);
	case ncclInt64:
		return (double)AT(int64_t);
	case ncclUint64:
		return (double)AT(uint64_t);
	case ncclFloat32:
		return AT(float);
	case ncclFloat64:
		return AT(double);
	case ncclFloat16:
	case ncclBfloat16:
		return small_get(type, AT(uint16_t));
	default:
		return small_get(type, AT(uint8_t));
	}
}
