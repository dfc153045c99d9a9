/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_start.c - ranks: processes of this machine, threads of this process, or
 * this process as one rank of a launcher's job. A rank that fails ends all, and
 * one line says which it was.
 */
#include "bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void group_opts(const struct bench_spec *spec, struct hk_group_opts *opts_out)
{
	*opts_out = (struct hk_group_opts)HK_GROUP_OPTS_INIT;
	opts_out->net = spec->net;
}

/* ---- threads ---- */

struct thread {
	pthread_t id;
	struct bench_rank rank;
	atomic_bool *failed; /* somebody has said so */
	int status;
};

/* The others may wait for this rank for ever: the process ends here. */
static void thread_fail(struct thread *thread)
{
	if (!atomic_exchange(thread->failed, true)) {
		cli_wrong("bench", "rank %u: %s", thread->rank.rank, thread->rank.why);
		_exit(CLI_FAILED);
	}
	for (;;)
		pause();
}

static void *thread_main(void *ctx)
{
	struct thread *thread = ctx;
	struct cli_ranks ranks = { .n = thread->rank.spec->n, .pin = thread->rank.spec->pin };

	thread->rank.core = cli_ranks_pin(&ranks, thread->rank.rank);
	thread->status = bench_rank_run(&thread->rank);
	if (thread->rank.why[0])
		thread_fail(thread);
	hk_group_free(thread->rank.group);
	return NULL;
}

static int threads_run(struct thread *threads, uint32_t n)
{
	int status = CLI_DONE;

	for (uint32_t r = 0; r < n; r++) {
		int error = pthread_create(&threads[r].id, NULL, thread_main, &threads[r]);

		if (error) {
			snprintf(threads[r].rank.why, sizeof(threads[r].rank.why),
				 "cannot start a thread: %s", strerror(error));
			thread_fail(&threads[r]);
		}
	}
	for (uint32_t r = 0; r < n; r++) {
		pthread_join(threads[r].id, NULL);
		status = threads[r].status > status ? threads[r].status : status;
	}
	return status;
}

int bench_start_threads(const struct bench_spec *spec)
{
	struct hk_group **groups = calloc(spec->n, sizeof(struct hk_group *));
	struct thread *threads = calloc(spec->n, sizeof(*threads));
	atomic_bool failed = false;
	struct hk_group_opts opts;
	struct hk_why why = { "" };
	int status = CLI_FAILED;

	group_opts(spec, &opts);
	if (!groups || !threads) {
		cli_wrong("bench", "no memory for %u ranks", spec->n);
	} else if (hk_group_threads(spec->n, &opts, &why, groups) != HK_OK) {
		cli_wrong("bench", "cannot create %u ranks: %s", spec->n, why.text);
	} else {
		for (uint32_t r = 0; r < spec->n; r++) {
			threads[r].rank =
				(struct bench_rank){ .spec = spec, .group = groups[r], .rank = r };
			threads[r].failed = &failed;
		}
		status = threads_run(threads, spec->n);
	}
	free(threads);
	free(groups);
	return status;
}

/* ---- processes ---- */

static int process_run(void *ctx, struct cli_rank *own)
{
	struct bench_rank rank = {
		.spec = ctx, .group = own->group, .rank = own->rank, .core = own->core
	};
	int status = bench_rank_run(&rank);

	snprintf(own->why, sizeof(own->why), "%s", rank.why);
	return status;
}

int bench_start_processes(const struct bench_spec *spec)
{
	struct cli_ranks ranks = { .command = "bench",
				   .n = spec->n,
				   .net = spec->net,
				   .pin = spec->pin,
				   .run = process_run,
				   .ctx = (void *)spec };

	return cli_ranks_processes(&ranks);
}

/* ---- a launcher's rank ---- */

int bench_start_joined(struct bench_spec *spec)
{
	struct bench_rank rank = { .spec = spec, .core = -1 };
	struct hk_group_opts opts;
	struct hk_why why = { "" };

	spec->joined = true;
	group_opts(spec, &opts);
	if (hk_group_create(&opts, &why, &rank.group) != HK_OK) {
		cli_wrong("bench", "%s", why.text);
		return CLI_FAILED;
	}
	rank.rank = hk_group_rank(rank.group);
	uint32_t asked = spec->n;
	spec->n = hk_group_size(rank.group);
	int status = CLI_DONE;
	if (asked && asked != spec->n) {
		snprintf(why.text, sizeof(why.text), "-n asks for %u ranks, the launcher has %u",
			 asked, spec->n);
		status = CLI_WRONG;
	} else {
		status = bench_spec_check(spec, &why);
	}
	/* All ranks find the same: one says it. */
	if (status != CLI_DONE && rank.rank == 0)
		cli_wrong("bench", "%s", why.text);
	if (status == CLI_DONE) {
		status = bench_rank_run(&rank);
		if (rank.why[0]) {
			cli_wrong("bench", "rank %u: %s", rank.rank, rank.why);
			return status; /* the others are not waited for */
		}
	}
	hk_group_free(rank.group);
	return status;
}
