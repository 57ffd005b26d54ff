/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the tiles of sparse arrays: physical memory allocated for that (gpTilePoolCreate),
 * which the client maps into arrays (gpArrayTiles). Sparse arrays let a program have textures
 * larger than its quota, with only the parts in use mapped.
 *
 * Ownership: an array keeps a reference to all memory that was ever mapped into it, so the memory
 * stays charged to its session until its name and those arrays are gone.
 * Threads: executor only, unless noted.
 * Errors: CUresult.
 */
#ifndef GPD_SPARSE_ARRAY_H
#define GPD_SPARSE_ARRAY_H

#include <cuda.h>

struct gpd_account;
struct gpd_array;

/* Fills in array->tiling, the driver's tile sizes of a new array. */
CUresult gpd_tiles_query_tiling(struct gpd_array *array);
/* Drops the array's references to tile memory. Any thread that keeps the session alive; the array
 * must be unused. */
void gpd_tiles_unref(struct gpd_array *array, const struct gpd_account *account);

#endif /* GPD_SPARSE_ARRAY_H */
