/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays as the driver makes them: how much memory one takes, making it, zeroing it, giving it
 * back.  Any thread that has entered the device.
 */
#ifndef GPD_ARRAY_MEMORY_H
#define GPD_ARRAY_MEMORY_H

#include "server/worker/memory/array.h"

/*
 * What the driver takes for such an array.  It pads arrays to its tiles and gives them whole pages,
 * and says of no array that it has made how much that was (cuArrayGetMemoryRequirements is for
 * arrays whose memory the application maps).  So this is reckoned from the tiles, as a bound: on an
 * H200, 1000 by 1000 floats take 4 MiB, as they do here; small ones share pages, 64 of 16 by 16
 * floats 2 MiB, which is what they are charged.
 */
uint64_t gpd_array_footprint(const struct gp_array_shape *shape);

/* Fills in the driver's handles by the array's shape.  This waits for nothing (measured, too). */
CUresult gpd_array_obtain(struct gpd_array *array);
/* Waits until it is done, but for no kernel. */
CUresult gpd_array_zero(const struct gpd_array *array);
/* Waits until no kernel runs, and nobody can launch one meanwhile: quiet.h. */
void gpd_array_drop(const struct gpd_array *array);

#endif /* GPD_ARRAY_MEMORY_H */
