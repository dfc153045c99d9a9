/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.c - how fast transports are, beside bare sockets: half of a round trip
 * for small messages, and the speed of a stream of large ones.
 *
 *	bench_net [ROUNDS]
 *
 * Two processes, each on a core of its own, do everything in turn, ROUNDS
 * times; medians and, of a machine that is not alone, the best are printed. It stands in test/ because it looks inside of
 * the library. A rank that finds nothing looks again for a while, then yields,
 * then sleeps, as the executor does; bare sockets do the same.
 */
#include "net/shm/shm.h"
#include "net/tcp/tcp.h"
#include "net/keep.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MUST(cond) ((cond) ? (void)0 : die(__LINE__, #cond))
#define SEGMENT ((size_t)256 << 20)
#define HEAP_AT ((size_t)128 << 20)
#define LARGEST (4u << 20)
#define STREAM_BYTES ((size_t)64 << 20)
#define SLOTS 4u
#define ROUNDS_MAX 99

enum {
	WAYS = 3,
	SMALL = 4,
	LARGE = 4
};
static const char *const names[WAYS] = { "sockets", "tcp", "shm" };
static const uint32_t small[SMALL] = { 8, 1024, 16384, 65536 };
static const uint32_t large[LARGE] = { 65536, 262144, 1u << 20, LARGEST };

