/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer.c - the frame in which every library is measured: see peer.h.
 *
 *	DRIVER [--bind] [--registered] [--fixed-root] [--batches N] [--batch-ms N]
 *	       COLLECTIVE:BYTES[,BYTES...]...
 *
 * A cell is a collective and a size. Each is run until it is warm and its
 * result is right on every rank; then rank 0 decides how many operations take
 * about --batch-ms (three at least), and so many are timed, --batches times, each
 * from a barrier on. A batch takes as long as it takes the slowest rank; one that
 * takes more than ten times what it should is the last.
 *
 * In a loop the root of a broadcast would run ahead of the others, and what is
 * measured would be how many messages a transport can hold. So the root goes
 * from rank to rank, and a broadcast begins when its root has had the last one.
 *
 * Rank 0 prints a line for each batch:
 *
 *	coll=allreduce size=8 bytes=8 ranks=2 iters=50000 us=0.4105 wrong=0
 *
 * `size` is what was asked for, `bytes` what was done: blocks have an element
 * at least. Any wrong element makes the exit status 1.
 */
#include "peer.h"

#include <getopt.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static const char *const coll_names[PEER_COLLS] = {
	[PEER_ALLREDUCE] = "allreduce",		[PEER_ALLGATHER] = "allgather",
	[PEER_REDUCESCATTER] = "reducescatter", [PEER_ALLTOALL] = "alltoall",
	[PEER_BROADCAST] = "broadcast",
};

struct options {
	bool bind;
	bool registered;
	bool fixed_root;
	int batches;
	double batch_s;
};

struct buffers {
	float *in;
	float *out;
};

struct cell {
	enum peer_coll coll;
	size_t size; /* as asked for */
};

void peer_die(const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", peer.name);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

void *peer_alloc(size_t bytes, bool registered)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (registered)
		peer_die("has no registered memory");
	if (mem == MAP_FAILED)
		peer_die("no memory for a buffer of %zu bytes", bytes);
	return mem;
}

static double now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* Rank r gets the r-th of the CPUs it may use, in turn. */
static void bind_rank(void)
{
	cpu_set_t allowed, mine;
	int place;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		peer_die("cannot read the CPUs this process may use");
	place = peer.rank() % CPU_COUNT(&allowed);
	CPU_ZERO(&mine);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed) || place-- > 0)
			continue;
		CPU_SET(cpu, &mine);
		break;
	}
	if (sched_setaffinity(0, sizeof(mine), &mine))
		peer_die("cannot bind rank %d to a CPU", peer.rank());
}

/* ---- what is in the buffers ---- */

static size_t blocks_in(enum peer_coll coll)
{
	return coll == PEER_REDUCESCATTER || coll == PEER_ALLTOALL ? (size_t)peer.size() : 1;
}

static size_t blocks_out(enum peer_coll coll)
{
	return coll == PEER_ALLGATHER || coll == PEER_ALLTOALL ? (size_t)peer.size() : 1;
}

/* Small whole numbers: fp32 adds them without rounding, in any order. */
static float value(int rank, size_t i)
{
	return (float)((i * 31 + (size_t)rank * 17) & 1023);
}

static void job_fill(const struct peer_job *job)
{
	size_t ins = blocks_in(job->coll) * job->count, outs = blocks_out(job->coll) * job->count;

	memset(job->out, 0xff, outs * sizeof(float)); /* not numbers */
	if (job->coll == PEER_BROADCAST && job->root != peer.rank())
		return;
	for (size_t i = 0; i < ins; i++)
		job->in[i] = value(peer.rank(), i);
}

/* What element i of block b of rank's output has to be. */
static float expected(const struct peer_job *job, size_t b, size_t i)
{
	size_t mine = (size_t)peer.rank() * job->count + i;
	float sum = 0;

	switch (job->coll) {
	case PEER_ALLGATHER:
		return value((int)b, i);
	case PEER_ALLTOALL:
		return value((int)b, mine);
	case PEER_BROADCAST:
		return value(job->root, i);
	default:
		break;
	}
	for (int rank = 0; rank < peer.size(); rank++)
		sum += value(rank, job->coll == PEER_REDUCESCATTER ? mine : i);
	return sum;
}

/* How many elements are wrong, on the rank that has most of them. */
static double job_check(struct peer_job *job)
{
	size_t wrong = 0;

	job->root = peer.size() - 1;
	job_fill(job);
	peer.barrier();
	peer.run(job);
	for (size_t b = 0; b < blocks_out(job->coll); b++) {
		const float *block = job->out + b * job->count;

		for (size_t i = 0; i < job->count; i++)
			wrong += !(block[i] == expected(job, b, i));
	}
	return peer.max((double)wrong);
}

/* ---- time ---- */

/* Seconds that `iters` operations take the slowest rank. */
static double job_time(const struct options *options, struct peer_job *job, long iters)
{
	int n = peer.size();
	double start;

	peer.barrier();
	start = now();
	for (long i = 0; i < iters; i++) {
		job->root = options->fixed_root ? 0 : (int)(i % n);
		peer.run(job);
	}
	return peer.max(now() - start);
}

/*
 * Runs it until it is warm: every root once, and a fifth of a batch. All ranks
 * see the same times, so all come to the same number, here and in cell_run().
 */
