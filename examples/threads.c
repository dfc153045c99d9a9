/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c - the ranks of a group as threads of one process. */
#include <hocket/hocket.h>

#include <pthread.h>

#define RANKS 4

static void *rank_main(void *arg)
{
	struct hk_group *group = arg;
	uint32_t rank = hk_group_rank(group), all[RANKS];
	enum hk_status status;

	status = hk_allgather(group, &rank, all, 1, HK_TYPE_UINT32,
			      NULL);
	if (status != HK_OK)
		fprintf(stderr, "%s\n", hk_group_why(group));
	else if (rank == 0)
		printf("ranks %u %u %u %u\n", all[0], all[1], all[2],
		       all[3]);
	hk_group_free(group);
	return (void *)(intptr_t)status;
}

int main(void)
{
	struct hk_group *groups[RANKS];
	pthread_t threads[RANKS];
	struct hk_why why;
	void *failed;
	int status = 0;

	if (hk_group_threads(RANKS, NULL, &why, groups) != HK_OK) {
		fprintf(stderr, "%s\n", why.text);
		return 1;
	}
	for (int r = 0; r < RANKS; r++)
		if (pthread_create(&threads[r], NULL, rank_main,
				   groups[r]))
			return 1;
	for (int r = 0; r < RANKS; r++)
		if (pthread_join(threads[r], &failed) || failed)
			status = 1;
	return status;
}
