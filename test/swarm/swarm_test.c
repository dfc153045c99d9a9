/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swarm_test.c - programs and faults at random, all from one number: sizes, hosts,
 * splits, requests in flight, transfers; ranks killed (also while they recover),
 * stopped, slowed, cut off, connections dropped, groups given up.
 */
#include "swarm/heal.h"

#include <time.h>

#define STEPS_MAX 5u
#define FAULTS_MAX 3u

enum step {
	STEP_COLLECTIVE,
	STEP_REQUESTS,
	STEP_SPLIT,
	STEP_TRANSFERS,
	STEP_COMPUTE,
	STEP_REVOKE,
	STEP_KINDS
};

struct swarm {
	struct heal heal; /* first: heal_shrink's */
	uint64_t seed;
	uint32_t n;
	uint32_t hosts[BED_RANKS_MAX];
	bool kills_only; /* then all who live get through */
	uint32_t drops;	 /* but for each one may be left out */
};

/* ---- one step of a rank's program; all ranks draw the same ---- */

static void op_draw(struct heal_op *op, uint64_t *random, uint32_t n)
{
	static const uint32_t counts[] = { 0, 1, 7, 40, 300, 4000 };
	struct hk_algo_info algo = { .size = sizeof(algo) };
	uint32_t total = 0;

	while (hk_algo_get(total, &algo))
		total++;
	do {
		(void)hk_algo_get((uint32_t)(test_random(random) % total), &algo);
	} while (algo.coll == HK_COLL_SENDRECV || algo.nodes || algo.onesided);
	*op = (struct heal_op){ .want = { .coll = algo.coll,
					  .type = test_random(random) % 2 ? HK_TYPE_INT32
									  : HK_TYPE_FP16,
					  .op = HK_REDOP_SUM,
					  .count = counts[test_random(random) % 6],
					  .seed = test_random(random) },
				.algo = algo.name };
	op->want.root = want_rooted(algo.coll) ? (uint32_t)(test_random(random) % n) : 0;
	op->want.v = want_has_v(algo.coll) && test_random(random) % 4 == 0;
}

#define REQUESTS 3u

/* Several at once, waited for in order. */
static enum hk_status step_requests(struct bed_seat *seat, uint64_t *random)
{
	struct hk_request *requests[REQUESTS] = { 0 };
	int32_t in[REQUESTS][64], out[REQUESTS][64];
	enum hk_status status = HK_OK;

	for (uint32_t i = 0; i < REQUESTS; i++) {
		struct hk_opts opts = HK_OPTS_INIT;

		opts.request = &requests[i];
		opts.algo = test_random(random) % 2 ? "ring" : "recursive-doubling";
		for (int32_t k = 0; k < 64; k++)
			in[i][k] = k + (int32_t)i;
		if (status == HK_OK)
			status = hk_allreduce(seat->group, in[i], out[i], 64, HK_TYPE_INT32,
					      HK_REDOP_SUM, &opts);
	}
	for (uint32_t i = 0; i < REQUESTS; i++) {
		if (!requests[i])
			continue;
		bed_call(seat);
		enum hk_status one = hk_request_wait(requests[i], 0);
		bed_called(seat, "request_wait", seat->bed->spec.timeout_ns);
		for (int32_t k = 0; one == HK_OK && k < 64; k++)
			BED_CHECK(seat,
				  out[i][k] ==
					  (k + (int32_t)i) * (int32_t)hk_group_size(seat->group),
				  "a request succeeded, and is wrong");
		status = status == HK_OK ? one : status;
		hk_request_free(requests[i]);
	}
	return status;
}

static enum hk_status step_split(struct bed_seat *seat, uint64_t *random)
{
	uint32_t colors = 1 + (uint32_t)(test_random(random) % 3);
	struct hk_group *child = NULL;
	struct heal_op op;

