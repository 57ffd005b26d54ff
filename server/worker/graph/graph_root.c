/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/graph/graph_root.h"

#include "base/clock.h"
#include "gpd_calls.h"
#include "server/worker/context/context.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/partition.h"
#include "server/worker/graph/graph_build.h"
#include "server/worker/graph/graph_exec.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/responder.h"
#include "server/worker/stream/stream.h"

#include <stdlib.h>

/* Bytes charged per handle. */
#define HANDLE_COST 1024
/* Retries while the driver still counts the former executable, and their interval. */
#define TRIES 100
#define NAP_NS 1000000

struct gpd_partition *
gpd_graph_partition(const struct gpd_session *session, const struct gpd_context *context)
{
	const struct gpd_stream *stream = session->streams->list;

	while (stream && (stream->context != context || stream->dropped))
		stream = stream->next;
	return stream ? stream->partition : NULL;
}

struct gpd_graph_root *
gpd_graph_root_get(const struct gpd_session *session, uint32_t id)
{
	return gpd_handle_get(&session->handles, GPD_KIND_GRAPH_ROOT, id);
}

static void
root_destroy(struct gpd_session *session, struct gpd_graph_root *root)
{
	if (root->driver && gpd_device_enter(root->context->device) == CUDA_SUCCESS)
		(void)gpd_driver.cuGraphDestroy(root->driver);
	gpd_handle_memory_remove(&session->handles.memory,
				 root->count * HANDLE_COST +
					 root->updatable_count * GPD_GRAPH_NODE_COST);
	gpd_partition_unref(root->partition);
	gpd_handle_remove(&session->handles, &root->handle);
	free(root->handles);
	free(root->updatables);
	free(root->from);
	free(root->to);
	free(root);
}

CUresult
gpd_gpGraphRoot(struct gpd_session *session, const struct gp_args_gpGraphRoot *args)
{
	struct gpd_context *context = gpd_context_get(session, args->context);
	struct gpd_graph_root *root;
	CUresult result;

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	root = gpd_session_create_object(session, GPD_KIND_GRAPH_ROOT, args->root, sizeof(*root),
					 &result);
	if (!root)
		return result;
	root->context = context;
	root->partition = gpd_partition_acquire(gpd_graph_partition(session, context));
	result = gpd_device_enter(context->device);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuGraphCreate(&root->driver, 0);
	if (result != CUDA_SUCCESS)
		root_destroy(session, root);
	return result;
}

static CUresult
make_handle(const struct gpd_graph_root *root, unsigned int value, unsigned int flags,
	    CUgraphConditionalHandle *handle_p)
{
	int device = root->context->device;
	CUcontext context;
	CUresult result = gpd_device_enter(device);

	if (result == CUDA_SUCCESS)
		result = gpd_partition_context(root->partition, device, &context);
	return result == CUDA_SUCCESS ? gpd_driver.cuGraphConditionalHandleCreate(
						handle_p, root->driver, context, value, flags)
				      : result;
}

CUresult
gpd_gpGraphHandle(struct gpd_session *session, const struct gp_args_gpGraphHandle *args,
		  struct gp_reply_gpGraphHandle *reply)
{
	struct gpd_graph_root *root = gpd_graph_root_get(session, args->root);
	CUgraphConditionalHandle handle;
	uint64_t *handles;
	CUresult result;

	if (!root)
		return CUDA_ERROR_INVALID_HANDLE;
	if (args->flags & ~(unsigned int)CU_GRAPH_COND_ASSIGN_DEFAULT)
		return CUDA_ERROR_INVALID_VALUE;
	handles = realloc(root->handles, (root->count + 1) * sizeof(*handles));
	if (!handles)
		return CUDA_ERROR_OUT_OF_MEMORY;
	root->handles = handles;
	if (!gpd_graph_charge(session, HANDLE_COST))
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = make_handle(root, args->value, args->flags, &handle);
	if (result != CUDA_SUCCESS) {
		gpd_handle_memory_remove(&session->handles.memory, HANDLE_COST);
		return result;
	}
	root->handles[root->count++] = handle;
	reply->handle = handle;
	return CUDA_SUCCESS;
}

