/* SPDX-License-Identifier: Apache-2.0 */
#include "client/graph/exec.h"

#include "client/context/context.h"
#include "client/graph/plan.h"
#include "client/graph/user_object.h"
#include "client/stream/stream.h"
#include "client/wire/session.h"
#include "gpc_calls.h"

#include <stdlib.h>
#include <utlist.h>

#define KNOWN_FLAGS                                                                                \
	(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |    \
	 CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH |                                               \
	 CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)

/* A node of the client's, or a set that the daemon has. */
struct step {
	struct gpc_node_params params; /* of a copy, a memset, a host function or an event */
	struct gpc_handle *set;        /* NULL: the client's */
};

struct gpc_exec {
	struct gpc_handle handle;
	struct gpc_graph *graph; /* hidden */
	unsigned long long flags;
	struct gpc_context *context; /* of the sets; NULL: there are none */
	uint64_t number;             /* number_of() it: after a reset the daemon has no set */
	struct step *steps;
	size_t count;
	unsigned int uses; /* threads that launch it */
	bool changed;      /* what the daemon has is not what the copy says */
	bool ended;        /* destroyed, but in use */
};

CUresult
gpc_exec_begin(CUgraphExec token, struct gpc_exec **exec_p)
{
	CUresult result = gpc_graphs_begin();

	*exec_p = gpc_handle_get(GPC_KIND_GRAPH_EXEC, token);
	if (result == CUDA_SUCCESS && (!*exec_p || (*exec_p)->ended))
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}

CUresult
gpc_exec_begin_change(CUgraphExec token, struct gpc_exec **exec_p)
{
	CUresult result = gpc_exec_begin(token, exec_p);

	return result == CUDA_SUCCESS && (*exec_p)->uses > 0 ? CUDA_ERROR_ILLEGAL_STATE : result;
}

struct gpc_graph *
gpc_exec_graph(struct gpc_exec *exec)
{
	return exec->graph;
}

CUresult
gpc_exec_child(CUgraphExec token, struct gpc_node_params *params)
{
	struct gpc_exec *exec = gpc_handle_get(GPC_KIND_GRAPH_EXEC, token);

	*params = (struct gpc_node_params){ .type = CU_GRAPH_NODE_TYPE_GRAPH };
	return exec && !exec->ended ? gpc_graph_clone(exec->graph, &params->child)
				    : CUDA_ERROR_INVALID_VALUE;
}

void
gpc_exec_changed(struct gpc_exec *exec)
{
	exec->changed = true;
}

static struct gpc_node *
find_copy(struct gpc_graph *graph, const struct gpc_node *origin)
{
	struct gpc_node *node, *found;

	/* What it was cloned to last, most likely. */
	if (origin->copy && origin->copy->graph == graph &&
	    origin->copy->origin == origin->handle.token)
		return origin->copy;
	found = gpc_graph_find_clone(graph, origin);
	DL_FOREACH(graph->nodes, node)
	{
		if (!found && node->params.type == CU_GRAPH_NODE_TYPE_GRAPH)
			found = find_copy(node->params.child, origin);
	}
	return found;
}

CUresult
gpc_exec_begin_node(CUgraphExec token, CUgraphNode node_token, struct gpc_exec **exec_p,
		    struct gpc_node **copy_p)
{
	struct gpc_node *node;
	CUresult result = gpc_exec_begin_change(token, exec_p);

	if (result == CUDA_SUCCESS)
		result = gpc_node_lookup(node_token, &node);
	if (result != CUDA_SUCCESS)
		return result;
	*copy_p = find_copy((*exec_p)->graph, node);
	return *copy_p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Another one each time that the context is made known to the daemon; 0: it is not. */
static uint64_t
number_of(const struct gpc_context *context)
{
	return context && gpc_context_is_active(context) && context->legacy
		       ? context->legacy->number
		       : 0;
}

/* Whether the daemon still has the sets. */
static bool
has_sets(const struct gpc_exec *exec)
{
	return exec->number != 0 && number_of(exec->context) == exec->number;
}

static void
drop_set(const struct gpc_exec *exec, struct gpc_handle *set)
{
	const struct gp_args_gpGraphDrop args = { .plan = set->id };

	if (has_sets(exec))
		(void)gpc_post_gpGraphDrop(exec->context, &args);
	/* Only now, or another thread could announce a new one of that place before. */
	gpc_handle_remove(set);
}

static void
drop_steps(struct gpc_exec *exec, struct step *steps, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (steps[i].set)
			drop_set(exec, steps[i].set);
	}
	free(steps);
}

