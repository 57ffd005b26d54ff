/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream capture: turns work that the application issues to a captured stream into nodes of a graph
 * (cuStreamBeginCapture).
 *
 * A capture starts with one stream (its origin). Other streams join it by waiting for an event that
 * was recorded in it, and leave it when it ends. An event that is recorded in a capture represents
 * the nodes before the record. While gpc_captures is not 0, each call with a CAPTURE word in
 * codegen/api/, except CAPTURE(unaffected), first calls a gpc_capture_*() function, for example
 * gpc_capture_cuLaunchKernel() (capture_calls.c).
 *
 * Ownership: the lists in capture.c own captures and captured streams. A capture is freed when it
 * ends or the context of its origin is destroyed; a captured stream also when its own context is
 * destroyed. Returned pointers to them are valid while the lock is held.
 * Threads: any. Functions with GP_LOCKED(gpc_graphs_lock) are called with that lock held, the
 * others without it.
 * Errors: functions that return a CUresult return CUDA_SUCCESS,
 * CUDA_ERROR_STREAM_CAPTURE_INVALIDATED if the capture is invalid, CUDA_ERROR_OUT_OF_MEMORY, or the
 * errors stated with the function. GPC_NOT_CAPTURED means that the caller executes the call
 * normally.
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
 * captured. Changed under the lock by __atomic_add_fetch() and __atomic_sub_fetch(), read by
 * __atomic_load_n(), acquire, by any thread without the lock. */
extern unsigned int gpc_captures;

/* A capture in progress. */
struct gpc_capture {
	struct gpc_capture *next; /* utlist of all captures */
	/* ID that cuStreamGetCaptureInfo() returns, unique in the process */
	uint64_t id;
	/* receives the nodes; owned if `own` is set */
	struct gpc_graph *graph;
	bool own; /* the graph was created for the capture, and is destroyed if the capture fails */
	/* set by an error; gpc_capture_end() then returns CUDA_ERROR_STREAM_CAPTURE_INVALIDATED */
	bool invalid;
	CUstreamCaptureMode mode;
	/* thread that started the capture, as gpc_capture_thread() identifies it */
	const void *thread;
	const struct gpc_stream *origin; /* stream with which the capture started, borrowed */
};

/* A set of nodes: an array of `count` pointers, which the owner of the struct frees with free(). */
struct gpc_nodes {
	struct gpc_node **list;
	size_t count;
};

/* A stream that is part of a capture. */
struct gpc_captured_stream {
	struct gpc_captured_stream *next; /* utlist of all captured streams */
	const struct gpc_stream
		*stream; /* NULL: the stream was destroyed, and its work must still be joined */
	/* gpc_stream.number: a later stream at the same address has another */
	uint64_t number;
	struct gpc_capture *capture;
	/* dependencies of the stream's next node; owned */
	struct gpc_nodes last;
	/* array of the tokens of the nodes in `last`, returned to the application; owned; NULL: not
	 * requested yet */
	CUgraphNode *last_tokens;
	/* array of zeroed edge data, returned to the application; owned; NULL: not requested yet */
	CUgraphEdgeData *edges;
};

/* Returns an address that identifies the calling thread while it exists; it must not be
 * dereferenced. */
const void *gpc_capture_thread(void);
/* Capture mode of the calling thread: how captures restrict its unsafe calls
 * (cuThreadExchangeStreamCaptureMode, gpc_capture_check_unsafe()). */
extern __thread CUstreamCaptureMode gpc_capture_mode;

/* Returns the stream that hStream denotes in this thread, borrowed. Returns NULL if it is invalid
 * or CUDA is unusable; gpc_capture_*() then returns GPC_NOT_CAPTURED, and the call reports the
 * error. Called without the lock, because it may have to create the per-thread default stream or
 * the context in the daemon. */
struct gpc_stream *gpc_capture_get_stream(CUstream hStream);