/* Makes the node updatable and returns the handle for device code. */
static CUresult
make_updatable(CUgraphNode node, uint64_t *node_handle_p)
{
	CUkernelNodeAttrValue value = { .deviceUpdatableKernelNode = { .deviceUpdatable = 1 } };
	CUresult result = gpd_driver.cuGraphKernelNodeSetAttribute(
		node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value);

	if (result == CUDA_SUCCESS && !value.deviceUpdatableKernelNode.devNode)
		result = gpd_driver.cuGraphKernelNodeGetAttribute(
			node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value);
	*node_handle_p = (uintptr_t)value.deviceUpdatableKernelNode.devNode;
	return result == CUDA_SUCCESS && *node_handle_p == 0 ? CUDA_ERROR_NOT_SUPPORTED : result;
}

static CUresult
add_updatable(struct gpd_session *session, struct gpd_graph_root *root, const void *plan,
	      size_t size, uint64_t *node_handle_p)
{
	struct gpd_updatable *list =
		realloc(root->updatables, (root->updatable_count + 1) * sizeof(*list));
	CUgraphNode node = NULL;
	CUresult result;

	if (!list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	root->updatables = list;
	result = gpd_graph_add_kernel(session, root, plan, size, &node);
	if (result == CUDA_SUCCESS)
		result = make_updatable(node, node_handle_p);
	if (result == CUDA_SUCCESS)
		list[root->updatable_count++] =
			(struct gpd_updatable){ *node_handle_p, node, false };
	else if (node)
		(void)gpd_driver.cuGraphDestroyNode(node);
	return result;
}

CUresult
gpd_gpGraphNode(struct gpd_session *session, const struct gp_args_gpGraphNode *args,
		struct gp_reply_gpGraphNode *reply)
{
	struct gpd_graph_root *root = gpd_graph_root_get(session, args->root);
	size_t size;
	void *plan;
	CUresult result = gpd_graph_recv(session, &plan, &size);

	if (result == CUDA_SUCCESS && !root)
		result = CUDA_ERROR_INVALID_HANDLE;
	if (result == CUDA_SUCCESS)
		result = gpd_device_enter(root->context->device);
	if (result == CUDA_SUCCESS && !gpd_graph_charge(session, GPD_GRAPH_NODE_COST))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS) {
		uint64_t node_handle = 0;

		result = add_updatable(session, root, plan, size, &node_handle);
		reply->node = node_handle;
		if (result != CUDA_SUCCESS)
			gpd_handle_memory_remove(&session->handles.memory, GPD_GRAPH_NODE_COST);
	}
	free(plan);
	return result;
}

CUresult
gpd_gpGraphRootDrop(struct gpd_session *session, const struct gp_args_gpGraphRootDrop *args)
{
	struct gpd_graph_root *root = gpd_graph_root_get(session, args->root);

	if (!root)
		return CUDA_ERROR_INVALID_HANDLE;
	root_destroy(session, root);
	return CUDA_SUCCESS;
}

bool
gpd_graph_root_has(const struct gpd_graph_root *root, uint64_t handle)
{
	for (size_t i = 0; i < root->count; i++) {
		if (root->handles[i] == handle)
			return true;
	}
	return false;
}

struct gpd_updatable *
gpd_graph_root_acquire_node(const struct gpd_graph_root *root, uint64_t node_handle)
{
	for (size_t i = 0; i < root->updatable_count; i++) {
		struct gpd_updatable *updatable = &root->updatables[i];

		if (updatable->node_handle != node_handle || updatable->used)
			continue;
		updatable->used = true;
		return updatable;
	}
	return NULL;
}

bool
gpd_graph_root_all_used(const struct gpd_graph_root *root)
{
	for (size_t i = 0; i < root->updatable_count; i++) {
		if (!root->updatables[i].used)
			return false;
	}
	return true;
}

static bool
node_is_updatable(const struct gpd_graph_root *root, CUgraphNode node)
{
	for (size_t i = 0; i < root->updatable_count; i++) {
		if (root->updatables[i].node == node)
			return true;
	}
	return false;
}

