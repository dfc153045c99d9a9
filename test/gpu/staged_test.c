/* SPDX-License-Identifier: Apache-2.0 */
/*
 * staged_test.c - device memory by memory of the host: collectives and messages among
 * threads, processes, hosts, and ranks without a GPU; and what becomes of streams
 * when something goes wrong.
 */
#include "gpu/bed.h"
#include "group/device/staged.h"
#include "harness.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define SECOND UINT64_C(1000000000)

#define CU(call) CHECK_EQ((call), HK__CU_SUCCESS)

/* ---- bytes that are known by who sends them, and when ---- */

/* Tiles of a length that no slot is a multiple of. */
#define TILE ((size_t)65521)

static void bytes_make(unsigned char *bytes, size_t count, uint64_t seed)
{
	for (size_t i = 0; i < count && i < TILE; i++)
		bytes[i] = (unsigned char)((i * 2654435761u + seed * 40503u) >> 7);
	for (size_t i = TILE; i < count; i += TILE)
		memcpy(bytes + i, bytes, count - i < TILE ? count - i : TILE);
}

static void device_fill(hk__cu_ptr at, size_t count, uint64_t seed)
{
	unsigned char *bytes = malloc(count + 1);

	CHECK(bytes);
	bytes_make(bytes, count, seed);
	if (count)
		bed_to_device(at, bytes, count);
	free(bytes);
}

static void bytes_check(const unsigned char *seen, size_t count, uint64_t seed)
{
	unsigned char *want = malloc(count + 1);
	size_t i = 0;

	CHECK(want);
	bytes_make(want, count, seed);
	if (memcmp(seen, want, count) == 0) {
		free(want);
		return;
	}
	while (seen[i] == want[i])
		i++;
	test_fail(__FILE__, __LINE__, "byte %zu of %zu is %u, not %u (seed %llu)", i, count,
		  seen[i], want[i], (unsigned long long)seed);
}

static void device_check(hk__cu_ptr at, size_t count, uint64_t seed)
{
	unsigned char *seen = malloc(count + 1);

	CHECK(seen);
	if (count)
		bed_to_host(seen, at, count);
	bytes_check(seen, count, seed);
	free(seen);
}

static void *pointer(hk__cu_ptr at)
{
	return (void *)(uintptr_t)at; /* NOLINT(performance-no-int-to-ptr) */
}

static void must(struct hk_group *group, enum hk_status status, int line)
{
	if (status != HK_OK)
		test_fail(__FILE__, line, "rank %u: %s: %s", hk_group_rank(group),
			  hk_status_name(status), hk_group_why(group));
}
#define MUST(group, call) must(group, call, __LINE__)

/* ---- ranks as threads: one thread calls for all ---- */

static void bed_staged(struct bed *bed, uint32_t n, size_t bytes)
{
	setenv("HOCKET_GPU", "staged", 1);
	bed_open(bed, n, bytes);
}

static enum hk_status bed_send(struct bed *bed, uint32_t from, uint32_t to, size_t at, size_t count,
			       uint32_t tag)
{
	struct hk_opts opts = HK_OPTS_INIT;

	opts.stream = bed->streams[from];
	opts.tag = tag;
	return hk_send(bed->groups[from], pointer(bed->memory[from] + at), count, HK_TYPE_UINT8, to,
		       &opts);
}

static enum hk_status bed_recv(struct bed *bed, uint32_t from, uint32_t to, size_t at, size_t count,
			       uint32_t tag)
{
	struct hk_opts opts = HK_OPTS_INIT;

	opts.stream = bed->streams[to];
	opts.tag = tag;
	return hk_recv(bed->groups[to], pointer(bed->memory[to] + at), count, HK_TYPE_UINT8, from,
		       &opts);
}

