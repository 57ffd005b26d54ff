/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits copies and fills at the borders of registered host memory. The session's host memory is
 * registered in several registrations (host/host_space.h), and the driver rejects an operation that
 * crosses from one registration to the next. An operation that does not touch such memory is passed
 * on as one part.
 *
 * Threads: executor only.
 * Errors: CUDA_SUCCESS, or the result of the first call that fails; earlier parts have then been
 * enqueued.
 */
#ifndef GPD_REGISTRATION_SPLIT_H
#define GPD_REGISTRATION_SPLIT_H

#include <cuda.h>

struct gp_args_gpFill;
struct gpd_session;

/* Enqueues one part, and returns CUDA_SUCCESS or an error. The second argument is valid during the
 * call only. */
typedef CUresult gpd_copy_part_fn(void *arg, const CUDA_MEMCPY3D *copy);
typedef CUresult gpd_fill_part_fn(void *arg, const struct gp_args_gpFill *fill);

/* Calls call() with each part until it fails, and returns its last result. The session must have
 * access to all memory of the copy, and no dimension may be 0. Only sides of type
 * CU_MEMORYTYPE_DEVICE are split; they must have an address only, no x, y or z offset. */
CUresult gpd_registration_split_copy(struct gpd_session *session, const CUDA_MEMCPY3D *copy,
				     gpd_copy_part_fn *call, void *arg);

/* Calls call() with each part of a fill of one or more rows until it fails, and returns its last
 * result. The session must have access to all memory of the fill. width, in elements, and height
 * must not be 0, and dst must be a multiple of element_size. Returns CUDA_ERROR_INVALID_VALUE,
 * without a call, if there are several rows and pitch is not a multiple of element_size. */
CUresult gpd_registration_split_fill(struct gpd_session *session, const struct gp_args_gpFill *fill,
				     gpd_fill_part_fn *call, void *arg);

#endif /* GPD_REGISTRATION_SPLIT_H */
