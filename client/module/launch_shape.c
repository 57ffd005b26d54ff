/* SPDX-License-Identifier: Apache-2.0 */
#include "client/module/launch_shape.h"

#include "client/base/list.h"
#include "client/base/stats.h"
#include "client/context/device.h"
#include "client/session/session.h"
#include "gpc_calls.h"
#include "protocol/image_info.h"

#include <stdlib.h>
#include <string.h>

bool
gpc_share_watch(struct gpc_context *context)
{
	const struct gp_args_gpShareWatch args = { 0 };
	struct gpc_session *session = context->scope.session;

	if (gpc_session_watches_revision(session))
		return true;
	/* Posting it twice is harmless. The flag is set only after it is posted, so that other
	 * threads rely on it no earlier. */
	if (gpc_post_gpShareWatch(context, &args) != CUDA_SUCCESS)
		return false;
	gpc_session_set_revision_watch(session);
	return true;
}

static void
query_init(struct gpc_kernel_query *query, enum gpc_kernel_query_kind what,
	   const struct gpc_context *context, const struct gpc_image *image)
{
	memset(query, 0, sizeof(*query));
	query->revision =
		gpc_session_revision(image->device->session) + atomic_load(&image->cache_changes);
	query->what = what;
	query->device = context->device->ordinal;
}

void
gpc_kernel_query_init(struct gpc_kernel_query *query, enum gpc_kernel_query_kind what,
		      const struct gpc_context *context, const struct gpc_function *function)
{
	query_init(query, what, context, function->image);
	query->kernel = function->index;
	for (unsigned int i = 0; i < GPC_KERNEL_QUERY_SETTINGS; i++) {
		const unsigned int attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES + i;

		if (gpc_function_get_attribute(function, (CUfunction_attribute)attribute,
					       &query->settings[i]))
			query->settings_known |= 1u << i;
	}
}

void
gpc_kernel_query_set_shape(struct gpc_kernel_query *query, const CUlaunchConfig *config,
			   const struct gpc_launch_attributes *attributes)
{
	const uint32_t words[GPC_KERNEL_QUERY_WORDS] = {
		config->blockDimX,        config->blockDimY,        config->blockDimZ,
		config->sharedMemBytes,   attributes->cluster[0],   attributes->cluster[1],
		attributes->cluster[2],   attributes->preferred[0], attributes->preferred[1],
		attributes->preferred[2], attributes->cooperative,  attributes->policy,
		config->gridDimX,         config->gridDimY,         config->gridDimZ,
		attributes->carveout,
	};

	memcpy(query->words, words, sizeof(words));
}

void
gpc_kernel_query_init_blocks(struct gpc_kernel_query *query, const struct gpc_context *context,
			     const struct gpc_function *function, int threads, uint64_t shared,
			     unsigned int flags)
{
	gpc_kernel_query_init(query, GPC_KERNEL_QUERY_BLOCKS, context, function);
	query->words[0] = (uint32_t)threads;
	query->words[1] = flags;
	query->words[2] = (uint32_t)shared;
	query->words[3] = (uint32_t)(shared >> 32);
}

static bool
grid_is_divisible(const uint32_t *cluster, const CUlaunchConfig *config)
{
	return !cluster[0] ||
	       (cluster[1] && cluster[2] && config->gridDimX % cluster[0] == 0 &&
		config->gridDimY % cluster[1] == 0 && config->gridDimZ % cluster[2] == 0);
}

/* Each shape is queried once. A shape that was accepted is accepted again with the same number of
 * cooperative blocks or fewer, and with any grid of whole clusters. */
void
gpc_launch_shape_init(struct gpc_launch_shape *shape, struct gpc_context *context,
		      struct gpc_function *function, const CUlaunchConfig *config,
		      const struct gpc_launch_attributes *attributes, uint32_t source)
{
	uint64_t accepted;

	shape->needed = attributes->cooperative || attributes->clustered;
	if (!shape->needed)
		return;
	shape->context = context;
	shape->function = function;
	shape->source = source;
	shape->threads = config->blockDimX * config->blockDimY * config->blockDimZ;
	shape->shared = config->sharedMemBytes;
	shape->count_together =
		attributes->cooperative && !attributes->clustered && !attributes->carveout;
	shape->blocks = (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ;
	gpc_kernel_query_init(&shape->query, GPC_KERNEL_QUERY_LAUNCH, context, function);
	gpc_kernel_query_set_shape(&shape->query, config, attributes);
	/* The key omits the grid, and the carveout, which as a preference never causes a
	 * refusal. */
	memset(shape->query.words + GPC_KERNEL_QUERY_GRID, 0, 4 * sizeof(uint32_t));
	shape->query.words[GPC_KERNEL_QUERY_GRID] = source;
	if (!gpc_kernel_query_find(function->image, &shape->query, &accepted))
		return;
	shape->needed = !grid_is_divisible(attributes->cluster, config) ||
			(attributes->cooperative && shape->blocks > accepted);
}

/* A query in flight, or a cached reply; the reply is a number. */
struct pending {
	struct gpc_kernel_query query;
	struct gpc_request request;
	uint64_t answer;
	bool known;
};

/* If the query was started, number_query_finish() must follow. */
static CUresult
blocks_query_start(const struct gpc_launch_shape *shape, struct pending *pending)
{
	const struct gpc_function *function = shape->function;
	const struct gp_args_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags args = {
		.func = GP_KERNEL(function->image->handle.id, function->index),
		.blockSize = (int32_t)shape->threads,
		.dynamicSMemSize = shape->shared,
	};

	*pending = (struct pending){ 0 };
	gpc_kernel_query_init_blocks(&pending->query, shape->context, function, (int)shape->threads,
				     shape->shared, 0);
	pending->known = gpc_kernel_query_find(function->image, &pending->query, &pending->answer);
	return pending->known ? CUDA_SUCCESS
			      : gpc_start_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
					shape->context, &args, &pending->request);
}

