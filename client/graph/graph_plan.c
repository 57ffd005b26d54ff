/* SPDX-License-Identifier: Apache-2.0 */
#include "client/graph/graph_plan.h"

#include "client/base/unsupported_feature.h"
#include "client/context/context.h"
#include "client/copy/copy_region.h"
#include "client/memory/address.h"
#include "client/module/function.h"
#include "client/module/image.h"
#include "client/module/launch.h"
#include "client/stream_ops/mem_op.h"
#include "gpc_calls.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Returns whether the address is on another device, whose memory the graph of a device can use only
 * with peer access. */
static bool
address_is_on_other_device(const struct gpc_node_params *params, uint64_t address)
{
	struct gpc_address found;

	gpc_address_lookup(address, &found);
	return found.kind == GPC_ADDRESS_DEVICE && found.context && params->context &&
	       found.context->device != params->context->device;
}

/* A copy within host memory that the device can access is not executed by the daemon: NVIDIA's
 * driver would wait for the stream's earlier work in the launch, which would delay the worker's
 * other sessions. */
static bool
node_runs_on_device(const struct gpc_node_params *params)
{
	struct gpc_address found;
	struct gpc_copy copy;

	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return true;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		gpc_address_lookup(params->fill.dst, &found);
		return found.kind == GPC_ADDRESS_DEVICE &&
		       !address_is_on_other_device(params, params->fill.dst);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return gpc_copy_3d(&copy, &params->copy) == CUDA_SUCCESS && copy.width > 0 &&
		       !copy.dst.host && !copy.src.host && !copy.dst.array && !copy.src.array &&
		       !(copy.dst.host_address && copy.src.host_address) &&
		       !address_is_on_other_device(params, copy.dst.base) &&
		       !address_is_on_other_device(params, copy.src.base);
	default:
		return false;
	}
}

/* Returns the minimum distance between the stages of two dependent elements. */
static size_t
flat_node_stage_distance(const struct gpc_flat_node *flat_node, const struct gpc_flat_node *on)
{
	if (on->is_client != flat_node->is_client)
		return 1;
	return !flat_node->is_client && flat_node->node && on->node &&
			       flat_node->node->params.context != on->node->params.context
		       ? 2
		       : 0;
}

/* Stages are executed one after the other, and each element is in the earliest possible one. Within
 * a stage no subgraph depends on one of another context. */
static void
flat_nodes_assign_stages(struct gpc_flat_nodes *flat_nodes)
{
	for (size_t i = 0; i < flat_nodes->count; i++) {
		struct gpc_flat_node *flat_node = &flat_nodes->list[i];

		flat_node->is_client =
			flat_node->node && !node_runs_on_device(&flat_node->node->params);
		flat_node->stage = flat_node->is_client;
		for (size_t j = 0; j < flat_node->count; j++) {
			const struct gpc_flat_node *on =
				&flat_nodes->list[flat_node->dependencies[j]];
			size_t least = on->stage + flat_node_stage_distance(flat_node, on);

			if (least > flat_node->stage)
				flat_node->stage = least;
		}
	}
}

/* Returns whether the nodes belong to several contexts. */
static bool
flat_nodes_span_contexts(const struct gpc_flat_nodes *flat_nodes)
{
	const struct gpc_context *first = NULL, *context;

	for (size_t i = 0; i < flat_nodes->count; i++) {
		context =
			flat_nodes->list[i].node ? flat_nodes->list[i].node->params.context : NULL;
		if (context && first && context != first)
			return true;
		if (context)
			first = context;
	}
	return false;
}

/* Graphs that kernels launch may contain only kernels, memsets and copies within device memory;
 * otherwise returns CUDA_ERROR_NOT_SUPPORTED. */
