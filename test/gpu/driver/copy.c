/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c - copies, bytes that are set, and words that streams write and wait for. */
#include "gpu/driver/driver.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOKS 64
#define PAUSE_NS 20000

static void *pointer(cu_ptr at)
{
	return (void *)(uintptr_t)at;
}

/* ---- copies ---- */

enum side {
	SIDE_ANY,
	SIDE_DEVICE,
	SIDE_HOST
};

struct copy {
	void *to;
	const void *from;
	size_t bytes;
};

static void copy_run(const struct work *work)
{
	const struct copy *copy = (const struct copy *)work->data;

	memmove(copy->to, copy->from, copy->bytes);
}

/* Device memory is all of one piece; what else may be is the program's own. */
static bool side_is(enum side side, const void *at, size_t bytes)
{
	const struct range *range = range_find(at, 1);

	if (range && !range_find(at, bytes))
		return false;
	return side == SIDE_ANY || range_on_device(range) == (side == SIDE_DEVICE);
}

static bool is_pageable(const void *at)
{
	return !range_find(at, 1);
}

/* From memory that can be paged: as it is now. */
static struct work *copy_new(const struct copy *copy, bool now)
{
	struct work *work = work_new(copy_run, NULL, sizeof(*copy) + (now ? copy->bytes : 0));
	struct copy *kept = (struct copy *)work->data;

	*kept = *copy;
	if (now)
		kept->from = memcpy(kept + 1, copy->from, copy->bytes);
	return work;
}

/* From one side to the other; waits if it is to, or if a GPU would. */
static int copy_submit(const struct copy *copy, enum side to, enum side from, void *at, bool waits)
{
	struct stream *stream;
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	error = stream_find(at, &stream);
	if (!error && waits)
		error = capture_allows();
	if (!error && copy->bytes &&
	    (!side_is(to, copy->to, copy->bytes) || !side_is(from, copy->from, copy->bytes)))
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error && copy->bytes) {
		bool now = is_pageable(copy->from) && !stream->capture;

		waits |= is_pageable(copy->to) && !stream->capture;
		error = stream_submit(stream, copy_new(copy, now));
		if (!error && waits) {
			struct mark mark = stream_mark(stream);

			mark_wait(&mark);
			mark_put(&mark);
		}
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuMemcpyHtoDAsync_v2, (cu_ptr to, const void *from, size_t bytes, void *stream))
{
	struct copy copy = { pointer(to), from, bytes };

	return copy_submit(&copy, SIDE_DEVICE, SIDE_HOST, stream, false);
}

CU(cuMemcpyDtoHAsync_v2, (void *to, cu_ptr from, size_t bytes, void *stream))
{
	struct copy copy = { to, pointer(from), bytes };

	return copy_submit(&copy, SIDE_HOST, SIDE_DEVICE, stream, false);
}

CU(cuMemcpyDtoDAsync_v2, (cu_ptr to, cu_ptr from, size_t bytes, void *stream))
{
	struct copy copy = { pointer(to), pointer(from), bytes };

	return copy_submit(&copy, SIDE_DEVICE, SIDE_DEVICE, stream, false);
}

CU(cuMemcpyAsync, (cu_ptr to, cu_ptr from, size_t bytes, void *stream))
{
	struct copy copy = { pointer(to), pointer(from), bytes };

	return copy_submit(&copy, SIDE_ANY, SIDE_ANY, stream, false);
}

CU(cuMemcpyPeerAsync, (cu_ptr to, struct context *there, cu_ptr from, struct context *here,
		       size_t bytes, void *stream))
{
	(void)there;
	(void)here;
	return cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}

CU(cuMemcpyHtoD_v2, (cu_ptr to, const void *from, size_t bytes))
{
	struct copy copy = { pointer(to), from, bytes };

	return copy_submit(&copy, SIDE_DEVICE, SIDE_HOST, NULL, true);
}

CU(cuMemcpyDtoH_v2, (void *to, cu_ptr from, size_t bytes))
{
	struct copy copy = { to, pointer(from), bytes };

	return copy_submit(&copy, SIDE_HOST, SIDE_DEVICE, NULL, true);
}

/* Inside the device nobody is waited for. */
CU(cuMemcpyDtoD_v2, (cu_ptr to, cu_ptr from, size_t bytes))
{
	return cuMemcpyDtoDAsync_v2(to, from, bytes, NULL);
}

CU(cuMemcpy, (cu_ptr to, cu_ptr from, size_t bytes))
{
	struct copy copy = { pointer(to), pointer(from), bytes };

	return copy_submit(&copy, SIDE_ANY, SIDE_ANY, NULL, true);
}

/* ---- setting ---- */

struct fill {
	char *at;
	size_t count, size;
	uint32_t value;
};

static void fill_run(const struct work *work)
{
	const struct fill *fill = (const struct fill *)work->data;

	if (fill->size == 1)
		memset(fill->at, (int)fill->value, fill->count);
	for (size_t i = 0; fill->size != 1 && i < fill->count; i++)
		memcpy(fill->at + i * fill->size, &fill->value, fill->size);
}

