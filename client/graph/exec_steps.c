/* SPDX-License-Identifier: Apache-2.0 */
#include "client/graph/exec_steps.h"

#include "client/context/context.h"
#include "client/context/object.h"
#include "client/copy/copy.h"
#include "client/graph/capture.h"
#include "client/host/coherence.h"
#include "client/host/pending_copy.h"
#include "client/module/image.h"
#include "client/pages/pages.h"
#include "client/session/session.h"
#include "client/stream/event.h"
#include "client/stream/stream.h"
#include "client/stream/stream_managed.h"
#include "client/stream_ops/mem_op.h"
#include "gpc_calls.h"

#include <stdlib.h>

/* A client step, or a subgraph of the daemon. */
struct gpc_exec_step {
	struct gpc_node_params
		params; /* client step: a copy, memset, host function, event or memory operation */
	struct gpc_handle *subgraph; /* NULL: client step */
	struct gpc_context *context; /* as in struct gpc_step */
	uint64_t
		number; /* number of the context when the subgraph was created, to detect a reset */
	size_t stage;
	CUstream peer_stream; /* several contexts: stream of its context, if the launch stream has
				 another */
	bool owner;           /* owns that stream, which steps of the same context share */
};

static bool
step_is_valid(const struct gpc_exec_step *step)
{
	return (!step->subgraph && !step->peer_stream) ||
	       (step->number != 0 && gpc_stream_context_number(step->context) == step->number);
}

bool
gpc_exec_steps_are_valid(const struct gpc_exec_steps *exec_steps)
{
	for (size_t i = 0; i < exec_steps->count; i++) {
		if (!step_is_valid(&exec_steps->steps[i]))
			return false;
	}
	return true;
}

static void
subgraph_drop(const struct gpc_exec_step *step)
{
	const struct gp_args_gpGraphDrop args = { .plan = step->subgraph->id };

	if (step_is_valid(step))
		(void)gpc_post_gpGraphDrop(step->context, &args);
	/* Removed only now; otherwise another thread could announce a new subgraph with the same ID
	 * first. */
	gpc_handle_remove(step->subgraph);
}

void
gpc_exec_steps_drop(struct gpc_exec_steps *exec_steps)
{
	for (size_t i = 0; i < exec_steps->count; i++) {
		if (exec_steps->steps[i].subgraph)
			subgraph_drop(&exec_steps->steps[i]);
		else
			gpc_step_params_free(&exec_steps->steps[i].params);
		if (exec_steps->steps[i].owner && step_is_valid(&exec_steps->steps[i]))
			(void)gpc_cuStreamDestroy_v2(exec_steps->steps[i].peer_stream);
	}
	free(exec_steps->steps);
	*exec_steps = (struct gpc_exec_steps){ 0 };
}

/* Waits only for errors that only the daemon can detect: an occupied root, or a launch that does
 * not fit its device. Other errors in a subgraph are reported by a later call. */
static CUresult
subgraph_send(const struct gpc_plan *plan, const struct gpc_step *planned, uint32_t id)
{
	const struct iovec bulk = { planned->writer.memory, planned->writer.size };
	struct gpc_context *context = planned->context;
	const struct gpc_session_facts *facts = gpc_session_facts(context->scope.session);
	const struct gp_args_gpGraphPut put = { .context = context->handle.id, .plan = id };
	const struct gp_args_gpGraphMake make = { .context = context->handle.id, .plan = id };

	return plan->root || plan->shapes.count || !gpc_facts_have_call(facts, GP_CALL_gpGraphPut)
		       ? gpc_wait_gpGraphMake(context, &make, &bulk, 1)
		       : gpc_post_gpGraphPut(context, &put, &bulk, 1);
}

