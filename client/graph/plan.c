/* SPDX-License-Identifier: Apache-2.0 */
#include "client/graph/plan.h"

#include "client/base/lacks.h"
#include "client/code/function.h"
#include "client/code/image.h"
#include "client/code/launch.h"
#include "client/context/context.h"
#include "client/copy/copy_region.h"
#include "client/graph/mem_ops.h"
#include "client/memory/address.h"
#include "gpc_calls.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* A node of the graph or of a child of it, or what ends a child. */
struct flat {
	const struct gpc_node *node; /* NULL: it does nothing */
	size_t *dependencies;        /* places in the list, all before this one */
	size_t count, room;
	size_t stage;    /* even: of the daemon's sets; odd: of the client's nodes */
	uint32_t number; /* in its set */
	bool is_client;
	bool followed; /* something depends on it */
};

struct flats {
	struct flat *list;
	size_t count, room;
};

static bool
depend(struct flats *flats, struct flat *flat, size_t on)
{
	if (flat->count == flat->room) {
		size_t room = flat->room ? 2 * flat->room : 2;
		size_t *list = realloc(flat->dependencies, room * sizeof(*list));

		if (!list)
			return false;
		flat->dependencies = list;
		flat->room = room;
	}
	flat->dependencies[flat->count++] = on;
	flats->list[on].followed = true;
	return true;
}

static struct flat *
append(struct flats *flats, const struct gpc_node *node)
{
	if (flats->count == flats->room) {
		size_t room = flats->room ? 2 * flats->room : 64;
		struct flat *list = realloc(flats->list, room * sizeof(*list));

		if (!list)
			return NULL;
		flats->list = list;
		flats->room = room;
	}
	flats->list[flats->count] = (struct flat){ .node = node };
	return &flats->list[flats->count++];
}

static void
flats_free(struct flats *flats)
{
	for (size_t i = 0; i < flats->count; i++)
		free(flats->list[i].dependencies);
	free(flats->list);
}

static CUresult flatten(struct flats *flats, const struct gpc_graph *graph, size_t root)
	GP_LOCKED(gpc_graphs_lock);