/* Every collective, in and out of place, with and without counts, one behind the other. */
TEST(collectives)
{
	static const enum hk_type types[] = { HK_TYPE_FP32, HK_TYPE_BF16, HK_TYPE_INT64 };
	struct bed bed;

	bed_staged(&bed, 4, 8 * MIB);
	for (unsigned coll = 0; coll < HK_COLL_BARRIER; coll++) {
		for (unsigned i = 0; i < 12; i++) {
			struct bed_op op = { .want = { .coll = (enum hk_coll)coll,
						       .type = types[i % 3],
						       .op = HK_REDOP_SUM,
						       .n = 4,
						       .count = i < 6 ? 33 : 20011,
						       .seed = i } };

			op.want.root = want_rooted(op.want.coll) ? i % 4 : 0;
			op.want.v = i % 2 && want_has_v(op.want.coll) &&
				    op.want.coll != HK_COLL_ALLTOALL;
			op.inplace = i % 4 == 2 && op.want.coll != HK_COLL_ALLTOALL;
			bed_try(&bed, &op);
		}
	}
	bed_close(&bed);
}

/* Longer than rooms were: streams that are calls ahead keep those they know. */
TEST(calls_that_grow)
{
	struct bed bed;
	struct bed_op op = { .want = { .coll = HK_COLL_ALLREDUCE,
				       .type = HK_TYPE_FP32,
				       .op = HK_REDOP_SUM,
				       .n = 2 } };

	bed_staged(&bed, 2, 40 * MIB);
	for (op.want.count = 1; op.want.count < 4 * MIB; op.want.count *= 4)
		bed_try(&bed, &op);
	op.want.count = 10000;
	bed_fill(&bed, &op);
	for (unsigned i = 0; i < 100; i++) /* more than a slab of calls, all ahead */
		bed_call(&bed, &op);
	bed_check(&bed, &op);
	bed_close(&bed);
}

TEST(messages)
{
	static const size_t counts[] = { 0,	  1,	       4096,	 2 * MIB - 1,
					 2 * MIB, 2 * MIB + 1, 32 * MIB, 40 * MIB + 5 };
	struct bed bed;

	bed_staged(&bed, 2, 48 * MIB);
	for (unsigned i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		device_fill(bed.memory[0], counts[i], i);
		device_fill(bed.memory[1], counts[i] + 8, 99);
		MUST(bed.groups[1], bed_recv(&bed, 0, 1, 0, counts[i], i));
		MUST(bed.groups[0], bed_send(&bed, 0, 1, 0, counts[i], i));
		bed_wait(&bed);
		device_check(bed.memory[1], counts[i], i);
	}
	bed_close(&bed);
}

/* Many small ones, further ahead than a ring has slots and notes. */
enum {
	AHEAD_COUNT = 300,
	AHEAD_BYTES = 4000
};

static void *ahead_send(void *arg)
{
	struct bed *bed = arg;

	for (unsigned i = 0; i < AHEAD_COUNT; i++)
		MUST(bed->groups[0], bed_send(bed, 0, 1, (size_t)i * AHEAD_BYTES, AHEAD_BYTES, i));
	return NULL;
}

/* By a thread of its own: a driver takes so many calls ahead, then it waits. */
TEST(messages_ahead)
{
	pthread_t sender;
	struct bed bed;

	bed_staged(&bed, 2, (size_t)AHEAD_COUNT * AHEAD_BYTES);
	device_fill(bed.memory[0], (size_t)AHEAD_COUNT * AHEAD_BYTES, 7);
	CHECK_EQ(pthread_create(&sender, NULL, ahead_send, &bed), 0);
	usleep(100000);
	for (unsigned i = 0; i < AHEAD_COUNT; i++)
		MUST(bed.groups[1], bed_recv(&bed, 0, 1, (size_t)i * AHEAD_BYTES, AHEAD_BYTES, i));
	pthread_join(sender, NULL);
	bed_wait(&bed);
	device_check(bed.memory[1], (size_t)AHEAD_COUNT * AHEAD_BYTES, 7);
	bed_close(&bed);
}

/* All to all and to themselves, longer than rings: nothing waits for its turn. */
TEST(batches)
{
	enum {
		N = 3
	};
	size_t count = 36 * MIB + 3, room = 40 * MIB;
	struct bed bed;

	bed_staged(&bed, N, 2 * N * room);
	for (uint32_t r = 0; r < N; r++)
		for (uint32_t s = 0; s < N; s++)
			device_fill(bed.memory[r] + s * room, count, r * N + s);
	for (uint32_t r = 0; r < N; r++) {
		MUST(bed.groups[r], hk_batch_begin(bed.groups[r]));
		for (uint32_t s = 0; s < N; s++) {
			MUST(bed.groups[r], bed_send(&bed, r, s, s * room, count, 0));
			MUST(bed.groups[r], bed_recv(&bed, s, r, (N + s) * room, count, 0));
		}
		MUST(bed.groups[r], hk_batch_end(bed.groups[r]));
	}
	bed_wait(&bed);
	for (uint32_t r = 0; r < N; r++)
		for (uint32_t s = 0; s < N; s++)
			device_check(bed.memory[r] + (N + s) * room, count, s * N + r);
	bed_close(&bed);
}

