/* SPDX-License-Identifier: Apache-2.0 */
#include "gpd_calls.h"
#include "protocol/image_info.h"
#include "server/worker/context/context.h"
#include "server/worker/device/driver.h"
#include "server/worker/module/image.h"
#include "server/worker/module/launch.h"
#include "server/worker/module/library.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/stream.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* Values of gpOccupancyCluster.what. */
enum {
	MAX_POTENTIAL_SIZE = 0,
	MAX_ACTIVE = 1,
};

/* Returns a stream in the session's partition of its current device, so that only its
 * multiprocessors count. */
static CUstream
confined_stream(const struct gpd_session *session)
{
	const struct gpd_context *context = gpd_context_get(session, session->current.context);
	const struct gpd_stream *stream = context ? context->legacy : NULL;

	return stream && stream->partition ? stream->driver : NULL;
}

/* Returns the kernel with the session's own settings. If the driver's maximum is higher because of
 * another session, which may change the result, the image gets a library of its own. */
static CUresult
enter_kernel(struct gpd_session *session, uint64_t kernel, uint64_t dynamic, CUfunction *function_p)
{
	struct gpd_device_kernel device_kernel;
	CUresult result = gpd_image_kernel_in_context(session, kernel, &device_kernel);

	if (result == CUDA_SUCCESS && dynamic > (uint64_t)gpd_image_get_dynamic(&device_kernel) &&
	    atomic_load(&device_kernel.function->dynamic_most) !=
		    gpd_image_get_dynamic(&device_kernel))
		result = gpd_image_make_own(session, &device_kernel);
	if (result == CUDA_SUCCESS)
		*function_p = atomic_load(&device_kernel.function->driver);
	return result;
}

static CUresult
active_blocks(struct gpd_session *session, uint64_t kernel, int size, uint64_t shared,
	      unsigned int flags, int32_t *blocks_p)
{
	CUfunction function;
	CUresult result = enter_kernel(session, kernel, shared, &function);

	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
			blocks_p, function, size, shared, flags);
	return result;
}

CUresult
gpd_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	struct gpd_session *session,
	const struct gp_args_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags *args,
	struct gp_reply_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags *reply)
{
	return active_blocks(session, args->func, args->blockSize, args->dynamicSMemSize,
			     args->flags, &reply->numBlocks);
}

CUresult
gpd_cuOccupancyAvailableDynamicSMemPerBlock(
	struct gpd_session *session,
	const struct gp_args_cuOccupancyAvailableDynamicSMemPerBlock *args,
	struct gp_reply_cuOccupancyAvailableDynamicSMemPerBlock *reply)
{
	CUfunction function;
	/* The result depends on the whole maximum. */
	CUresult result = enter_kernel(session, args->func, UINT64_MAX, &function);
	size_t size = 0;

	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuOccupancyAvailableDynamicSMemPerBlock(
			&size, function, args->numBlocks, args->blockSize);
	reply->dynamicSmemSize = size;
	return result;
}

CUresult
gpd_gpOccupancyBlocks(struct gpd_session *session, const struct gp_args_gpOccupancyBlocks *args,
		      struct gp_reply_gpOccupancyBlocks *reply)
{
	const size_t count = args->questions.size / sizeof(struct gp_occupancy_query);
	CUresult result = CUDA_SUCCESS;
	uint32_t *answers;

	if (!count || count > GP_OCCUPANCY_QUERIES_MAX ||
	    args->questions.size % sizeof(struct gp_occupancy_query))
		return CUDA_ERROR_INVALID_VALUE;
	answers = calloc(count, sizeof(answers[0]));
	if (!answers)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
		struct gp_occupancy_query query;
		int32_t blocks = 0;

		memcpy(&query, (const char *)args->questions.data + i * sizeof(query),
		       sizeof(query));
		result = active_blocks(session, args->kernel, (int)le32toh(query.size),
				       le64toh(query.shared), args->flags, &blocks);
		answers[i] = htole32((uint32_t)blocks);
	}
	if (result == CUDA_SUCCESS)
		reply->blocks = (struct gp_bytes){ answers, count * sizeof(answers[0]) };
	else
		free(answers);
	return result;
}