/* The same for a subgraph that kernels may launch. */
static CUresult
subgraph_send_launchable(const struct gpc_step *planned, uint32_t id, uint64_t *exec_p)
{
	const struct iovec bulk = { planned->writer.memory, planned->writer.size };
	const struct gp_args_gpGraphMakeLaunchable args = { .context = planned->context->handle.id,
							    .plan = id };
	struct gp_reply_gpGraphMakeLaunchable reply = { 0 };
	CUresult result = gpc_wait_gpGraphMakeLaunchable(planned->context, &args, &reply, &bulk, 1);

	if (result == CUDA_SUCCESS && reply.exec == 0)
		result = gpc_reply_fail_malformed(planned->context);
	*exec_p = reply.exec;
	return result;
}

static CUresult
subgraph_create(const struct gpc_plan *plan, const struct gpc_step *planned,
		struct gpc_handle **subgraph_p, uint64_t *exec_p)
{
	struct gpc_handle *subgraph = gpc_handle_new(GPC_KIND_GRAPH_PLAN, sizeof(*subgraph));
	CUresult result;

	if (!subgraph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = plan->launchable ? subgraph_send_launchable(planned, subgraph->id, exec_p)
				  : subgraph_send(plan, planned, subgraph->id);
	if (result == CUDA_SUCCESS)
		*subgraph_p = subgraph;
	else
		gpc_handle_remove(subgraph);
	return result;
}

/* Replaces the content of a subgraph of the daemon; errors are reported by a later call. */
static CUresult
subgraph_update(struct gpc_context *context, const struct gpc_step *planned,
		struct gpc_handle *subgraph)
{
	const struct iovec bulk = { planned->writer.memory, planned->writer.size };
	const struct gp_args_gpGraphRemake args = { .plan = subgraph->id };

	return gpc_post_gpGraphRemake(context, &args, &bulk, 1);
}

/* Returns the next valid subgraph of the context that is not yet reused by the new steps. */
static struct gpc_handle *
subgraph_reuse(struct gpc_exec_steps *exec_steps, const struct gpc_context *context, size_t *from)
{
	while (*from < exec_steps->count) {
		struct gpc_exec_step *step = &exec_steps->steps[(*from)++];
		struct gpc_handle *subgraph = step->subgraph;

		if (!subgraph || step->context != context || !step_is_valid(step))
			continue;
		step->subgraph = NULL;
		return subgraph;
	}
	return NULL;
}

/* Sets the stream of a step's context, shared with an earlier step if there is one. */
static CUresult
step_set_peer_stream(struct gpc_exec_step *steps, size_t number)
{
	struct gpc_exec_step *step = &steps[number];

	for (size_t i = 0; i < number; i++) {
		if (steps[i].peer_stream && steps[i].context == step->context) {
			step->peer_stream = steps[i].peer_stream;
			return CUDA_SUCCESS;
		}
	}
	step->owner = true;
	return gpc_stream_create_in(step->context, CU_STREAM_NON_BLOCKING, 0, &step->peer_stream);
}

/* Called before anything of the step is sent. */
static CUresult
step_prepare(const struct gpc_plan *plan, struct gpc_exec_step *steps, size_t number)
{
	struct gpc_exec_step *step = &steps[number];
	CUresult result;

	step->context = plan->steps[number].context;
	step->stage = plan->steps[number].stage;
	if (!step->context || (plan->steps[number].is_client && !plan->multi_context))
		return CUDA_SUCCESS;
	result = gpc_context_activate(step->context);
	/* Read first: if the context is reset in the meantime, the subgraphs are gone. */
	step->number = gpc_stream_context_number(step->context);
	return result == CUDA_SUCCESS && plan->multi_context ? step_set_peer_stream(steps, number)
							     : result;
}

static CUresult
steps_send(struct gpc_exec_steps *exec_steps, const struct gpc_plan *plan,
	   struct gpc_exec_step *steps, uint64_t *exec_p)
{
	CUresult result = CUDA_SUCCESS;
	size_t taken = 0;

