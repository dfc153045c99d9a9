/* SPDX-License-Identifier: Apache-2.0 */
/* acts_group.c - groups that are made, given up and healed; children; memory. */
#include "soak/soak.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Eight times as long as a rank may be late on a busy machine, and still be counted. */
#define AGREE_NS UINT64_C(160000000000)
#define LATE_NS UINT64_C(50000000)
#define LATE_US 200000u

/* ---- splitting ---- */

static uint32_t order_of(uint64_t random, uint32_t rank)
{
	uint64_t state = random ^ rank * UINT64_C(0xd1342543de82ef95);

	return (uint32_t)soak_random(&state) % 3; /* some alike */
}

/* The place of a rank among those of its color. */
static uint32_t place_of(const struct soak *soak, uint64_t random, uint64_t colors)
{
	uint32_t own = order_of(random, soak->rank), place = 0;

	for (uint32_t r = 0; r < soak->n; r++) {
		uint32_t its = order_of(random, r);

		if ((colors >> r & 1) == (colors >> soak->rank & 1))
			place += its < own || (its == own && r < soak->rank);
	}
	return place;
}

bool soak_split(struct soak *soak, uint64_t random)
{
	uint64_t colors = soak_random(&random), before = soak->operations;
	bool stays = soak_random(&random) % 2; /* those of color 1 join no group */
	uint32_t color = colors >> soak->rank & 1, count = 1 + soak_random(&random) % 5;
	struct hk_group *group;

	if (!soak_good(soak, soak->root,
		       hk_group_split(soak->root, color && stays ? HK_NONE : color,
				      order_of(random, soak->rank), &group),
		       "split"))
		return false;
	if (!group != (color && stays))
		return soak_wrong(soak, "split: a group where there should be none, or none");
	bool all = !group || hk_group_rank(group) == place_of(soak, random, colors) ||
		   soak_wrong(soak, "split: rank %u, not %u", hk_group_rank(group),
			      place_of(soak, random, colors));
	if (group && all)
		all = soak_work(soak, group, count, "split");
	hk_group_free(group);
	soak->operations = before + count; /* of the others, too */
	return all;
}

/* ---- groups of those who are left: all ---- */

static bool copy_make(struct soak *soak, struct hk_group **group_out)
{
	return soak_good(soak, soak->root, hk_group_split(soak->root, 0, 0, group_out), "split");
}

/* Makes a group of all from one that may have failed, works on it, and frees both. */
static bool heal(struct soak *soak, struct hk_group *group, uint64_t random, const char *what)
{
	struct hk_opts opts = HK_OPTS_INIT;
	struct hk_group *rest = NULL;
	uint64_t least = soak->rank + 5;
	bool all = true;

	opts.timeout_ns = AGREE_NS;
	if (random % 2)
		all = soak_good(soak, group, hk_group_agree(group, &least, &opts), what) &&
		      (least == 5 || soak_wrong(soak, "%s: agreed on a wrong number", what));
	all = all && soak_good(soak, group, hk_group_shrink(group, &opts, &rest), what) &&
	      (hk_group_size(rest) == soak->n || soak_wrong(soak, "%s: %u of %u ranks are left",
							    what, hk_group_size(rest), soak->n)) &&
	      soak_work(soak, rest, 1 + random / 2 % 4, what);
	hk_group_free(rest);
	hk_group_free(group);
	return all;
}

bool soak_shrink(struct soak *soak, uint64_t random)
{
	struct hk_group *group;

	return copy_make(soak, &group) && heal(soak, group, random, "shrink");
}

bool soak_revoke(struct soak *soak, uint64_t random)
{
	uint32_t who = soak_random(&random) % soak->n;
	struct hk_group *group;

	if (!copy_make(soak, &group) || !soak_work(soak, group, 2, "revoke") ||
	    !soak_good(soak, soak->root, hk_barrier(soak->root, NULL), "revoke"))
		return false;
	if (soak->rank == who && !soak_good(soak, group, hk_group_revoke(group), "revoke"))
		return false;
	enum hk_status status = hk_barrier(group, NULL);
	if (status != HK_EREVOKED)
		return soak_wrong(soak, "revoke: a barrier of a revoked group is %s",
				  hk_status_name(status));
	return heal(soak, group, random, "revoke");
}

