/* SPDX-License-Identifier: Apache-2.0 */
/* theirs.c - a libnccl.so.2 that is another's: version 1, and sums nothing. */
#include <stddef.h>

int ncclGetVersion(int *version);
int ncclCommInitAll(void **comms, int n, const int *devices);
int ncclAllReduce(const void *in, void *out, size_t count, int type, int op, void *comm,
		  void *stream);
int ncclCommDestroy(void *comm);

int ncclGetVersion(int *version)
{
	*version = 1;
	return 0;
}

int ncclCommInitAll(void **comms, int n, const int *devices)
{
	(void)n, (void)devices;
	*comms = NULL;
	return 0;
}

int ncclAllReduce(const void *in, void *out, size_t count, int type, int op, void *comm,
		  void *stream)
{
	(void)in, (void)out, (void)count, (void)type, (void)op, (void)comm, (void)stream;
	return 0;
}

int ncclCommDestroy(void *comm)
{
	(void)comm;
	return 0;
}
