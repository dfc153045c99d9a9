/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.c - a rank that does everything: `ranks [COUNT...]`.
 *
 * For each count it performs every collective and compares every element, with
 * numbers that tell which rank, block and place they come from. It knows
 * nothing of who started it, and has the public headers alone. What it found is
 * one line:
 *
 *	rank 2 of 4: sum 10, right for 1 1000, net shm, allreduce two-level,
 *	tcp to 0 here and 0 elsewhere
 *
 * The sum is of rank + 1 over ranks; the algorithm is that of the last count;
 * the connections are those the process has, by whether both ends have one
 * address.
 *
 * With RANKS_GROW=N the group first grows to N; newcomers do everything with it.
 */
#include <hocket/hocket.h>

#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define ROOTS_ALL_MAX 1000 /* counts up to here try every root, larger ones two */
#define FDS 4096

struct op {
	enum hk_coll coll;
	bool v;
	uint32_t root;
	uint64_t count;
};

struct rank {
	struct hk_group *group;
	uint32_t rank, n;
	uint32_t *in, *out;
	uint64_t *in_counts, *out_counts; /* of the v forms */
};

/* ---- what is given, and what is due ---- */

static uint32_t value(uint32_t rank, uint32_t block, uint64_t i)
{
	return rank * 1000003U + block * 7919U + (uint32_t)i * 31U;
}

static uint32_t total(uint32_t n, uint32_t block, uint64_t i)
{
	return n * (n - 1) / 2 * 1000003U + n * value(0, block, i);
}

/* None, half or all of the count. */
static uint64_t uneven(uint64_t count, uint32_t k)
{
	return count * (k % 3) / 2;
}

/* Elements of the block that goes from one rank to another. */
static uint64_t length(const struct op *op, uint32_t from, uint32_t to)
{
	if (!op->v)
		return op->count;
	switch (op->coll) {
	case HK_COLL_ALLGATHER:
	case HK_COLL_GATHER:
		return uneven(op->count, from);
	case HK_COLL_ALLTOALL:
		return uneven(op->count, from + to);
	default:
		return uneven(op->count, to);
	}
}

static bool has_in_blocks(enum hk_coll coll)
{
	return coll == HK_COLL_REDUCESCATTER || coll == HK_COLL_SCATTER || coll == HK_COLL_ALLTOALL;
}

static bool has_out_blocks(enum hk_coll coll)
{
	return coll == HK_COLL_ALLGATHER || coll == HK_COLL_GATHER || coll == HK_COLL_ALLTOALL;
}

static bool is_rooted(enum hk_coll coll)
{
	return coll == HK_COLL_BROADCAST || coll == HK_COLL_REDUCE || coll == HK_COLL_GATHER ||
	       coll == HK_COLL_SCATTER;
}

static uint32_t due(const struct rank *me, const struct op *op, uint32_t block, uint64_t i)
{
	switch (op->coll) {
	case HK_COLL_ALLREDUCE:
	case HK_COLL_REDUCE:
		return total(me->n, 0, i);
	case HK_COLL_REDUCESCATTER:
		return total(me->n, me->rank, i);
	case HK_COLL_BROADCAST:
		return value(op->root, 0, i);
	case HK_COLL_SCATTER:
		return value(op->root, me->rank, i);
	case HK_COLL_ALLTOALL:
		return value(block, me->rank, i);
	default: /* gathers */
		return value(block, 0, i);
	}
}

/* ---- one operation ---- */

static void fill(struct rank *me, const struct op *op)
{
	uint32_t blocks = has_in_blocks(op->coll) ? me->n : 1;
	uint32_t *to = me->in;

	for (uint32_t k = 0; k < blocks; k++)
		for (uint64_t i = 0; i < length(op, me->rank, k); i++)
			*to++ = value(me->rank, k, i);
	memset(me->out, 0xee, me->n * op->count * sizeof(*me->out));
}

static bool check(const struct rank *me, const struct op *op)
{
	uint32_t blocks = has_out_blocks(op->coll) ? me->n : 1;
	const uint32_t *at = me->out;

	if ((op->coll == HK_COLL_REDUCE || op->coll == HK_COLL_GATHER) && me->rank != op->root)
		return true;
	for (uint32_t k = 0; k < blocks; k++) {
		for (uint64_t i = 0; i < length(op, k, me->rank); i++, at++) {
			if (*at == due(me, op, k, i))
				continue;
			fprintf(stderr,
				"rank %u: %s%s of %" PRIu64 ", root %u: element %" PRIu64
				" of block %u is %u, not %u\n",
				me->rank, hk_coll_name(op->coll), op->v ? "v" : "", op->count,
				op->root, i, k, *at, due(me, op, k, i));
			return false;
		}
	}
	return true;
}

