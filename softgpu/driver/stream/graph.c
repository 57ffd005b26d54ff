/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of kernels, memsets, copies and empty nodes. A node can only depend on nodes that were
 * added before, so nodes can run in the order in which they were added: a launch submits them to
 * its stream one after the other. A node's context determines where a kernel runs, as on a GPU: a
 * node without a context uses the context that was current, and a node without CUkernel ignores its
 * green context.
 */
#include "softgpu/driver/stream/graph.h"

#include "softgpu/driver/code/launch.h"
#include "softgpu/driver/context/green.h"
#include "softgpu/driver/stream/stream.h"
#include "softgpu/engine/engine.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static void
node_free(struct gs_graph *graph, struct gs_node *node)
{
	DL_DELETE(graph->nodes, node);
	gs_node_free_bodies(node);
	if (node->device)
		gs_device_node_end(node, graph->object.kind == GS_KIND_GRAPH);
	gs_green_put(node->green);
	free(node->params);
	free(node);
}

static void
graph_free(struct gs_object *object)
{
	struct gs_graph *graph = (struct gs_graph *)object;
	struct gs_node *node, *next;

	DL_FOREACH_SAFE(graph->nodes, node, next)
	{
		node_free(graph, node);
	}
	for (size_t i = 0; i < graph->handle_count; i++)
		gs_condition_remove(graph->handles[i].number);
	free(graph->handles);
	gs_graph_end_launchable(graph);
	if (graph->updated)
		gs_object_put(&graph->updated->object);
	if (graph->source) {
		__atomic_sub_fetch(&graph->source->executables, 1, __ATOMIC_RELEASE);
		gs_object_put(&graph->source->object);
	}
	free(graph);
}

struct gs_graph *
gs_graph_create(enum gs_kind kind)
{
	struct gs_graph *graph = calloc(1, sizeof(*graph));

	if (graph)
		gs_object_init(&graph->object, kind, NULL, graph_free);
	return graph;
}

void *
gs_graph_enter(const void *handle, enum gs_kind kind, CUresult *result_p)
{
	void *object = NULL;

	*result_p = gs_enter();
	if (*result_p)
		return NULL;
	object = gs_object_get(handle, kind);
	if (!object)
		*result_p = CUDA_ERROR_INVALID_VALUE;
	return object;
}

CUresult CUDAAPI
cuGraphCreate(CUgraph *handle, unsigned int flags)
{
	struct gs_graph *graph;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!handle || flags)
		return CUDA_ERROR_INVALID_VALUE;
	graph = gs_graph_create(GS_KIND_GRAPH);
	if (!graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	gs_object_publish(&graph->object);
	*handle = (CUgraph)graph;
	return CUDA_SUCCESS;
}

static void
retire_node(struct gs_node *node)
{
	(void)gs_object_retire(node, GS_KIND_GRAPH_NODE);
	for (unsigned int i = 0; node->bodies && i < node->condition.size; i++) {
		struct gs_node *inner;

		(void)gs_object_retire(node->bodies[i], GS_KIND_GRAPH);
		DL_FOREACH(node->bodies[i]->nodes, inner)
		{
			retire_node(inner);
		}
	}
}

