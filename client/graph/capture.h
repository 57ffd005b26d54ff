/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream capture: turns work that the application issues to a captured stream into nodes of a graph
 * (cuStreamBeginCapture).
 *
 * A capture starts with one stream (its origin). Other streams join it by waiting for an event that
 * was recorded in it, and leave when it ends. While any capture exists, calls that the API
 * description marks CAPTURE first call the gpc_capture_*() functions.
 *
 * Ownership: captures and captured streams are owned by the list of captures, and are freed when
 * the capture ends or the origin's context is destroyed. Returned pointers to them are valid while
 * the lock is held.
 * Threads: any. Functions with GP_LOCKED(gpc_graphs_lock) are called with that lock held, the
 * others without it.
 * Errors: functions that return a CUresult return CUDA_SUCCESS,
 * CUDA_ERROR_STREAM_CAPTURE_INVALIDATED if the capture is invalid, CUDA_ERROR_OUT_OF_MEMORY, or the
 * errors of the CUDA function. GPC_NOT_CAPTURED means that the caller executes the call normally.
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

/* Number of captures and of graph memory allocations (graph_memory.h); 0: no call needs to be
 * captured. Read atomically by any thread without the lock. */
extern unsigned int gpc_captures;

/* A capture in progress. */
struct gpc_capture {
	struct gpc_capture *next; /* utlist of all captures */
	/* ID for cuStreamGetCaptureInfo(), unique in the process */
	uint64_t id;
	struct gpc_graph *graph;
	bool own; /* the graph was created for the capture, and is destroyed if the capture fails */
	/* set by an error; the capture then ends with CUDA_ERROR_STREAM_CAPTURE_INVALIDATED */
	bool invalid;
	CUstreamCaptureMode mode;
	const void *thread; /* identity of the thread that started it, from gpc_capture_thread() */
	const struct gpc_stream *origin;
};

/* A set of nodes; the owner of the struct frees the list. */
struct gpc_nodes {
	struct gpc_node **list;
	size_t count;
};

/* A stream that is part of a capture. */
struct gpc_captured_stream {
	struct gpc_captured_stream *next; /* utlist of all captured streams */
	const struct gpc_stream
		*stream; /* NULL: the stream was destroyed, and its work must still be joined */
	uint64_t number; /* number of the stream, which differs from that of a later stream at the
			    same address */
	struct gpc_capture *capture;
	struct gpc_nodes last;    /* dependencies of the stream's next node */
	CUgraphNode *last_tokens; /* tokens of the nodes in `last`, passed to the application; NULL:
				     not requested yet */
	CUgraphEdgeData
		*edges; /* zeroed edge data, passed to the application; NULL: not requested yet */
};

/* Returns an address that identifies the calling thread; it must not be dereferenced. */
const void *gpc_capture_thread(void);
/* How captures of other threads restrict the calling thread (cuThreadExchangeStreamCaptureMode). */
extern __thread CUstreamCaptureMode gpc_capture_mode;

/* Returns the stream that hStream denotes in this thread. Returns NULL if it is invalid; the
 * captured call then reports the error itself. Called without the lock, as the stream may have to
 * be created in the daemon. */
struct gpc_stream *gpc_capture_get_stream(CUstream hStream);

/* Returns the state of a stream that is being captured, or NULL if it is not. */
struct gpc_captured_stream *gpc_capture_find(const struct gpc_stream *stream)
	GP_LOCKED(gpc_graphs_lock);
/* Returns the capture in which the event was recorded last, and sets *nodes_p to the nodes that the
 * event represents; both are valid while the lock is held. Returns NULL, with *nodes_p unchanged,
 * if the event was not recorded in a capture. */
struct gpc_capture *gpc_capture_find_event(const struct gpc_event *event,
					   const struct gpc_nodes **nodes_p)
	GP_LOCKED(gpc_graphs_lock);

/* Starts a capture of the stream into the graph, which stays the caller's, or into a new one if
 * graph is NULL. Returns CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED for the legacy stream, and
 * CUDA_ERROR_ILLEGAL_STATE if the stream or the graph is already being captured. */
CUresult gpc_capture_begin(const struct gpc_stream *stream, CUstreamCaptureMode mode,
			   struct gpc_graph *graph) GP_LOCKED(gpc_graphs_lock);
/* Ends the capture that started with the stream. On success *graph_p is the graph, which the caller
 * owns if the capture created it. On failure *graph_p is NULL, and a graph that the capture created
 * is destroyed. The capture continues after CUDA_ERROR_ILLEGAL_STATE (the stream is not captured),
 * CUDA_ERROR_STREAM_CAPTURE_UNMATCHED (it is not the origin; the capture becomes invalid) and
 * CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD. */
