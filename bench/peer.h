/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer.h - what a library has to offer to be measured by peer.c.
 *
 * A driver is one file that defines `peer`. The frame, peer.c, has the main
 * function and does everything that has to be the same for all: buffers, warm
 * up, the number of iterations, clocks, the check of results, the output.
 *
 * Sizes are those of nccl-tests: for allreduce and broadcast the bytes of the
 * vector, for the others the bytes of all n blocks. Elements are fp32.
 */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum peer_coll {
	PEER_ALLREDUCE,
	PEER_ALLGATHER,
	PEER_REDUCESCATTER,
	PEER_ALLTOALL,
	PEER_BROADCAST,
	PEER_COLLS
};
#define PEER_ALL ((1u << PEER_COLLS) - 1)

struct peer_job {
	enum peer_coll coll;
	float *in;		/* broadcast: in == out, as MPI has no other form */
	float *out;
	size_t count;		/* allreduce, broadcast: elements; else of one block */
	int root;
};

/* A call that fails says why and ends the program: see peer_die(). */
struct peer {
	const char *name;
	unsigned colls;		/* 1 << PEER_ALLREDUCE | ... */
	void (*init)(int *argc, char ***argv);
	int (*rank)(void);
	int (*size)(void);
	const char *(*version)(void);
	/* Memory for a buffer of a job, at a page boundary; never freed. */
	void *(*alloc)(size_t bytes, bool registered);
	void (*run)(const struct peer_job *job);
	void (*barrier)(void);
	/* The largest of all ranks' values, on every rank. */
	double (*max)(double value);
	void (*finish)(void);
};

/* Defined by the driver. */
extern const struct peer peer;

/* An alloc for those that have none of their own. */
void *peer_alloc(size_t bytes, bool registered);

__attribute__((format(printf, 1, 2), noreturn)) void peer_die(const char *format, ...);

#ifdef __cplusplus
}
#endif
#endif
