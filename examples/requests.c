/* SPDX-License-Identifier: Apache-2.0 */
/* requests.c - two sums under way; poll(2) tells when one is over. */
#include <hocket/hocket.h>

#include <poll.h>

#define SUMS 2
#define COUNT 100000

static float values[SUMS][COUNT];

static enum hk_status sum_start(struct hk_group *group, int i,
				struct hk_request **request,
				struct pollfd *polled)
{
	struct hk_opts opts = HK_OPTS_INIT;
	enum hk_status status;

	for (int k = 0; k < COUNT; k++)
		values[i][k] = (float)(i + 1);
	opts.request = request;
	status = hk_allreduce(group, values[i], values[i], COUNT,
			      HK_TYPE_FP32, HK_REDOP_SUM, &opts);
	polled->events = POLLIN;
	if (status == HK_OK)
		status = hk_request_fd(*request, &polled->fd);
	return status;
}

/* Looks every 100 ms all the same: deadlines make nothing readable. */
static enum hk_status sums_wait(struct hk_request **requests,
				struct pollfd *polls)
{
	int left = SUMS;

	while (left > 0) {
		poll(polls, SUMS, 100);
		for (int i = 0; i < SUMS; i++) {
			enum hk_status status;

			if (polls[i].fd < 0)
				continue; /* over */
			status = hk_request_test(requests[i]);
			if (status == HK_INPROGRESS)
				continue;
			if (status != HK_OK)
				return status;
			polls[i].fd = -1; /* poll(2) leaves it out */
			left--;
		}
	}
	return HK_OK;
}

int main(void)
{
	struct hk_request *requests[SUMS] = { NULL };
	struct pollfd polls[SUMS] = { 0 };
	enum hk_status status = HK_OK;
	struct hk_group *group;
	struct hk_why why;

	if (hk_group_create(NULL, &why, &group) != HK_OK) {
		fprintf(stderr, "%s\n", why.text);
		return 1;
	}
	for (int i = 0; i < SUMS && status == HK_OK; i++)
		status = sum_start(group, i, &requests[i], &polls[i]);
	if (status == HK_OK)
		status = sums_wait(requests, polls);
	if (status != HK_OK)
		fprintf(stderr, "%s\n", hk_group_why(group));
	else if (hk_group_rank(group) == 0)
		printf("%u ranks: %g and %g\n", hk_group_size(group),
		       values[0][0], values[1][COUNT - 1]);
	for (int i = 0; i < SUMS; i++)
		hk_request_free(requests[i]);
	hk_group_free(group);
	return status != HK_OK;
}
