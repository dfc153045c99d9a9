/* SPDX-License-Identifier: Apache-2.0 */
/*
 * set.c - what PEs do together by puts, gets, atomics and waits alone, so that no others
 * take part: active sets, for which no group can be made, and what groups do not offer.
 *
 * A barrier takes log2(n) rounds. In round k each PE adds 1 to word k of the PE 2^k after it,
 * and takes 1 from its own once it is there. Only one PE adds to a word, so counts of a next
 * barrier that comes early just wait, and all words are 0 again at the end.
 */
#include "sma.h"

#include <stdlib.h>

struct hk__sma_set hk__sma_set_of_team(const struct shmemx_team *team)
{
	return (struct hk__sma_set){
		.n = team->n,
		.me = team->me,
		.pes = team->pes,
		.sync = team->sync,
		.group = team->group,
	};
}

struct hk__sma_set hk__sma_set_active(int start, int log_stride, int size, long *sync,
				      const char *call)
{
	struct hk__sma_set set = { .sync = sync };
	int64_t stride;

	hk__sma_must_run(call);
	if (start < 0 || log_stride < 0 || log_stride > 30 || size < 1 ||
	    start + ((int64_t)size - 1) * (INT64_C(1) << log_stride) >= (int64_t)hk__sma.n)
		hk__sma_die(call, "no active set: PE %d on, stride 2^%d, %d PEs of %u", start,
			    log_stride, size, hk__sma.n);
	stride = INT64_C(1) << log_stride;
	set.n = (uint32_t)size;
	set.start = (uint32_t)start;
	set.stride = (uint32_t)stride;
	set.me = (hk__sma.me - set.start) / set.stride;
	if (hk__sma.me < set.start || (hk__sma.me - set.start) % set.stride != 0 || set.me >= set.n)
		hk__sma_die(call, "this PE is not in the active set: PE %d on, stride %lld, %d PEs",
			    start, (long long)stride, size);
	return set;
}

void hk__sma_set_barrier(const struct hk__sma_set *set, const char *call)
{
	if (!set->sync) {
		enum hk_status status = hk_barrier(set->group, NULL);

		if (status != HK_OK)
			hk__sma_fail(call, set->group, status);
		return;
	}
	/* Stores of this PE before, its loads after: the atomics order both. */
	for (uint32_t k = 0; (UINT32_C(1) << k) < set->n; k++) {
		long *word = &set->sync[k];
		uint32_t to = (set->me + (UINT32_C(1) << k)) % set->n;
		const struct hk__sma_word come = { word, sizeof(long), true, SHMEM_CMP_GE, 1 };

		(void)hk__sma_amo(SHMEM_CTX_DEFAULT, word, hk__sma_set_pe(set, to), HK_AMO_ADD, 8,
				  1, 0, false, call);
		hk__sma_wait(&come, call);
		(void)hk__sma_amo(SHMEM_CTX_DEFAULT, word, (int)hk__sma.me, HK_AMO_ADD, 8,
				  (uint64_t)-1, 0, true, call);
	}
}

#define FOLD_BYTES ((size_t)64 << 10) /* of a source, at a time */

struct folder {
	char *acc;
	char *from; /* a far source's part */
	const char *source;
	size_t count;
	size_t size;
	hk__sma_fold *fold;
};

static void fold_one(struct folder *folder, int pe, bool first, const char *call)
{
	struct hk__sma_at at = { 0 };
	size_t step = FOLD_BYTES / folder->size;

	hk__sma_find(&at, SHMEM_CTX_DEFAULT, folder->source, folder->count * folder->size, pe,
		     call);
	for (size_t i = 0; i < folder->count; i += step) {
		size_t n = folder->count - i < step ? folder->count - i : step;
		size_t offset = i * folder->size;
		const char *in = at.near ? at.near + offset : folder->from;

		if (!at.near)
			hk__sma_must(call, hk_get(at.space->win, at.pe, at.offset + offset,
						  folder->from, n * folder->size, at.ctx));
		if (first)
			memcpy(folder->acc + offset, in, n * folder->size);
		else
			folder->fold(folder->acc + offset, in, n);
	}
}

/*
 * All fold in the same order, so all get the same bits. dest may be the source: it is
 * written after a barrier, when nobody reads it.
 */
void hk__sma_set_fold(const struct hk__sma_set *set, void *dest, const void *source, size_t count,
		      size_t size, uint32_t to, hk__sma_fold *fold, const char *call)
{
	struct folder folder = {
		.source = source,
		.count = count,
		.size = size,
		.fold = fold,
	};
	size_t bytes = count * size;

	folder.acc = calloc(count ? count : 1, size);
	folder.from = malloc(FOLD_BYTES);
	if (!folder.acc || !folder.from)
		hk__sma_die(call, "no memory for %zu bytes", bytes);
	hk__sma_set_barrier(set, call);
	for (uint32_t i = 0; i < to && count > 0; i++)
		fold_one(&folder, hk__sma_set_pe(set, i), i == 0, call);
	hk__sma_set_barrier(set, call);
	if (bytes > 0)
		memcpy(dest, folder.acc, bytes);
	free(folder.acc);
	free(folder.from);
}
