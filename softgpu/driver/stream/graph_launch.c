/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graph launches by kernels. Running graphs are represented by environments: an environment ends
 * when everything that its graph has launched beside itself (cudaStreamGraphFireAndForget) has
 * ended; then its tail launches follow. A launch beside a graph starts when the graph's nodes have
 * ended, which CUDA allows.
 */
#include "softgpu/driver/stream/graph.h"
#include "softgpu/driver/stream/stream.h"
#include "softgpu/engine/engine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Streams as device code names them (cuda_device_runtime_api.h). */
#define TAIL_LAUNCH 0x0100000000000000ull
#define FIRE_AND_FORGET 0x0200000000000000ull
#define FIRE_AND_FORGET_AS_SIBLING 0x0300000000000000ull

/* CUDA's limits for each kind of launch, and the limit of nesting here. */
#define BESIDE_MAX 120
#define TAIL_MAX 255
#define DEPTH_MAX 24

#define INVALID_VALUE 1 /* cudaErrorInvalidValue */

/* Queue of references to executables. */
struct launches {
	struct gs_graph *list[TAIL_MAX];
	unsigned int first, count;
};

struct gs_environment {
	struct gs_graphs graphs; /* for its kernels */
	struct gs_environment *parent;
	struct gs_graph *graph; /* NULL: the graph launched by the host */
	unsigned int depth;
	unsigned int launched; /* number of launches beside it */
	struct launches beside, behind;
};

static atomic_uint launchable;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

CUresult
gs_graph_make_launchable(struct gs_graph *exec)
{
	const struct gs_node *node;

	if (!exec->nodes)
		return CUDA_ERROR_INVALID_VALUE;
	DL_FOREACH(exec->nodes, node)
	{
		if (node->type != CU_GRAPH_NODE_TYPE_KERNEL &&
		    node->type != CU_GRAPH_NODE_TYPE_MEMCPY &&
		    node->type != CU_GRAPH_NODE_TYPE_MEMSET)
			return CUDA_ERROR_INVALID_VALUE;
	}
	exec->launchable = true;
	launchable++;
	return CUDA_SUCCESS;
}

void
gs_graph_end_launchable(const struct gs_graph *exec)
{
	if (exec->launchable)
		launchable--;
}

/* Whether both graphs have nodes of the same types in the same order. */
static bool
is_like(const struct gs_graph *graph, const struct gs_graph *other)
{
	const struct gs_node *node, *theirs = other->nodes;

	DL_FOREACH(graph->nodes, node)
	{
		if (!theirs || theirs->type != node->type)
			return false;
		theirs = theirs->next;
	}
	return !theirs;
}

struct gs_graph *
gs_graph_now(struct gs_graph *exec)
{
	struct gs_graph *now;

	pthread_mutex_lock(&lock);
	now = exec->updated ? exec->updated : exec;
	gs_object_ref(&now->object);
	pthread_mutex_unlock(&lock);
	return now;
}

/* Limited to what the daemon needs: executables that kernels may launch. Earlier launches are
 * unchanged; later launches by kernels use the new version. */
CUresult CUDAAPI
cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo *info)
{
	struct gs_graph *exec, *graph, *made = NULL, *before;
	CUresult r = gs_enter();

	if (r)
		return r;
	exec = gs_object_get(handle, GS_KIND_GRAPH_EXEC);
	graph = gs_object_get(graph_handle, GS_KIND_GRAPH);
	if (!exec || !graph || !info)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && !exec->launchable)
		r = CUDA_ERROR_NOT_SUPPORTED;
	if (!r && !is_like(exec, graph)) {
		info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		r = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	}
	if (!r) {
		made = gs_graph_create(GS_KIND_GRAPH_EXEC);
		r = made ? gs_graph_copy_nodes(made, graph) : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!r) {
		pthread_mutex_lock(&lock);
		before = exec->updated;
		exec->updated = made;
		exec->uploaded = false;
		pthread_mutex_unlock(&lock);
		made = before;
		info->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
	}
	if (made)
		gs_object_put(&made->object);
	if (exec)
		gs_object_put(&exec->object);
	if (graph)
		gs_object_put(&graph->object);
	return r;
}

bool
gs_graph_any_launchable(void)
{
	return launchable > 0;
}

/* Called with the lock held; takes ownership of the reference on success. */
static bool
add(struct launches *launches, struct gs_graph *exec)
{
	if (launches->count == TAIL_MAX)
		return false;
	launches->list[(launches->first + launches->count++) % TAIL_MAX] = exec;
	return true;
}

static struct gs_graph *
pop(struct launches *launches)
{
	struct gs_graph *exec = NULL;

	pthread_mutex_lock(&lock);
	if (launches->count > 0) {
		exec = launches->list[launches->first];
		launches->first = (launches->first + 1) % TAIL_MAX;
		launches->count--;
	}
	pthread_mutex_unlock(&lock);
	return exec;
}

static bool
has(const struct launches *launches, const struct gs_graph *exec)
{
	for (unsigned int i = 0; i < launches->count; i++) {
		if (launches->list[(launches->first + i) % TAIL_MAX] == exec)
			return true;
	}
	return false;
}

/* Called with the lock held. A graph cannot run twice at a time, but may launch itself as a tail
 * launch. */
static bool
launch_tail(struct gs_environment *environment, struct gs_graph *exec)
{
	bool self = exec == environment->graph;

	if (self ? has(&environment->behind, exec) : exec->under_way)
		return false;
	return add(&environment->behind, exec);
}

