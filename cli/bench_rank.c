/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_rank.c - one rank: every collective and size, warmed up, timed, checked.
 *
 * The time of a call is nccl-tests': after a barrier, calls one behind the other,
 * their time divided by their number, and the average over ranks of that. Single calls
 * are timed in the same run where reading the clock is nothing beside them, else in
 * another one.
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How many calls to time, if nobody said: at least 20, or more if they are so
   short that these would take no time; but fewer if they would take long. */
#define ITERS_LEAST 20.0
#define ITERS_MOST 1000.0
#define TIME_LEAST_S 0.01
#define TIME_MOST_S 2.0
#define WARMUP_MOST_S 0.5
#define SHORT_S 10e-6 /* of a call; a clock is read in a few hundredths of a microsecond */

/* ---- what ranks tell each other ---- */

static enum hk_status over_ranks(struct bench_rank *rank, double own, enum hk_redop op,
				 double *all_out)
{
	return hk_allreduce(rank->group, &own, all_out, 1, HK_TYPE_FP64, op, NULL);
}

static enum hk_status sum_wrong(struct bench_rank *rank, uint64_t own, uint64_t *all_out)
{
	return hk_allreduce(rank->group, &own, all_out, 1, HK_TYPE_UINT64, HK_REDOP_SUM, NULL);
}

/* ---- one form of one size ---- */

static enum hk_status calls(struct bench_rank *rank, const struct bench_case *c, uint32_t count,
			    double *seconds_out)
{
	enum hk_status status = HK_OK;
	double begin = cli_now_s();

	for (uint32_t i = 0; i < count && status == HK_OK; i++)
		status = bench_case_call(rank, c);
	*seconds_out = cli_now_s() - begin;
	return status;
}

/* The same, each call timed too. */
static enum hk_status calls_each(struct bench_rank *rank, const struct bench_case *c,
				 uint32_t count, double *seconds_out)
{
	enum hk_status status = HK_OK;
	uint64_t begin = cli_now_ns(), last = begin;

	for (uint32_t i = 0; i < count && status == HK_OK; i++) {
		status = bench_case_call(rank, c);
		uint64_t now = cli_now_ns();
		bench_times_add(&rank->times, i, now - last);
		last = now;
	}
	*seconds_out = (double)(last - begin) / (double)CLI_NS;
	return status;
}

static uint32_t between(double value, double least, double most)
{
	return (uint32_t)(value < least ? least : value > most ? most : value);
}

/* Calls that are not timed. The slowest rank decides how many follow, for all. */
static enum hk_status warm_up_auto(struct bench_rank *rank, const struct bench_case *c,
				   uint32_t *iters_out, double *call_s_out)
{
	const struct bench_spec *spec = rank->spec;
	uint32_t warmup = spec->warmup;
	double own, slowest;

	/* The first call makes, proves and binds the plan; the second is like the others. */
	enum hk_status status = calls(rank, c, 1, &own);
	if (status == HK_OK)
		status = calls(rank, c, 1, &own);
	if (status == HK_OK)
		status = over_ranks(rank, own, HK_REDOP_MAX, &slowest);
	if (status != HK_OK)
		return status;
	slowest = slowest > 1e-9 ? slowest : 1e-9;
	if (spec->brief_s > 0) {
		*iters_out = between(spec->brief_s / slowest, 2, spec->iters);
		warmup = between(spec->brief_s / slowest, 2, warmup);
	} else if (!spec->iters) {
		double least = TIME_LEAST_S / slowest, most = TIME_MOST_S / slowest;

		*iters_out = between(least > ITERS_LEAST ? least : ITERS_LEAST, 1,
				     most > ITERS_MOST ? ITERS_MOST
				     : most < 1	       ? 1
						       : most);
	}
	if (!spec->set_warmup)
		warmup = between(WARMUP_MOST_S / slowest, 0, warmup);
	uint32_t left = warmup > 2 ? warmup - 2 : 0;
	status = calls(rank, c, left, &own);
	*call_s_out = left ? own / left : slowest;
	return status;
}

/* Also about how long a call takes, of the fastest rank. */
static enum hk_status warm_up(struct bench_rank *rank, const struct bench_case *c,
			      uint32_t *iters_out, double *call_s_out)
{
	const struct bench_spec *spec = rank->spec;
	enum hk_status status;
	double own = 0;

	*iters_out = spec->iters;
	if (spec->iters && spec->set_warmup && spec->brief_s == 0) {
		status = calls(rank, c, spec->warmup, &own);
		own = spec->warmup ? own / spec->warmup : 0;
	} else {
		status = warm_up_auto(rank, c, iters_out, &own);
	}
	*call_s_out = own;
	if (status == HK_OK && rank->each)
		status = over_ranks(rank, own, HK_REDOP_MIN, call_s_out);
	return status;
}

