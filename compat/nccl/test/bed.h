/* SPDX-License-Identifier: Apache-2.0 */
/* bed.h - ranks for tests of NCCL's interface: threads and processes. */
#ifndef HK_COMPAT_NCCL_TEST_BED_H
#define HK_COMPAT_NCCL_TEST_BED_H

#include "harness.h"
#include "nccl.h"

#include <sys/types.h>

#define BED_RANKS_MAX 8

/* Ends the test, and says the library's line, where a call does not succeed. */
#define NCCL(call) bed_check((call), #call, __FILE__, __LINE__)
void bed_check(ncclResult_t result, const char *call, const char *file, int line);

/* One rank of n, in a thread or a process of its own; with an id for all. */
struct bed_rank {
	int rank, n;
	ncclUniqueId id;
	void *ctx;
};
typedef void (*bed_run)(struct bed_rank *rank);

void bed_threads(int n, bed_run run, void *ctx);
void bed_processes(int n, bed_run run, void *ctx);
/* Of processes that may die: who is to be missed at the end. */
void bed_processes_but(int n, bed_run run, void *ctx, int dies);

/* ---- elements: small numbers that every type has ---- */

size_t bed_size(ncclDataType_t type);
void bed_put(ncclDataType_t type, void *at, size_t i, double value);
double bed_get(ncclDataType_t type, const void *at, size_t i);
bool bed_integer(ncclDataType_t type);

#endif
