/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned host memory that copies go through: slots of a pool of the worker, handed to sessions.
 *
 * A piece is memory inside a slot: small ones share slots, large ones have their own.  A small copy
 * to the device needs no marker of its own, because its slot is given back when it is full and all
 * work given until then is done; every other piece goes back with gpd_staging_put().  A session
 * holds at most its share, and waits for its own earlier copies when it has that.
 */
#ifndef GPD_STAGING_H
#define GPD_STAGING_H

#include <cuda.h>
#include <stddef.h>

#define GPD_STAGING_SLOT ((size_t)1 << 20)
/* What a session may hold, in slots. */
#define GPD_STAGING_SHARE 64
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

/* Sets session->staging.  0 or -ENOMEM. */
int gpd_staging_create(struct gpd_session *session);
/* When no work of the session is left and its wait queue is empty. */
void gpd_staging_destroy(struct gpd_session *session);

/* Executor only: memory for size (at most GPD_STAGING_SMALL) bytes to the device.  It is not given
 * back; its use is given to a stream before the executor's next call of these functions. */
CUresult gpd_staging_take_in(struct gpd_session *session, size_t size, struct gpd_piece *piece);

/* Executor only: memory for size (at most GPD_STAGING_SMALL) bytes from the device. */
CUresult gpd_staging_take_out(struct gpd_session *session, size_t size, struct gpd_piece *piece);

/* Executor only: a whole slot. */
CUresult gpd_staging_take(struct gpd_session *session, struct gpd_piece *piece);

/* Any thread.  Neither the GPU nor anybody else uses it any more. */
void gpd_staging_put(struct gpd_session *session, struct gpd_piece *piece);

#endif /* GPD_STAGING_H */