CUresult CUDAAPI
cuGraphDestroy(CUgraph handle)
{
	struct gs_node *node;
	CUresult r;
	struct gs_graph *graph = gs_graph_enter(handle, GS_KIND_GRAPH, &r);

	if (!graph)
		return r;
	if (!graph->outermost && gs_object_retire(handle, GS_KIND_GRAPH)) {
		DL_FOREACH(graph->nodes, node)
		{
			retire_node(node);
		}
		gs_object_put(&graph->object);
	}
	gs_object_put(&graph->object);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuGraphGetNodes(CUgraph handle, CUgraphNode *nodes, size_t *count_p)
{
	struct gs_node *node;
	size_t count = 0;
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	struct gs_graph *graph = count_p ? gs_graph_enter(handle, GS_KIND_GRAPH, &r) : NULL;

	if (!graph)
		return r;
	DL_FOREACH(graph->nodes, node)
	{
		if (nodes && count == *count_p)
			break;
		if (nodes)
			nodes[count] = (CUgraphNode)node;
		count++;
	}
	*count_p = count;
	gs_object_put(&graph->object);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuGraphDestroyNode(CUgraphNode handle)
{
	struct gs_graph *graph;
	CUresult r;
	struct gs_node *node = gs_graph_enter(handle, GS_KIND_GRAPH_NODE, &r);

	if (!node)
		return r;
	graph = (struct gs_graph *)node->object.owner;
	retire_node(node);
	node_free(graph, node);
	gs_object_put(&graph->object);
	return CUDA_SUCCESS;
}

static CUresult
check_dependencies(const struct gs_graph *graph, const CUgraphNode *dependencies, size_t count)
{
	CUresult r = count && !dependencies ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;

	for (size_t i = 0; !r && i < count; i++) {
		struct gs_node *node = gs_object_get(dependencies[i], GS_KIND_GRAPH_NODE);

		if (!node || node->object.owner != &graph->object)
			r = CUDA_ERROR_INVALID_VALUE;
		for (size_t j = 0; j < i; j++) {
			if (dependencies[j] == dependencies[i])
				r = CUDA_ERROR_INVALID_VALUE;
		}
		if (node)
			gs_object_put(&node->object);
	}
	return r;
}

static struct gs_node *
node_append(struct gs_graph *graph, const struct gs_node *from)
{
	struct gs_node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	/* Excludes the object, whose list links other nodes may change meanwhile. */
	_Static_assert(offsetof(struct gs_node, object) == 0, "a node is an object first");
	memcpy((char *)node + sizeof(node->object), (const char *)from + sizeof(from->object),
	       sizeof(*node) - sizeof(node->object));
	node->bodies = NULL;
	node->condition.phGraph_out = NULL;
	if (from->params) {
		node->params = malloc(from->params_size + 1);
		if (!node->params) {
			free(node);
			return NULL;
		}
		memcpy(node->params, from->params, from->params_size);
	}
	(void)gs_green_ref(node->green);
	if (node->device) {
		(void)gs_device_node_ref(node->device);
		gs_device_node_begin(node);
		graph->runs_alone = true;
	}
	node->config.attrs = node->attributes;
	gs_object_init(&node->object, GS_KIND_GRAPH_NODE, &graph->object, NULL);
	DL_APPEND(graph->nodes, node);
	if (node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL &&
	    gs_node_make_bodies(node, from, graph)) {
		retire_node(node);
		node_free(graph, node);
		return NULL;
	}
	return node;
}

CUresult
gs_graph_copy_nodes(struct gs_graph *to, const struct gs_graph *from)
{
	const struct gs_node *node;

	DL_FOREACH(from->nodes, node)
	{
		if (!node_append(to, node))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

/* `from` remains owned by the caller. */
CUresult
gs_graph_add(CUgraphNode *handle, CUgraph graph_handle, const CUgraphNode *dependencies,
	     size_t count, const struct gs_node *from)
{
	struct gs_node *node = NULL;
	CUresult r;
	struct gs_graph *graph = gs_graph_enter(graph_handle, GS_KIND_GRAPH, &r);

	if (!graph)
		return r;
	r = handle ? check_dependencies(graph, dependencies, count) : CUDA_ERROR_INVALID_VALUE;
	if (!r) {
		node = node_append(graph, from);
		r = node ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!r) {
		gs_object_publish(&node->object);
		*handle = (CUgraphNode)node;
	}
	gs_object_put(&graph->object);
	return r;
}

CUresult CUDAAPI
cuGraphAddEmptyNode(CUgraphNode *handle, CUgraph graph, const CUgraphNode *dependencies,
		    size_t count)
{
	const struct gs_node node = { .type = CU_GRAPH_NODE_TYPE_EMPTY };

	return gs_graph_add(handle, graph, dependencies, count, &node);
}

CUresult CUDAAPI
cuGraphAddMemcpyNode(CUgraphNode *handle, CUgraph graph, const CUgraphNode *dependencies,
		     size_t count, const CUDA_MEMCPY3D *copy, CUcontext ctx)
{
	struct gs_node node = { .type = CU_GRAPH_NODE_TYPE_MEMCPY };

	if (!copy || !ctx)
		return CUDA_ERROR_INVALID_VALUE;
	node.copy = *copy;
	return gs_graph_add(handle, graph, dependencies, count, &node);
}

CUresult CUDAAPI
cuGraphAddMemsetNode(CUgraphNode *handle, CUgraph graph, const CUgraphNode *dependencies,
		     size_t count, const CUDA_MEMSET_NODE_PARAMS *fill, CUcontext ctx)
{
	struct gs_node node = { .type = CU_GRAPH_NODE_TYPE_MEMSET };

	if (!fill || !ctx || !fill->width || !fill->height ||
	    (fill->elementSize != 1 && fill->elementSize != 2 && fill->elementSize != 4))
		return CUDA_ERROR_INVALID_VALUE;
	node.fill = *fill;
	return gs_graph_add(handle, graph, dependencies, count, &node);
}

CUresult
gs_node_set_kernel(const CUDA_KERNEL_NODE_PARAMS *given, struct gs_node *node)
{
	CUresult r;

	node->function = given->kern ? (CUfunction)given->kern : given->func;
	node->packed = given->extra != NULL;
	node->config = (CUlaunchConfig){
		.gridDimX = given->gridDimX,
		.gridDimY = given->gridDimY,
		.gridDimZ = given->gridDimZ,
		.blockDimX = given->blockDimX,
		.blockDimY = given->blockDimY,
		.blockDimZ = given->blockDimZ,
		.sharedMemBytes = given->sharedMemBytes,
	};
	r = gs_launch_check(&node->config, node->function, given->kernelParams, given->extra,
			    node->green, &node->params_size);
	if (r)
		return r;
	node->params = malloc(node->params_size + 1);
	if (!node->params)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return gs_launch_params(node->function, given->kernelParams, given->extra, node->params);
}

CUresult CUDAAPI
cuGraphAddKernelNode_v2(CUgraphNode *handle, CUgraph graph, const CUgraphNode *dependencies,
			size_t count, const CUDA_KERNEL_NODE_PARAMS *given)
{
	struct gs_node node = { .type = CU_GRAPH_NODE_TYPE_KERNEL };
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!given || !given->func == !given->kern)
		return CUDA_ERROR_INVALID_VALUE;
	if (given->kern)
		node.green = gs_green_of_context(given->ctx ? given->ctx : gs_context_current());
	r = gs_node_set_kernel(given, &node);
	if (!r)
		r = gs_graph_add(handle, graph, dependencies, count, &node);
	gs_green_put(node.green);
	free(node.params);
	return r;
}

CUresult CUDAAPI
cuGraphInstantiateWithFlags(CUgraphExec *handle, CUgraph graph_handle, unsigned long long flags)
{
	struct gs_graph *made;
	bool others = false;
	CUresult r;
	struct gs_graph *graph = gs_graph_enter(graph_handle, GS_KIND_GRAPH, &r);

	if (!graph)
		return r;
	made = handle ? gs_graph_create(GS_KIND_GRAPH_EXEC) : NULL;
	if (!made)
		r = handle ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
	if (made) {
		made->source = graph;
		others = __atomic_fetch_add(&graph->executables, 1, __ATOMIC_ACQ_REL) != 0;
	} else {
		gs_object_put(&graph->object);
	}
	/* As in the driver: a condition handle or device-updatable node can be instantiated only
	 * once. */
	if (!r && (flags & ~(unsigned long long)CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH ||
		   (graph->runs_alone && others)))
		r = CUDA_ERROR_NOT_SUPPORTED;
	if (!r && !gs_graph_all_handles_taken(graph))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = gs_graph_copy_nodes(made, graph);
	if (!r && flags)
		r = gs_graph_make_launchable(made);
	if (r) {
		if (made)
			gs_object_put(&made->object);
		return r;
	}
	gs_object_publish(&made->object);
	*handle = (CUgraphExec)made;
	return CUDA_SUCCESS;
}

/* An operation of the stream, although it has nothing to do. */
CUresult CUDAAPI
cuGraphUpload(CUgraphExec handle, CUstream stream_handle)
{
	struct gs_stream *stream;
	CUresult r;
	struct gs_graph *graph = gs_graph_enter(handle, GS_KIND_GRAPH_EXEC, &r);

	if (!graph)
		return r;
	stream = gs_stream_get(stream_handle);
	if (stream) {
		atomic_store(&graph->uploaded, true);
		gs_stream_put(stream);
	} else {
		r = gs_stream_missing(stream_handle);
	}
	gs_object_put(&graph->object);
	return r;
}

CUresult CUDAAPI
cuGraphExecDestroy(CUgraphExec handle)
{
	CUresult r = gs_enter_device();

	if (r)
		return r;
	if (!gs_object_retire(handle, GS_KIND_GRAPH_EXEC))
		return CUDA_ERROR_INVALID_VALUE;
	gs_object_put((struct gs_object *)handle);
	return CUDA_SUCCESS;
}

static CUresult
fill(const CUDA_MEMSET_NODE_PARAMS *fill, CUstream stream)
{
	unsigned int value = fill->value;

	switch (fill->elementSize) {
	case 1:
		return cuMemsetD2D8Async(fill->dst, fill->pitch, (unsigned char)value, fill->width,
					 fill->height, stream);
	case 2:
		return cuMemsetD2D16Async(fill->dst, fill->pitch, (unsigned short)value,
					  fill->width, fill->height, stream);
	default:
		return cuMemsetD2D32Async(fill->dst, fill->pitch, value, fill->width, fill->height,
					  stream);
	}
}

CUresult
gs_node_run(const struct gs_node *node, CUstream stream, const struct gs_graphs *graphs)
{
	size_t size = node->params_size;
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, node->params, CU_LAUNCH_PARAM_BUFFER_SIZE,
			  &size, CU_LAUNCH_PARAM_END };
	CUlaunchConfig config = node->config;

	switch (node->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		if (node->green && gs_green_is_gone(node->green))
			return CUDA_ERROR_CONTEXT_IS_DESTROYED;
		config.hStream = stream;
		return gs_launch_node(&config, node->function, extra, node->green, graphs);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return cuMemcpy3DAsync_v2(&node->copy, stream);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return fill(&node->fill, stream);
	default:
		return CUDA_SUCCESS;
	}
}

CUresult CUDAAPI
cuGraphLaunch(CUgraphExec handle, CUstream stream)
{
	struct gs_graph *now;
	struct gs_node *node;
	CUresult r;
	struct gs_graph *graph = gs_graph_enter(handle, GS_KIND_GRAPH_EXEC, &r);

	if (!graph)
		return r;
	now = gs_graph_now(graph);
	atomic_store(&graph->uploaded, true);
	if (graph->runs_alone || gs_graph_any_launchable()) {
		r = gs_graph_launch_alone(graph, stream);
	} else {
		DL_FOREACH(now->nodes, node)
		{
			if (!r)
				r = gs_node_run(node, stream, NULL);
		}
	}
	gs_object_put(&now->object);
	gs_object_put(&graph->object);
	return r;
}
