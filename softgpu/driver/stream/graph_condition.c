/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditional nodes of graphs, which run other graphs once or repeatedly, depending on a value that
 * kernels set. Such a graph is executed by its stream's thread, node by node, on a stream of its
 * own.
 */
#include "base/clock.h"
#include "softgpu/driver/stream/graph.h"
#include "softgpu/driver/stream/stream.h"
#include "softgpu/engine/engine.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define NAP_NS 20000

struct graph_op {
	struct gs_op op;
	struct gs_graph *graph, *now; /* references */
};

CUresult CUDAAPI
cuGraphConditionalHandleCreate(CUgraphConditionalHandle *handle, CUgraph graph_handle,
			       CUcontext ctx, unsigned int value, unsigned int flags)
{
	struct gs_graph *graph;
	struct gs_graph_handle *handles;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!handle || flags & ~(unsigned int)CU_GRAPH_COND_ASSIGN_DEFAULT)
		return CUDA_ERROR_INVALID_VALUE;
	graph = gs_object_get(graph_handle, GS_KIND_GRAPH);
	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	handles = realloc(graph->handles, (graph->handle_count + 1) * sizeof(*handles));
	if (handles)
		graph->handles = handles;
	*handle = handles && !graph->outermost ? gs_condition_add() : 0;
	if (!*handle)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	else
		handles[graph->handle_count++] =
			(struct gs_graph_handle){ *handle, value,
						  (flags & CU_GRAPH_COND_ASSIGN_DEFAULT) != 0 };
	gs_object_put(&graph->object);
	return r;
}

static bool
is_shape(const CUDA_CONDITIONAL_NODE_PARAMS *given)
{
	switch (given->type) {
	case CU_GRAPH_COND_TYPE_IF:
		return given->size == 1 || given->size == 2;
	case CU_GRAPH_COND_TYPE_WHILE:
		return given->size == 1;
	case CU_GRAPH_COND_TYPE_SWITCH:
		return given->size > 0;
	default:
		return false;
	}
}

static bool
has_handle(const struct gs_graph *graph, uint64_t number)
{
	for (size_t i = 0; i < graph->handle_count; i++) {
		if (graph->handles[i].number == number)
			return true;
	}
	return false;
}

/* Whether a node of the graph, or of one of its bodies, has the handle: only one node may have
 * it. */
static bool
is_taken(const struct gs_graph *graph, uint64_t number)
{
	const struct gs_node *node;

	DL_FOREACH(graph->nodes, node)
	{
		if (!node->bodies)
			continue;
		if (node->condition.handle == number)
			return true;
		for (unsigned int i = 0; i < node->condition.size; i++) {
			if (is_taken(node->bodies[i], number))
				return true;
		}
	}
	return false;
}

bool
gs_graph_all_handles_taken(const struct gs_graph *graph)
{
	for (size_t i = 0; i < graph->handle_count; i++) {
		if (!is_taken(graph, graph->handles[i].number))
			return false;
	}
	return true;
}

CUresult CUDAAPI
cuGraphAddNode_v2(CUgraphNode *handle, CUgraph graph_handle, const CUgraphNode *dependencies,
		  const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *given)
{
	struct gs_node node = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL }, *added;
	struct gs_graph *graph, *outermost;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!given || !handle)
		return CUDA_ERROR_INVALID_VALUE;
	if (given->type != CU_GRAPH_NODE_TYPE_CONDITIONAL || data)
		return CUDA_ERROR_NOT_SUPPORTED;
	graph = gs_object_get(graph_handle, GS_KIND_GRAPH);
	if (!graph)
		return CUDA_ERROR_INVALID_VALUE;
	node.condition = given->conditional;
	outermost = graph->outermost ? graph->outermost : graph;
	if (!is_shape(&node.condition) || !node.condition.ctx ||
	    !has_handle(outermost, node.condition.handle) ||
	    is_taken(outermost, node.condition.handle))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = gs_graph_add(handle, graph_handle, dependencies, count, &node);
	added = r ? NULL : gs_object_get(*handle, GS_KIND_GRAPH_NODE);
	if (added) {
		given->conditional.phGraph_out = added->condition.phGraph_out;
		gs_object_put(&added->object);
	}
	gs_object_put(&graph->object);
	return r;
}

void
gs_node_free_bodies(struct gs_node *node)
{
	for (unsigned int i = 0; node->bodies && i < node->condition.size; i++) {
		if (node->bodies[i])
			gs_object_put(&node->bodies[i]->object);
	}
	free(node->bodies);
	free(node->condition.phGraph_out);
}

