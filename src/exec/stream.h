/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.h - a copy past the caches. A core that is far away reads a line from
 * memory several times faster than from the cache of who wrote it last.
 */
#ifndef HK_EXEC_STREAM_H
#define HK_EXEC_STREAM_H

#include <stddef.h>

/* As memcpy; all of it is in memory when this returns. bytes may be 0. */
void hk__stream(void *dst, const void *src, size_t bytes);

#endif
