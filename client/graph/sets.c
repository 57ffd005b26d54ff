/* SPDX-License-Identifier: Apache-2.0 */
#include "client/graph/sets.h"

#include "client/context/context.h"
#include "client/context/object.h"
#include "client/graph/capture.h"
#include "client/graph/mem_ops.h"
#include "client/pages/pages.h"
#include "client/stream/managed.h"
#include "client/stream/stream.h"
#include "client/wire/session.h"
#include "gpc_calls.h"

#include <stdlib.h>

/* A node of the client's, or a set that the daemon has. */
struct gpc_sets_step {
	struct gpc_node_params params; /* of a copy, a memset, a host function or an event */
	struct gpc_handle *set;        /* NULL: the client's */
};

bool
gpc_sets_are_there(const struct gpc_sets *sets)
{
	return !sets->context ||
	       (sets->number != 0 && gpc_stream_context_number(sets->context) == sets->number);
}

static void
drop_set(const struct gpc_sets *sets, struct gpc_handle *set)
{
	const struct gp_args_gpGraphDrop args = { .plan = set->id };

	if (gpc_sets_are_there(sets))
		(void)gpc_post_gpGraphDrop(sets->context, &args);
	/* Only now, or another thread could announce a new one of that place before. */
	gpc_handle_remove(set);
}

void
gpc_sets_drop(struct gpc_sets *sets)
{
	for (size_t i = 0; i < sets->count; i++) {
		if (sets->steps[i].set)
			drop_set(sets, sets->steps[i].set);
		else
			gpc_step_drop(&sets->steps[i].params);
	}
	free(sets->steps);
	*sets = (struct gpc_sets){ 0 };
}

static CUresult
make_and_wait(struct gpc_context *context, const struct gp_args_gpGraphPut *put,
	      const struct iovec *bulk)
{
	const struct gp_args_gpGraphMake args = { .context = put->context, .plan = put->plan };
	struct gpc_request request = { 0 };
	CUresult result = gpc_start_gpGraphMake(context, &args, &request, bulk, 1);

	if (result == CUDA_SUCCESS)
		result = gpc_request_wait_own(&request);
	free(request.reply);
	return result;
}

/* Waits where only the daemon knows: whether a root is occupied, or a launch fits its device.  What
 * else is wrong with a set a later call tells. */