static CUresult
make_set(struct gpc_context *context, const struct gpc_step *planned, struct gpc_handle **set_p)
{
	const struct iovec bulk = { planned->writer.memory, planned->writer.size };
	struct gp_args_gpGraphMake args = { .context = context->handle.id };
	struct gpc_request request = { 0 };
	CUresult result;

	*set_p = gpc_handle_new(GPC_KIND_GRAPH_PLAN, sizeof(**set_p));
	if (!*set_p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	args.plan = (*set_p)->id;
	result = gpc_start_gpGraphMake(context, &args, &request, &bulk, 1);
	if (result == CUDA_SUCCESS)
		result = gpc_request_wait_own(&request);
	free(request.reply);
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

/* The next set of the executable's that has no place in the new steps. */
static struct gpc_handle *
take_set(struct gpc_exec *exec, size_t *from)
{
	while (*from < exec->count) {
		struct step *step = &exec->steps[(*from)++];
		struct gpc_handle *set = step->set;

		step->set = NULL;
		if (set)
			return set;
	}
	return NULL;
}

/* Brings the daemon up to what the copy says. */
static CUresult
send_plan(struct gpc_exec *exec, const struct gpc_plan *plan)
{
	struct step *steps = calloc(plan->count + 1, sizeof(*steps));
	size_t taken = 0;
	CUresult result = CUDA_SUCCESS;

	if (!steps)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < plan->count && result == CUDA_SUCCESS; i++) {
		const struct gpc_step *planned = &plan->steps[i];

		if (planned->node) {
			steps[i].params = planned->node->params;
			continue;
		}
		if (has_sets(exec) && exec->context == plan->context)
			steps[i].set = take_set(exec, &taken);
		if (steps[i].set)
			result = remake_set(plan->context, planned, steps[i].set);
		else
			result = make_set(plan->context, planned, &steps[i].set);
	}
	/* What failed in between is sent anew with the next launch. */
	drop_steps(exec, exec->steps, exec->count);
	exec->context = plan->context;
	exec->number = number_of(plan->context);
	exec->steps = steps;
	exec->count = plan->count;
	exec->changed = result != CUDA_SUCCESS;
	return result;
}

static CUresult
bring_up(struct gpc_exec *exec, const struct gpc_node **error_p)
{
	struct gpc_plan plan;
	CUresult result = gpc_plan_make(exec->graph, &plan, error_p);

	if (result == CUDA_SUCCESS && plan.context)
		result = gpc_context_activate(plan.context);
	if (result == CUDA_SUCCESS)
		result = send_plan(exec, &plan);
	gpc_plan_free(&plan);
	return result;
}

static void
exec_free(struct gpc_exec *exec)
{
	drop_steps(exec, exec->steps, exec->count);
	gpc_graph_destroy(exec->graph);
	gpc_handle_remove(&exec->handle);
}

static CUresult
instantiate(CUgraphExec *exec_p, CUgraph hGraph, unsigned long long flags, CUgraphNode *error_out)
{
	const struct gpc_node *error = NULL;
	struct gpc_graph *graph;
	struct gpc_exec *exec;
	CUresult result = gpc_graphs_begin_graph(hGraph, &graph);

	if (result == CUDA_SUCCESS && (!exec_p || (flags & ~(unsigned long long)KNOWN_FLAGS)))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS && (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH))
		result = CUDA_ERROR_NOT_SUPPORTED;
	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	exec = gpc_handle_new(GPC_KIND_GRAPH_EXEC, sizeof(*exec));
	if (!exec)
		return gpc_graphs_end(CUDA_ERROR_OUT_OF_MEMORY);
	exec->flags = flags;
	result = gpc_graph_clone(graph, &exec->graph);
	if (result != CUDA_SUCCESS) {
		gpc_handle_remove(&exec->handle);
		return gpc_graphs_end(result);
	}
	exec->graph->hidden = true;
	result = bring_up(exec, &error);
	if (error_out)
		*error_out = error ? error->origin : NULL;
	if (result == CUDA_SUCCESS)
		*exec_p = exec->handle.token;
	else
		exec_free(exec);
	return gpc_graphs_end(result);
}

