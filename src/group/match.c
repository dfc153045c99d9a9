/* SPDX-License-Identifier: Apache-2.0 */
/*
 * match.c - do all ranks call the same? Before an operation of a checking group
 * the ranks take the minimum of a hash of what each calls, and of the hash's
 * complement: where the two do not fit, ranks differ, and all of them then
 * exchange what they call and say the same sentence. An alltoallv, whose counts
 * no rank knows all of, uses the same exchange to learn the longest block.
 */
#include "group/group.h"

#include <string.h>

bool hk__stage_wanted(const struct hk_request *request)
{
	return request->group->n > 1 && (request->group->check || request->call.in_counts);
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

static uint64_t sig_hash(const struct hk__call_sig *sig)
{
	uint64_t words[sizeof(struct hk__call_sig) / 8], hash = 1;

	_Static_assert(sizeof(struct hk__call_sig) % 8 == 0, "a signature is whole words");
	memcpy(words, sig, sizeof(*sig));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		hash = mix(hash, words[i]);
	return hash;
}

void hk__agree_prepare(struct hk_request *request)
{
	const struct hk__call *call = &request->call;
	struct hk_group *group = request->group;
	uint64_t longest = 0;

	if (call->in_counts) {
		request->sig.counts = 1; /* every rank has its own, but it is no alltoall */
	} else if (call->sizes.counts) {
		request->sig.counts = 1;
		for (uint32_t r = 0; r < group->n; r++)
			request->sig.counts = mix(request->sig.counts, call->sizes.counts[r]);
	}
	for (uint32_t r = 0; call->in_counts && r < group->n; r++)
		longest = call->in_counts[r] > longest ? call->in_counts[r] : longest;
	/* A group that does not check only wants the longest block. */
	request->words[0] = group->check ? sig_hash(&request->sig) : 0;
	request->words[1] = ~request->words[0];
	request->words[2] = ~longest;
}

static void sig_describe(const struct hk__call_sig *sig, struct hk__text *text)
{
	enum hk_coll coll = (enum hk_coll)sig->coll;

	hk__text_add(text, "%s", hk_coll_name(coll));
	if (coll != HK_COLL_BARRIER) {
		if (sig->counts && coll == HK_COLL_ALLTOALL)
			hk__text_add(text, "v(its own counts");
		else if (sig->counts)
			hk__text_add(text, "v(counts #%04x", (unsigned)(sig->counts & 0xffff));
		else
			hk__text_add(text, "(%llu", (unsigned long long)sig->count);
		hk__text_add(text, " x %s", hk_type_name((enum hk_type)sig->type));
		if (hk__coll_reduces(coll))
			hk__text_add(text, ", %s", hk_redop_name((enum hk_redop)sig->op));
		if (hk__coll_rooted(coll))
			hk__text_add(text, ", root %u", sig->root);
		hk__text_add(text, ")");
	}
	if (sig->algo[0])
		hk__text_add(text, " by %.*s", (int)sizeof(sig->algo), sig->algo);
	if (sig->tag)
		hk__text_add(text, " tag %u", sig->tag);
}

/* Ranks that called what rank `first` did: "rank 3", "ranks 0, 1, 2 and 9 more". */
static uint32_t sigs_name_ranks(const struct hk__call_sig *sigs, uint32_t n, uint32_t first,
				struct hk__text *text)
{
	uint32_t count = 0;

	for (uint32_t r = 0; r < n; r++)
		count += memcmp(&sigs[r], &sigs[first], sizeof(sigs[0])) == 0;
	hk__text_add(text, count > 1 ? "ranks" : "rank");
	for (uint32_t r = first, named = 0; r < n && named < 4; r++) {
		if (memcmp(&sigs[r], &sigs[first], sizeof(sigs[0])) == 0)
			hk__text_add(text, "%s %u", named++ ? "," : "", r);
	}
	if (count > 4)
		hk__text_add(text, " and %u more", count - 4);
	return count;
}

/* A peer may write anything: what is no collective, type or operation is none. */
static void sig_tame(struct hk__call_sig *sig)
{
	if (sig->coll >= HK_COLL_COUNT)
		sig->coll = HK_COLL_BARRIER;
	if (sig->type >= HK_TYPE_COUNT)
		sig->type = HK_TYPE_UINT8;
	if (sig->op >= HK_REDOP_COUNT)
		sig->op = HK_REDOP_SUM;
	sig->algo[sizeof(sig->algo) - 1] = '\0';
}

void hk__agree_explain(const struct hk_request *request, struct hk_why *why_out)
{
	struct hk__call_sig *sigs = request->sigs;
	uint32_t n = request->group->n;
	struct hk__text text;

	hk__text_init(&text, why_out->text, sizeof(why_out->text));
	hk__text_add(&text, "operation %llu of the group differs: ",
		     (unsigned long long)request->sig.number);
	for (uint32_t r = 0; r < n; r++)
		sig_tame(&sigs[r]);
	for (uint32_t r = 0; r < n; r++) {
		bool seen = false;

		for (uint32_t s = 0; s < r && !seen; s++)
			seen = memcmp(&sigs[s], &sigs[r], sizeof(sigs[0])) == 0;
		if (seen)
			continue;
		if (r > 0)
			hk__text_add(&text, "; ");
		(void)sigs_name_ranks(sigs, n, r, &text);
		hk__text_add(&text, " called ");
		sig_describe(&sigs[r], &text);
	}
}
