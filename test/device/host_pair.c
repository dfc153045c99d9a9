/* SPDX-License-Identifier: Apache-2.0 */
/* host_pair.c - see host_pair.h. */
#include "device/host_pair.h"

#include "exec/device/pair_run.h"

#include <stdlib.h>

void host_pair_block(const struct hk__pair_call *call, const struct hk__pair_op *ops,
		     const struct hk__pair_index *index, uint32_t number)
{
	struct {
		struct pair_block pair;
		struct small_block small;
	} *block = calloc(1, sizeof(*block));
	struct pair_lists lists = { call, ops, index };
	struct pair_thread thread = { &block->pair, &block->small, number, 0, 1 };

	hk_assert(block);
	if (hk__pair_all_small(call))
		small_run(lists, thread);
	else
		pair_run(lists, thread);
	free(block);
}
