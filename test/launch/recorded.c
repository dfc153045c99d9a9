/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorded.c - ranks for who looks at them: `recorded MODE [RANK [FILE]]`.
 *
 *     loop R FILE      allreduces, one after the other, until there is such a file
 *     mismatch R       the sixth call of rank R is a broadcast, of the others an allreduce
 *     absent R FILE    rank R makes five calls and no sixth, until there is such a file
 *     split R FILE     as absent, in a group of the ranks that are odd or even as R is
 *
 * Each says who it is, then what failed.
 */
#include <hocket/hocket.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT 1000u

static float in[COUNT], out[COUNT];

static enum hk_status once(struct hk_group *group)
{
	return hk_allreduce(group, in, out, COUNT, HK_TYPE_FP32, HK_REDOP_SUM, NULL);
}

static enum hk_status loop(struct hk_group *group, const char *file)
{
	enum hk_status status = HK_OK;
	float ends = 0;

	/* All of them stop after the same one. */
	while (status == HK_OK && ends == 0) {
		float end = access(file, F_OK) == 0 ? 1 : 0;

		status = once(group);
		if (status == HK_OK)
			status = hk_allreduce(group, &end, &ends, 1, HK_TYPE_FP32, HK_REDOP_MIN,
					      NULL);
	}
	return status;
}

static enum hk_status absent(struct hk_group *group, bool odd, const char *file)
{
	enum hk_status status = HK_OK;

	for (int i = 0; i < 5 && status == HK_OK; i++)
		status = once(group);
	while (odd && access(file, F_OK) != 0)
		usleep(10000);
	return status == HK_OK && !odd ? once(group) : status;
}

static enum hk_status mismatch(struct hk_group *group, bool odd)
{
	enum hk_status status = HK_OK;

	for (int i = 0; i < 5 && status == HK_OK; i++)
		status = once(group);
	if (status == HK_OK && odd)
		return hk_broadcast(group, in, out, COUNT, HK_TYPE_FP32, 0, NULL);
	return status == HK_OK ? once(group) : status;
}

static enum hk_status split(struct hk_group *group, uint32_t who, const char *file)
{
	uint32_t rank = hk_group_rank(group);
	struct hk_group *part;
	enum hk_status status = hk_group_split(group, rank % 2, 0, &part);

	if (status != HK_OK)
		return status;
	if (rank % 2 == who % 2)
		status = absent(part, rank == who, file);
	if (status != HK_OK)
		fprintf(stderr, "%s\n", hk_group_why(part));
	while (access(file, F_OK) != 0)
		usleep(10000);
	return status;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "", *file = argc > 3 ? argv[3] : "";
	uint32_t who = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
	enum hk_status status = HK_EINVAL;
	struct hk_group *group;
	struct hk_why why;

	if (hk_group_create(NULL, &why, &group) != HK_OK) {
		fprintf(stderr, "%s\n", why.text);
		return 1;
	}
	printf("rank %u pid %d\n", hk_group_rank(group), (int)getpid());
	fflush(stdout);
	if (strcmp(mode, "loop") == 0)
		status = loop(group, file);
	else if (strcmp(mode, "mismatch") == 0)
		status = mismatch(group, hk_group_rank(group) == who);
	else if (strcmp(mode, "absent") == 0)
		status = absent(group, hk_group_rank(group) == who, file);
	else if (strcmp(mode, "split") == 0)
		return split(group, who, file) != HK_OK; /* ends without freeing anything */
	if (status != HK_OK)
		fprintf(stderr, "%s\n", hk_group_why(group));
	hk_group_free(group);
	return status != HK_OK;
}