/* A collective and messages in one batch, in orders that differ. */
TEST(batch_of_both)
{
	struct bed bed;
	struct bed_op op = { .want = { .coll = HK_COLL_ALLREDUCE,
				       .type = HK_TYPE_FP32,
				       .op = HK_REDOP_SUM,
				       .n = 2,
				       .count = 1000 } };

	bed_staged(&bed, 2, 100 * MIB);
	bed_fill(&bed, &op);
	device_fill(bed.memory[0] + 8 * MIB, 40 * MIB, 3);
	for (uint32_t r = 0; r < 2; r++) {
		MUST(bed.groups[r], hk_batch_begin(bed.groups[r]));
		if (r == 1)
			MUST(bed.groups[r], bed_call_rank(&bed, &op, r, 0));
		MUST(bed.groups[r], r == 0 ? bed_send(&bed, 0, 1, 8 * MIB, 40 * MIB, 0)
					   : bed_recv(&bed, 0, 1, 8 * MIB, 40 * MIB, 0));
		if (r == 0)
			MUST(bed.groups[r], bed_call_rank(&bed, &op, r, 0));
		MUST(bed.groups[r], hk_batch_end(bed.groups[r]));
	}
	bed_check(&bed, &op);
	device_check(bed.memory[1] + 8 * MIB, 40 * MIB, 3);
	bed_close(&bed);
}

static void failed(struct hk_group *group, enum hk_status want, const char *says)
{
	enum hk_status status = HK_OK;

	for (unsigned i = 0; i < 500 && status == HK_OK; i++) {
		struct hk_opts opts = HK_OPTS_INIT;
		uint64_t value = 0;

		opts.timeout_ns = SECOND;
		usleep(10000);
		status =
			hk_allreduce(group, &value, &value, 1, HK_TYPE_UINT64, HK_REDOP_SUM, &opts);
	}
	CHECK_EQ(status, want);
	CHECK_HAS(hk_group_why(group), says);
}

/* What does not fit fails both, and leaves no stream waiting. */
TEST(messages_that_do_not_fit)
{
	struct bed bed;

	bed_staged(&bed, 2, 8 * MIB);
	MUST(bed.groups[1], bed_recv(&bed, 0, 1, 0, 1000, 0));
	MUST(bed.groups[0], bed_send(&bed, 0, 1, 0, 1004, 0));
	bed_wait(&bed);
	failed(bed.groups[1], HK_EMISMATCH,
	       "recv from rank 0: 1000 bytes with tag 0, but rank 0 sends 1004 bytes");
	failed(bed.groups[0], HK_EMISMATCH, "rank 1");
	bed_close(&bed);
}

TEST(tags_that_do_not_fit)
{
	struct bed bed;

	bed_staged(&bed, 2, 8 * MIB);
	MUST(bed.groups[1], bed_recv(&bed, 0, 1, 0, 1000, 3));
	MUST(bed.groups[0], bed_send(&bed, 0, 1, 0, 1000, 4));
	bed_wait(&bed);
	failed(bed.groups[1], HK_EMISMATCH,
	       "1000 bytes with tag 3, but rank 0 sends 1000 bytes with tag 4");
	bed_close(&bed);
}

/* Nobody sends: the stream goes on all the same. */
TEST(messages_in_vain)
{
	struct hk_opts opts = HK_OPTS_INIT;
	struct bed bed;

	bed_staged(&bed, 2, 8 * MIB);
	opts.timeout_ns = SECOND / 5;
	opts.stream = bed.streams[1];
	MUST(bed.groups[1],
	     hk_recv(bed.groups[1], pointer(bed.memory[1]), 8, HK_TYPE_UINT8, 0, &opts));
	bed_wait(&bed);
	failed(bed.groups[1], HK_ETIMEDOUT, "recv from rank 0 not finished in 0.2 s");
	bed_close(&bed);
}

