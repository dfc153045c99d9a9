/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - times of calls on ranks of this machine, as `hocket bench` measures them. */
#include "measure.h"

#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Few of what takes long: ways to copy it have been tried after ten calls. */
#define LARGE_BYTES (1u << 20)
#define LARGE_WARMUP 11u
#define LARGE_ITERS 6u

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static uint64_t most_bytes(const struct measure_job *job)
{
	uint64_t most = 1;

	for (size_t i = 0; i < job->ncells; i++)
		most = job->cells[i].bytes > most ? job->cells[i].bytes : most;
	return most;
}

static void show_progress(const struct measure_job *job, size_t done)
{
	if (job->progress)
		fprintf(stderr, "\rhocket %s: %s, %zu of %zu  ", job->command, job->what, done + 1,
			job->ncells * job->rounds);
}

/* The algorithm a call without one would use. */
static enum hk_status cell_choose(struct bench_rank *rank, struct measure_cell *cell,
				  const struct bench_case *c)
{
	struct hk_choice choice;
	enum hk_status status =
		hk_group_choice(rank->group, cell->coll, c->count, rank->spec->type, &choice);

	if (status == HK_OK && !cell->algo[0])
		snprintf(cell->algo, sizeof(cell->algo), "%s", choice.algo);
	return status;
}

static enum hk_status cell_measure(struct bench_rank *rank, struct measure_cell *cell,
				   double *time_ns_out)
{
	struct bench_case c;
	struct bench_half half;

	const struct bench_spec *all = rank->spec;
	struct bench_spec few = *all;

	few.iters = LARGE_ITERS;
	few.warmup = LARGE_WARMUP;
	few.set_warmup = true;
	bench_case_init(&c, rank->spec, cell->coll, cell->bytes);
	enum hk_status status = cell_choose(rank, cell, &c);
	if (status != HK_OK)
		return status;
	rank->opts.algo = cell->algo;
	rank->spec = cell->bytes >= LARGE_BYTES ? &few : all;
	status = bench_rank_measure(rank, &c, &half);
	rank->spec = all;
	cell->bytes = c.bytes;
	*time_ns_out = half.time_us * 1e3;
	return status;
}

/*
 * Under a hypervisor the cores of two ranks are near each other now and far in a
 * moment. What 8 bytes take tells; all ranks see the same number.
 */
#define DISTANCE_SAME 1.4

static enum hk_status distance_look(struct bench_rank *rank, double *ns_out)
{
	struct measure_cell cell = { .coll = HK_COLL_ALLREDUCE, .algo = "one-shot", .bytes = 8 };

	return cell_measure(rank, &cell, ns_out);
}

/* Measures a cell, again and again while the distance is not what it was. */
static enum hk_status cell_steadily(struct measure_job *job, struct bench_rank *rank,
				    struct measure_cell *cell, double *distance, double *time_ns)
{
	for (;;) {
		double after;
		enum hk_status status = cell_measure(rank, cell, time_ns);

		if (status != HK_OK || job->patience <= 0)
			return status;
		status = distance_look(rank, &after);
		if (status != HK_OK)
			return status;
		if (*distance == 0)
			*distance = after;
		double ratio = after / *distance;
		if (ratio < DISTANCE_SAME && ratio > 1 / DISTANCE_SAME)
			return HK_OK;
		/* Ranks have to give up together: tries are counted, not time. */
		job->patience--;
	}
}

/* Cells from `first` on that are of one size. */
static size_t cells_of_size(const struct measure_job *job, size_t first)
{
	size_t count = 1;

	while (first + count < job->ncells &&
	       job->cells[first + count].bytes == job->cells[first].bytes)
		count++;
	return count;
}

/*
 * In rounds, size by size: the buffers of sockets grow with what is sent and stay
 * so, and `hocket bench` goes from small to large, too.
 */
static enum hk_status cells_measure(struct measure_job *job, struct bench_rank *rank, double *times)
{
	double distance = 0, nobody;
	/* Who is first pays for connections and buffers that grow: not one of them. */
	struct measure_cell warm = job->cells[0];
	enum hk_status status = cell_measure(rank, &warm, &nobody);

	for (size_t first = 0, count; first < job->ncells && status == HK_OK; first += count) {
		count = cells_of_size(job, first);
		for (size_t k = 0; k < count * job->rounds && status == HK_OK; k++) {
			size_t i = first + k % count, round = k / count;

			if (rank->rank == 0)
				show_progress(job, first * job->rounds + k);
			status = cell_steadily(job, rank, &job->cells[i], &distance,
					       &times[i * MEASURE_ROUNDS_MAX + round]);
		}
	}
	if (rank->rank == 0 && job->progress)
		fprintf(stderr, "\r%78s\r", "");
	return status;
}

int measure_group(struct measure_job *job, struct cli_rank *own)
{
	struct bench_spec spec = { .n = job->n,
				   .max_bytes = most_bytes(job),
				   .type = HK_TYPE_FP32,
				   .op = HK_REDOP_SUM,
				   .warmup = BENCH_WARMUP };
	struct bench_rank rank = { .spec = &spec, .group = own->group, .rank = own->rank };
	double *times = calloc(job->ncells, MEASURE_ROUNDS_MAX * sizeof(*times));
	enum hk_status status = HK_ENOMEM;

	if (job->rounds > MEASURE_ROUNDS_MAX)
		job->rounds = MEASURE_ROUNDS_MAX;
	if (times && bench_rank_open(&rank))
		status = cells_measure(job, &rank, times);
	if (status != HK_OK && !rank.why[0])
		bench_rank_failed(&rank, status);
	for (size_t i = 0; i < job->ncells && status == HK_OK; i++) {
		qsort(&times[i * MEASURE_ROUNDS_MAX], job->rounds, sizeof(*times), by_value);
		job->cells[i].time_ns = times[i * MEASURE_ROUNDS_MAX + job->rounds / 2];
	}
	bench_rank_close(&rank);
	free(times);
	snprintf(own->why, sizeof(own->why), "%s", rank.why);
	return rank.why[0] ? CLI_FAILED : CLI_DONE;
}

static int rank_run(void *ctx, struct cli_rank *rank)
{
	struct measure_job job = *(struct measure_job *)ctx;
	size_t bytes = job.ncells * sizeof(*job.cells);
	struct measure_cell *shared = job.cells;

	/* Each rank works on cells of its own; rank 0's are what the parent sees. */
	job.cells = malloc(bytes);
	if (!job.cells) {
		snprintf(rank->why, sizeof(rank->why), "no memory for %zu cells", job.ncells);
		return CLI_FAILED;
	}
	memcpy(job.cells, shared, bytes);
	int status = measure_group(&job, rank);
	if (rank->rank == 0)
		memcpy(shared, job.cells, bytes);
	free(job.cells);
	return status;
}

int measure_here(struct measure_job *job)
{
	size_t bytes = job->ncells * sizeof(*job->cells);
	struct measure_cell *own = job->cells;
	struct measure_cell *shared =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct cli_ranks ranks = { .command = job->command,
				   .n = job->n,
				   .net = job->net,
				   .pin = true,
				   .run = rank_run,
				   .ctx = job };

	if (shared == MAP_FAILED) {
		cli_wrong(job->command, "no memory for %zu cells", job->ncells);
		return CLI_FAILED;
	}
	memcpy(shared, own, bytes);
	job->cells = shared;
	int status = cli_ranks_processes(&ranks);
	memcpy(own, shared, bytes);
	job->cells = own;
	munmap(shared, bytes);
	return status;
}