static CUresult
make_set(const struct gpc_plan *plan, const struct gpc_step *planned, struct gpc_handle **set_p)
{
	const struct iovec bulk = { planned->writer.memory, planned->writer.size };
	struct gpc_context *context = plan->context;
	const struct gpc_session_facts *facts = gpc_session_facts(context->scope.session);
	struct gp_args_gpGraphPut args = { .context = context->handle.id };
	CUresult result;

	*set_p = gpc_handle_new(GPC_KIND_GRAPH_PLAN, sizeof(**set_p));
	if (!*set_p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	args.plan = (*set_p)->id;
	result = plan->root || plan->shapes.count || !gpc_facts_know(facts, GP_CALL_gpGraphPut)
			 ? make_and_wait(context, &args, &bulk)
			 : gpc_post_gpGraphPut(context, &args, &bulk, 1);
	if (result == CUDA_SUCCESS)
		return CUDA_SUCCESS;
	gpc_handle_remove(*set_p);
	*set_p = NULL;
	return result;
}

/* The same of one that kernels may launch. */
static CUresult
make_launchable(struct gpc_context *context, const struct gpc_step *planned,
		struct gpc_handle **set_p, uint64_t *exec_p)
{
	const struct iovec bulk = { planned->writer.memory, planned->writer.size };
	struct gp_args_gpGraphMakeLaunchable args = { .context = context->handle.id };
	struct gp_reply_gpGraphMakeLaunchable reply = { 0 };
	struct gpc_request request = { 0 };
	struct gp_dec dec;
	CUresult result;

	*set_p = gpc_handle_new(GPC_KIND_GRAPH_PLAN, sizeof(**set_p));
	if (!*set_p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	args.plan = (*set_p)->id;
	result = gpc_start_gpGraphMakeLaunchable(context, &args, &request, &bulk, 1);
	if (result == CUDA_SUCCESS)
		result = gpc_request_wait_own(&request);
	if (result == CUDA_SUCCESS) {
		gp_dec_init(&dec, request.reply, request.reply_size);
		gp_reply_gpGraphMakeLaunchable_decode(&dec, &reply);
		if (!gp_dec_done(&dec) || reply.exec == 0)
			result = gpc_reply_malformed(context);
	}
	free(request.reply);
	*exec_p = reply.exec;
	if (result == CUDA_SUCCESS)
		return CUDA_SUCCESS;
	gpc_handle_remove(*set_p);
	*set_p = NULL;
	return result;
}

/* Gives a set that the daemon has another content: what is wrong with it a later call tells. */
static CUresult
remake_set(struct gpc_context *context, const struct gpc_step *planned, struct gpc_handle *set)
{
	const struct iovec bulk = { planned->writer.memory, planned->writer.size };
	const struct gp_args_gpGraphRemake args = { .plan = set->id };

	return gpc_post_gpGraphRemake(context, &args, &bulk, 1);
}

/* The next one that has no place in the new steps. */
static struct gpc_handle *
take_set(struct gpc_sets *sets, size_t *from)
{
	while (*from < sets->count) {
		struct gpc_sets_step *step = &sets->steps[(*from)++];
		struct gpc_handle *set = step->set;

		step->set = NULL;
		if (set)
			return set;
	}
	return NULL;
}

static CUresult
send_steps(struct gpc_sets *sets, const struct gpc_plan *plan, struct gpc_sets_step *steps,
	   uint64_t *exec_p)
{
	const bool kept = sets->context == plan->context && gpc_sets_are_there(sets);
	CUresult result = CUDA_SUCCESS;
	size_t taken = 0;

	for (size_t i = 0; i < plan->count && result == CUDA_SUCCESS; i++) {
		const struct gpc_step *planned = &plan->steps[i];

		if (planned->is_client) {
			gpc_step_share(&planned->params, &steps[i].params);
			continue;
		}
		if (kept)
			steps[i].set = take_set(sets, &taken);
		if (steps[i].set)
			result = remake_set(plan->context, planned, steps[i].set);
		else if (plan->launchable)
			result = make_launchable(plan->context, planned, &steps[i].set, exec_p);
		else
			result = make_set(plan, planned, &steps[i].set);
	}
	return result;
}

CUresult
gpc_sets_send(struct gpc_sets *sets, struct gpc_plan *plan)
{
	struct gpc_sets_step *steps = calloc(plan->count + 1, sizeof(*steps));
	uint64_t number, exec = sets->exec;
	CUresult result = steps ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	/* Device code has its name: another one of another name would not do. */
	if (result == CUDA_SUCCESS && sets->launchable &&
	    (sets->context != plan->context || !gpc_sets_are_there(sets)))
		result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (result == CUDA_SUCCESS && plan->context)
		result = gpc_context_activate(plan->context);
	if (result != CUDA_SUCCESS) {
		free(steps);
		return result;
	}
	/* Read before: of a context that is reset meanwhile the sets are gone. */
	number = gpc_stream_context_number(plan->context);
	if (sets->count == 0)
		gpc_shapes_ask(&plan->shapes);
	result = send_steps(sets, plan, steps, &exec);
	/* Of what is remade nobody has answered. */
	if (result == CUDA_SUCCESS && sets->count == 0)
		gpc_shapes_accepted(&plan->shapes);
	gpc_sets_drop(sets);
	*sets = (struct gpc_sets){
		.context = plan->context,
		.number = number,
		.steps = steps,
		.count = plan->count,
		.launchable = plan->launchable,
		.updatable = plan->updatable,
		.exec = exec,
	};
	return result;
}

static CUresult
post_set(const struct gpc_handle *set, struct gpc_stream *stream)
{
	const struct gp_args_gpGraphLaunch args = { .plan = set->id, .stream = stream->handle.id };
	CUresult result = gpc_post_gpGraphLaunch(stream->context, &args);

	/* Counted behind it: a fence in between does not cover the launch. */
	(void)gpc_session_work_mark(stream->context->scope.session);
	return result;
}

/* Behind what the graph may use of managed memory. */
static CUresult
launch_set(const struct gpc_handle *set, struct gpc_stream *stream)
{
	CUresult result;

	if (!gpc_pages_any())
		return post_set(set, stream);
	result = gpc_managed_begin(stream->context->scope.session);
	if (result != CUDA_SUCCESS)
		return result;
	result = post_set(set, stream);
	gpc_managed_end(stream);
	return result;
}

static CUresult
run_fill(const CUDA_MEMSET_NODE_PARAMS *fill, CUstream stream)
{
	switch (fill->elementSize) {
	case 1:
		return gpc_cuMemsetD2D8Async(fill->dst, fill->pitch, (unsigned char)fill->value,
					     fill->width, fill->height, stream);
	case 2:
		return gpc_cuMemsetD2D16Async(fill->dst, fill->pitch, (unsigned short)fill->value,
					      fill->width, fill->height, stream);
	default:
		return gpc_cuMemsetD2D32Async(fill->dst, fill->pitch, fill->value, fill->width,
					      fill->height, stream);
	}
}

/* What it stood for in a capture it stands for no more. */
static CUresult
run_record(CUevent token, CUstream stream)
{
	struct gpc_event *event;
	CUresult result;

	if (__atomic_load_n(&gpc_captures, __ATOMIC_ACQUIRE) == 0)
		return gpc_cuEventRecordWithFlags(token, stream, 0);
	result = gpc_graphs_begin();
	if (result == CUDA_SUCCESS)
		result = gpc_event_lookup(token, &event);
	if (result == CUDA_SUCCESS)
		gpc_capture_forget_event(event);
	result = gpc_graphs_end(result);
	return result == CUDA_SUCCESS ? gpc_cuEventRecordWithFlags(token, stream, 0) : result;
}

static CUresult
run_step(const struct gpc_node_params *params, CUstream stream)
{
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return gpc_cuMemcpy3DAsync_v2(&params->copy, stream);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return run_fill(&params->fill, stream);
	case CU_GRAPH_NODE_TYPE_HOST:
		return gpc_cuLaunchHostFunc(stream, params->host.fn, params->host.userData);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return gpc_mem_ops_post(params->ops, stream);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return run_record(params->event, stream);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return gpc_cuStreamWaitEvent(stream, params->event, 0);
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

CUresult
gpc_sets_launch(const struct gpc_sets *sets, struct gpc_stream *stream)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < sets->count && result == CUDA_SUCCESS; i++) {
		const struct gpc_sets_step *step = &sets->steps[i];

		result = step->set ? launch_set(step->set, stream)
				   : run_step(&step->params, stream->handle.token);
	}
	return result;
}

CUresult
gpc_sets_upload(const struct gpc_sets *sets, struct gpc_stream *stream)
{
	const bool wanted = sets->launchable || sets->updatable;
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < sets->count && wanted && result == CUDA_SUCCESS; i++) {
		struct gp_args_gpGraphUpload args = { .stream = stream->handle.id };

		if (!sets->steps[i].set)
			continue;
		args.plan = sets->steps[i].set->id;
		result = gpc_post_gpGraphUpload(stream->context, &args);
	}
	return result;
}
