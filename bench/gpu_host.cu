/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_host.cu - from the GPU of one process to the GPU of another through host
 * memory that both see, beside what the copy engines do alone. bench/gpu-host
 * builds and runs it: two processes, one GPU.
 *
 * Ways: `waits`, streams wait for and write counters in host memory, and no host
 * takes part; `writes`, the host waits and streams write; `events`, the host does
 * both. `hocket`, hk_send and hk_recv.
 */
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <hocket/group.h>
#include <netinet/in.h>
#include <signal.h>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ctime>
#include <unistd.h>
#include <vector>

#define CU(call) \
	do { \
		CUresult error = (call); \
		if (error != CUDA_SUCCESS) { \
			const char *name = "?"; \
			cuGetErrorName(error, &name); \
			fprintf(stderr, "rank %d, line %d: %s: %s\n", me, __LINE__, #call, name); \
			exit(1); \
		} \
	} while (0)

static const int LANES = 4;
static const size_t FLAGS = 1 << 16;

struct counter {
	volatile uint32_t value;
	uint32_t pad[31];
};

/* What both processes map: this, and the slots behind it. */
struct shared {
	std::atomic<uint32_t> arrived, round;
	std::atomic<uint32_t> failed;
	double seconds[2];
	counter ready[LANES], free[LANES];
};

struct options {
	size_t slot = 2 << 20, ring = 32 << 20, min = 8, max = (size_t)1 << 30;
	int lanes = 2;
	std::vector<std::string> ways = { "hocket", "waits", "writes", "events" };
};

struct lane {
	CUstream stream;
	CUdeviceptr ready_at, free_at;
	uint32_t seq;
	std::vector<CUevent> events; /* by slot */
	uint32_t told;		     /* events: chunks whose copy has ended */
};

static int me;
static pid_t other;
static options opts;
static shared *both;
static char *slots;
static lane lanes[LANES];
static CUstream user;
static CUevent fork_event, join_event;
static uint64_t chunks;
static size_t per; /* slots of a lane */

static double now()
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void look()
{
	int how;

	if (me == 0 && waitpid(other, &how, WNOHANG) == other) {
		fprintf(stderr, "the other process has ended\n");
		exit(1);
	}
}

static void meet()
{
	uint32_t round = both->round.load();

	if (both->arrived.fetch_add(1) == 1) {
		both->arrived = 0;
		both->round = round + 1;
		return;
	}
	for (unsigned i = 0; both->round.load() == round; i++) {
		if (i > 100000) {
			look();
			usleep(50);
		}
	}
}

/* ---- the ways ---- */

static char *slot_of(int l, uint32_t seq)
{
	return slots + ((size_t)l * per + (seq - 1) % per) * opts.slot;
}

static void await(const volatile uint32_t *at, uint32_t value)
{
	for (unsigned i = 0; (int32_t)(*at - value) < 0; i++) {
		if (i % 1000000 == 999999)
			look();
	}
	std::atomic_thread_fence(std::memory_order_acquire);
}

/* A chunk by streams; host: the host waits for its turn. */
static void chunk_stream(bool sends, bool host, int l, CUstream stream, CUdeviceptr at, size_t len)
{
	lane &lane = lanes[l];
	uint32_t seq = ++lane.seq;
	uint32_t want = sends ? seq - (uint32_t)per : seq;
	const volatile uint32_t *flag = sends ? &both->free[l].value : &both->ready[l].value;

	if (!sends || seq > per) {
		if (host)
			await(flag, want);
		else
			CU(cuStreamWaitValue32(stream, sends ? lane.free_at : lane.ready_at, want,
					       CU_STREAM_WAIT_VALUE_GEQ));
	}
	if (sends)
		CU(cuMemcpyDtoHAsync(slot_of(l, seq), at, len, stream));
	else
		CU(cuMemcpyHtoDAsync(at, slot_of(l, seq), len, stream));
	CU(cuStreamWriteValue32(stream, sends ? lane.ready_at : lane.free_at, seq, 0));
}

/* Tells of copies that have ended. */
static void events_look(bool sends, bool all)
{
	for (int l = 0; l < opts.lanes; l++) {
		lane &lane = lanes[l];

		while (lane.told != lane.seq) {
			CUresult is = cuEventQuery(lane.events[lane.told % per]);

			if (is == CUDA_ERROR_NOT_READY && !all)
				break;
			if (is == CUDA_ERROR_NOT_READY)
				continue;
			CU(is);
			lane.told++;
			std::atomic_thread_fence(std::memory_order_release);
			(sends ? both->ready : both->free)[l].value = lane.told;
		}
	}
}

static void chunk_event(bool sends, int l, CUstream stream, CUdeviceptr at, size_t len)
{
	lane &lane = lanes[l];
	uint32_t seq = lane.seq + 1;
	uint32_t want = sends ? seq - (uint32_t)per : seq;
	const volatile uint32_t *flag = sends ? &both->free[l].value : &both->ready[l].value;

	if (!sends || seq > per) {
		for (unsigned i = 0; (int32_t)(*flag - want) < 0 || lane.seq - lane.told >= per; i++) {
			events_look(sends, false);
			if (i % 100000 == 99999)
				look();
		}
		std::atomic_thread_fence(std::memory_order_acquire);
	}
	while (lane.seq - lane.told >= per)
		events_look(sends, false);
	if (sends)
		CU(cuMemcpyDtoHAsync(slot_of(l, seq), at, len, stream));
	else
		CU(cuMemcpyHtoDAsync(at, slot_of(l, seq), len, stream));
	CU(cuEventRecord(lane.events[(seq - 1) % per], stream));
	lane.seq = seq;
	events_look(sends, false);
}

static void message(const std::string &way, bool sends, CUdeviceptr at, size_t bytes)
{
	bool forks = bytes > opts.slot;

	if (forks) {
		CU(cuEventRecord(fork_event, user));
		for (int l = 0; l < opts.lanes; l++)
			CU(cuStreamWaitEvent(lanes[l].stream, fork_event, 0));
	}
	for (size_t from = 0; from < bytes; from += opts.slot, chunks++) {
		int l = (int)(chunks % (uint64_t)opts.lanes);
		CUstream stream = forks ? lanes[l].stream : user;
		size_t len = std::min(opts.slot, bytes - from);

		if (way == "events")
			chunk_event(sends, l, stream, at + from, len);
		else
			chunk_stream(sends, way == "writes", l, stream, at + from, len);
	}
	for (int l = 0; forks && l < opts.lanes; l++) {
		CU(cuEventRecord(join_event, lanes[l].stream));
		CU(cuStreamWaitEvent(user, join_event, 0));
	}
	if (way == "events")
		events_look(sends, true);
}

static struct hk_group *group;

static void must(enum hk_status status)
{
	if (status == HK_OK)
		return;
	fprintf(stderr, "rank %d: %s: %s\n", me, hk_status_name(status),
		group ? hk_group_why(group) : "");
	exit(1);
}

static void message_hocket(bool sends, CUdeviceptr at, size_t bytes)
{
	struct hk_opts call = HK_OPTS_INIT;

	call.stream = user;
	if (sends)
		must(hk_send(group, (void *)at, bytes, HK_TYPE_UINT8, 1, &call));
	else
		must(hk_recv(group, (void *)at, bytes, HK_TYPE_UINT8, 0, &call));
}

/* A port that is free now; both processes know it, as they were one when it was found. */
static char address[32];
static void find_port()
{
	struct sockaddr_in at = {};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	at.sin_family = AF_INET;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) != 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) != 0)
		exit(1);
	close(fd);
	snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(at.sin_port));
}

