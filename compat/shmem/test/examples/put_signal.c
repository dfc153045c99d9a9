/* SPDX-License-Identifier: Apache-2.0 */
/* Signals: a ring; who sees the signal sees the data. */
#include "example.h"

enum {
	LEN = 1000,
	ROUNDS = 20
};
static int data[LEN];
static uint64_t signal_word, ack;

int main(void)
{
	int mine[LEN];
	int me, n, next, before;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	next = (me + 1) % n;
	before = (me + n - 1) % n;
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		for (int i = 0; i < LEN; i++)
			mine[i] = (int)round * 10000 + me;
		if (round % 2)
			shmem_put_signal(data, mine, LEN, &signal_word, round, SHMEM_SIGNAL_SET,
					 next);
		else
			shmem_put_signal_nbi(data, mine, LEN, &signal_word, 1, SHMEM_SIGNAL_ADD,
					     next);
		CHECK(shmem_signal_wait_until(&signal_word, SHMEM_CMP_GE, round) == round);
		for (int i = 0; i < LEN; i++)
			CHECK(data[i] == (int)round * 10000 + before);
		shmem_quiet();
		shmem_signal_add(&ack, 1, before);
		shmem_signal_wait_until(&ack, SHMEM_CMP_GE, round);
	}
	CHECK(shmem_signal_fetch(&ack) == ROUNDS);
	shmem_finalize();
	return 0;
}
