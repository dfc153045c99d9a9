/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - streams: a thread each, which performs one piece of work after the other. */
#include "gpu/driver/driver.h"

#include <stdlib.h>

#define NON_BLOCKING 1u

struct stream *streams;
pthread_cond_t driver_moved = PTHREAD_COND_INITIALIZER;

/* ---- work ---- */

struct work *work_new(void (*run)(const struct work *work), void (*drop)(struct work *work),
		      size_t bytes)
{
	struct work *work = driver_alloc(sizeof(*work) + bytes);

	*work = (struct work){ .refs = 1, .run = run, .drop = drop };
	return work;
}

void work_put(struct work *work)
{
	if (--work->refs)
		return;
	if (work->drop)
		work->drop(work);
	free(work);
}

/* ---- a stream ---- */

struct item {
	struct work *work;
	struct item *next;
};

void stream_get(struct stream *stream)
{
	stream->refs++;
}

void stream_put(struct stream *stream)
{
	if (--stream->refs)
		return;
	pthread_cond_destroy(&stream->come);
	nodes_free(&stream->last);
	free(stream);
}

static void stream_run(void *arg)
{
	struct stream *stream = arg, **link = &streams;

	pthread_mutex_lock(&driver_lock);
	for (;;) {
		while (!stream->head && !stream->closing)
			pthread_cond_wait(&stream->come, &driver_lock);
		struct item *item = stream->head;
		if (!item)
			break;
		stream->head = item->next;
		if (!stream->head)
			stream->tail = &stream->head;
		pthread_mutex_unlock(&driver_lock);
		item->work->run(item->work);
		pthread_mutex_lock(&driver_lock);
		work_put(item->work);
		free(item);
		stream->done++;
		pthread_cond_broadcast(&driver_moved);
	}
	while (*link != stream)
		link = &(*link)->next;
	*link = stream->next;
	stream_put(stream);
	pthread_mutex_unlock(&driver_lock);
}

static struct stream *stream_new(struct context *context, unsigned flags, int priority)
{
	struct stream *stream = driver_alloc(sizeof(*stream));

	*stream = (struct stream){ .refs = 1, /* until its thread ends */
				   .context = context,
				   .flags = flags,
				   .priority = priority,
				   .tail = &stream->head,
				   .next = streams };
	pthread_cond_init(&stream->come, NULL);
	streams = stream;
	pool_start(stream_run, stream);
	return stream;
}

CU(cuStreamCreateWithPriority, (void **stream, unsigned flags, int priority))
{
	struct context *context;
	int error = context_current(&context);

	if (error || flags > NON_BLOCKING)
		return error ? error : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver_lock);
	*stream = stream_new(context, flags, priority);
	pthread_mutex_unlock(&driver_lock);
	return CUDA_SUCCESS;
}

CU(cuStreamCreate, (void **stream, unsigned flags))
{
	return cuStreamCreateWithPriority(stream, flags, 0);
}

