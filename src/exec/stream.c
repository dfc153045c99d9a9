/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - stores that do not go through caches; plain ones where there are none. */
#include "exec/stream.h"

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>

#define LINE 64u

/* Whole lines at once: a line that is written in parts would be read first. */
static void stream_lines(char *dst, const char *src, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += LINE) {
		const __m128i *from = (const __m128i *)(const void *)(src + i);
		__m128i *to = (__m128i *)(void *)(dst + i);
		__m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
		__m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);

		_mm_stream_si128(to, a);
		_mm_stream_si128(to + 1, b);
		_mm_stream_si128(to + 2, c);
		_mm_stream_si128(to + 3, d);
	}
}

void hk__stream(void *dst, const void *src, size_t bytes)
{
	size_t head = (LINE - (uintptr_t)dst % LINE) % LINE;

	if (bytes < head + LINE) {
		if (bytes)
			memcpy(dst, src, bytes);
		return;
	}
	size_t whole = (bytes - head) / LINE * LINE, tail = bytes - head - whole;
	if (head)
		memcpy(dst, src, head);
	stream_lines((char *)dst + head, (const char *)src + head, whole);
	if (tail)
		memcpy((char *)dst + head + whole, (const char *)src + head + whole, tail);
	_mm_sfence(); /* the message is announced after this */
}
#else
void hk__stream(void *dst, const void *src, size_t bytes)
{
	if (bytes)
		memcpy(dst, src, bytes);
}
#endif
