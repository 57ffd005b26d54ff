/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads an image into the driver and collects what the client needs to know about its kernels.
 * Nothing else in the worker makes the driver load or unload code, because these calls wait until
 * every kernel on the device has ended.
 *
 * Ownership: the caller owns the library; on failure it has no driver library but may have a log.
 * Threads: any, with the target device current.
 * Errors: CUresult.
 */
#ifndef GPD_IMAGE_LOAD_H
#define GPD_IMAGE_LOAD_H

#include "protocol/enc.h"

#include <cuda.h>

struct gpd_function;
struct gpd_kernel;
struct gpd_library;

/* The kernels' attributes are part of the load's reply only for images with at most this number of
 * kernels. */
#define GPD_IMAGE_ATTRIBUTES_MAX 64

/* Loads library->blob and fills in the library's description. The compiler's log is set on failure,
 * too. options: as in gpImageLoad. */
CUresult gpd_image_load(struct gpd_library *library, int device, struct gp_bytes options);

/* Loads a kernel's code, which the driver defers until the function is first requested. */
CUresult gpd_image_load_function(const struct gpd_kernel *kernel, struct gpd_function *function);

/* Unloads the library from the driver. */
void gpd_image_unload(struct gpd_library *library);

/* Returns why the device cannot run a kernel, or NULL if it can. Valid while the library is
 * loaded. */
const char *gpd_image_unsupported(const struct gpd_kernel *kernel);

#endif /* GPD_IMAGE_LOAD_H */
