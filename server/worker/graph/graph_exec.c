/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/graph/graph_exec.h"

#include "gpd_calls.h"
#include "protocol/graph_plan.h"
#include "server/worker/context/context.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/graph/graph_build.h"
#include "server/worker/graph/graph_root.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/print.h"
#include "server/worker/stream/stream.h"

#include <stdlib.h>

struct gpd_graph {
	struct gpd_handle handle;
	struct gpd_context *context;
	int device;
	void *plan; /* the client's plan, charged to the session; or NULL */
	size_t size;
	struct gpd_graph_built *built; /* NULL: it could not be built */
	CUresult refused;              /* error of the last plan; every launch returns it */
	bool launchable;               /* by kernels, which have the driver's handle */
};

static struct gpd_graph *
graph_get(const struct gpd_session *session, uint32_t id)
{
	return gpd_handle_get(&session->handles, GPD_KIND_GRAPH_PLAN, id);
}

/* Accounts for the uses of a graph that any later launch of the session may launch from a
 * kernel. */
static void
note_uses(struct gpd_session *session, const struct gpd_image_uses *uses)
{
	session->graphs->launched_print |= uses->print;
	if (uses->malloc)
		atomic_store_explicit(&gpd_devices.worn, GPD_WORN_HEAP, memory_order_relaxed);
}

static void
graph_drop_plan(struct gpd_session *session, struct gpd_graph *graph)
{
	if (graph->plan)
		gpd_handle_memory_remove(&session->handles.memory, graph->size);
	free(graph->plan);
	graph->plan = NULL;
}

/* Builds a graph that has no plan, or replaces the content of one whose driver handle kernels have.
 * On success it owns the plan. */
static CUresult
graph_set_plan(struct gpd_session *session, struct gpd_graph *graph, void *plan, size_t size)
{
	CUresult result = gpd_device_enter(graph->device);

	if (result == CUDA_SUCCESS && !gpd_graph_charge(session, size))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS)
		return result;
	if (graph->built)
		result = gpd_graph_update(session, plan, size, graph->built);
	else
		result = gpd_graph_build(session, plan, size, graph->device,
					 gpd_graph_partition(session, graph->context),
					 graph->launchable, &graph->built);
	if (result != CUDA_SUCCESS) {
		gpd_handle_memory_remove(&session->handles.memory, size);
		return result;
	}
	graph_drop_plan(session, graph);
	graph->plan = plan;
	graph->size = size;
	if (graph->launchable)
		note_uses(session, &graph->built->uses);
	return CUDA_SUCCESS;
}

/* Drops the plan and what was built from it. */
static void
graph_clear(struct gpd_session *session, struct gpd_graph *graph)
{
	gpd_graph_destroy_built_later(session, graph->built);
	graph->built = NULL;
	graph_drop_plan(session, graph);
}

static void
graph_destroy(struct gpd_session *session, struct gpd_graph *graph)
{
	graph_clear(session, graph);
	gpd_handle_remove(&session->handles, &graph->handle);
	free(graph);
}

/* Registers a graph without a plan under this ID. */
static CUresult
graph_create(struct gpd_session *session, uint32_t context_id, uint32_t id,
	     struct gpd_graph **graph_p)
{
	struct gpd_context *context = gpd_context_get(session, context_id);
	struct gpd_graph *graph;
	CUresult result;

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	graph = gpd_session_create_object(session, GPD_KIND_GRAPH_PLAN, id, sizeof(*graph),
					  &result);
	if (!graph)
		return result;
	graph->context = context;
	graph->device = context->device;
	*graph_p = graph;
	return CUDA_SUCCESS;
}

static CUresult
graph_make(struct gpd_session *session, uint32_t context_id, uint32_t id, bool launchable,
	   struct gpd_graph **graph_p)
{
	size_t size;
	void *plan;
	CUresult result = gpd_graph_recv(session, &plan, &size);

	if (result == CUDA_SUCCESS)
		result = graph_create(session, context_id, id, graph_p);
	if (result != CUDA_SUCCESS) {
		free(plan);
		return result;
	}
	(*graph_p)->launchable = launchable;
	result = graph_set_plan(session, *graph_p, plan, size);
	if (result != CUDA_SUCCESS) {
		free(plan);
		graph_destroy(session, *graph_p);
	}
	return result;
}

CUresult
gpd_gpGraphMake(struct gpd_session *session, const struct gp_args_gpGraphMake *args)
{
	struct gpd_graph *graph;

	return graph_make(session, args->context, args->plan, false, &graph);
}

CUresult
gpd_gpGraphPut(struct gpd_session *session, const struct gp_args_gpGraphPut *args)
{
	struct gpd_graph *graph;
	size_t size;
	void *plan;
	CUresult result = gpd_graph_recv(session, &plan, &size);
	CUresult created = graph_create(session, args->context, args->plan, &graph);

	if (result == CUDA_SUCCESS)
		result = created == CUDA_SUCCESS ? graph_set_plan(session, graph, plan, size)
						 : created;
	if (result != CUDA_SUCCESS)
		free(plan);
	if (created == CUDA_SUCCESS)
		graph->refused = result;
	return result;
}

/* If a kernel launched a graph that the driver has not uploaded yet, the session would end. */
static CUresult
graph_upload(struct gpd_session *session, const struct gpd_graph *graph)
{
	struct gpd_stream *stream;
	CUresult result = gpd_stream_begin(session, graph->context->legacy->handle.id, &stream);

	return result == CUDA_SUCCESS
		       ? gpd_driver.cuGraphUpload(graph->built->driver, stream->driver)
		       : result;
}

