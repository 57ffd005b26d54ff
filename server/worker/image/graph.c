/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/image/graph.h"

#include "gpd_calls.h"
#include "protocol/graph_plan.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/partition.h"
#include "server/worker/image/graph_build.h"
#include "server/worker/image/image.h"
#include "server/worker/session/context.h"
#include "server/worker/session/print.h"
#include "server/worker/session/session.h"
#include "server/worker/session/stream.h"
#include "server/worker/session/wait.h"

#include <stdlib.h>

struct gpd_graph {
	struct gpd_handle handle;
	struct gpd_context *context;
	int device;
	void *plan; /* as the client has sent it */
	size_t size;
	uint64_t charged; /* bytes of the machine's memory, besides the kind's COST */
	struct gpd_graph_built built;
};

static struct gpd_graph *
graph_get(const struct gpd_session *session, uint32_t id)
{
	return (struct gpd_graph *)gpd_handle_get(&session->handles, GPD_KIND_GRAPH_PLAN, id);
}

static void
unused(struct gpd_session *session, void *arg, CUresult result)
{
	struct gpd_graph_built *built = arg;

	gpd_graph_unbuild(built, !gpd_driver_is_sticky(result));
	free(built);
}

/* What launches may still be using ends behind them. */
static void
end_later(struct gpd_session *session, struct gpd_graph_built *built)
{
	struct gpd_graph_built *left = malloc(sizeof(*left));

	if (left)
		*left = *built;
	if (!left || gpd_wait_add_all(session, NULL, unused, left) != CUDA_SUCCESS) {
		/* The context is lost: there is nothing to give back but the memory. */
		gpd_graph_unbuild(built, false);
		free(left);
	}
	*built = (struct gpd_graph_built){ 0 };
}

/* The partition that the session's streams of the context have. */
static struct gpd_partition *
partition_of(const struct gpd_session *session, const struct gpd_context *context)
{
	const struct gpd_stream *stream = session->streams;

	while (stream && (stream->context != context || stream->dropped))
		stream = stream->next;
	return stream ? stream->partition : NULL;
}

/* What the client has sent: *plan_p is the caller's to free. */
static CUresult
receive(struct gpd_session *session, void **plan_p, size_t *size_p)
{
	size_t size = gpd_session_bulk_size(session);

	*plan_p = size > 0 && size <= GP_GRAPH_PLAN_MAX ? malloc(size) : NULL;
	*size_p = size;
	if (gpd_session_recv_bulk(session, *plan_p, size)) {
		free(*plan_p);
		*plan_p = NULL;
		return CUDA_ERROR_UNKNOWN;
	}
	if (size > GP_GRAPH_PLAN_MAX)
		gpd_session_violation(session, "a graph of %zu bytes", size);
	if (!*plan_p)
		return size == 0 || size > GP_GRAPH_PLAN_MAX ? CUDA_ERROR_INVALID_VALUE
							     : CUDA_ERROR_OUT_OF_MEMORY;
	return CUDA_SUCCESS;
}