	for (size_t i = 0; i < plan->count && result == CUDA_SUCCESS; i++) {
		const struct gpc_step *planned = &plan->steps[i];

		result = step_prepare(plan, steps, i);
		if (planned->is_client)
			gpc_step_params_copy(&planned->params, &steps[i].params);
		if (planned->is_client || result != CUDA_SUCCESS)
			continue;
		steps[i].subgraph = subgraph_reuse(exec_steps, planned->context, &taken);
		if (steps[i].subgraph)
			result = subgraph_update(planned->context, planned, steps[i].subgraph);
		else
			result = subgraph_create(plan, planned, &steps[i].subgraph, exec_p);
	}
	return result;
}

static struct gpc_context *
plan_get_subgraph_context(const struct gpc_plan *plan)
{
	for (size_t i = 0; i < plan->count && !plan->multi_context; i++) {
		if (!plan->steps[i].is_client)
			return plan->steps[i].context;
	}
	return NULL;
}

CUresult
gpc_exec_steps_send(struct gpc_exec_steps *exec_steps, struct gpc_plan *plan)
{
	struct gpc_exec_step *steps = calloc(plan->count + 1, sizeof(*steps));
	struct gpc_context *context = plan_get_subgraph_context(plan);
	uint64_t exec = exec_steps->exec;
	CUresult result = steps ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	/* Device code uses its handle, so the graph cannot be created anew with another. */
	if (result == CUDA_SUCCESS && exec_steps->launchable &&
	    (exec_steps->context != context || !gpc_exec_steps_are_valid(exec_steps)))
		result = CUDA_ERROR_CONTEXT_IS_DESTROYED;
	if (result != CUDA_SUCCESS) {
		free(steps);
		return result;
	}
	if (exec_steps->count == 0)
		gpc_launch_shapes_query(&plan->shapes);
	result = steps_send(exec_steps, plan, steps, &exec);
	/* An update is posted without a reply, so it proves nothing. */
	if (result == CUDA_SUCCESS && exec_steps->count == 0)
		gpc_launch_shapes_store(&plan->shapes);
	gpc_exec_steps_drop(exec_steps);
	*exec_steps = (struct gpc_exec_steps){
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
subgraph_post(const struct gpc_handle *subgraph, struct gpc_stream *stream)
{
	const struct gp_args_gpGraphLaunch args = { .plan = subgraph->id,
						    .stream = stream->handle.id };
	CUresult result = gpc_post_gpGraphLaunch(stream->context, &args);

	/* The kernels of the graph are not examined individually. */
	if (atomic_load(&gpc_image_any_uses_printf))
		gpc_session_note_visible(stream->context->scope.session);
	/* Counted after posting, so that a fence in between does not cover the launch. */
	(void)gpc_session_work_mark(stream->context->scope.session);
	return result;
}

/* Flushes managed memory first, as the graph may use it. */
static CUresult
subgraph_launch(const struct gpc_handle *subgraph, struct gpc_stream *stream)
{
	CUresult result;

	if (!gpc_pages_any())
		return subgraph_post(subgraph, stream);
	result = gpc_managed_begin(stream->context->scope.session);
	if (result != CUDA_SUCCESS)
		return result;
	result = subgraph_post(subgraph, stream);
	gpc_managed_end(stream);
	return result;
}

static CUresult
memset_run(const CUDA_MEMSET_NODE_PARAMS *fill, CUstream stream)
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

/* The event no longer represents nodes of a capture. */
static CUresult
event_record_run(CUevent token, CUstream stream)
{
	struct gpc_event *event;
	CUresult result;

	if (__atomic_load_n(&gpc_captures, __ATOMIC_ACQUIRE) == 0)
		return gpc_cuEventRecordWithFlags(token, stream, 0);
	result = gpc_graphs_begin();
	if (result == CUDA_SUCCESS)
		result = gpc_event_lookup(token, &event);
	if (result == CUDA_SUCCESS)
		gpc_capture_drop_event(event);
	result = gpc_graphs_end(result);
	return result == CUDA_SUCCESS ? gpc_cuEventRecordWithFlags(token, stream, 0) : result;
}

static CUresult
client_step_run(const struct gpc_node_params *params, CUstream stream)
{
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return gpc_copy_node_run(&params->copy, stream);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return memset_run(&params->fill, stream);
	case CU_GRAPH_NODE_TYPE_HOST:
		return gpc_cuLaunchHostFunc(stream, params->host.fn, params->host.userData);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		return gpc_mem_ops_post(stream, &params->ops->given);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return event_record_run(params->event, stream);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return gpc_cuStreamWaitEvent(stream, params->event, 0);
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

/* Returns the stream that a step runs on when launched into this stream; NULL if its context was
 * reset. */
static struct gpc_stream *
step_get_stream(const struct gpc_exec_step *step, struct gpc_stream *stream)
{
	if (!step->peer_stream || step->context == stream->context)
		return stream;
	return gpc_handle_from_token(GPC_KIND_STREAM, step->peer_stream);
}

static CUresult
step_launch(const struct gpc_exec_step *step, struct gpc_stream *stream)
{
	return step->subgraph ? subgraph_launch(step->subgraph, stream)
			      : client_step_run(&step->params, stream->handle.token);
}

static CUresult
step_upload(const struct gpc_exec_step *step, struct gpc_stream *stream)
{
	struct gp_args_gpGraphUpload args = { .stream = stream->handle.id };

	if (!step->subgraph)
		return CUDA_SUCCESS;
	args.plan = step->subgraph->id;
	return gpc_post_gpGraphUpload(stream->context, &args);
}

typedef CUresult step_fn(const struct gpc_exec_step *step, struct gpc_stream *stream);

/* Runs the step after the previous work of the launch stream. */
static CUresult
step_run_on_peer_stream(const struct gpc_exec_step *step, struct gpc_stream *stream, step_fn *go)
{
	struct gpc_stream *peer_stream = step_get_stream(step, stream);
	struct gpc_session *session = step->context->scope.session;
	CUresult result = peer_stream ? gpc_event_order(stream, peer_stream)
				      : CUDA_ERROR_CONTEXT_IS_DESTROYED;

	if (result == CUDA_SUCCESS && session != stream->context->scope.session)
		result =
			gpc_pending_copy_before_work(&step->context->scope, peer_stream->handle.id);
	if (result == CUDA_SUCCESS)
		result = go(step, peer_stream);
	if (session != stream->context->scope.session)
		gpc_coherence_after_work(session);
	return result;
}

/* Runs the subgraphs of one stage, or one client step: those of other contexts run concurrently
 * with those of the stream, which then waits for them. */
static CUresult
stage_run(const struct gpc_exec_step *steps, size_t count, struct gpc_stream *stream, step_fn *go)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
		if (step_get_stream(&steps[i], stream) != stream)
			result = step_run_on_peer_stream(&steps[i], stream, go);
	}
	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
		if (step_get_stream(&steps[i], stream) == stream)
			result = go(&steps[i], stream);
	}
	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
		struct gpc_stream *peer_stream = step_get_stream(&steps[i], stream);

		if (peer_stream && peer_stream != stream)
			result = gpc_event_order(peer_stream, stream);
	}
	return result;
}

static CUresult
steps_run(const struct gpc_exec_steps *exec_steps, struct gpc_stream *stream, step_fn *go)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0, end; i < exec_steps->count && result == CUDA_SUCCESS; i = end) {
		const struct gpc_exec_step *first = &exec_steps->steps[i];

		end = i + 1;
		while (end < exec_steps->count && first->subgraph &&
		       exec_steps->steps[end].subgraph &&
		       exec_steps->steps[end].stage == first->stage)
			end++;
		result = stage_run(first, end - i, stream, go);
	}
	return result;
}

CUresult
gpc_exec_steps_launch(const struct gpc_exec_steps *exec_steps, struct gpc_stream *stream)
{
	return steps_run(exec_steps, stream, step_launch);
}

CUresult
gpc_exec_steps_upload(const struct gpc_exec_steps *exec_steps, struct gpc_stream *stream)
{
	return exec_steps->launchable || exec_steps->updatable
		       ? steps_run(exec_steps, stream, step_upload)
		       : CUDA_SUCCESS;
}