TEST(refusals)
{
	struct hk_opts opts = HK_OPTS_INIT;
	struct hk_request *request;
	struct bed bed;
	void *at;

	bed_staged(&bed, 2, MIB);
	at = pointer(bed.memory[0]);
	opts.stream = bed.streams[0];
	opts.request = &request;
	CHECK_EQ(hk_send(bed.groups[0], at, 8, HK_TYPE_UINT8, 1, &opts), HK_EINVAL);
	CHECK_HAS(hk_group_why(bed.groups[0]), "no request");
	opts.request = NULL;
	CHECK_EQ(hk_send(bed.groups[0], "memory of the host", 8, HK_TYPE_UINT8, 1, &opts),
		 HK_EINVAL);
	CHECK_HAS(hk_group_why(bed.groups[0]), "not device memory");
	bed_capture_begin(&bed);
	CHECK_EQ(hk_allreduce(bed.groups[0], at, at, 8, HK_TYPE_FP32, HK_REDOP_SUM, &opts),
		 HK_EINVAL);
	CHECK_HAS(hk_group_why(bed.groups[0]), "cannot be captured in a graph");
	bed_graph_free(bed_capture_end(&bed));
	bed_close(&bed);
}

/* ---- ranks as processes ---- */

struct rank {
	uint32_t rank, n;
	const char *address;
	const char *host;
	bool gpu;
	struct hk_group *group;
	const struct hk__cuda *cu;
	hk__cu_stream stream;
	hk__cu_ptr memory;
	struct hk_opts opts;
};

static void address_make(char text[32])
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(fd >= 0);
	CHECK_EQ(bind(fd, (struct sockaddr *)&at, len), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	close(fd);
	snprintf(text, 32, "127.0.0.1:%u", ntohs(at.sin_port));
}

static void rank_open(struct rank *rank, size_t bytes)
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct hk_why why = { .text = "" };

	setenv("HOCKET_GPU", rank->gpu ? "staged" : "auto", 1);
	if (rank->gpu) {
		rank->cu = bed_cuda();
		CU(rank->cu->stream(&rank->stream, HK__CU_STREAM_NON_BLOCKING));
		CU(rank->cu->alloc(&rank->memory, bytes));
	} else {
		rank->memory = (hk__cu_ptr)(uintptr_t)calloc(1, bytes);
	}
	opts.address = rank->address;
	opts.rank = rank->rank;
	opts.nranks = rank->n;
	opts.key = "staged";
	opts.host = rank->host;
	opts.timeout_ns = 20 * SECOND;
	if (hk_group_create(&opts, &why, &rank->group) != HK_OK)
		test_fail(__FILE__, __LINE__, "rank %u: %s", rank->rank, why.text);
	rank->opts = (struct hk_opts)HK_OPTS_INIT;
	rank->opts.stream = rank->stream;
}

static void rank_wait(struct rank *rank)
{
	if (rank->gpu)
		CU(rank->cu->stream_wait(rank->stream));
}

static void rank_close(struct rank *rank)
{
	rank_wait(rank);
	hk_group_free(rank->group);
	if (rank->gpu) {
		CU(rank->cu->stream_free(rank->stream));
		CU(rank->cu->free(rank->memory));
	} else {
		free(pointer(rank->memory));
	}
}

/* Ranks with a GPU by a bit each; hosts: how many ranks each has. Who is `killed` may be. */
static void ranks_run(uint32_t n, unsigned gpus, uint32_t per_host, uint32_t killed,
		      void (*run)(struct rank *rank))
{
	static const char *const hosts[] = { "one", "two", "three" };
	char address[32];
	pid_t pids[8];

	address_make(address);
	for (uint32_t r = 0; r < n; r++) {
		struct rank rank = { .rank = r,
				     .n = n,
				     .address = address,
				     .host = hosts[r / per_host],
				     .gpu = gpus >> r & 1 };

		fflush(stdout);
		pids[r] = fork();
		CHECK(pids[r] >= 0);
		if (pids[r] == 0) {
			run(&rank);
			exit(0);
		}
	}
	int failures = 0, skips = 0;
	for (uint32_t r = 0; r < n; r++) {
		int how = 0;

		CHECK_EQ(waitpid(pids[r], &how, 0), pids[r]);
		skips += WIFEXITED(how) && WEXITSTATUS(how) == 77;
		if (r == killed)
			failures += !WIFSIGNALED(how);
		else if (!WIFEXITED(how) || (WEXITSTATUS(how) != 0 && WEXITSTATUS(how) != 77))
			failures++;
	}
	if (skips)
		SKIP("no CUDA driver, or no GPU");
	CHECK_EQ(failures, 0);
}

