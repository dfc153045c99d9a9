/* SPDX-License-Identifier: Apache-2.0 */
/* event.c - events: how far a stream was, when it got there, or where in a graph. */
#include "gpu/driver/driver.h"

#include "base/base.h"

#include <stdlib.h>

#define NO_TIMING 2u

static struct event *events; /* all that were not destroyed */

static void event_put(struct event *event)
{
	if (--event->refs)
		return;
	mark_put(&event->mark);
	nodes_free(&event->nodes);
	free(event);
}

static int event_find(const void *handle, struct event **event_out)
{
	for (struct event *event = events; event; event = event->next) {
		if (event == handle) {
			*event_out = event;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_HANDLE;
}

CU(cuEventCreate, (void **handle, unsigned flags))
{
	struct context *context;
	int error = context_current(&context);

	/* 4: for other processes, which there are none of. */
	if (error || flags > 3)
		return error ? error : CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&driver_lock);
	struct event *event = driver_alloc(sizeof(*event));
	*event = (struct event){ .refs = 1, .flags = flags, .next = events };
	events = event;
	*handle = event;
	pthread_mutex_unlock(&driver_lock);
	return CUDA_SUCCESS;
}

CU(cuEventDestroy_v2, (void *handle))
{
	struct event *event, **link = &events;
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	error = event_find(handle, &event);
	if (!error) {
		while (*link != event)
			link = &(*link)->next;
		*link = event->next;
		event_put(event);
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}

/* When the stream gets there. */
static void reach_run(const struct work *work)
{
	struct event *event = work->data[0];

	pthread_mutex_lock(&driver_lock);
	event->reached_ns = hk__now_ns();
	pthread_mutex_unlock(&driver_lock);
}

static void reach_drop(struct work *work)
{
	event_put(work->data[0]);
}

static int event_record(struct event *event, struct stream *stream)
{
	if (stream->capture)
		return capture_record(stream, event);
	struct work *work = work_new(reach_run, reach_drop, sizeof(void *));
	event->refs++;
	work->data[0] = event;
	int error = stream_submit(stream, work);
	if (error)
		return error;
	mark_put(&event->mark);
	event->mark = stream_mark(stream);
	event->recorded = true;
	event->captured = 0;
	return CUDA_SUCCESS;
}

CU(cuEventRecord, (void *handle, void *at))
{
	struct stream *stream;
	struct event *event;
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	error = event_find(handle, &event);
	if (!error)
		error = stream_find(at, &stream);
	if (!error)
		error = event_record(event, stream);
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuEventRecordWithFlags, (void *handle, void *at, unsigned flags))
{
	return flags > 1 ? CUDA_ERROR_INVALID_VALUE : cuEventRecord(handle, at);
}

CU(cuStreamWaitEvent, (void *at, void *handle, unsigned flags))
{
	struct stream *stream;
	struct event *event;
	int error = driver_enter();

	if (error || flags > 1)
		return error ? error : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver_lock);
	error = event_find(handle, &event);
	if (!error)
		error = stream_find(at, &stream);
	if (!error)
		error = event->captured || stream->capture ? capture_follow(stream, event)
							   : stream_follow(stream, &event->mark);
	pthread_mutex_unlock(&driver_lock);
	return error;
}

/* One that may be waited for. */
static int event_ready(const void *handle, struct event **event_out)
{
	int error = event_find(handle, event_out);

	if (!error && (*event_out)->captured)
		error = CUDA_ERROR_CAPTURED_EVENT;
	return error ? error : capture_allows();
}

CU(cuEventSynchronize, (void *handle))
{
	struct event *event;
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	error = event_ready(handle, &event);
	if (!error && event->mark.stream) {
		struct mark mark = event->mark;

		stream_get(mark.stream);
		mark_wait(&mark);
		mark_put(&mark);
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuEventQuery, (void *handle))
{
	struct event *event;
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	error = event_ready(handle, &event);
	if (!error && !mark_reached(&event->mark))
		error = CUDA_ERROR_NOT_READY;
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuEventElapsedTime_v2, (float *ms, void *from, void *to))
{
	struct event *first, *last;
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	error = event_find(from, &first);
	if (!error)
		error = event_find(to, &last);
	if (!error && (!first->recorded || !last->recorded || (first->flags & NO_TIMING) ||
		       (last->flags & NO_TIMING)))
		error = CUDA_ERROR_INVALID_HANDLE;
	if (!error && (!mark_reached(&first->mark) || !mark_reached(&last->mark)))
		error = CUDA_ERROR_NOT_READY;
	if (!error)
		*ms = (float)((double)last->reached_ns - (double)first->reached_ns) / 1e6f;
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuEventElapsedTime, (float *ms, void *from, void *to))
{
	return cuEventElapsedTime_v2(ms, from, to);
}
