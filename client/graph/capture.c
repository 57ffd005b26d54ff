/* SPDX-License-Identifier: Apache-2.0 */
#include "client/graph/capture.h"

#include "client/context/context.h"
#include "client/graph/user_object.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* The nodes that an event represents that was recorded in a capture. */
struct captured_event {
	struct captured_event *next; /* utlist */
	const struct gpc_event *event;
	uint32_t id; /* wire ID of the event, as its memory may be reused for another */
	struct gpc_capture *capture;
	struct gpc_nodes nodes;
};

unsigned int gpc_captures;
__thread CUstreamCaptureMode gpc_capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static struct gpc_capture *captures;
static struct gpc_captured_stream *streams;
static struct captured_event *events;
static uint64_t last_id;
static __thread char this_thread;

const void *
gpc_capture_thread(void)
{
	return &this_thread;
}

struct gpc_captured_stream *
gpc_capture_find(const struct gpc_stream *stream)
{
	struct gpc_captured_stream *captured;

	LL_FOREACH(streams, captured)
	{
		if (captured->stream == stream && captured->number == stream->number)
			return captured;
	}
	return NULL;
}

static struct captured_event *
event_find(const struct gpc_event *event)
{
	struct captured_event *captured;

	LL_FOREACH(events, captured)
	{
		if (captured->event == event && captured->id == event->handle.id)
			return captured;
	}
	return NULL;
}

struct gpc_capture *
gpc_capture_find_event(const struct gpc_event *event, const struct gpc_nodes **nodes_p)
{
	const struct captured_event *captured = event_find(event);

	if (captured)
		*nodes_p = &captured->nodes;
	return captured ? captured->capture : NULL;
}

static bool
nodes_contain(const struct gpc_nodes *nodes, const struct gpc_node *node)
{
	for (size_t i = 0; i < nodes->count; i++) {
		if (nodes->list[i] == node)
			return true;
	}
	return false;
}