/* The calls that are timed, one behind the other, on ranks that begin together. */
static enum hk_status timed(struct bench_rank *rank, const struct bench_case *c, bool each,
			    uint32_t iters, double *seconds_out)
{
	enum hk_status status = hk_barrier(rank->group, NULL);

	if (status == HK_OK)
		status = (each ? calls_each : calls)(rank, c, iters, seconds_out);
	return status;
}

static enum hk_status timed_all(struct bench_rank *rank, const struct bench_case *c, double call_s,
				struct bench_half *half, double *seconds_out)
{
	bool apart = call_s < SHORT_S;
	double unused;

	if (!rank->each)
		return timed(rank, c, false, half->iters, seconds_out);
	if (!bench_times_begin(&rank->times, rank->spec->n, half->iters))
		return HK_ENOMEM;
	enum hk_status status = timed(rank, c, !apart, half->iters, seconds_out);
	if (status == HK_OK && apart)
		status = timed(rank, c, true, half->iters, &unused);
	return status == HK_OK ? bench_times_end(rank, half) : status;
}

static enum hk_status check(struct bench_rank *rank, const struct bench_case *c,
			    uint64_t *wrong_out)
{
	bench_case_fill(rank, c);
	enum hk_status status = bench_case_call(rank, c);
	return status == HK_OK ? sum_wrong(rank, bench_case_wrong(rank, c), wrong_out) : status;
}

enum hk_status bench_rank_measure(struct bench_rank *rank, const struct bench_case *c,
				  struct bench_half *half_out)
{
	const struct bench_spec *spec = rank->spec;
	struct bench_half half = { .measured = true };
	double own, sum, call_s;

	if (rank->report)
		bench_report_progress(rank->report, c);
	bench_case_fill(rank, c);
	enum hk_status status = warm_up(rank, c, &half.iters, &call_s);
	if (status == HK_OK)
		status = timed_all(rank, c, call_s, &half, &own);
	if (status == HK_OK)
		status = over_ranks(rank, own, HK_REDOP_SUM, &sum);
	if (status == HK_OK && spec->check)
		status = check(rank, c, &half.wrong);
	if (status != HK_OK)
		return status;
	double seconds = sum / spec->n / half.iters;
	half.time_us = seconds * 1e6;
	half.algbw = seconds > 0 ? (double)c->bytes / seconds / 1e9 : 0;
	half.busbw = half.algbw * bench_coll_bus(c->coll, spec->n);
	*half_out = half;
	return HK_OK;
}

/* ---- sizes and collectives ---- */

/* What performs the call, and whether it does so in place. */
static enum hk_status row_algo(struct bench_rank *rank, struct bench_row *row, bool *inplace_out)
{
	const struct bench_spec *spec = rank->spec;
	struct hk_algo_info algo = { .size = sizeof(algo) };
	struct hk_choice choice = { .size = sizeof(choice) };

	if (spec->plan) {
		struct hk_plan_info info = { .size = sizeof(info) };

		hk_plan_describe(spec->plan, &info);
		row->algo = info.algo;
		*inplace_out = info.inplace;
		return HK_OK;
	}
	enum hk_status status =
		hk_group_choice(rank->group, row->at.coll, row->at.count, spec->type, &choice);
	if (status == HK_OK)
		status = hk_algo_find(row->at.coll, spec->algo ? spec->algo : choice.algo, &algo);
	if (status == HK_OK) {
		row->algo = algo.name;
		*inplace_out = algo.inplace;
	}
	return status;
}

static enum hk_status run_row(struct bench_rank *rank, struct bench_case *c)
{
	struct bench_row row = { .at = *c };
	bool inplace = false;
	enum hk_status status = row_algo(rank, &row, &inplace);

	if (status == HK_OK)
		status = bench_rank_measure(rank, c, &row.half[0]);
	if (status == HK_OK && inplace && bench_coll_inplace(c->coll)) {
		c->inplace = true;
		status = bench_rank_measure(rank, c, &row.half[1]);
	}
	if (status == HK_OK && rank->report)
		bench_report_row(rank->report, &row);
	return status;
}

static enum hk_status run_coll(struct bench_rank *rank, enum hk_coll coll)
{
	const struct bench_spec *spec = rank->spec;
	enum hk_status status = HK_OK;
	uint64_t last = UINT64_MAX;

