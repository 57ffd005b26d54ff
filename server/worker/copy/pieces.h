/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and fills, cut where the session's host memory is registered by pieces
 * (memory/host_memory.h): the driver refuses one that goes from a piece to the next.  What touches
 * no such memory is one part.  Executor only.
 */
#ifndef GPD_PIECES_H
#define GPD_PIECES_H

#include <cuda.h>

struct gp_args_gpFill;
struct gpd_session;

typedef CUresult gpd_copy_piece(void *arg, const CUDA_MEMCPY3D *copy);
typedef CUresult gpd_fill_piece(void *arg, const struct gp_args_gpFill *fill);

/* Calls it with each part until one fails, whose result it returns.  The session may touch all of
 * it.  Memory has no offsets, only addresses. */
CUresult gpd_pieces_of_copy(struct gpd_session *session, const CUDA_MEMCPY3D *copy,
			    gpd_copy_piece *call, void *arg);

/* The same for a fill, of one row or of several. */
CUresult gpd_pieces_of_fill(struct gpd_session *session, const struct gp_args_gpFill *fill,
			    gpd_fill_piece *call, void *arg);

#endif /* GPD_PIECES_H */
