/* SPDX-License-Identifier: Apache-2.0 */
/* defn.c - the collectives by definition. */
#include "naive/defn.h"

#include "harness.h"

#include <math.h>

union elem elem_add(enum elem_type type, union elem a, union elem b)
{
	switch (type) {
	case ELEM_INT64:
		return (union elem){ .bits = a.bits + b.bits };
	case ELEM_DOUBLE:
		return (union elem){ .d = a.d + b.d };
	case ELEM_FLOAT:
		break;
	}
	union elem sum = { .bits = 0 };
	sum.f = a.f + b.f;
	return sum;
}

static union elem elem_random(enum elem_type type, enum elem_values values, uint64_t *seed)
{
	union elem elem = { .bits = 0 };
	uint64_t random = test_random(seed);

	if (type == ELEM_INT64) {
		/* 40 random bits: no sum of some equals the sum of others. */
		elem.i = (int64_t)(random >> 24) + 1;
	} else if (values == ELEM_ROUNDING) {
		double real = ldexp(1.0 + (double)(random >> 12) * 0x1p-52, (int)(random % 17) - 8);

		if (type == ELEM_DOUBLE)
			elem.d = real;
		else
			elem.f = (float)real;
	} else if (type == ELEM_DOUBLE) {
		elem.d = (double)((random >> 24) + 1);
	} else {
		elem.f = (float)((random >> 46) + 1); /* 18 bits: 64 of them add exactly */
	}
	return elem;
}

/* ---- the layout ---- */

static uint64_t defn_count(const struct defn_spec *spec, uint64_t block)
{
	return spec->sizes.counts ? spec->sizes.counts[block] : spec->sizes.count;
}

static uint64_t defn_sum(const struct defn_spec *spec, uint64_t first, uint64_t step)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < spec->n; i++)
		sum += defn_count(spec, first + i * step);
	return sum;
}

static uint64_t defn_messages(const struct defn_spec *spec, uint32_t rank, bool sent)
{
	uint64_t sum = 0;

	for (size_t k = 0; k < spec->nmsgs; k++)
		if ((sent ? spec->msgs[k].src : spec->msgs[k].dst) == rank)
			sum += defn_count(spec, k);
	return sum;
}

static uint64_t defn_in_len(const struct defn_spec *spec, uint32_t rank)
{
	switch (spec->coll) {
	case HK_COLL_ALLREDUCE:
	case HK_COLL_REDUCE:
		return defn_count(spec, 0);
	case HK_COLL_BROADCAST:
		return rank == spec->root ? defn_count(spec, 0) : 0;
	case HK_COLL_ALLGATHER:
	case HK_COLL_GATHER:
		return defn_count(spec, rank);
	case HK_COLL_REDUCESCATTER:
		return defn_sum(spec, 0, 1);
	case HK_COLL_SCATTER:
		return rank == spec->root ? defn_sum(spec, 0, 1) : 0;
	case HK_COLL_ALLTOALL:
		return defn_sum(spec, (uint64_t)rank * spec->n, 1);
	case HK_COLL_SENDRECV:
		return defn_messages(spec, rank, true);
	case HK_COLL_BARRIER:
	case HK_COLL_COUNT:
		break;
	}
	return 0;
}

static uint64_t defn_out_len(const struct defn_spec *spec, uint32_t rank)
{
	switch (spec->coll) {
	case HK_COLL_ALLREDUCE:
	case HK_COLL_BROADCAST:
		return defn_count(spec, 0);
	case HK_COLL_REDUCE:
		return rank == spec->root ? defn_count(spec, 0) : 0;
	case HK_COLL_ALLGATHER:
		return defn_sum(spec, 0, 1);
	case HK_COLL_GATHER:
		return rank == spec->root ? defn_sum(spec, 0, 1) : 0;
	case HK_COLL_REDUCESCATTER:
	case HK_COLL_SCATTER:
		return defn_count(spec, rank);
	case HK_COLL_ALLTOALL:
		return defn_sum(spec, rank, spec->n);
	case HK_COLL_SENDRECV:
		return defn_messages(spec, rank, false);
	case HK_COLL_BARRIER:
	case HK_COLL_COUNT:
		break;
	}
	return 0;
}

/* ---- the promises ---- */

static union elem *defn_append(union elem *to, const union elem *from, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++)
		to[i] = from[i];
	return to + len;
}

/* Where block `index` of a row starts whose blocks are first, first + 1, ... */
static uint64_t defn_offset(const struct defn_spec *spec, uint64_t first, uint32_t index)
{
	uint64_t offset = 0;

	for (uint32_t i = 0; i < index; i++)
		offset += defn_count(spec, first + i);
	return offset;
}

/* out[i] = the sum over the ranks of in[offset + i], in the order of ranks. */
static void defn_add_all(const struct defn *defn, union elem *out, uint64_t offset, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++) {
		out[i] = defn->in[0].at[offset + i];
		for (uint32_t r = 1; r < defn->spec.n; r++)
			out[i] = elem_add(defn->spec.type, out[i], defn->in[r].at[offset + i]);
	}
}