/* Nodes of an executable have no handle. */
static CUresult
make_body(struct gs_node *node, const struct gs_node *from, struct gs_graph *graph, unsigned int i)
{
	struct gs_graph *body = gs_graph_create(graph->object.kind);

	if (!body)
		return CUDA_ERROR_OUT_OF_MEMORY;
	body->outermost = graph->outermost ? graph->outermost : graph;
	node->bodies[i] = body;
	node->condition.phGraph_out[i] = (CUgraph)body;
	if (graph->object.kind == GS_KIND_GRAPH)
		gs_object_publish(&body->object);
	return from->bodies ? gs_graph_copy_nodes(body, from->bodies[i]) : CUDA_SUCCESS;
}

CUresult
gs_node_make_bodies(struct gs_node *node, const struct gs_node *from, struct gs_graph *graph)
{
	unsigned int count = node->condition.size;
	CUresult r = CUDA_SUCCESS;

	(graph->outermost ? graph->outermost : graph)->runs_alone = true;
	node->bodies = calloc(count, sizeof(struct gs_graph *));
	node->condition.phGraph_out = calloc(count, sizeof(CUgraph));
	if (!node->bodies || !node->condition.phGraph_out)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned int i = 0; !r && i < count; i++)
		r = make_body(node, from, graph, i);
	return r;
}

/* Returns false if the stream must stop. */
static bool
finish(CUstream inner, const struct gs_stream *stream)
{
	CUresult r;

	while ((r = cuStreamQuery(inner)) == CUDA_ERROR_NOT_READY && !gs_stream_stopped(stream))
		gp_sleep_ns(NAP_NS);
	return r == CUDA_SUCCESS;
}

static bool
run_condition(const struct gs_node *node, CUstream inner, const struct gs_stream *stream,
	      const struct gs_graphs *graphs)
{
	const CUDA_CONDITIONAL_NODE_PARAMS *condition = &node->condition;
	uint32_t value;

	for (;;) {
		if (!finish(inner, stream))
			return false;
		value = gs_condition_get(condition->handle);
		if (condition->type != CU_GRAPH_COND_TYPE_SWITCH)
			value = value == 0;
		if (value >= condition->size)
			return true;
		if (!gs_graph_run_nodes(node->bodies[value], inner, stream, graphs))
			return false;
		if (condition->type != CU_GRAPH_COND_TYPE_WHILE)
			return true;
	}
}

void
gs_graph_set_defaults(const struct gs_graph *graph)
{
	for (size_t i = 0; i < graph->source->handle_count; i++) {
		const struct gs_graph_handle *handle = &graph->source->handles[i];

		if (handle->assigned)
			(void)gs_condition_set(handle->number, handle->value);
	}
}

bool
gs_graph_run_nodes(const struct gs_graph *graph, CUstream inner, const struct gs_stream *stream,
		   const struct gs_graphs *graphs)
{
	const struct gs_node *node;

	DL_FOREACH(graph->nodes, node)
	{
		CUresult r = CUDA_SUCCESS;

		if (gs_stream_stopped(stream))
			return false;
		/* Waits for updates of this node by earlier kernels. */
		if (node->device && !finish(inner, stream))
			return false;
		if (node->disabled)
			continue;
		if (node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL) {
			if (!run_condition(node, inner, stream, graphs))
				return false;
		} else {
			r = gs_node_run(node, inner, graphs);
		}
		if (r) {
			gs_fail(r, "cuGraphLaunch", "a node of the graph could not be run");
			return false;
		}
	}
	return finish(inner, stream);
}

static void
graph_run(struct gs_op *op, struct gs_stream *stream)
{
	const struct graph_op *graph = (struct graph_op *)op;
	CUstream inner;

	if (cuCtxSetCurrent(gs_context_primary(gs_stream_device(stream))) ||
	    cuStreamCreate(&inner, CU_STREAM_NON_BLOCKING))
		return;
	(void)gs_graph_run_all(graph->graph, graph->now, inner, stream);
	(void)cuStreamDestroy(inner);
}

static void
graph_release(struct gs_op *op)
{
	gs_object_put(&((struct graph_op *)op)->graph->object);
	gs_object_put(&((struct graph_op *)op)->now->object);
	free(op);
}

CUresult
gs_graph_launch_alone(struct gs_graph *graph, CUstream handle)
{
	struct gs_stream *stream = gs_stream_get(handle);
	struct graph_op *op = calloc(1, sizeof(*op));
	CUresult r;

	if (!stream || !op) {
		if (stream)
			gs_stream_put(stream);
		free(op);
		return stream ? CUDA_ERROR_OUT_OF_MEMORY : gs_stream_missing(handle);
	}
	gs_object_ref(&graph->object);
	op->op.run = graph_run;
	op->op.release = graph_release;
	op->graph = graph;
	op->now = gs_graph_now(graph);
	r = gs_stream_submit(stream, &op->op, NULL);
	gs_stream_put(stream);
	return r;
}