static void rank_fill(struct rank *rank, size_t at, size_t count, uint64_t seed)
{
	if (rank->gpu)
		device_fill(rank->memory + at, count, seed);
	else
		bytes_make(pointer(rank->memory + at), count, seed);
}

static void rank_check(struct rank *rank, size_t at, size_t count, uint64_t seed)
{
	rank_wait(rank);
	if (rank->gpu)
		device_check(rank->memory + at, count, seed);
	else
		bytes_check(pointer(rank->memory + at), count, seed);
}

static void rank_copy(struct rank *rank, size_t at, void *host, size_t bytes, bool in)
{
	if (in && rank->gpu)
		bed_to_device(rank->memory + at, host, bytes);
	else if (rank->gpu)
		bed_to_host(host, rank->memory + at, bytes);
	else if (in)
		memcpy(pointer(rank->memory + at), host, bytes);
	else
		memcpy(host, pointer(rank->memory + at), bytes);
}

/* Sums of ranks' numbers, on all; larger and smaller than a room. */
static void rank_sums(struct rank *rank, struct hk_group *group)
{
	uint32_t n = hk_group_size(group), me = hk_group_rank(group);

	for (size_t count = 1; count <= MIB; count *= 1024) {
		uint64_t *values = calloc(count, sizeof(*values));

		CHECK(values);
		for (size_t i = 0; i < count; i++)
			values[i] = i * 3 + me;
		rank_copy(rank, 0, values, count * 8, true);
		MUST(group,
		     hk_allreduce(group, pointer(rank->memory), pointer(rank->memory + 8 * MIB),
				  count, HK_TYPE_UINT64, HK_REDOP_SUM, &rank->opts));
		rank_wait(rank);
		rank_copy(rank, 8 * MIB, values, count * 8, false);
		for (size_t i = 0; i < count; i++)
			CHECK_EQ(values[i], i * 3 * n + n * (n - 1) / 2);
		free(values);
	}
}

/* From each to each, also to itself, in one batch; one longer than a ring. */
static void rank_messages(struct rank *rank, struct hk_group *group, size_t count)
{
	uint32_t n = hk_group_size(group), me = hk_group_rank(group);
	struct hk_opts opts = rank->opts;
	size_t room = count + 64;

	for (uint32_t r = 0; r < n; r++)
		rank_fill(rank, r * room, count, me * n + r);
	MUST(group, hk_batch_begin(group));
	for (uint32_t r = 0; r < n; r++) {
		opts.tag = me + r;
		MUST(group, hk_send(group, pointer(rank->memory + r * room), count, HK_TYPE_UINT8,
				    r, &opts));
		MUST(group, hk_recv(group, pointer(rank->memory + (n + r) * room), count,
				    HK_TYPE_UINT8, r, &opts));
	}
	MUST(group, hk_batch_end(group));
	for (uint32_t r = 0; r < n; r++)
		rank_check(rank, (n + r) * room, count, r * n + me);
}

/* Blocks of all lengths, none among them. */
static void rank_alltoallv(struct rank *rank)
{
	uint64_t *in_counts = calloc(rank->n, 8), *out_counts = calloc(rank->n, 8);
	size_t in = 0, out = 16 * MIB;

	CHECK(in_counts && out_counts);
	for (uint32_t r = 0; r < rank->n; r++) {
		in_counts[r] = (rank->rank * rank->n + r) * 1000;
		out_counts[r] = (r * rank->n + rank->rank) * 1000;
		rank_fill(rank, in, in_counts[r], rank->rank * 100 + r);
		in += in_counts[r];
	}
	MUST(rank->group,
	     hk_alltoallv(rank->group, pointer(rank->memory), in_counts,
			  pointer(rank->memory + out), out_counts, HK_TYPE_UINT8, &rank->opts));
	free(in_counts); /* a call on a stream has its own */
	for (uint32_t r = 0; r < rank->n; r++) {
		rank_check(rank, out, out_counts[r], r * 100 + rank->rank);
		out += out_counts[r];
	}
	free(out_counts);
}