/* Adds the nodes of `more` that are not yet in the set. */
static CUresult
nodes_merge(struct gpc_nodes *nodes, const struct gpc_nodes *more)
{
	struct gpc_node **list =
		realloc(nodes->list, (nodes->count + more->count + 1) * sizeof(*list));

	if (!list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	nodes->list = list;
	for (size_t i = 0; i < more->count; i++) {
		if (!nodes_contain(nodes, more->list[i]))
			nodes->list[nodes->count++] = more->list[i];
	}
	return CUDA_SUCCESS;
}

static void
stream_drop(struct gpc_captured_stream *captured)
{
	LL_DELETE(streams, captured);
	free(captured->last.list);
	free(captured->last_tokens);
	free(captured->edges);
	free(captured);
}

static void
event_drop(struct captured_event *captured)
{
	LL_DELETE(events, captured);
	free(captured->nodes.list);
	free(captured);
}

/* Lets a stream join the capture, depending on these nodes. */
static CUresult
stream_join(struct gpc_capture *capture, const struct gpc_stream *stream,
	    const struct gpc_nodes *nodes)
{
	struct gpc_captured_stream *captured = calloc(1, sizeof(*captured));

	if (!captured || nodes_merge(&captured->last, nodes) != CUDA_SUCCESS) {
		free(captured);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	captured->stream = stream;
	captured->number = stream->number;
	captured->capture = capture;
	LL_PREPEND(streams, captured);
	return CUDA_SUCCESS;
}

CUresult
gpc_capture_begin(const struct gpc_stream *stream, CUstreamCaptureMode mode,
		  struct gpc_graph *graph)
{
	const struct gpc_nodes none = { 0 };
	struct gpc_capture *capture;
	CUresult result;

	if (stream->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (gpc_capture_find(stream) || (graph && graph->capturing))
		return CUDA_ERROR_ILLEGAL_STATE;
	capture = calloc(1, sizeof(*capture));
	if (!capture)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*capture = (struct gpc_capture){
		.id = ++last_id,
		.graph = graph ? graph : gpc_graph_create(),
		.own = !graph,
		.mode = mode,
		.thread = gpc_capture_thread(),
		.origin = stream,
	};
	result = capture->graph ? stream_join(capture, stream, &none) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS) {
		if (capture->own && capture->graph)
			gpc_graph_destroy(capture->graph);
		free(capture);
		return result;
	}
	capture->graph->capturing = true;
	LL_PREPEND(captures, capture);
	__atomic_add_fetch(&gpc_captures, 1, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

/* Marks the nodes and all their ancestors. */
static CUresult
nodes_mark_ancestors(const struct gpc_graph *graph, const struct gpc_nodes *nodes)
	GP_LOCKED(gpc_graphs_lock)
{
	struct gpc_node **sorted, *node;
	CUresult result = gpc_graph_sort(graph, &sorted);

	if (result != CUDA_SUCCESS)
		return result;
	DL_FOREACH(graph->nodes, node)
	{
		node->mark = nodes_contain(nodes, node);
	}
	for (size_t i = graph->count; i > 0; i--) {
		node = sorted[i - 1];
		for (size_t j = 0; node->mark && j < node->in.count; j++)
			node->in.list[j].node->mark = 1;
	}
	free(sorted);
	return CUDA_SUCCESS;
}

/* Returns CUDA_ERROR_STREAM_CAPTURE_UNJOINED unless the end of the origin stream depends on the
 * work of all other streams. */
static CUresult
capture_check_joined(const struct gpc_captured_stream *origin) GP_LOCKED(gpc_graphs_lock)
{
	const struct gpc_captured_stream *other;
	CUresult result = nodes_mark_ancestors(origin->capture->graph, &origin->last);

	LL_FOREACH(streams, other)
	{
		if (other->capture != origin->capture)
			continue;
		for (size_t i = 0; i < other->last.count && result == CUDA_SUCCESS; i++) {
			if (!other->last.list[i]->mark)
				result = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
		}
	}
	return result;
}

static void
capture_drop(struct gpc_capture *capture)
{
	struct gpc_captured_stream *stream, *next_stream;
	struct captured_event *event, *next_event;

	LL_FOREACH_SAFE(streams, stream, next_stream)
	{
		if (stream->capture == capture)
			stream_drop(stream);
	}
	LL_FOREACH_SAFE(events, event, next_event)
	{
		if (event->capture == capture)
			event_drop(event);
	}
	capture->graph->capturing = false;
	LL_DELETE(captures, capture);
	free(capture);
	__atomic_sub_fetch(&gpc_captures, 1, __ATOMIC_RELEASE);
}

/* Destroys the capture and the graph that it has created. */
static void
capture_abandon(struct gpc_capture *capture) GP_LOCKED(gpc_graphs_lock)
{
	struct gpc_graph *graph = capture->own ? capture->graph : NULL;

	capture_drop(capture);
	if (graph)
		gpc_graph_destroy(graph);
}

/* Returns the context that the stream was created in. */
static const struct gpc_context *
stream_get_home_context(const struct gpc_stream *stream)
{
	return stream->green ? stream->green : stream->context;
}

static void
captures_drop_context(const struct gpc_context *context) GP_LOCKED(gpc_graphs_lock)
{
	struct gpc_capture *capture, *next;
	struct gpc_captured_stream *stream, *next_stream;

	LL_FOREACH_SAFE(captures, capture, next)
	{
		if (gpc_context_covers(context, stream_get_home_context(capture->origin)))
			capture_abandon(capture);
	}
	LL_FOREACH_SAFE(streams, stream, next_stream)
	{
		if (stream->stream &&
		    gpc_context_covers(context, stream_get_home_context(stream->stream))) {
			stream->capture->invalid = true;
			stream_drop(stream);
		}
	}
}

void
gpc_capture_drop_context(struct gpc_context *context)
{
	struct gpc_user_destructor *ended;

	if (__atomic_load_n(&gpc_captures, __ATOMIC_ACQUIRE) == 0)
		return;
	pthread_mutex_lock(&gpc_graphs_lock);
	captures_drop_context(context);
	ended = gpc_user_destructors_pop_all();
	pthread_mutex_unlock(&gpc_graphs_lock);
	gpc_user_destructors_run(ended);
}

CUresult
gpc_capture_end(const struct gpc_stream *stream, struct gpc_graph **graph_p)
{
	struct gpc_captured_stream *captured = gpc_capture_find(stream);
	struct gpc_capture *capture = captured ? captured->capture : NULL;
	struct gpc_graph *graph;
	bool own;
	CUresult result;

	*graph_p = NULL;
	if (!capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (capture->origin != stream) {
		capture->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	}
	if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
	    capture->thread != gpc_capture_thread())
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	result = capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
				  : capture_check_joined(captured);
	graph = capture->graph;
	own = capture->own;
	capture_drop(capture);
	if (result == CUDA_SUCCESS)
		*graph_p = graph;
	else if (own)
		gpc_graph_destroy(graph);
	return result;
}

CUresult
gpc_capture_add(struct gpc_captured_stream *captured, struct gpc_node_params *params)
{
	const struct gpc_nodes *last = &captured->last;
	CUgraphNode *dependencies;
	struct gpc_node *node;
	CUresult result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;

	if (captured->capture->invalid) {
		gpc_node_params_free(params);
		return result;
	}
	dependencies = calloc(last->count + 1, sizeof(CUgraphNode));
	if (!dependencies) {
		gpc_node_params_free(params);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (size_t i = 0; i < last->count; i++)
		dependencies[i] = last->list[i]->handle.token;
	result = gpc_graph_add(captured->capture->graph, dependencies, NULL, last->count, params,
			       &node);
	free(dependencies);
	return result == CUDA_SUCCESS
		       ? gpc_capture_set_last(captured, &(struct gpc_nodes){ &node, 1 }, false)
		       : result;
}

CUresult
gpc_capture_set_last(struct gpc_captured_stream *captured, const struct gpc_nodes *nodes, bool add)
{
	struct gpc_nodes now = { 0 };
	CUresult result = add ? nodes_merge(&now, &captured->last) : CUDA_SUCCESS;

	if (result == CUDA_SUCCESS)
		result = nodes_merge(&now, nodes);
	if (result != CUDA_SUCCESS) {
		free(now.list);
		return result;
	}
	free(captured->last.list);
	captured->last = now;
	return CUDA_SUCCESS;
}

CUresult
gpc_capture_record(struct gpc_captured_stream *captured, const struct gpc_event *event)
{
	struct captured_event *record;

	if (captured->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	gpc_capture_drop_event(event);
	record = calloc(1, sizeof(*record));
	if (!record || nodes_merge(&record->nodes, &captured->last) != CUDA_SUCCESS) {
		free(record);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	record->event = event;
	record->id = event->handle.id;
	record->capture = captured->capture;
	LL_PREPEND(events, record);
	return CUDA_SUCCESS;
}

void
gpc_capture_drop_event(const struct gpc_event *event)
{
	struct captured_event *record = event_find(event);

	if (record)
		event_drop(record);
}

CUresult
gpc_capture_wait(const struct gpc_stream *stream, const struct gpc_event *event)
{
	struct gpc_captured_stream *captured = gpc_capture_find(stream);
	struct captured_event *record = event_find(event);
	CUresult result = CUDA_SUCCESS;

	if (captured && captured->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (!record && !captured)
		return gpc_capture_check_legacy(stream);
	if (!record)
		result = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	else if (captured && captured->capture != record->capture)
		result = CUDA_ERROR_STREAM_CAPTURE_MERGE;
	else if (stream->legacy)
		result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	if (result != CUDA_SUCCESS) {
		if (captured)
			captured->capture->invalid = true;
		if (record)
			record->capture->invalid = true;
		return result;
	}
	if (record->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	return captured ? gpc_capture_set_last(captured, &record->nodes, true)
			: stream_join(record->capture, stream, &record->nodes);
}

CUresult
gpc_capture_check_legacy(const struct gpc_stream *stream)
{
	struct gpc_captured_stream *captured;
	CUresult result = GPC_NOT_CAPTURED;

	LL_FOREACH(streams, captured)
	{
		if (stream->legacy && captured->stream &&
		    stream_get_home_context(captured->stream) == stream_get_home_context(stream) &&
		    !(captured->stream->flags & CU_STREAM_NON_BLOCKING)) {
			captured->capture->invalid = true;
			result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
		}
	}
	return result;
}

CUresult
gpc_capture_check_context(CUcontext token)
{
	struct gpc_captured_stream *captured;
	CUresult result = GPC_NOT_CAPTURED;

	LL_FOREACH(streams, captured)
	{
		const struct gpc_context *home =
			captured->stream ? stream_get_home_context(captured->stream) : NULL;

		if (home && (home->handle.token == token ||
			     (home->parent && home->parent->handle.token == token))) {
			captured->capture->invalid = true;
			result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	}
	return result;
}

/* cuThreadExchangeStreamCaptureMode: a relaxed thread is not restricted, a thread-local one is
 * restricted by its own captures, and a global one also by global captures of other threads. */
static bool
capture_forbids_unsafe(const struct gpc_capture *capture)
{
	if (gpc_capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
	    capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return false;
	return capture->thread == gpc_capture_thread() ||
	       (gpc_capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
		capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

CUresult
gpc_capture_check_unsafe(void)
{
	struct gpc_capture *capture;
	CUresult result = GPC_NOT_CAPTURED;

	LL_FOREACH(captures, capture)
	{
		if (capture_forbids_unsafe(capture)) {
			capture->invalid = true;
			result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
		}
	}
	return result;
}

struct gpc_stream *
gpc_capture_get_stream(CUstream hStream)
{
	struct gpc_stream *stream;

	return gpc_stream_enter(hStream, &stream) == CUDA_SUCCESS ? stream : NULL;
}

/* Rejects a stream that is captured, or that would wait for a captured one. */
static CUresult
stream_check_uncaptured(const struct gpc_stream *stream) GP_LOCKED(gpc_graphs_lock)
{
	struct gpc_captured_stream *captured = gpc_capture_find(stream);

	if (!captured)
		return gpc_capture_check_legacy(stream);
	captured->capture->invalid = true;
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult
gpc_capture_destroy_stream(const struct gpc_stream *stream)
{
	struct gpc_captured_stream *captured = gpc_capture_find(stream);

	if (!captured || captured->capture->origin == stream)
		return stream_check_uncaptured(stream);
	captured->stream = NULL;
	return GPC_NOT_CAPTURED;
}

/* If CUDA is unusable, the call itself reports that. */
static CUresult
capture_check_call(const struct gpc_stream *stream, bool unsafe)
{
	CUresult result = gpc_graphs_begin();

	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(GPC_NOT_CAPTURED);
	result = stream ? stream_check_uncaptured(stream) : GPC_NOT_CAPTURED;
	if (result == GPC_NOT_CAPTURED && unsafe)
		result = gpc_capture_check_unsafe();
	return gpc_graphs_end(result);
}

CUresult
gpc_capture_refuse(CUstream hStream)
{
	return capture_check_call(gpc_capture_get_stream(hStream), false);
}

CUresult
gpc_capture_decline(CUstream hStream)
{
	const struct gpc_stream *stream = gpc_capture_get_stream(hStream);
	const struct gpc_captured_stream *captured = NULL;

	if (gpc_graphs_begin() == CUDA_SUCCESS && stream)
		captured = gpc_capture_find(stream);
	if (!captured)
		return gpc_graphs_end(GPC_NOT_CAPTURED);
	return gpc_graphs_end(captured->capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
							 : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUresult
gpc_capture_unsafe(void)
{
	return capture_check_call(NULL, true);
}

CUresult
gpc_capture_default_stream(void)
{
	return capture_check_call(gpc_capture_get_stream(NULL), true);
}
