/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver side of arrays: creates, zeroes and destroys the driver's objects.
 *
 * Ownership: the driver's objects belong to struct gpd_array.
 * Threads: any that is the array's only user, with the array's device current.
 * Errors: CUresult.
 */
#ifndef GPD_ARRAY_MEMORY_H
#define GPD_ARRAY_MEMORY_H

#include "server/worker/array/array.h"

/* Creates the driver's objects for array->shape and stores them in the array. The caller has set
 * shape, which gp_array_check() has accepted, and device; the other members are zero. The memory
 * may contain data of another session: call gpd_array_zero() before a client can use the array (for
 * a sparse array, its tile memory is zeroed instead). Does not wait for the GPU (measured). Undone
 * by gpd_array_drop(). Returns CUDA_SUCCESS; CUDA_ERROR_NOT_SUPPORTED if the driver lacks a
 * function; or an error of the driver. On failure gpd_array_drop() must not be called. */
CUresult gpd_array_obtain(struct gpd_array *array);
/* Zeroes all levels and blocks until that is done. The copies run on a stream of their own
 * (gpd_physical_zero_stream(), memory/physical_memory.h), so kernels of other streams need not end
 * first. All tiles of a sparse array must have memory mapped. The first call for a device allocates
 * GP_ARRAY_ROW_MAX bytes (protocol/array_geometry.h) on it, which are never freed. Returns
 * CUDA_SUCCESS; CUDA_ERROR_NOT_SUPPORTED if the driver lacks a function; or an error of the driver.
 * After an error the content is undefined, and copies may still run. */
CUresult gpd_array_zero(const struct gpd_array *array);
/* Destroys the driver's objects; does not free the array. Blocks until no kernel runs, and blocks
 * all launches meanwhile; the caller therefore waits for a nearly idle device first (quiesce.h). */
void gpd_array_drop(const struct gpd_array *array);

#endif /* GPD_ARRAY_MEMORY_H */
