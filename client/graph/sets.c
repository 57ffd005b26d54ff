/* SPDX-License-Identifier: Apache-2.0 */
#include "client/graph/sets.h"

#include "client/code/image.h"
#include "client/context/context.h"
#include "client/context/object.h"
#include "client/copy/copy.h"
#include "client/graph/capture.h"
#include "client/graph/mem_ops.h"
#include "client/host/mirror.h"
#include "client/host/pending_copy.h"
#include "client/pages/pages.h"
#include "client/stream/event.h"
#include "client/stream/managed.h"
#include "client/stream/stream.h"
#include "client/wire/session.h"
#include "gpc_calls.h"

#include <stdlib.h>

/* A node of the client's, or a set that the daemon has. */
struct gpc_sets_step {
	struct gpc_node_params params; /* of a copy, a memset, a host function or an event */
	struct gpc_handle *set;        /* NULL: the client's */
	struct gpc_context *context;   /* as in a plan */
	uint64_t number; /* another one each time that the daemon learns of the context */
	size_t stage;
	CUstream beside; /* of several contexts: where it runs, if not launched in its own */
	bool owner;      /* of that stream, which others of its context share */
};

static bool
is_there(const struct gpc_sets_step *step)
{
	return (!step->set && !step->beside) ||
	       (step->number != 0 && gpc_stream_context_number(step->context) == step->number);
}

bool
gpc_sets_are_there(const struct gpc_sets *sets)
{
	for (size_t i = 0; i < sets->count; i++) {
		if (!is_there(&sets->steps[i]))
			return false;
	}
	return true;
}

static void
drop_set(const struct gpc_sets_step *step)
{
	const struct gp_args_gpGraphDrop args = { .plan = step->set->id };

	if (is_there(step))
		(void)gpc_post_gpGraphDrop(step->context, &args);
	/* Only now, or another thread could announce a new one of that place before. */
	gpc_handle_remove(step->set);
}

