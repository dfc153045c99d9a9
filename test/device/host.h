/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - the interpreter of flat programs, compiled for the host: a block is
 * one thread.
 */
#ifndef HK_TEST_DEVICE_HOST_H
#define HK_TEST_DEVICE_HOST_H

#include "exec/device/flat.h"

/* One block of the call's rank, from its beginning to its end. */
void host_block(const struct hk__flat_call *call, uint32_t number);

#endif
