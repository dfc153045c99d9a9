/* SPDX-License-Identifier: Apache-2.0 */
/* host_pair.h - sends and receives of a GPU, compiled for the host: a block is one thread. */
#ifndef HK_TEST_DEVICE_HOST_PAIR_H
#define HK_TEST_DEVICE_HOST_PAIR_H

#include "exec/device/pair.h"

/* One block of the call's rank, from its beginning to its end, by the kernel it has. */
void host_pair_block(const struct hk__pair_call *call, const struct hk__pair_op *ops,
		     const struct hk__pair_index *index, uint32_t number);

#endif
