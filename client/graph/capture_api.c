/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: control and queries of stream capture. */
#include "client/context/context.h"
#include "client/graph/capture.h"
#include "gpc_calls.h"

#include <stdlib.h>
#include <string.h>

/* Calls gpc_graphs_begin() and looks up the stream that hStream denotes in this thread. */
static CUresult
graphs_begin_stream(CUstream hStream, struct gpc_stream **stream_p) GP_LOCKS(gpc_graphs_lock)
{
	/* Called without the lock, as the stream may have to be created on the daemon. */
	CUresult found = gpc_stream_enter(hStream, stream_p);
	CUresult result = gpc_graphs_begin();

	return result == CUDA_SUCCESS ? found : result;
}

/* Looks up nodes of the capture's graph. */
static CUresult
nodes_lookup(const struct gpc_graph *graph, const CUgraphNode *tokens, size_t count,
	     struct gpc_nodes *nodes) GP_LOCKED(gpc_graphs_lock)
{
	CUresult result = count > 0 && !tokens ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;

	nodes->list = calloc(count + 1, sizeof(*nodes->list));
	if (!nodes->list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
		result = gpc_node_lookup(tokens[i], &nodes->list[i]);
		if (result == CUDA_SUCCESS && nodes->list[i]->graph != graph)
			result = CUDA_ERROR_INVALID_VALUE;
		nodes->count = i + 1;
	}
	return result;
}

CUresult
gpc_cuStreamBeginCapture_v2(CUstream hStream, CUstreamCaptureMode mode)
{
	struct gpc_stream *stream;
	CUresult result = graphs_begin_stream(hStream, &stream);

	if (result == CUDA_SUCCESS && (unsigned int)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = gpc_capture_begin(stream, mode, NULL);
	return gpc_graphs_end(result);
}

CUresult
gpc_cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
				const CUgraphEdgeData *dependencyData, size_t numDependencies,
				CUstreamCaptureMode mode)
{
	struct gpc_nodes nodes = { 0 };
	struct gpc_stream *stream;
	struct gpc_graph *graph;
	CUresult result = graphs_begin_stream(hStream, &stream);

	if (result == CUDA_SUCCESS && (unsigned int)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = gpc_graph_lookup(hGraph, &graph);
	if (result == CUDA_SUCCESS && gpc_capture_find(stream))
		result = CUDA_ERROR_ILLEGAL_STATE;
	if (result == CUDA_SUCCESS)
		result = nodes_lookup(graph, dependencies, numDependencies, &nodes);
	if (result == CUDA_SUCCESS)
		result = gpc_capture_begin(stream, mode, graph);
	if (result == CUDA_SUCCESS)
		result = gpc_capture_set_last(gpc_capture_find(stream), &nodes, false);
	free(nodes.list);
	return gpc_graphs_end(result);
}

/* Returns whether the capture has created its graph. The end of a capture to an existing graph need
 * not return it. */
static bool
capture_makes_graph(const struct gpc_captured_stream *captured)
{
	return captured && captured->capture->own;
}

CUresult
gpc_cuStreamEndCapture(CUstream hStream, CUgraph *phGraph)
{
	struct gpc_graph *graph;
	struct gpc_stream *stream;
	CUresult result = graphs_begin_stream(hStream, &stream);

	if (result == CUDA_SUCCESS && !phGraph && capture_makes_graph(gpc_capture_find(stream)))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	result = gpc_capture_end(stream, &graph);
	if (phGraph)
		*phGraph = graph ? graph->handle.token : NULL;
	return gpc_graphs_end(result);
}

static CUstreamCaptureStatus
captured_get_status(const struct gpc_captured_stream *captured)
{
	if (!captured)
		return CU_STREAM_CAPTURE_STATUS_NONE;
	return captured->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
					  : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* Updates the arrays returned to the application, which stay valid until the stream gets more
 * work. */
static CUresult
captured_update_tokens(struct gpc_captured_stream *captured)
{
	free(captured->last_tokens);
	free(captured->edges);
	captured->last_tokens = calloc(captured->last.count + 1, sizeof(CUgraphNode));
	captured->edges = calloc(captured->last.count + 1, sizeof(CUgraphEdgeData));
	if (!captured->last_tokens || !captured->edges)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < captured->last.count; i++)
		captured->last_tokens[i] = captured->last.list[i]->handle.token;
	return CUDA_SUCCESS;
}

/* Rejects a query of the legacy stream while a stream that it waits for is captured. */
static CUresult
query_check_legacy(const struct gpc_stream *stream, const struct gpc_captured_stream *captured)
	GP_LOCKED(gpc_graphs_lock)
{
	CUresult result = captured ? GPC_NOT_CAPTURED : gpc_capture_check_legacy(stream);

	return result == GPC_NOT_CAPTURED ? CUDA_SUCCESS : result;
}

/* Without captures no lock is needed, which another thread may hold while the daemon creates a
 * graph. */
static CUresult
query_without_captures(CUstream hStream, CUstreamCaptureStatus *status)
{
	struct gpc_stream *stream;
	CUresult result = gpc_stream_enter(hStream, &stream);

	if (result == CUDA_SUCCESS && !status)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		*status = CU_STREAM_CAPTURE_STATUS_NONE;
	return result;
}

/* Requested properties of a capture; pointers may be NULL. */
struct capture_info {
	cuuint64_t *id;
	CUgraph *graph;
	const CUgraphNode **dependencies;
	const CUgraphEdgeData **edges;
	size_t *count;
};

static CUresult
captured_get_info(struct gpc_captured_stream *captured, const struct capture_info *capture_info)
{
	CUresult result = captured_update_tokens(captured);

	if (result != CUDA_SUCCESS)
		return result;
	if (capture_info->id)
		*capture_info->id = captured->capture->id;
	if (capture_info->graph)
		*capture_info->graph = captured->capture->graph->handle.token;
	if (capture_info->dependencies)
		*capture_info->dependencies = captured->last_tokens;
	if (capture_info->edges)
		*capture_info->edges = captured->edges;
	if (capture_info->count)
		*capture_info->count = captured->last.count;
	return CUDA_SUCCESS;
}

/* capture_info NULL: only the status is requested. */
static CUresult
stream_get_capture_info(CUstream hStream, CUstreamCaptureStatus *status,
			const struct capture_info *capture_info)
{
	struct gpc_captured_stream *captured = NULL;
	struct gpc_stream *stream;
	CUresult result;

	if (__atomic_load_n(&gpc_captures, __ATOMIC_ACQUIRE) == 0)
		return query_without_captures(hStream, status);
	result = graphs_begin_stream(hStream, &stream);
	if (result == CUDA_SUCCESS && !status)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS) {
		captured = gpc_capture_find(stream);
		result = query_check_legacy(stream, captured);
	}
	if (result == CUDA_SUCCESS) {
		*status = captured_get_status(captured);
		if (capture_info && *status == CU_STREAM_CAPTURE_STATUS_ACTIVE)
			result = captured_get_info(captured, capture_info);
	}
	return gpc_graphs_end(result);
}

