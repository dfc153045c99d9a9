/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_tune.c - what collectives take on a GPU, by every algorithm that may be chosen
 * there, by lines and by flags, 2 to 8 ranks as threads; the prices of the model
 * (model/device.h) that fit best; and what is lost where it chooses another than the
 * fastest. bench/gpu-tune builds and runs it.
 *
 *	bench_gpu_tune [BYTES]    vectors up to so many bytes (64 MiB)
 */
#include "exec/device/unit.h"
#include "exec/device/load.h"
#include "fabric/discover.h"
#include "group/device/device.h"

#include <dlfcn.h>
#include <hocket/group.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_MAX 8u
#define REPLAYS 9u
#define SAMPLES_MAX 4096u

/*	member        symbol                          arguments */
#define MORE_MAP(X) \
	X(init, "cuInit", (unsigned flags)) \
	X(current, "cuCtxSetCurrent", (hk__cu_context context)) \
	X(name, "cuDeviceGetName", (char *name, int len, int device)) \
	X(begin, "cuStreamBeginCapture_v2", (hk__cu_stream stream, int mode)) \
	X(end, "cuStreamEndCapture", (hk__cu_stream stream, void **graph)) \
	X(make, "cuGraphInstantiateWithFlags", \
	  (void **exec, void *graph, unsigned long long flags)) \
	X(launch, "cuGraphLaunch", (void *exec, hk__cu_stream stream)) \
	X(exec_free, "cuGraphExecDestroy", (void *exec)) \
	X(graph_free, "cuGraphDestroy", (void *graph)) \
	X(event_wait, "cuEventSynchronize", (hk__cu_event event)) \
	X(elapsed, "cuEventElapsedTime", (float *ms, hk__cu_event from, hk__cu_event to))

static struct {
#define MORE_MEMBER(member, symbol, arguments) int(*member) arguments;
	MORE_MAP(MORE_MEMBER)
#undef MORE_MEMBER
} more;
static const struct hk__cuda *cu;

static uint32_t n;
static bool lines;
static struct hk_group *groups[RANKS_MAX];
static hk__cu_stream streams[RANKS_MAX];
static hk__cu_ptr memory[RANKS_MAX];
static hk__cu_event first, last;
static uint64_t bytes_max = 64 << 20;

struct sample {
	enum hk_coll coll;
	const char *algo;
	uint32_t n;
	uint64_t bytes;
	struct hk__device_load load;
	double ns;
};
static struct sample samples[SAMPLES_MAX];
static size_t nsamples;

static void stop(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	exit(1);
}

