/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work.h - operations at random whose results are known: what a rank does until
 * something befalls it.
 */
#ifndef HK_TEST_KILL_WORK_H
#define HK_TEST_KILL_WORK_H

#include <hocket/hocket.h>

#define WORK_COUNT_MAX (UINT64_C(1) << 18) /* elements of a buffer, of four bytes */
#define WORK_BYTES (WORK_COUNT_MAX * 4)

struct work {
	struct hk_group *group;
	uint32_t rank, n; /* of it */
	uint64_t seed;	  /* the same on all ranks */
	uint32_t *in, *out; /* WORK_BYTES each */
};

/*
 * One operation, the same on all ranks for the same number. Its status; *wrong_out
 * says what was wrong about its result, NULL: nothing.
 */
enum hk_status work_do(struct work *work, uint64_t number, const char **wrong_out);

#endif
