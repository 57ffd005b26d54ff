/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits copies and fills at the borders of registered host memory. The session's host memory is
 * registered in pieces (memory/host_memory.h), and the driver rejects an operation that crosses
 * from one piece to the next. An operation that does not touch such memory is one part.
 *
 * Threads: executor only.
 * Errors: the result of the first call that fails.
 */
#ifndef GPD_PIECES_H
#define GPD_PIECES_H

#include <cuda.h>

struct gp_args_gpFill;
struct gpd_session;

typedef CUresult gpd_copy_piece(void *arg, const CUDA_MEMCPY3D *copy);
typedef CUresult gpd_fill_piece(void *arg, const struct gp_args_gpFill *fill);

/* Calls call() with each part until it fails and returns that result. The session must have access
 * to the whole copy. Sides in linear memory must have an address only, no x, y or z offset. */
CUresult gpd_pieces_of_copy(struct gpd_session *session, const CUDA_MEMCPY3D *copy,
			    gpd_copy_piece *call, void *arg);

/* The same for a fill of one or more rows. */
CUresult gpd_pieces_of_fill(struct gpd_session *session, const struct gp_args_gpFill *fill,
			    gpd_fill_piece *call, void *arg);

#endif /* GPD_PIECES_H */