	op_draw(&op, random, 1);
	bed_call(seat);
	enum hk_status status =
		hk_group_split(seat->group, hk_group_rank(seat->group) % colors, 0, &child);
	bed_called(seat, "split", seat->bed->spec.timeout_ns);
	if (status != HK_OK)
		return status;
	/* A peer that failed while all split never comes: to be waited for, but not for long. */
	struct hk_opts opts = HK_OPTS_INIT;
	opts.timeout_ns = BED_S;
	status = heal_do(seat, child, &op, &opts);
	bed_call(seat);
	hk_group_free(child);
	bed_called(seat, "free", seat->bed->spec.timeout_ns);
	return status;
}

#define TRANSFER 700u

/* To the right and from the left, by some tag. */
static enum hk_status step_transfers(struct bed_seat *seat, uint32_t tag)
{
	struct hk_opts opts = HK_OPTS_INIT;
	uint32_t n = hk_group_size(seat->group), rank = hk_group_rank(seat->group);
	unsigned char out[TRANSFER], in[TRANSFER] = { 0 };

	opts.tag = tag;
	memset(out, (int)rank + 1, sizeof(out));
	enum hk_status status = hk_batch_begin(seat->group);
	if (status != HK_OK)
		return status;
	status = hk_send(seat->group, out, TRANSFER, HK_TYPE_UINT8, (rank + 1) % n, &opts);
	if (status == HK_OK)
		status = hk_recv(seat->group, in, TRANSFER, HK_TYPE_UINT8, (rank + n - 1) % n,
				 &opts);
	bed_call(seat);
	enum hk_status ended = hk_batch_end(seat->group);
	bed_called(seat, "batch", seat->bed->spec.timeout_ns);
	status = status == HK_OK ? ended : status;
	for (uint32_t i = 0; status == HK_OK && i < TRANSFER; i++)
		BED_CHECK(seat, in[i] == (rank + n - 1) % n + 1, "a transfer is wrong");
	return status;
}

static enum hk_status step_do(struct bed_seat *seat, uint64_t *random)
{
	uint32_t n = hk_group_size(seat->group);
	enum step step = (enum step)(test_random(random) % STEP_KINDS);
	uint64_t any = test_random(random);
	struct heal_op op;

	switch (step) {
	case STEP_REQUESTS:
		return step_requests(seat, random);
	case STEP_SPLIT:
		return step_split(seat, random);
	case STEP_TRANSFERS:
		return step_transfers(seat, (uint32_t)(any % 40));
	case STEP_COMPUTE:
		hk__simnet_sleep(seat->bed->simnet, any % (300 * BED_MS));
		return HK_OK;
	case STEP_REVOKE:
		if (any % 4 == 0 && any / 4 % n == seat->rank)
			return hk_group_revoke(seat->group);
		return HK_OK;
	default:
		op_draw(&op, random, n);
		return heal_do(seat, seat->group, &op, NULL);
	}
}

/* ---- a rank ---- */

static void swarm_main(struct bed_seat *seat, void *ctx)
{
	struct swarm *swarm = ctx;
	uint64_t random = swarm->seed ^ UINT64_C(0x5eed);
	uint32_t steps = (uint32_t)(test_random(&random) % (STEPS_MAX + 1));
	enum hk_status status = HK_OK;

	for (uint32_t i = 0; i < steps && status == HK_OK; i++)
		status = step_do(seat, &random);
	/* Who failed on a group of some says so to all. */
	if (status != HK_OK)
		CHECK_EQ(hk_group_revoke(seat->group), HK_OK);
	heal_shrink(seat, &swarm->heal);
}

/* ---- faults ---- */