#define CHECK(call) \
	do { \
		if ((call) != HK__CU_SUCCESS) \
			stop(#call, "the driver refuses"); \
	} while (0)

/* ---- the machine ---- */

static void driver_open(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	hk__cu_context context;
	char name[100];
	int device, sms;

	if (!library)
		stop("libcuda.so.1", dlerror());
#define MORE_FIND(member, symbol, arguments) \
	if (!hk__library_find(library, symbol, &more.member)) \
		stop(symbol, "the driver has none");
	MORE_MAP(MORE_FIND)
#undef MORE_FIND
	CHECK(more.init(0));
	hk__cuda_look();
	cu = hk__cuda_get();
	if (!cu || !hk__cuda_image())
		stop("GPU code", "built without");
	CHECK(cu->device(&device, 0));
	CHECK(cu->context(&context, device));
	CHECK(more.current(context));
	CHECK(more.name(name, sizeof(name), device));
	CHECK(cu->attribute(&sms, HK__CU_DEVICE_SMS, device));
	CHECK(cu->event(&first, 0));
	CHECK(cu->event(&last, 0));
	printf("# %s, %d multiprocessors\n", name, sms);
}

static void group_open(uint32_t ranks, bool by_lines)
{
	struct hk_group_opts opts = HK_GROUP_OPTS_INIT;
	struct hk_why why;

	n = ranks;
	lines = by_lines;
	setenv("HOCKET_GPU_PROTOCOL", lines ? "lines" : "flags", 1);
	opts.timeout_ns = UINT64_C(20000000000);
	if (hk_group_threads(n, &opts, &why, groups) != HK_OK)
		stop("hk_group_threads", why.text);
	for (uint32_t r = 0; r < n; r++) {
		CHECK(cu->stream(&streams[r], HK__CU_STREAM_NON_BLOCKING));
		CHECK(cu->alloc(&memory[r], 2 * bytes_max));
		CHECK(cu->set(memory[r], 0, 2 * bytes_max, streams[r]));
		CHECK(cu->stream_wait(streams[r]));
	}
}

static void *group_free(void *group)
{
	hk_group_free(group);
	return NULL;
}

static void group_close(void)
{
	pthread_t threads[RANKS_MAX];

	for (uint32_t r = 0; r < n; r++) {
		if (pthread_create(&threads[r], NULL, group_free, groups[r]) != 0)
			stop("pthread_create", "no thread");
	}
	for (uint32_t r = 0; r < n; r++) {
		pthread_join(threads[r], NULL);
		CHECK(cu->stream_free(streams[r]));
		CHECK(cu->free(memory[r]));
	}
}

/* ---- calls ---- */

static enum hk_status call(enum hk_coll coll, uint32_t r, uint64_t count,
			   const struct hk_opts *opts)
{
	char *in = gpu_pointer(memory[r]), *out = in + bytes_max;

	switch (coll) {
	case HK_COLL_ALLREDUCE:
		return hk_allreduce(groups[r], in, out, count, HK_TYPE_FP32, HK_REDOP_SUM, opts);
	case HK_COLL_BROADCAST:
		return hk_broadcast(groups[r], in, out, count, HK_TYPE_FP32, 0, opts);
	case HK_COLL_REDUCE:
		return hk_reduce(groups[r], in, out, count, HK_TYPE_FP32, HK_REDOP_SUM, 0, opts);
	case HK_COLL_ALLGATHER:
		return hk_allgather(groups[r], in, out, count, HK_TYPE_FP32, opts);
	case HK_COLL_REDUCESCATTER:
		return hk_reducescatter(groups[r], in, out, count, HK_TYPE_FP32, HK_REDOP_SUM,
					opts);
	default:
		return hk_alltoall(groups[r], in, out, count, HK_TYPE_FP32, opts);
	}
}

static void call_all(enum hk_coll coll, const char *algo, uint64_t bytes)
{
	for (uint32_t r = 0; r < n; r++) {
		struct hk_opts opts = HK_OPTS_INIT;

		opts.algo = algo;
		opts.stream = streams[r];
		if (call(coll, r, bytes / 4, &opts) != HK_OK)
			stop(hk_coll_name(coll), hk_group_why(groups[r]));
	}
}

static void follow(hk__cu_stream stream, hk__cu_stream before)
{
	hk__cu_event event;

	CHECK(cu->event(&event, HK__CU_EVENT_NO_TIMING));
	CHECK(cu->event_record(event, before));
	CHECK(cu->event_follow(stream, event, 0));
	CHECK(cu->event_free(event));
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Nanoseconds of one of many in a row, in a graph; the median. */
static double measure(enum hk_coll coll, const char *algo, uint64_t bytes)
{
	uint32_t times = bytes <= 1 << 20 ? 20 : 4;
	double all[REPLAYS];
	void *graph, *exec;

	call_all(coll, algo, bytes); /* programs are made */
	for (uint32_t r = 0; r < n; r++)
		CHECK(cu->stream_wait(streams[r]));
	CHECK(more.begin(streams[0], 0));
	for (uint32_t r = 1; r < n; r++)
		follow(streams[r], streams[0]);
	for (uint32_t i = 0; i < times; i++)
		call_all(coll, algo, bytes);
	for (uint32_t r = 1; r < n; r++)
		follow(streams[0], streams[r]);
	CHECK(more.end(streams[0], &graph));
	CHECK(more.make(&exec, graph, 0));
	for (uint32_t i = 0; i < REPLAYS + 2; i++) {
		float ms;

		CHECK(cu->event_record(first, streams[0]));
		CHECK(more.launch(exec, streams[0]));
		CHECK(cu->event_record(last, streams[0]));
		CHECK(more.event_wait(last));
		CHECK(more.elapsed(&ms, first, last));
		if (i >= 2)
			all[i - 2] = (double)ms * 1e6 / times;
	}
	CHECK(more.exec_free(exec));
	CHECK(more.graph_free(graph));
	qsort(all, REPLAYS, sizeof(all[0]), compare);
	return all[REPLAYS / 2];
}

/* ---- samples ---- */

/* Whether it can be so; what the model makes of it. */
static bool sample_load(const struct hk__flat *flat, const struct hk__flat_profile *profile,
			const struct hk_plan *plan, uint64_t bytes, struct hk__device_load *load)
{
	const struct hk__flat_limits *limits = &hk__group_gpu(groups[0])->limits;
	struct hk__flat_call shape = { .n = n,
				       .type = HK_TYPE_FP32,
				       .mode = lines ? HK__FLAT_LINES : 0 };
	struct hk_sizes sizes = { bytes / 4, NULL };

	if (hk__gpu_shape(limits, flat, plan, &sizes, &shape) != HK_OK)
		return false;
	hk__flat_load(profile, &shape, hk_plan_length(plan, &sizes, 0), load);
	return true;
}

static void algo_measure(enum hk_coll coll, const char *algo)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	bool vector =
		coll == HK_COLL_ALLREDUCE || coll == HK_COLL_BROADCAST || coll == HK_COLL_REDUCE;
	struct hk__flat_profile profile;
	struct hk_algo_info info = { .size = sizeof(info) };
	struct hk_plan *plan;
	struct hk__flat *flat;
	struct hk_why why;

	if (hk_algo_find(coll, algo, &info) != HK_OK)
		stop(algo, "no such algorithm");
	opts.algo = info.name;
	if (hk_plan_create(coll, n, &opts, &why, &plan) != HK_OK)
		return; /* not for so many ranks */
	struct hk__flat_spec spec = { .plan = plan, .lines = lines };
	if (hk__flat_create(&spec, &why, &flat) != HK_OK)
		stop(info.name, why.text);
	if (hk__flat_profile(flat, lines, &profile) != HK_OK)
		stop("memory", "none");
	for (uint64_t bytes = 8; bytes * (vector ? 1 : n) <= bytes_max; bytes *= 4) {
		struct sample *sample = &samples[nsamples];

		call_all(coll, algo, bytes); /* there are limits from now on */
		if (nsamples == SAMPLES_MAX ||
		    !sample_load(flat, &profile, plan, bytes, &sample->load))
			continue;
		sample->coll = coll;
		sample->algo = info.name;
		sample->n = n;
		sample->bytes = bytes;
		sample->ns = measure(coll, algo, bytes);
		printf("%-14s %-22s %u %-5s %10" PRIu64 " %10.2f  %u %.0f %.0f %.0f %.0f %.0f\n",
		       hk_coll_name(coll), sample->algo, n, lines ? "lines" : "flags", bytes,
		       sample->ns / 1e3, sample->load.blocks, sample->load.peers, sample->load.hops,
		       sample->load.moves, sample->load.block_bytes, sample->load.bytes);
		fflush(stdout);
		nsamples++;
	}
	for (uint32_t r = 0; r < n; r++)
		CHECK(cu->stream_wait(streams[r]));
	hk__flat_destroy(flat);
	hk_plan_free(plan);
}

/* ---- the fit ---- */

#define NPRICES 8

static double *price_at(struct hk__device_prices *prices, int i)
{
	double *all[NPRICES] = { &prices->launch_ns, &prices->peer_ns,	&prices->flag_ns,
				 &prices->line_ns,   &prices->move_ns,	&prices->move_lines_ns,
				 &prices->bw_block,  &prices->bw_device };

	return all[i];
}

/* The mean square of how far off it is, as a factor. */
static double prices_error(const struct hk__device_prices *prices)
{
	double sum = 0;

	for (size_t i = 0; i < nsamples; i++) {
		double off = log(hk__device_price(prices, &samples[i].load) / samples[i].ns);

		sum += off * off;
	}
	return sum / (double)(nsamples ? nsamples : 1);
}

/* One price after the other, up or down, by steps that become small. */
static void prices_fit(struct hk__device_prices *prices)
{
	double best = prices_error(prices);

	for (double step = 1.5; step > 1.001;) {
		bool better = false;

		for (int i = 0; i < 2 * NPRICES; i++) {
			double *price = price_at(prices, i / 2), before = *price;

			*price *= i % 2 ? step : 1 / step;
			double error = prices_error(prices);
			if (error < best) {
				best = error;
				better = true;
			} else {
				*price = before;
			}
		}
		if (!better)
			step = sqrt(step);
	}
}

/* ---- choices ---- */

static bool sample_alike(const struct sample *a, const struct sample *b)
{
	return a->coll == b->coll && a->n == b->n && a->bytes == b->bytes;
}

static void choices_print(const struct hk__device_prices *prices)
{
	printf("\n# collective, ranks, bytes: the fastest, the model's choice, and what that "
	       "loses\n");
	for (size_t i = 0; i < nsamples; i++) {
		const struct sample *fastest = &samples[i], *chosen = &samples[i];
		bool seen = false;

		for (size_t k = 0; k < nsamples; k++) {
			const struct sample *other = &samples[k];

			if (!sample_alike(&samples[i], other))
				continue;
			seen |= k < i;
			fastest = other->ns < fastest->ns ? other : fastest;
			if (hk__device_price(prices, &other->load) <
			    hk__device_price(prices, &chosen->load))
				chosen = other;
		}
		if (!seen)
			printf("%-14s %u %10" PRIu64 "  %-20s %-5s %9.2f us  %-20s %-5s %5.1f%%\n",
			       hk_coll_name(chosen->coll), chosen->n, chosen->bytes, fastest->algo,
			       fastest->load.lines ? "lines" : "flags", fastest->ns / 1e3,
			       chosen->algo, chosen->load.lines ? "lines" : "flags",
			       100 * (chosen->ns / fastest->ns - 1));
	}
}

int main(int argc, char **argv)
{
	static const enum hk_coll colls[] = { HK_COLL_ALLREDUCE,     HK_COLL_BROADCAST,
					      HK_COLL_REDUCE,	     HK_COLL_ALLGATHER,
					      HK_COLL_REDUCESCATTER, HK_COLL_ALLTOALL };
	struct hk__device_prices prices = hk__device_h200;

	if (argc > 1)
		bytes_max = strtoull(argv[1], NULL, 10);
	if (bytes_max < 64)
		stop("BYTES", "64 or more are needed");
	driver_open();
	printf("# collective, algorithm, ranks, protocol, bytes, us; blocks, peers, hops, moves, "
	       "bytes of "
	       "a block, of all\n");
	for (uint32_t turn = 0; turn < 6; turn++) {
		group_open(2u << turn / 2, turn % 2);
		for (size_t c = 0; c < sizeof(colls) / sizeof(colls[0]); c++) {
			const char *const *names = hk__gpu_candidates(colls[c]);

			for (uint32_t i = 0; i == 0 || names[i]; i++)
				algo_measure(colls[c], names[i]);
		}
		group_close();
	}
	printf("\n# as model/device.c has it: off by a factor of %.2f\n",
	       exp(sqrt(prices_error(&prices))));
	choices_print(&prices);
	prices_fit(&prices);
	printf("\n# fitted: off by a factor of %.2f\n", exp(sqrt(prices_error(&prices))));
	printf(".launch_ns = %.0f, .peer_ns = %.0f, .flag_ns = %.0f, .line_ns = %.0f, "
	       ".move_ns = %.0f, .move_lines_ns = %.0f, .bw_block = %.1f, .bw_device = %.0f\n",
	       prices.launch_ns, prices.peer_ns, prices.flag_ns, prices.line_ns, prices.move_ns,
	       prices.move_lines_ns, prices.bw_block, prices.bw_device);
	choices_print(&prices);
	return 0;
}