static CUresult
multiprocessors_query_start(const struct gpc_launch_shape *shape, struct pending *pending)
{
	const struct gpc_device *device = shape->context->device;
	const struct gp_args_gpResource args = { .device = device->remote,
						 .source = shape->source };

	*pending = (struct pending){ 0 };
	query_init(&pending->query, GPC_KERNEL_QUERY_MULTIPROCESSORS, shape->context,
		   shape->function->image);
	pending->query.words[0] = shape->source;
	pending->known =
		gpc_kernel_query_find(shape->function->image, &pending->query, &pending->answer);
	return pending->known ? CUDA_SUCCESS
			      : gpc_start_gpResource(shape->context, &args, &pending->request);
}

/* Decodes and caches the first number of the reply. */
static void
number_query_finish(const struct gpc_launch_shape *shape, struct pending *pending)
{
	CUresult result;
	struct gp_dec dec;
	int32_t number;

	if (pending->known)
		return;
	result = gpc_request_wait_own(&pending->request);
	gp_dec_init(&dec, pending->request.reply, pending->request.reply_size);
	number = (int32_t)gp_dec_u32(&dec);
	if (result == CUDA_SUCCESS && !dec.bad && number >= 0) {
		pending->answer = (uint64_t)number;
		gpc_kernel_query_put(shape->function->image, &pending->query, pending->answer);
	}
	free(pending->request.reply);
}

/* Starts both queries, then waits. Returns 0 if the limit is unknown. */
static uint64_t
blocks_get_max(const struct gpc_launch_shape *shape)
{
	struct pending blocks, multiprocessors;
	CUresult result;
	bool wait;

	if (!gpc_share_watch(shape->context) || blocks_query_start(shape, &blocks) != CUDA_SUCCESS)
		return 0;
	result = multiprocessors_query_start(shape, &multiprocessors);
	wait = !blocks.known || (result == CUDA_SUCCESS && !multiprocessors.known);
	if (wait)
		gpc_stats_wait_start(GP_CALL_gpResource);
	if (result == CUDA_SUCCESS)
		number_query_finish(shape, &multiprocessors);
	number_query_finish(shape, &blocks);
	if (wait)
		gpc_stats_wait_stop();
	return result == CUDA_SUCCESS ? blocks.answer * multiprocessors.answer : 0;
}

void
gpc_launch_shape_query(struct gpc_launch_shape *shape)
{
	uint64_t most;

	if (__builtin_expect(!shape->needed, 1) || !shape->count_together)
		return;
	most = blocks_get_max(shape);
	shape->needed = shape->blocks > most;
	if (!shape->needed)
		gpc_kernel_query_put(shape->function->image, &shape->query, most);
}

void
gpc_launch_shape_store(const struct gpc_launch_shape *shape)
{
	gpc_kernel_query_put(shape->function->image, &shape->query, shape->blocks);
}

CUresult
gpc_launch_shapes_add(struct gpc_launch_shapes *shapes, struct gpc_context *context,
		      CUfunction token, const struct gp_args_gpLaunch *args,
		      const struct gpc_launch_attributes *attributes)
{
	const CUlaunchConfig config = {
		.gridDimX = args->grid_x,
		.gridDimY = args->grid_y,
		.gridDimZ = args->grid_z,
		.blockDimX = args->block_x,
		.blockDimY = args->block_y,
		.blockDimZ = args->block_z,
		.sharedMemBytes = args->shared,
	};
	struct gpc_launch_shape *list, *check;
	struct gpc_function *function;
	CUresult result;

	if (!shapes || (!attributes->cooperative && !attributes->clustered))
		return CUDA_SUCCESS;
	result = gpc_function_lookup(context, token, &function);
	if (result != CUDA_SUCCESS)
		return result;
	list = gpc_list_grow(shapes->list, shapes->count, &shapes->capacity, sizeof(*list));
	if (!list)
		return CUDA_ERROR_OUT_OF_MEMORY;
	shapes->list = list;
	check = &list[shapes->count];
	gpc_launch_shape_init(check, context, function, &config, attributes, 0);
	shapes->count += check->needed;
	return CUDA_SUCCESS;
}

void
gpc_launch_shapes_query(struct gpc_launch_shapes *shapes)
{
	size_t remaining = 0;

	for (size_t i = 0; i < shapes->count; i++) {
		gpc_launch_shape_query(&shapes->list[i]);
		if (shapes->list[i].needed)
			shapes->list[remaining++] = shapes->list[i];
	}
	shapes->count = remaining;
}

void
gpc_launch_shapes_store(const struct gpc_launch_shapes *shapes)
{
	for (size_t i = 0; i < shapes->count; i++)
		gpc_launch_shape_store(&shapes->list[i]);
}