static CUresult
graph_check_launchable(const struct gpc_graph *graph, const struct gpc_node **error_p)
	GP_LOCKED(gpc_graphs_lock)
{
	const struct gpc_node *node;
	CUresult result = CUDA_SUCCESS;

	DL_FOREACH(graph->nodes, node)
	{
		if (node->params.type == CU_GRAPH_NODE_TYPE_GRAPH)
			result = graph_check_launchable(node->params.child, error_p);
		else if (node->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL ||
			 (node->params.type == CU_GRAPH_NODE_TYPE_KERNEL &&
			  node->params.kernel.updatable) ||
			 !node_runs_on_device(&node->params))
			result = CUDA_ERROR_NOT_SUPPORTED;
		if (result != CUDA_SUCCESS) {
			if (!*error_p)
				*error_p = node;
			return result;
		}
	}
	return CUDA_SUCCESS;
}

/* root: root of a device-updatable node; otherwise NULL. */
static CUresult
kernel_write(struct gp_graph_writer *writer, const struct gpc_node_params *params,
	     const struct gpc_graph_root *root, const uint32_t *dependencies, uint32_t count,
	     struct gpc_launch_shapes *shapes)
{
	const struct gpc_kernel_params *kernel = &params->kernel;
	const CUlaunchConfig config = { .attrs = kernel->attributes,
					.numAttrs = kernel->attribute_count };
	struct gpc_launch_attributes attributes;
	struct gp_args_gpLaunch args = {
		.grid_x = kernel->grid[0],
		.grid_y = kernel->grid[1],
		.grid_z = kernel->grid[2],
		.block_x = kernel->block[0],
		.block_y = kernel->block[1],
		.block_z = kernel->block[2],
		.shared = kernel->shared,
		.params = { kernel->packed, kernel->packed_size },
	};
	struct gp_enc enc;
	void *fields;
	size_t size;
	CUresult result = gpc_function_to_wire(params->context, kernel->function, &args.kernel);

	if (result == CUDA_SUCCESS)
		result = gpc_launch_attributes_encode(&config, &attributes);
	if (result == CUDA_SUCCESS)
		result = gpc_launch_shapes_add(shapes, params->context, kernel->function, &args,
					       &attributes);
	if (result != CUDA_SUCCESS)
		return result;
	args.attributes = attributes.bytes;
	size = gp_args_gpLaunch_size(&args);
	fields = root ? gp_graph_write_updatable(writer, dependencies, count, kernel->updatable,
						 gpc_graph_root_id(root), size)
		      : gp_graph_write_node(writer, GP_CALL_gpLaunch, dependencies, count, size);
	if (!fields)
		return CUDA_ERROR_OUT_OF_MEMORY;
	gp_enc_init(&enc, fields, size);
	gp_args_gpLaunch_encode(&enc, &args);
	gp_graph_shrink_last(writer, (root ? GP_GRAPH_UPDATABLE_HEAD : 0) + gp_enc_size(&enc));
	return CUDA_SUCCESS;
}

CUresult
gpc_plan_write_kernel(const struct gpc_node_params *params, struct gp_graph_writer *writer)
{
	return kernel_write(writer, params, NULL, NULL, 0, NULL);
}

static CUresult
copy_write(struct gp_graph_writer *writer, const struct gpc_node_params *params,
	   const uint32_t *dependencies, uint32_t count)
{
	struct gp_args_gpCopyDevice args;
	struct gpc_copy copy;
	struct gp_enc enc;
	void *fields;
	CUresult result = gpc_copy_3d(&copy, &params->copy);

	if (result != CUDA_SUCCESS)
		return result;
	args = (struct gp_args_gpCopyDevice){
		.dst = copy.dst.base,
		.dst_pitch = copy.dst.pitch,
		.dst_slice = copy.dst.slice,
		.src = copy.src.base,
		.src_pitch = copy.src.pitch,
		.src_slice = copy.src.slice,
		.width = copy.width,
		.height = copy.height,
		.depth = copy.depth,
	};
	fields = gp_graph_write_node(writer, GP_CALL_gpCopyDevice, dependencies, count,
				     gp_args_gpCopyDevice_size(&args));
	if (!fields)
		return CUDA_ERROR_OUT_OF_MEMORY;
	gp_enc_init(&enc, fields, gp_args_gpCopyDevice_size(&args));
	gp_args_gpCopyDevice_encode(&enc, &args);
	gp_graph_shrink_last(writer, gp_enc_size(&enc));
	return CUDA_SUCCESS;
}

