/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver side of arrays: creates, zeroes and destroys them.
 *
 * Threads: any, with the array's device current.
 * Errors: CUresult.
 */
#ifndef GPD_ARRAY_MEMORY_H
#define GPD_ARRAY_MEMORY_H

#include "server/worker/array/array.h"

/* Creates the driver's objects for the array's shape. Does not wait for the GPU (measured).
 * CUDA_ERROR_NOT_SUPPORTED: the driver lacks a function. */
CUresult gpd_array_obtain(struct gpd_array *array);
/* Zeroes all levels and waits until that is done, but for no kernel. */
CUresult gpd_array_zero(const struct gpd_array *array);
/* Destroys the driver's objects. Waits until no kernel runs, and blocks all launches meanwhile
 * (idle.h). */
void gpd_array_drop(const struct gpd_array *array);

#endif /* GPD_ARRAY_MEMORY_H */
