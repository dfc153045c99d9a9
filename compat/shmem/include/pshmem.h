/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pshmem.h - the profiling interface: every function of shmem.h under a second name, which
 * begins with "p". A program, or a library before libsma, may define the first one itself.
 */
#ifndef PSHMEM_H
#define PSHMEM_H

#include "shmem.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SHMEMX_DECLARE(result, name, params) result p##name params;
SHMEMX_FUNCTIONS(SHMEMX_DECLARE)
#undef SHMEMX_DECLARE

#ifdef __cplusplus
}
#endif

#endif