static CUresult
memset_write(struct gp_graph_writer *writer, const CUDA_MEMSET_NODE_PARAMS *params,
	     const uint32_t *dependencies, uint32_t count)
{
	const struct gp_args_gpFill args = {
		.dst = params->dst,
		.pitch = params->height > 1 ? params->pitch : params->width * params->elementSize,
		.element_size = params->elementSize,
		.value = params->value,
		.width = params->width,
		.height = params->height,
	};
	struct gp_enc enc;
	void *fields = gp_graph_write_node(writer, GP_CALL_gpFill, dependencies, count,
					   gp_args_gpFill_size(&args));

	if (!fields)
		return CUDA_ERROR_OUT_OF_MEMORY;
	gp_enc_init(&enc, fields, gp_args_gpFill_size(&args));
	gp_args_gpFill_encode(&enc, &args);
	gp_graph_shrink_last(writer, gp_enc_size(&enc));
	return CUDA_SUCCESS;
}

static int
compare_numbers(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Returns the indexes of the element's dependencies within its subgraph, sorted and without
 * duplicates. */
static uint32_t
flat_node_number_dependencies(const struct gpc_flat_nodes *flat_nodes,
			      const struct gpc_flat_node *flat_node, uint32_t *numbers)
{
	uint32_t count = 0, kept = 0;

	for (size_t i = 0; i < flat_node->count; i++) {
		const struct gpc_flat_node *on = &flat_nodes->list[flat_node->dependencies[i]];

		if (on->stage == flat_node->stage)
			numbers[count++] = on->number;
	}
	qsort(numbers, count, sizeof(*numbers), compare_numbers);
	for (uint32_t i = 0; i < count; i++) {
		if (i == 0 || numbers[i] != numbers[i - 1])
			numbers[kept++] = numbers[i];
	}
	return kept;
}

static CUresult flat_node_write(struct gpc_plan *plan, const struct gpc_flat_nodes *flat_nodes,
				const struct gpc_flat_node *flat_node,
				struct gp_graph_writer *writer);

/* All nodes of a body are executed by the daemon. */
static CUresult
body_write(struct gpc_plan *plan, const struct gpc_graph *body, struct gp_graph_writer *writer)
	GP_LOCKED(gpc_graphs_lock)
{
	struct gpc_flat_nodes flat_nodes = { 0 };
	CUresult result = gpc_flat_nodes_create(&flat_nodes, body);

	if (result == CUDA_SUCCESS)
		flat_nodes_assign_stages(&flat_nodes);
	for (size_t i = 0; i < flat_nodes.count && result == CUDA_SUCCESS; i++) {
		flat_nodes.list[i].number = (uint32_t)i;
		result = flat_nodes.list[i].is_client
				 ? gpc_not_supported(GPC_UNSUPPORTED_HOST_COPY_IN_BODY)
				 : flat_node_write(plan, &flat_nodes, &flat_nodes.list[i], writer);
	}
	gpc_flat_nodes_free(&flat_nodes);
	return result;
}

/* All uses of roots must be in one subgraph and of one root, as the daemon creates that subgraph in
 * the root's graph. */
static CUresult
plan_set_root(struct gpc_plan *plan, const struct gpc_graph_root *root)
{
	if (plan->root && (plan->root != root || plan->root_stage != plan->stage))
		return gpc_not_supported(GPC_UNSUPPORTED_CONDITIONS_OF_SEVERAL);
	plan->root = root;
	plan->root_stage = plan->stage;
	return CUDA_SUCCESS;
}

static CUresult
launch_write(struct gpc_plan *plan, const struct gpc_node_params *params, uint32_t *dependencies,
	     uint32_t count, struct gp_graph_writer *writer)
{
	const struct gpc_kernel_params *kernel = &params->kernel;
	CUresult result = kernel->updatable ? plan_set_root(plan, kernel->root) : CUDA_SUCCESS;

	plan->updatable |= kernel->updatable != 0;
	return result == CUDA_SUCCESS ? kernel_write(writer, params, kernel->root, dependencies,
						     count, &plan->shapes)
				      : result;
}

static CUresult
condition_write(struct gpc_plan *plan, const struct gpc_condition *condition,
		const uint32_t *dependencies, uint32_t count, struct gp_graph_writer *writer)
	GP_LOCKED(gpc_graphs_lock)
{
	const struct gp_graph_condition written = {
		.handle = condition->handle,
		.type = condition->type,
		.count = condition->size,
		.root = gpc_graph_root_id(condition->root),
	};
	struct gp_graph_writer *bodies;
	CUresult result = plan_set_root(plan, condition->root);

	if (result != CUDA_SUCCESS)
		return result;
	bodies = calloc(condition->size, sizeof(*bodies));
	if (!bodies)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned int i = 0; i < condition->size && result == CUDA_SUCCESS; i++)
		result = body_write(plan, condition->bodies[i], &bodies[i]);
	if (result == CUDA_SUCCESS &&
	    !gp_graph_write_condition(writer, dependencies, count, &written, bodies))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned int i = 0; i < condition->size; i++)
		free(bodies[i].memory);
	free(bodies);
	return result;
}