static enum hk_status perform_v(struct rank *me, const struct op *op)
{
	const enum hk_type type = HK_TYPE_UINT32;

	for (uint32_t k = 0; k < me->n; k++) {
		bool own = op->coll == HK_COLL_ALLTOALL;

		me->in_counts[k] = own ? length(op, me->rank, k) : length(op, k, k);
		me->out_counts[k] = length(op, k, me->rank);
	}
	switch (op->coll) {
	case HK_COLL_ALLGATHER:
		return hk_allgatherv(me->group, me->in, me->out, me->in_counts, type, NULL);
	case HK_COLL_GATHER:
		return hk_gatherv(me->group, me->in, me->out, me->in_counts, type, op->root, NULL);
	case HK_COLL_REDUCESCATTER:
		return hk_reducescatterv(me->group, me->in, me->out, me->in_counts, type,
					 HK_REDOP_SUM, NULL);
	case HK_COLL_SCATTER:
		return hk_scatterv(me->group, me->in, me->out, me->in_counts, type, op->root, NULL);
	default:
		return hk_alltoallv(me->group, me->in, me->in_counts, me->out, me->out_counts, type,
				    NULL);
	}
}

static enum hk_status perform(struct rank *me, const struct op *op)
{
	const enum hk_type type = HK_TYPE_UINT32;
	struct hk_group *group = me->group;

	switch (op->coll) {
	case HK_COLL_ALLREDUCE:
		return hk_allreduce(group, me->in, me->out, op->count, type, HK_REDOP_SUM, NULL);
	case HK_COLL_REDUCE:
		return hk_reduce(group, me->in, me->out, op->count, type, HK_REDOP_SUM, op->root,
				 NULL);
	case HK_COLL_BROADCAST:
		return hk_broadcast(group, me->in, me->out, op->count, type, op->root, NULL);
	case HK_COLL_ALLGATHER:
		return hk_allgather(group, me->in, me->out, op->count, type, NULL);
	case HK_COLL_GATHER:
		return hk_gather(group, me->in, me->out, op->count, type, op->root, NULL);
	case HK_COLL_REDUCESCATTER:
		return hk_reducescatter(group, me->in, me->out, op->count, type, HK_REDOP_SUM,
					NULL);
	case HK_COLL_SCATTER:
		return hk_scatter(group, me->in, me->out, op->count, type, op->root, NULL);
	default:
		return hk_alltoall(group, me->in, me->out, op->count, type, NULL);
	}
}

static bool try(struct rank *me, const struct op *op)
{
	enum hk_status status;

	fill(me, op);
	status = op->v ? perform_v(me, op) : perform(me, op);
	if (status == HK_OK)
		return check(me, op);
	fprintf(stderr, "rank %u: %s%s of %" PRIu64 ": %s\n", me->rank, hk_coll_name(op->coll),
		op->v ? "v" : "", op->count, hk_group_why(me->group));
	return false;
}

/* ---- all of them ---- */

static bool try_roots(struct rank *me, struct op op)
{
	uint32_t step = op.count <= ROOTS_ALL_MAX || me->n == 1 ? 1 : me->n - 1;

	if (!is_rooted(op.coll))
		return try(me, &op);
	for (op.root = 0; op.root < me->n; op.root += step)
		if (!try(me, &op))
			return false;
	return true;
}

/* To the next rank, from the one before, both at once. */
static bool try_neighbours(struct rank *me, uint64_t count)
{
	uint32_t next = (me->rank + 1) % me->n, before = (me->rank + me->n - 1) % me->n;
	const struct op op = { .coll = HK_COLL_BROADCAST, .root = before, .count = count };
	enum hk_status status = hk_batch_begin(me->group);

	fill(me, &op);
	if (status == HK_OK)
		status = hk_send(me->group, me->in, count, HK_TYPE_UINT32, next, NULL);
	if (status == HK_OK)
		status = hk_recv(me->group, me->out, count, HK_TYPE_UINT32, before, NULL);
	if (status == HK_OK)
		status = hk_batch_end(me->group);
	if (status == HK_OK)
		return check(me, &op);
	fprintf(stderr, "rank %u: send and recv: %s\n", me->rank, hk_group_why(me->group));
	return false;
}

static bool try_all(struct rank *me, uint64_t count)
{
	static const enum hk_coll with_v[] = { HK_COLL_ALLGATHER, HK_COLL_GATHER,
					       HK_COLL_REDUCESCATTER, HK_COLL_SCATTER,
					       HK_COLL_ALLTOALL };
	bool right = true;

	for (int coll = 0; coll < HK_COLL_BARRIER && right; coll++)
		right = try_roots(me, (struct op){ (enum hk_coll)coll, false, 0, count });
	for (size_t i = 0; i < sizeof(with_v) / sizeof(with_v[0]) && right; i++)
		right = try_roots(me, (struct op){ with_v[i], true, 0, count });
	return right && try_neighbours(me, count);
}

