/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - see work.h. Numbers tell which rank, block and place they come from. */
#include "work.h"

#include <string.h>

struct op {
	enum hk_coll coll; /* HK_COLL_COUNT: to the next rank, from the one before */
	uint32_t root;
	uint64_t count; /* of a block */
	bool later;	/* by a request */
	bool inplace;
};

static uint64_t random_next(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

/* Mostly small ones, as those are over soonest; some that take a while. */
static struct op op_choose(const struct work *work, uint64_t number)
{
	static const uint64_t most[] = { 8, 200, 200, 5000, 30000, WORK_COUNT_MAX };
	uint64_t state = work->seed ^ number * UINT64_C(0xd1342543de82ef95);
	uint64_t limit = most[random_next(&state) % 6];
	struct op op = { .coll = (enum hk_coll)(random_next(&state) % (HK_COLL_COUNT + 1)) };

	if (limit > WORK_COUNT_MAX / work->n)
		limit = WORK_COUNT_MAX / work->n;
	op.root = (uint32_t)(random_next(&state) % work->n);
	op.count = 1 + random_next(&state) % limit;
	op.later = random_next(&state) % 4 == 0;
	op.inplace = op.coll == HK_COLL_ALLREDUCE && random_next(&state) % 2;
	if (op.coll == HK_COLL_SENDRECV)
		op.coll = HK_COLL_ALLREDUCE; /* the commonest one, twice as often */
	return op;
}

static uint32_t value(uint32_t rank, uint32_t block, uint64_t i)
{
	return rank * 1000003U + block * 7919U + (uint32_t)i * 31U;
}

static uint32_t total(uint32_t n, uint32_t block, uint64_t i)
{
	return n * (n - 1) / 2 * 1000003U + n * value(0, block, i);
}

static uint32_t due(const struct work *work, const struct op *op, uint32_t block, uint64_t i)
{
	switch (op->coll) {
	case HK_COLL_ALLREDUCE:
	case HK_COLL_REDUCE:
		return total(work->n, 0, i);
	case HK_COLL_REDUCESCATTER:
		return total(work->n, work->rank, i);
	case HK_COLL_BROADCAST:
		return value(op->root, 0, i);
	case HK_COLL_SCATTER:
		return value(op->root, work->rank, i);
	case HK_COLL_ALLTOALL:
		return value(block, work->rank, i);
	case HK_COLL_COUNT:
		return value((work->rank + work->n - 1) % work->n, 0, i);
	default: /* gathers */
		return value(block, 0, i);
	}
}

static void op_fill(struct work *work, const struct op *op)
{
	bool blocks = op->coll == HK_COLL_REDUCESCATTER || op->coll == HK_COLL_SCATTER ||
		      op->coll == HK_COLL_ALLTOALL;
	uint32_t *to = op->inplace ? work->out : work->in;

	for (uint32_t k = 0; k < (blocks ? work->n : 1); k++)
		for (uint64_t i = 0; i < op->count; i++)
			*to++ = value(work->rank, k, i);
	if (!op->inplace)
		memset(work->out, 0xee, work->n * op->count * sizeof(*work->out));
}

static bool op_right(const struct work *work, const struct op *op)
{
	bool blocks = op->coll == HK_COLL_ALLGATHER || op->coll == HK_COLL_GATHER ||
		      op->coll == HK_COLL_ALLTOALL;
	bool rooted = op->coll == HK_COLL_REDUCE || op->coll == HK_COLL_GATHER;
	const uint32_t *at = work->out;

	if (op->coll == HK_COLL_BARRIER || (rooted && work->rank != op->root))
		return true;
	for (uint32_t k = 0; k < (blocks ? work->n : 1); k++)
		for (uint64_t i = 0; i < op->count; i++)
			if (*at++ != due(work, op, k, i))
				return false;
	return true;
}

/* Each time with another tag. */
static enum hk_status op_neighbours(struct work *work, uint64_t count, uint64_t number)
{
	struct hk_opts opts = HK_OPTS_INIT;
	opts.tag = (uint32_t)number;
	uint32_t next = (work->rank + 1) % work->n;
	uint32_t before = (work->rank + work->n - 1) % work->n;
	enum hk_status status = hk_batch_begin(work->group);

	if (status == HK_OK)
		status = hk_send(work->group, work->in, count, HK_TYPE_UINT32, next, &opts);
	if (status == HK_OK)
		status = hk_recv(work->group, work->out, count, HK_TYPE_UINT32, before, &opts);
	return status == HK_OK ? hk_batch_end(work->group) : status;
}

static enum hk_status op_call(struct work *work, const struct op *op, const struct hk_opts *opts)
{
	const enum hk_type type = HK_TYPE_UINT32;
	struct hk_group *group = work->group;
	const uint32_t *in = op->inplace ? work->out : work->in;

	switch (op->coll) {
	case HK_COLL_ALLREDUCE:
		return hk_allreduce(group, in, work->out, op->count, type, HK_REDOP_SUM, opts);
	case HK_COLL_REDUCE:
		return hk_reduce(group, in, work->out, op->count, type, HK_REDOP_SUM, op->root,
				 opts);
	case HK_COLL_BROADCAST:
		return hk_broadcast(group, in, work->out, op->count, type, op->root, opts);
	case HK_COLL_ALLGATHER:
		return hk_allgather(group, in, work->out, op->count, type, opts);
	case HK_COLL_GATHER:
		return hk_gather(group, in, work->out, op->count, type, op->root, opts);
	case HK_COLL_REDUCESCATTER:
		return hk_reducescatter(group, in, work->out, op->count, type, HK_REDOP_SUM, opts);
	case HK_COLL_SCATTER:
		return hk_scatter(group, in, work->out, op->count, type, op->root, opts);
	case HK_COLL_ALLTOALL:
		return hk_alltoall(group, in, work->out, op->count, type, opts);
	default:
		return hk_barrier(group, opts);
	}
}

enum hk_status work_do(struct work *work, uint64_t number, const char **wrong_out)
{
	struct op op = op_choose(work, number);
	struct hk_opts opts = HK_OPTS_INIT;
	struct hk_request *request = NULL;
	enum hk_status status;

	*wrong_out = NULL;
	op_fill(work, &op);
	if (op.coll == HK_COLL_COUNT) {
		status = op_neighbours(work, op.count, number);
	} else {
		opts.request = op.later ? &request : NULL;
		status = op_call(work, &op, &opts);
		if (status == HK_OK && op.later)
			status = hk_request_wait(request, 0);
		hk_request_free(request);
	}
	if (status == HK_OK && !op_right(work, &op))
		*wrong_out = op.coll == HK_COLL_COUNT ? "send and recv" : hk_coll_name(op.coll);
	return status;
}
