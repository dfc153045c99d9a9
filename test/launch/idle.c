/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idle.c - a rank that comes, meets the others, and goes: `idle`.
 *
 * `idle group FILE` stays, after a barrier, until FILE exists; `idle alone FILE`
 * does the same without a group. Both print their process's number when they
 * begin to wait, for whoever wants to look at them.
 */
#include <hocket/hocket.h>

#include <string.h>
#include <unistd.h>

#define LOOK_US 50000

static void stay(const char *file)
{
	printf("%ld\n", (long)getpid());
	fflush(stdout);
	while (access(file, F_OK) != 0)
		usleep(LOOK_US);
}

int main(int argc, char **argv)
{
	enum hk_status status;
	struct hk_group *group;
	struct hk_why why;

	if (argc == 3 && strcmp(argv[1], "alone") == 0) {
		stay(argv[2]);
		return 0;
	}
	if (hk_group_create(NULL, &why, &group) != HK_OK) {
		fprintf(stderr, "%s\n", why.text);
		return 1;
	}
	status = hk_barrier(group, NULL);
	if (status != HK_OK)
		fprintf(stderr, "%s\n", hk_group_why(group));
	else if (argc == 3)
		stay(argv[2]);
	hk_group_free(group);
	return status != HK_OK;
}