static CUresult
flat_node_write(struct gpc_plan *plan, const struct gpc_flat_nodes *flat_nodes,
		const struct gpc_flat_node *flat_node, struct gp_graph_writer *writer)
	GP_LOCKED(gpc_graphs_lock)
{
	const struct gpc_node_params *params = flat_node->node ? &flat_node->node->params : NULL;
	uint32_t *numbers = calloc(flat_node->count + 1, sizeof(*numbers)), count;
	CUresult result = CUDA_SUCCESS;

	if (!numbers)
		return CUDA_ERROR_OUT_OF_MEMORY;
	count = flat_node_number_dependencies(flat_nodes, flat_node, numbers);
	if (!params)
		result = gp_graph_write_node(writer, 0, numbers, count, 0)
				 ? CUDA_SUCCESS
				 : CUDA_ERROR_OUT_OF_MEMORY;
	else if (params->context != plan->subgraph_context)
		result = gpc_not_supported(GPC_UNSUPPORTED_CONTEXTS_IN_GRAPH);
	else if (params->type == CU_GRAPH_NODE_TYPE_KERNEL)
		result = launch_write(plan, params, numbers, count, writer);
	else if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		result = condition_write(plan, &params->condition, numbers, count, writer);
	else if (params->type == CU_GRAPH_NODE_TYPE_MEMSET)
		result = memset_write(writer, &params->fill, numbers, count);
	else
		result = copy_write(writer, params, numbers, count);
	free(numbers);
	return result;
}

/* Returns whether the element is in the subgraph of this stage and context. Elements that do
 * nothing are included only if there is a single context; otherwise no element depends on them
 * (gpc_flat_nodes_skip_idle()). */
static bool
flat_node_is_in_subgraph(const struct gpc_plan *plan, const struct gpc_flat_node *flat_node)
{
	if (flat_node->stage != plan->stage)
		return false;
	return flat_node->node ? flat_node->node->params.context == plan->subgraph_context
			       : !plan->launchable && !plan->multi_context;
}

/* Adds the subgraph of this context in the plan's stage. */
static CUresult
plan_add_subgraph(struct gpc_plan *plan, struct gpc_flat_nodes *flat_nodes,
		  struct gpc_context *context, const struct gpc_node **error_p)
	GP_LOCKED(gpc_graphs_lock)
{
	struct gpc_step step = { .context = context, .stage = plan->stage };
	CUresult result = CUDA_SUCCESS;
	uint32_t number = 0;

	plan->subgraph_context = context;
	for (size_t i = 0; i < flat_nodes->count && result == CUDA_SUCCESS; i++) {
		struct gpc_flat_node *flat_node = &flat_nodes->list[i];

		if (!flat_node_is_in_subgraph(plan, flat_node))
			continue;
		flat_node->number = number++;
		flat_node->written = true;
		result = flat_node_write(plan, flat_nodes, flat_node, &step.writer);
		if (result != CUDA_SUCCESS)
			*error_p = flat_node->node;
	}
	if (result == CUDA_SUCCESS)
		plan->steps[plan->count++] = step;
	else
		free(step.writer.memory);
	return result;
}