/* Odd and even ranks apart, in reverse; then all wait for all. */
static bool try_split(struct rank *me)
{
	struct hk_group *whole = me->group, *half = NULL;
	struct rank part = *me;
	const struct op op = { .coll = HK_COLL_ALLREDUCE, .count = 1 };
	bool right = hk_group_split(whole, me->rank % 2, me->n - me->rank, &half) == HK_OK;

	if (right) {
		part.group = half;
		part.rank = hk_group_rank(half);
		part.n = hk_group_size(half);
		right = part.n == (me->n + 1 - me->rank % 2) / 2 &&
			part.rank == part.n - 1 - me->rank / 2;
	}
	if (right)
		right = try(&part, &op);
	hk_group_free(half);
	right = right && hk_barrier(whole, NULL) == HK_OK;
	if (!right)
		fprintf(stderr, "rank %u: split: %s\n", me->rank, hk_group_why(whole));
	return right;
}

/* ---- what is said ---- */

static bool same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a->ss_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
}

static void connections_count(unsigned *here, unsigned *elsewhere)
{
	*here = *elsewhere = 0;
	for (int fd = 0; fd < FDS; fd++) {
		struct sockaddr_storage own = { 0 }, peer = { 0 };
		socklen_t own_len = sizeof(own), peer_len = sizeof(peer);

		if (getsockname(fd, (struct sockaddr *)&own, &own_len) ||
		    getpeername(fd, (struct sockaddr *)&peer, &peer_len) ||
		    (peer.ss_family != AF_INET && peer.ss_family != AF_INET6))
			continue;
		if (same_host(&own, &peer))
			++*here;
		else
			++*elsewhere;
	}
}

static bool say(struct rank *me, int argc, char **argv, uint64_t last)
{
	uint32_t sum = me->rank + 1;
	unsigned here, elsewhere;
	struct hk_choice choice = { .size = sizeof(choice) };

	if (hk_allreduce(me->group, &sum, &sum, 1, HK_TYPE_UINT32, HK_REDOP_SUM, NULL) != HK_OK ||
	    hk_group_choice(me->group, HK_COLL_ALLREDUCE, last, HK_TYPE_UINT32, &choice) != HK_OK) {
		fprintf(stderr, "rank %u: %s\n", me->rank, hk_group_why(me->group));
		return false;
	}
	connections_count(&here, &elsewhere);
	printf("rank %u of %u: sum %u, right for", me->rank, me->n, sum);
	for (int i = 1; i < argc; i++)
		printf(" %s", argv[i]);
	printf(", net %s, allreduce %s, tcp to %u here and %u elsewhere\n", choice.net, choice.algo,
	       here, elsewhere);
	return true;
}

static bool everything(struct rank *me, int argc, char **argv)
{
	uint64_t count = 1;
	bool right = try_split(me);

	for (int i = 1; i < argc && right; i++) {
		count = strtoull(argv[i], NULL, 10);
		right = try_all(me, count);
	}
	return right && say(me, argc, argv, count);
}

/* Whether the rank is in a group, as large as it is to be. */
static bool join(struct rank *me)
{
	const char *grow = getenv("RANKS_GROW");
	struct hk_group *grown;
	struct hk_why why;

	if (hk_group_create(NULL, &why, &me->group) != HK_OK) {
		fprintf(stderr, "%s\n", why.text);
		return false;
	}
	if (!grow)
		return true;
	if (hk_group_grow(me->group, (uint32_t)strtoul(grow, NULL, 10), NULL, &grown) != HK_OK) {
		fprintf(stderr, "%s\n", hk_group_why(me->group));
		hk_group_free(me->group);
		return false;
	}
	hk_group_free(me->group);
	me->group = grown;
	return true;
}

int main(int argc, char **argv)
{
	struct rank me = { 0 };
	uint64_t most = 1;
	bool right = false;

	if (!join(&me))
		return 1;
	me.rank = hk_group_rank(me.group);
	me.n = hk_group_size(me.group);
	for (int i = 1; i < argc; i++)
		if (strtoull(argv[i], NULL, 10) > most)
			most = strtoull(argv[i], NULL, 10);
	me.in = malloc(me.n * most * sizeof(*me.in));
	me.out = malloc(me.n * most * sizeof(*me.out));
	me.in_counts = calloc(me.n, sizeof(*me.in_counts));
	me.out_counts = calloc(me.n, sizeof(*me.out_counts));
	if (me.in && me.out && me.in_counts && me.out_counts)
		right = everything(&me, argc, argv);
	else
		fprintf(stderr, "rank %u: no memory\n", me.rank);
	hk_group_free(me.group);
	free(me.in);
	free(me.out);
	free(me.in_counts);
	free(me.out_counts);
	return !right;
}
