/* SPDX-License-Identifier: Apache-2.0 */
#include "client/graph/graph_exec.h"

#include "client/context/context.h"
#include "client/graph/exec_steps.h"
#include "client/graph/graph_memory.h"
#include "client/graph/graph_plan.h"
#include "client/graph/graph_root.h"
#include "client/graph/user_object.h"
#include "client/guard/guard.h"
#include "client/host/coherence.h"
#include "client/host/pending_copy.h"
#include "client/stream/stream.h"
#include "gpc_calls.h"

#include <uthash.h>
#include <utlist.h>

#define KNOWN_FLAGS                                                                                \
	(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |    \
	 CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH |                                               \
	 CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)

struct gpc_exec {
	struct gpc_handle handle;
	struct gpc_graph *graph; /* private copy */
	CUgraph origin;          /* token of the original graph, if that is `single` */
	unsigned long long flags;
	struct gpc_exec_steps exec_steps; /* owned by the sending thread while `sending` is set */
	unsigned int uses;                /* number of threads that send or launch it */
	bool sending;
	bool changed; /* the daemon's state differs from the copy */
	bool ended;   /* destroyed, but in use */
	/* The application's handle: the token or, if kernels may launch it, the driver's handle, so
	 * that host and device code use the same. */
	CUgraphExec name;
	UT_hash_handle hh; /* in `launchable`, by name */
	/* Context of the last launch's stream; NULL: never launched. */
	struct gpc_context *launched;
};

/* Signaled when the sending of any executable graph has finished; used with gpc_graphs_lock. */
static pthread_cond_t send_finished;
GP_COND_CONSTRUCTOR(send_finished);

/* Executable graphs that kernels may launch. */
static struct gpc_exec *launchable GP_GUARDED_BY(gpc_graphs_lock);

