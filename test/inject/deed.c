/* SPDX-License-Identifier: Apache-2.0 */
/* deed.c - see deed.h. */
#include "inject/deed.h"

#include "group/op.h"
#include "harness.h"

#include <pthread.h>

#define COUNT 5u
#define LONG 40000u /* of elements: several slots, and lent */

/* ---- collectives ---- */

static enum hk_status do_collective(struct hk_group *group, const struct deed *deed,
				    struct hk_why *why)
{
	uint32_t rank = hk_group_rank(group), n = hk_group_size(group);
	struct op_run run = { .op.want = { .coll = deed->coll,
					   .type = HK_TYPE_BF16,
					   .count = deed->count,
					   .n = n,
					   .v = deed->v,
					   .seed = 1 } };
	struct hk_opts opts = HK_OPTS_INIT;

	(void)why;
	for (uint32_t r = 0; r < n; r++) {
		run.counts[r] = want_count(&run.op.want, r);
		run.in_counts[r] = want_count_between(&run.op.want, rank, r);
		run.out_counts[r] = want_count_between(&run.op.want, r, rank);
	}
	uint64_t in = want_in_len(&run.op.want, rank), out = want_out_len(&run.op.want, rank);
	run.in = calloc(in + 1, 2);
	run.out = calloc(out + 1, 2);
	CHECK(run.in && run.out);
	opts.algo = deed->algo;
	enum hk_status status = op_call(group, &run, deed->algo ? &opts : NULL);
	free(run.in);
	free(run.out);
	return status;
}

/* ---- all else ---- */

static enum hk_status part_use(struct hk_group *part, struct hk_why *why)
{
	enum hk_status status = hk_barrier(part, NULL);

	if (status != HK_OK) {
		snprintf(why->text, sizeof(why->text), "%s", hk_group_why(part));
		CHECK_EQ(hk_group_revoke(part), HK_OK);
	}
	hk_group_free(part);
	return status;
}

static enum hk_status do_split(struct hk_group *group, const struct deed *deed, struct hk_why *why)
{
	struct hk_group *part;
	enum hk_status status = hk_group_split(group, 0, 0, &part);

	(void)deed;
	return status == HK_OK ? part_use(part, why) : status;
}

static enum hk_status do_transfers(struct hk_group *group, const struct deed *deed,
				   struct hk_why *why)
{
	uint32_t rank = hk_group_rank(group), n = hk_group_size(group);
	char *in = calloc(LONG, 1), *out = calloc(LONG, 1);
	enum hk_status status = hk_batch_begin(group), ended = status;
	bool begun = status == HK_OK;

	(void)deed, (void)why;
	CHECK(in && out);
	if (status == HK_OK)
		status = hk_send(group, in, LONG, HK_TYPE_UINT8, (rank + 1) % n, NULL);
	if (status == HK_OK)
		status = hk_recv(group, out, LONG, HK_TYPE_UINT8, (rank + n - 1) % n, NULL);
	if (begun)
		ended = hk_batch_end(group);
	free(in);
	free(out);
	return status == HK_OK ? ended : status;
}

static enum hk_status do_requests(struct hk_group *group, const struct deed *deed,
				  struct hk_why *why)
{
	struct hk_request *requests[3] = { NULL };
	int32_t in[3] = { 1, 2, 3 }, out[3];
	struct hk_opts opts = HK_OPTS_INIT;
	enum hk_status status = HK_OK;

	(void)deed, (void)why;
	for (int i = 0; i < 3 && status == HK_OK; i++) {
		opts.request = &requests[i];
		status =
			hk_allreduce(group, &in[i], &out[i], 1, HK_TYPE_INT32, HK_REDOP_SUM, &opts);
	}
	/* What was begun is seen to its end, or given up. */
	if (status != HK_OK)
		CHECK_EQ(hk_group_revoke(group), HK_OK);
	for (int i = 0; i < 3; i++) {
		enum hk_status one = requests[i] ? hk_request_wait(requests[i], 0) : HK_OK;

		status = status == HK_OK ? one : status;
		hk_request_free(requests[i]);
	}
	return status;
}

static enum hk_status do_memory(struct hk_group *group, const struct deed *deed, struct hk_why *why)
{
	void *blocks[10] = { NULL };
	enum hk_status status = HK_OK;

