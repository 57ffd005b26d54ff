/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned host memory for copies: a pool of slots that the worker lends to its sessions.
 *
 * A piece is memory inside a slot: small pieces share a slot, large pieces have a slot of their
 * own. A small piece for a copy to the device is not released by the caller: its slot is released
 * when the slot is full and all work enqueued until then is done. Every other piece is released
 * with gpd_staging_release(). Each session may use a limited share of the slots, and waits for its
 * own earlier copies when the share is used up.
 *
 * Ownership: a slot's reference count is the number of its pieces; without any, the slot returns to
 * the pool. Slots are never freed. The caller owns the struct gpd_piece.
 * Threads: as noted for each function. The acquire functions may make device 0 current, when the
 * pool grows.
 * Errors: CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NOT_READY if no slot is free now, the
 * session's sticky error, or an error of the driver. On failure *piece is zero, and nothing has to
 * be released.
 * Units: bytes, except where a count of slots is stated.
 */
#ifndef GPD_STAGING_H
#define GPD_STAGING_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Size of a slot. */
#define GPD_STAGING_SLOT ((size_t)1 << 20)
/* Maximum number of slots of a session in total. */
#define GPD_STAGING_SHARE 64
/* Maximum number of slots of a session for large copies from the device, whose pieces are released
 * only after the client has read them. */
#define GPD_STAGING_SHARE_OUT 48
/* Number of slots that a session gets even if other sessions use the whole pool. */
#define GPD_STAGING_SHARE_MIN 4
/* Number of slots of the share that chunks received ahead of their copy must leave free for copies
 * that have started. */
#define GPD_STAGING_RESERVE 8
/* Number of slots for listed copies (copy/listed_copy.h of the worker), in addition to the
 * share. */
#define GPD_STAGING_LISTED 64
/* Maximum size of pieces that share slots. */
#define GPD_STAGING_SMALL ((size_t)128 << 10)

struct gpd_session;
struct gpd_slot;

/* A piece of staging memory with its reference to the slot. Zero: no piece. */
struct gpd_piece {
	void *memory;
	struct gpd_slot *slot; /* slot to release; NULL: nothing to release */
};

/* Main thread, once, after the devices are open: allocates the worker's first slots, with device 0
 * made current. limit: maximum size of the pool; 0: the default. Returns CUDA_SUCCESS or the error
 * of the allocation; slots allocated before remain in the pool. */
CUresult gpd_staging_start(size_t limit);

/* Main thread: creates session->copies->staging, without a slot. Returns 0 or -ENOMEM. */
int gpd_staging_create(struct gpd_session *session);
/* Frees session->copies->staging and returns its slots to the pool; does nothing if it is NULL.
 * Called by the thread that closes or discards the session, when the session has no work left and
 * its wait queue is empty. */
void gpd_staging_destroy(struct gpd_session *session);

/* Executor only: gets memory for a copy of size bytes (at most GPD_STAGING_SLOT) to the device;
 * blocks on earlier copies while the share or the pool is used up, until the session is closing
 * (CUDA_ERROR_DEINITIALIZED). A small piece has no slot to release; its copy must be enqueued
 * before the executor calls this function again. Does not return CUDA_ERROR_NOT_READY. */
CUresult gpd_staging_acquire_in(struct gpd_session *session, size_t size, struct gpd_piece *piece);

/* Executor only: gets memory for a copy of size bytes (at most GPD_STAGING_SLOT) from the device,
 * without waiting. CUDA_ERROR_NOT_READY: none is free now; the caller calls gpd_staging_wait()
 * before another attempt. */
CUresult gpd_staging_acquire_out(struct gpd_session *session, size_t size, struct gpd_piece *piece);
/* Executor only: blocks for at most 1 ms, until a pending wait of the session has completed
 * (gpd_wait_any(), stream/responder.h); if there is none, until another session releases a slot,
 * as gpd_staging_nap() does. The caller tries again afterwards. */
void gpd_staging_wait(struct gpd_session *session);

/*
 * Any thread: gets a slot for a chunk of a data lane, without waiting. CUDA_ERROR_NOT_READY: none
 * is free now; the caller calls gpd_staging_nap() before another attempt. ahead: the chunk began to
 * arrive before the executor had reached its copy; gpd_staging_end_ahead() is called when the
 * executor consumes the chunk. early: the executor has still not reached the copy at this attempt,
 * so the slot is taken neither from the session's guaranteed slots nor from the reserve of copies
 * that have started. early implies ahead. Does not return the session's sticky error.
 */
CUresult gpd_staging_acquire_lane(struct gpd_session *session, bool ahead, bool early,
				  struct gpd_piece *piece);
/* Any thread: ends the count of one chunk that was acquired with `ahead`. */
void gpd_staging_end_ahead(struct gpd_session *session);
/* Any thread: waits until a slot is released, gpd_staging_wake() is called, or 1 ms has passed. */
void gpd_staging_nap(void);
/* Executor only: returns whether a record's copy to the device of this size can start without
 * waiting for slots of the session's share. size 0: a record of unknown size. */
bool gpd_staging_has_room(const struct gpd_session *session, uint64_t size);
/* Any thread: wakes the threads in gpd_staging_nap(). */
void gpd_staging_wake(void);

/*
 * Executor only, once, after acquiring the piece and before enqueuing its copy: lists the piece,
 * which contains the size bytes at this offset of the listed copy `number` (copy/listed_copy.h of
 * the worker), until its slot is released. While fewer than GPD_STAGING_LISTED such slots exist,
 * the slot does not count towards the session's share, because a later record of the client may be
 * needed before the GPU can reach the copy. Returns CUDA_SUCCESS; or CUDA_ERROR_OUT_OF_MEMORY, and
 * the piece is not listed.
 */
CUresult gpd_staging_list(struct gpd_session *session, const struct gpd_piece *piece,
			  uint32_t number, uint64_t offset, size_t size);
/* Executor only: copies `size` bytes to this offset of the listed copy `number`. Parts of the copy
 * whose piece is already released are skipped. `bytes` may be freed on return. */
void gpd_staging_replace(struct gpd_session *session, uint32_t number, uint64_t offset,
			 const void *bytes, size_t size);

/* Any thread: releases the piece, which neither the GPU nor another thread may use any more, and
 * sets piece->slot to NULL. Does nothing if it is NULL. */
void gpd_staging_release(struct gpd_session *session, struct gpd_piece *piece);
/* Releases a piece with this slot (piece.slot, not NULL). A gpd_wait_done (stream/responder.h),
 * which the responder calls when the piece's copy is done; result is ignored. */
void gpd_staging_done(struct gpd_session *session, void *slot, CUresult result);

#endif /* GPD_STAGING_H */
