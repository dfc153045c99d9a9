/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.c - what the machine allows, measured by two processes, one on each of
 * the first two CPUs, with nothing between them and the machine.
 *
 *	limits [--batches N] [--batch-ms N] [--netns A,B --address ADDRESS]
 *	       LIMIT:BYTES[,BYTES...]...
 *
 *	lines	each writes a line of cache and waits until it sees the other's
 *	memcpy1	one process copies that many bytes
 *	memcpy2	both do, each its own
 *	stream	one writes to a TCP socket, the other reads
 *	socket	both write, and read what the other wrote: one exchange
 *	kept	the same, and then each copies as many bytes of its own
 *	added	the same, but what is sent was added from two vectors just before,
 *		what is received goes where it lay, and is copied once: what a host
 *		of two ranks cannot do without in an allreduce
 *
 * Sockets go over 127.0.0.1; with --netns the processes are in two network
 * namespaces, and the first listens on ADDRESS. Nobody sleeps: who waits, spins
 * or yields. It prints lines as peer.c does, and a batch takes as long as the slower takes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	LINE = 128, /* two lines: some processors fetch them in pairs */
};

/* Of a read or write to a socket: the best of them is taken, for each size. */
static const size_t blocks[] = { 256 << 10, 512 << 10, 1 << 20 };
static size_t block = 256 << 10;

struct line {
	_Alignas(LINE) _Atomic uint64_t count;
};

/* What both see. Everyone writes to the places with its own number. */
struct shared {
	struct line exchange[2];
	struct line barrier[2];
	double seconds[2];
	_Atomic uint16_t port;
};

static struct shared *shared;
static int self; /* 0 or 1 */
static int sock = -1;
static unsigned char *source, *target;
static int batches = 3;
static double batch_s = 0.030;
static const char *netns;
static const char *address = "127.0.0.1";

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "limits: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* Counts one up, and waits until the other has counted as far. */
static void meet(struct line *lines)
{
	uint64_t count = atomic_load_explicit(&lines[self].count, memory_order_relaxed) + 1;

	atomic_store_explicit(&lines[self].count, count, memory_order_release);
	while (atomic_load_explicit(&lines[!self].count, memory_order_acquire) < count)
		;
}

/* ---- the limits ---- */

static void run_lines(size_t bytes)
{
	(void)bytes;
	meet(shared->exchange);
}

static void run_memcpy1(size_t bytes)
{
	if (self == 0)
		memcpy(target, source, bytes);
	__asm__ volatile("" : : "r"(target) : "memory"); /* it is wanted */
}

static void run_memcpy2(size_t bytes)
{
	memcpy(target, source, bytes);
	__asm__ volatile("" : : "r"(target) : "memory");
}

/* What one call moved; 0 where it would have to wait. */
static size_t moved(ssize_t result, const char *what)
{
	if (result > 0)
		return (size_t)result;
	if (result == 0 || (errno != EAGAIN && errno != EINTR))
		die(what);
	return 0;
}

/* What goes out and comes in of one exchange, and how far it is. */
struct exchanged {
	const unsigned char *from;
	unsigned char *to;
	size_t out, in;
	size_t sent, got;
};

/* One turn: as much of a block as the socket takes and has. */
static void exchange_some(struct exchanged *at, size_t ready)
{
	size_t rest = ready - at->sent, want = at->in - at->got, before = at->sent + at->got;

	if (rest)
		at->sent += moved(send(sock, at->from + at->sent, rest < block ? rest : block,
				       MSG_DONTWAIT | MSG_NOSIGNAL),
				  "send");
	if (want)
		at->got += moved(recv(sock, at->to + at->got, want < block ? want : block,
				      MSG_DONTWAIT),
				 "recv");
	if (at->sent + at->got == before && at->out + at->in > blocks[0])
		sched_yield(); /* else the two fight over the socket's lock */
}

static void exchange(size_t out, size_t in)
{
	struct exchanged at = { .from = source, .to = target, .out = out, .in = in };

	while (at.sent < out || at.got < in)
		exchange_some(&at, out);
}

static void run_stream(size_t bytes)
{
	exchange(self ? 0 : bytes, self ? bytes : 0);
}