static void die(int line, const char *what)
{
	fprintf(stderr, "bench_net: line %d: %s: %s\n", line, what, strerror(errno));
	exit(1);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- one end of a way to send and receive ---- */

struct end {
	uint32_t rank;
	int fd;		    /* bare sockets */
	struct hk_net *net; /* NULL: bare sockets */
	struct hk_chan *out, *in;
	char *from, *to;
	unsigned idle;	/* looks that found nothing, in a row */
	uint64_t moved; /* of the net, at the last of them */
};

static void *segments[2];
static struct sockaddr_storage addresses[2];
static int listeners[2];

/* Nothing to do, again: looks, then yields, then sleeps. */
static void end_idle(struct end *end)
{
	struct pollfd fd = { end->fd, POLLIN, 0 };

	if (end->net && end->net->moved != end->moved) {
		end->moved = end->net->moved;
		end->idle = 0;
	}
	if (end->idle++ < 200)
		return;
	if (end->idle < 220)
		sched_yield();
	else if (end->net)
		MUST(hk__net_wait(end->net, UINT64_C(10000000000)) == HK_OK);
	else
		MUST(poll(&fd, 1, 10000) >= 0);
}

static void raw_send(struct end *end, const char *data, size_t len)
{
	struct pollfd fd = { end->fd, POLLOUT, 0 };

	while (len) {
		ssize_t sent = send(end->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0) {
			MUST(errno == EAGAIN);
			MUST(poll(&fd, 1, 10000) == 1);
			continue;
		}
		data += sent;
		len -= (size_t)sent;
	}
}

static void raw_receive(struct end *end, char *data, size_t len)
{
	end->idle = 0;
	while (len) {
		ssize_t got = recv(end->fd, data, len, MSG_DONTWAIT);

		if (got < 0) {
			MUST(errno == EAGAIN);
			end_idle(end);
			continue;
		}
		MUST(got);
		end->idle = 0;
		data += got;
		len -= (size_t)got;
	}
}

static bool net_try_send(struct end *end, uint32_t len)
{
	bool done = true;
	void *slot;

	if (hk__chan_lendable(end->out, end->from, len)) {
		MUST(hk__chan_lend(end->out, end->from, len, 0, &done) == HK_OK);
		return done;
	}
	MUST(hk__chan_reserve(end->out, len, &slot) == HK_OK);
	if (!slot)
		return false;
	memcpy(slot, end->from, len);
	hk__chan_post(end->out, len, 0);
	return true;
}

static void end_send(struct end *end, uint32_t len)
{
	if (!end->net) {
		raw_send(end, end->from, len);
		return;
	}
	for (end->idle = 0; !net_try_send(end, len); end_idle(end))
		MUST(hk__net_poll(end->net) == HK_OK);
}

static void end_receive(struct end *end, uint32_t len)
{
	struct hk_message message;
	bool done = false;

	if (!end->net) {
		raw_receive(end, end->to, len);
		return;
	}
	for (end->idle = 0;; end_idle(end)) {
		MUST(hk__chan_take(end->in, end->to, len, &message, &done) == HK_OK);
		if (done)
			break;
		MUST(hk__net_poll(end->net) == HK_OK);
	}
	MUST(message.len == len);
}

static void end_flush(struct end *end)
{
	if (!end->net)
		return;
	for (end->idle = 0; hk__chan_lent(end->out); end_idle(end))
		MUST(hk__net_poll(end->net) == HK_OK);
}

/* ---- what is measured ---- */

/* Half of a round trip, in microseconds. */
static double measure_latency(struct end *end, uint32_t len)
{
	int times = len > 4096 ? 500 : 2000;
	double begin = 0;

	for (int i = -20; i < times; i++) {
		if (i == 0)
			begin = seconds();
		if (end->rank == 0)
			end_send(end, len);
		end_receive(end, len);
		if (end->rank == 1)
			end_send(end, len);
		end_flush(end);
	}
	return (seconds() - begin) / times / 2 * 1e6;
}

/* GB/s from rank 0 to rank 1, which says when it has all. */
static double measure_stream(struct end *end, uint32_t len)
{
	size_t times = STREAM_BYTES / len;
	double begin = seconds();

	if (end->rank == 0) {
		for (size_t i = 0; i < times; i++)
			end_send(end, len);
		end_flush(end);
		end_receive(end, 8);
	} else {
		for (size_t i = 0; i < times; i++)
			end_receive(end, len);
		end_send(end, 8);
		end_flush(end);
	}
	return (double)STREAM_BYTES / (seconds() - begin) * 1e-9;
}

/* ---- setting up ---- */

static void *segment_of(void *ctx, uint32_t rank)
{
	(void)ctx;
	return segments[rank];
}

static enum hk_status address_of(void *ctx, uint32_t rank, struct sockaddr_storage *addr_out,
				 socklen_t *len_out)
{
	(void)ctx;
	*addr_out = addresses[rank];
	*len_out = sizeof(struct sockaddr_in);
	return HK_OK;
}

/* What both processes have of the other, before they part. */
static void set_up(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	for (uint32_t r = 0; r < 2; r++) {
		socklen_t len = sizeof(addresses[r]);
		int fd;

		MUST(hk__shm_segment_create(SEGMENT, &fd) == HK_OK);
		MUST(hk__shm_segment_map(fd, 0, SEGMENT, &segments[r]) == HK_OK);
		hk__fd_close(fd);
		MUST(hk__tcp_listen((struct sockaddr *)&any, sizeof(any), &listeners[r]) == HK_OK);
		listeners[r] = fd_keep(listeners[r]);
		MUST(getsockname(listeners[r], (struct sockaddr *)&addresses[r], &len) == 0);
	}
}

static int connect_bare(uint32_t rank)
{
	static const int one = 1;
	struct pollfd fd = { listeners[1], POLLIN, 0 };
	int to;

	if (rank == 0) {
		to = socket(AF_INET, SOCK_STREAM, 0);
		MUST(connect(to, (struct sockaddr *)&addresses[1], sizeof(struct sockaddr_in)) ==
		     0);
	} else {
		MUST(poll(&fd, 1, 10000) == 1);
		to = accept(listeners[1], NULL, NULL);
	}
	MUST(to >= 0 && setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0);
	return to;
}

static void open_chans(struct end *end)
{
	struct hk_chan_spec spec = { { .peer = 1 - end->rank }, SLOTS, LARGEST };

	MUST(hk__chan_open_send(end->net, &spec, &end->out) == HK_OK);
	MUST(hk__chan_open_recv(end->net, &spec, &end->in) == HK_OK);
}

static void open_ends(uint32_t rank, struct end ends[WAYS])
{
	struct hk_tcp_spec tcp = { .rank = rank, .n = 2, .address = address_of };
	struct hk_shm_spec shm = {
		.rank = rank, .n = 2, .bytes = SEGMENT, .heap_at = HEAP_AT, .segment = segment_of
	};
	int fd = connect_bare(rank);

	for (int w = 0; w < WAYS; w++) {
		char *heap = (char *)segments[rank] + HEAP_AT;

		ends[w] = (struct end){
			.rank = rank, .fd = fd, .from = heap, .to = heap + 2 * (size_t)LARGEST
		};
		memset(ends[w].from, 1, LARGEST);
		memset(ends[w].to, 2, LARGEST);
	}
	tcp.listen_fd = listeners[rank];
	MUST(hk__tcp_open(&tcp, &ends[1].net) == HK_OK);
	MUST(hk__shm_open(&shm, &ends[2].net) == HK_OK);
	open_chans(&ends[1]);
	open_chans(&ends[2]);
}

/* ---- the runs ---- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void print_result(double *values, int n, bool low_is_good)
{
	qsort(values, (size_t)n, sizeof(*values), compare);
	printf(" %8.2f %8.2f", values[n / 2], values[low_is_good ? 0 : n - 1]);
}

static double results[SMALL + LARGE][WAYS][ROUNDS_MAX];

static void run(uint32_t rank, int rounds)
{
	struct end ends[WAYS];

	open_ends(rank, ends);
	for (int i = 0; i < rounds; i++) {
		for (int s = 0; s < SMALL + LARGE; s++)
			for (int w = 0; w < WAYS; w++)
				results[s][w][i] =
					s < SMALL ? measure_latency(&ends[w], small[s])
						  : measure_stream(&ends[w], large[s - SMALL]);
	}
	for (int w = 1; w < WAYS; w++) {
		hk__chan_close(ends[w].out);
		hk__chan_close(ends[w].in);
		hk__net_close(ends[w].net);
	}
}

static void pin(int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		fprintf(stderr, "bench_net: no core %d to be on\n", core);
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 9;
	int status = 1;

	if (rounds < 1 || rounds > ROUNDS_MAX)
		rounds = 9;
	set_up();
	pid_t child = fork();
	MUST(child >= 0);
	pin(child == 0);
	run(child == 0, rounds);
	if (child == 0)
		return 0;
	MUST(waitpid(child, &status, 0) == child && status == 0);
	printf("%-14s", "");
	for (int w = 0; w < WAYS; w++)
		printf(" %17s", names[w]);
	printf("   median and best of %d\n", rounds);
	for (int s = 0; s < SMALL + LARGE; s++) {
		bool is_small = s < SMALL;

		printf("%8u bytes", is_small ? small[s] : large[s - SMALL]);
		for (int w = 0; w < WAYS; w++)
			print_result(results[s][w], rounds, is_small);
		printf("   %s\n", is_small ? "us, half of a round trip" : "GB/s, a stream");
	}
	return 0;
}