CUresult
gpd_gpShareWatch(struct gpd_session *session, const struct gp_args_gpShareWatch *args)
{
	session->streams->watches_shares = true;
	return CUDA_SUCCESS;
}

CUresult
gpd_gpOccupancyCluster(struct gpd_session *session, const struct gp_args_gpOccupancyCluster *args,
		       struct gp_reply_gpOccupancyCluster *reply)
{
	CUlaunchAttribute attributes[GPD_LAUNCH_ATTRIBUTES_MAX];
	CUlaunchConfig config = GPD_LAUNCH_CONFIG(args);
	__typeof__(cuOccupancyMaxActiveClusters) *query_function;
	CUfunction function = NULL;
	CUresult result;

	if (args->what != MAX_POTENTIAL_SIZE && args->what != MAX_ACTIVE)
		return CUDA_ERROR_INVALID_VALUE;
	query_function = args->what == MAX_ACTIVE ? gpd_driver.cuOccupancyMaxActiveClusters
						  : gpd_driver.cuOccupancyMaxPotentialClusterSize;
	config.attrs = attributes;
	result = gpd_launch_attributes(session,
				       gpd_context_device(session, session->current.context),
				       args->attributes, &config);
	if (result == CUDA_SUCCESS)
		result = enter_kernel(session, args->kernel, args->shared, &function);
	config.hStream = confined_stream(session);
	if (result == CUDA_SUCCESS)
		result = query_function(&reply->value, function, &config);
	return result;
}

/* Returns the single attribute with a cluster's dimensions. NULL: none, or several. */
static CUlaunchAttribute *
config_get_cluster(const CUlaunchConfig *config)
{
	CUlaunchAttribute *found = NULL;

	for (unsigned int i = 0; i < config->numAttrs; i++) {
		if (config->attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
			continue;
		if (found)
			return NULL;
		found = &config->attrs[i];
	}
	return found;
}

/* Queries clusters of 1, 2, ... blocks. A size that the driver rejects is a result, too. */
static CUresult
cluster_sizes_query(CUfunction function, CUlaunchConfig *config,
		    struct gp_occupancy_clusters *answers, uint32_t count)
{
	CUlaunchAttribute *cluster = config_get_cluster(config);

	if (!cluster)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < count; i++) {
		int clusters = 0;
		CUresult result;

		cluster->value.clusterDim.x = config->gridDimX = i + 1;
		cluster->value.clusterDim.y = config->gridDimY = 1;
		cluster->value.clusterDim.z = config->gridDimZ = 1;
		result = gpd_driver.cuOccupancyMaxActiveClusters(&clusters, function, config);
		if (gpd_driver_is_sticky(result))
			return result;
		answers[i] = (struct gp_occupancy_clusters){ htole32((uint32_t)result),
							     htole32((uint32_t)clusters) };
	}
	return CUDA_SUCCESS;
}

CUresult
gpd_gpOccupancyClusterSizes(struct gpd_session *session,
			    const struct gp_args_gpOccupancyClusterSizes *args,
			    struct gp_reply_gpOccupancyClusterSizes *reply)
{
	CUlaunchAttribute attributes[GPD_LAUNCH_ATTRIBUTES_MAX];
	CUlaunchConfig config = { .blockDimX = args->block_x,
				  .blockDimY = args->block_y,
				  .blockDimZ = args->block_z,
				  .sharedMemBytes = args->shared,
				  .attrs = attributes };
	struct gp_occupancy_clusters *answers;
	CUfunction function = NULL;
	CUresult result;

	if (!args->sizes || args->sizes > GP_OCCUPANCY_QUERIES_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpd_launch_attributes(session,
				       gpd_context_device(session, session->current.context),
				       args->attributes, &config);
	if (result == CUDA_SUCCESS)
		result = enter_kernel(session, args->kernel, args->shared, &function);
	if (result != CUDA_SUCCESS)
		return result;
	answers = calloc(args->sizes, sizeof(answers[0]));
	if (!answers)
		return CUDA_ERROR_OUT_OF_MEMORY;
	config.hStream = confined_stream(session);
	result = cluster_sizes_query(function, &config, answers, args->sizes);
	if (result == CUDA_SUCCESS)
		reply->answers = (struct gp_bytes){ answers, args->sizes * sizeof(answers[0]) };
	else
		free(answers);
	return result;
}
