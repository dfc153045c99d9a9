/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - capturing, and replaying.
 *
 * A graph is a row of nodes, each with the earlier ones that it follows. A stream
 * that captures knows the nodes that the next one is to follow; an event recorded
 * there takes them to other streams, which are part of the capture from then on.
 */
#include "gpu/driver/driver.h"

#include <stdlib.h>
#include <string.h>

struct node {
	struct work *work; /* NULL: nothing to do */
	struct nodes after;
};

struct graph {
	uint32_t refs; /* executable ones share it: graphs are not changed */
	struct node *nodes;
	size_t count, room;
};

struct capture {
	uint64_t id;
	struct graph *graph;
	struct stream *origin;
	int mode;
	pthread_t thread;
	bool broken;
	struct capture *next;
};

struct exec {
	struct graph *graph;
	struct mark last; /* launches of one follow each other */
	struct exec *next;
};

static struct capture *captures;
static struct exec *execs;
static _Thread_local int thread_mode = CAPTURE_GLOBAL;

/* ---- nodes ---- */

void nodes_free(struct nodes *nodes)
{
	free(nodes->items);
	*nodes = (struct nodes){ NULL, 0 };
}

static void nodes_set(struct nodes *to, const struct nodes *from)
{
	uint32_t *items = driver_alloc(from->count * sizeof(*items));

	if (from->count)
		memcpy(items, from->items, from->count * sizeof(*items));
	free(to->items);
	*to = (struct nodes){ items, from->count };
}

static bool nodes_have(const struct nodes *nodes, uint32_t node)
{
	for (size_t i = 0; i < nodes->count; i++) {
		if (nodes->items[i] == node)
			return true;
	}
	return false;
}

static void nodes_add(struct nodes *nodes, uint32_t node)
{
	uint32_t *items;

	if (nodes_have(nodes, node))
		return;
	items = driver_alloc((nodes->count + 1) * sizeof(*items));
	if (nodes->count)
		memcpy(items, nodes->items, nodes->count * sizeof(*items));
	items[nodes->count] = node;
	free(nodes->items);
	*nodes = (struct nodes){ items, nodes->count + 1 };
}

static void graph_put(struct graph *graph)
{
	if (--graph->refs)
		return;
	for (size_t i = 0; i < graph->count; i++) {
		if (graph->nodes[i].work)
			work_put(graph->nodes[i].work);
		nodes_free(&graph->nodes[i].after);
	}
	free(graph->nodes);
	free(graph);
}

/* ---- capturing ---- */

void capture_break(struct capture *capture)
{
	capture->broken = true;
}

