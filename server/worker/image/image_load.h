/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loading an image into the driver, and finding out what the client wants to know of its kernels.
 * Nothing else in the worker has the driver load or unload code: these calls wait until every
 * kernel on the device has ended.  Any thread, with the device current for which it is.
 */
#ifndef GPD_IMAGE_LOAD_H
#define GPD_IMAGE_LOAD_H

#include "protocol/enc.h"

#include <cuda.h>

struct gpd_function;
struct gpd_kernel;
struct gpd_library;

/* The kernels' attributes travel with the load of images with at most so many. */
#define GPD_IMAGE_ATTRIBUTES_MAX 64

/* library->blob is set; fills what the library says of itself, its log also when it fails.
 * options as in gpImageLoad. */
CUresult gpd_image_load(struct gpd_library *library, int device, struct gp_bytes options);

/* A kernel's code, which the driver puts off until it is asked for it. */
CUresult gpd_image_load_function(const struct gpd_kernel *kernel, struct gpd_function *function);

void gpd_image_unload(struct gpd_library *library);

/* Why the device cannot run a kernel, valid as long as its library is loaded; NULL: it can. */
const char *gpd_image_unsupported(const struct gpd_kernel *kernel);

#endif /* GPD_IMAGE_LOAD_H */