static void defn_alltoall(const struct defn *defn, uint32_t rank)
{
	const struct defn_spec *spec = &defn->spec;
	union elem *to = defn->out[rank].at;

	for (uint32_t i = 0; i < spec->n; i++) {
		uint64_t row = (uint64_t)i * spec->n;

		to = defn_append(to, defn->in[i].at + defn_offset(spec, row, rank),
				 defn_count(spec, row + rank));
	}
}

static void defn_sendrecv(const struct defn *defn, uint32_t rank)
{
	const struct defn_spec *spec = &defn->spec;
	union elem *to = defn->out[rank].at;

	for (size_t k = 0; k < spec->nmsgs; k++) {
		uint64_t offset = 0;

		if (spec->msgs[k].dst != rank)
			continue;
		for (size_t before = 0; before < k; before++)
			if (spec->msgs[before].src == spec->msgs[k].src)
				offset += defn_count(spec, before);
		to = defn_append(to, defn->in[spec->msgs[k].src].at + offset, defn_count(spec, k));
	}
}

static void defn_compute(const struct defn *defn, uint32_t rank)
{
	const struct defn_spec *spec = &defn->spec;
	const struct defn_row *out = &defn->out[rank];
	union elem *to = out->at;

	if (out->len == 0)
		return;
	switch (spec->coll) {
	case HK_COLL_ALLREDUCE:
	case HK_COLL_REDUCE:
		defn_add_all(defn, to, 0, out->len);
		break;
	case HK_COLL_REDUCESCATTER:
		defn_add_all(defn, to, defn_offset(spec, 0, rank), out->len);
		break;
	case HK_COLL_BROADCAST:
		defn_append(to, defn->in[spec->root].at, out->len);
		break;
	case HK_COLL_SCATTER:
		defn_append(to, defn->in[spec->root].at + defn_offset(spec, 0, rank), out->len);
		break;
	case HK_COLL_ALLGATHER:
	case HK_COLL_GATHER:
		for (uint32_t i = 0; i < spec->n; i++)
			to = defn_append(to, defn->in[i].at, defn->in[i].len);
		break;
	case HK_COLL_ALLTOALL:
		defn_alltoall(defn, rank);
		break;
	case HK_COLL_SENDRECV:
		defn_sendrecv(defn, rank);
		break;
	case HK_COLL_BARRIER:
	case HK_COLL_COUNT:
		break;
	}
}

struct defn *defn_create(const struct defn_spec *spec, enum elem_values values, uint64_t seed)
{
	struct defn *defn = calloc(1, sizeof(*defn));

	CHECK(defn);
	*defn = (struct defn){ .spec = *spec,
			       .values = values,
			       .in = calloc(spec->n, sizeof(*defn->in)),
			       .out = calloc(spec->n, sizeof(*defn->out)) };
	CHECK(defn->in && defn->out);
	for (uint32_t r = 0; r < spec->n; r++) {
		struct defn_row *in = &defn->in[r], *out = &defn->out[r];

		in->len = defn_in_len(spec, r);
		out->len = defn_out_len(spec, r);
		in->at = calloc(in->len ? in->len : 1, sizeof(union elem));
		out->at = calloc(out->len ? out->len : 1, sizeof(union elem));
		CHECK(in->at && out->at);
		for (uint64_t i = 0; i < in->len; i++)
			in->at[i] = elem_random(spec->type, values, &seed);
	}
	for (uint32_t r = 0; r < spec->n; r++)
		defn_compute(defn, r);
	return defn;
}

void defn_destroy(struct defn *defn)
{
	if (!defn)
		return;
	for (uint32_t r = 0; r < defn->spec.n; r++) {
		free(defn->in[r].at);
		free(defn->out[r].at);
	}
	free(defn->in);
	free(defn->out);
	free(defn);
}

static bool defn_near(const struct defn *defn, union elem a, union elem b)
{
	/* All values are positive: each of n - 1 additions errs by half an ulp of the sum. */
	if (a.bits == b.bits)
		return true;
	if (defn->values == ELEM_EXACT || defn->spec.type == ELEM_INT64)
		return false;
	if (defn->spec.type == ELEM_DOUBLE)
		return fabs(a.d - b.d) <= defn->spec.n * 0x1p-52 * fabs(b.d);
	return fabsf(a.f - b.f) <= (float)defn->spec.n * 0x1p-23f * fabsf(b.f);
}

bool defn_equal(const struct defn *defn, uint32_t rank, const union elem *out, uint64_t *index_out)
{
	for (uint64_t i = 0; i < defn->out[rank].len; i++) {
		if (!defn_near(defn, out[i], defn->out[rank].at[i])) {
			*index_out = i;
			return false;
		}
	}
	return true;
}
