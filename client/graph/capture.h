/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream capture: turns work that the application gives to a captured stream into nodes of a graph.
 *
 * A capture starts with one stream (its origin). Other streams join it by waiting for an event that
 * was recorded in it, and leave when it ends. While any capture exists, calls that the API
 * description marks CAPTURE first call the gpc_capture_*() functions.
 * Threads: functions with GP_LOCKED(gpc_graphs_lock) are called with that lock held, the others
 * without it. Any thread.
 * Errors: the functions return the results of the CUDA functions, or GPC_NOT_CAPTURED if the call
 * is to be executed normally.
 */
#ifndef GPC_CAPTURE_H
#define GPC_CAPTURE_H

#include "client/graph/graph.h"
#include "client/stream/event.h"
#include "client/stream/stream.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Result of gpc_capture_<name>() if the call is not captured and must be executed. */
#define GPC_NOT_CAPTURED ((CUresult)0x7fff0001)

/* Number of captures and of graph memory allocations; read by any thread without the lock. */
extern unsigned int gpc_captures;

/* A capture. */
struct gpc_capture {
	struct gpc_capture *next; /* utlist of all captures */
	uint64_t id;
	struct gpc_graph *graph;
	bool own; /* the graph was created for the capture */
	bool invalid;
	CUstreamCaptureMode mode;
	const void *thread; /* gpc_capture_thread() of the thread that started it */
	const struct gpc_stream *origin;
};

/* A set of nodes. */
struct gpc_nodes {
	struct gpc_node **list;
	size_t count;
};

/* A stream that is part of a capture. */
struct gpc_captured_stream {
	struct gpc_captured_stream *next; /* utlist of all captured streams */
	const struct gpc_stream *stream;  /* NULL: destroyed */
	uint64_t number; /* number of the stream, as its memory may be reused for another */
	struct gpc_capture *capture;
	struct gpc_nodes last;    /* dependencies of its next node */
	CUgraphNode *last_tokens; /* tokens of these nodes for the application; or NULL */
	CUgraphEdgeData *edges;   /* zeroed edge data for the application */
};

/* Identity of the calling thread, and its mode for captures of other threads
 * (cuThreadExchangeStreamCaptureMode). */
const void *gpc_capture_thread(void);
extern __thread CUstreamCaptureMode gpc_capture_mode;

/* Returns the stream that hStream denotes in this thread; NULL if it is invalid, which the call
 * itself then reports. Called without the lock, as the stream may have to be created on the
 * daemon. */
struct gpc_stream *gpc_capture_get_stream(CUstream hStream);

/* Returns NULL if the stream is not being captured. */
struct gpc_captured_stream *gpc_capture_find(const struct gpc_stream *stream)
	GP_LOCKED(gpc_graphs_lock);
/* Returns the capture in which the event was recorded last, and the nodes that it represents; NULL
 * if it was not recorded in a capture. */
struct gpc_capture *gpc_capture_find_event(const struct gpc_event *event,
					   const struct gpc_nodes **nodes_p)
	GP_LOCKED(gpc_graphs_lock);

/* Starts a capture of the stream into the graph, or into a new one if graph is NULL. */
CUresult gpc_capture_begin(const struct gpc_stream *stream, CUstreamCaptureMode mode,
			   struct gpc_graph *graph) GP_LOCKED(gpc_graphs_lock);
/* Ends the capture that started with the stream. *graph_p is NULL unless it succeeds. */
CUresult gpc_capture_end(const struct gpc_stream *stream, struct gpc_graph **graph_p)
	GP_LOCKED(gpc_graphs_lock);

/* Adds a node that depends on the previous work of the stream. Takes ownership of the parameters,
 * also on failure. */
CUresult gpc_capture_add(struct gpc_captured_stream *captured, struct gpc_node_params *params)
	GP_LOCKED(gpc_graphs_lock);

/* Captures a free of a graph's memory as a node; called without the lock. */
CUresult gpc_capture_add_free(CUdeviceptr address, CUstream hStream);

/* Captures the record of an event, which then represents the previous nodes of the stream. */
CUresult gpc_capture_record(struct gpc_captured_stream *captured, const struct gpc_event *event)
	GP_LOCKED(gpc_graphs_lock);
/* Called when the event is recorded outside of captures, or destroyed. */
void gpc_capture_drop_event(const struct gpc_event *event) GP_LOCKED(gpc_graphs_lock);
/* Captures cuStreamWaitEvent(): makes the stream depend on the event, or lets it join the
 * capture. */
CUresult gpc_capture_wait(const struct gpc_stream *stream, const struct gpc_event *event)
	GP_LOCKED(gpc_graphs_lock);

/* Replaces the dependencies of the stream's next node, or adds to them. */
CUresult gpc_capture_set_last(struct gpc_captured_stream *captured, const struct gpc_nodes *nodes,
			      bool add) GP_LOCKED(gpc_graphs_lock);

/* Hook for struct gpc_context_part: ends captures that started in the context and invalidates those
 * that have streams in it. Called without the lock. */
void gpc_capture_drop_context(struct gpc_context *context);

/*
 * Checks whether an operation on a stream that is not captured is allowed. Returns
 * GPC_NOT_CAPTURED, or CUDA_ERROR_STREAM_CAPTURE_IMPLICIT for the legacy stream if a stream that it
 * waits for is being captured; that capture becomes invalid.
 */
CUresult gpc_capture_check_legacy(const struct gpc_stream *stream) GP_LOCKED(gpc_graphs_lock);
/* Called before the stream is destroyed: its work stays in the capture and must be joined. Returns
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if the capture started with it; the capture becomes
 * invalid. */
CUresult gpc_capture_destroy_stream(const struct gpc_stream *stream) GP_LOCKED(gpc_graphs_lock);
/* Called before the context is destroyed or synchronized. Returns
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if a stream of it is captured; the capture becomes
 * invalid. */
CUresult gpc_capture_check_context(CUcontext token) GP_LOCKED(gpc_graphs_lock);
/* Checks whether this thread may make a call that is unsafe during a capture. If not, invalidates
 * the captures that it would disturb and returns CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. */
CUresult gpc_capture_check_unsafe(void) GP_LOCKED(gpc_graphs_lock);

/* Checks for calls that the API description marks CAPTURE(refused) or CAPTURE(declined), of this
 * stream, CAPTURE(unsafe) or CAPTURE(default_stream). Any thread, without the lock. */
CUresult gpc_capture_refuse(CUstream hStream);
CUresult gpc_capture_decline(CUstream hStream);
CUresult gpc_capture_unsafe(void);
CUresult gpc_capture_default_stream(void);

#endif /* GPC_CAPTURE_H */