static CUresult
exec_lookup(CUgraphExec token, struct gpc_exec **exec_p) GP_LOCKED(gpc_graphs_lock)
{
	struct gpc_exec *exec = gpc_handle_from_token(GPC_KIND_GRAPH_EXEC, token);

	if (exec ? exec->name != token : launchable != NULL)
		HASH_FIND_PTR(launchable, &token, exec);
	*exec_p = exec;
	return exec && !exec->ended ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult
gpc_exec_begin(CUgraphExec token, struct gpc_exec **exec_p)
{
	CUresult result = gpc_graphs_begin();

	return result == CUDA_SUCCESS ? exec_lookup(token, exec_p) : result;
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

cuuint64_t
gpc_exec_flags(const struct gpc_exec *exec)
{
	return exec->flags;
}

void
gpc_exec_changed(struct gpc_exec *exec)
{
	exec->changed = true;
}

static struct gpc_node *
node_find_copy(struct gpc_graph *graph, const struct gpc_node *origin) GP_LOCKED(gpc_graphs_lock)
{
	struct gpc_node *node, *found;
	size_t count;

	/* The most recent clone is the most likely one. */
	if (origin->copy && origin->copy->graph == graph &&
	    origin->copy->origin == origin->handle.token)
		return origin->copy;
	found = gpc_graph_find_clone(graph, origin);
	DL_FOREACH(graph->nodes, node)
	{
		struct gpc_graph *const *inner = gpc_node_params_graphs(&node->params, &count);

		for (size_t i = 0; i < count && !found; i++)
			found = node_find_copy(inner[i], origin);
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
	*copy_p = node_find_copy((*exec_p)->graph, node);
	return *copy_p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Resources of a destroyed executable graph that are released without the lock. */
struct exec_leftover {
	struct gpc_exec_steps exec_steps;
	struct gpc_graph *graph; /* or NULL */
	struct gpc_context *context;
};

static void
exec_free(struct gpc_exec *exec, struct exec_leftover *exec_leftover) GP_LOCKED(gpc_graphs_lock)
{
	struct gpc_graph *origin;

	*exec_leftover =
		(struct exec_leftover){ .exec_steps = exec->exec_steps, .context = exec->launched };
	if (exec->origin && gpc_graph_lookup(exec->origin, &origin) == CUDA_SUCCESS)
		origin->instantiated = false;
	if (exec->name && exec->name != exec->handle.token)
		HASH_DEL(launchable, exec);
	/* Launches in progress may still use the application's user objects. */
	if (exec->launched && gpc_graph_has_user_objects(exec->graph))
		exec_leftover->graph = exec->graph;
	else
		gpc_graph_destroy(exec->graph);
	gpc_handle_remove(&exec->handle);
}

/* Called without the lock. */
static void
exec_end_use(struct gpc_exec *exec, bool destroy)
{
	struct gpc_user_destructor *ended;
	struct exec_leftover exec_leftover = { 0 };

	pthread_mutex_lock(&gpc_graphs_lock);
	exec->ended |= destroy;
	if (--exec->uses == 0 && exec->ended)
		exec_free(exec, &exec_leftover);
	ended = gpc_user_destructors_pop_all();
	pthread_mutex_unlock(&gpc_graphs_lock);
	gpc_exec_steps_drop(&exec_leftover.exec_steps);
	if (exec_leftover.graph)
		gpc_graph_destroy_later(exec_leftover.graph, exec_leftover.context);
	gpc_user_destructors_run(ended);
}

/* Called after exec_begin_send(): sends the plan to the daemon and frees it. */
static CUresult
exec_send_plan(struct gpc_exec *exec, struct gpc_plan *plan)
{
	CUresult result = gpc_exec_steps_send(&exec->exec_steps, plan);

	gpc_plan_free(plan);
	pthread_mutex_lock(&gpc_graphs_lock);
	exec->sending = false;
	exec->changed = result != CUDA_SUCCESS;
	pthread_cond_broadcast(&send_finished);
	pthread_mutex_unlock(&gpc_graphs_lock);
	return result;
}

/* Creates the plan for exec_send_plan(); other threads wait for the sending from here on. */
static CUresult
exec_begin_send(struct gpc_exec *exec, struct gpc_plan *plan, const struct gpc_node **error_p)
	GP_LOCKED(gpc_graphs_lock)
{
	bool for_kernels = exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
	CUresult result = gpc_plan_make(exec->graph, for_kernels, plan, error_p);

	exec->sending = result == CUDA_SUCCESS;
	return result;
}

/* Creates a copy of the graph, in use and not yet visible to the application. */
static CUresult
exec_create(struct gpc_graph *graph, unsigned long long flags, struct gpc_exec **exec_p)
	GP_LOCKED(gpc_graphs_lock)
{
	struct gpc_exec *exec = gpc_handle_new(GPC_KIND_GRAPH_EXEC, sizeof(*exec));
	CUresult result = exec ? gpc_graph_clone(graph, &exec->graph) : CUDA_ERROR_OUT_OF_MEMORY;

	if (result != CUDA_SUCCESS) {
		if (exec)
			gpc_handle_remove(&exec->handle);
		return result;
	}
	exec->graph->hidden = true;
	if (graph->single) {
		exec->origin = graph->handle.token;
		graph->instantiated = true;
	}
	exec->flags = flags;
	exec->name = exec->handle.token;
	exec->uses = 1;
	*exec_p = exec;
	return CUDA_SUCCESS;
}

#define INCOMPATIBLE_FLAGS                                                                         \
	(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |                                         \
	 CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)

static bool
flags_are_valid(unsigned long long flags)
{
	return !(flags & ~(unsigned long long)KNOWN_FLAGS) &&
	       (flags & INCOMPATIBLE_FLAGS) != INCOMPATIBLE_FLAGS;
}

/* Called after exec_send_plan(): adopts the driver's handle if kernels may launch the graph. */
static void
exec_rename(struct gpc_exec *exec)
{
	if (!exec->exec_steps.launchable)
		return;
	pthread_mutex_lock(&gpc_graphs_lock);
	exec->name = (CUgraphExec)(uintptr_t)
			     exec->exec_steps.exec; /* NOLINT: a number of the driver's */
	HASH_ADD_PTR(launchable, name, exec);
	pthread_mutex_unlock(&gpc_graphs_lock);
}

static CUresult
graph_instantiate(CUgraphExec *exec_p, CUgraph hGraph, unsigned long long flags,
		  CUgraphNode *error_out)
{
	const struct gpc_node *error = NULL;
	struct gpc_graph *graph;
	struct gpc_exec *exec;
	struct gpc_plan plan;
	CUresult result = gpc_graphs_begin_graph(hGraph, &graph);

	if (result == CUDA_SUCCESS && (!exec_p || !flags_are_valid(flags)))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS && graph->root && !gpc_graph_root_all_bound(graph->root))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS && graph->instantiated)
		result = CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS)
		result = exec_create(graph, flags, &exec);
	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	result = exec_begin_send(exec, &plan, &error);
	if (error_out)
		*error_out = error ? error->origin : NULL;
	gpc_graphs_end(result);
	if (result == CUDA_SUCCESS)
		result = exec_send_plan(exec, &plan);
	if (result == CUDA_SUCCESS) {
		exec_rename(exec);
		*exec_p = exec->name;
	}
	exec_end_use(exec, result != CUDA_SUCCESS);
	return result;
}

/* Returns the driver's error for nodes that a graph for device launch cannot contain. */
static CUresult
driver_result(CUresult result, unsigned long long flags)
{
	return result == CUDA_ERROR_NOT_SUPPORTED &&
			       flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH
		       ? CUDA_ERROR_INVALID_VALUE
		       : result;
}

CUresult
gpc_cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
	return driver_result(graph_instantiate(phGraphExec, hGraph, flags, NULL), flags);
}

