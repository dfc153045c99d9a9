/* SPDX-License-Identifier: Apache-2.0 */
/* records_text.c - what is said about ranks, put together. */
#include "records.h"
#include "run.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void text_add(struct text *text, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	int len = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (len < 0)
		return;
	text->at = run_grow(text->at, text->len + (size_t)len + 1, 1);
	va_start(args, fmt);
	vsnprintf(text->at + text->len, (size_t)len + 1, fmt, args);
	va_end(args);
	text->len += (size_t)len;
}

void text_fini(struct text *text)
{
	free(text->at);
	*text = (struct text){ 0 };
}

static bool coll_reduces(enum hk_coll coll)
{
	return coll == HK_COLL_ALLREDUCE || coll == HK_COLL_REDUCE || coll == HK_COLL_REDUCESCATTER;
}

void text_add_call(struct text *text, const struct hk_record_op *entry)
{
	enum hk_coll coll = (enum hk_coll)entry->coll;

	if (entry->kind == HK_RECORD_SEND || entry->kind == HK_RECORD_RECV) {
		text_add(text, "%s(%llu bytes, rank %u)",
			 entry->kind == HK_RECORD_SEND ? "send" : "recv",
			 (unsigned long long)entry->count, entry->root);
		return;
	}
	text_add(text, "%s%s", hk_coll_name(coll),
		 coll == HK_COLL_BARRIER ? " (or hk_group_free)" : "");
	if (coll != HK_COLL_BARRIER) {
		if (entry->counts == 1)
			text_add(text, "v(its own counts");
		else if (entry->counts)
			text_add(text, "v(counts #%04x", (unsigned)(entry->counts & 0xffff));
		else
			text_add(text, "(%llu", (unsigned long long)entry->count);
		text_add(text, " x %s", hk_type_name((enum hk_type)entry->type));
		if (coll_reduces(coll))
			text_add(text, ", %s", hk_redop_name((enum hk_redop)entry->op));
		if (cli_is_rooted(coll))
			text_add(text, ", root %u", entry->root);
		text_add(text, ")");
	}
	if (entry->asked)
		text_add(text, " by %s", entry->algo);
	if (entry->tag)
		text_add(text, " tag %u", entry->tag);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

#define RUNS_MAX 6 /* of ranks that follow each other; the rest is counted */

void text_add_ranks(struct text *text, uint32_t *ranks, size_t count)
{
	unsigned runs = 0;

	if (count)
		qsort(ranks, count, sizeof(*ranks), compare);
	text_add(text, count == 1 ? "rank" : "ranks");
	for (size_t i = 0; i < count;) {
		size_t end = i;

		while (end + 1 < count && ranks[end + 1] == ranks[end] + 1)
			end++;
		if (++runs > RUNS_MAX) {
			text_add(text, " and %zu more", count - i);
			return;
		}
		const char *before = i == 0 ? "" : end + 1 == count ? " and" : ",";
		if (end > i + 1)
			text_add(text, "%s %u to %u", before, ranks[i], ranks[end]);
		else if (end > i)
			text_add(text, i == 0 && end + 1 == count ? "%s %u and %u" : "%s %u, %u",
				 i == 0 ? before : ",", ranks[i], ranks[end]);
		else
			text_add(text, "%s %u", before, ranks[i]);
		i = end + 1;
	}
}

void text_add_time(struct text *text, double seconds)
{
	if (seconds < 0)
		text_add(text, "-");
	else if (seconds < 0.01)
		text_add(text, "%.2g ms", seconds * 1e3);
	else if (seconds < 100)
		text_add(text, "%.3g s", seconds);
	else if (seconds < 6000)
		text_add(text, "%.0f min", seconds / 60);
	else
		text_add(text, "%.1f h", seconds / 3600);
}