static CUresult
plan_add_subgraphs(struct gpc_plan *plan, struct gpc_flat_nodes *flat_nodes, size_t stage,
		   const struct gpc_node **error_p) GP_LOCKED(gpc_graphs_lock)
{
	CUresult result = CUDA_SUCCESS;

	plan->stage = stage;
	for (size_t i = 0; i < flat_nodes->count && result == CUDA_SUCCESS; i++) {
		const struct gpc_flat_node *flat_node = &flat_nodes->list[i];

		if (flat_node->stage == stage && flat_node->node && !flat_node->written)
			result = plan_add_subgraph(plan, flat_nodes,
						   flat_node->node->params.context, error_p);
	}
	return result;
}

static void
plan_add_client_steps(struct gpc_plan *plan, const struct gpc_flat_nodes *flat_nodes, size_t stage)
	GP_LOCKED(gpc_graphs_lock)
{
	for (size_t i = 0; i < flat_nodes->count; i++) {
		const struct gpc_flat_node *flat_node = &flat_nodes->list[i];
		struct gpc_step *step = &plan->steps[plan->count];

		if (flat_node->stage != stage)
			continue;
		gpc_step_params_copy(&flat_node->node->params, &step->params);
		step->context = step->params.context;
		step->stage = stage;
		step->is_client = true;
		plan->count++;
	}
}

static CUresult
plan_add_steps(struct gpc_plan *plan, struct gpc_flat_nodes *flat_nodes,
	       const struct gpc_node **error_p) GP_LOCKED(gpc_graphs_lock)
{
	CUresult result = CUDA_SUCCESS;
	size_t last = 0;

	flat_nodes_assign_stages(flat_nodes);
	for (size_t i = 0; i < flat_nodes->count; i++) {
		if (flat_nodes->list[i].stage > last)
			last = flat_nodes->list[i].stage;
	}
	/* At most one step per element, and one per stage. */
	plan->steps = calloc(flat_nodes->count + last + 1, sizeof(*plan->steps));
	if (!plan->steps)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t stage = 0; stage <= last && result == CUDA_SUCCESS; stage++) {
		if (stage % 2 == 0)
			result = plan_add_subgraphs(plan, flat_nodes, stage, error_p);
		else
			plan_add_client_steps(plan, flat_nodes, stage);
	}
	return result;
}

CUresult
gpc_plan_make(const struct gpc_graph *graph, bool launchable, struct gpc_plan *plan,
	      const struct gpc_node **error_p)
{
	struct gpc_flat_nodes flat_nodes = { 0 };
	CUresult result = gpc_flat_nodes_create(&flat_nodes, graph);

	*plan = (struct gpc_plan){ .launchable = launchable,
				   .multi_context = flat_nodes_span_contexts(&flat_nodes) };
	*error_p = NULL;
	if (result == CUDA_SUCCESS && launchable)
		result = plan->multi_context ? CUDA_ERROR_NOT_SUPPORTED
					     : graph_check_launchable(graph, error_p);
	if (result == CUDA_SUCCESS && (launchable || plan->multi_context) &&
	    !gpc_flat_nodes_skip_idle(&flat_nodes))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		result = plan_add_steps(plan, &flat_nodes, error_p);
	if (result == CUDA_SUCCESS && launchable && plan->count == 0)
		result = CUDA_ERROR_INVALID_VALUE;
	gpc_flat_nodes_free(&flat_nodes);
	if (result != CUDA_SUCCESS)
		gpc_plan_free(plan);
	return result;
}

void
gpc_plan_free(struct gpc_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		if (plan->steps[i].is_client)
			gpc_step_params_free(&plan->steps[i].params);
		free(plan->steps[i].writer.memory);
	}
	free(plan->steps);
	free(plan->shapes.list);
	*plan = (struct gpc_plan){ 0 };
}

void
gpc_step_params_copy(const struct gpc_node_params *params, struct gpc_node_params *copy)
{
	*copy = *params;
	if (params->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		(void)gpc_mem_ops_ref(copy->ops);
}

void
gpc_step_params_free(struct gpc_node_params *params)
{
	if (params->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		gpc_mem_ops_unref(params->ops);
}