static void fault_draw(struct bed *bed, struct swarm *swarm, uint64_t *random)
{
	struct hk__simnet_fault fault = { .rank = (uint32_t)(test_random(random) % swarm->n),
					  .peer = (uint32_t)(test_random(random) % swarm->n) };
	uint64_t any = test_random(random);

	/* Most of what happens does so in the first milliseconds; some of it much later. */
	fault.at = any % 4 ? any / 4 % BED_MS : any / 4 % (3 * BED_S);
	switch (test_random(random) % 8) {
	case 0:
		fault.what = HK__SIMNET_STOP;
		fault.until = fault.at + test_random(random) % (any % 2 ? 2 * BED_S : 60 * BED_S);
		break;
	case 1:
		fault.what = HK__SIMNET_SLOW;
		fault.look_ns = 1 + test_random(random) % (50 * BED_MS);
		fault.until = fault.at + test_random(random) % (30 * BED_S);
		break;
	case 2:
		fault.what = HK__SIMNET_CUT;
		fault.mask = test_random(random);
		fault.until = any % 3 ? fault.at + test_random(random) % (20 * BED_S) : UINT64_MAX;
		break;
	case 3:
		fault.what = HK__SIMNET_DROP;
		break;
	default:
		fault.at = test_random(random) % (any % 2 ? 40 : 400);
		hk__simnet_kill_at_act(bed->simnet, fault.rank, fault.at);
		bed_say(bed, fault.rank, "killed at act %llu", (unsigned long long)fault.at);
		bed_figures.faults++;
		return;
	}
	if (fault.what == HK__SIMNET_DROP && fault.rank == fault.peer)
		return;
	swarm->kills_only = swarm->kills_only && fault.what == HK__SIMNET_DROP;
	swarm->drops += fault.what == HK__SIMNET_DROP;
	bed_fault(bed, &fault);
}

/*
 * For each connection that was cut one rank may be out of reach for those who are more:
 * they go on without it, or leave before it comes. All others get through.
 */
static void survivors_check(const struct bed *bed, const struct swarm *swarm)
{
	uint32_t out = 0;

	for (uint32_t r = 0; swarm->kills_only && r < swarm->n; r++) {
		if (bed_killed(bed, r) || swarm->heal.seen[r].well)
			continue;
		if (++out > swarm->drops)
			bed_fail(bed, r, "did not get through: %s", swarm->heal.seen[r].why);
	}
}

/* The hash of all that happened. */
static uint64_t swarm_run(uint64_t seed)
{
	static struct bed bed;
	static struct swarm swarm;
	uint64_t random = seed;

	swarm = (struct swarm){ .seed = seed, .kills_only = true };
	swarm.n = 2 + (uint32_t)(test_random(&random) % 7);
	uint32_t hosts = 1 + (uint32_t)(test_random(&random) % swarm.n);
	for (uint32_t r = 0; r < swarm.n; r++)
		swarm.hosts[r] = r * hosts / swarm.n;
	struct bed_spec spec = { .n = swarm.n,
				 .seed = test_random(&random),
				 .hosts = swarm.hosts,
				 .slots = 2 + (uint32_t)(test_random(&random) % 3),
				 .slot_bytes = test_random(&random) % 2 ? 512 : 16384,
				 .delay_ns = test_random(&random) % 4 ? 2000 : 500000 };
	bed_open(&bed, &spec, "swarm %llu (repeat with make soak SEED=%llu RUNS=1)",
		 (unsigned long long)seed, (unsigned long long)seed);
	for (uint64_t i = test_random(&random) % (FAULTS_MAX + 1); i > 0; i--)
		fault_draw(&bed, &swarm, &random);
	bed_run(&bed, swarm_main, &swarm, 4000 * BED_S);
	heal_check_safe(&bed, &swarm.heal);
	survivors_check(&bed, &swarm);
	uint64_t hash = hk__simnet_hash(bed.simnet);
	bed_close(&bed);
	return hash;
}

/* ---- tests ---- */

#ifdef HK_SANITIZED
#define RUNS 300u
#else
#define RUNS 3000u
#endif

static uint64_t given(const char *name, uint64_t otherwise)
{
	const char *value = getenv(name);

	return value ? strtoull(value, NULL, 0) : otherwise;
}

TEST(swarms)
{
	uint64_t seed = test_seed(1), count = given("HK_SWARM_RUNS", RUNS), i = 0;
	time_t end = time(NULL) + (time_t)given("HK_SWARM_SECONDS", 0);

	while (count ? i < count : time(NULL) < end)
		(void)swarm_run(seed + i++);
	bed_figures_print("swarms");
}

TEST(a_seed_repeats_everything)
{
	uint64_t seed = test_seed(1);

	for (uint64_t i = 0; i < 40; i++) {
		uint64_t hash = swarm_run(seed + i);

		CHECK(hash == swarm_run(seed + i));
		CHECK(hash != swarm_run(seed + i + 1000));
	}
}