CUresult
gpc_cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
			  char *logBuffer, size_t bufferSize)
{
	if (logBuffer && bufferSize > 0)
		logBuffer[0] = '\0';
	return graph_instantiate(phGraphExec, hGraph, 0, phErrorNode);
}

CUresult
gpc_cuGraphExecDestroy(CUgraphExec hGraphExec)
{
	struct gpc_exec *exec;
	CUresult result = gpc_exec_begin(hGraphExec, &exec);

	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	exec->uses++;
	exec->ended = true;
	gpc_graphs_end(CUDA_SUCCESS);
	exec_end_use(exec, false);
	return CUDA_SUCCESS;
}

/* Like gpc_exec_begin(), but first waits until no thread is sending the executable graph. */
static CUresult
exec_begin_after_send(CUgraphExec token, struct gpc_exec **exec_p) GP_LOCKS(gpc_graphs_lock)
{
	CUresult result = gpc_exec_begin(token, exec_p);

	while (result == CUDA_SUCCESS && (*exec_p)->sending) {
		gpc_guard_block();
		pthread_cond_wait(&send_finished, &gpc_graphs_lock);
		result = exec_lookup(token, exec_p);
	}
	return result;
}

/* Called before a launch: sends changes, and marks the executable graph as in use until
 * exec_end_use(). */
static CUresult
exec_begin_use(CUgraphExec token, CUstream hStream, struct gpc_exec **exec_p,
	       struct gpc_stream **stream_p)
{
	const struct gpc_node *error;
	/* Called without the lock, as the stream may have to be created on the daemon. */
	CUresult found = gpc_stream_enter(hStream, stream_p), result;
	struct gpc_exec *exec;
	struct gpc_plan plan;
	bool send;

	result = exec_begin_after_send(token, &exec);
	if (result == CUDA_SUCCESS)
		result = found;
	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	send = exec->changed || !gpc_exec_steps_are_valid(&exec->exec_steps);
	if (send)
		result = exec->uses > 0 ? CUDA_ERROR_ILLEGAL_STATE
					: exec_begin_send(exec, &plan, &error);
	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	exec->uses++;
	gpc_graphs_end(CUDA_SUCCESS);
	if (send)
		result = exec_send_plan(exec, &plan);
	if (result == CUDA_SUCCESS && exec->exec_steps.context &&
	    exec->exec_steps.context->device != (*stream_p)->context->device)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		exec_end_use(exec, false);
	*exec_p = exec;
	return result;
}

/* Marks the memory that the graph allocates as in use, and the memory that it frees as unused. */
static CUresult
exec_launch_memory(const struct gpc_exec *exec)
{
	CUresult result;

	if (!exec->graph->has_memory)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&gpc_graphs_lock);
	result = gpc_graph_memory_launch(
		exec->graph, exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
	pthread_mutex_unlock(&gpc_graphs_lock);
	return result;
}

CUresult
gpc_cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream)
{
	struct gpc_stream *stream;
	struct gpc_exec *exec;
	CUresult result = exec_begin_use(hGraphExec, hStream, &exec, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	__atomic_store_n(&exec->launched, stream->context, __ATOMIC_RELAXED);
	result = exec_launch_memory(exec);
	if (result == CUDA_SUCCESS)
		result = gpc_pending_copy_before_work(&stream->context->scope, stream->handle.id);
	if (result == CUDA_SUCCESS)
		result = gpc_exec_steps_launch(&exec->exec_steps, stream);
	gpc_coherence_after_work(stream->context->scope.session);
	exec_end_use(exec, false);
	return result;
}

/* A launch from the host needs no upload, as everything has been sent at instantiation. */
CUresult
gpc_cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream)
{
	struct gpc_stream *stream;
	struct gpc_exec *exec;
	CUresult result = exec_begin_use(hGraphExec, hStream, &exec, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	result = gpc_exec_steps_upload(&exec->exec_steps, stream);
	exec_end_use(exec, false);
	return result;
}

static CUresult
exec_upload_or_destroy(CUgraphExec exec, CUstream stream)
{
	CUresult result = gpc_cuGraphUpload(exec, stream);

	if (result != CUDA_SUCCESS)
		(void)gpc_cuGraphExecDestroy(exec);
	return result;
}

CUresult
gpc_cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
				 CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	CUgraphNode error = NULL;
	CUresult result;

	if (!instantiateParams)
		return CUDA_ERROR_INVALID_VALUE;
	result = graph_instantiate(phGraphExec, hGraph, instantiateParams->flags, &error);
	if (result == CUDA_SUCCESS && instantiateParams->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
		result = exec_upload_or_destroy(*phGraphExec, instantiateParams->hUploadStream);
	instantiateParams->hErrNode_out = error;
	instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
	else if (result != CUDA_SUCCESS)
		instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
	return driver_result(result, instantiateParams->flags);
}
