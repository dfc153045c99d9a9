/* SPDX-License-Identifier: Apache-2.0 */
/* op.c - buffers, calls and comparisons. */
#include "group/op.h"

#include "harness.h"

#include <stdarg.h>

#define GUARD 64u
#define GUARD_BYTE 0xa5

__attribute__((format(printf, 2, 3), noreturn)) static void op_fail(const struct op_run *run,
								    const char *fmt, ...)
{
	char what[160], why[400];
	va_list args;

	want_describe(&run->op.want, what, sizeof(what));
	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	test_fail(__FILE__, __LINE__, "%s%s%s%s%s rank %u: %s", what, run->op.algo ? " by " : "",
		  run->op.algo ? run->op.algo : "", run->op.inplace ? " in place" : "",
		  run->op.heap ? " on the heap" : "", hk_group_rank(run->group), why);
}

/* ---- buffers ---- */

static bool op_out_in_in(const struct op *op)
{
	return op->want.coll == HK_COLL_REDUCESCATTER || op->want.coll == HK_COLL_SCATTER;
}

/* Both buffers, or, in place, the larger one with the other inside. */
static void op_lay_out(struct op_run *run, uint32_t rank)
{
	const struct want *want = &run->op.want;
	size_t size = hk_type_size(want->type);
	size_t in = want_in_len(want, rank) * size, out = want_out_len(want, rank) * size;
	/* Aligned to an element, and as often as not to no more. */
	size_t first = GUARD + want->seed % 8 * size, offset = want_offset(want, rank) * size;
	bool shared = run->op.inplace && in && out;

	run->bytes = first + in + GUARD + out + GUARD;
	if (!run->op.heap) {
		run->space = malloc(run->bytes);
		CHECK(run->space);
	} else if (hk_mem_alloc(run->group, run->bytes, (void **)&run->space) != HK_OK) {
		op_fail(run, "no memory: %s", hk_group_why(run->group));
	}
	memset(run->space, GUARD_BYTE, run->bytes);
	run->in = in ? run->space + first : NULL;
	run->out = out ? run->space + first + in + GUARD : NULL;
	if (shared && op_out_in_in(&run->op))
		run->out = run->in + offset;
	else if (shared)
		run->in = run->out + offset;
	else
		run->op.inplace = false;
}

static void op_fill_counts(struct op_run *run, uint32_t rank)
{
	const struct want *want = &run->op.want;

	for (uint32_t r = 0; want->v && r < want->n; r++) {
		run->counts[r] = want_count(want, r);
		run->in_counts[r] = want_count_between(want, rank, r);
		run->out_counts[r] = want_count_between(want, r, rank);
	}
	run->factor = want->op == HK_REDOP_PREMULSUM ? want_factor(want, rank) : 0;
}

/* ---- calls ---- */

static enum hk_status op_call_v(struct hk_group *group, const struct op_run *run,
				const struct hk_opts *opts)
{
	const struct want *want = &run->op.want;

	switch (want->coll) {
	case HK_COLL_ALLGATHER:
		return hk_allgatherv(group, run->in, run->out, run->counts, want->type, opts);
	case HK_COLL_GATHER:
		return hk_gatherv(group, run->in, run->out, run->counts, want->type, want->root,
				  opts);
	case HK_COLL_REDUCESCATTER:
		return hk_reducescatterv(group, run->in, run->out, run->counts, want->type,
					 want->op, opts);
	case HK_COLL_SCATTER:
		return hk_scatterv(group, run->in, run->out, run->counts, want->type, want->root,
				   opts);
	default:
		return hk_alltoallv(group, run->in, run->in_counts, run->out, run->out_counts,
				    want->type, opts);
	}
}

enum hk_status op_call(struct hk_group *group, const struct op_run *run, const struct hk_opts *opts)
{
	const struct want *want = &run->op.want;

	if (want->v)
		return op_call_v(group, run, opts);
	switch (want->coll) {
	case HK_COLL_ALLREDUCE:
		return hk_allreduce(group, run->in, run->out, want->count, want->type, want->op,
				    opts);
	case HK_COLL_REDUCE:
		return hk_reduce(group, run->in, run->out, want->count, want->type, want->op,
				 want->root, opts);
	case HK_COLL_BROADCAST:
		return hk_broadcast(group, run->in, run->out, want->count, want->type, want->root,
				    opts);
	case HK_COLL_ALLGATHER:
		return hk_allgather(group, run->in, run->out, want->count, want->type, opts);
	case HK_COLL_GATHER:
		return hk_gather(group, run->in, run->out, want->count, want->type, want->root,
				 opts);
	case HK_COLL_REDUCESCATTER:
		return hk_reducescatter(group, run->in, run->out, want->count, want->type, want->op,
					opts);
	case HK_COLL_SCATTER:
		return hk_scatter(group, run->in, run->out, want->count, want->type, want->root,
				  opts);
	case HK_COLL_ALLTOALL:
		return hk_alltoall(group, run->in, run->out, want->count, want->type, opts);
	default:
		return hk_barrier(group, opts);
	}
}

void op_start(struct op_run *run, struct hk_group *group, const struct op *op, bool request)
{
	uint32_t rank = hk_group_rank(group);
	struct hk_opts opts = HK_OPTS_INIT;

	*run = (struct op_run){ .op = *op, .group = group };
	CHECK_EQ(op->want.n, hk_group_size(group));
	op_lay_out(run, rank);
	op_fill_counts(run, rank);
	if (run->in)
		want_input(&op->want, rank, run->in);
	opts.algo = op->algo;
	opts.factor = op->want.op == HK_REDOP_PREMULSUM ? &run->factor : NULL;
	opts.request = request ? &run->request : NULL;
	enum hk_status status = op_call(group, run, &opts);
	if (status != HK_OK)
		op_fail(run, "%s: %s", hk_status_name(status), hk_group_why(group));
}

/* ---- comparisons ---- */

/* Outputs are right, and nothing else has changed: inputs, guards. */
static void op_check(const struct op_run *run, uint32_t rank)
{
	const struct want *want = &run->op.want;
	size_t size = hk_type_size(want->type), i = 0;
	char *image = malloc(run->bytes);

	CHECK(image);
	memset(image, GUARD_BYTE, run->bytes);
	if (run->in)
		want_input(want, rank, image + (run->in - run->space));
	if (run->out)
		want_output(want, rank, image + (run->out - run->space));
	while (i < run->bytes && run->space[i] == image[i])
		i++;
	if (i == run->bytes) {
		free(image);
		return;
	}
	const char *at = run->space + i;
	size_t out = want_out_len(want, rank), in = want_in_len(want, rank);
	if (run->out && at >= run->out && at < run->out + out * size)
		op_fail(run, "element %zu of %zu is wrong", (size_t)(at - run->out) / size, out);
	if (run->in && at >= run->in && at < run->in + in * size)
		op_fail(run, "element %zu of the input has changed", (size_t)(at - run->in) / size);
	op_fail(run, "byte %zu is neither in nor out, and has changed", i);
}

void op_end(struct op_run *run)
{
	uint32_t rank = hk_group_rank(run->group);

	if (run->request && hk_request_test(run->request) != HK_OK)
		op_fail(run, "%s: %s", hk_status_name(hk_request_test(run->request)),
			hk_group_why(run->group));
	op_check(run, rank);
	hk_request_free(run->request);
	if (run->op.heap)
		hk_mem_free(run->group, run->space);
	else
		free(run->space);
}

void op_do(struct hk_group *group, const struct op *op)
{
	struct op_run run;

	op_start(&run, group, op, false);
	op_end(&run);
}
