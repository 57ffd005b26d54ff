/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads an image into the driver and collects the information about its kernels that the client
 * needs. All code of sessions is loaded and unloaded here, because these calls of the driver wait
 * until every kernel on the device has ended. Called by library.c, and gpd_image_unsupported() also
 * by function.c.
 *
 * Ownership: the caller owns the library (struct gpd_library, library.h) and everything in it.
 * Threads: any, with the target device current. The caller has waited for a nearly idle device
 * (device/quiesce.h).
 * Errors: CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY or the driver's error, unless noted.
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

/*
 * Loads library->blob and sets the library's members driver, kernels, kernel_count, jit, info, log
 * and unsupported, which must be zero before. If the image has at most GPD_IMAGE_ATTRIBUTES_MAX
 * kernels, also loads their functions. device: ordinal of the current device. options: of the
 * driver's compiler, as in gpImageLoad, unchecked. On failure library->driver is NULL, but the
 * caller frees the other members, of which log may contain the compiler's text.
 *
 * CUDA_ERROR_INVALID_IMAGE: the blob is not a valid image.
 * CUDA_ERROR_INVALID_VALUE: the options are malformed.
 * CUDA_ERROR_NOT_SUPPORTED: the image has more than GP_IMAGE_KERNELS_MAX kernels, or an option is
 * not a number.
 */
CUresult gpd_image_load(struct gpd_library *library, int device, struct gp_bytes options);

/* Makes the driver load a kernel's code on the current device, which the driver defers until the
 * function is first requested, and fills in *function, which is zero. The caller serializes the
 * calls of a library (gpd_library.lock). On failure *function is unchanged. */
CUresult gpd_image_load_function(const struct gpd_kernel *kernel, struct gpd_function *function);

/* Unloads the library, which must be loaded, from the driver and sets library->driver to NULL. */
void gpd_image_unload(struct gpd_library *library);

/* Returns the reason why the device cannot run a kernel, a text of the driver that is valid while
 * the library is loaded; or NULL if the device can run it. Only the software device reports
 * reasons. Does not need a nearly idle device. */
const char *gpd_image_unsupported(const struct gpd_kernel *kernel);

#endif /* GPD_IMAGE_LOAD_H */