static void join()
{
	struct hk_group_opts given = HK_GROUP_OPTS_INIT;
	struct hk_why why;

	setenv("HOCKET_GPU", "staged", 0);
	given.address = address;
	given.rank = (uint32_t)me;
	given.nranks = 2;
	given.key = "gpu-host";
	given.timeout_ns = 60000000000ull;
	if (hk_group_create(&given, &why, &group) != HK_OK) {
		fprintf(stderr, "rank %d: %s\n", me, why.text);
		exit(1);
	}
}

static void transfer(const std::string &way, bool sends, CUdeviceptr at, size_t bytes)
{
	if (way == "hocket")
		return message_hocket(sends, at, bytes);
	message(way, sends, at, bytes);
}

/* ---- measuring ---- */

static double median(std::vector<double> times)
{
	std::sort(times.begin(), times.end());
	return times[times.size() / 2];
}

/* Seconds of one of `times`, from a common start to the later end; median of five. */
template <typename F> static double measure(int times, F fn)
{
	std::vector<double> all;

	for (int i = 0; i < 6; i++) {
		CU(cuCtxSynchronize());
		meet();
		double start = now();
		for (int k = 0; k < times; k++)
			fn();
		CU(cuCtxSynchronize());
		both->seconds[me] = now() - start;
		meet();
		double s = std::max(both->seconds[0], both->seconds[1]) / times;
		meet();
		if (i)
			all.push_back(s);
	}
	return median(all);
}

static double gbs(double bytes, double s)
{
	return bytes / s / 1e9;
}

struct limit {
	double down, up, duplex_down, apart;
};

