/* SPDX-License-Identifier: Apache-2.0 */
#include "client/code/shape.h"

#include "client/base/stats.h"
#include "client/context/device.h"
#include "client/wire/session.h"
#include "gpc_calls.h"
#include "protocol/image_info.h"

#include <stdlib.h>
#include <string.h>

bool
gpc_share_watch(struct gpc_context *context)
{
	const struct gp_args_gpShareWatch args = { 0 };
	struct gpc_session *session = context->scope.session;

	if (gpc_session_is_watched(session))
		return true;
	/* Twice does no harm; and nobody believes that it is posted before it is. */
	if (gpc_post_gpShareWatch(context, &args) != CUDA_SUCCESS)
		return false;
	gpc_session_set_watched(session);
	return true;
}

static void
question_init(struct gpc_question *question, enum gpc_question_what what,
	      const struct gpc_context *context, const struct gpc_image *image)
{
	memset(question, 0, sizeof(*question));
	question->revision =
		gpc_session_revision(image->device->session) + atomic_load(&image->cache_changes);
	question->what = what;
	question->device = context->device->ordinal;
}

void
gpc_launch_question(struct gpc_question *question, enum gpc_question_what what,
		    const struct gpc_context *context, const struct gpc_function *function)
{
	question_init(question, what, context, function->image);
	question->kernel = function->index;
	for (unsigned int i = 0; i < GPC_QUESTION_SETTINGS; i++) {
		const unsigned int attribute = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES + i;

		if (gpc_function_attribute(function, (CUfunction_attribute)attribute,
					   &question->settings[i]))
			question->settings_known |= 1u << i;
	}
}

void
gpc_launch_question_shape(struct gpc_question *question, const CUlaunchConfig *config,
			  const struct gpc_launch_attributes *attributes)
{
	const uint32_t words[GPC_QUESTION_WORDS] = {
		config->blockDimX,        config->blockDimY,        config->blockDimZ,
		config->sharedMemBytes,   attributes->cluster[0],   attributes->cluster[1],
		attributes->cluster[2],   attributes->preferred[0], attributes->preferred[1],
		attributes->preferred[2], attributes->cooperative,  attributes->policy,
		config->gridDimX,         config->gridDimY,         config->gridDimZ,
		attributes->carveout,
	};

	memcpy(question->words, words, sizeof(words));
}

void
gpc_launch_question_blocks(struct gpc_question *question, const struct gpc_context *context,
			   const struct gpc_function *function, int threads, uint64_t shared,
			   unsigned int flags)
{
	gpc_launch_question(question, GPC_QUESTION_BLOCKS, context, function);
	question->words[0] = (uint32_t)threads;
	question->words[1] = flags;
	question->words[2] = (uint32_t)shared;
	question->words[3] = (uint32_t)(shared >> 32);
}

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
		const struct gpc_launch_attributes *attributes, uint32_t source)
{
	uint64_t accepted;

	check->needed = attributes->cooperative || attributes->clustered;
	if (!check->needed)
		return;
	check->context = context;
	check->function = function;
	check->source = source;
	check->threads = config->blockDimX * config->blockDimY * config->blockDimZ;
	check->shared = config->sharedMemBytes;
	check->count_together =
		attributes->cooperative && !attributes->clustered && !attributes->carveout;
	check->blocks = (uint64_t)config->gridDimX * config->gridDimY * config->gridDimZ;
	gpc_launch_question(&check->question, GPC_QUESTION_LAUNCH, context, function);
	gpc_launch_question_shape(&check->question, config, attributes);
	/* Any grid, and what is only preferred refuses none. */
	memset(check->question.words + GPC_QUESTION_GRID, 0, 4 * sizeof(uint32_t));
	check->question.words[GPC_QUESTION_GRID] = source;
	if (!gpc_question_find(function->image, &check->question, &accepted))
		return;
	check->needed = !divides(attributes->cluster, config) ||
			(attributes->cooperative && check->blocks > accepted);
}

/* A question that is answered with a number, and perhaps under way. */
struct asked {
	struct gpc_question question;
	struct gpc_request request;
	uint64_t answer;
	bool known;
};

