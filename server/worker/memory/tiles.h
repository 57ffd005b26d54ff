/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lies behind the tiles of sparse arrays: physical memory made for that (gpTilePoolCreate),
 * which the client has put there (gpArrayTiles).  An array is a user of all memory that it ever had
 * parts of, so the memory counts for its session until its name and those arrays are gone. Executor
 * only, where nothing else is said.
 *
 * So a program has textures larger than its quota, of which it keeps the parts that it looks at.
 */
#ifndef GPD_TILES_H
#define GPD_TILES_H

#include <cuda.h>

struct gpd_account;
struct gpd_array;

/* Fills in how the driver cuts a new array. */
CUresult gpd_tiles_query_tiling(struct gpd_array *array);
/* The array's session has no use of that memory by it any more.  Any thread that keeps the session;
 * nothing uses the array. */
void gpd_tiles_unref(struct gpd_array *array, const struct gpd_account *account);

#endif /* GPD_TILES_H */
