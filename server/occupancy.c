/* SPDX-License-Identifier: Apache-2.0 */
#include "gpd_calls.h"
#include "server/context.h"
#include "server/driver.h"
#include "server/image.h"
#include "server/launch.h"
#include "server/session.h"
#include "server/stream.h"

/* Of gpOccupancyCluster. */
enum {
	MAX_POTENTIAL_SIZE = 0,
	MAX_ACTIVE = 1,
};

/* One in the session's partition of its current device, whose multiprocessors count. */
static CUstream
confined_stream(const struct gpd_session *session)
{
	const struct gpd_context *context = gpd_context_get(session, session->context);
	const struct gpd_stream *stream = context ? context->legacy : NULL;

	return stream && stream->partition ? stream->driver : NULL;
}

CUresult
gpd_gpOccupancyCluster(struct gpd_session *session, const struct gp_args_gpOccupancyCluster *args,
		       struct gp_reply_gpOccupancyCluster *reply)
{
	CUlaunchAttribute attributes[GPD_LAUNCH_ATTRIBUTES_MAX];
	CUlaunchConfig config = {
		.gridDimX = args->grid_x,
		.gridDimY = args->grid_y,
		.gridDimZ = args->grid_z,
		.blockDimX = args->block_x,
		.blockDimY = args->block_y,
		.blockDimZ = args->block_z,
		.sharedMemBytes = args->shared,
		.attrs = attributes,
	};
	__typeof__(cuOccupancyMaxActiveClusters) *ask;
	CUfunction function;
	CUresult result;

	if (args->what != MAX_POTENTIAL_SIZE && args->what != MAX_ACTIVE)
		return CUDA_ERROR_INVALID_VALUE;
	ask = args->what == MAX_ACTIVE ? gpd_driver.cuOccupancyMaxActiveClusters
				       : gpd_driver.cuOccupancyMaxPotentialClusterSize;
	if (!ask)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = gpd_launch_attributes(session, args->attributes, &config);
	if (result == CUDA_SUCCESS)
		result = gpd_session_enter(session, session->context);
	if (result == CUDA_SUCCESS)
		result = gpd_function_get(session, args->kernel, &function);
	config.hStream = confined_stream(session);
	if (result == CUDA_SUCCESS)
		result = ask(&reply->value, function, &config);
	return result;
}
