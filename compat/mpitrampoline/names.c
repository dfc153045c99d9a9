/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.c - what MPItrampoline looks up besides the functions that are served: the
 * constants, and one function for every other name, made by the lists of names.h. XLA calls
 * none of these; a program that does is told which.
 */
#include "mpi.h"

#include <stdio.h>
#include <stdlib.h>

/* Names are pasted at once: stdio.h has a macro SEEK_SET, and one list too. */
#define INT(name, value) \
	HK__MPI_API extern const int MPIABI_##name; \
	const int MPIABI_##name = (value);
#define HANDLE(name, value) \
	HK__MPI_API extern const uintptr_t MPIABI_##name; \
	const uintptr_t MPIABI_##name = (uintptr_t)(value);
HK__MPI_INTS(INT)
HK__MPI_HANDLES(HANDLE)
HK__MPI_POINTERS(HANDLE)

#define VERSION(name, value) \
	HK__MPI_API extern const int name; \
	const int name = (value);
VERSION(mpiabi_version_major, HK__MPI_ABI_MAJOR)
VERSION(mpiabi_version_minor, HK__MPI_ABI_MINOR)
VERSION(mpiabi_version_patch, 0)
VERSION(mpiwrapper_version_major, HK_VERSION_MAJOR)
VERSION(mpiwrapper_version_minor, HK_VERSION_MINOR)
VERSION(mpiwrapper_version_patch, HK_VERSION_PATCH)

/* Called once, when the library is loaded: there are no constants of Fortran. */
HK__MPI_API void mpiwrapper_export_fortran_constants_(void);
HK__MPI_API void mpiwrapper_export_fortran_constants_(void)
{
}

/* Callers pass what arguments they like: in C's calling convention that is theirs to undo. */
#define REFUSED(name) \
	HK__MPI_API int MPIABI_##name(void); \
	HK__MPI_API int MPIABI_##name(void) \
	{ \
		return hk__mpi_fail_loud("MPI_" #name ": not served by Hocket, which has the " \
					 "calls of MPI that XLA makes"); \
	}
HK__MPI_REFUSED(REFUSED)

/* Those that return no error code, but a time, an address or a handle. */
#define ABORTED(name) \
	HK__MPI_API void MPIABI_##name(void); \
	HK__MPI_API void MPIABI_##name(void) \
	{ \
		(void)hk__mpi_fail_loud("MPI_" #name ": not served by Hocket, and has no way to " \
					"say so: the process ends"); \
		abort(); \
	}
HK__MPI_ABORTED(ABORTED)

/* Buffers are in the memory of the host. */
#define QUERY(name) \
	HK__MPI_API int MPIXABI_##name(void); \
	HK__MPI_API int MPIXABI_##name(void) \
	{ \
		return 0; \
	}
HK__MPIX_QUERIES(QUERY)
