/* SPDX-License-Identifier: Apache-2.0 */
#include "client/graph/graph_root.h"

#include "client/context/context.h"
#include "client/context/object.h"
#include "client/graph/graph.h"
#include "client/stream/stream.h"
#include "gpc_calls.h"
#include "protocol/graph_plan.h"

#include <stdlib.h>
#include <string.h>

struct gpc_graph_root {
	struct gpc_handle handle;
	unsigned int refs;
	struct gpc_context *context;
	uint64_t number; /* number of the context, which changes when it is reset */
	struct handle *handles;
	size_t count;
};

struct handle {
	CUgraphConditionalHandle value;
	bool bound; /* used by a node of the graph */
};

struct gpc_graph_root *
gpc_graph_root_ref(struct gpc_graph_root *root)
{
	if (root)
		root->refs++;
	return root;
}

void
gpc_graph_root_unref(struct gpc_graph_root *root)
{
	if (!root || --root->refs > 0)
		return;
	/* A reset of its context has destroyed the daemon's root. */
	if (root->number != 0 && gpc_stream_context_number(root->context) == root->number)
		(void)gpc_post_gpGraphRootDrop(
			root->context, &(struct gp_args_gpGraphRootDrop){ root->handle.id });
	free(root->handles);
	gpc_handle_remove(&root->handle);
}

static CUresult
root_create(struct gpc_context *context, struct gpc_graph_root **root_p) GP_LOCKED(gpc_graphs_lock)
{
	struct gpc_graph_root *root = gpc_handle_new(GPC_KIND_GRAPH_ROOT, sizeof(*root));
	struct gp_args_gpGraphRoot args = { .context = context->handle.id };
	CUresult result;

	if (!root)
		return CUDA_ERROR_OUT_OF_MEMORY;
	root->refs = 1;
	root->context = context;
	args.root = root->handle.id;
	result = gpc_post_gpGraphRoot(context, &args);
	if (result != CUDA_SUCCESS) {
		gpc_graph_root_unref(root);
		return result;
	}
	root->number = gpc_stream_context_number(context);
	*root_p = root;
	return CUDA_SUCCESS;
}

/* Requests another handle from the daemon. */
static CUresult
root_add_handle(struct gpc_graph_root *root, unsigned int value, unsigned int flags,
		CUgraphConditionalHandle *handle_p)
{
	const struct gp_args_gpGraphHandle args = { root->handle.id, value, flags };
	struct gp_reply_gpGraphHandle reply;
	struct handle *handles = realloc(root->handles, (root->count + 1) * sizeof(*handles));
	CUresult result;

	if (!handles)
		return CUDA_ERROR_OUT_OF_MEMORY;
	root->handles = handles;
	result = gpc_wait_gpGraphHandle(root->context, &args, &reply);
	if (result != CUDA_SUCCESS)
		return result;
	root->handles[root->count++] = (struct handle){ .value = reply.handle };
	*handle_p = reply.handle;
	return CUDA_SUCCESS;
}

/* Returns NULL if the root has no such handle. */
static struct handle *
root_find_handle(const struct gpc_graph_root *root, CUgraphConditionalHandle value)
{
	for (size_t i = 0; root && i < root->count; i++) {
		if (root->handles[i].value == value)
			return &root->handles[i];
	}
	return NULL;
}

bool
gpc_graph_root_all_bound(const struct gpc_graph_root *root)
{
	for (size_t i = 0; i < root->count; i++) {
		if (!root->handles[i].bound)
			return false;
	}
	return true;
}

/* Returns the graph that contains this body or child graph, or NULL. */
static struct gpc_graph *
graph_get_parent(const struct gpc_graph *graph)
{
	return graph->owner_node ? graph->owner_node->graph : NULL;
}

uint32_t
gpc_graph_root_id(const struct gpc_graph_root *root)
{
	return root->handle.id;
}

CUresult
gpc_graph_get_root(struct gpc_graph *graph, struct gpc_context *context,
		   struct gpc_graph_root **root_p)
{
	CUresult result = CUDA_SUCCESS;

	while (graph_get_parent(graph))
		graph = graph_get_parent(graph);
	if (!graph->root)
		result = root_create(context, &graph->root);
	else if (graph->root->context != context)
		result = CUDA_ERROR_INVALID_VALUE;
	*root_p = graph->root;
	return result;
}

CUresult
gpc_graph_root_create_node(const struct gpc_graph_root *root, const struct gp_graph_writer *plan,
			   uint64_t *name_p)
{
	const struct iovec bulk = { plan->memory, plan->size };
	const struct gp_args_gpGraphNode args = { .root = root->handle.id };
	struct gp_reply_gpGraphNode reply = { 0 };
	CUresult result = gpc_wait_gpGraphNode(root->context, &args, &reply, &bulk, 1);

	if (result == CUDA_SUCCESS && reply.node == 0)
		result = gpc_reply_fail_malformed(root->context);
	*name_p = reply.node;
	return result;
}

