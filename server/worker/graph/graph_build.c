/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/graph/graph_build.h"

#include "gp_calls.h"
#include "protocol/dec.h"
#include "protocol/graph_plan.h"
#include "server/worker/context/context.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/copy_part.h"
#include "server/worker/copy/registration_split.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/partition.h"
#include "server/worker/graph/graph_exec.h"
#include "server/worker/graph/graph_root.h"
#include "server/worker/graph/graph_scan.h"
#include "server/worker/memory/memory.h"
#include "server/worker/module/image.h"
#include "server/worker/module/launch.h"
#include "server/worker/module/library.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/responder.h"

#include <stdlib.h>

/* State of a graph that is being built. */
struct build {
	struct gpd_session *session;
	struct gpd_graph_built *built;
	CUgraph graph;     /* graph to fill: the outermost one or a condition's body */
	CUcontext context; /* of every node: that of the partition */
	CUgraphNode *nodes;
	CUgraphNode *dependencies;   /* of the current node */
	struct gpd_graph_root *root; /* root of its conditions and updatable nodes; or NULL */
};

static CUresult fill_graph(const struct build *outer, CUgraph graph, const void *plan, size_t size);

static CUresult
set_attributes(CUgraphNode node, const CUlaunchConfig *config)
{
	CUresult result = CUDA_SUCCESS;

	for (unsigned int i = 0; i < config->numAttrs && result == CUDA_SUCCESS; i++) {
		if (config->attrs[i].id != CU_LAUNCH_ATTRIBUTE_IGNORE)
			result = gpd_driver.cuGraphKernelNodeSetAttribute(node, config->attrs[i].id,
									  &config->attrs[i].value);
	}
	return result;
}

/* Sets the parameters and edges of an existing node. */
static CUresult
change_kernel(const struct build *build, const CUDA_KERNEL_NODE_PARAMS *params, uint32_t count,
	      CUgraphNode node)
{
	CUgraphNode *to;
	CUresult result = gpd_driver.cuGraphKernelNodeSetParams_v2(node, params);

	if (result != CUDA_SUCCESS || count == 0)
		return result;
	to = calloc(count, sizeof(CUgraphNode));
	if (!to)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < count; i++)
		to[i] = node;
	result = gpd_graph_root_note_edges(build->root, build->dependencies, count, node);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuGraphAddDependencies_v2(build->graph, build->dependencies, to,
							      NULL, count);
	free(to);
	return result;
}

/* Returns the address of each parameter. NULL: no parameters, the driver does not report them, or
 * out of memory. */
static void **
param_list(CUkernel kernel, const struct gp_bytes *params)
{
	size_t capacity = 16, count = 0, offset, size;
	void **list = calloc(capacity, sizeof(*list));

	while (list &&
	       gpd_driver.cuKernelGetParamInfo(kernel, count, &offset, &size) == CUDA_SUCCESS) {
		void **grown = list;

		if (count + 1 == capacity)
			grown = reallocarray(list, capacity *= 2, sizeof(*list));
		if (!grown || offset > params->size || size > params->size - offset) {
			free(grown ? grown : list);
			return NULL;
		}
		list = grown;
		list[count++] = (uint8_t *)(uintptr_t)params->data + offset;
	}
	if (count)
		return list;
	free(list);
	return NULL;
}

/* node_p: an existing node, or NULL to add one. */
static CUresult
put_kernel(const struct build *build, const CUDA_KERNEL_NODE_PARAMS *params, uint32_t count,
	   CUgraphNode *node_p)
{
	if (*node_p)
		return change_kernel(build, params, count, *node_p);
	return gpd_driver.cuGraphAddKernelNode_v2(node_p, build->graph, build->dependencies, count,
						  params);
}

