/* SPDX-License-Identifier: Apache-2.0 */
/* shmemx.h - extensions of OpenSHMEM. Hocket has none; programs expect the file. */
#ifndef SHMEMX_H
#define SHMEMX_H

#include "shmem.h"

#endif