	if (rank->report)
		bench_report_table(rank->report, coll);
	for (uint64_t bytes = spec->min_bytes; bytes <= spec->max_bytes && status == HK_OK;
	     bytes *= spec->factor) {
		struct bench_case c;

		bench_case_init(&c, spec, coll, bytes);
		/* Sizes that come out the same are one row; a barrier has one. */
		if (c.bytes != last)
			status = run_row(rank, &c);
		last = c.bytes;
	}
	if (status == HK_OK && rank->report)
		bench_report_table_end(rank->report);
	return status;
}

/* ---- before and after ---- */

static enum hk_status report_begin(struct bench_rank *rank, struct bench_report *report)
{
	const struct bench_spec *spec = rank->spec;
	struct bench_seat own = { .pid = (uint32_t)getpid(), .core = rank->core };
	struct bench_seat *seats = calloc(spec->n, sizeof(*seats));
	struct hk_choice choice = { .size = sizeof(choice) };

	if (!seats)
		return HK_ENOMEM;
	if (gethostname(own.host, sizeof(own.host) - 1) != 0)
		strcpy(own.host, "?");
	enum hk_status status =
		hk_allgather(rank->group, &own, seats, sizeof(own), HK_TYPE_UINT8, NULL);
	if (status == HK_OK)
		status = hk_group_choice(rank->group, HK_COLL_BARRIER, 0, spec->type, &choice);
	if (status == HK_OK && rank->rank == 0) {
		for (uint32_t r = 0; r < spec->n; r++)
			seats[r].host[sizeof(seats[r].host) - 1] = '\0';
		bench_report_begin(report, spec, choice.net, seats);
		rank->report = report;
	}
	free(seats);
	return status;
}

static bool take_buffer(struct bench_rank *rank, size_t bytes, unsigned char **mem_out)
{
	void *mem = NULL;

	if (rank->spec->registered) {
		if (hk_mem_alloc(rank->group, bytes, &mem) != HK_OK) {
			snprintf(rank->why, sizeof(rank->why), "%s", hk_group_why(rank->group));
			return false;
		}
	} else {
		if (posix_memalign(&mem, 4096, bytes) != 0) {
			snprintf(rank->why, sizeof(rank->why),
				 "no memory for a buffer of %zu bytes", bytes);
			return false;
		}
		memset(mem, 0, bytes);
	}
	*mem_out = mem;
	return true;
}

static void give_buffer(struct bench_rank *rank, unsigned char *mem)
{
	if (rank->spec->registered)
		hk_mem_free(rank->group, mem);
	else
		free(mem);
}

static enum hk_status run_all(struct bench_rank *rank)
{
	const struct bench_spec *spec = rank->spec;
	enum hk_status status = HK_OK;

	if (!spec->all)
		return run_coll(rank, spec->coll);
	for (int coll = 0; coll < HK_COLL_COUNT && status == HK_OK; coll++)
		status = run_coll(rank, (enum hk_coll)coll);
	return status;
}

bool bench_rank_open(struct bench_rank *rank)
{
	const struct bench_spec *spec = rank->spec;
	size_t bytes = bench_buffer_bytes(spec);

	rank->opts = (struct hk_opts)HK_OPTS_INIT;
	rank->opts.algo = spec->algo;
	rank->opts.plan = spec->plan;
	rank->table = malloc(BENCH_PERIOD * BENCH_ELEMENT_MAX);
	if (!rank->table)
		snprintf(rank->why, sizeof(rank->why), "%s", hk_status_text(HK_ENOMEM));
	return rank->table && take_buffer(rank, bytes, &rank->mem[0]) &&
	       take_buffer(rank, bytes, &rank->mem[1]);
}

void bench_rank_close(struct bench_rank *rank)
{
	give_buffer(rank, rank->mem[0]);
	give_buffer(rank, rank->mem[1]);
	free(rank->table);
}

void bench_rank_failed(struct bench_rank *rank, enum hk_status status)
{
	const char *why = hk_group_why(rank->group);

	snprintf(rank->why, sizeof(rank->why), "%s", why[0] ? why : hk_status_text(status));
}

int bench_rank_run(struct bench_rank *rank)
{
	struct bench_report report = { 0 };
	enum hk_status status = HK_OK;

	rank->each = true;
	if (bench_rank_open(rank))
		status = report_begin(rank, &report);
	if (!rank->why[0] && status == HK_OK)
		status = run_all(rank);
	if (status != HK_OK)
		bench_rank_failed(rank, status);
	if (rank->report)
		bench_report_end(&report, rank->why[0] ? rank->why : NULL);
	bench_rank_close(rank);
	bench_times_fini(&rank->times);
	return rank->why[0] || report.wrong ? CLI_FAILED : CLI_DONE;
}
