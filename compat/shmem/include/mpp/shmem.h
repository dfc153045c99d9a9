/* SPDX-License-Identifier: Apache-2.0 */
/* mpp/shmem.h - shmem.h, where programs older than OpenSHMEM look for it. */
#ifndef MPP_SHMEM_H
#define MPP_SHMEM_H

#include <shmem.h>

#endif