static int fill_submit(const struct fill *fill, void *at)
{
	struct stream *stream;
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	error = stream_find(at, &stream);
	if (!error && fill->count &&
	    (!range_find(fill->at, fill->count * fill->size) || (uintptr_t)fill->at % fill->size))
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error && fill->count) {
		struct work *work = work_new(fill_run, NULL, sizeof(*fill));

		*(struct fill *)work->data = *fill;
		error = stream_submit(stream, work);
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuMemsetD8Async, (cu_ptr at, unsigned char byte, size_t count, void *stream))
{
	struct fill fill = { pointer(at), count, 1, byte };

	return fill_submit(&fill, stream);
}

CU(cuMemsetD16Async, (cu_ptr at, unsigned short half, size_t count, void *stream))
{
	struct fill fill = { pointer(at), count, 2, half };

	return fill_submit(&fill, stream);
}

CU(cuMemsetD32Async, (cu_ptr at, unsigned word, size_t count, void *stream))
{
	struct fill fill = { pointer(at), count, 4, word };

	return fill_submit(&fill, stream);
}

CU(cuMemsetD8_v2, (cu_ptr at, unsigned char byte, size_t count))
{
	return cuMemsetD8Async(at, byte, count, NULL);
}

CU(cuMemsetD32_v2, (cu_ptr at, unsigned word, size_t count))
{
	return cuMemsetD32Async(at, word, count, NULL);
}

/* ---- words ---- */

enum word_deed {
	WORD_GEQ,
	WORD_EQ,
	WORD_AND,
	WORD_NOR,
	WORD_WRITE
};

struct word {
	void *at;
	uint64_t value;
	bool wide;
	unsigned deed;
};

static bool word_holds(const struct word *word)
{
	uint64_t now = word->wide ? __atomic_load_n((uint64_t *)word->at, __ATOMIC_ACQUIRE)
				  : __atomic_load_n((uint32_t *)word->at, __ATOMIC_ACQUIRE);
	uint64_t all = word->wide ? UINT64_MAX : UINT32_MAX;

	switch (word->deed) {
	case WORD_GEQ: /* modulo its size */
		return word->wide ? (int64_t)(now - word->value) >= 0
				  : (int32_t)(uint32_t)(now - word->value) >= 0;
	case WORD_EQ:
		return now == word->value;
	case WORD_AND:
		return now & word->value;
	default:
		return ~(now | word->value) & all;
	}
}

static void word_run(const struct work *work)
{
	const struct word *word = (const struct word *)work->data;
	struct timespec pause = { 0, PAUSE_NS };

	if (word->deed == WORD_WRITE && word->wide)
		__atomic_store_n((uint64_t *)word->at, word->value, __ATOMIC_RELEASE);
	else if (word->deed == WORD_WRITE)
		__atomic_store_n((uint32_t *)word->at, (uint32_t)word->value, __ATOMIC_RELEASE);
	for (int looks = 0; word->deed != WORD_WRITE && !word_holds(word); looks++) {
		if (looks > LOOKS)
			nanosleep(&pause, NULL);
	}
}

static int word_submit(const struct word *word, void *at, unsigned flags)
{
	size_t size = word->wide ? 8 : 4;
	struct stream *stream;
	int error = driver_enter();

	if (error || flags > (word->deed == WORD_WRITE ? 1 : 3))
		return error ? error : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver_lock);
	error = stream_find(at, &stream);
	if (!error && (!range_find(word->at, size) || (uintptr_t)word->at % size))
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error) {
		struct work *work = work_new(word_run, NULL, sizeof(*word));

		*(struct word *)work->data = *word;
		error = stream_submit(stream, work);
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuStreamWriteValue32_v2, (void *stream, cu_ptr at, uint32_t value, unsigned flags))
{
	struct word word = { pointer(at), value, false, WORD_WRITE };

	return word_submit(&word, stream, flags);
}

CU(cuStreamWriteValue64_v2, (void *stream, cu_ptr at, uint64_t value, unsigned flags))
{
	struct word word = { pointer(at), value, true, WORD_WRITE };

	return word_submit(&word, stream, flags);
}

CU(cuStreamWaitValue32_v2, (void *stream, cu_ptr at, uint32_t value, unsigned flags))
{
	struct word word = { pointer(at), value, false, flags };

	return word_submit(&word, stream, flags);
}

CU(cuStreamWaitValue64_v2, (void *stream, cu_ptr at, uint64_t value, unsigned flags))
{
	struct word word = { pointer(at), value, true, flags };

	return word_submit(&word, stream, flags);
}

CU(cuStreamWriteValue32, (void *stream, cu_ptr at, uint32_t value, unsigned flags))
{
	return cuStreamWriteValue32_v2(stream, at, value, flags);
}

CU(cuStreamWriteValue64, (void *stream, cu_ptr at, uint64_t value, unsigned flags))
{
	return cuStreamWriteValue64_v2(stream, at, value, flags);
}

CU(cuStreamWaitValue32, (void *stream, cu_ptr at, uint32_t value, unsigned flags))
{
	return cuStreamWaitValue32_v2(stream, at, value, flags);
}

CU(cuStreamWaitValue64, (void *stream, cu_ptr at, uint64_t value, unsigned flags))
{
	return cuStreamWaitValue64_v2(stream, at, value, flags);
}
