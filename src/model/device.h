/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - what a collective takes on a device: a plan, flattened, of some size.
 *
 *	launch + hops in a row + moves in a row + bytes
 *
 * A hop is one rank waiting for another, by a flag or by lines, whose data carry
 * their flags. Bytes are those that one block after the other reads and writes, or
 * those of all blocks where these are more than the device's memory can do. Ranks on several devices are
 * priced as if they shared one: what is far is not known here.
 */
#ifndef HK_MODEL_DEVICE_H
#define HK_MODEL_DEVICE_H

#include "base/base.h"

/* A kind of device. All of it is measured: test/bench/gpu_tune.c. */
struct hk__device_prices {
	const char *name;
	double launch_ns;	/* a kernel that does nothing, after another */
	double flag_ns;		/* from who tells to who has waited */
	double line_ns;		/* the same, by lines */
	double move_ns;		/* of a block, without its bytes */
	double bw_block;	/* bytes per ns that a block reads and writes */
	double bw_block_lines;	/* the same, by lines */
	double bw_device;	/* and all blocks together */
};
extern const struct hk__device_prices hk__device_h200;

/* What a device would have to do. */
struct hk__device_load {
	bool lines;
	uint32_t blocks;	/* of a rank */
	double hops, moves;	/* one behind the other */
	double block_bytes;	/* read and written by blocks that wait for each other */
	double bytes;		/* and all blocks of all ranks */
};

/* Nanoseconds. */
double hk__device_price(const struct hk__device_prices *prices,
			const struct hk__device_load *load);
/* The same in words, on one line. */
void hk__device_explain(const struct hk__device_prices *prices, const struct hk__device_load *load,
			struct hk__text *text);

#endif
