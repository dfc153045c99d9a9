/* SPDX-License-Identifier: Apache-2.0 */
/* bench_coll.c - a collective to be measured: its buffers, its call, its size. */
#include "bench.h"

#include <string.h>

/* clang-format off */
static const struct coll_kind {
	bool blocks;	/* its buffers are blocks of ranks; else vectors */
	bool reduces;
	bool inplace;	/* it has such a form */
	int bus;	/* busbw is algbw times bus * (n - 1) / n; 0: the same */
} coll_kinds[HK_COLL_COUNT] = {
	[HK_COLL_ALLREDUCE]     = { false, true,  true,  2 },
	[HK_COLL_ALLGATHER]     = { true,  false, true,  1 },
	[HK_COLL_REDUCESCATTER] = { true,  true,  true,  1 },
	[HK_COLL_ALLTOALL]      = { true,  false, false, 1 },
	[HK_COLL_BROADCAST]     = { false, false, true,  0 },
	[HK_COLL_REDUCE]        = { false, true,  true,  0 },
	[HK_COLL_GATHER]        = { true,  false, true,  1 },
	[HK_COLL_SCATTER]       = { true,  false, true,  1 },
	[HK_COLL_BARRIER]       = { false, false, false, 0 },
	[HK_COLL_SENDRECV]      = { false, false, false, 0 },
};
/* clang-format on */

bool bench_coll_reduces(enum hk_coll coll)
{
	return coll_kinds[coll].reduces;
}

bool bench_coll_inplace(enum hk_coll coll)
{
	return coll_kinds[coll].inplace;
}

double bench_coll_bus(enum hk_coll coll, uint32_t n)
{
	int bus = coll_kinds[coll].bus;

	return bus ? (double)bus * (double)(n - 1) / (double)n : 1.0;
}

/* ---- sizes ---- */

void bench_case_init(struct bench_case *c, const struct bench_spec *spec, enum hk_coll coll,
		     uint64_t bytes)
{
	uint64_t blocks = coll_kinds[coll].blocks ? spec->n : 1;
	uint64_t size = hk_type_size(spec->type);

	*c = (struct bench_case){ .coll = coll };
	if (coll == HK_COLL_BARRIER)
		return;
	c->count = bytes / size / blocks;
	if (c->count == 0)
		c->count = 1;
	c->bytes = c->count * size * blocks;
}

uint64_t bench_buffer_bytes(const struct bench_spec *spec)
{
	uint64_t least = hk_type_size(spec->type) * spec->n;

	return spec->max_bytes > least ? spec->max_bytes : least;
}

/* ---- buffers ---- */

static size_t element_size(const struct bench_rank *rank)
{
	return hk_type_size(rank->spec->type);
}

static bool is_root(const struct bench_rank *rank)
{
	return rank->rank == rank->spec->root;
}

/* Where this rank's block begins among those of all, in elements. */
static uint64_t own_block(const struct bench_rank *rank, const struct bench_case *c)
{
	return rank->rank * c->count;
}

static void case_place(const struct bench_rank *rank, const struct bench_case *c,
		       unsigned char **in_out, unsigned char **out_out)
{
	uint64_t own = own_block(rank, c) * element_size(rank);

	*in_out = rank->mem[c->inplace ? 1 : 0];
	*out_out = rank->mem[1];
	if (!c->inplace || !coll_kinds[c->coll].blocks)
		return;
	if (c->coll == HK_COLL_REDUCESCATTER || c->coll == HK_COLL_SCATTER)
		*out_out += own;
	else
		*in_out += own;
}

/* Elements of this rank's input. */
static uint64_t case_inputs(const struct bench_rank *rank, const struct bench_case *c)
{
	switch (c->coll) {
	case HK_COLL_BROADCAST:
		return is_root(rank) ? c->count : 0;
	case HK_COLL_SCATTER:
		return is_root(rank) ? c->count * rank->spec->n : 0;
	case HK_COLL_REDUCESCATTER:
	case HK_COLL_ALLTOALL:
		return c->count * rank->spec->n;
	default:
		return c->count;
	}
}

static struct bench_data case_data(const struct bench_rank *rank, const struct bench_case *c)
{
	return (struct bench_data){ .type = rank->spec->type,
				    .op = rank->spec->op,
				    .reduces = bench_coll_reduces(c->coll),
				    .n = rank->spec->n };
}

