/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c - times of calls on ranks of this machine, as `hocket bench` measures them. */
#include "measure.h"

#include "apart.h"
#include "bench.h"
#include "seats.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

/* Few of what takes long; in shared memory ways to copy it have been tried after ten calls. */
#define LARGE_BYTES (1u << 20)
#define LARGE_WARMUP 11u
#define LARGE_ITERS 6u
#define LARGE_BRIEF_S 0.2

/* Where cores are while nothing is done: the distance that most of so many looks find. */
#define LOOKS 15
#define LOOK_EVERY_S 0.01

/* What a cell took, each time. */
struct series {
	struct {
		double times_ns[MEASURE_ROUNDS_MAX];
		uint32_t count;
	} away, home; /* while cores were where they should be */
};

/* All that a rank knows while it measures; all know the same. */
struct measuring {
	struct measure_job *job;
	struct bench_rank *rank;
	struct series *series; /* of each cell */
	int pair[2];	       /* of cores; -1: nobody can look how far they are apart */
	double begin_s;
	/* As of the last look. */
	double apart_ns, elapsed_s;
};

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
	struct hk_choice choice = { .size = sizeof(choice) };
	enum hk_status status =
		hk_group_choice(rank->group, cell->coll, c->count, rank->spec->type, &choice);

	if (status == HK_OK && !cell->algo[0])
		snprintf(cell->algo, sizeof(cell->algo), "%s", choice.algo);
	return status;
}