static long job_iters(const struct options *options, struct peer_job *job)
{
	const long most = 1000000;
	long iters = 12; /* libraries may try ways, and then know */
	double seconds;

	(void)job_time(options, job, job->coll == PEER_BROADCAST ? peer.size() : 1);
	for (;;) {
		seconds = job_time(options, job, iters);
		if (seconds >= options->batch_s / 5 || iters >= most)
			break;
		iters *= seconds < options->batch_s / 50 ? 8 : 3;
	}
	seconds = options->batch_s / (seconds / (double)iters);
	if (seconds > (double)most)
		return most;
	return seconds < 3 ? 3 : (long)seconds;
}

static struct peer_job cell_job(const struct cell *cell, const struct buffers *buffers)
{
	bool whole = cell->coll == PEER_ALLREDUCE || cell->coll == PEER_BROADCAST;
	size_t count = cell->size / sizeof(float) / (whole ? 1 : (size_t)peer.size());

	return (struct peer_job){
		.coll = cell->coll,
		.in = cell->coll == PEER_BROADCAST ? buffers->out : buffers->in,
		.out = buffers->out,
		.count = count ? count : 1,
	};
}

static size_t job_bytes(const struct peer_job *job)
{
	size_t ins = blocks_in(job->coll), outs = blocks_out(job->coll);

	return (ins > outs ? ins : outs) * job->count * sizeof(float);
}

/* The number of wrong elements. */
static double cell_run(const struct options *options, const struct cell *cell,
		       const struct buffers *buffers)
{
	struct peer_job job = cell_job(cell, buffers);
	double wrong = job_check(&job);
	long iters = job_iters(options, &job);

	for (int batch = 0; batch < options->batches; batch++) {
		double seconds = job_time(options, &job, iters);

		if (peer.rank() == 0)
			printf("coll=%s size=%zu bytes=%zu ranks=%d iters=%ld us=%.4f wrong=%.0f\n",
			       coll_names[cell->coll], cell->size, job_bytes(&job), peer.size(),
			       iters, 1e6 * seconds / (double)iters, wrong);
		if (seconds > 10 * options->batch_s)
			break;
	}
	fflush(stdout);
	return wrong;
}

/* ---- the command line ---- */

static enum peer_coll coll_parse(const char *text, size_t length)
{
	for (enum peer_coll coll = 0; coll < PEER_COLLS; coll++)
		if (strlen(coll_names[coll]) == length && !memcmp(text, coll_names[coll], length))
			return coll;
	peer_die("no collective named %.*s", (int)length, text);
}

/* Calls `visit` for each cell of COLLECTIVE:BYTES,... that the peer can do. */
static void cells_parse(const char *text, void (*visit)(const struct cell *, void *), void *arg)
{
	size_t length = strcspn(text, ":");
	struct cell cell = { .coll = coll_parse(text, length) };
	const char *at = text + length;

	if (!*at)
		peer_die("COLLECTIVE:BYTES,... is wanted, not %s", text);
	while (*at) {
		char *end;

		cell.size = strtoull(at + 1, &end, 10);
		if (end == at + 1 || (*end && *end != ','))
			peer_die("not a list of sizes: %s", at + 1);
		at = end;
		if (peer.colls >> cell.coll & 1)
			visit(&cell, arg);
	}
}

static void visit_size(const struct cell *cell, void *arg)
{
	const struct buffers none = { NULL, NULL };
	struct peer_job job = cell_job(cell, &none);
	size_t *most = arg;

	if (job_bytes(&job) > *most)
		*most = job_bytes(&job);
}

struct work {
	const struct options *options;
	struct buffers buffers;
	double wrong;
};

static void visit_run(const struct cell *cell, void *arg)
{
	struct work *work = arg;

	work->wrong += cell_run(work->options, cell, &work->buffers);
}

static double positive(const char *text)
{
	char *end;
	double number = strtod(text, &end);

	if (end == text || *end || !(number > 0))
		peer_die("a positive number is wanted, not %s", text);
	return number;
}

static struct options options_parse(int argc, char **argv)
{
	static const struct option names[] = {
		{ "bind", no_argument, NULL, 'b' },
		{ "registered", no_argument, NULL, 'r' },
		{ "fixed-root", no_argument, NULL, 'f' },
		{ "batches", required_argument, NULL, 'n' },
		{ "batch-ms", required_argument, NULL, 'm' },
		{ NULL, 0, NULL, 0 },
	};
	struct options options = { .batches = 3, .batch_s = 0.030 };
	int name;

	while ((name = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (name) {
		case 'b':
			options.bind = true;
			break;
		case 'r':
			options.registered = true;
			break;
		case 'f':
			options.fixed_root = true;
			break;
		case 'n':
			options.batches = (int)positive(optarg);
			break;
		case 'm':
			options.batch_s = positive(optarg) / 1e3;
			break;
		default:
			exit(2);
		}
	}
	return options;
}

int main(int argc, char **argv)
{
	struct options options;
	struct work work = { .options = &options };
	size_t most = sizeof(float);

	peer.init(&argc, &argv);
	options = options_parse(argc, argv);
	if (options.bind)
		bind_rank();
	for (int i = optind; i < argc; i++)
		cells_parse(argv[i], visit_size, &most);
	work.buffers.in = peer.alloc(most, options.registered);
	work.buffers.out = peer.alloc(most, options.registered);
	memset(work.buffers.in, 0, most); /* pages are there before the clock runs */
	memset(work.buffers.out, 0, most);
	if (peer.rank() == 0) {
		printf("peer=%s ranks=%d version=%s\n", peer.name, peer.size(), peer.version());
		fflush(stdout);
	}
	for (int i = optind; i < argc; i++)
		cells_parse(argv[i], visit_run, &work);
	peer.finish();
	return work.wrong > 0;
}