/* Returns the state of a stream that is part of a capture, or NULL if it is not. */
struct gpc_captured_stream *gpc_capture_find(const struct gpc_stream *stream)
	GP_LOCKED(gpc_graphs_lock);
/* Returns the capture in which the event was last recorded, and sets *nodes_p to the nodes that the
 * event represents; both are valid while the lock is held. Returns NULL, with *nodes_p unchanged,
 * if the last record was not captured. */
struct gpc_capture *gpc_capture_find_event(const struct gpc_event *event,
					   const struct gpc_nodes **nodes_p)
	GP_LOCKED(gpc_graphs_lock);

/* Starts a capture of the stream; gpc_capture_end() ends it. graph: receives the nodes, and stays
 * the caller's; NULL: the capture creates a graph. Returns CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
 * for the legacy stream, and CUDA_ERROR_ILLEGAL_STATE if the stream or the graph is already being
 * captured. */
CUresult gpc_capture_begin(const struct gpc_stream *stream, CUstreamCaptureMode mode,
			   struct gpc_graph *graph) GP_LOCKED(gpc_graphs_lock);
/*
 * Ends the capture that started with the stream. On success *graph_p is its graph; one that the
 * capture created now belongs to the application. On failure *graph_p is NULL.
 * The capture continues after these errors: CUDA_ERROR_ILLEGAL_STATE (the stream is not captured),
 * CUDA_ERROR_STREAM_CAPTURE_UNMATCHED (the stream is not the origin; the capture becomes invalid),
 * and CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD.
 * After all other errors the capture has ended, and a graph that it created is destroyed:
 * CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, CUDA_ERROR_STREAM_CAPTURE_UNJOINED (the origin does not
 * depend on all work of the other streams), CUDA_ERROR_INVALID_VALUE (the graph has a cycle), or
 * CUDA_ERROR_OUT_OF_MEMORY.
 */
CUresult gpc_capture_end(const struct gpc_stream *stream, struct gpc_graph **graph_p)
	GP_LOCKED(gpc_graphs_lock);

/* Adds a node that depends on the previous work of the stream. Takes ownership of the data that
 * *params points to, also on failure. Returns an error of gpc_graph_add() (graph.h), too. After
 * CUDA_ERROR_OUT_OF_MEMORY the node may be in the graph, without being a dependency of the stream's
 * next node. */
CUresult gpc_capture_add(struct gpc_captured_stream *captured, struct gpc_node_params *params)
	GP_LOCKED(gpc_graphs_lock);

/* Captures cuMemFreeAsync() as a free node. Returns GPC_NOT_CAPTURED if the stream is not being
 * captured; CUDA_ERROR_INVALID_VALUE if the memory was not allocated by a graph node, or another
 * node frees it; or an error of gpc_capture_add() or gpc_capture_check_legacy(). Called without the
 * lock. */
CUresult gpc_capture_add_free(CUdeviceptr address, CUstream hStream);

/* Captures cuEventRecord(): the event now represents the previous nodes of the stream. After
 * CUDA_ERROR_OUT_OF_MEMORY it represents no nodes. */
CUresult gpc_capture_record(struct gpc_captured_stream *captured, const struct gpc_event *event)
	GP_LOCKED(gpc_graphs_lock);
/* Drops the nodes that the event represents, if there are any. Called when the event is recorded
 * outside of captures, or destroyed. */
void gpc_capture_drop_event(const struct gpc_event *event) GP_LOCKED(gpc_graphs_lock);
/*
 * Captures cuStreamWaitEvent(): makes the stream depend on the event's nodes; a stream that is not
 * captured joins the event's capture. If neither the stream is captured nor the event represents
 * nodes, returns the result of gpc_capture_check_legacy(), usually GPC_NOT_CAPTURED.
 * After these errors the captures of stream and event become invalid:
 * CUDA_ERROR_STREAM_CAPTURE_ISOLATION (the stream is captured, but the event represents no nodes),
 * CUDA_ERROR_STREAM_CAPTURE_MERGE (they are of different captures), and
 * CUDA_ERROR_STREAM_CAPTURE_IMPLICIT (the legacy stream cannot join).
 */