static enum hk_status cell_measure(struct bench_rank *rank, struct measure_cell *cell,
				   double *time_ns_out)
{
	const struct bench_spec *all = rank->spec;
	struct bench_spec few = *all;
	struct bench_case c;
	struct bench_half half;

	few.iters = LARGE_ITERS;
	few.warmup = LARGE_WARMUP;
	few.set_warmup = true;
	few.brief_s = LARGE_BRIEF_S;
	bench_case_init(&c, all, cell->coll, cell->bytes);
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

/* ---- cores that move ---- */

static bool can_look(const struct measuring *m)
{
	return m->job->patience_s > 0 && m->pair[0] >= 0 && m->pair[1] >= 0;
}

/* Rank 0 looks, after a rest, and tells: ranks have to come to the same conclusions. */
static enum hk_status look(struct measuring *m, double rest_s)
{
	double seen[2] = { 0, 0 };

	if (!can_look(m))
		return HK_OK;
	if (m->rank->rank == 0) {
		nanosleep(&(struct timespec){ .tv_nsec = (long)(rest_s * 1e9) }, NULL);
		seen[0] = apart_ns(m->pair[0], m->pair[1]);
		seen[1] = cli_now_s() - m->begin_s;
	}
	enum hk_status status = hk_broadcast(m->rank->group, seen, seen, 2, HK_TYPE_FP64, 0, NULL);
	m->apart_ns = seen[0];
	m->elapsed_s = seen[1];
	return status;
}

/* Where cores have to be, if nobody has said it. */
static enum hk_status home_find(struct measuring *m)
{
	enum hk_status status = HK_OK;
	double seen[LOOKS];
	int most = 0;

	for (int i = 0; i < LOOKS && status == HK_OK; i++) {
		status = look(m, LOOK_EVERY_S);
		seen[i] = m->apart_ns;
	}
	for (int i = 0; i < LOOKS && status == HK_OK; i++) {
		int count = 0;

		for (int k = 0; k < LOOKS; k++)
			count += apart_alike(seen[i], seen[k]);
		if (count > most) {
			most = count;
			m->job->apart_ns = seen[i];
		}
	}
	return status;
}

static bool at_home(const struct measuring *m)
{
	return !can_look(m) || apart_alike(m->apart_ns, m->job->apart_ns);
}

static bool is_patient(const struct measuring *m)
{
	return m->elapsed_s < m->job->patience_s;
}

/* Measures a cell, again while cores are not where they should be, and remembers it. */
static enum hk_status cell_sample(struct measuring *m, size_t i)
{
	struct series *series = &m->series[i];
	enum hk_status status = HK_OK;
	bool home;
	double ns;

	do {
		while (status == HK_OK && !at_home(m) && is_patient(m))
			status = look(m, LOOK_EVERY_S);
		home = at_home(m);
		if (status == HK_OK)
			status = cell_measure(m->rank, &m->job->cells[i], &ns);
		if (status == HK_OK)
			status = look(m, 0);
		home = home && at_home(m);
	} while (status == HK_OK && !home && is_patient(m));
	if (status != HK_OK)
		return status;
	if (home)
		series->home.times_ns[series->home.count++] = ns;
	else
		series->away.times_ns[series->away.count++] = ns;
	return HK_OK;
}

/* ---- all cells ---- */

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
static enum hk_status cells_measure(struct measuring *m)
{
	struct measure_job *job = m->job;
	double nobody;
	/* Who is first pays for connections and buffers that grow: not one of them. */
	struct measure_cell warm = job->cells[0];
	enum hk_status status = cell_measure(m->rank, &warm, &nobody);

	if (status == HK_OK)
		status = job->apart_ns == 0 ? home_find(m) : look(m, 0);
	for (size_t first = 0, count; first < job->ncells && status == HK_OK; first += count) {
		count = cells_of_size(job, first);
		for (size_t k = 0; k < count * job->rounds && status == HK_OK; k++) {
			if (m->rank->rank == 0)
				show_progress(job, first * job->rounds + k);
			status = cell_sample(m, first + k % count);
		}
	}
	if (m->rank->rank == 0 && job->progress)
		fprintf(stderr, "\r%78s\r", "");
	return status;
}

static double median(double *values, uint32_t count)
{
	qsort(values, count, sizeof(*values), by_value);
	return values[count / 2];
}

static double series_time_ns(struct series *series)
{
	return series->home.count ? median(series->home.times_ns, series->home.count)
				  : median(series->away.times_ns, series->away.count);
}

static enum hk_status measure_all(struct measure_job *job, struct bench_rank *rank,
				  const struct cli_rank *own)
{
	struct measuring m = { .job = job, .rank = rank, .begin_s = cli_now_s() };
	struct cli_seats seats;
	enum hk_status status = cli_seats_find(own, &seats);

	if (status != HK_OK)
		return status;
	memcpy(m.pair, seats.pair, sizeof(m.pair));
	cli_seats_free(&seats);
	m.series = calloc(job->ncells, sizeof(*m.series));
	if (!m.series)
		return HK_ENOMEM;
	status = cells_measure(&m);
	job->moved = false;
	for (size_t i = 0; i < job->ncells && status == HK_OK; i++) {
		job->cells[i].time_ns = series_time_ns(&m.series[i]);
		job->moved = job->moved || m.series[i].home.count == 0;
	}
	free(m.series);
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
	enum hk_status status = HK_OK;

	if (job->rounds > MEASURE_ROUNDS_MAX)
		job->rounds = MEASURE_ROUNDS_MAX;
	if (bench_rank_open(&rank))
		status = measure_all(job, &rank, own);
	if (status != HK_OK)
		bench_rank_failed(&rank, status);
	bench_rank_close(&rank);
	snprintf(own->why, sizeof(own->why), "%s", rank.why);
	return rank.why[0] ? CLI_FAILED : CLI_DONE;
}

/* ---- ranks of our own ---- */

/* What rank 0 found, for the process that started it. */
struct found {
	double apart_ns;
	bool moved;
	struct measure_cell cells[];
};

struct here {
	const struct measure_job *job;
	struct found *found;
};

static int rank_run(void *ctx, struct cli_rank *rank)
{
	const struct here *here = ctx;
	struct measure_job job = *here->job;
	size_t bytes = job.ncells * sizeof(*job.cells);

	/* Each rank works on cells of its own. */
	job.cells = malloc(bytes);
	if (!job.cells) {
		snprintf(rank->why, sizeof(rank->why), "no memory for %zu cells", job.ncells);
		return CLI_FAILED;
	}
	memcpy(job.cells, here->job->cells, bytes);
	int status = measure_group(&job, rank);
	if (rank->rank == 0) {
		here->found->apart_ns = job.apart_ns;
		here->found->moved = job.moved;
		memcpy(here->found->cells, job.cells, bytes);
	}
	free(job.cells);
	return status;
}

int measure_here(struct measure_job *job)
{
	size_t bytes = job->ncells * sizeof(*job->cells);
	struct found *found = mmap(NULL, sizeof(*found) + bytes, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct here here = { .job = job, .found = found };
	struct cli_ranks ranks = { .command = job->command,
				   .n = job->n,
				   .net = job->net,
				   .pin = true,
				   .run = rank_run,
				   .ctx = &here };

	if (found == MAP_FAILED) {
		cli_wrong(job->command, "no memory for %zu cells", job->ncells);
		return CLI_FAILED;
	}
	int status = cli_ranks_processes(&ranks);
	if (status == CLI_DONE) {
		job->apart_ns = found->apart_ns;
		job->moved = found->moved;
		memcpy(job->cells, found->cells, bytes);
	}
	munmap(found, sizeof(*found) + bytes);
	return status;
}
