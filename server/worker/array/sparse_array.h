/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the tiles of sparse arrays. A tile pool is physical memory allocated for tiles
 * (gpTilePoolCreate), which the client maps into arrays (gpArrayTiles). Sparse arrays let a program
 * have textures larger than its quota, with only the parts in use mapped.
 *
 * Ownership: an array has a reference to all memory that was ever mapped into it. The memory stays
 * charged to its session until the tile pool is released and those arrays are gone.
 * Threads: executor only, unless noted.
 * Errors: CUresult.
 */
#ifndef GPD_SPARSE_ARRAY_H
#define GPD_SPARSE_ARRAY_H

#include <cuda.h>

struct gpd_account;
struct gpd_array;

/* Sets array->tiling to the driver's tile sizes of a sparse array, after gpd_array_obtain()
 * (array_memory.h). Any thread, with the array's device current. Returns CUDA_SUCCESS;
 * CUDA_ERROR_NOT_SUPPORTED if the number of bytes of a tile cannot be computed from the sizes; or
 * an error of the driver. */
CUresult gpd_tiles_query_tiling(struct gpd_array *array);
/* Drops the array's references to tile memory; does nothing if there are none. No work may use the
 * array. account: of the session that owns the array; the memory is charged to it. It must stay
 * valid during the call. Therefore a thread other than the executor calls this with the lock of
 * array.c held: without the lock, the session might end. Any thread. */
void gpd_tiles_unref(struct gpd_array *array, const struct gpd_account *account);

#endif /* GPD_SPARSE_ARRAY_H */
