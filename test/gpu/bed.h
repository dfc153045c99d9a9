/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bed.h - ranks of one process on one GPU, or on a stand-in for one: memory, streams and graphs, by the
 * driver's own interface.
 */
#ifndef HK_TEST_GPU_BED_H
#define HK_TEST_GPU_BED_H

#include "group/oracle.h"
#include "gpu/cuda.h"

#include <hocket/group.h>

#define BED_RANKS_MAX 8u

struct bed {
	uint32_t n;
	struct hk_group *groups[BED_RANKS_MAX];	/* NULL: a rank of another process */
	hk__cu_stream streams[BED_RANKS_MAX];
	hk__cu_ptr memory[BED_RANKS_MAX];	/* of `bytes` each */
	size_t bytes;
};

/*
 * By the machine's driver, or where it has none by a stand-in (gpu/driver), which
 * bed_is_standin tells of from then on. HK_TEST_CUDA=real: skips the test where there
 * is no GPU, or no code for one.
 */
bool bed_is_standin(void);
void *bed_driver(void);		/* loaded, and initialised */
/* Opens it, for who makes groups of its own; its context is the thread's. */
const struct hk__cuda *bed_cuda(void);
void bed_open(struct bed *bed, uint32_t n, size_t bytes);
/* Ranks by turns on so many GPUs; skips the test where there are fewer. */
void bed_open_on(struct bed *bed, uint32_t n, size_t bytes, int devices);
/*
 * Of ranks that meet one by one, in one process or several: without any at first. Each
 * joins by a thread of its own; address NULL: as the environment has it.
 */
void bed_open_empty(struct bed *bed, uint32_t n, size_t bytes);
void bed_join(struct bed *bed, uint32_t rank, const char *address, int device);
int bed_devices(void);
/* The rank's memory, and its stream, on a GPU. */
hk__cu_stream bed_stream(struct bed *bed, uint32_t rank, int device);
void bed_close(struct bed *bed);

/*
 * All ranks that this process has, have so many calls behind them: just below where a
 * counter comes round. After a first call, while none runs, and by all processes.
 */
void bed_set_epoch(struct bed *bed, uint64_t epoch);
/* The same of messages of each pair. */
void bed_set_messages(struct bed *bed, uint64_t messages);

/* Waits for all streams. */
void bed_wait(const struct bed *bed);
void bed_to_device(hk__cu_ptr to, const void *from, size_t bytes);
void bed_to_host(void *to, hk__cu_ptr from, size_t bytes);

/* ---- one operation of all ranks ---- */

struct bed_op {
	struct want want;
	const char *algo;	/* NULL: the group chooses */
	bool inplace;
	uint32_t skew;		/* elements by which buffers are off a boundary */
};

/* Where a rank's buffers lie in its memory; in and out 0 where it has none. */
struct bed_place {
	size_t in, out;		/* offsets, beyond 0 */
	size_t bytes;
};
void bed_lay_out(const struct bed_op *op, uint32_t rank, struct bed_place *place_out);
/* Guards and inputs; poison where outputs will be. */
void bed_fill(struct bed *bed, const struct bed_op *op);
/* The calls of all ranks, by this one thread, or of one. */
void bed_call(struct bed *bed, const struct bed_op *op);
enum hk_status bed_call_rank(struct bed *bed, const struct bed_op *op, uint32_t rank,
			     uint64_t timeout_ns);
/* Outputs are right, and nothing else has changed. */
void bed_check(struct bed *bed, const struct bed_op *op);
/* All three. */
void bed_try(struct bed *bed, const struct bed_op *op);

/* ---- graphs ---- */

/* Between begin and end calls of all ranks are captured, side by side. */
void bed_capture_begin(struct bed *bed);
void *bed_capture_end(struct bed *bed);
void bed_replay(struct bed *bed, void *graph);
void bed_graph_free(void *graph);

#endif
