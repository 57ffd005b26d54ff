/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between the client and the device, split into parts (copy_part.h) that fit into staging
 * memory (staging.h).
 *
 * A copy to the host may not fit into the session's staging memory at once. The executor then
 * continues with other calls and enqueues the remaining parts as staging becomes free. Records
 * (calls of the client) that must follow such a copy wait in the deferred queue (deferred_gate.h)
 * until all its parts are enqueued.
 *
 * Ownership: copies belong to the session, which must not be destroyed before
 * gpd_copy_destroy_all().
 * Threads: executor only.
 * Errors: a CUresult, CUDA_SUCCESS on success; a malformed record is a protocol violation that ends
 * the session.
 */
#ifndef GPD_COPY_H
#define GPD_COPY_H

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gp_args_gpCopyDevice;
struct gp_args_gpCopyInLanes;
struct gpd_copy_out;
struct gpd_cut;
struct gpd_lanes;
struct gpd_session;
struct gpd_staging;
struct gpd_stream;

/*
 * The part of a session's state that its copies use.
 * Threads: the executor only, except staging and lanes, which have locks of their own.
 */
struct gpd_copy_session {
	struct gpd_staging *staging; /* pinned memory (staging.h); owned */
	struct gpd_lanes *lanes;     /* data lanes (lane.h); owned */
	/* Copies to the client that have parts left, oldest first; a utlist. */
	struct gpd_copy_out *out;
	bool added; /* set when a copy is added to `out`; cleared by deferred_gate.h */
	/* Bytes copied by GPUDirect, without staging. */
	_Atomic uint64_t gpudirect_in, gpudirect_out;
};

/* Checks the current record: its bulk (the bytes after its fields) must have exactly the size of a
 * box of these dimensions, and the flags must be valid. Returns true, after counting the copy in
 * the session's account; or false, after ending the session for a protocol violation. */
bool gpd_copy_in_is_sound(struct gpd_session *session, uint64_t width, uint64_t height,
			  uint64_t depth, uint32_t flags);
/* Checks the size and flags of a copy whose bytes arrive on the data lanes. Returns true, without
 * counting the copy; or false, after ending the session for a protocol violation. */
bool gpd_copy_lanes_is_sound(struct gpd_session *session, const struct gp_args_gpCopyInLanes *args);
/* Receives the current record's bulk and enqueues its copy to the memory or array that the cut
 * describes. stream: ID of the stream. flags: GP_COPY_* of the record. Blocks until the bulk has
 * arrived and while staging memory is in use. On failure a rest of the bulk may be unread: call
 * gpd_copy_in_finish(). */
CUresult gpd_copy_in(struct gpd_session *session, uint32_t stream, struct gpd_cut *cut,
		     uint32_t flags);
/* Called after gpd_copy_in(), or instead of it if there is no destination: if result is an error,
 * receives and discards the rest of the bulk. Returns result. */
CUresult gpd_copy_in_finish(struct gpd_session *session, CUresult result);
/* Starts a copy of the `total` bytes that the cut describes to the client, as the reply to the
 * current call; reports errors in that reply. stream: ID of an existing stream. Returns GPD_LATER,
 * which means that the reply is sent later; or CUDA_ERROR_OUT_OF_MEMORY, and the caller replies.
 * Blocks if 1024 copies of the session have parts left. */
CUresult gpd_copy_out(struct gpd_session *session, uint32_t stream, const struct gpd_cut *cut,
		      uint64_t total);

/* Maximum time in milliseconds that the executor waits for the client before it calls
 * gpd_copy_continue() again. */
#define GPD_COPY_CONTINUE_MS 1

/* Enqueues as many remaining parts as staging memory allows, without waiting for more. Returns
 * whether any copy is left. */
bool gpd_copy_continue(struct gpd_session *session);

/* Called before a call is carried out: blocks, as gpd_copy_await() does, until the copies to the
 * client that must precede the call are enqueued completely. Calls that begin with
 * gpd_stream_begin() wait there instead. fields: the call's arguments, of size bytes. */
void gpd_copy_wait_before_call(struct gpd_session *session, uint16_t call, const void *fields,
			       size_t size);

/* Calls use() with the stream of each copy that has parts left, until it returns nonzero. Returns
 * that result, or 0. Copies by GPUDirect (gpudirect.h) are left out, as they are not split into
 * parts. */
int gpd_copy_for_each_unfinished(struct gpd_session *session,
				 int (*use)(struct gpd_session *session,
					    struct gpd_stream *stream));
/* Returns whether a copy of the stream has parts left; copies by GPUDirect do not count. */
bool gpd_copy_is_unfinished(const struct gpd_session *session, const struct gpd_stream *stream);

/* Blocks until all copies to the client that must precede new work of the stream are enqueued
 * completely, or the session is closing. stream NULL: all copies. This may take as long as the
 * client does not read its data. */
void gpd_copy_await(struct gpd_session *session, const struct gpd_stream *stream);

/* Sets *params to the driver's parameters of a device copy, to be run now or as a graph node.
 * Returns CUDA_SUCCESS; or CUDA_ERROR_INVALID_VALUE if the box is invalid or the memory does not
 * belong to the session, and *params is unchanged. */
CUresult gpd_copy_device_box(struct gpd_session *session, const struct gp_args_gpCopyDevice *args,
			     CUDA_MEMCPY3D *params);

/* Enqueues a copy, as described by gpd_copy_device_box() or gpd_copy_params(), on the stream, whose
 * device is current. Memory of another device that the stream's device cannot access is copied by
 * the driver between the devices. Returns CUDA_SUCCESS or the driver's error; a part of the copy
 * may then be enqueued. */
CUresult gpd_copy_enqueue(struct gpd_session *session, const struct gpd_stream *stream,
			  const CUDA_MEMCPY3D *copy);

/* Frees the unfinished copies at the session's end, without replies. Called after its wait queue is
 * gone, so that no part is in flight. */
void gpd_copy_destroy_all(struct gpd_session *session);

#endif /* GPD_COPY_H */
