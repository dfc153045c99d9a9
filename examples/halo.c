/* SPDX-License-Identifier: Apache-2.0 */
/* halo.c - heat in a ring: ranks put their edges into their neighbours' halos. */
#include <hocket/hocket.h>

#include <stdio.h>

#define CELLS 1000u /* of each rank, between two halos */
#define STEPS 500u

/* A window of each rank: cells of even and odd steps, and what tells of halos. */
struct part {
	double cells[2][CELLS + 2];
	uint64_t from_left, from_right;
};

#define AT(member) __builtin_offsetof(struct part, member)

/* The edges of a step, and with each a signal, go to both neighbours. */
static enum hk_status send_edges(struct hk_win *win, uint32_t left,
				 uint32_t right, uint32_t step)
{
	const struct part *mine = hk_win_base(win);
	uint32_t now = step % 2;
	struct hk_signal to_left = { win, AT(from_right), step,
				     HK_AMO_SET };
	struct hk_signal to_right = { win, AT(from_left), step,
				      HK_AMO_SET };
	enum hk_status status = hk_put_signal(
		win, left,
		AT(cells) + (now * (CELLS + 2) + CELLS + 1) * 8,
		&mine->cells[now][1], 8, &to_left, NULL);

	if (status == HK_OK)
		status =
			hk_put_signal(win, right,
				      AT(cells) + now * (CELLS + 2) * 8,
				      &mine->cells[now][CELLS], 8,
				      &to_right, NULL);
	/* A neighbour that has both is at most a step ahead: it writes the other halo. */
	if (status == HK_OK)
		status = hk_signal_wait(win, AT(from_left), HK_CMP_GE,
					step, 0, NULL);
	if (status == HK_OK)
		status = hk_signal_wait(win, AT(from_right), HK_CMP_GE,
					step, 0, NULL);
	return status;
}

int main(void)
{
	enum hk_status status;
	struct hk_group *group;
	struct hk_win *win = NULL;
	double sum = 0;

	if (hk_group_create(NULL, NULL, &group))
		return 1;
	uint32_t rank = hk_group_rank(group),
		 size = hk_group_size(group);
	status = hk_win_create(group, NULL, sizeof(struct part), NULL,
			       &win);
	struct part *part =
		hk_win_base(win); /* NULL where there is none */
	if (status == HK_OK && rank == 0)
		part->cells[1][1] = 1000;
	if (status == HK_OK)
		status = hk_barrier(group, NULL);
	for (uint32_t step = 1; step <= STEPS && status == HK_OK;
	     step++) {
		const double *old = part->cells[step % 2];
		double *new = part->cells[(step + 1) % 2];

		status = send_edges(win, (rank + size - 1) % size,
				    (rank + 1) % size, step);
		for (uint32_t i = 1; i <= CELLS; i++)
			new[i] = 0.5 * old[i] +
				 0.25 * (old[i - 1] + old[i + 1]);
	}
	for (uint32_t i = 1; i <= CELLS && status == HK_OK; i++)
		sum += part->cells[(STEPS + 1) % 2][i];
	if (status == HK_OK)
		status = hk_allreduce(group, &sum, &sum, 1,
				      HK_TYPE_FP64, HK_REDOP_SUM, NULL);
	if (status != HK_OK)
		fprintf(stderr, "%s\n", hk_group_why(group));
	else if (rank == 0)
		printf("heat after %u steps: %.6f\n", STEPS, sum);
	hk_win_free(win);
	hk_group_free(group);
	return status != HK_OK;
}