CUresult
gpc_cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
	return instantiate(phGraphExec, hGraph, flags, NULL);
}

CUresult
gpc_cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
			  char *logBuffer, size_t bufferSize)
{
	if (logBuffer && bufferSize > 0)
		logBuffer[0] = '\0';
	return instantiate(phGraphExec, hGraph, 0, phErrorNode);
}

CUresult
gpc_cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
				 CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	CUgraphNode error = NULL;
	CUresult result;

	if (!instantiateParams)
		return CUDA_ERROR_INVALID_VALUE;
	result = instantiate(phGraphExec, hGraph, instantiateParams->flags, &error);
	instantiateParams->hErrNode_out = error;
	instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
	else if (result != CUDA_SUCCESS)
		instantiateParams->result_out = error ? CUDA_GRAPH_INSTANTIATE_ERROR
						      : CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
	return result;
}

CUresult
gpc_cuGraphExecDestroy(CUgraphExec hGraphExec)
{
	struct gpc_exec *exec;
	CUresult result = gpc_exec_begin(hGraphExec, &exec);

	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	if (exec->uses > 0)
		exec->ended = true;
	else
		exec_free(exec);
	return gpc_graphs_end(CUDA_SUCCESS);
}

CUresult
gpc_cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags)
{
	struct gpc_exec *exec;
	CUresult result = gpc_exec_begin(hGraphExec, &exec);

	if (result == CUDA_SUCCESS && !flags)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		*flags = exec->flags;
	return gpc_graphs_end(result);
}

/* Before a launch: what has changed is sent, and the executable stays until end_use(). */
static CUresult
begin_use(CUgraphExec token, CUstream hStream, struct gpc_exec **exec_p,
	  struct gpc_stream **stream_p)
{
	const struct gpc_node *error;
	struct gpc_context *context;
	CUresult result = gpc_exec_begin(token, exec_p);

	if (result == CUDA_SUCCESS)
		result = gpc_enter(&context);
	if (result == CUDA_SUCCESS)
		result = gpc_stream_lookup(context, hStream, stream_p);
	if (result == CUDA_SUCCESS &&
	    ((*exec_p)->changed || ((*exec_p)->context && !has_sets(*exec_p))))
		result = (*exec_p)->uses > 0 ? CUDA_ERROR_ILLEGAL_STATE : bring_up(*exec_p, &error);
	if (result == CUDA_SUCCESS && (*exec_p)->context &&
	    (*exec_p)->context->device != (*stream_p)->context->device)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		(*exec_p)->uses++;
	return gpc_graphs_end(result);
}

static void
end_use(struct gpc_exec *exec)
{
	struct gpc_users_ended *ended;

	pthread_mutex_lock(&gpc_graphs_lock);
	if (--exec->uses == 0 && exec->ended)
		exec_free(exec);
	ended = gpc_users_take_ended();
	pthread_mutex_unlock(&gpc_graphs_lock);
	gpc_users_end(ended);
}

CUresult
gpc_cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
	struct gp_args_gpGraphLaunch args;
	struct gpc_stream *stream;
	struct gpc_exec *exec;
	CUresult result = begin_use(hGraphExec, hStream, &exec, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	args.stream = stream->handle.id;
	for (size_t i = 0; i < exec->count && result == CUDA_SUCCESS; i++) {
		const struct step *step = &exec->steps[i];

		if (!step->set) {
			result = gpc_step_run(&step->params, stream->handle.token);
			continue;
		}
		args.plan = step->set->id;
		result = gpc_post_gpGraphLaunch(stream->context, &args);
		/* Counted behind it: a fence in between does not cover the launch. */
		(void)gpc_session_work_mark(stream->context->scope.session);
	}
	end_use(exec);
	return result;
}

/* What a launch needs is there since the graph was instantiated. */
CUresult
gpc_cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream)
{
	struct gpc_stream *stream;
	struct gpc_exec *exec;
	CUresult result = begin_use(hGraphExec, hStream, &exec, &stream);

	if (result == CUDA_SUCCESS)
		end_use(exec);
	return result;
}
