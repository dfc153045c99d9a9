/* SPDX-License-Identifier: Apache-2.0 */
/* Setup: who am I, and of how many. */
#include "example.h"

int main(void)
{
	int version[2];
	char name[SHMEM_MAX_NAME_LEN];

	shmem_init();
	shmem_info_get_version(&version[0], &version[1]);
	shmem_info_get_name(name);
	CHECK(version[0] == SHMEM_MAJOR_VERSION && version[1] == SHMEM_MINOR_VERSION);
	CHECK(strcmp(name, SHMEM_VENDOR_STRING) == 0);
	CHECK(shmem_my_pe() >= 0 && shmem_my_pe() < shmem_n_pes());
	shmem_finalize();
	return 0;
}
