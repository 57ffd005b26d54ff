/* SPDX-License-Identifier: Apache-2.0 */
#include "client/code/shape.h"

#include "client/code/image.h"
#include "gpc_calls.h"

#include <stdlib.h>
#include <string.h>

static bool
divides(const uint32_t *cluster, const CUlaunchConfig *config)
{
	return !cluster[0] ||
	       (cluster[1] && cluster[2] && config->gridDimX % cluster[0] == 0 &&
		config->gridDimY % cluster[1] == 0 && config->gridDimZ % cluster[2] == 0);
}

/* The shape is asked once.  What has been accepted is accepted again, with as many blocks that must
 * run together or fewer, and with any grid of whole clusters. */
void
gpc_shape_begin(struct gpc_shape_check *check, struct gpc_context *context,
		struct gpc_function *function, const CUlaunchConfig *config,
		const struct gpc_launch_attributes *attributes)
{
	uint64_t accepted;

	check->needed = attributes->cooperative || attributes->clustered;
	if (!check->needed)
		return;
	check->function = function;
	check->blocks = (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ;
	gpc_launch_question(&check->question, GPC_QUESTION_LAUNCH, context, function);
	gpc_launch_question_shape(&check->question, config, attributes);
	/* Any grid, and what is only preferred refuses none. */
	memset(check->question.words + GPC_QUESTION_GRID, 0, 4 * sizeof(uint32_t));
	if (!gpc_answers_find(function->image, &check->question, &accepted, &check->revision))
		return;
	check->needed = !divides(attributes->cluster, config) ||
			(attributes->cooperative && check->blocks > accepted);
}

void
gpc_shape_accepted(const struct gpc_shape_check *check)
{
	gpc_answers_keep(check->function->image, &check->question, check->blocks, check->revision);
}

CUresult
gpc_shapes_add(struct gpc_shapes *shapes, struct gpc_context *context, CUfunction token,
	       const struct gp_args_gpLaunch *args, const struct gpc_launch_attributes *attributes)
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
	struct gpc_shape_check *check;
	struct gpc_function *function;
	CUresult result;

	if (!shapes || (!attributes->cooperative && !attributes->clustered))
		return CUDA_SUCCESS;
	result = gpc_function_lookup(context, token, &function);
	if (result == CUDA_SUCCESS)
		result = gpc_function_in(function, context, &function);
	if (result != CUDA_SUCCESS)
		return result;
	if (shapes->count == shapes->room) {
		size_t room = shapes->room ? 2 * shapes->room : 8;
		struct gpc_shape_check *list = realloc(shapes->list, room * sizeof(*list));

		if (!list)
			return CUDA_ERROR_OUT_OF_MEMORY;
		shapes->list = list;
		shapes->room = room;
	}
	check = &shapes->list[shapes->count];
	gpc_shape_begin(check, context, function, &config, attributes);
	shapes->count += check->needed;
	return CUDA_SUCCESS;
}

void
gpc_shapes_accepted(const struct gpc_shapes *shapes)
{
	for (size_t i = 0; i < shapes->count; i++)
		gpc_shape_accepted(&shapes->list[i]);
}