static void run_socket(size_t bytes)
{
	exchange(bytes, bytes);
}

/* Source and target are twice as long: what is kept is not what was sent. */
static void run_kept(size_t bytes)
{
	exchange(bytes, bytes);
	memcpy(target + bytes, source + bytes, bytes);
	__asm__ volatile("" : : "r"(target) : "memory");
}

/* Sums of the next block, where they are sent from; how far there are some now. */
static size_t add_block(size_t from, size_t bytes)
{
	size_t to = bytes - from < block ? bytes : from + block;
	const float *one = (const float *)(void *)source, *two = one + bytes / sizeof(float);
	float *sums = (float *)(void *)target;

	for (size_t i = from / sizeof(float); i < to / sizeof(float); i++)
		sums[i] = one[i] + two[i];
	return to;
}

static void run_added(size_t bytes)
{
	struct exchanged at = { .from = target, .to = target, .out = bytes, .in = bytes };
	size_t ready = 0, before;

	while (at.sent < bytes || at.got < bytes) {
		if (at.sent == ready && ready < bytes)
			ready = add_block(ready, bytes);
		before = at.got;
		exchange_some(&at, ready);
		memcpy(target + bytes + before, target + before, at.got - before);
	}
	__asm__ volatile("" : : "r"(target) : "memory");
}

static const struct limit {
	const char *name;
	void (*run)(size_t bytes);
	bool sockets;
} limits[] = {
	{ "lines", run_lines, false },	   { "memcpy1", run_memcpy1, false },
	{ "memcpy2", run_memcpy2, false }, { "stream", run_stream, true },
	{ "socket", run_socket, true },	   { "kept", run_kept, true },
	{ "added", run_added, true },
};

/* ---- time ---- */

static double timed(const struct limit *limit, size_t bytes, long iters)
{
	double start, other;

	meet(shared->barrier);
	start = now();
	for (long i = 0; i < iters; i++)
		limit->run(bytes);
	shared->seconds[self] = now() - start;
	meet(shared->barrier);
	start = shared->seconds[0];
	other = shared->seconds[1];
	meet(shared->barrier); /* both have read them */
	return start > other ? start : other;
}

/* How often it can be done in `span_s`. */
static double warm_up(const struct limit *limit, size_t bytes, double span_s)
{
	const double most = 1e6;
	double seconds, iters = 3;

	for (;;) {
		seconds = timed(limit, bytes, (long)iters);
		if (seconds >= span_s / 5 || iters >= most)
			break;
		iters *= 4;
	}
	iters = span_s / (seconds / iters);
	return iters < 3 ? 3 : iters > most ? most : iters;
}

/* Both see the same times, and choose the same. */
static void choose_block(const struct limit *limit, size_t bytes, double iters)
{
	size_t best = blocks[0];
	double least = 0;

	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		double seconds;

		block = blocks[i];
		seconds = timed(limit, bytes, (long)iters);
		if (i == 0 || seconds < least) {
			least = seconds;
			best = block;
		}
	}
	block = best;
}

static void measure(const struct limit *limit, size_t bytes)
{
	double seconds, iters = warm_up(limit, bytes, batch_s);

	if (limit->sockets && bytes > blocks[0])
		choose_block(limit, bytes, iters);
	for (int batch = 0; batch < batches; batch++) {
		seconds = timed(limit, bytes, (long)iters);
		if (self == 0)
			printf("coll=%s size=%zu bytes=%zu ranks=2 iters=%ld us=%.4f wrong=0\n",
			       limit->name, bytes, bytes, (long)iters,
			       1e6 * seconds / (double)(long)iters);
	}
	fflush(stdout);
}

/* ---- two processes ---- */

static void bind_self(void)
{
	cpu_set_t mine;

	CPU_ZERO(&mine);
	CPU_SET((size_t)self, &mine);
	if (sched_setaffinity(0, sizeof(mine), &mine))
		die("cannot bind to one of the first two CPUs");
}

