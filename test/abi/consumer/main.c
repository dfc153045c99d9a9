/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - a program of somebody else, in the C that is C++ as well. */
#include <hocket/hocket.h>

int main(void)
{
	struct hk_plan_opts opts = HK_PLAN_OPTS_INIT;
	struct hk_check_report report;
	struct hk_plan *plan;
	struct hk_why why;

	opts.algo = "ring";
	enum hk_status status = hk_plan_create(HK_COLL_ALLREDUCE, 4, &opts, &why, &plan);
	if (status != HK_OK) {
		fprintf(stderr, "%s: %s\n", hk_status_name(status), why.text);
		return 1;
	}
	report.size = sizeof(report);
	status = hk_check(plan, NULL, &report);
	if (status == HK_OK)
		printf("%u steps\n", (unsigned)hk_plan_steps(plan, 0, 0));
	else
		fprintf(stderr, "%s: %s\n", hk_status_name(status), report.why.text);
	hk_plan_free(plan);
	return status == HK_OK ? 0 : 1;
}
