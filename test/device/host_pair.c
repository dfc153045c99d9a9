/* SPDX-License-Identifier: Apache-2.0 */
/* host_pair.c - see host_pair.h. */
#include "device/host_pair.h"

#include "exec/device/pair_run.h"

#include <stdlib.h>

void host_pair_block(const struct hk__pair_call *call, const struct hk__pair_op *ops,
		     uint32_t number)
{
	struct pair_block *block = calloc(1, sizeof(*block));
	struct pair_self self = { .call = call, .ops = ops, .block = block, .nthreads = 1 };

	hk_assert(block);
	pair_run(&self, number);
	free(block);
}