void bench_case_fill(struct bench_rank *rank, const struct bench_case *c)
{
	struct bench_data data = case_data(rank, c);
	struct bench_run run = { .table = rank->table,
				 .size = element_size(rank),
				 .count = case_inputs(rank, c) };
	unsigned char *in, *out;

	bench_data_input(&data, rank->rank, rank->table);
	if (data.op == HK_REDOP_PREMULSUM) {
		bench_data_factor(&data, rank->rank, rank->factor);
		rank->opts.factor = rank->factor;
	}
	case_place(rank, c, &in, &out);
	memset(rank->mem[1], 0x5a, c->bytes);
	bench_run_fill(&run, in);
}

/* ---- the call ---- */

/* Each rank to the next, both ways at once. */
static enum hk_status call_sendrecv(struct bench_rank *rank, const struct bench_case *c,
				    const unsigned char *in, unsigned char *out)
{
	const struct bench_spec *spec = rank->spec;
	uint32_t next = (rank->rank + 1) % spec->n, last = (rank->rank + spec->n - 1) % spec->n;
	enum hk_status status = hk_batch_begin(rank->group);

	if (status == HK_OK)
		status = hk_send(rank->group, in, c->count, spec->type, next, NULL);
	if (status == HK_OK)
		status = hk_recv(rank->group, out, c->count, spec->type, last, NULL);
	return status == HK_OK ? hk_batch_end(rank->group) : status;
}

enum hk_status bench_case_call(struct bench_rank *rank, const struct bench_case *c)
{
	const struct bench_spec *spec = rank->spec;
	/* None where none is needed: such calls are shorter. */
	const struct hk_opts *opts =
		rank->opts.algo || rank->opts.plan || rank->opts.factor ? &rank->opts : NULL;
	struct hk_group *group = rank->group;
	unsigned char *in, *out;

	case_place(rank, c, &in, &out);
	switch (c->coll) {
	case HK_COLL_ALLREDUCE:
		return hk_allreduce(group, in, out, c->count, spec->type, spec->op, opts);
	case HK_COLL_ALLGATHER:
		return hk_allgather(group, in, out, c->count, spec->type, opts);
	case HK_COLL_REDUCESCATTER:
		return hk_reducescatter(group, in, out, c->count, spec->type, spec->op, opts);
	case HK_COLL_ALLTOALL:
		return hk_alltoall(group, in, out, c->count, spec->type, opts);
	case HK_COLL_BROADCAST:
		return hk_broadcast(group, in, out, c->count, spec->type, spec->root, opts);
	case HK_COLL_REDUCE:
		return hk_reduce(group, in, out, c->count, spec->type, spec->op, spec->root, opts);
	case HK_COLL_GATHER:
		return hk_gather(group, in, out, c->count, spec->type, spec->root, opts);
	case HK_COLL_SCATTER:
		return hk_scatter(group, in, out, c->count, spec->type, spec->root, opts);
	case HK_COLL_SENDRECV:
		return call_sendrecv(rank, c, in, out);
	default:
		return hk_barrier(group, opts);
	}
}

/* ---- the result ---- */

static bool case_receives(const struct bench_rank *rank, const struct bench_case *c)
{
	if (c->coll == HK_COLL_REDUCE || c->coll == HK_COLL_GATHER)
		return is_root(rank);
	return c->coll != HK_COLL_BARRIER;
}

/* Whose input block b of the output is. */
static uint32_t case_source(const struct bench_rank *rank, const struct bench_case *c, uint32_t b)
{
	if (c->coll == HK_COLL_BROADCAST || c->coll == HK_COLL_SCATTER)
		return rank->spec->root;
	if (c->coll == HK_COLL_SENDRECV)
		return (rank->rank + rank->spec->n - 1) % rank->spec->n;
	return b;
}

uint64_t bench_case_wrong(struct bench_rank *rank, const struct bench_case *c)
{
	bool gathers = c->coll == HK_COLL_ALLGATHER || c->coll == HK_COLL_GATHER ||
		       c->coll == HK_COLL_ALLTOALL;
	bool scatters = c->coll == HK_COLL_REDUCESCATTER || c->coll == HK_COLL_SCATTER ||
			c->coll == HK_COLL_ALLTOALL;
	struct bench_data data = case_data(rank, c);
	struct bench_run run = { .table = rank->table,
				 .size = element_size(rank),
				 .first = scatters ? own_block(rank, c) : 0,
				 .count = c->count };
	unsigned char *in, *out;
	uint64_t wrong = 0;

	if (!case_receives(rank, c))
		return 0;
	case_place(rank, c, &in, &out);
	for (uint32_t b = 0; b < (gathers ? data.n : 1); b++) {
		if (data.reduces)
			bench_data_reduced(&data, rank->table);
		else
			bench_data_input(&data, case_source(rank, c, b), rank->table);
		wrong += bench_run_wrong(&run, out + b * c->count * run.size);
	}
	return wrong;
}
