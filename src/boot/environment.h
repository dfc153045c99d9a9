/* SPDX-License-Identifier: Apache-2.0 */
/*
 * environment.h - what environment.c and launcher.c share: variables, read
 * strictly. A variable that is empty is not set.
 */
#ifndef HK_BOOT_ENVIRONMENT_H
#define HK_BOOT_ENVIRONMENT_H

#include "boot/boot.h"

struct hk__env {
	char *const *vars;	/* "NAME=value", ending in NULL */
	struct hk_why *why;
};

/* NULL: not set. */
const char *hk__env_get(const struct hk__env *env, const char *name);
/* HK_EINVAL: "NAME is "value": advice", or "NAME is not set: advice". */
enum hk_status hk__env_wrong(const struct hk__env *env, const char *name, const char *advice);
/* A decimal number from min to max, and nothing else. */
bool hk__env_parse(const char *text, uint64_t min, uint64_t max, uint64_t *number_out);
/* "host:port" or "[address]:port", from that port on. */
bool hk__env_address(const char *text, uint16_t port_min, struct hk__boot_spec *spec);

/*
 * rank, n, host, port, host_found, job and launcher, from the first launcher
 * whose variables are there. With an address given (has_address) it is not asked for one.
 */
enum hk_status hk__launcher_read(const struct hk__env *env, bool has_address,
				 struct hk__boot_spec *spec);

#endif