CUresult
gpc_cuStreamIsCapturing(CUstream hStream, CUstreamCaptureStatus *captureStatus)
{
	return stream_get_capture_info(hStream, captureStatus, NULL);
}

CUresult
gpc_cuStreamGetCaptureInfo_v3(CUstream hStream, CUstreamCaptureStatus *captureStatus_out,
			      cuuint64_t *id_out, CUgraph *graph_out,
			      const CUgraphNode **dependencies_out,
			      const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out)
{
	return stream_get_capture_info(hStream, captureStatus_out,
				       &(struct capture_info){ .id = id_out,
							       .graph = graph_out,
							       .dependencies = dependencies_out,
							       .edges = edgeData_out,
							       .count = numDependencies_out });
}

CUresult
gpc_cuStreamUpdateCaptureDependencies_v2(CUstream hStream, CUgraphNode *dependencies,
					 const CUgraphEdgeData *dependencyData,
					 size_t numDependencies, unsigned int flags)
{
	struct gpc_captured_stream *captured;
	struct gpc_nodes nodes = { 0 };
	struct gpc_stream *stream;
	CUresult result = graphs_begin_stream(hStream, &stream);

	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	captured = gpc_capture_find(stream);
	if (!captured)
		result = CUDA_ERROR_ILLEGAL_STATE;
	else if (captured->capture->invalid)
		result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	else if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = nodes_lookup(captured->capture->graph, dependencies, numDependencies,
				      &nodes);
	if (result == CUDA_SUCCESS)
		result = gpc_capture_set_last(captured, &nodes,
					      flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
	free(nodes.list);
	return gpc_graphs_end(result);
}

/* Edges start where the preceding node ends (docs/graphs.md). */
CUresult
gpc_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	CUstreamCaptureMode before = gpc_capture_mode;

	if (!mode || (unsigned int)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	gpc_capture_mode = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}