static void rank_all(struct rank *rank)
{
	rank_open(rank, 300 * MIB);
	rank_messages(rank, rank->group, 34 * MIB + 1);
	for (unsigned i = 0; i < 2; i++) {
		rank_sums(rank, rank->group);
		rank_messages(rank, rank->group, 1000);
		rank_alltoallv(rank);
		MUST(rank->group, hk_barrier(rank->group, &rank->opts));
	}
	rank_close(rank);
}

TEST(processes)
{
	ranks_run(3, 7, 8, HK_NONE, rank_all);
}

TEST(hosts)
{
	ranks_run(3, 7, 2, HK_NONE, rank_all);
}

/* Those without a GPU call as ever, and nobody can tell. */
TEST(with_and_without_a_gpu)
{
	ranks_run(4, 5, 8, HK_NONE, rank_all);
}

TEST(with_and_without_a_gpu_on_hosts)
{
	ranks_run(3, 2, 2, HK_NONE, rank_all);
}

/* One long message behind the other, as fast as they go: slots are used again and again. */
static void rank_streams(struct rank *rank)
{
	size_t count = 50 * MIB + 77;

	rank_open(rank, 64 * MIB);
	rank_fill(rank, 0, count, rank->rank);
	for (unsigned i = 0; i < 12; i++)
		MUST(rank->group, rank->rank ? hk_recv(rank->group, pointer(rank->memory), count,
						       HK_TYPE_UINT8, 0, &rank->opts)
					     : hk_send(rank->group, pointer(rank->memory), count,
						       HK_TYPE_UINT8, 1, &rank->opts));
	rank_check(rank, 0, count, 0);
	rank_close(rank);
}

TEST(messages_in_a_row)
{
	ranks_run(2, 3, 8, HK_NONE, rank_streams);
}

TEST(messages_in_a_row_between_hosts)
{
	ranks_run(2, 3, 1, HK_NONE, rank_streams);
}

/* Turns of calls, chunks and notes of messages, from just below where they come round. */
static void rank_rounds(struct rank *rank)
{
	static const uint32_t starts[] = { UINT32_MAX, UINT32_MAX - 6, INT32_MAX, INT32_MAX - 9u };

	rank_open(rank, 120 * MIB);
	for (unsigned i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		rank_messages(rank, rank->group, 9 * MIB + 1);
		for (unsigned k = 0; k < 20; k++)
			rank_messages(rank, rank->group, 1000);
		rank_sums(rank, rank->group);
		rank_wait(rank);
		hk__staged_settle(rank->group);
		MUST(rank->group, hk_barrier(rank->group, NULL));
		hk__staged_set_numbers(rank->group, starts[i]);
		MUST(rank->group, hk_barrier(rank->group, NULL));
	}
	rank_messages(rank, rank->group, 9 * MIB + 1);
	rank_close(rank);
}

TEST(numbers_come_round)
{
	ranks_run(3, 7, 8, HK_NONE, rank_rounds);
}

TEST(numbers_come_round_between_hosts)
{
	ranks_run(3, 7, 2, HK_NONE, rank_rounds);
}