	(void)deed, (void)why;
	for (int i = 0; i < 10 && status == HK_OK; i++)
		status = hk_mem_alloc(group, 5000, &blocks[i]);
	for (int i = 0; i < 10; i++)
		hk_mem_free(group, blocks[i]);
	return status;
}

static enum hk_status do_premulsum(struct hk_group *group, const struct deed *deed,
				   struct hk_why *why)
{
	float in[3] = { 1, 2, 3 }, out[3], factor = 2;
	struct hk_opts opts = HK_OPTS_INIT;

	(void)deed, (void)why;
	opts.factor = &factor;
	return hk_allreduce(group, in, out, 3, HK_TYPE_FP32, HK_REDOP_PREMULSUM, &opts);
}

/* Borrowed by groups until they are freed: it stays, for all of them. */
static const struct hk_plan *plan_of(uint32_t n)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct hk_plan *plans[WORLD_RANKS_MAX + 1];

	CHECK(n <= WORLD_RANKS_MAX);
	pthread_mutex_lock(&lock);
	if (!plans[n])
		CHECK_EQ(hk_plan_create(HK_COLL_ALLREDUCE, n, NULL, NULL, &plans[n]), HK_OK);
	pthread_mutex_unlock(&lock);
	return plans[n];
}

static enum hk_status do_plan(struct hk_group *group, const struct deed *deed, struct hk_why *why)
{
	struct hk_opts opts = HK_OPTS_INIT;
	float in[3] = { 1, 2, 3 }, out[3];

	(void)deed, (void)why;
	opts.plan = plan_of(hk_group_size(group));
	return hk_allreduce(group, in, out, 3, HK_TYPE_FP32, HK_REDOP_SUM, &opts);
}

static enum hk_status do_agree(struct hk_group *group, const struct deed *deed, struct hk_why *why)
{
	uint64_t value = hk_group_rank(group);

	(void)deed, (void)why;
	return hk_group_agree(group, &value, NULL);
}

static enum hk_status do_shrink(struct hk_group *group, const struct deed *deed, struct hk_why *why)
{
	struct hk_group *rest;
	enum hk_status status = hk_group_shrink(group, NULL, &rest);

	(void)deed;
	return status == HK_OK ? part_use(rest, why) : status;
}

static const struct deed deeds[] = {
	{ .name = "split", .run = do_split },
	{ .name = "send and recv in a batch", .run = do_transfers },
	{ .name = "requests", .run = do_requests },
	{ .name = "mem_alloc", .run = do_memory },
	{ .name = "premulsum", .run = do_premulsum },
	{ .name = "a plan of one's own", .run = do_plan },
	{ .name = "agree", .run = do_agree, .heals = true },
	{ .name = "shrink", .run = do_shrink, .heals = true },
};
#define DEEDS (sizeof(deeds) / sizeof(deeds[0]))

bool deed_get(uint32_t i, struct deed *deed_out)
{
	struct hk_algo_info algo = { .size = sizeof(algo) };
	uint32_t at = DEEDS;

	if (i < DEEDS) {
		*deed_out = deeds[i];
		return true;
	}
	/* Every collective as the group chooses, small, long and uneven; then by name. */
	for (unsigned coll = 0; coll < HK_COLL_SENDRECV; coll++) {
		for (int form = 0; form < (want_has_v((enum hk_coll)coll) ? 3 : 2); form++, at++) {
			if (at != i)
				continue;
			*deed_out = (struct deed){ .name = hk_coll_name((enum hk_coll)coll),
						   .run = do_collective,
						   .coll = (enum hk_coll)coll,
						   .count = form == 1 ? LONG : COUNT,
						   .v = form == 2 };
			return true;
		}
	}
	for (uint32_t a = 0; hk_algo_get(a, &algo); a++) {
		if (algo.coll == HK_COLL_SENDRECV || algo.onesided || at++ != i)
			continue;
		*deed_out = (struct deed){ .name = hk_coll_name(algo.coll),
					   .run = do_collective,
					   .coll = algo.coll,
					   .algo = algo.name,
					   .count = COUNT };
		return true;
	}
	return false;
}

enum hk_status deed_all(struct hk_group *group, struct hk_why *why)
{
	enum hk_status status = HK_OK;
	struct deed deed;

	for (uint32_t i = 0; status == HK_OK && deed_get(i, &deed); i++) {
		/* Those come last in the life of a group. */
		if (!deed.heals)
			status = deed.run(group, &deed, why);
	}
	return status;
}
