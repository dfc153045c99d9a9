/* SPDX-License-Identifier: Apache-2.0 */
/* host_pair.c - see host_pair.h. */
#include "device/host_pair.h"

#include "exec/device/pair_run.h"

#include <stdlib.h>

void host_pair_block(const struct hk__pair_call *call, const struct hk__pair_op *ops,
		     uint32_t number)
{
	struct pair_block *block = calloc(1, sizeof(*block));

	hk_assert(block);
	pair_run(call, ops, (struct pair_thread){ block, number, 0, 1 });
	free(block);
}
