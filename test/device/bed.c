/* SPDX-License-Identifier: Apache-2.0 */
/* bed.c - see bed.h. */
#include "device/bed.h"

#include "device/host.h"
#include "harness.h"
#include "naive/each.h"

#include <pthread.h>

#define TIMEOUT_NS UINT64_C(20000000000)

void bed_open(struct bed *bed, uint32_t n, uint32_t blocks)
{
	*bed = (struct bed){ .n = n,
			     .limits = { .blocks = blocks,
					 .slice_min = 64,
					 .lines_bytes = 1 << 20,
					 .bufs_bytes = 64 << 10 } };
	for (uint32_t r = 0; r < n; r++) {
		bed->segments[r] = calloc(1, hk__flat_segment_bytes(&bed->limits));
		CHECK(bed->segments[r]);
	}
}

void bed_close(struct bed *bed)
{
	for (uint32_t r = 0; r < bed->n; r++)
		free(bed->segments[r]);
}

static struct hk__flat_lot *bed_lot(const struct bed *bed, uint32_t rank, uint32_t block)
{
	return (void *)(bed->segments[rank] + block * hk__flat_lot_bytes(&bed->limits));
}

void bed_set_epoch(struct bed *bed, uint64_t epoch)
{
	for (uint32_t r = 0; r < bed->n; r++) {
		for (uint32_t b = 0; b < bed->limits.blocks; b++)
			hk__flat_lot_after(epoch, bed_lot(bed, r, b));
	}
}

void bed_set_epoch_alone(struct bed *bed, uint64_t epoch)
{
	for (uint32_t r = 0; r < bed->n; r++) {
		for (uint32_t b = 0; b < bed->limits.blocks; b++)
			bed_lot(bed, r, b)->epoch = epoch;
	}
}

void bed_fill_lines(struct bed *bed, uint32_t epoch)
{
	for (uint32_t r = 0; r < bed->n; r++) {
		for (uint32_t b = 0; b < bed->limits.blocks; b++) {
			uint64_t *words = (uint64_t *)(void *)(bed_lot(bed, r, b) + 1);

			for (uint64_t i = 0; i < 2 * bed->limits.lines_bytes / 8; i++)
				words[i] = (uint64_t)epoch << 32 | 0xdeadbeef;
		}
	}
}

/* What a block does: calls, one behind the other, with nobody waiting for all. */
struct worker {
	const struct hk__flat_call *calls;
	uint32_t ncalls, number;
	pthread_t thread;
};

static void *worker_run(void *arg)
{
	const struct worker *worker = arg;

	for (uint32_t i = 0; i < worker->ncalls; i++)
		host_block(&worker->calls[i * RANKS_MAX], worker->number);
	return NULL;
}

/* calls[i][rank]; ranks that are missing do not come. */
void calls_run(const struct bed *bed, struct hk__flat_call calls[][RANKS_MAX], uint32_t ncalls,
	       uint32_t missing)
{
	struct worker *workers = calloc((size_t)bed->n * HK__FLAT_BLOCKS, sizeof(*workers));
	uint32_t nworkers = 0, nblocks = calls[0][0].nblocks;

	CHECK(workers);
	for (uint32_t r = 0; r < bed->n; r++) {
		for (uint32_t b = 0; b < nblocks && r != missing; b++) {
			struct worker *worker = &workers[nworkers++];

			*worker = (struct worker){ &calls[0][r], ncalls, b, 0 };
			CHECK_EQ(pthread_create(&worker->thread, NULL, worker_run, worker), 0);
		}
	}
	for (uint32_t i = 0; i < nworkers; i++)
		pthread_join(workers[i].thread, NULL);
	free(workers);
}

void call_fill(struct bed *bed, const struct hk__flat *flat, const struct want *want, uint32_t mode,
	       uint32_t rank, struct hk__flat_call *call)
{
	*call = (struct hk__flat_call){ .program = (const char *)flat->programs[rank],
					.report = &bed->reports[rank],
					.timeout_ns = TIMEOUT_NS,
					.rank = rank,
					.n = bed->n,
					.type = want->type,
					.op = want->op,
					.mode = mode };
	if (want->op == HK_REDOP_AVG || want->op == HK_REDOP_PREMULSUM)
		call->op = HK_REDOP_SUM;
	if (want_reduces(want->coll) && want->op == HK_REDOP_AVG)
		call->mode |= HK__FLAT_AVG;
	if (want_reduces(want->coll) && want->op == HK_REDOP_PREMULSUM) {
		call->mode |= HK__FLAT_PREMUL;
		call->factor = want_factor(want, rank);
	}
	memcpy(call->segments, bed->segments, sizeof(bed->segments));
}

/* ---- plans ---- */

static bool is_small(enum hk_type type)
{
	return type == HK_TYPE_FP16 || type == HK_TYPE_BF16 || type == HK_TYPE_FP8E4M3 ||
	       type == HK_TYPE_FP8E5M2;
}

static bool op_rounds(enum hk_redop op)
{
	return op == HK_REDOP_SUM || op == HK_REDOP_PROD || op == HK_REDOP_AVG ||
	       op == HK_REDOP_PREMULSUM;
}

uint32_t mode_of(const struct want *want, bool lines)
{
	bool wide = want_reduces(want->coll) && want->n > 2 && is_small(want->type) &&
		    op_rounds(want->op);

	return (wide ? HK__FLAT_WIDE : 0) | (lines ? HK__FLAT_LINES : 0);
}

struct hk__flat *flatten(const struct hk_plan *plan, uint32_t mode, bool apart)
{
	struct hk__flat_spec spec = { .plan = plan,
				      .wide = mode & HK__FLAT_WIDE,
				      .lines = mode & HK__FLAT_LINES,
				      .apart = apart };
	struct hk__flat *flat;
	struct hk_why why;

	enum hk_status status = hk__flat_create(&spec, &why, &flat);
	if (status != HK_OK)
		test_fail(__FILE__, __LINE__, "%s: %s", each_name(plan), why.text);
	return flat;
}
