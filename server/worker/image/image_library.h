/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which library of the driver an image of a session uses, and what the session has set of its
 * kernels.  Executor only, with the device current that is named.
 */
#ifndef GPD_IMAGE_LIBRARY_H
#define GPD_IMAGE_LIBRARY_H

#include <cuda.h>
#include <stdint.h>

struct gpd_image;
struct gpd_session;

struct gpd_image *gpd_image_get(const struct gpd_session *session, uint32_t id);

/*
 * Of an image whose context was destroyed, while its library lives on: its variables start anew, as
 * they do when CUDA loads a library into a fresh context.
 */
CUresult gpd_image_refresh(struct gpd_session *session, struct gpd_image *image, int device);

/* Gives it a library of its own, if it has none, with what the session has set. */
CUresult gpd_image_unshare(struct gpd_session *session, struct gpd_image *image, int device);

/* What was set of its kernels while they are shared. */
void gpd_image_reset_dynamic(struct gpd_image *image);

#endif /* GPD_IMAGE_LIBRARY_H */