/* What copy engines do: one process, one way or both; and two processes, one way each. */
static limit limits(size_t bytes, CUdeviceptr at, char *pinned)
{
	int times = (int)std::max<size_t>(1, std::min<size_t>(64, ((size_t)256 << 20) / bytes));
	size_t half = std::max<size_t>(bytes / 2, 1);
	limit is;

	is.down = measure(times, [&] {
		if (me == 0)
			CU(cuMemcpyDtoHAsync(pinned, at, bytes, user));
	});
	is.up = measure(times, [&] {
		if (me == 0)
			CU(cuMemcpyHtoDAsync(at, pinned, bytes, user));
	});
	/* Both ways at once, half of it each: per way the speed of bytes / 2. */
	is.duplex_down = measure(times, [&] {
		if (me != 0)
			return;
		CU(cuMemcpyDtoHAsync(pinned, at, half, lanes[0].stream));
		CU(cuMemcpyHtoDAsync(at + bytes - half, pinned + bytes - half, half,
				     lanes[1].stream));
	});
	is.apart = measure(times, [&] {
		if (me == 0)
			CU(cuMemcpyDtoHAsync(pinned, at, bytes, user));
		else
			CU(cuMemcpyHtoDAsync(at, pinned, bytes, user));
	});
	return is;
}

static std::vector<uint32_t> pattern(size_t bytes)
{
	std::vector<uint32_t> words(((size_t)5 << 20) + 7);
	uint32_t x = 2463534242u + (uint32_t)bytes;

	for (auto &word : words) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		word = x;
	}
	return words;
}

/* Sent once, and compared: every byte. */
static void verify(const std::string &way, CUdeviceptr at, size_t bytes)
{
	std::vector<uint32_t> words = pattern(bytes), got(words.size());
	size_t tile = words.size() * 4;

	if (me == 0) {
		for (size_t from = 0; from < bytes; from += tile)
			CU(cuMemcpyHtoD(at + from, words.data(), std::min(tile, bytes - from)));
	} else {
		CU(cuMemsetD8(at, 0, bytes));
	}
	CU(cuCtxSynchronize());
	meet();
	transfer(way, me == 0, at, bytes);
	CU(cuCtxSynchronize());
	for (size_t from = 0; me == 1 && from < bytes; from += tile) {
		size_t len = std::min(tile, bytes - from);

		CU(cuMemcpyDtoH(got.data(), at + from, len));
		if (memcmp(got.data(), words.data(), len) != 0) {
			fprintf(stderr, "%s, %zu bytes: what arrived is not what was sent\n",
				way.c_str(), bytes);
			exit(1);
		}
	}
	meet();
}

/* One rank's turn, then the other's: seconds of one way. Counters are per direction,
   so the way back is a second pair of them: here the host answers instead. */
static double latency(const std::string &way, CUdeviceptr at, size_t bytes)
{
	std::vector<double> all;

	for (int i = 0; i < 40; i++) {
		CU(cuCtxSynchronize());
		meet();
		double start = now();
		transfer(way, me == 0, at, bytes);
		CU(cuCtxSynchronize());
		both->seconds[me] = now() - start;
		meet();
		double s = both->seconds[1];
		meet();
		if (i >= 8)
			all.push_back(s);
	}
	return median(all);
}

static void table(const std::string &way, CUdeviceptr at, char *pinned)
{
	if (me == 0) {
		if (way == "hocket")
			printf("\nhocket: hk_send to hk_recv\n");
		else
			printf("\n%s: %zu slots of %zu KiB, %d lanes\n", way.c_str(),
			       per * (size_t)opts.lanes, opts.slot >> 10, opts.lanes);
		printf("%12s %10s %10s | %9s %9s %9s %9s | %8s\n", "bytes", "us once", "GB/s",
		       "to host", "to GPU", "both", "apart", "of limit");
	}
	for (size_t bytes = opts.min; bytes <= opts.max;
	     bytes *= bytes < 4096 ? 8 : bytes < (1 << 20) ? 4 : 4) {
		int times = (int)std::max<size_t>(
			2, std::min<size_t>(200, ((size_t)512 << 20) / bytes));
		limit is = limits(bytes, at, pinned);
		verify(way, at, bytes);
		double once = latency(way, at, bytes);
		double s = measure(times, [&] { transfer(way, me == 0, at, bytes); });
		double b = (double)bytes;

		if (me == 0)
			printf("%12zu %10.2f %10.3f | %9.3f %9.3f %9.3f %9.3f | %7.1f%%\n", bytes,
			       once * 1e6, gbs(b, s), gbs(b, is.down), gbs(b, is.up),
			       gbs(b, is.duplex_down), gbs(b, is.apart),
			       100 * std::max(is.down, is.up) / s);
		fflush(stdout);
	}
}

/* ---- set up ---- */

