/* SPDX-License-Identifier: Apache-2.0 */
/* allreduce.c - every rank gives a vector, and gets the sum of all. */
#include <hocket/hocket.h>

int main(void)
{
	float in[3] = { 1, 10, 100 }, out[3];
	enum hk_status status;
	struct hk_group *group;
	struct hk_why why;

	if (hk_group_create(NULL, &why, &group) != HK_OK) {
		fprintf(stderr, "%s\n", why.text);
		return 1;
	}
	status = hk_allreduce(group, in, out, 3, HK_TYPE_FP32,
			      HK_REDOP_SUM, NULL);
	if (status != HK_OK)
		fprintf(stderr, "%s\n", hk_group_why(group));
	else
		printf("rank %u of %u: %g %g %g\n",
		       hk_group_rank(group), hk_group_size(group),
		       out[0], out[1], out[2]);
	hk_group_free(group);
	return status != HK_OK;
}