static CUresult
add_kernel(const struct build *build, const struct gp_args_gpLaunch *args, uint32_t count,
	   CUgraphNode *node_p)
{
	CUlaunchAttribute list[GPD_LAUNCH_ATTRIBUTES_MAX];
	CUlaunchConfig config = { .attrs = list };
	size_t params_size = args->params.size;
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)args->params.data,
			  CU_LAUNCH_PARAM_BUFFER_SIZE, &params_size, CU_LAUNCH_PARAM_END };
	CUDA_KERNEL_NODE_PARAMS params = {
		.gridDimX = args->grid_x,
		.gridDimY = args->grid_y,
		.gridDimZ = args->grid_z,
		.blockDimX = args->block_x,
		.blockDimY = args->block_y,
		.blockDimZ = args->block_z,
		.sharedMemBytes = args->shared,
		.extra = params_size ? extra : NULL,
		.ctx = build->context,
	};
	struct gpd_device_kernel device_kernel;
	CUresult result;
	void **single = NULL;

	if (params_size > GP_LAUNCH_PARAMS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpd_launch_attributes(build->session, build->built->device, args->attributes,
				       &config);
	if (result == CUDA_SUCCESS)
		result = gpd_image_kernel(build->session, args->kernel, build->built->device,
					  &device_kernel);
	if (result != CUDA_SUCCESS)
		return result;
	if ((device_kernel.kernel->params_size != UINT32_MAX &&
	     params_size < device_kernel.kernel->params_size) ||
	    (args->shared && args->shared > (unsigned int)gpd_image_get_dynamic(&device_kernel)))
		return CUDA_ERROR_INVALID_VALUE;
	params.kern = device_kernel.kernel->driver;
	build->built->uses.print |= device_kernel.image->uses.print;
	build->built->uses.malloc |= device_kernel.image->uses.malloc;
	build->built->kernel = device_kernel.kernel->name;
	/* The driver rejects the attribute for cooperative launches if the parameters were given as
	 * a buffer. */
	if (config.numAttrs && params_size && (single = param_list(params.kern, &args->params))) {
		params.kernelParams = single;
		params.extra = NULL;
	}
	result = put_kernel(build, &params, count, node_p);
	free(single);
	return result == CUDA_SUCCESS ? set_attributes(*node_p, &config) : result;
}

/* A chain of dependent nodes; node is the last one. */
struct chain {
	const struct build *build;
	const CUgraphNode *dependencies;
	uint32_t count;
	CUgraphNode node;
};

static struct chain
chain_begin(const struct build *build, uint32_t count)
{
	return (struct chain){ .build = build,
			       .dependencies = build->dependencies,
			       .count = count };
}

static void
chain_add(struct chain *chain, CUgraphNode node)
{
	chain->node = node;
	chain->dependencies = &chain->node;
	chain->count = 1;
}

static CUresult
add_fill_part(void *arg, const struct gp_args_gpFill *args)
{
	struct chain *chain = arg;
	const CUDA_MEMSET_NODE_PARAMS params = {
		.dst = args->dst,
		.pitch = args->pitch,
		.value = args->value,
		.elementSize = args->element_size,
		.width = args->width,
		.height = args->height,
	};
	CUgraphNode node;
	CUresult result =
		gpd_driver.cuGraphAddMemsetNode(&node, chain->build->graph, chain->dependencies,
						chain->count, &params, chain->build->context);

	if (result == CUDA_SUCCESS)
		chain_add(chain, node);
	return result;
}

static CUresult
add_copy_part(void *arg, const CUDA_MEMCPY3D *copy)
{
	struct chain *chain = arg;
	CUgraphNode node;
	CUresult result =
		gpd_driver.cuGraphAddMemcpyNode(&node, chain->build->graph, chain->dependencies,
						chain->count, copy, chain->build->context);

	if (result == CUDA_SUCCESS)
		chain_add(chain, node);
	return result;
}

