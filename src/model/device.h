/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - what a collective takes on a device: a plan, flattened, of some size.
 *
 *	launch + peers + hops in a row + moves in a row + bytes
 *
 * A hop is one rank waiting for another, by a flag or by lines, whose data carry
 * their flags. A move by lines is as long as a block's threads take to go round once,
 * and as many as it takes; one by flags is longer, and then there are its bytes: those
 * that one block after the other reads and writes, or those of all blocks where these
 * are more than the device's memory can do. Ranks on several devices are priced as if
 * they shared one: what is far is not known here.
 */
#ifndef HK_MODEL_DEVICE_H
#define HK_MODEL_DEVICE_H

#include "base/base.h"

/* A kind of device. All of it is measured and fitted by test/bench/gpu_tune.c. */
struct hk__device_prices {
	const char *name;
	double launch_ns;	/* a kernel that does nothing, after another */
	double peer_ns;		/* one more rank to tell */
	double flag_ns;		/* a hop, from who tells to who has waited */
	double line_ns;		/* the same, by lines */
	double move_ns;		/* by flags, without its bytes */
	double move_lines_ns;	/* by lines, with a word for each thread */
	double bw_block;	/* bytes per ns that a block reads and writes, by flags */
	double bw_device;	/* and all blocks together */
};
/* Of 132 multiprocessors; in a graph, calls in a row. */
extern const struct hk__device_prices hk__device_h200;

/* What a device would have to do. */
struct hk__device_load {
	bool lines;
	uint32_t blocks;	/* of a rank */
	double peers;		/* that a rank tells */
	double hops, moves;	/* one behind the other */
	double block_bytes;	/* read and written by blocks that wait for each other */
	double bytes;		/* and by all blocks of all ranks */
};

/* Nanoseconds. */
double hk__device_price(const struct hk__device_prices *prices,
			const struct hk__device_load *load);
/* The same in words, on one line. */
void hk__device_explain(const struct hk__device_prices *prices, const struct hk__device_load *load,
			struct hk__text *text);

#endif