void
gpc_sets_drop(struct gpc_sets *sets)
{
	for (size_t i = 0; i < sets->count; i++) {
		if (sets->steps[i].set)
			drop_set(&sets->steps[i]);
		else
			gpc_step_drop(&sets->steps[i].params);
		if (sets->steps[i].owner && is_there(&sets->steps[i]))
			(void)gpc_cuStreamDestroy_v2(sets->steps[i].beside);
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
	struct gpc_context *context = planned->context;
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

/* The next one of the context that has no place in the new steps. */
static struct gpc_handle *
take_set(struct gpc_sets *sets, const struct gpc_context *context, size_t *from)
{
	while (*from < sets->count) {
		struct gpc_sets_step *step = &sets->steps[(*from)++];
		struct gpc_handle *set = step->set;

		if (!set || step->context != context || !is_there(step))
			continue;
		step->set = NULL;
		return set;
	}
	return NULL;
}

/* The stream of a step's context, which is that of an earlier step if there is one. */
static CUresult
take_beside(struct gpc_sets_step *steps, size_t number)
{
	struct gpc_sets_step *step = &steps[number];

	for (size_t i = 0; i < number; i++) {
		if (steps[i].beside && steps[i].context == step->context) {
			step->beside = steps[i].beside;
			return CUDA_SUCCESS;
		}
	}
	step->owner = true;
	return gpc_stream_create_in(step->context, CU_STREAM_NON_BLOCKING, 0, &step->beside);
}

/* Before anything of it is sent. */
static CUresult
prepare_step(const struct gpc_plan *plan, struct gpc_sets_step *steps, size_t number)
{
	struct gpc_sets_step *step = &steps[number];
	CUresult result;

	step->context = plan->steps[number].context;
	step->stage = plan->steps[number].stage;
	if (!step->context || (plan->steps[number].is_client && !plan->several))
		return CUDA_SUCCESS;
	result = gpc_context_activate(step->context);
	/* Read before: of a context that is reset meanwhile the sets are gone. */
	step->number = gpc_stream_context_number(step->context);
	return result == CUDA_SUCCESS && plan->several ? take_beside(steps, number) : result;
}

static CUresult
send_steps(struct gpc_sets *sets, const struct gpc_plan *plan, struct gpc_sets_step *steps,
	   uint64_t *exec_p)
{
	CUresult result = CUDA_SUCCESS;
	size_t taken = 0;

	for (size_t i = 0; i < plan->count && result == CUDA_SUCCESS; i++) {
		const struct gpc_step *planned = &plan->steps[i];

		result = prepare_step(plan, steps, i);
		if (planned->is_client)
			gpc_step_share(&planned->params, &steps[i].params);
		if (planned->is_client || result != CUDA_SUCCESS)
			continue;
		steps[i].set = take_set(sets, planned->context, &taken);
		if (steps[i].set)
			result = remake_set(planned->context, planned, steps[i].set);
		else if (plan->launchable)
			result = make_launchable(planned->context, planned, &steps[i].set, exec_p);
		else
			result = make_set(plan, planned, &steps[i].set);
	}
	return result;
}

static struct gpc_context *
context_of_sets(const struct gpc_plan *plan)
{
	for (size_t i = 0; i < plan->count && !plan->several; i++) {
		if (!plan->steps[i].is_client)
			return plan->steps[i].context;
	}
	return NULL;
}

CUresult
gpc_sets_send(struct gpc_sets *sets, struct gpc_plan *plan)
{
	struct gpc_sets_step *steps = calloc(plan->count + 1, sizeof(*steps));
	struct gpc_context *context = context_of_sets(plan);
	uint64_t exec = sets->exec;
	CUresult result = steps ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	/* Device code has its name: another one of another name would not do. */
	if (result == CUDA_SUCCESS && sets->launchable &&
	    (sets->context != context || !gpc_sets_are_there(sets)))
		result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (result != CUDA_SUCCESS) {
		free(steps);
		return result;
	}
	if (sets->count == 0)
		gpc_shapes_ask(&plan->shapes);
	result = send_steps(sets, plan, steps, &exec);
	/* Of what is remade nobody has answered. */
	if (result == CUDA_SUCCESS && sets->count == 0)
		gpc_shapes_accepted(&plan->shapes);
	gpc_sets_drop(sets);
	*sets = (struct gpc_sets){
		.context = context,
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

	/* Which kernels a graph has is not looked at. */
	if (atomic_load(&gpc_image_any_prints))
		gpc_session_note_seen(stream->context->scope.session);
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
		return gpc_copy_node_run(&params->copy, stream);
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

/* Where a step runs that is launched into this stream; NULL: its context has been reset. */
static struct gpc_stream *
stream_of(const struct gpc_sets_step *step, struct gpc_stream *stream)
{
	if (!step->beside || step->context == stream->context)
		return stream;
	return gpc_handle_get(GPC_KIND_STREAM, step->beside);
}

static CUresult
launch_step(const struct gpc_sets_step *step, struct gpc_stream *stream)
{
	return step->set ? launch_set(step->set, stream)
			 : run_step(&step->params, stream->handle.token);
}

static CUresult
upload_step(const struct gpc_sets_step *step, struct gpc_stream *stream)
{
	struct gp_args_gpGraphUpload args = { .stream = stream->handle.id };

	if (!step->set)
		return CUDA_SUCCESS;
	args.plan = step->set->id;
	return gpc_post_gpGraphUpload(stream->context, &args);
}

typedef CUresult step_fn(const struct gpc_sets_step *step, struct gpc_stream *stream);

/* Behind what the stream of the launch was given. */
static CUresult
go_beside(const struct gpc_sets_step *step, struct gpc_stream *stream, step_fn *go)
{
	struct gpc_stream *beside = stream_of(step, stream);
	struct gpc_session *session = step->context->scope.session;
	CUresult result =
		beside ? gpc_event_order(stream, beside) : CUDA_ERROR_CONTEXT_IS_DESTROYED;

	if (result == CUDA_SUCCESS && session != stream->context->scope.session)
		result = gpc_pending_copy_before_work(&step->context->scope, beside->handle.id);
	if (result == CUDA_SUCCESS)
		result = go(step, beside);
	if (session != stream->context->scope.session)
		gpc_mirror_behind_work(session);
	return result;
}

/* Sets of one stage, or one node of the client's: those of other contexts run beside what is of the
 * stream's, and the stream waits for them. */
static CUresult
go_together(const struct gpc_sets_step *steps, size_t count, struct gpc_stream *stream, step_fn *go)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
		if (stream_of(&steps[i], stream) != stream)
			result = go_beside(&steps[i], stream, go);
	}
	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
		if (stream_of(&steps[i], stream) == stream)
			result = go(&steps[i], stream);
	}
	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
		struct gpc_stream *beside = stream_of(&steps[i], stream);

		if (beside && beside != stream)
			result = gpc_event_order(beside, stream);
	}
	return result;
}

static CUresult
go_all(const struct gpc_sets *sets, struct gpc_stream *stream, step_fn *go)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0, end; i < sets->count && result == CUDA_SUCCESS; i = end) {
		const struct gpc_sets_step *first = &sets->steps[i];

		end = i + 1;
		while (end < sets->count && first->set && sets->steps[end].set &&
		       sets->steps[end].stage == first->stage)
			end++;
		result = go_together(first, end - i, stream, go);
	}
	return result;
}

CUresult
gpc_sets_launch(const struct gpc_sets *sets, struct gpc_stream *stream)
{
	return go_all(sets, stream, launch_step);
}

CUresult
gpc_sets_upload(const struct gpc_sets *sets, struct gpc_stream *stream)
{
	return sets->launchable || sets->updatable ? go_all(sets, stream, upload_step)
						   : CUDA_SUCCESS;
}
