/* SPDX-License-Identifier: Apache-2.0 */
/* sim_vary.c - --what-if: a fabric that differs in a constant or more. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

int sim_what_if_open(const struct sim_run *run, struct hk_fabric **fabric_out)
{
	const char *spec = run->args->fabric;
	struct hk_fabric *fabric;
	struct hk_why why = { "" };
	char *copy = strdup(run->args->sim.what_if), *save = NULL;
	int status = CLI_DONE;

	if (!copy)
		return cli_wrong("sim", "out of memory");
	if (hk_fabric_create(spec, NULL, &why, &fabric) != HK_OK) {
		free(copy);
		return cli_wrong("sim", "%s", why.text);
	}
	for (char *change = strtok_r(copy, ",", &save); change && status == CLI_DONE;
	     change = strtok_r(NULL, ",", &save))
		if (hk_fabric_change(fabric, change, &why) != HK_OK)
			status = cli_wrong("sim", "--what-if %s: %s", change, why.text);
	free(copy);
	if (status == CLI_DONE)
		*fabric_out = fabric;
	else
		hk_fabric_free(fabric);
	return status;
}
