/* SPDX-License-Identifier: Apache-2.0 */
/* histogram.c - every rank counts its numbers in bins that are spread over all ranks. */
#include <hocket/hocket.h>

#include <stdio.h>

#define BINS 4u /* of each rank */
#define NUMBERS 1000u

int main(void)
{
	enum hk_status status;
	struct hk_group *group;
	struct hk_win *bins = NULL;
	uint64_t sum = 0;

	if (hk_group_create(NULL, NULL, &group))
		return 1;
	uint32_t rank = hk_group_rank(group),
		 size = hk_group_size(group);
	status = hk_win_create(group, NULL, BINS * sizeof(uint64_t),
			       NULL, &bins);
	for (uint32_t i = 0; i < NUMBERS && status == HK_OK; i++) {
		struct hk_amo_args add = { HK_AMO_ADD, sizeof(uint64_t),
					   1, 0 };
		uint32_t bin = (rank * NUMBERS + i) % (BINS * size);

		/* No old value is asked for, so this only begins. */
		status = hk_amo(bins, bin / BINS,
				bin % BINS * sizeof(uint64_t), &add,
				NULL, NULL);
	}
	if (status == HK_OK)
		status = hk_quiet(hk_group_ctx(group));
	if (status == HK_OK)
		status = hk_barrier(group, NULL);
	if (status == HK_OK) {
		for (uint32_t i = 0; i < BINS; i++)
			sum += ((uint64_t *)hk_win_base(bins))[i];
		status = hk_allreduce(group, &sum, &sum, 1,
				      HK_TYPE_UINT64, HK_REDOP_SUM,
				      NULL);
	}
	if (status != HK_OK)
		fprintf(stderr, "%s\n", hk_group_why(group));
	else if (rank == 0)
		printf("%llu numbers in %u bins\n",
		       (unsigned long long)sum, BINS * size);
	hk_win_free(bins);
	hk_group_free(group);
	return status != HK_OK;
}