CUresult gpc_capture_wait(const struct gpc_stream *stream, const struct gpc_event *event)
	GP_LOCKED(gpc_graphs_lock);

/* Replaces the dependencies of the stream's next node by a copy of *nodes, which are nodes of the
 * capture's graph; add: adds them instead. Does not check whether the capture is valid. On failure
 * (CUDA_ERROR_OUT_OF_MEMORY) the dependencies are unchanged. */
CUresult gpc_capture_set_last(struct gpc_captured_stream *captured, const struct gpc_nodes *nodes,
			      bool add) GP_LOCKED(gpc_graphs_lock);

/* Callback leave() of struct gpc_context_part (client/context/context.h), called when a context is
 * destroyed. Ends the captures that started in the context, and destroys the graphs that they
 * created. Captures that other streams of the context have joined become invalid. Called without
 * the lock; runs queued destructors of user objects. */
void gpc_capture_drop_context(struct gpc_context *context);

/* Checks whether an operation on a stream that is not captured is allowed. Returns GPC_NOT_CAPTURED
 * if it is. Returns CUDA_ERROR_STREAM_CAPTURE_IMPLICIT if the stream is the legacy stream and a
 * stream that it synchronizes with is being captured; all captures of such streams become
 * invalid. */
CUresult gpc_capture_check_legacy(const struct gpc_stream *stream) GP_LOCKED(gpc_graphs_lock);
/* Called before a stream is destroyed. Returns GPC_NOT_CAPTURED if it may be destroyed; work of it
 * that was captured stays in the capture and must still be joined. Returns
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if a capture started with the stream; that capture becomes
 * invalid. For the legacy stream, returns the result of gpc_capture_check_legacy(). */
CUresult gpc_capture_destroy_stream(const struct gpc_stream *stream) GP_LOCKED(gpc_graphs_lock);
/* Called before a context is destroyed or synchronized. Returns GPC_NOT_CAPTURED if no stream of
 * the context, or of its green contexts, is captured. Otherwise their captures become invalid, and
 * the result is CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. */
CUresult gpc_capture_check_context(CUcontext token) GP_LOCKED(gpc_graphs_lock);
/* Checks whether this thread may make a call that is unsafe during a capture, such as an
 * allocation. Returns GPC_NOT_CAPTURED if so. Otherwise the captures that forbid it, by their mode
 * and that of the thread, become invalid, and the result is
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. */
CUresult gpc_capture_check_unsafe(void) GP_LOCKED(gpc_graphs_lock);

/* Checks a call with the word CAPTURE(refused) in codegen/api/. Returns GPC_NOT_CAPTURED if the
 * call may be executed. It is also returned if hStream is invalid or CUDA is unusable, which the
 * call then reports itself. Otherwise the capture becomes invalid. The result is then
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if the stream is captured, or the error of
 * gpc_capture_check_legacy(). Called by any thread without the lock. */
CUresult gpc_capture_refuse(CUstream hStream);
/* Checks a call with the word CAPTURE(declined). Like gpc_capture_refuse(), but the capture stays
 * valid, and the legacy stream is not checked. Returns GPC_NOT_CAPTURED unless the stream itself is
 * captured; then CUDA_ERROR_STREAM_CAPTURE_INVALIDATED if the capture is invalid, or
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. */
CUresult gpc_capture_decline(CUstream hStream);
/* Checks a call with the word CAPTURE(unsafe): acquires the lock and calls
 * gpc_capture_check_unsafe(). Returns GPC_NOT_CAPTURED also if CUDA is unusable. */
CUresult gpc_capture_unsafe(void);
/* Checks a call with the word CAPTURE(default_stream), which is unsafe and uses the default stream:
 * combines gpc_capture_refuse(NULL) and gpc_capture_unsafe(). */
CUresult gpc_capture_default_stream(void);

#endif /* GPC_CAPTURE_H */
