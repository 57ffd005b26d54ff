/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams that are being captured: what the application gives to one becomes a node of a graph.
 *
 * A capture begins with one stream.  Others come into it by waiting for an event that was recorded
 * in it, and are out of it when it ends.  While there is any, calls that the description marks
 * CAPTURE pass through this room first.
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

/* What gpc_capture_<name>() answers where the call is to be carried out. */
#define GPC_NOT_CAPTURED ((CUresult)0x7fff0001)

/* How many captures there are, and memories of graphs; any thread reads it. */
extern unsigned int gpc_captures;

struct gpc_capture {
	struct gpc_capture *next; /* utlist: all that there are */
	uint64_t id;
	struct gpc_graph *graph;
	bool own; /* the graph was made for it */
	bool invalid;
	CUstreamCaptureMode mode;
	const void *thread; /* that began it: gpc_capture_thread() */
	const struct gpc_stream *origin;
};

struct gpc_nodes {
	struct gpc_node **list;
	size_t count;
};

struct gpc_captured_stream {
	struct gpc_captured_stream *next; /* utlist */
	const struct gpc_stream *stream;  /* NULL: it is destroyed */
	uint64_t number;                  /* the stream's: its memory may be another one's */
	struct gpc_capture *capture;
	struct gpc_nodes last;    /* what its next node will depend on */
	CUgraphNode *last_tokens; /* the same for the application; or NULL */
	CUgraphEdgeData *edges;   /* zeros */
};

/* The calling thread, and how it has captures of others treated. */
const void *gpc_capture_thread(void);
extern __thread CUstreamCaptureMode gpc_capture_mode;

/* What hStream means in this thread; NULL: the call itself says what is wrong with it.  Without the
 * lock: the daemon may have to learn of it. */
struct gpc_stream *gpc_capture_get_stream(CUstream hStream);

/* NULL: it is not being captured. */
struct gpc_captured_stream *gpc_capture_find(const struct gpc_stream *stream)
	GP_LOCKED(gpc_graphs_lock);
/* The capture in which the event was recorded last, and what it stands for; NULL: in none. */
struct gpc_capture *gpc_capture_find_event(const struct gpc_event *event,
					   const struct gpc_nodes **nodes_p)
	GP_LOCKED(gpc_graphs_lock);

CUresult gpc_capture_begin(const struct gpc_stream *stream, CUstreamCaptureMode mode,
			   struct gpc_graph *graph) GP_LOCKED(gpc_graphs_lock);
/* Ends the one that began with the stream; *graph_p is NULL unless it succeeds. */
CUresult gpc_capture_end(const struct gpc_stream *stream, struct gpc_graph **graph_p)
	GP_LOCKED(gpc_graphs_lock);

/* Adds a node behind what the stream has been given; takes the parameters over in any case. */
CUresult gpc_capture_add(struct gpc_captured_stream *captured, struct gpc_node_params *params)
	GP_LOCKED(gpc_graphs_lock);

/* A node of operations on words of memory; GPC_NOT_CAPTURED.  Without the lock. */
CUresult gpc_capture_mem_ops(CUstream hStream, const CUDA_BATCH_MEM_OP_NODE_PARAMS *given);

/* A node that frees memory of a graph; GPC_NOT_CAPTURED.  Without the lock. */
CUresult gpc_capture_add_free(CUdeviceptr address, CUstream hStream);

CUresult gpc_capture_record(struct gpc_captured_stream *captured, const struct gpc_event *event)
	GP_LOCKED(gpc_graphs_lock);
/* The event is recorded outside of captures, or gone. */
void gpc_capture_drop_event(const struct gpc_event *event) GP_LOCKED(gpc_graphs_lock);
/* Puts the stream behind the event, as cuStreamWaitEvent() does. */
CUresult gpc_capture_wait(const struct gpc_stream *stream, const struct gpc_event *event)
	GP_LOCKED(gpc_graphs_lock);

/* What the stream's next node will depend on. */
CUresult gpc_capture_set_last(struct gpc_captured_stream *captured, const struct gpc_nodes *nodes,
			      bool add) GP_LOCKED(gpc_graphs_lock);

/* For struct gpc_context_part: captures that began in the context end; those that have come into it
 * become invalid.  Without the lock. */
void gpc_capture_drop_context(struct gpc_context *context);

/*
 * Whether something may be done to a stream that is not captured.
 * CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: it is the legacy stream, and one that it waits for is being
 * captured; that capture is invalid now.
 */
CUresult gpc_capture_check_legacy(const struct gpc_stream *stream) GP_LOCKED(gpc_graphs_lock);
/* The stream is about to be destroyed: what it was given stays in the capture and has to be joined.
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: the capture began with it, and is invalid now. */
CUresult gpc_capture_destroy_stream(const struct gpc_stream *stream) GP_LOCKED(gpc_graphs_lock);
/* The same for a context: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if a stream of it is captured. */
CUresult gpc_capture_check_context(CUcontext token) GP_LOCKED(gpc_graphs_lock);
/* Whether this thread may do what would disturb a capture; else those that it would are invalid,
 * and CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED. */
CUresult gpc_capture_check_unsafe(void) GP_LOCKED(gpc_graphs_lock);

/* What the description marks CAPTURE(refused) and CAPTURE(declined), of this stream,
 * CAPTURE(unsafe), and CAPTURE(default_stream).  Any thread, without the lock. */
CUresult gpc_capture_refuse(CUstream hStream);
CUresult gpc_capture_decline(CUstream hStream);
CUresult gpc_capture_unsafe(void);
CUresult gpc_capture_default_stream(void);

#endif /* GPC_CAPTURE_H */