static void enter_netns(void)
{
	const char *comma = strchr(netns, ',');
	char path[256];
	int fd;

	if (!comma) {
		errno = EINVAL;
		die("--netns A,B is wanted");
	}
	if (self == 0)
		snprintf(path, sizeof(path), "/run/netns/%.*s", (int)(comma - netns), netns);
	else
		snprintf(path, sizeof(path), "/run/netns/%s", comma + 1);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die(path);
	close(fd);
}

static int accept_one(struct sockaddr_in *at)
{
	socklen_t length = sizeof(*at);
	int fd, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (listener < 0 || bind(listener, (struct sockaddr *)at, sizeof(*at)) ||
	    listen(listener, 1) || getsockname(listener, (struct sockaddr *)at, &length))
		die(address);
	atomic_store(&shared->port, at->sin_port);
	fd = accept(listener, NULL, NULL);
	close(listener);
	return fd;
}

static void connect_both(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	int one = 1;

	if (inet_pton(AF_INET, address, &at.sin_addr) != 1) {
		errno = EINVAL;
		die(address);
	}
	if (self == 0) {
		sock = accept_one(&at);
	} else {
		while (!(at.sin_port = atomic_load(&shared->port)))
			usleep(1000);
		sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(sock, (struct sockaddr *)&at, sizeof(at)))
			die(address);
	}
	if (sock < 0 || setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		die("socket");
}

static void *memory(size_t bytes, int flags)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		die("no memory");
	return mem;
}

/* ---- the command line ---- */

static const struct limit *limit_find(const char *text, size_t length)
{
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (strlen(limits[i].name) == length && !memcmp(limits[i].name, text, length))
			return &limits[i];
	errno = EINVAL;
	die(text);
}

/* Measures LIMIT:BYTES,... or, if most_out is given, finds the largest size. */
static void cells(const char *text, size_t *most_out)
{
	size_t length = strcspn(text, ":");
	const struct limit *limit = limit_find(text, length);
	const char *at = text + length;

	while (*at) {
		char *end;
		size_t bytes = strtoull(at + 1, &end, 10);

		if (end == at + 1 || (*end && *end != ',')) {
			errno = EINVAL;
			die(text);
		}
		at = end;
		if (!most_out)
			measure(limit, bytes);
		else if (bytes > *most_out)
			*most_out = bytes;
	}
}

static double positive(const char *text)
{
	char *end;
	double number = strtod(text, &end);

	if (end == text || *end || !(number > 0)) {
		errno = EINVAL;
		die(text);
	}
	return number;
}

static void options_parse(int argc, char **argv)
{
	static const struct option names[] = {
		{ "batches", required_argument, NULL, 'n' },
		{ "batch-ms", required_argument, NULL, 'm' },
		{ "netns", required_argument, NULL, 's' },
		{ "address", required_argument, NULL, 'a' },
		{ NULL, 0, NULL, 0 },
	};
	int name;

	while ((name = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (name) {
		case 'n':
			batches = (int)positive(optarg);
			break;
		case 'm':
			batch_s = positive(optarg) / 1e3;
			break;
		case 's':
			netns = optarg;
			break;
		case 'a':
			address = optarg;
			break;
		default:
			exit(2);
		}
	}
}

static void work(char **texts, size_t most)
{
	bind_self();
	if (netns)
		enter_netns();
	connect_both();
	source = memory(2 * most, MAP_PRIVATE);
	target = memory(2 * most, MAP_PRIVATE);
	memset(source, 1, 2 * most);
	memset(target, 2, 2 * most);
	for (; *texts; texts++)
		cells(*texts, NULL);
}

int main(int argc, char **argv)
{
	size_t most = LINE;
	int status = 0;
	pid_t child;

	options_parse(argc, argv);
	for (int i = optind; i < argc; i++)
		cells(argv[i], &most);
	shared = memory(sizeof(*shared), MAP_SHARED);
	signal(SIGCHLD, SIG_DFL);
	child = fork();
	if (child < 0)
		die("fork");
	self = child == 0;
	if (self && prctl(PR_SET_PDEATHSIG, SIGKILL))
		die("prctl");
	work(argv + optind, most);
	if (self)
		return 0;
	if (waitpid(child, &status, 0) != child || status)
		die("the second process failed");
	return 0;
}