/* A child: its roots depend on `entry`, which does nothing, and what ends it on its last nodes. */
static CUresult
flatten_child(struct flats *flats, const struct gpc_graph *child, size_t entry)
	GP_LOCKED(gpc_graphs_lock)
{
	size_t first = flats->count;
	CUresult result = flatten(flats, child, entry);
	struct flat *end;

	if (result != CUDA_SUCCESS)
		return result;
	end = append(flats, NULL);
	if (!end || (first + 1 == flats->count && !depend(flats, end, entry)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = first; i + 1 < flats->count; i++) {
		if (!flats->list[i].followed && !depend(flats, end, i))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

/* root: what nodes without dependencies depend on; SIZE_MAX: nothing. */
static CUresult
flatten_node(struct flats *flats, const struct gpc_node *node, const size_t *ends, size_t root)
	GP_LOCKED(gpc_graphs_lock)
{
	bool child = node->params.type == CU_GRAPH_NODE_TYPE_GRAPH;
	bool idle = child || node->disabled || node->params.type == CU_GRAPH_NODE_TYPE_EMPTY ||
		    gpc_node_params_is_memory(&node->params);
	struct flat *flat = append(flats, idle ? NULL : node);

	if (!flat)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < node->in.count; i++) {
		if (!depend(flats, flat, ends[node->in.list[i].node->mark]))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (node->in.count == 0 && root != SIZE_MAX && !depend(flats, flat, root))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return child && !node->disabled ? flatten_child(flats, node->params.child, flats->count - 1)
					: CUDA_SUCCESS;
}

static CUresult
flatten(struct flats *flats, const struct gpc_graph *graph, size_t root) GP_LOCKED(gpc_graphs_lock)
{
	struct gpc_node **nodes;
	size_t *ends = calloc(graph->count + 1, sizeof(*ends)); /* of the node with this mark */
	CUresult result = ends ? gpc_graph_sort(graph, &nodes) : CUDA_ERROR_OUT_OF_MEMORY;

	if (result != CUDA_SUCCESS) {
		free(ends);
		return result;
	}
	for (size_t i = 0; i < graph->count && result == CUDA_SUCCESS; i++) {
		result = flatten_node(flats, nodes[i], ends, root);
		ends[i] = flats->count - 1;
	}
	free(nodes);
	free(ends);
	return result;
}

/* The graph of a device reaches another one's memory only where that has access. */
static bool
is_beyond(const struct gpc_node_params *params, uint64_t address)
{
	struct gpc_address found;

	gpc_address_lookup(address, &found);
	return found.kind == GPC_ADDRESS_DEVICE && found.context && params->context &&
	       found.context->device != params->context->device;
}

static bool
is_on_device(const struct gpc_node_params *params)
{
	struct gpc_address found;
	struct gpc_copy copy;

	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return true;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		gpc_address_lookup(params->fill.dst, &found);
		return found.kind == GPC_ADDRESS_DEVICE && !is_beyond(params, params->fill.dst);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return gpc_copy_3d(&copy, &params->copy) == CUDA_SUCCESS && copy.width > 0 &&
		       !copy.dst.host && !copy.src.host && !copy.dst.array && !copy.src.array &&
		       !is_beyond(params, copy.dst.base) && !is_beyond(params, copy.src.base);
	default:
		return false;
	}
}

/* Stages come one after the other; each node is in the first one that it can be in. */
static void
find_stages(struct flats *flats)
{
	for (size_t i = 0; i < flats->count; i++) {
		struct flat *flat = &flats->list[i];

		flat->is_client = flat->node && !is_on_device(&flat->node->params);
		flat->stage = flat->is_client;
		for (size_t j = 0; j < flat->count; j++) {
			const struct flat *on = &flats->list[flat->dependencies[j]];
			size_t least = on->stage + (on->is_client != flat->is_client);

			if (least > flat->stage)
				flat->stage = least;
		}
	}
}

/* What depends on a node that does nothing depends on what that depends on. */
static bool
pass_idle(struct flats *flats)
{
	for (size_t i = 0; i < flats->count; i++) {
		struct flat *flat = &flats->list[i], was = *flat;

		flat->dependencies = NULL;
		flat->count = flat->room = 0;
		for (size_t j = 0; j < was.count; j++) {
			const struct flat *on = &flats->list[was.dependencies[j]];
			bool done = !on->node || depend(flats, flat, was.dependencies[j]);

			for (size_t k = 0; k < on->count && !on->node && done; k++)
				done = depend(flats, flat, on->dependencies[k]);
			if (!done) {
				free(was.dependencies);
				return false;
			}
		}
		free(was.dependencies);
	}
	return true;
}

/* Graphs that kernels launch have kernels, memsets and copies within device memory, and nothing
 * else: CUDA_ERROR_NOT_SUPPORTED. */
static CUresult
check_launchable(const struct gpc_graph *graph, const struct gpc_node **error_p)
	GP_LOCKED(gpc_graphs_lock)
{
	const struct gpc_node *node;
	CUresult result = CUDA_SUCCESS;

	DL_FOREACH(graph->nodes, node)
	{
		if (node->params.type == CU_GRAPH_NODE_TYPE_GRAPH)
			result = check_launchable(node->params.child, error_p);
		else if (node->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL ||
			 (node->params.type == CU_GRAPH_NODE_TYPE_KERNEL &&
			  node->params.kernel.updatable) ||
			 !is_on_device(&node->params))
			result = CUDA_ERROR_NOT_SUPPORTED;
		if (result != CUDA_SUCCESS) {
			if (!*error_p)
				*error_p = node;
			return result;
		}
	}
	return CUDA_SUCCESS;
}

/* root: of a node that is to be written as one that kernels change; or NULL. */
static CUresult
write_kernel(struct gp_graph_writer *writer, const struct gpc_node_params *params,
	     const struct gpc_graph_root *root, const uint32_t *dependencies, uint32_t count,
	     struct gpc_shapes *shapes)
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
	CUresult result = gpc_function_kernel(params->context, kernel->function, &args.kernel);

	if (result == CUDA_SUCCESS)
		result = gpc_launch_attributes_encode(&config, &attributes);
	if (result == CUDA_SUCCESS)
		result = gpc_shapes_add(shapes, params->context, kernel->function, &args,
					&attributes);
	if (result != CUDA_SUCCESS)
		return result;
	args.attributes = attributes.bytes;
	size = gp_args_gpLaunch_size(&args);
	fields = root ? gp_graph_write_updatable(writer, dependencies, count, kernel->updatable,
						 gpc_graph_root_name(root), size)
		      : gp_graph_write(writer, GP_CALL_gpLaunch, dependencies, count, size);
	if (!fields)
		return CUDA_ERROR_OUT_OF_MEMORY;
	gp_enc_init(&enc, fields, size);
	gp_args_gpLaunch_encode(&enc, &args);
	gp_graph_fit(writer, (root ? GP_GRAPH_UPDATABLE_HEAD : 0) + gp_enc_size(&enc));
	return CUDA_SUCCESS;
}

CUresult
gpc_plan_write_kernel(const struct gpc_node_params *params, struct gp_graph_writer *writer)
{
	return write_kernel(writer, params, NULL, NULL, 0, NULL);
}

static CUresult
write_copy(struct gp_graph_writer *writer, const struct gpc_node_params *params,
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
	fields = gp_graph_write(writer, GP_CALL_gpCopyDevice, dependencies, count,
				gp_args_gpCopyDevice_size(&args));
	if (!fields)
		return CUDA_ERROR_OUT_OF_MEMORY;
	gp_enc_init(&enc, fields, gp_args_gpCopyDevice_size(&args));
	gp_args_gpCopyDevice_encode(&enc, &args);
	gp_graph_fit(writer, gp_enc_size(&enc));
	return CUDA_SUCCESS;
}

static CUresult
write_fill(struct gp_graph_writer *writer, const CUDA_MEMSET_NODE_PARAMS *params,
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
	void *fields = gp_graph_write(writer, GP_CALL_gpFill, dependencies, count,
				      gp_args_gpFill_size(&args));

	if (!fields)
		return CUDA_ERROR_OUT_OF_MEMORY;
	gp_enc_init(&enc, fields, gp_args_gpFill_size(&args));
	gp_args_gpFill_encode(&enc, &args);
	gp_graph_fit(writer, gp_enc_size(&enc));
	return CUDA_SUCCESS;
}

static int
compare(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The node's dependencies within its set, ascending, each once. */
static uint32_t
number_dependencies(const struct flats *flats, const struct flat *flat, uint32_t *numbers)
{
	uint32_t count = 0, kept = 0;

	for (size_t i = 0; i < flat->count; i++) {
		const struct flat *on = &flats->list[flat->dependencies[i]];

		if (on->stage == flat->stage)
			numbers[count++] = on->number;
	}
	qsort(numbers, count, sizeof(*numbers), compare);
	for (uint32_t i = 0; i < count; i++) {
		if (i == 0 || numbers[i] != numbers[i - 1])
			numbers[kept++] = numbers[i];
	}
	return kept;
}

static CUresult write_flat(struct gpc_plan *plan, const struct flats *flats,
			   const struct flat *flat, struct gp_graph_writer *writer);

/* All nodes of it are for the daemon. */
static CUresult
write_body(struct gpc_plan *plan, const struct gpc_graph *body, struct gp_graph_writer *writer)
	GP_LOCKED(gpc_graphs_lock)
{
	struct flats flats = { 0 };
	CUresult result = flatten(&flats, body, SIZE_MAX);

	if (result == CUDA_SUCCESS)
		find_stages(&flats);
	for (size_t i = 0; i < flats.count && result == CUDA_SUCCESS; i++) {
		flats.list[i].number = (uint32_t)i;
		result = flats.list[i].stage > 0 ? gpc_lacks(GPC_LACK_HOST_COPY_IN_BODY)
						 : write_flat(plan, &flats, &flats.list[i], writer);
	}
	flats_free(&flats);
	return result;
}

/* What is of roots is in one set, and of one root: the daemon makes that set in the root's graph.
 */
static CUresult
take_root(struct gpc_plan *plan, const struct gpc_graph_root *root)
{
	if (plan->root && (plan->root != root || plan->root_stage != plan->stage))
		return gpc_lacks(GPC_LACK_CONDITIONS_OF_SEVERAL);
	plan->root = root;
	plan->root_stage = plan->stage;
	return CUDA_SUCCESS;
}

static CUresult
write_launch(struct gpc_plan *plan, const struct gpc_node_params *params, uint32_t *dependencies,
	     uint32_t count, struct gp_graph_writer *writer)
{
	const struct gpc_kernel_params *kernel = &params->kernel;
	CUresult result = kernel->updatable ? take_root(plan, kernel->root) : CUDA_SUCCESS;

	plan->updatable |= kernel->updatable != 0;
	return result == CUDA_SUCCESS ? write_kernel(writer, params, kernel->root, dependencies,
						     count, &plan->shapes)
				      : result;
}

static CUresult
write_condition(struct gpc_plan *plan, const struct gpc_condition *condition,
		const uint32_t *dependencies, uint32_t count, struct gp_graph_writer *writer)
	GP_LOCKED(gpc_graphs_lock)
{
	const struct gp_graph_condition written = {
		.handle = condition->handle,
		.type = condition->type,
		.count = condition->size,
		.root = gpc_graph_root_name(condition->root),
	};
	struct gp_graph_writer *bodies;
	CUresult result = take_root(plan, condition->root);

	if (result != CUDA_SUCCESS)
		return result;
	bodies = calloc(condition->size, sizeof(*bodies));
	if (!bodies)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned int i = 0; i < condition->size && result == CUDA_SUCCESS; i++)
		result = write_body(plan, condition->bodies[i], &bodies[i]);
	if (result == CUDA_SUCCESS &&
	    !gp_graph_write_condition(writer, dependencies, count, &written, bodies))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	for (unsigned int i = 0; i < condition->size; i++)
		free(bodies[i].memory);
	free(bodies);
	return result;
}

static CUresult
write_flat(struct gpc_plan *plan, const struct flats *flats, const struct flat *flat,
	   struct gp_graph_writer *writer) GP_LOCKED(gpc_graphs_lock)
{
	const struct gpc_node_params *params = flat->node ? &flat->node->params : NULL;
	uint32_t *numbers = calloc(flat->count + 1, sizeof(*numbers)), count;
	CUresult result = CUDA_SUCCESS;

	if (!numbers)
		return CUDA_ERROR_OUT_OF_MEMORY;
	count = number_dependencies(flats, flat, numbers);
	if (params && !plan->context)
		plan->context = params->context;
	if (!params)
		result = gp_graph_write(writer, 0, numbers, count, 0) ? CUDA_SUCCESS
								      : CUDA_ERROR_OUT_OF_MEMORY;
	else if (params->context != plan->context)
		result = gpc_lacks(GPC_LACK_CONTEXTS_IN_GRAPH);
	else if (params->type == CU_GRAPH_NODE_TYPE_KERNEL)
		result = write_launch(plan, params, numbers, count, writer);
	else if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		result = write_condition(plan, &params->condition, numbers, count, writer);
	else if (params->type == CU_GRAPH_NODE_TYPE_MEMSET)
		result = write_fill(writer, &params->fill, numbers, count);
	else
		result = write_copy(writer, params, numbers, count);
	free(numbers);
	return result;
}

static CUresult
add_set(struct gpc_plan *plan, struct flats *flats, size_t stage, const struct gpc_node **error_p)
	GP_LOCKED(gpc_graphs_lock)
{
	struct gpc_step step = { 0 };
	CUresult result = CUDA_SUCCESS;
	uint32_t number = 0;
	bool any = false;

	plan->stage = stage;
	for (size_t i = 0; i < flats->count && result == CUDA_SUCCESS; i++) {
		struct flat *flat = &flats->list[i];

		if (flat->stage != stage || (plan->launchable && !flat->node))
			continue;
		flat->number = number++;
		any = any || flat->node;
		result = write_flat(plan, flats, flat, &step.writer);
		if (result != CUDA_SUCCESS)
			*error_p = flat->node;
	}
	if (result == CUDA_SUCCESS && any)
		plan->steps[plan->count++] = step;
	else
		free(step.writer.memory);
	return result;
}

static CUresult
add_steps(struct gpc_plan *plan, struct flats *flats, const struct gpc_node **error_p)
	GP_LOCKED(gpc_graphs_lock)
{
	CUresult result = CUDA_SUCCESS;
	size_t last = 0;

	find_stages(flats);
	for (size_t i = 0; i < flats->count; i++) {
		if (flats->list[i].stage > last)
			last = flats->list[i].stage;
	}
	/* As many as there are nodes of the client's, and a set before, between and behind them. */
	plan->steps = calloc(flats->count + last + 1, sizeof(*plan->steps));
	if (!plan->steps)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t stage = 0; stage <= last && result == CUDA_SUCCESS; stage++) {
		if (stage % 2 == 0) {
			result = add_set(plan, flats, stage, error_p);
			continue;
		}
		for (size_t i = 0; i < flats->count; i++) {
			struct gpc_step *step = &plan->steps[plan->count];

			if (flats->list[i].stage != stage || result != CUDA_SUCCESS)
				continue;
			gpc_step_share(&flats->list[i].node->params, &step->params);
			step->is_client = true;
			plan->count++;
		}
	}
	return result;
}