int capture_allows(void)
{
	int error = CUDA_SUCCESS;

	for (struct capture *capture = captures; capture; capture = capture->next) {
		bool own = pthread_equal(capture->thread, pthread_self());
		bool matters =
			own ? capture->mode != CAPTURE_RELAXED
			    : capture->mode == CAPTURE_GLOBAL && thread_mode == CAPTURE_GLOBAL;

		if (thread_mode != CAPTURE_RELAXED && matters) {
			capture_break(capture);
			error = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	}
	return error;
}

int capture_allows_legacy(const struct context *context)
{
	int error = CUDA_SUCCESS;

	for (struct stream *stream = streams; stream; stream = stream->next) {
		if (stream->context == context && stream->capture && !(stream->flags & 1)) {
			capture_break(stream->capture);
			error = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
		}
	}
	return error;
}

int capture_add(struct stream *stream, struct work *work)
{
	struct graph *graph = stream->capture->graph;
	struct nodes next = { NULL, 0 };

	if (stream->capture->broken) {
		work_put(work);
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	}
	if (graph->count == graph->room) {
		size_t room = graph->room ? 2 * graph->room : 16;
		struct node *nodes = driver_alloc(room * sizeof(*nodes));

		if (graph->count)
			memcpy(nodes, graph->nodes, graph->count * sizeof(*nodes));
		free(graph->nodes);
		graph->nodes = nodes;
		graph->room = room;
	}
	graph->nodes[graph->count] = (struct node){ work, stream->last };
	nodes_add(&next, (uint32_t)graph->count++);
	stream->last = next;
	return CUDA_SUCCESS;
}

int capture_record(struct stream *stream, struct event *event)
{
	if (stream->capture->broken)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	nodes_set(&event->nodes, &stream->last);
	event->captured = stream->capture->id;
	return CUDA_SUCCESS;
}

int capture_follow(struct stream *stream, const struct event *event)
{
	struct capture *capture = captures;

	while (capture && capture->id != event->captured)
		capture = capture->next;
	if (stream->capture && stream->capture->broken)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (!event->captured) { /* only the stream captures */
		capture_break(stream->capture);
		return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	}
	if (!capture) /* that has ended */
		return CUDA_ERROR_CAPTURED_EVENT;
	if (stream == stream->context->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	if (stream->capture && stream->capture != capture) {
		capture_break(stream->capture);
		capture_break(capture);
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	stream->capture = capture;
	for (size_t i = 0; i < event->nodes.count; i++)
		nodes_add(&stream->last, event->nodes.items[i]);
	return CUDA_SUCCESS;
}

static struct capture *capture_new(struct stream *stream, int mode)
{
	static uint64_t last_id;
	struct capture *capture = driver_alloc(sizeof(*capture));

	*capture = (struct capture){ .id = ++last_id,
				     .graph = driver_alloc(sizeof(struct graph)),
				     .origin = stream,
				     .mode = mode,
				     .thread = pthread_self(),
				     .next = captures };
	capture->graph->refs = 1;
	captures = capture;
	return capture;
}

CU(cuStreamBeginCapture_v2, (void *handle, int mode))
{
	struct stream *stream;
	int error = driver_enter();

	if (error || mode < CAPTURE_GLOBAL || mode > CAPTURE_RELAXED)
		return error ? error : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver_lock);
	error = stream_find(handle, &stream);
	if (!error && stream == stream->context->legacy)
		error = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	else if (!error && stream->capture)
		error = CUDA_ERROR_INVALID_VALUE;
	if (!error)
		stream->capture = capture_new(stream, mode);
	pthread_mutex_unlock(&driver_lock);
	return error;
}

/* Which nodes come before these, and these themselves. */
static void graph_reach(const struct graph *graph, const struct nodes *nodes, bool *reached)
{
	for (size_t i = 0; i < nodes->count; i++)
		reached[nodes->items[i]] = true;
	for (size_t i = graph->count; i-- > 0;) {
		for (size_t k = 0; k < graph->nodes[i].after.count && reached[i]; k++)
			reached[graph->nodes[i].after.items[k]] = true;
	}
}

/* All that was captured has come back to where the capture began. */
static bool capture_joined(const struct capture *capture)
{
	bool *reached = driver_alloc(capture->graph->count), joined = true;

	graph_reach(capture->graph, &capture->origin->last, reached);
	for (size_t i = 0; i < capture->graph->count; i++)
		joined &= reached[i];
	free(reached);
	return joined;
}

static void capture_end(struct capture *capture)
{
	struct capture **link = &captures;

	for (struct stream *stream = streams; stream; stream = stream->next) {
		if (stream->capture == capture) {
			stream->capture = NULL;
			nodes_free(&stream->last);
		}
	}
	while (*link != capture)
		link = &(*link)->next;
	*link = capture->next;
	free(capture);
}

CU(cuStreamEndCapture, (void *handle, struct graph **graph_out))
{
	struct stream *stream;
	int error = driver_enter();

	if (error)
		return error;
	*graph_out = NULL;
	pthread_mutex_lock(&driver_lock);
	error = stream_find(handle, &stream);
	struct capture *capture = error ? NULL : stream->capture;
	if (!error && !capture)
		error = CUDA_ERROR_INVALID_VALUE;
	else if (!error && capture->origin != stream)
		error = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	else if (!error && capture->mode != CAPTURE_RELAXED &&
		 !pthread_equal(capture->thread, pthread_self()))
		error = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	else if (!error) {
		struct graph *graph = capture->graph;

		if (capture->broken)
			error = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
		else if (!capture_joined(capture))
			error = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
		capture_end(capture);
		if (error)
			graph_put(graph);
		else
			*graph_out = graph;
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuStreamIsCapturing, (void *handle, int *status))
{
	struct stream *stream;
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	error = stream_find(handle, &stream);
	if (!error && stream == stream->context->legacy)
		error = capture_allows_legacy(stream->context);
	if (!error)
		*status = !stream->capture ? 0 : stream->capture->broken ? 2 : 1;
	pthread_mutex_unlock(&driver_lock);
	return error;
}

/* What else could be asked for here, the graph and its nodes, is not handed out. */
CU(cuStreamGetCaptureInfo_v2,
   (void *handle, int *status, uint64_t *id, void **graph, void ***nodes, size_t *nnodes))
{
	struct stream *stream;
	int error = cuStreamIsCapturing(handle, status);

	if (error)
		return error;
	if (graph || nodes || nnodes)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&driver_lock);
	error = stream_find(handle, &stream);
	if (!error && id)
		*id = stream->capture ? stream->capture->id : 0;
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuThreadExchangeStreamCaptureMode, (int *mode))
{
	int before = thread_mode;

	if (*mode < CAPTURE_GLOBAL || *mode > CAPTURE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	thread_mode = *mode;
	*mode = before;
	return driver_enter();
}

/* ---- replaying ---- */

/* One launch of a graph: nodes run as soon as those that they follow are done. */
struct replay {
	const struct graph *graph;
	pthread_mutex_t lock;
	pthread_cond_t over;
	size_t left;
	size_t *missing; /* of each node: those that it still waits for */
};

struct replay_node {
	struct replay *replay;
	size_t node;
};

static void replay_start(struct replay *replay, size_t node);

static void replay_node_run(void *arg)
{
	struct replay_node *one = arg;
	struct replay *replay = one->replay;
	const struct graph *graph = replay->graph;
	const struct work *work = graph->nodes[one->node].work;

	if (work)
		work->run(work);
	pthread_mutex_lock(&replay->lock);
	for (size_t i = one->node + 1; i < graph->count; i++) {
		if (nodes_have(&graph->nodes[i].after, (uint32_t)one->node) &&
		    --replay->missing[i] == 0)
			replay_start(replay, i);
	}
	if (--replay->left == 0)
		pthread_cond_signal(&replay->over);
	pthread_mutex_unlock(&replay->lock);
	free(one);
}

static void replay_start(struct replay *replay, size_t node)
{
	struct replay_node *one = driver_alloc(sizeof(*one));

	*one = (struct replay_node){ replay, node };
	pool_start(replay_node_run, one);
}

static void replay_run(const struct work *work)
{
	const struct graph *graph = work->data[0];
	struct replay replay = { .graph = graph, .left = graph->count };

	pthread_mutex_init(&replay.lock, NULL);
	pthread_cond_init(&replay.over, NULL);
	replay.missing = driver_alloc(graph->count * sizeof(*replay.missing));
	pthread_mutex_lock(&replay.lock);
	for (size_t i = 0; i < graph->count; i++)
		replay.missing[i] = graph->nodes[i].after.count;
	for (size_t i = 0; i < graph->count; i++) {
		if (!graph->nodes[i].after.count)
			replay_start(&replay, i);
	}
	while (replay.left)
		pthread_cond_wait(&replay.over, &replay.lock);
	pthread_mutex_unlock(&replay.lock);
	pthread_cond_destroy(&replay.over);
	pthread_mutex_destroy(&replay.lock);
	free(replay.missing);
}

static void replay_drop(struct work *work)
{
	graph_put(work->data[0]);
}

CU(cuGraphInstantiateWithFlags,
   (struct exec * *exec_out, struct graph *graph, unsigned long long flags))
{
	int error = driver_enter();

	if (error || !graph || flags)
		return error ? error : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver_lock);
	struct exec *exec = driver_alloc(sizeof(*exec));
	graph->refs++;
	*exec = (struct exec){ .graph = graph, .next = execs };
	execs = exec;
	*exec_out = exec;
	pthread_mutex_unlock(&driver_lock);
	return CUDA_SUCCESS;
}

static int exec_find(const void *handle, struct exec **exec_out)
{
	for (struct exec *exec = execs; exec; exec = exec->next) {
		if (exec == handle) {
			*exec_out = exec;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_VALUE;
}

static int exec_launch(struct exec *exec, struct stream *stream)
{
	struct work *work = work_new(replay_run, replay_drop, sizeof(void *));
	bool captured = stream->capture;

	work->data[0] = exec->graph;
	exec->graph->refs++;
	if (!captured)
		(void)stream_follow(stream, &exec->last);
	int error = stream_submit(stream, work);
	if (!error && !captured) {
		mark_put(&exec->last);
		exec->last = stream_mark(stream);
	}
	return error;
}

CU(cuGraphLaunch, (void *handle, void *at))
{
	struct stream *stream;
	struct exec *exec;
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	error = exec_find(handle, &exec);
	if (!error)
		error = stream_find(at, &stream);
	if (!error)
		error = exec_launch(exec, stream);
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuGraphExecDestroy, (void *handle))
{
	struct exec *exec, **link = &execs;
	int error = driver_enter();

	if (error)
		return error;
	pthread_mutex_lock(&driver_lock);
	error = exec_find(handle, &exec);
	if (!error) {
		while (*link != exec)
			link = &(*link)->next;
		*link = exec->next;
		mark_put(&exec->last);
		graph_put(exec->graph);
		free(exec);
	}
	pthread_mutex_unlock(&driver_lock);
	return error;
}

CU(cuGraphDestroy, (struct graph * graph))
{
	int error = driver_enter();

	if (error || !graph)
		return error ? error : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&driver_lock);
	graph_put(graph);
	pthread_mutex_unlock(&driver_lock);
	return CUDA_SUCCESS;
}

/* How many there are; the nodes themselves are not handed out. */
CU(cuGraphGetNodes, (const struct graph *graph, void **nodes, size_t *count))
{
	int error = driver_enter();

	if (error || !graph || nodes)
		return error ? error : CUDA_ERROR_NOT_SUPPORTED;
	*count = graph->count;
	return CUDA_SUCCESS;
}
