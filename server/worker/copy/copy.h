/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between the client and the device, split into parts (copy_part.h) that fit into staging
 * memory (staging.h).
 *
 * A copy to the host may not fit into the session's staging memory at once. The executor then
 * continues with other calls and enqueues the remaining parts as staging becomes free. Records
 * (calls of the client) that must follow such a copy wait in the deferred queue
 * (stream_ops/deferred_gate.h) until all its parts are enqueued.
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
 * Threads: the executor only, except staging and lanes, which have locks of their own, and
 * gpudirect_out, which the responder changes.
 */
struct gpd_copy_session {
	struct gpd_staging *staging; /* pinned memory (staging.h); owned */
	struct gpd_lanes *lanes;     /* data lanes (lane.h); owned */
	/* Copies to the client that have parts left, oldest first; a utlist. */
	struct gpd_copy_out *out;
	bool added; /* set when a copy is added to `out`; cleared by stream_ops/deferred_gate.c */
	/* Bytes copied by GPUDirect (gpudirect.h), for the log. */
	_Atomic uint64_t gpudirect_in, gpudirect_out;
};

/* Checks the current record: its bulk (the bytes after its fields) must have exactly the size of a
 * box of these dimensions, which may be 0, and the flags (GP_COPY_*, protocol/frame.h) must be
 * valid. Returns true, after counting the copy in the session's account; or false, after ending the
 * session for a protocol violation. */
bool gpd_copy_in_is_sound(struct gpd_session *session, uint64_t width, uint64_t height,
			  uint64_t depth, uint32_t flags);
/* Checks that the session has data lanes, and the size and flags of a copy whose bytes arrive on
 * them. Returns true, without counting the copy; or false, after ending the session for a protocol
 * violation. */
bool gpd_copy_lanes_is_sound(struct gpd_session *session, const struct gp_args_gpCopyInLanes *args);
/* Receives the current record's bulk and enqueues its copy to the memory or array that the cut
 * describes. The record must have passed gpd_copy_in_is_sound(), and the cut is fresh from
 * gpd_cut_init() or gpd_cut_init_box() (copy_part.h). id: of the stream, unchecked. flags:
 * GP_COPY_* of the record. Blocks as gpd_stream_begin() (stream/stream.h) does, until the bulk has
 * arrived, and while the session's staging memory is used up. Afterwards, also on success, the
 * caller calls gpd_copy_in_finish().
 * CUDA_ERROR_INVALID_HANDLE: there is no such stream.
 * CUDA_ERROR_OPERATING_SYSTEM: the connection has failed; the next record ends the session.
 * Others: an error of gpd_staging_acquire_in() or gpd_staging_list() (staging.h), or of the driver.
 * A part of the copy may then be enqueued. */
CUresult gpd_copy_in(struct gpd_session *session, uint32_t id, struct gpd_cut *cut, uint32_t flags);
/* Called after gpd_copy_in() with its result, or instead of it if there is no valid destination. If
 * result is an error, blocks until the rest of the bulk is received, and discards it. Returns
 * result. */
CUresult gpd_copy_in_finish(struct gpd_session *session, CUresult result);
/* Starts a copy of the `total` bytes (not 0) that the cut describes to the client, as the reply to
 * the current call; reports errors in that reply. The cut is fresh from gpd_cut_init() or
 * gpd_cut_init_box() (copy_part.h). id: of an existing stream. Returns GPD_LATER, which means that
 * the reply is sent later; or CUDA_ERROR_OUT_OF_MEMORY, and the caller replies. Blocks as
 * gpd_stream_begin() does, and if 1024 copies of the session have parts left. May change the
 * current device. */
CUresult gpd_copy_out(struct gpd_session *session, uint32_t id, const struct gpd_cut *cut,
		      uint64_t total);

/* Maximum time in milliseconds that the executor waits for the client before it calls
 * gpd_copy_continue() again. */
#define GPD_COPY_CONTINUE_MS 1

/* Enqueues as many remaining parts as staging memory allows, without waiting for more; starting a
 * copy may block briefly as gpd_stream_begin() does. Frees copies that are complete. May change the
 * current device. Returns whether any copy is left, including those by GPUDirect. */
bool gpd_copy_continue(struct gpd_session *session);

/* Called before a call is carried out, on behalf of calls that do not begin with
 * gpd_stream_begin(): blocks, as gpd_copy_await() does, until the copies to the client that must
 * precede the call are enqueued completely. Returns at once for the other calls, which wait in
 * gpd_stream_begin(). call: its number. fields: the call's arguments, of size bytes. */
void gpd_copy_wait_before_call(struct gpd_session *session, uint16_t call, const void *fields,
			       size_t size);

/* Calls use() with the stream of each copy that has parts left, until it returns nonzero. use()
 * must not start or continue copies. Returns that result, or 0. Copies by GPUDirect (gpudirect.h)
 * are left out, as they are not split into parts. */
int gpd_copy_for_each_unfinished(struct gpd_session *session,
				 int (*use)(struct gpd_session *session,
					    struct gpd_stream *stream));
/* Returns whether a copy of the stream has parts left; copies by GPUDirect do not count. */
bool gpd_copy_is_unfinished(const struct gpd_session *session, const struct gpd_stream *stream);

/* Blocks until all copies to the client that must precede new work of the stream are enqueued
 * completely, or the session is closing. stream NULL: all copies. Cancels copies by GPUDirect that
 * have not started, and waits for those that have. This may take as long as the client does not
 * read its data. May change the current device. */
void gpd_copy_await(struct gpd_session *session, const struct gpd_stream *stream);

/* Sets *params to the driver's parameters of a device copy, to be run now or as a graph node. args
 * may come from the client unchecked. Returns CUDA_SUCCESS; or CUDA_ERROR_INVALID_VALUE if the box
 * is empty or invalid (gpd_side_check(), copy_part.h) or the session may not access the memory, and
 * *params is unchanged. */
CUresult gpd_copy_device_box(struct gpd_session *session, const struct gp_args_gpCopyDevice *args,
			     CUDA_MEMCPY3D *params);

/* Enqueues a copy, as described by gpd_copy_device_box() or gpd_copy_params() (copy_part.h), on the
 * stream, after gpd_stream_begin(), which makes the stream's device current. Memory of another
 * device that the stream's device cannot access is copied by the driver between the devices.
 * Returns CUDA_SUCCESS or the driver's error; a part of the copy may then be enqueued. */
CUresult gpd_copy_enqueue(struct gpd_session *session, const struct gpd_stream *stream,
			  const CUDA_MEMCPY3D *copy);

/* Frees the unfinished copies at the session's end, without replies. Called after its wait queue is
 * gone, so that no part is in flight. */
void gpd_copy_destroy_all(struct gpd_session *session);

#endif /* GPD_COPY_H */
