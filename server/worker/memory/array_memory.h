/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays as the driver makes them: how much memory one takes, making it, zeroing it, giving it
 * back.  Any thread that has entered the device.
 */
#ifndef GPD_ARRAY_MEMORY_H
#define GPD_ARRAY_MEMORY_H

#include "server/worker/memory/array.h"

/* Fills in the driver's handles by the array's shape.  This waits for nothing (measured, too). */
CUresult gpd_array_obtain(struct gpd_array *array);
/* Waits until it is done, but for no kernel. */
CUresult gpd_array_zero(const struct gpd_array *array);
/* Waits until no kernel runs, and nobody can launch one meanwhile: quiet.h. */
void gpd_array_drop(const struct gpd_array *array);

#endif /* GPD_ARRAY_MEMORY_H */