bool soak_timeout(struct soak *soak, uint64_t random)
{
	uint64_t count = soak_random(&random) % 2 ? 100 : WORK_COUNT_MAX / 2;
	uint32_t who = soak_random(&random) % soak->n;
	struct hk_opts opts = HK_OPTS_INIT;
	struct hk_group *group;

	if (!copy_make(soak, &group) || !soak_work(soak, group, 1, "timeout") ||
	    !soak_good(soak, soak->root, hk_barrier(soak->root, NULL), "timeout"))
		return false;
	opts.timeout_ns = LATE_NS;
	if (soak->rank == who)
		usleep(LATE_US);
	/* On a busy machine the others may be as late. */
	enum hk_status status = hk_allreduce(group, soak->in, soak->out, count, HK_TYPE_UINT32,
					     HK_REDOP_MAX, &opts);
	if (status != HK_OK && status != HK_ETIMEDOUT && status != HK_EREVOKED)
		return soak_good(soak, group, status, "timeout");
	return heal(soak, group, random, "timeout");
}

/* ---- children ---- */

static bool child_wait(struct soak *soak, pid_t *child)
{
	int status = 0;

	if (*child == 0)
		return true;
	if (waitpid(*child, &status, 0) != *child || !WIFEXITED(status) || WEXITSTATUS(status))
		return soak_wrong(soak, "fork: a child ended with status 0x%x", (unsigned)status);
	*child = 0;
	return true;
}

bool soak_children_end(struct soak *soak)
{
	bool all = true;

	for (uint32_t i = 0; i < SOAK_CHILDREN; i++)
		all &= child_wait(soak, &soak->children[i]);
	return all;
}

/* The child: holds nothing, may call nothing, and lives for a while. */
static void child_live(const struct soak *soak, uint32_t lives_us)
{
	uint32_t one = 1, sum;
	int status = 0;

	if (holds_now().fds != soak->fds)
		status = 2;
	else if (hk_allreduce(soak->root, &one, &sum, 1, HK_TYPE_UINT32, HK_REDOP_SUM, NULL) !=
		 HK_EINVAL)
		status = 3;
	usleep(lives_us);
	_exit(status);
}

bool soak_fork(struct soak *soak, uint64_t random)
{
	pid_t *child = &soak->children[soak_random(&random) % SOAK_CHILDREN];
	uint32_t lives_us = soak_random(&random) % 500000, in = soak->rank + 1, sum = 0;
	struct hk_request *request;
	struct hk_opts opts = HK_OPTS_INIT;

	if (!child_wait(soak, child))
		return false;
	opts.request = &request;
	if (!soak_good(soak, soak->root,
		       hk_allreduce(soak->root, &in, &sum, 1, HK_TYPE_UINT32, HK_REDOP_SUM, &opts),
		       "fork"))
		return false;
	*child = fork();
	if (*child == 0)
		child_live(soak, lives_us);
	if (*child < 0) {
		*child = 0;
		return soak_wrong(soak, "fork: %m");
	}
	bool all = soak_good(soak, soak->root, hk_request_wait(request, 0), "fork");
	hk_request_free(request);
	soak->operations++;
	return all && (sum == soak->n * (soak->n + 1) / 2 || soak_wrong(soak, "fork: a wrong sum"));
}

/* ---- memory, and other worlds ---- */

bool soak_memory(struct soak *soak, uint64_t random)
{
	uint32_t *in = soak->in, *out = soak->out;
	void *here, *there, *between = NULL;
	bool all;

	if (!soak_good(soak, soak->root, hk_mem_alloc(soak->root, WORK_BYTES, &here), "memory") ||
	    !soak_good(soak, soak->root,
		       hk_mem_alloc(soak->root, 1 + soak_random(&random) % WORK_BYTES, &between),
		       "memory") ||
	    !soak_good(soak, soak->root, hk_mem_alloc(soak->root, WORK_BYTES, &there), "memory"))
		return false;
	soak->in = here;
	soak->out = there;
	hk_mem_free(soak->root, between);
	all = soak_work(soak, soak->root, 1 + soak_random(&random) % 6, "memory");
	soak->in = in;
	soak->out = out;
	hk_mem_free(soak->root, here);
	hk_mem_free(soak->root, there);
	return all;
}

bool soak_world(struct soak *soak, uint64_t random)
{
	struct hk_group_opts opts = soak->opts;
	struct hk_group *group;
	struct hk_why why;

	opts.progress = soak_random(&random) % 2;
	opts.check = soak_random(&random) % 2;
	enum hk_status status = hk_group_create(&opts, &why, &group);
	if (status != HK_OK)
		return soak_wrong(soak, "world: %s: %s", hk_status_name(status), why.text);
	bool all = soak_work(soak, group, 1 + soak_random(&random) % 8, "world");
	hk_group_free(group);
	return all;
}