/* Groups that share ranks have slots of their own, in whatever order they are used. */
static void rank_split(struct rank *rank)
{
	struct hk_group *half;
	size_t count = 5 * MIB;

	rank_open(rank, 300 * MIB);
	MUST(rank->group, hk_group_split(rank->group, rank->rank / 2, rank->rank, &half));
	rank_sums(rank, half);
	rank_messages(rank, half, 3 * MIB);
	struct hk_group *first = rank->rank % 2 ? half : rank->group;
	struct hk_group *second = rank->rank % 2 ? rank->group : half;
	uint32_t peer = rank->rank ^ 1;
	rank_fill(rank, 0, count, 1);
	rank_fill(rank, 8 * MIB, count, 2);
	MUST(rank->group, hk_batch_begin(rank->group));
	MUST(half, hk_batch_begin(half));
	for (unsigned i = 0; i < 2; i++) {
		struct hk_group *group = i ? second : first;
		uint32_t to = group == half ? peer % 2 : peer;
		size_t at = group == half ? 0 : 8 * MIB;

		if (rank->rank % 2)
			MUST(group, hk_recv(group, pointer(rank->memory + 32 * MIB + at), count,
					    HK_TYPE_UINT8, to, &rank->opts));
		else
			MUST(group, hk_send(group, pointer(rank->memory + at), count, HK_TYPE_UINT8,
					    to, &rank->opts));
	}
	MUST(half, hk_batch_end(half));
	MUST(rank->group, hk_batch_end(rank->group));
	if (rank->rank % 2) {
		rank_check(rank, 32 * MIB, count, 1);
		rank_check(rank, 40 * MIB, count, 2);
	}
	rank_wait(rank);
	hk_group_free(half);
	rank_close(rank);
}

TEST(groups_of_groups)
{
	ranks_run(4, 15, 8, HK_NONE, rank_split);
}

/* ---- ranks that die ---- */

/* Rank 1, once nobody is in what was called before. */
static void rank_die(struct rank *rank)
{
	MUST(rank->group, hk_barrier(rank->group, &rank->opts));
	rank_wait(rank);
	if (rank->rank == 1)
		raise(SIGKILL);
}

/* In a collective: streams of the others go on, and say who is gone. */
static void rank_dies_in_sum(struct rank *rank)
{
	rank_open(rank, 32 * MIB);
	rank_sums(rank, rank->group);
	rank_die(rank);
	enum hk_status status =
		hk_allreduce(rank->group, pointer(rank->memory), pointer(rank->memory + 8 * MIB),
			     MIB, HK_TYPE_UINT64, HK_REDOP_SUM, &rank->opts);
	CHECK(status == HK_OK || status == HK_EPEER); /* it may be known already */
	rank_wait(rank);
	failed(rank->group, HK_EPEER, "rank 1");
	rank_close(rank);
}

TEST(a_rank_dies_in_a_collective)
{
	ranks_run(3, 7, 8, 1, rank_dies_in_sum);
}

TEST(a_rank_dies_on_another_host)
{
	ranks_run(2, 3, 1, 1, rank_dies_in_sum);
}

/* Before it sends, or before it takes what no longer fits into slots. */
static void rank_dies_in_message(struct rank *rank)
{
	rank_open(rank, 64 * MIB);
	rank_messages(rank, rank->group, 1000);
	rank_die(rank);
	enum hk_status status = rank->rank == 0 ? hk_send(rank->group, pointer(rank->memory),
							  40 * MIB, HK_TYPE_UINT8, 1, &rank->opts)
						: hk_recv(rank->group, pointer(rank->memory),
							  40 * MIB, HK_TYPE_UINT8, 1, &rank->opts);
	CHECK(status == HK_OK || status == HK_EPEER);
	rank_wait(rank);
	failed(rank->group, HK_EPEER, "rank 1");
	rank_close(rank);
}

TEST(a_rank_dies_in_a_message)
{
	ranks_run(3, 7, 8, 1, rank_dies_in_message);
}

/* A group that has failed is left for one of those who live. */
static void rank_shrinks(struct rank *rank)
{
	struct hk_group *left;

	rank_open(rank, 64 * MIB);
	rank_messages(rank, rank->group, 3 * MIB);
	rank_die(rank);
	enum hk_status status =
		hk_recv(rank->group, pointer(rank->memory), 8, HK_TYPE_UINT8, 1, &rank->opts);
	CHECK(status == HK_OK || status == HK_EPEER);
	rank_wait(rank);
	failed(rank->group, HK_EPEER, "rank 1");
	MUST(rank->group, hk_group_shrink(rank->group, NULL, &left));
	rank_sums(rank, left);
	rank_messages(rank, left, 3 * MIB);
	rank_wait(rank);
	hk_group_free(left);
	rank_close(rank);
}

TEST(those_who_are_left_go_on)
{
	ranks_run(3, 7, 8, 1, rank_shrinks);
}