CUresult
gpc_cuGraphConditionalHandleCreate(CUgraphConditionalHandle *pHandle_out, CUgraph hGraph,
				   CUcontext ctx, unsigned int defaultLaunchValue,
				   unsigned int flags)
{
	struct gpc_graph_root *root;
	struct gpc_context *context;
	struct gpc_graph *graph;
	CUresult result = gpc_graphs_begin_graph(hGraph, &graph);

	if (result == CUDA_SUCCESS &&
	    (!pHandle_out || flags & ~(unsigned int)CU_GRAPH_COND_ASSIGN_DEFAULT))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = ctx ? gpc_context_lookup(ctx, &context) : gpc_enter(&context);
	if (result == CUDA_SUCCESS)
		result = gpc_context_activate(context);
	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	result = gpc_graph_get_root(graph, context, &root);
	if (result == CUDA_SUCCESS)
		result = root_add_handle(root, defaultLaunchValue, flags, pHandle_out);
	return gpc_graphs_end(result);
}

static bool
params_have_valid_size(const CUDA_CONDITIONAL_NODE_PARAMS *given)
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

/* Creates copies of the bodies of `from`, or empty bodies. */
static CUresult
condition_create_bodies(struct gpc_condition *condition, const struct gpc_condition *from)
	GP_LOCKED(gpc_graphs_lock)
{
	CUresult result = CUDA_SUCCESS;

	condition->bodies = calloc(condition->size, sizeof(struct gpc_graph *));
	condition->body_tokens = calloc(condition->size, sizeof(CUgraph));
	if (!condition->bodies || !condition->body_tokens)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned int i = 0; i < condition->size && result == CUDA_SUCCESS; i++) {
		if (from)
			result = gpc_graph_clone(from->bodies[i], &condition->bodies[i]);
		else if (!(condition->bodies[i] = gpc_graph_create()))
			result = CUDA_ERROR_OUT_OF_MEMORY;
		if (result == CUDA_SUCCESS)
			condition->body_tokens[i] = condition->bodies[i]->handle.token;
	}
	if (result != CUDA_SUCCESS)
		gpc_condition_free(condition);
	return result;
}

CUresult
gpc_condition_parse(const CUDA_CONDITIONAL_NODE_PARAMS *given, struct gpc_condition *condition)
{
	if (!params_have_valid_size(given))
		return CUDA_ERROR_INVALID_VALUE;
	*condition = (struct gpc_condition){ .handle = given->handle,
					     .type = given->type,
					     .size = given->size };
	return condition_create_bodies(condition, NULL);
}

CUresult
gpc_condition_bind(const struct gpc_graph *graph, struct gpc_condition *condition)
{
	struct handle *handle = NULL;

	if (condition->root)
		return CUDA_SUCCESS;
	while (graph && !(handle = root_find_handle(graph->root, condition->handle)))
		graph = graph_get_parent(graph);
	if (!graph || handle->bound)
		return CUDA_ERROR_INVALID_VALUE;
	condition->root = gpc_graph_root_ref(graph->root);
	condition->owns_handle = handle->bound = true;
	return CUDA_SUCCESS;
}

CUresult
gpc_condition_dup(const struct gpc_condition *condition, struct gpc_condition *copy)
{
	*copy = *condition;
	copy->owns_handle = false;
	(void)gpc_graph_root_ref(copy->root);
	return condition_create_bodies(copy, condition);
}

void
gpc_condition_rebind(struct gpc_condition *condition, const struct gpc_condition *now)
{
	struct gpc_graph_root *before = condition->root;

	condition->handle = now->handle;
	condition->root = gpc_graph_root_ref(now->root);
	gpc_graph_root_unref(before);
}

void
gpc_condition_free(struct gpc_condition *condition)
{
	for (unsigned int i = 0; condition->bodies && i < condition->size; i++) {
		if (condition->bodies[i])
			gpc_graph_destroy(condition->bodies[i]);
	}
	free(condition->bodies);
	free(condition->body_tokens);
	if (condition->owns_handle)
		root_find_handle(condition->root, condition->handle)->bound = false;
	gpc_graph_root_unref(condition->root);
}

static bool
node_type_runs_on_device(CUgraphNodeType type)
{
	switch (type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
	case CU_GRAPH_NODE_TYPE_MEMCPY:
	case CU_GRAPH_NODE_TYPE_MEMSET:
	case CU_GRAPH_NODE_TYPE_GRAPH:
	case CU_GRAPH_NODE_TYPE_EMPTY:
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return true;
	default:
		return false;
	}
}

bool
gpc_condition_allows(const struct gpc_graph *graph, CUgraphNodeType type)
{
	if (node_type_runs_on_device(type))
		return true;
	for (; graph->owner_node; graph = graph_get_parent(graph)) {
		if (graph->owner_node->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
			return false;
	}
	return true;
}
