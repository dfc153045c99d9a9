/* SPDX-License-Identifier: Apache-2.0 */
/* pair.c - hk_pair_small, hk_pair_few and hk_pair_many, compiled for the host. */
#include "gpu/driver/kernels.h"

#include "device/host_pair.h"

#include <string.h>

static bool few_has(const char *name)
{
	return strcmp(name, "hk_pair_few") == 0 || strcmp(name, "hk_pair_small") == 0;
}

static void few_run(const char *name, const struct kernel_grid *grid, void *const *params)
{
	const struct hk__pair_few *few = params[0];

	(void)name;
	host_pair_block(&few->call, few->ops, few->index, grid->block);
}

static bool many_has(const char *name)
{
	return strcmp(name, "hk_pair_many") == 0;
}

static void many_run(const char *name, const struct kernel_grid *grid, void *const *params)
{
	const struct hk__pair_many *many = params[0];

	(void)name;
	host_pair_block(&many->call, many->ops, many->index, grid->block);
}

static const size_t few_params[] = { sizeof(struct hk__pair_few), 0 };
static const size_t many_params[] = { sizeof(struct hk__pair_many), 0 };
const struct kernel_family kernels_pair_few = { few_has, few_params, few_run };
const struct kernel_family kernels_pair_many = { many_has, many_params, many_run };