static size_t size_read(const char *text)
{
	char *end;
	unsigned long long value = strtoull(text, &end, 10);

	if (*end == 'K')
		value <<= 10;
	else if (*end == 'M')
		value <<= 20;
	else if (*end == 'G')
		value <<= 30;
	return (size_t)value;
}

static void usage()
{
	fprintf(stderr, "gpu-host [--slot BYTES] [--ring BYTES] [--lanes 1..4] [--min BYTES] "
			"[--max BYTES] [waits|writes|events|hocket ...]\n");
	exit(2);
}

static void read_options(int argc, char **argv)
{
	std::vector<std::string> ways;

	for (int i = 1; i < argc; i++) {
		std::string word = argv[i];

		if (word.rfind("--", 0) != 0) {
			if (word != "waits" && word != "writes" && word != "events" &&
			    word != "hocket")
				usage();
			ways.push_back(word);
			continue;
		}
		if (i + 1 == argc)
			usage();
		const char *value = argv[++i];
		if (word == "--slot")
			opts.slot = size_read(value);
		else if (word == "--ring")
			opts.ring = size_read(value);
		else if (word == "--lanes")
			opts.lanes = atoi(value);
		else if (word == "--min")
			opts.min = size_read(value);
		else if (word == "--max")
			opts.max = size_read(value);
		else
			usage();
	}
	if (!ways.empty())
		opts.ways = ways;
	if (opts.lanes < 1 || opts.lanes > LANES || opts.slot < 1 || opts.min < 1)
		usage();
	per = opts.ring / opts.slot / (size_t)opts.lanes;
	if (per < 1)
		usage();
}

static void make_lanes()
{
	CUdeviceptr at;

	CU(cuMemHostRegister(both, FLAGS + opts.ring,
			     CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE));
	CU(cuMemHostGetDevicePointer(&at, both, 0));
	CU(cuStreamCreate(&user, CU_STREAM_NON_BLOCKING));
	CU(cuEventCreate(&fork_event, CU_EVENT_DISABLE_TIMING));
	CU(cuEventCreate(&join_event, CU_EVENT_DISABLE_TIMING));
	for (int l = 0; l < LANES; l++) {
		CU(cuStreamCreate(&lanes[l].stream, CU_STREAM_NON_BLOCKING));
		lanes[l].ready_at = at + offsetof(shared, ready) + (size_t)l * sizeof(counter);
		lanes[l].free_at = at + offsetof(shared, free) + (size_t)l * sizeof(counter);
		lanes[l].events.resize(per);
		for (auto &event : lanes[l].events)
			CU(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	}
}

/* Another way begins where no counter stands for anything. */
static void reset()
{
	CU(cuCtxSynchronize());
	meet();
	for (int l = 0; l < LANES; l++) {
		both->ready[l].value = both->free[l].value = 0;
		lanes[l].seq = lanes[l].told = 0;
	}
	chunks = 0;
	meet();
}

int main(int argc, char **argv)
{
	read_options(argc, argv);
	int fd = memfd_create("gpu-host", 0);
	if (fd < 0 || ftruncate(fd, (off_t)(FLAGS + opts.ring)) != 0)
		return 1;
	both = (shared *)mmap(NULL, FLAGS + opts.ring, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (both == MAP_FAILED)
		return 1;
	slots = (char *)both + FLAGS;
	find_port();
	fflush(stdout);
	other = fork();
	me = other == 0;
	if (me)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	CUdevice device;
	CUcontext context;
	CUdeviceptr at;
	char *pinned, name[128];
	int version = 0;

	CU(cuInit(0));
	CU(cuDeviceGet(&device, 0));
	CU(cuDevicePrimaryCtxRetain(&context, device));
	CU(cuCtxSetCurrent(context));
	CU(cuDeviceGetName(name, sizeof(name), device));
	CU(cuDriverGetVersion(&version));
	CU(cuMemAlloc(&at, opts.max));
	CU(cuMemHostAlloc((void **)&pinned, opts.max, CU_MEMHOSTALLOC_PORTABLE));
	make_lanes();
	meet();
	if (me == 0)
		printf("%s, CUDA driver %d.%d: two processes, one GPU, through host memory\n"
		       "limits: copies of pinned memory in one process, to the host, to the GPU, "
		       "both at once;\napart: one process to the host while the other to the GPU. "
		       "of limit: of the slower one way.\n",
		       name, version / 1000, version % 1000 / 10);
	if (std::count(opts.ways.begin(), opts.ways.end(), "hocket"))
		join();
	for (const auto &way : opts.ways) {
		reset();
		table(way, at, pinned);
	}
	meet();
	hk_group_free(group);
	if (me == 0) {
		int how;

		waitpid(other, &how, 0);
		return how != 0;
	}
	return 0;
}
