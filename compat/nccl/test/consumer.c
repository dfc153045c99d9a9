/* SPDX-License-Identifier: Apache-2.0 */
/* consumer.c - a program for NCCL: its version, and 5 summed over one rank. */
#include <nccl.h>

#include <stdio.h>

#ifdef LOAD
#include <dlfcn.h>
#define FUNCTION(name) ((__typeof__(&nccl##name))dlsym(library, "nccl" #name))
#else
#define FUNCTION(name) nccl##name
#endif

int main(int argc, char **argv)
{
	int version = 0, five = 5, sum = 0;
	ncclComm_t comm;

	(void)argc, (void)argv;
#ifdef LOAD
	void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		printf("%s\n", dlerror());
		return 1;
	}
#endif
	if (FUNCTION(GetVersion)(&version) != ncclSuccess ||
	    FUNCTION(CommInitAll)(&comm, 1, NULL) != ncclSuccess ||
	    FUNCTION(AllReduce)(&five, &sum, 1, ncclInt, ncclSum, comm, NULL) != ncclSuccess ||
	    FUNCTION(CommDestroy)(comm) != ncclSuccess)
		return 1;
	printf("%d: %d\n", version, sum);
	return 0;
}