/* Takes the plan over where it succeeds; what the graph had before ends. */
static CUresult
take(struct gpd_session *session, struct gpd_graph *graph, void *plan, size_t size)
{
	struct gpd_graph_built built;
	uint64_t bytes;
	uint32_t nodes;
	CUresult result;

	if (!gpd_graph_count(plan, size, &nodes))
		return CUDA_ERROR_INVALID_VALUE;
	/* Before the driver is asked for it: a plan may have a million nodes. */
	bytes = size + (uint64_t)nodes * GPD_GRAPH_NODE_COST;
	if (!gpd_name_memory_add(&session->handles.memory, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = gpd_graph_build(session, plan, size, graph->device,
				 partition_of(session, graph->context), &built);
	if (result != CUDA_SUCCESS) {
		gpd_name_memory_remove(&session->handles.memory, bytes);
		return result;
	}
	gpd_name_memory_remove(&session->handles.memory, graph->charged);
	if (graph->plan)
		end_later(session, &graph->built);
	free(graph->plan);
	graph->plan = plan;
	graph->size = size;
	graph->charged = bytes;
	graph->built = built;
	return CUDA_SUCCESS;
}

static void
graph_end(struct gpd_session *session, struct gpd_graph *graph)
{
	gpd_handle_remove(&session->handles, &graph->handle);
	gpd_name_memory_remove(&session->handles.memory, graph->charged);
	free(graph->plan);
	free(graph);
}

CUresult
gpd_gpGraphMake(struct gpd_session *session, const struct gp_args_gpGraphMake *args)
{
	struct gpd_context *context = gpd_context_get(session, args->context);
	struct gpd_graph *graph = calloc(1, sizeof(*graph));
	size_t size;
	void *plan;
	CUresult result = receive(session, &plan, &size);

	if (result == CUDA_SUCCESS && !graph)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS && !context)
		result = CUDA_ERROR_INVALID_CONTEXT;
	if (result == CUDA_SUCCESS)
		result = gpd_device_enter(context->device);
	if (result == CUDA_SUCCESS)
		result = gpd_session_name(session, GPD_KIND_GRAPH_PLAN, args->plan, &graph->handle);
	if (result != CUDA_SUCCESS) {
		free(plan);
		free(graph);
		return result;
	}
	graph->context = context;
	graph->device = context->device;
	result = take(session, graph, plan, size);
	if (result != CUDA_SUCCESS) {
		free(plan);
		graph_end(session, graph);
	}
	return result;
}

CUresult
gpd_gpGraphRemake(struct gpd_session *session, const struct gp_args_gpGraphRemake *args)
{
	struct gpd_graph *graph = graph_get(session, args->plan);
	size_t size;
	void *plan;
	CUresult result = receive(session, &plan, &size);

	if (result == CUDA_SUCCESS && !graph)
		result = CUDA_ERROR_INVALID_HANDLE;
	if (result == CUDA_SUCCESS)
		result = gpd_device_enter(graph->device);
	if (result == CUDA_SUCCESS)
		result = take(session, graph, plan, size);
	if (result != CUDA_SUCCESS)
		free(plan);
	return result;
}

/* The driver's graph that fits what the session has now. */
static CUresult
renew(struct gpd_session *session, struct gpd_graph *graph, struct gpd_partition *partition)
{
	struct gpd_graph_built built;
	CUresult result;

	if (gpd_graph_fits(session, &graph->built, partition))
		return CUDA_SUCCESS;
	result = gpd_graph_build(session, graph->plan, graph->size, graph->device, partition,
				 &built);
	if (result != CUDA_SUCCESS)
		return result;
	end_later(session, &graph->built);
	graph->built = built;
	return CUDA_SUCCESS;
}

CUresult
gpd_gpGraphLaunch(struct gpd_session *session, const struct gp_args_gpGraphLaunch *args)
{
	struct gpd_graph *graph = graph_get(session, args->plan);
	struct gpd_stream *stream;
	CUresult result;

	if (!graph)
		return CUDA_ERROR_INVALID_HANDLE;
	result = gpd_stream_begin(session, args->stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (stream->device != graph->device)
		return CUDA_ERROR_INVALID_VALUE;
	result = renew(session, graph, stream->partition);
	if (result != CUDA_SUCCESS)
		return result;
	if (graph->built.uses.print) {
		result = gpd_print_begin(session, stream);
		if (result != CUDA_SUCCESS)
			return result;
	}
	if (graph->built.uses.malloc)
		atomic_store_explicit(&gpd_devices.heap_used, true, memory_order_relaxed);
	if (graph->built.kernel)
		__atomic_store_n(&session->kernel, graph->built.kernel, __ATOMIC_RELEASE);
	result = gpd_driver.cuGraphLaunch(graph->built.driver, stream->driver);
	if (graph->built.uses.print)
		gpd_print_end(session, stream);
	return result;
}

static void
drop(struct gpd_session *session, struct gpd_graph *graph)
{
	end_later(session, &graph->built);
	graph_end(session, graph);
}

CUresult
gpd_gpGraphDrop(struct gpd_session *session, const struct gp_args_gpGraphDrop *args)
{
	struct gpd_graph *graph = graph_get(session, args->plan);

	if (!graph)
		return CUDA_ERROR_INVALID_HANDLE;
	drop(session, graph);
	return CUDA_SUCCESS;
}

struct forget {
	struct gpd_session *session;
	const struct gpd_context *context;
};

static void
drop_if_of(struct gpd_handle *handle, void *arg)
{
	struct gpd_graph *graph = (struct gpd_graph *)handle;
	const struct forget *forget = arg;

	if (graph->context == forget->context)
		drop(forget->session, graph);
}

void
gpd_graph_forget_context(struct gpd_session *session, const struct gpd_context *context)
{
	struct forget forget = { session, context };

	gpd_handle_each(&session->handles, GPD_KIND_GRAPH_PLAN, drop_if_of, &forget);
}

static void
end_at_once(struct gpd_handle *handle, void *session)
{
	struct gpd_graph *graph = (struct gpd_graph *)handle;

	gpd_graph_unbuild(&graph->built, gpd_device_enter(graph->device) == CUDA_SUCCESS);
	graph_end(session, graph);
}

void
gpd_graph_forget_session(struct gpd_session *session)
{
	gpd_handle_each(&session->handles, GPD_KIND_GRAPH_PLAN, end_at_once, session);
}