CUresult
gpc_plan_make(const struct gpc_graph *graph, bool launchable, struct gpc_plan *plan,
	      const struct gpc_node **error_p)
{
	struct flats flats = { 0 };
	CUresult result = flatten(&flats, graph, SIZE_MAX);

	*plan = (struct gpc_plan){ .launchable = launchable };
	*error_p = NULL;
	if (result == CUDA_SUCCESS && launchable)
		result = check_launchable(graph, error_p);
	if (result == CUDA_SUCCESS && launchable && !pass_idle(&flats))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		result = add_steps(plan, &flats, error_p);
	if (result == CUDA_SUCCESS && launchable && plan->count == 0)
		result = CUDA_ERROR_INVALID_VALUE;
	flats_free(&flats);
	if (result != CUDA_SUCCESS)
		gpc_plan_free(plan);
	return result;
}

void
gpc_plan_free(struct gpc_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		if (plan->steps[i].is_client)
			gpc_step_drop(&plan->steps[i].params);
		free(plan->steps[i].writer.memory);
	}
	free(plan->steps);
	free(plan->shapes.list);
	*plan = (struct gpc_plan){ 0 };
}

void
gpc_step_share(const struct gpc_node_params *params, struct gpc_node_params *copy)
{
	*copy = *params;
	if (params->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		(void)gpc_mem_ops_hold(copy->ops);
}

void
gpc_step_drop(struct gpc_node_params *params)
{
	if (params->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		gpc_mem_ops_drop(params->ops);
}