int stream_find(void *handle, struct stream **stream_out)
{
	struct context *context;

	*stream_out = NULL;
	/* 1 is the legacy default stream by another name; 2, one for each thread, is none here. */
	if (!handle || handle == (void *)1) {
		int error = context_locked(&context);

		if (error)
			return error;
		if (!context->legacy)
			context->legacy = stream_new(context, 0, 0);
		*stream_out = context->legacy;
		return CUDA_SUCCESS;
	}
	for (struct stream *stream = streams; stream; stream = stream->next) {
		if (stream == handle && !stream->closing)
			*stream_out = stream;
	}
	if (!*stream_out)
		return handle == (void *)2 ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_HANDLE;
	return (*stream_out)->context->retained ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

/* It ends when it has done what it was given. */
CU(cuStreamDestroy_v2, (void *handle))
{
	struct stream *stream;
	int error = driver_enter();

	if (error || !handle)
		return error ? error : CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&driver_lock);
	error = stream_find(handle, &stream);
	if (!error && stream == stream->context->legacy)
		error = CUDA_ERROR_INVALID_HANDLE;
	if (!error) {
		if (stream->capture)
			capture_break(stream->capture);
		stream->closing = true;
		pthread_cond_signal(&stream->come);
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}

/* ---- submitting ---- */

static void stream_push(struct stream *stream, struct work *work)
{
	struct item *item = driver_alloc(sizeof(*item));

	item->work = work;
	*stream->tail = item;
	stream->tail = &item->next;
	stream->queued++;
	pthread_cond_signal(&stream->come);
}

static void follow_run(const struct work *work)
{
	pthread_mutex_lock(&driver_lock);
	mark_wait((const struct mark *)work->data);
	pthread_mutex_unlock(&driver_lock);
}

static void follow_drop(struct work *work)
{
	mark_put((struct mark *)work->data);
}

static void stream_push_follow(struct stream *stream, const struct mark *mark)
{
	struct work *work = work_new(follow_run, follow_drop, sizeof(*mark));

	stream_get(mark->stream);
	*(struct mark *)work->data = *mark;
	stream_push(stream, work);
}

int stream_follow(struct stream *stream, const struct mark *mark)
{
	if (mark->stream && mark->stream != stream && !mark_reached(mark))
		stream_push_follow(stream, mark);
	return CUDA_SUCCESS;
}

static void stream_follow_all(struct stream *stream, struct stream *before)
{
	struct mark mark = stream_mark(before);

	(void)stream_follow(stream, &mark);
	mark_put(&mark);
}

/* The legacy default stream and those that block follow each other. */
static int stream_legacy(struct stream *stream)
{
	struct context *context = stream->context;

	if (stream != context->legacy) {
		if (context->legacy && !(stream->flags & NON_BLOCKING))
			stream_follow_all(stream, context->legacy);
		return CUDA_SUCCESS;
	}
	int error = capture_allows_legacy(context);
	for (struct stream *other = streams; other && !error; other = other->next) {
		if (other != stream && other->context == context && !(other->flags & NON_BLOCKING))
			stream_follow_all(stream, other);
	}
	return error;
}

int stream_submit(struct stream *stream, struct work *work)
{
	int error;

	if (stream->capture)
		return capture_add(stream, work);
	error = stream_legacy(stream);
	if (error)
		work_put(work);
	else
		stream_push(stream, work);
	return error;
}

/* ---- waiting ---- */

struct mark stream_mark(struct stream *stream)
{
	stream_get(stream);
	return (struct mark){ stream, stream->queued };
}

bool mark_reached(const struct mark *mark)
{
	return !mark->stream || mark->stream->done >= mark->ticket;
}

void mark_wait(const struct mark *mark)
{
	while (!mark_reached(mark))
		pthread_cond_wait(&driver_moved, &driver_lock);
}

void mark_put(struct mark *mark)
{
	if (mark->stream)
		stream_put(mark->stream);
	mark->stream = NULL;
}

static const struct stream *stream_behind(const struct context *context)
{
	for (const struct stream *stream = streams; stream; stream = stream->next) {
		if (stream->context == context && stream->done < stream->queued)
			return stream;
	}
	return NULL;
}

void context_wait(const struct context *context)
{
	while (stream_behind(context))
		pthread_cond_wait(&driver_moved, &driver_lock);
}

/* A stream that captures can be neither waited for nor asked. */
static int stream_ready(void *handle, struct stream **stream_out)
{
	int error = stream_find(handle, stream_out);

	if (!error && (*stream_out)->capture) {
		capture_break((*stream_out)->capture);
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	if (!error && *stream_out == (*stream_out)->context->legacy)
		error = capture_allows_legacy((*stream_out)->context);
	return error ? error : capture_allows();
}

/* For the legacy default stream also what it would follow. */
static struct mark stream_mark_all(struct stream *stream)
{
	if (stream == stream->context->legacy)
		(void)stream_legacy(stream);
	return stream_mark(stream);
}

CU(cuStreamSynchronize, (void *handle))
{
	struct stream *stream;
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	error = stream_ready(handle, &stream);
	if (!error) {
		struct mark mark = stream_mark_all(stream);

		mark_wait(&mark);
		mark_put(&mark);
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuStreamQuery, (void *handle))
{
	struct stream *stream;
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	error = stream_ready(handle, &stream);
	if (!error) {
		struct mark mark = stream_mark_all(stream);

		error = mark_reached(&mark) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
		mark_put(&mark);
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}

/* ---- what a stream is ---- */

/* Calls `find` with the stream, under the lock. */
static int stream_ask(void *handle, void (*find)(const struct stream *stream, void *value),
		      void *value)
{
	struct stream *stream;
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	error = stream_find(handle, &stream);
	if (!error)
		find(stream, value);
	pthread_mutex_unlock(&driver_lock);
	return error;
}

static void find_flags(const struct stream *stream, void *value)
{
	*(unsigned *)value = stream->flags;
}

static void find_priority(const struct stream *stream, void *value)
{
	*(int *)value = stream->priority;
}

static void find_context(const struct stream *stream, void *value)
{
	*(struct context **)value = stream->context;
}

static void find_device(const struct stream *stream, void *value)
{
	*(int *)value = stream->context->device;
}

CU(cuStreamGetFlags, (void *handle, unsigned *flags))
{
	return stream_ask(handle, find_flags, flags);
}

CU(cuStreamGetPriority, (void *handle, int *priority))
{
	return stream_ask(handle, find_priority, priority);
}

CU(cuStreamGetCtx, (void *handle, struct context **context))
{
	return stream_ask(handle, find_context, context);
}

CU(cuStreamGetDevice, (void *handle, int *device))
{
	return stream_ask(handle, find_device, device);
}

/* ---- functions of the program ---- */

struct host_func {
	void (*run)(void *arg);
	void *arg;
};

static void host_func_run(const struct work *work)
{
	const struct host_func *func = (const struct host_func *)work->data;

	driver_in_callback = true;
	func->run(func->arg);
	driver_in_callback = false;
}

CU(cuLaunchHostFunc, (void *handle, void (*run)(void *arg), void *arg))
{
	struct stream *stream;
	int error = driver_enter();

	if (error || !run)
		return error ? error : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver_lock);
	error = stream_find(handle, &stream);
	if (!error) {
		struct work *work = work_new(host_func_run, NULL, sizeof(struct host_func));

		*(struct host_func *)work->data = (struct host_func){ run, arg };
		error = stream_submit(stream, work);
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}
