/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.c - to be preloaded: rank 1's allreduce of fp32 goes wrong, as HK_FAULT
 * says: "wrong" spoils its last element, "fail" fails, "die" kills the process.
 */
#include <hocket/hocket.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

typedef enum hk_status allreduce(struct hk_group *group, const void *in, void *out, uint64_t count,
				 enum hk_type type, enum hk_redop op, const struct hk_opts *opts);

enum hk_status hk_allreduce(struct hk_group *group, const void *in, void *out, uint64_t count,
			    enum hk_type type, enum hk_redop op, const struct hk_opts *opts)
{
	const char *fault = getenv("HK_FAULT");
	bool chosen = fault && type == HK_TYPE_FP32 && hk_group_rank(group) == 1;
	void *symbol = dlsym(RTLD_NEXT, "hk_allreduce");
	allreduce *next;

	if (!symbol)
		abort();
	memcpy(&next, &symbol, sizeof(next)); /* a cast would not be ISO C */
	if (chosen && strcmp(fault, "die") == 0)
		raise(SIGKILL);
	if (chosen && strcmp(fault, "fail") == 0)
		return HK_EIO;
	enum hk_status status = next(group, in, out, count, type, op, opts);
	if (chosen && strcmp(fault, "wrong") == 0 && count)
		((unsigned char *)out)[4 * count - 1] ^= 0x80;
	return status;
}
