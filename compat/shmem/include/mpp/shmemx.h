/* SPDX-License-Identifier: Apache-2.0 */
/* mpp/shmemx.h - shmemx.h, where programs older than OpenSHMEM look for it. */
#ifndef MPP_SHMEMX_H
#define MPP_SHMEMX_H

#include <shmemx.h>

#endif