static bool
launch_beside(struct gs_environment *environment, struct gs_graph *exec)
{
	if (environment->launched == BESIDE_MAX || environment->depth == DEPTH_MAX ||
	    exec->under_way || !add(&environment->beside, exec))
		return false;
	environment->launched++;
	return true;
}

static struct gs_environment *
get_environment(const struct gs_graphs *graphs)
{
	return (struct gs_environment *)(uintptr_t)graphs; /* NOLINT: it is one's first member */
}

static int
launch(const struct gs_graphs *graphs, uint64_t number, uint64_t stream)
{
	struct gs_environment *environment = get_environment(graphs);
	struct gs_graph *exec =
		gs_object_get((const void *)(uintptr_t)number, GS_KIND_GRAPH_EXEC); /* NOLINT */
	bool done = false;

	if (!exec)
		return INVALID_VALUE;
	pthread_mutex_lock(&lock);
	if (!exec->launchable || !exec->uploaded)
		done = false;
	else if (stream == TAIL_LAUNCH)
		done = launch_tail(environment, exec);
	else if (stream == FIRE_AND_FORGET)
		done = launch_beside(environment, exec);
	else if (stream == FIRE_AND_FORGET_AS_SIBLING)
		done = launch_beside(environment->parent, exec);
	if (done)
		exec->under_way = true;
	pthread_mutex_unlock(&lock);
	if (!done)
		gs_object_put(&exec->object);
	return done ? 0 : INVALID_VALUE;
}

static void
drop(struct launches *launches)
{
	struct gs_graph *exec;

	while ((exec = pop(launches))) {
		exec->under_way = false;
		gs_object_put(&exec->object);
	}
}

static bool run_in(struct gs_environment *parent, struct gs_graph *graph,
		   const struct gs_graph *now, CUstream inner, const struct gs_stream *stream);

static bool
run_as_it_is(struct gs_environment *parent, struct gs_graph *exec, CUstream inner,
	     const struct gs_stream *stream)
{
	struct gs_graph *now = gs_graph_now(exec);
	bool going = run_in(parent, exec, now, inner, stream);

	gs_object_put(&now->object);
	return going;
}

static bool
run_beside(struct gs_environment *environment, CUstream inner, const struct gs_stream *stream)
{
	struct gs_graph *exec;
	bool going = true;

	while (going && (exec = pop(&environment->beside))) {
		going = run_as_it_is(environment, exec, inner, stream);
		gs_object_put(&exec->object);
	}
	drop(&environment->beside);
	return going;
}

/* A graph's tail launches precede the tail launches that were already pending. */
static void
put_before(struct launches *launches, struct launches *later)
{
	struct gs_graph *exec;

	while ((exec = pop(later))) {
		if (add(launches, exec))
			continue;
		exec->under_way = false;
		gs_object_put(&exec->object);
	}
	*later = *launches;
}

/* Afterwards no kernel of the inner stream runs. */
static void
stop(CUstream inner)
{
	struct gs_stream *stream = gs_stream_get(inner);

	(void)gs_stream_cancel(stream);
	gs_stream_put(stream);
}

/* Runs an environment: the graph's nodes and the graphs that they launch beside it. */
static bool
run_one(struct gs_environment *environment, const struct gs_graph *now, CUstream inner,
	const struct gs_stream *stream)
{
	bool going;

	environment->graph->under_way = true;
	gs_graph_set_defaults(environment->graph);
	going = gs_graph_run_nodes(now, inner, stream, &environment->graphs) &&
		run_beside(environment, inner, stream);
	if (!going)
		stop(inner);
	environment->graph->under_way = has(&environment->behind, environment->graph);
	return going;
}

/* The same, followed by the tail launches. */
static bool
run_in(struct gs_environment *parent, struct gs_graph *graph, const struct gs_graph *now,
       CUstream inner, const struct gs_stream *stream)
{
	struct gs_environment *environment = calloc(1, sizeof(*environment));
	struct launches *later = calloc(1, sizeof(*later));
	struct gs_graph *next = NULL;
	bool going = environment && later;

	if (!going) {
		free(environment);
		free(later);
		return false;
	}
	environment->parent = parent;
	environment->depth = parent->depth + 1;
	environment->graphs.launch = launch;
	environment->graphs.change = gs_device_node_change;
	do {
		struct gs_graph *kept = next ? gs_graph_now(next) : NULL;

		environment->graph = next ? next : graph;
		environment->graphs.current = (uintptr_t)environment->graph;
		environment->launched = 0;
		going = run_one(environment, kept ? kept : now, inner, stream);
		put_before(&environment->behind, later);
		memset(&environment->behind, 0, sizeof(environment->behind));
		if (next) {
			gs_object_put(&kept->object);
			gs_object_put(&next->object);
		}
		next = going ? pop(later) : NULL;
	} while (next);
	drop(later);
	free(later);
	free(environment);
	return going;
}

bool
gs_graph_run_all(struct gs_graph *exec, const struct gs_graph *now, CUstream inner,
		 const struct gs_stream *stream)
{
	struct gs_environment *host = calloc(1, sizeof(*host));
	bool going =
		host && run_in(host, exec, now, inner, stream) && run_beside(host, inner, stream);

	if (host)
		drop(&host->beside);
	free(host);
	return going;
}
