/* SPDX-License-Identifier: Apache-2.0 */
/* bed.h - segments of ranks, and calls in them, performed on the host (host.h). */
#ifndef HK_TEST_DEVICE_BED_H
#define HK_TEST_DEVICE_BED_H

#include "exec/device/flatten.h"
#include "group/oracle.h"

#define RANKS_MAX 16u

struct bed {
	uint32_t n;
	struct hk__flat_limits limits;
	char *segments[RANKS_MAX];
	struct hk__flat_report reports[RANKS_MAX];
};

void bed_open(struct bed *bed, uint32_t n, uint32_t blocks);
void bed_close(struct bed *bed);

/* All blocks of all ranks have so many calls behind them, of which all flags tell. */
void bed_set_epoch(struct bed *bed, uint64_t epoch);
/* The same, but flags are of calls long ago. */
void bed_set_epoch_alone(struct bed *bed, uint64_t epoch);
/* All words of lines are as a call of that epoch leaves them. */
void bed_fill_lines(struct bed *bed, uint32_t epoch);

/* How a call of these elements is flattened. */
uint32_t mode_of(const struct want *want, bool lines);
struct hk__flat *flatten(const struct hk_plan *plan, uint32_t mode, bool apart);

/* All but buffers and shape. */
void call_fill(struct bed *bed, const struct hk__flat *flat, const struct want *want,
	       uint32_t mode, uint32_t rank, struct hk__flat_call *call);
/* calls[i][rank]; a rank that is missing does not come. */
void calls_run(const struct bed *bed, struct hk__flat_call calls[][RANKS_MAX], uint32_t ncalls,
	       uint32_t missing);

#endif
