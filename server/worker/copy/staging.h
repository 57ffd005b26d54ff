/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned host memory for copies: a pool of slots that the worker lends to its sessions.
 *
 * A piece is memory inside a slot: small pieces share a slot, large ones have a slot of their own.
 * A small copy to the device needs no marker of its own: its slot is released when it is full and
 * all work enqueued until then is done. Every other piece is released with gpd_staging_release().
 * Each session may have a limited share of the slots, and waits for its own earlier copies when it
 * has used it up.
 *
 * Ownership: slots are reference counted and return to the pool; they are never freed.
 * Threads: as noted for each function.
 * Errors: CUDA_ERROR_OUT_OF_MEMORY, or CUDA_ERROR_NOT_READY if no slot is free now.
 */
#ifndef GPD_STAGING_H
#define GPD_STAGING_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPD_STAGING_SLOT ((size_t)1 << 20)
/* Maximum share of a session in slots: in all, and for copies from the device, whose pieces are
 * released only after the client has read them. */
#define GPD_STAGING_SHARE 64
#define GPD_STAGING_SHARE_OUT 48
/* Slots that a session gets even if other sessions use the whole pool. */
#define GPD_STAGING_SHARE_MIN 4
/* Slots of the share that data lanes leave to copies that have started. */
#define GPD_STAGING_RESERVE 8
/* Slots of listed copies (listed_copy.h), in addition to the share. */
#define GPD_STAGING_LISTED 64
/* Pieces up to this size share slots. */
#define GPD_STAGING_SMALL ((size_t)128 << 10)

struct gpd_session;
struct gpd_slot;

/* A piece of staging memory and its reference to the slot. */
struct gpd_piece {
	void *memory;
	struct gpd_slot *slot; /* NULL: nothing to release */
};

/* Allocates the worker's first slots and sets the pool's limit in bytes (0: the default). */
CUresult gpd_staging_start(size_t limit);

/* Sets session->copies->staging.  0 or -ENOMEM. */
int gpd_staging_create(struct gpd_session *session);
/* To be called when the session has no work left and its wait queue is empty. */
void gpd_staging_destroy(struct gpd_session *session);

/* Executor only: gets memory for `size` bytes (at most GPD_STAGING_SLOT) to the device; may wait
 * for earlier copies. A small piece has no slot to release; its copy must be enqueued before the
 * executor calls any of these functions again. */
CUresult gpd_staging_acquire_in(struct gpd_session *session, size_t size, struct gpd_piece *piece);

/* Executor only: gets memory for `size` bytes from the device. CUDA_ERROR_NOT_READY: there is none
 * now; gpd_staging_wait() waits until another attempt is worthwhile. */
CUresult gpd_staging_acquire_out(struct gpd_session *session, size_t size, struct gpd_piece *piece);
void gpd_staging_wait(struct gpd_session *session);

/*
 * Any thread: gets a slot for a chunk of a data lane. CUDA_ERROR_NOT_READY: there is none now;
 * gpd_staging_nap() sleeps until one may be free. ahead: the chunk arrives before the executor has
 * reached its copy; gpd_staging_end_ahead() is called when the executor takes it. early: the
 * executor has still not reached it, so the slot must come neither from the session's guaranteed
 * slots nor from the reserve of copies that have started.
 */
CUresult gpd_staging_acquire_lane(struct gpd_session *session, bool ahead, bool early,
				  struct gpd_piece *piece);
void gpd_staging_end_ahead(struct gpd_session *session);
void gpd_staging_nap(void);
/* Executor: whether a record's copy to the device of this size can start without waiting for slots
 * of the session's share. size 0: a record of unknown size. */
bool gpd_staging_has_room(const struct gpd_session *session, uint64_t size);
/* Any thread: wakes the threads in gpd_staging_nap(). */
void gpd_staging_wake(void);

/*
 * Executor, before the piece is given to a stream: lists the piece as the bytes at this offset of a
 * listed copy (listed_copy.h), until it is released. While at most GPD_STAGING_LISTED such slots
 * exist, the slot does not count towards the session's share, because a later record of the client
 * may be needed before the GPU can reach the copy.
 */
CUresult gpd_staging_list(struct gpd_session *session, const struct gpd_piece *piece,
			  uint32_t number, uint64_t offset, size_t size);
/* Executor: overwrites those of the bytes that are still listed. */
void gpd_staging_replace(struct gpd_session *session, uint32_t number, uint64_t offset,
			 const void *bytes, size_t size);

/* Any thread. Releases the piece; neither the GPU nor another thread may use it any more. */
void gpd_staging_release(struct gpd_session *session, struct gpd_piece *piece);
/* The same, as the completion function of a wait (responder.h). */
void gpd_staging_done(struct gpd_session *session, void *slot, CUresult result);

#endif /* GPD_STAGING_H */