CUresult gpc_capture_end(const struct gpc_stream *stream, struct gpc_graph **graph_p)
	GP_LOCKED(gpc_graphs_lock);

/* Adds a node that depends on the previous work of the stream. Takes ownership of the data that
 * *params points to; on failure it is freed. */
CUresult gpc_capture_add(struct gpc_captured_stream *captured, struct gpc_node_params *params)
	GP_LOCKED(gpc_graphs_lock);

/* Captures a free of memory that a graph allocated as a node. Returns GPC_NOT_CAPTURED if the
 * stream is not being captured, and CUDA_ERROR_INVALID_VALUE if the memory is not a graph's or
 * another node frees it. Called without the lock. */
CUresult gpc_capture_add_free(CUdeviceptr address, CUstream hStream);

/* Captures cuEventRecord(): after this the event represents the previous nodes of the stream. */
CUresult gpc_capture_record(struct gpc_captured_stream *captured, const struct gpc_event *event)
	GP_LOCKED(gpc_graphs_lock);
/* Drops the nodes that the event represents, if there are any. Called when the event is recorded
 * outside of captures, or destroyed. */
void gpc_capture_drop_event(const struct gpc_event *event) GP_LOCKED(gpc_graphs_lock);
/* Captures cuStreamWaitEvent(): makes the stream depend on the event's nodes, or lets the stream
 * join the event's capture. Returns GPC_NOT_CAPTURED if neither the stream is captured nor the
 * event was recorded in a capture. On CUDA_ERROR_STREAM_CAPTURE_ISOLATION, _MERGE and _IMPLICIT the
 * captures involved become invalid. */
CUresult gpc_capture_wait(const struct gpc_stream *stream, const struct gpc_event *event)
	GP_LOCKED(gpc_graphs_lock);

/* Replaces the dependencies of the stream's next node by copies of *nodes, or adds to them if add
 * is true. On failure they are unchanged. */
CUresult gpc_capture_set_last(struct gpc_captured_stream *captured, const struct gpc_nodes *nodes,
			      bool add) GP_LOCKED(gpc_graphs_lock);

/* Hook for struct gpc_context_part, called when a context is destroyed: ends captures that started
 * in the context, and destroys the graphs that they created; invalidates captures that other
 * streams of the context have joined. Called without the lock. */
void gpc_capture_drop_context(struct gpc_context *context);

/*
 * Checks whether an operation on a stream that is not captured is allowed. Returns GPC_NOT_CAPTURED
 * if it is. Returns CUDA_ERROR_STREAM_CAPTURE_IMPLICIT if the stream is the legacy stream, and a
 * stream that it synchronizes with is being captured; that capture becomes invalid.
 */
CUresult gpc_capture_check_legacy(const struct gpc_stream *stream) GP_LOCKED(gpc_graphs_lock);
/* Called before a stream is destroyed. Returns GPC_NOT_CAPTURED if the stream may be destroyed: its
 * captured work stays in the capture and must be joined. Returns
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, and invalidates the capture, if the capture started with
 * the stream. */
CUresult gpc_capture_destroy_stream(const struct gpc_stream *stream) GP_LOCKED(gpc_graphs_lock);
/* Called before a context is destroyed or synchronized. Returns GPC_NOT_CAPTURED, or
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if a stream of the context is captured; that capture
 * becomes invalid. */
CUresult gpc_capture_check_context(CUcontext token) GP_LOCKED(gpc_graphs_lock);
/* Checks whether this thread may make a call that is unsafe during a capture. Returns
 * GPC_NOT_CAPTURED if so. Otherwise invalidates the captures that the call would disturb, and
 * returns CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. */
CUresult gpc_capture_check_unsafe(void) GP_LOCKED(gpc_graphs_lock);

/* Checks a call that the API description marks CAPTURE(refused). Returns GPC_NOT_CAPTURED if the
 * call may be executed, also if CUDA is unusable, which the call reports itself. Otherwise
 * invalidates the capture and returns the error, usually CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED.
 * Called by any thread without the lock. */
CUresult gpc_capture_refuse(CUstream hStream);
/* Checks a call that the API description marks CAPTURE(declined), as gpc_capture_refuse() does, but
 * does not invalidate the capture. */
CUresult gpc_capture_decline(CUstream hStream);
/* Checks a call that the API description marks CAPTURE(unsafe), as gpc_capture_refuse() does. */
CUresult gpc_capture_unsafe(void);
/* Checks a call that the API description marks CAPTURE(default_stream), as gpc_capture_refuse()
 * does. */
CUresult gpc_capture_default_stream(void);

#endif /* GPC_CAPTURE_H */