CUresult
gpd_graph_root_note_edges(struct gpd_graph_root *root, const CUgraphNode *from, size_t count,
			  CUgraphNode to)
{
	size_t capacity = root->edge_count + count;
	CUgraphNode *froms, *tos;

	froms = realloc(root->from, (capacity + 1) * sizeof(*froms));
	if (froms)
		root->from = froms;
	tos = realloc(root->to, (capacity + 1) * sizeof(*tos));
	if (tos)
		root->to = tos;
	if (!froms || !tos)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < count; i++) {
		if (!node_is_updatable(root, from[i]))
			continue;
		root->from[root->edge_count] = from[i];
		root->to[root->edge_count++] = to;
	}
	return CUDA_SUCCESS;
}

/* Removes all nodes except the updatable ones, which keep no edges and become unused. */
static CUresult
drop_nodes(struct gpd_graph_root *root)
{
	CUgraphNode *nodes;
	size_t count = 0;
	CUresult result = gpd_driver.cuGraphGetNodes(root->driver, NULL, &count);

	if (result != CUDA_SUCCESS || count == 0)
		return result;
	nodes = calloc(count, sizeof(CUgraphNode));
	if (!nodes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = gpd_driver.cuGraphGetNodes(root->driver, nodes, &count);
	for (; count > 0 && result == CUDA_SUCCESS; count--) {
		if (!node_is_updatable(root, nodes[count - 1]))
			result = gpd_driver.cuGraphDestroyNode(nodes[count - 1]);
	}
	free(nodes);
	if (result == CUDA_SUCCESS && root->edge_count > 0)
		result = gpd_driver.cuGraphRemoveDependencies_v2(root->driver, root->from, root->to,
								 NULL, root->edge_count);
	if (result == CUDA_SUCCESS)
		root->edge_count = 0;
	for (size_t i = 0; i < root->updatable_count; i++)
		root->updatables[i].used = false;
	return result;
}

/* The responder sees in memory that work has ended. The driver counts an executable until it has
 * noticed that itself, which happens when it is queried. */
static void
streams_query(const struct gpd_session *session, const struct gpd_graph_root *root)
{
	for (const struct gpd_stream *s = session->streams->list; s; s = s->next) {
		if (s->device == root->context->device)
			(void)gpd_driver.cuStreamQuery(s->driver);
	}
}

CUresult
gpd_graph_root_occupy(struct gpd_session *session, struct gpd_graph_root *root, CUgraph *graph_p)
{
	CUresult result;

	*graph_p = root->driver;
	if (root->occupied)
		return CUDA_ERROR_NOT_SUPPORTED;
	while (atomic_load(&session->graphs->rooted_leaving) && !gpd_wait_is_empty(session))
		gpd_wait_any(session);
	if (root->made)
		streams_query(session, root);
	result = drop_nodes(root);
	root->occupied = result == CUDA_SUCCESS;
	return result;
}

void
gpd_graph_root_vacate(const struct gpd_session *session, CUgraph driver)
{
	struct gpd_graph_root *root;
	uint32_t at = 0;

	while ((root = gpd_handle_next(&session->handles, GPD_KIND_GRAPH_ROOT, &at))) {
		if (root->driver == driver)
			root->occupied = false;
	}
}

CUresult
gpd_graph_root_instantiate(const struct gpd_session *session, struct gpd_graph_root *root,
			   CUgraphExec *exec_p)
{
	CUresult result = gpd_driver.cuGraphInstantiateWithFlags(exec_p, root->driver, 0);

	for (int i = 0; i < TRIES && root->made && result == CUDA_ERROR_NOT_SUPPORTED; i++) {
		gp_sleep_ns(NAP_NS);
		streams_query(session, root);
		result = gpd_driver.cuGraphInstantiateWithFlags(exec_p, root->driver, 0);
	}
	root->made |= result == CUDA_SUCCESS;
	return result;
}

void
gpd_graph_root_destroy_context(struct gpd_session *session, const struct gpd_context *context)
{
	struct gpd_graph_root *root;
	uint32_t at = 0;

	while ((root = gpd_handle_next(&session->handles, GPD_KIND_GRAPH_ROOT, &at))) {
		if (!context || root->context == context)
			root_destroy(session, root);
	}
}
