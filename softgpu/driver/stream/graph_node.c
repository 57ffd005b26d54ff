/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of existing kernel nodes, by host calls and by kernels. Kernels identify a
 * device-updatable node by a number, which refers to the node of the graph's executable.
 */
#include "softgpu/driver/context/green.h"
#include "softgpu/driver/stream/graph.h"
#include "softgpu/engine/engine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define INVALID_VALUE 1 /* cudaErrorInvalidValue */

struct gs_device_node {
	struct gs_object object;
	struct gs_node *live; /* node of the executable, or NULL */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void
device_node_free(struct gs_object *object)
{
	free(object);
}

/* The number is written to the value although it is declared const. */
static CUresult
make_device_node(struct gs_node *node, CUkernelNodeAttrValue *value)
{
	if (value->deviceUpdatableKernelNode.deviceUpdatable != 1)
		return CUDA_ERROR_INVALID_VALUE;
	if (!node->device) {
		node->device = calloc(1, sizeof(*node->device));
		if (!node->device)
			return CUDA_ERROR_OUT_OF_MEMORY;
		gs_object_init(&node->device->object, GS_KIND_DEVICE_NODE, NULL, device_node_free);
		gs_object_publish(&node->device->object);
		((struct gs_graph *)node->object.owner)->runs_alone = true;
	}
	value->deviceUpdatableKernelNode.devNode = (CUgraphDeviceNode)node->device;
	return CUDA_SUCCESS;
}

struct gs_device_node *
gs_device_node_ref(struct gs_device_node *device)
{
	gs_object_ref(&device->object);
	return device;
}

void
gs_device_node_begin(struct gs_node *node)
{
	pthread_mutex_lock(&lock);
	node->device->live = node;
	pthread_mutex_unlock(&lock);
}

void
gs_device_node_end(struct gs_node *node, bool gone)
{
	pthread_mutex_lock(&lock);
	if (node->device->live == node)
		node->device->live = NULL;
	pthread_mutex_unlock(&lock);
	if (gone)
		(void)gs_object_retire(node->device, GS_KIND_DEVICE_NODE);
	gs_object_put(&node->device->object);
}

/* Called with the lock held. */
static bool
apply(struct gs_node *node, const struct gs_node_change *change)
{
	switch (change->kind) {
	case GS_CHANGE_PARAM:
		if (change->offset > node->params_size ||
		    change->size > node->params_size - change->offset)
			return false;
		memcpy(node->params + change->offset, change->bytes, change->size);
		return true;
	case GS_CHANGE_ENABLED:
		node->disabled = !change->enabled;
		return true;
	case GS_CHANGE_GRID:
		node->config.gridDimX = change->grid[0];
		node->config.gridDimY = change->grid[1];
		node->config.gridDimZ = change->grid[2];
		return change->grid[0] && change->grid[1] && change->grid[2];
	default:
		return false;
	}
}

int
gs_device_node_change(const struct gs_graphs *graphs, uint64_t number,
		      const struct gs_node_change *change)
{
	struct gs_device_node *device =
		gs_object_get((const void *)(uintptr_t)number, GS_KIND_DEVICE_NODE); /* NOLINT */
	bool done;

	if (!device)
		return INVALID_VALUE;
	pthread_mutex_lock(&lock);
	done = device->live && apply(device->live, change);
	pthread_mutex_unlock(&lock);
	gs_object_put(&device->object);
	return done ? 0 : INVALID_VALUE;
}

/* Replaces the attribute's previous value. */
static CUresult
set_attribute(struct gs_node *node, CUkernelNodeAttrID id, const CUkernelNodeAttrValue *value)
{
	unsigned int i = 0;

	while (i < node->config.numAttrs && node->attributes[i].id != id)
		i++;
	if (i == GS_NODE_ATTRIBUTES_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (i == node->config.numAttrs)
		node->config.numAttrs++;
	node->attributes[i] = (CUlaunchAttribute){ .id = id, .value = *value };
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuGraphKernelNodeSetAttribute(CUgraphNode handle, CUkernelNodeAttrID id,
			      const CUkernelNodeAttrValue *value)
{
	CUresult r;
	struct gs_node *node = gs_graph_enter(handle, GS_KIND_GRAPH_NODE, &r);

	if (!node)
		return r;
	if (!value || node->type != CU_GRAPH_NODE_TYPE_KERNEL ||
	    (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && node->packed))
		r = CUDA_ERROR_INVALID_VALUE;
	else if (id == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
		r = make_device_node(node, (CUkernelNodeAttrValue *)(uintptr_t)value);
	else
		r = set_attribute(node, id, value);
	gs_object_put(&node->object);
	return r;
}

CUresult CUDAAPI
cuGraphKernelNodeSetParams_v2(CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS *given)
{
	struct gs_node now = { .type = CU_GRAPH_NODE_TYPE_KERNEL };
	CUresult r;
	struct gs_node *node = gs_graph_enter(handle, GS_KIND_GRAPH_NODE, &r);

	if (!node)
		return r;
	if (node->type != CU_GRAPH_NODE_TYPE_KERNEL || !given || !given->func == !given->kern) {
		gs_object_put(&node->object);
		return CUDA_ERROR_INVALID_VALUE;
	}
	now.green = node->green;
	r = gs_node_set_kernel(given, &now);
	if (r) {
		free(now.params);
	} else {
		free(node->params);
		now.config.numAttrs = node->config.numAttrs;
		now.config.attrs = node->attributes;
		node->config = now.config;
		node->function = now.function;
		node->params = now.params;
		node->params_size = now.params_size;
		node->packed = now.packed;
	}
	gs_object_put(&node->object);
	return r;
}

/* Adds edges to nodes on which no others depend yet: these are moved to the end, because nodes run
 * in list order. */
CUresult CUDAAPI
cuGraphAddDependencies_v2(CUgraph graph_handle, const CUgraphNode *from, const CUgraphNode *to,
			  const CUgraphEdgeData *data, size_t count)
{
	CUresult r;
	struct gs_graph *graph = gs_graph_enter(graph_handle, GS_KIND_GRAPH, &r);

	if (!graph)
		return r;
	if (data || (count && (!from || !to)))
		r = CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; !r && i < count; i++) {
		struct gs_node *node = gs_object_get(to[i], GS_KIND_GRAPH_NODE);
		struct gs_node *before = gs_object_get(from[i], GS_KIND_GRAPH_NODE);

		if (!node || !before || node == before || node->object.owner != &graph->object ||
		    before->object.owner != &graph->object) {
			r = CUDA_ERROR_INVALID_VALUE;
		} else {
			DL_DELETE(graph->nodes, node);
			DL_APPEND(graph->nodes, node);
		}
		if (node)
			gs_object_put(&node->object);
		if (before)
			gs_object_put(&before->object);
	}
	gs_object_put(&graph->object);
	return r;
}

/* The order of the remaining nodes is still valid. */
CUresult CUDAAPI
cuGraphRemoveDependencies_v2(CUgraph graph_handle, const CUgraphNode *from, const CUgraphNode *to,
			     const CUgraphEdgeData *data, size_t count)
{
	CUresult r;
	struct gs_graph *graph = gs_graph_enter(graph_handle, GS_KIND_GRAPH, &r);

	if (!graph)
		return r;
	gs_object_put(&graph->object);
	return data || (count && (!from || !to)) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