/* One that was started is waited for. */
static CUresult
ask_blocks(const struct gpc_shape_check *check, struct asked *asked)
{
	const struct gpc_function *function = check->function;
	const struct gp_args_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags args = {
		.func = GP_KERNEL(function->image->handle.id, function->index),
		.blockSize = (int32_t)check->threads,
		.dynamicSMemSize = check->shared,
	};

	*asked = (struct asked){ 0 };
	gpc_launch_question_blocks(&asked->question, check->context, function, (int)check->threads,
				   check->shared, 0);
	asked->known = gpc_question_find(function->image, &asked->question, &asked->answer);
	return asked->known ? CUDA_SUCCESS
			    : gpc_start_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
				      check->context, &args, &asked->request);
}

static CUresult
ask_multiprocessors(const struct gpc_shape_check *check, struct asked *asked)
{
	const struct gpc_device *device = check->context->device;
	const struct gp_args_gpResource args = { .device = device->remote,
						 .source = check->source };

	*asked = (struct asked){ 0 };
	question_init(&asked->question, GPC_QUESTION_MULTIPROCESSORS, check->context,
		      check->function->image);
	asked->question.words[0] = check->source;
	asked->known = gpc_question_find(check->function->image, &asked->question, &asked->answer);
	return asked->known ? CUDA_SUCCESS
			    : gpc_start_gpResource(check->context, &args, &asked->request);
}

/* The first number of the answer, which is kept. */
static void
take_number(const struct gpc_shape_check *check, struct asked *asked)
{
	CUresult result;
	struct gp_dec dec;
	int32_t number;

	if (asked->known)
		return;
	result = gpc_request_wait_own(&asked->request);
	gp_dec_init(&dec, asked->request.reply, asked->request.reply_size);
	number = (int32_t)gp_dec_u32(&dec);
	if (result == CUDA_SUCCESS && !dec.bad && number >= 0) {
		asked->answer = (uint64_t)number;
		gpc_question_put(check->function->image, &asked->question, asked->answer);
	}
	free(asked->request.reply);
}

/* Both at once; 0: the daemon does not say. */
static uint64_t
most_together(const struct gpc_shape_check *check)
{
	struct asked blocks, multiprocessors;
	CUresult result;
	bool wait;

	if (!gpc_share_watch(check->context) || ask_blocks(check, &blocks) != CUDA_SUCCESS)
		return 0;
	result = ask_multiprocessors(check, &multiprocessors);
	wait = !blocks.known || (result == CUDA_SUCCESS && !multiprocessors.known);
	if (wait)
		gpc_stats_wait_begin(GP_CALL_gpResource);
	if (result == CUDA_SUCCESS)
		take_number(check, &multiprocessors);
	take_number(check, &blocks);
	if (wait)
		gpc_stats_wait_end();
	return result == CUDA_SUCCESS ? blocks.answer * multiprocessors.answer : 0;
}

void
gpc_shape_ask(struct gpc_shape_check *check)
{
	uint64_t most;

	if (__builtin_expect(!check->needed, 1) || !check->count_together)
		return;
	most = most_together(check);
	check->needed = check->blocks > most;
	if (!check->needed)
		gpc_question_put(check->function->image, &check->question, most);
}

void
gpc_shape_accepted(const struct gpc_shape_check *check)
{
	gpc_question_put(check->function->image, &check->question, check->blocks);
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
	gpc_shape_begin(check, context, function, &config, attributes, 0);
	shapes->count += check->needed;
	return CUDA_SUCCESS;
}

void
gpc_shapes_ask(struct gpc_shapes *shapes)
{
	size_t kept = 0;

	for (size_t i = 0; i < shapes->count; i++) {
		gpc_shape_ask(&shapes->list[i]);
		if (shapes->list[i].needed)
			shapes->list[kept++] = shapes->list[i];
	}
	shapes->count = kept;
}

void
gpc_shapes_accepted(const struct gpc_shapes *shapes)
{
	for (size_t i = 0; i < shapes->count; i++)
		gpc_shape_accepted(&shapes->list[i]);
}
