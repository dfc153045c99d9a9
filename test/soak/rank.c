/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank.c - one rank of a soak: `rank SEED SECONDS [check] [progress]`, and HOCKET_* as
 * for any. It says, a line each:
 *
 *	begun FDS THREADS               there is a group; what was held before
 *	sample MS ROUNDS HEAP RSS MAPPED SHARED FDS THREADS MAPS
 *	wrong what                      and ends
 *	end ROUNDS OPERATIONS NAME COUNT ... | HEAP... as above, of what is left
 *
 * Samples are of times between rounds, when there is the first group and no other.
 */
#include "soak/soak.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool round_run(struct soak *soak, uint64_t number)
{
	static bool (*const acts[])(struct soak * soak, uint64_t random) = {
#define SOAK_ACT_RUN(name, what) soak_##name,
		SOAK_ACT_MAP(SOAK_ACT_RUN)
#undef SOAK_ACT_RUN
	};
	/* Operations are quick, and most of what programs do. */
	static const uint32_t often[SOAK_ACTS] = {
		[SOAK_collectives] = 8, [SOAK_tags] = 6,   [SOAK_batch] = 6,  [SOAK_requests] = 6,
		[SOAK_split] = 3,	[SOAK_shrink] = 2, [SOAK_revoke] = 2, [SOAK_timeout] = 1,
		[SOAK_fork] = 2,	[SOAK_memory] = 3, [SOAK_world] = 1,
	};
	uint64_t state = soak->seed ^ number * UINT64_C(0xd1342543de82ef95);
	uint32_t all = 0, act = 0;

	for (uint32_t i = 0; i < SOAK_ACTS; i++)
		all += often[i];
	for (uint32_t at = soak_random(&state) % all; at >= often[act]; act++)
		at -= often[act];
	soak->acts[act]++;
	return acts[act](soak, soak_random(&state));
}

static void say_holds(const char *head, struct holds holds)
{
	printf("%s%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %d %d %d\n", head, holds.heap_kib,
	       holds.rss_kib, holds.mapped_kib, holds.shared_kib, holds.fds, holds.threads,
	       holds.maps);
	fflush(stdout);
}

/* All ranks are where this one is, and go on or end together. */
static bool goes_on(struct soak *soak, uint64_t number, bool over, bool *on_out)
{
	uint64_t own[3] = { number, ~number, !over }, least[3];

	if (!soak_good(soak, soak->root,
		       hk_allreduce(soak->root, own, least, 3, HK_TYPE_UINT64, HK_REDOP_MIN, NULL),
		       "between rounds"))
		return false;
	*on_out = least[2];
	return (least[0] == number && least[1] == ~number) ||
	       soak_wrong(soak, "ranks are in different rounds");
}

static bool soak_run(struct soak *soak, uint64_t seconds, uint64_t *rounds_out)
{
	uint64_t began = now_ms(), next = began, every = seconds > 600 ? 5000 : 250;
	bool on = true;

	for (*rounds_out = 0; on; (*rounds_out)++) {
		uint64_t now = now_ms();

		if (!round_run(soak, *rounds_out) ||
		    !goes_on(soak, *rounds_out, now >= began + seconds * 1000, &on))
			return false;
		if (now >= next) {
			char head[64];

			next = now + every;
			(void)snprintf(head, sizeof(head), "sample %" PRIu64 " %" PRIu64 " ",
				       now - began, *rounds_out);
			say_holds(head, holds_now());
		}
	}
	return soak_children_end(soak);
}

static void say_end(const struct soak *soak, uint64_t rounds)
{
	static const char *const names[] = {
#define SOAK_ACT_NAME(name, what) #name,
		SOAK_ACT_MAP(SOAK_ACT_NAME)
#undef SOAK_ACT_NAME
	};

	printf("end %" PRIu64 " %" PRIu64, rounds, soak->operations);
	for (uint32_t i = 0; i < SOAK_ACTS; i++)
		printf(" %s %" PRIu64, names[i], soak->acts[i]);
	say_holds(" | ", holds_now());
}

static bool has(int argc, char **argv, const char *word)
{
	for (int i = 3; i < argc; i++)
		if (strcmp(argv[i], word) == 0)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	struct soak soak = { .opts = HK_GROUP_OPTS_INIT };
	uint64_t rounds = 0;
	struct hk_why why;

	if (argc < 3)
		return 2;
	soak.seed = strtoull(argv[1], NULL, 10);
	soak.opts.alloc = &holds_alloc;
	soak.opts.check = has(argc, argv, "check");
	soak.opts.progress = has(argc, argv, "progress");
	soak.in = malloc(WORK_BYTES);
	soak.out = malloc(WORK_BYTES);
	if (!soak.in || !soak.out)
		return 2;
	struct holds before = holds_now();
	soak.fds = before.fds;
	enum hk_status status = hk_group_create(&soak.opts, &why, &soak.root);
	if (status != HK_OK) {
		printf("wrong there is no group: %s\n", why.text);
		return 1;
	}
	soak.rank = hk_group_rank(soak.root);
	soak.n = hk_group_size(soak.root);
	printf("begun %d %d\n", before.fds, before.threads);
	fflush(stdout);
	bool well = soak_run(&soak, strtoull(argv[2], NULL, 10), &rounds);
	if (!well) {
		printf("wrong round %" PRIu64 ": %s\n", rounds, soak.wrong);
		fflush(stdout);
		_exit(1); /* so that the others, too, say where they are */
	}
	hk_group_free(soak.root);
	free(soak.in);
	free(soak.out);
	say_end(&soak, rounds);
	return 0;
}
