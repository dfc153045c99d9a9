/* SPDX-License-Identifier: Apache-2.0 */
/* flat.c - hk_flat_TYPE and hk_lines_TYPE, by the interpreter compiled for the host. */
#include "gpu/driver/kernels.h"

#include "device/host.h"

#include <hocket/type.h>

#include <string.h>

static bool flat_has(const char *name)
{
	const char *type = strncmp(name, "hk_flat_", 8) == 0	? name + 8
			   : strncmp(name, "hk_lines_", 9) == 0 ? name + 9
								: NULL;

	for (unsigned t = 0; type && t < HK_TYPE_COUNT; t++) {
		if (strcmp(type, hk_type_name((enum hk_type)t)) == 0)
			return true;
	}
	return false;
}

static void flat_run(const char *name, const struct kernel_grid *grid, void *const *params)
{
	(void)name; /* the call says it again */
	host_block(params[0], grid->block);
}

static const size_t flat_params[] = { sizeof(struct hk__flat_call), 0 };
const struct kernel_family kernels_flat = { flat_has, flat_params, flat_run };