CUresult
gpd_gpGraphMakeLaunchable(struct gpd_session *session,
			  const struct gp_args_gpGraphMakeLaunchable *args,
			  struct gp_reply_gpGraphMakeLaunchable *reply)
{
	struct gpd_graph *graph;
	CUresult result = graph_make(session, args->context, args->plan, true, &graph);

	if (result != CUDA_SUCCESS)
		return result;
	result = graph_upload(session, graph);
	if (result == CUDA_SUCCESS)
		reply->exec = (uintptr_t)graph->built->driver;
	else
		graph_destroy(session, graph);
	return result;
}

CUresult
gpd_gpGraphRemake(struct gpd_session *session, const struct gp_args_gpGraphRemake *args)
{
	struct gpd_graph *graph = graph_get(session, args->plan);
	size_t size;
	void *plan;
	CUresult result = gpd_graph_recv(session, &plan, &size);

	if (!graph) {
		free(plan);
		return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_HANDLE : result;
	}
	if (!graph->launchable)
		graph_clear(session, graph);
	if (result == CUDA_SUCCESS)
		result = graph_set_plan(session, graph, plan, size);
	if (result != CUDA_SUCCESS)
		free(plan);
	graph->refused = result;
	return result;
}

/* Makes sure that the built graph matches the session's present partition and kernels. */
static CUresult
graph_refresh(struct gpd_session *session, struct gpd_graph *graph, struct gpd_partition *partition)
{
	if (graph->built && gpd_graph_fits(session, graph->built, partition))
		return CUDA_SUCCESS;
	if (graph->launchable)
		return gpd_graph_update(session, graph->plan, graph->size, graph->built);
	/* Before the new graph is charged, which may need the room. */
	gpd_graph_destroy_built_later(session, graph->built);
	graph->built = NULL;
	return gpd_graph_build(session, graph->plan, graph->size, graph->device, partition, false,
			       &graph->built);
}

/* Looks up the graph and its stream and refreshes the graph. */
static CUresult
graph_prepare_launch(struct gpd_session *session, uint32_t plan, uint32_t stream,
		     struct gpd_graph **graph_p, struct gpd_stream **stream_p)
{
	struct gpd_graph *graph = graph_get(session, plan);
	CUresult result;

	*graph_p = graph;
	if (!graph)
		return CUDA_ERROR_INVALID_HANDLE;
	/* The former graph must not run: the client knows that it was replaced. */
	if (graph->refused != CUDA_SUCCESS)
		return graph->refused;
	result = gpd_stream_begin(session, stream, stream_p);
	if (result != CUDA_SUCCESS)
		return result;
	if ((*stream_p)->device != graph->device)
		return CUDA_ERROR_INVALID_VALUE;
	return graph_refresh(session, graph, (*stream_p)->partition);
}

CUresult
gpd_gpGraphLaunch(struct gpd_session *session, const struct gp_args_gpGraphLaunch *args)
{
	struct gpd_graph *graph;
	struct gpd_stream *stream;
	CUresult result = graph_prepare_launch(session, args->plan, args->stream, &graph, &stream);
	bool print;

	if (result != CUDA_SUCCESS)
		return result;
	print = graph->built->uses.print || session->graphs->launched_print;
	if (print) {
		result = gpd_print_begin(session, stream);
		if (result != CUDA_SUCCESS)
			return result;
	}
	if (graph->built->uses.malloc)
		atomic_store_explicit(&gpd_devices.worn, GPD_WORN_HEAP, memory_order_relaxed);
	if (graph->built->kernel)
		__atomic_store_n(&session->progress.kernel, graph->built->kernel, __ATOMIC_RELEASE);
	result = gpd_driver.cuGraphLaunch(graph->built->driver, stream->driver);
	if (print)
		gpd_print_end(session, stream);
	return result;
}

CUresult
gpd_gpGraphUpload(struct gpd_session *session, const struct gp_args_gpGraphUpload *args)
{
	struct gpd_graph *graph;
	struct gpd_stream *stream;
	CUresult result = graph_prepare_launch(session, args->plan, args->stream, &graph, &stream);

	return result == CUDA_SUCCESS
		       ? gpd_driver.cuGraphUpload(graph->built->driver, stream->driver)
		       : result;
}

CUresult
gpd_gpGraphDrop(struct gpd_session *session, const struct gp_args_gpGraphDrop *args)
{
	struct gpd_graph *graph = graph_get(session, args->plan);

	if (!graph)
		return CUDA_ERROR_INVALID_HANDLE;
	graph_destroy(session, graph);
	return CUDA_SUCCESS;
}

void
gpd_graph_destroy_context(struct gpd_session *session, const struct gpd_context *context)
{
	struct gpd_graph *graph;
	uint32_t at = 0;

	while ((graph = gpd_handle_next(&session->handles, GPD_KIND_GRAPH_PLAN, &at))) {
		if (graph->context == context)
			graph_destroy(session, graph);
	}
	gpd_graph_root_destroy_context(session, context);
}

void
gpd_graph_destroy_all(struct gpd_session *session)
{
	struct gpd_graph *graph;
	uint32_t at = 0;

	while ((graph = gpd_handle_next(&session->handles, GPD_KIND_GRAPH_PLAN, &at))) {
		gpd_graph_destroy_built(session, graph->built,
					gpd_device_enter(graph->device) == CUDA_SUCCESS);
		graph->built = NULL;
		graph_destroy(session, graph);
	}
	gpd_graph_root_destroy_context(session, NULL);
}
