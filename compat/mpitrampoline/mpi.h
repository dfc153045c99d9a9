/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi.h - inside of libhocket-mpitrampoline: communicators, errors and what the files
 * share. The interface to the outside is MPItrampoline's MPI ABI 2.9 (names.h): handles
 * are numbers of the size of a pointer, and constants are variables, read when the library
 * is loaded.
 *
 * One lock is held during every call. MPI's callers promise not to call from two threads
 * at once (MPI_THREAD_SERIALIZED is the most that is provided), but a program that breaks
 * the promise should wait, not corrupt memory.
 */
#ifndef HK_COMPAT_MPI_H
#define HK_COMPAT_MPI_H

#include "names.h"

#include <hocket/hocket.h>

#include <stddef.h>
#include <stdint.h>

#define HK__MPI_API __attribute__((visibility("default")))

typedef uintptr_t hk__mpi_comm;
typedef uintptr_t hk__mpi_type;
typedef uintptr_t hk__mpi_op;
typedef uintptr_t hk__mpi_request;

/* The ABI's own status: room for those of MPI libraries, then what programs read. */
struct hk__mpi_status {
	uint64_t inside[3];
	int source;
	int tag;
	int error;
};
_Static_assert(sizeof(struct hk__mpi_status) == 40, "MPI_Status has 10 ints");

#define HK__MPI_ERROR_STRING_MAX 1024

/* Values of the constants: HK__MPI_ERR_COMM, ... */
enum {
#define HK__MPI_ENUM(name, value) HK__MPI_##name = (value),
	HK__MPI_INTS(HK__MPI_ENUM)
	HK__MPI_HANDLES(HK__MPI_ENUM)
	HK__MPI_POINTERS(HK__MPI_ENUM)
#undef HK__MPI_ENUM
};

/* A communicator. One that could not be made keeps the reason and has no group. */
struct hk__mpi_comm_entry {
	struct hk_group *group;
	uint32_t pending;	/* requests that were not waited for */
	char why[HK_WHY_MAX];
};

/* ---- errors (error.c) ---- */

/*
 * An error code for a line, which MPI_Error_string() gives back; the latest
 * HK__MPI_LINES of a process are kept.
 */
#define HK__MPI_LINES 64
int hk__mpi_fail(const char *fmt, ...) HK_PRINTF(1, 2);
/* The same, and the line goes to standard error: for calls whose result programs ignore. */
int hk__mpi_fail_loud(const char *fmt, ...) HK_PRINTF(1, 2);

/* ---- communicators (comm.c) ---- */

/*
 * Locks the library and finds a communicator that can be used, for a call of that name.
 * NULL: there is none, *code_out says why, and nothing is locked.
 */
struct hk__mpi_comm_entry *hk__mpi_enter(const char *call, hk__mpi_comm comm, int *code_out);
/* Unlocks, and makes an error code of a status. */
int hk__mpi_leave(const char *call, struct hk__mpi_comm_entry *entry, enum hk_status status);
/* Unlocks, and returns that code. */
int hk__mpi_leave_with(int code);
/* Only the lock. */
void hk__mpi_lock(void);

/* ---- types (coll.c) ---- */

/*
 * Hocket's type for one of MPI's, and how many of its elements make one of MPI's: two for
 * complex numbers, which only add up. MPI_SUCCESS or an error code.
 */
int hk__mpi_type_find(const char *call, hk__mpi_type type, enum hk_type *type_out,
		      uint32_t *elements_out);

#endif
