/* SPDX-License-Identifier: Apache-2.0 */
/* mpp/pshmem.h - pshmem.h, where programs older than OpenSHMEM look for it. */
#ifndef MPP_PSHMEM_H
#define MPP_PSHMEM_H

#include <pshmem.h>

#endif
