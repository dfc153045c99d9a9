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

/* Ranks tell each other what has happened, by pipes that are there before they are. */
struct bed_pipes {
	int come[2], gone[2];
};
struct bed_pipes bed_pipes_open(void);
void bed_tell(const int *ends);
void bed_hear(const int *ends);

/* ---- memory of a rank ----
 *
 * Host memory; or device memory and a stream, by the machine's driver, or by a
 * stand-in where it has none (test/gpu/driver). HK_TEST_CUDA=real: skips the test
 * where there is no GPU.
 */
struct bed_memory {
	bool device;
	cudaStream_t stream;
};
/* The thread that calls it has the device's context from then on. */
void bed_memory_open(struct bed_memory *memory, bool device);
/* On another device; and how many there are. */
void bed_memory_open_on(struct bed_memory *memory, int ordinal);
int bed_devices(void);
void bed_memory_close(struct bed_memory *memory);
void *bed_alloc(const struct bed_memory *memory, size_t bytes);
void bed_free(const struct bed_memory *memory, void *at);
void bed_write(const struct bed_memory *memory, void *to, const void *from, size_t bytes);
/* When the stream has passed what was called. */
void bed_read(const struct bed_memory *memory, void *to, const void *from, size_t bytes);
/* Calls until end become a graph, which is then performed so often. */
void bed_capture_begin(const struct bed_memory *memory);
void bed_capture_end(const struct bed_memory *memory, int times);

/* ---- elements: small numbers that every type has ---- */

size_t bed_size(ncclDataType_t type);
void bed_put(ncclDataType_t type, void *at, size_t i, double value);
double bed_get(ncclDataType_t type, const void *at, size_t i);
bool bed_integer(ncclDataType_t type);

#endif
