/* SPDX-License-Identifier: Apache-2.0 */
/* RMA: single elements of several types. */
#include "example.h"

static char c;
static long double ld;
static short s;
static uint8_t u8;

int main(void)
{
	int me, n, next, before;

	shmem_init();
	me = shmem_my_pe();
	n = shmem_n_pes();
	next = (me + 1) % n;
	before = (me + n - 1) % n;
	shmem_p(&c, (char)('a' + me), next);
	shmem_p(&ld, me + 0.25L, next);
	shmem_p(&s, (short)-me, next);
	shmem_p(&u8, (uint8_t)(255 - me), next);
	shmem_barrier_all();
	CHECK(c == 'a' + before && ld == before + 0.25L && s == -before && u8 == 255 - before);
	CHECK(shmem_g(&ld, next) == me + 0.25L && shmem_g(&s, next) == -me);
	shmem_barrier_all();
	shmem_finalize();
	return 0;
}
