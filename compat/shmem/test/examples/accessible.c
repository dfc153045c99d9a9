/* SPDX-License-Identifier: Apache-2.0 */
/* Setup: which PEs and addresses can be reached. */
#include "example.h"

static int in_statics;

int main(void)
{
	int on_stack;
	int *in_heap;

	shmem_init();
	in_heap = shmem_malloc(sizeof(*in_heap));
	CHECK(!shmem_pe_accessible(-1) && !shmem_pe_accessible(shmem_n_pes()));
	for (int pe = 0; pe < shmem_n_pes(); pe++) {
		CHECK(shmem_pe_accessible(pe));
		CHECK(shmem_addr_accessible(&in_statics, pe));
		CHECK(shmem_addr_accessible(in_heap, pe));
		CHECK(!shmem_addr_accessible(&on_stack, pe));
	}
	shmem_free(in_heap);
	shmem_finalize();
	return 0;
}
