/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads an image into the driver and collects the information about its kernels that the client
 * needs. Only this module makes the driver load or unload code, because these calls wait until
 * every kernel on the device has ended.
 *
 * Ownership: the caller owns the library; on failure it has no driver library but may have a log.
 * Threads: any, with the target device current. The caller has waited for an idle context
 * (device/idle.h).
 * Errors: CUDA_SUCCESS or the driver's error.
 */
#ifndef GPD_IMAGE_LOAD_H
#define GPD_IMAGE_LOAD_H

#include "protocol/enc.h"

#include <cuda.h>

struct gpd_function;
struct gpd_kernel;
struct gpd_library;

/* Maximum number of kernels of an image for which the load's reply contains the kernels'
 * attributes. */
#define GPD_IMAGE_ATTRIBUTES_MAX 64

/* Loads library->blob and fills in the library's description. Sets library->log, also on failure.
 * options: of the driver's compiler, as in gpImageLoad. CUDA_ERROR_NOT_SUPPORTED: the image has too
 * many kernels. */
CUresult gpd_image_load(struct gpd_library *library, int device, struct gp_bytes options);

/* Loads a kernel's code, which the driver defers until the function is first requested, and fills
 * in *function. On failure *function is unchanged. */
CUresult gpd_image_load_function(const struct gpd_kernel *kernel, struct gpd_function *function);

/* Unloads the library from the driver and sets library->driver to NULL. */
void gpd_image_unload(struct gpd_library *library);

/* Returns the reason why the device cannot run a kernel, a text of the driver that is valid while
 * the library is loaded; or NULL if the device can run it. */
const char *gpd_image_unsupported(const struct gpd_kernel *kernel);

#endif /* GPD_IMAGE_LOAD_H */