static CUresult
add_fill(const struct build *build, const struct gp_args_gpFill *args, uint32_t count,
	 CUgraphNode *node_p)
{
	struct chain chain = chain_begin(build, count);
	uint64_t bytes;
	CUresult result;

	if ((args->element_size != 1 && args->element_size != 2 && args->element_size != 4) ||
	    args->dst % args->element_size || !args->width || !args->height ||
	    __builtin_mul_overflow(args->width, (uint64_t)args->element_size, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	result = gpd_memory_check_rows(build->session, args->dst, args->pitch, bytes, args->height);
	if (result == CUDA_SUCCESS)
		result = gpd_registration_split_fill(build->session, args, add_fill_part, &chain);
	*node_p = chain.node;
	return result;
}

static CUresult
add_copy(const struct build *build, const struct gp_args_gpCopyDevice *args, uint32_t count,
	 CUgraphNode *node_p)
{
	struct chain chain = chain_begin(build, count);
	CUDA_MEMCPY3D params;
	CUresult result = gpd_copy_device_box(build->session, args, &params);

	if (result == CUDA_SUCCESS)
		result =
			gpd_registration_split_copy(build->session, &params, add_copy_part, &chain);
	*node_p = chain.node;
	return result;
}

static CUresult
add_condition(const struct build *build, const struct gp_graph_node *node, CUgraphNode *node_p)
{
	CUgraphNodeParams params = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL };
	struct gp_graph_condition condition;
	struct gp_bytes body;
	CUresult result;

	if (!gp_graph_condition_init(&condition, node) || !build->root ||
	    !gpd_graph_root_has(build->root, condition.handle))
		return CUDA_ERROR_INVALID_VALUE;
	params.conditional = (CUDA_CONDITIONAL_NODE_PARAMS){
		.handle = condition.handle,
		.type = (CUgraphConditionalNodeType)condition.type,
		.size = condition.count,
		.ctx = build->context,
	};
	result = gpd_driver.cuGraphAddNode_v2(node_p, build->graph, build->dependencies, NULL,
					      node->count, &params);
	for (uint32_t i = 0; i < condition.count && result == CUDA_SUCCESS; i++) {
		result = gp_graph_condition_next_body(&condition, &body) ? CUDA_SUCCESS
									 : CUDA_ERROR_INVALID_VALUE;
		if (result == CUDA_SUCCESS)
			result = fill_graph(build, params.conditional.phGraph_out[i], body.data,
					    body.size);
	}
	return result;
}

/* Each updatable node may be used once, and not in a condition's body. */
static CUresult
add_updatable(const struct build *build, const struct gp_graph_node *node, CUgraphNode *node_p)
{
	struct gp_args_gpLaunch args;
	const struct gpd_updatable *updatable;
	struct gp_graph_updatable read;
	struct gp_dec dec;

	if (!gp_graph_updatable_init(&read, node) || !build->root ||
	    build->graph != build->root->driver)
		return CUDA_ERROR_INVALID_VALUE;
	updatable = gpd_graph_root_acquire_node(build->root, read.node_handle);
	gp_dec_init(&dec, read.launch.data, read.launch.size);
	gp_args_gpLaunch_decode(&dec, &args);
	if (!updatable || !gp_dec_done(&dec))
		return CUDA_ERROR_INVALID_VALUE;
	*node_p = updatable->node;
	return add_kernel(build, &args, node->count, node_p);
}

static CUresult
add_node(const struct build *build, const struct gp_graph_node *node, CUgraphNode *node_p)
{
	union {
		struct gp_args_gpLaunch launch;
		struct gp_args_gpFill fill;
		struct gp_args_gpCopyDevice copy;
	} args;
	struct gp_dec dec;

	for (uint32_t i = 0; i < node->count; i++)
		build->dependencies[i] = build->nodes[gp_graph_get_dependency(node, i)];
	gp_dec_init(&dec, node->fields.data, node->fields.size);
	switch (node->call) {
	case 0:
		return gpd_driver.cuGraphAddEmptyNode(node_p, build->graph, build->dependencies,
						      node->count);
	case GP_GRAPH_CONDITION:
		return add_condition(build, node, node_p);
	case GP_GRAPH_UPDATABLE:
		return add_updatable(build, node, node_p);
	case GP_CALL_gpLaunch:
		gp_args_gpLaunch_decode(&dec, &args.launch);
		return gp_dec_done(&dec) ? add_kernel(build, &args.launch, node->count, node_p)
					 : CUDA_ERROR_INVALID_VALUE;
	case GP_CALL_gpFill:
		gp_args_gpFill_decode(&dec, &args.fill);
		return gp_dec_done(&dec) ? add_fill(build, &args.fill, node->count, node_p)
					 : CUDA_ERROR_INVALID_VALUE;
	case GP_CALL_gpCopyDevice:
		gp_args_gpCopyDevice_decode(&dec, &args.copy);
		return gp_dec_done(&dec) ? add_copy(build, &args.copy, node->count, node_p)
					 : CUDA_ERROR_INVALID_VALUE;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Adds the nodes of a plan to a graph. */
static CUresult
fill_graph(const struct build *outer, CUgraph graph, const void *plan, size_t size)
{
	struct build build = *outer;
	struct gp_graph_reader reader;
	struct gp_graph_node node;
	CUresult result = CUDA_SUCCESS;

	gp_graph_reader_init(&reader, plan, size);
	while (gp_graph_read_node(&reader, &node))
		;
	build.graph = graph;
	build.nodes = calloc(reader.read + 1, sizeof(CUgraphNode));
	build.dependencies = calloc(reader.read + 1, sizeof(CUgraphNode));
	if (!build.nodes || !build.dependencies)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	gp_graph_reader_init(&reader, plan, size);
	for (uint32_t i = 0; result == CUDA_SUCCESS && gp_graph_read_node(&reader, &node); i++)
		result = add_node(&build, &node, &build.nodes[i]);
	free(build.nodes);
	free(build.dependencies);
	return result;
}

/* A plan with conditions or updatable nodes is built in the root's graph, which stays. */
static CUresult
fill_driver_graph(struct build *build, const void *plan, size_t size, CUgraph *graph_p)
{
	struct gpd_graph_built *built = build->built;
	CUresult result = gpd_partition_context(built->partition, built->device, &build->context);

	*graph_p = NULL;
	if (result == CUDA_SUCCESS)
		result = build->root ? gpd_graph_root_occupy(build->session, build->root, graph_p)
				     : gpd_driver.cuGraphCreate(graph_p, 0);
	if (result != CUDA_SUCCESS)
		return result;
	built->root = build->root ? *graph_p : NULL;
	return fill_graph(build, *graph_p, plan, size);
}

static void
drop_driver_graph(const struct build *build, CUgraph graph)
{
	if (!build->root && graph)
		(void)gpd_driver.cuGraphDestroy(graph);
}

static CUresult
graph_instantiate(struct build *build, const void *plan, size_t size, bool launchable)
{
	const unsigned long long flags = launchable ? CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH : 0;
	CUgraphExec *exec_p = &build->built->driver;
	CUgraph graph;
	CUresult result = fill_driver_graph(build, plan, size, &graph);

	/* Unused updatable nodes would run, too. */
	if (result == CUDA_SUCCESS && build->root && !gpd_graph_root_all_used(build->root))
		result = CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS)
		result = build->root
				 ? gpd_graph_root_instantiate(build->session, build->root, exec_p)
				 : gpd_driver.cuGraphInstantiateWithFlags(exec_p, graph, flags);
	drop_driver_graph(build, graph);
	return result;
}

CUresult
gpd_graph_recv(struct gpd_session *session, void **plan_p, size_t *size_p)
{
	size_t size = session->current.bulk_left;

	*plan_p = size > 0 && size <= GP_GRAPH_PLAN_MAX ? malloc(size) : NULL;
	*size_p = size;
	if (gpd_session_recv_bulk(session, *plan_p, size)) {
		free(*plan_p);
		*plan_p = NULL;
		return CUDA_ERROR_UNKNOWN;
	}
	if (size > GP_GRAPH_PLAN_MAX)
		gpd_session_violation(session, "a graph of %zu bytes", size);
	if (!*plan_p)
		return size == 0 || size > GP_GRAPH_PLAN_MAX ? CUDA_ERROR_INVALID_VALUE
							     : CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

bool
gpd_graph_charge(struct gpd_session *session, uint64_t bytes)
{
	struct gpd_handle_memory *memory = &session->handles.memory;
	bool last = false;

	while (!gpd_handle_memory_add(memory, bytes)) {
		if (!memory->deferred || last)
			return false;
		last = gpd_wait_is_empty(session);
		gpd_wait_any(session);
	}
	return true;
}

static uint64_t
scan_get_cost(const struct gpd_graph_scan *scan)
{
	return sizeof(struct gpd_graph_built) + (uint64_t)scan->nodes * GPD_GRAPH_NODE_COST +
	       scan->edges * GPD_GRAPH_EDGE_COST;
}

CUresult
gpd_graph_build(struct gpd_session *session, const void *plan, size_t size, int device,
		struct gpd_partition *partition, bool launchable, struct gpd_graph_built **built_p)
{
	struct gpd_graph_built *built;
	struct build build = { .session = session };
	struct gpd_graph_scan scan;
	uint64_t bytes;
	CUresult result;

	*built_p = NULL;
	if (!gpd_graph_scan(plan, size, &scan))
		return CUDA_ERROR_INVALID_VALUE;
	if (scan.needs_root) {
		if (launchable)
			return CUDA_ERROR_NOT_SUPPORTED;
		build.root = gpd_graph_root_get(session, scan.root);
		if (!build.root || build.root->context->device != device)
			return CUDA_ERROR_INVALID_VALUE;
		partition = build.root->partition;
	}
	bytes = scan_get_cost(&scan);
	if (!gpd_graph_charge(session, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	built = calloc(1, sizeof(*built));
	if (!built) {
		gpd_handle_memory_remove(&session->handles.memory, bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	built->device = device;
	built->kernels_changed = session->modules->kernels_changed;
	built->stays = build.root || launchable;
	built->charged = bytes;
	built->partition = gpd_partition_acquire(partition);
	build.built = built;
	result = graph_instantiate(&build, plan, size, launchable);
	if (result == CUDA_SUCCESS)
		*built_p = built;
	else
		gpd_graph_destroy_built(session, built, !gpd_driver_is_sticky(result));
	return result;
}

CUresult
gpd_graph_add_kernel(struct gpd_session *session, struct gpd_graph_root *root, const void *plan,
		     size_t size, CUgraphNode *node_p)
{
	struct gpd_graph_built scratch = { .device = root->context->device };
	struct build build = {
		.session = session, .built = &scratch, .graph = root->driver, .root = root
	};
	struct gp_graph_reader reader;
	struct gp_graph_node node, other;
	CUresult result;

	gp_graph_reader_init(&reader, plan, size);
	if (!gp_graph_read_node(&reader, &node) || gp_graph_read_node(&reader, &other) ||
	    reader.bad || node.call != GP_CALL_gpLaunch)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpd_partition_context(root->partition, scratch.device, &build.context);
	return result == CUDA_SUCCESS ? add_node(&build, &node, node_p) : result;
}

CUresult
gpd_graph_update(struct gpd_session *session, const void *plan, size_t size,
		 struct gpd_graph_built *built)
{
	/* The new state; while the driver refuses the update, the old one stays. */
	struct gpd_graph_built now = { .device = built->device,
				       .partition = built->partition,
				       .kernels_changed = session->modules->kernels_changed };
	struct build build = { .session = session, .built = &now };
	CUgraphExecUpdateResultInfo info;
	struct gpd_graph_scan scan;
	CUgraph graph;
	CUresult result;

	if (!gpd_graph_scan(plan, size, &scan) || scan.needs_root ||
	    scan_get_cost(&scan) > built->charged)
		return CUDA_ERROR_INVALID_VALUE;
	result = fill_driver_graph(&build, plan, size, &graph);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuGraphExecUpdate_v2(built->driver, graph, &info);
	drop_driver_graph(&build, graph);
	if (result != CUDA_SUCCESS)
		return result;
	built->kernels_changed = now.kernels_changed;
	built->uses = now.uses;
	built->kernel = now.kernel;
	return CUDA_SUCCESS;
}

bool
gpd_graph_fits(const struct gpd_session *session, const struct gpd_graph_built *built,
	       const struct gpd_partition *partition)
{
	return built->kernels_changed == session->modules->kernels_changed &&
	       (built->stays || built->partition == partition);
}

static void
built_free(struct gpd_graph_built *built, bool driver)
{
	if (built->driver && driver && gpd_device_enter(built->device) == CUDA_SUCCESS)
		(void)gpd_driver.cuGraphExecDestroy(built->driver);
	gpd_partition_unref(built->partition);
	free(built);
}

void
gpd_graph_destroy_built(struct gpd_session *session, struct gpd_graph_built *built, bool driver)
{
	if (!built)
		return;
	if (built->root)
		gpd_graph_root_vacate(session, built->root);
	gpd_handle_memory_remove(&session->handles.memory, built->charged);
	built_free(built, driver);
}

/* Runs in the responder. */
static void
built_unused(struct gpd_session *session, void *arg, CUresult result)
{
	struct gpd_graph_built *built = arg;
	uint64_t charged = built->charged;
	bool rooted = built->root != NULL;

	built_free(built, !gpd_driver_is_sticky(result));
	if (rooted)
		atomic_fetch_sub(&session->graphs->rooted_leaving, 1);
	gpd_handle_memory_complete(&session->handles.memory, charged);
}

void
gpd_graph_destroy_built_later(struct gpd_session *session, struct gpd_graph_built *built)
{
	CUresult result;

	if (!built)
		return;
	if (built->root) {
		gpd_graph_root_vacate(session, built->root);
		atomic_fetch_add(&session->graphs->rooted_leaving, 1);
	}
	gpd_handle_memory_defer(&session->handles.memory, built->charged);
	result = gpd_wait_add_all(session, NULL, built_unused, built);
	/* Without a marker it is destroyed at once: the driver itself defers that until running
	 * launches have ended. */
	if (result != CUDA_SUCCESS)
		built_unused(session, built, result);
}
