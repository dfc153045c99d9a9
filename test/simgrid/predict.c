/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict.c - how long hk_sim_run() says that a plan takes, in ns:
 *
 *	predict FABRIC COLLECTIVE ALGORITHM RANKS BYTES
 */
#include "cell.h"

int main(int argc, char **argv)
{
	struct hk_sim_result result = { .size = sizeof(result) };
	struct hk_fabric *fabric;
	struct hk_why why = { 0 };
	struct cell cell;
	char slots[32];

	if (argc != 2 + CELL_ARGS) {
		fprintf(stderr, "usage: predict FABRIC COLLECTIVE ALGORITHM RANKS BYTES\n");
		return 2;
	}
	enum hk_status status = hk_fabric_create(argv[1], NULL, &why, &fabric);
	if (status != HK_OK) {
		fprintf(stderr, "predict: %s\n", why.text);
		return 1;
	}
	snprintf(slots, sizeof(slots), "switch.slots=%d", CELL_SLOTS);
	status = hk_fabric_change(fabric, slots, &why);
	if (status != HK_OK) {
		fprintf(stderr, "predict: %s\n", why.text);
		hk_fabric_free(fabric);
		return 1;
	}
	if (!cell_open(argv + 2, &cell)) {
		hk_fabric_free(fabric);
		return 1;
	}
	const struct hk_sim_job job = { .plan = cell.plan, .bytes = cell.bytes };
	status = hk_sim_run(fabric, &job, 1, NULL, &why, &result);
	if (status == HK_OK)
		printf("%.3f\n", result.time_ns);
	else
		fprintf(stderr, "predict: %s\n", why.text);
	cell_close(&cell);
	hk_fabric_free(fabric);
	return status == HK_OK ? 0 : 1;
}
