/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment.h - what environment.c and launcher.c share. Variables are read by
 * base/env.h, strictly.
 */
#ifndef HK_BOOT_ENVIRONMENT_H
#define HK_BOOT_ENVIRONMENT_H

#include "base/env.h"
#include "boot/boot.h"

/* "host:port" or "[address]:port", from that port on. */
bool hk__env_address(const char *text, uint16_t port_min, struct hk__boot_spec *spec);

/*
 * rank, n, host, port, host_found, job and launcher, from the first launcher
 * whose variables are there. With an address given (has_address) it is not asked for one.
 */
enum hk_status hk__launcher_read(const struct hk__env *env, bool has_address,
				 struct hk__boot_spec *spec);

#endif
