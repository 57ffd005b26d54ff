/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned host memory that copies go through: slots of a pool of the worker, handed to sessions.
 *
 * A piece is memory inside a slot: small ones share slots, large ones have their own.  A small copy
 * to the device needs no marker of its own, because its slot is given back when it is full and all
 * work given until then is done; every other piece goes back with gpd_staging_release().  Slots are
 * counted and never freed.  A session
 * holds at most its share, and waits for its own earlier copies when it has that.
 */
#ifndef GPD_STAGING_H
#define GPD_STAGING_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPD_STAGING_SLOT ((size_t)1 << 20)
/* What a session may hold, in slots: in all, and of them for copies from the device, whose pieces
 * come back only when the client has read them. */
#define GPD_STAGING_SHARE 64
#define GPD_STAGING_SHARE_OUT 48
/* So many it gets also when other sessions hold the whole pool. */
#define GPD_STAGING_SHARE_MIN 4
/* What the others leave to copies that are under way. */
#define GPD_STAGING_RESERVE 8
/* Of listed copies, besides the share. */
#define GPD_STAGING_LISTED 64
/* Pieces up to this size share slots. */
#define GPD_STAGING_SMALL ((size_t)128 << 10)

struct gpd_session;
struct gpd_slot;

struct gpd_piece {
	void *memory;
	struct gpd_slot *slot; /* NULL: nothing to give back */
};

/* Of the worker: allocates the first slots, and says how much there may be (0: the default). */
CUresult gpd_staging_start(size_t limit);

/* Sets session->copies->staging.  0 or -ENOMEM. */
int gpd_staging_create(struct gpd_session *session);
/* When no work of the session is left and its wait queue is empty. */
void gpd_staging_destroy(struct gpd_session *session);

/* Executor only: memory for size (at most GPD_STAGING_SLOT) bytes to the device.  A small piece has
 * no slot to give back; its use is given to a stream before the executor's next call of these
 * functions.  May wait for earlier copies. */
CUresult gpd_staging_acquire_in(struct gpd_session *session, size_t size, struct gpd_piece *piece);

/* Executor only: memory for so many bytes from the device.  CUDA_ERROR_NOT_READY: there is none
 * now; gpd_staging_wait() waits until it is worth another try. */
CUresult gpd_staging_acquire_out(struct gpd_session *session, size_t size, struct gpd_piece *piece);
void gpd_staging_wait(struct gpd_session *session);

/*
 * Any thread: a slot for what a data lane brings, or CUDA_ERROR_NOT_READY, and gpd_staging_nap()
 * passes some time.  ahead: it comes before the executor wants it; gpd_staging_end_ahead() says
 * that it is wanted now.  early: it still is so, and must not take what the session is promised, or
 * what copies that are under way need.
 */
CUresult gpd_staging_acquire_lane(struct gpd_session *session, bool ahead, bool early,
				  struct gpd_piece *piece);
void gpd_staging_end_ahead(struct gpd_session *session);
void gpd_staging_nap(void);
/* Executor: whether a copy to the device of this size, one record's, need not wait for a slot of
 * the session's share.  size 0: a record of any size. */
bool gpd_staging_has_room(const struct gpd_session *session, uint64_t size);
/* Any thread: what somebody may be napping for has come. */
void gpd_staging_wake(void);

/*
 * Executor, before the piece is given to a stream: until it is put back its bytes are those at this
 * offset of the listed copy (listed.h).  Its slot does not count as part of the session's share, as
 * what keeps the GPU from it may be what a later record of the client ends.
 */
CUresult gpd_staging_list(struct gpd_session *session, const struct gpd_piece *piece,
			  uint32_t number, uint64_t offset, size_t size);
/* Executor: overwrites what is left of these bytes of the listed copy. */
void gpd_staging_replace(struct gpd_session *session, uint32_t number, uint64_t offset,
			 const void *bytes, size_t size);

/* Any thread.  Neither the GPU nor anybody else uses it any more. */
void gpd_staging_release(struct gpd_session *session, struct gpd_piece *piece);
/* The same for a wait's end (wait.h). */
void gpd_staging_done(struct gpd_session *session, void *slot, CUresult result);

#endif /* GPD_STAGING_H */
