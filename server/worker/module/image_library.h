/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links an image of a session to its driver library, and stores what the session has set for its
 * kernels.
 *
 * Ownership: the image owns its library, or a reference to a shared one.
 * Threads: executor only, with the named device current.
 * Errors: CUresult.
 */
#ifndef GPD_IMAGE_LIBRARY_H
#define GPD_IMAGE_LIBRARY_H

#include <cuda.h>
#include <stdint.h>

struct gpd_image;
struct gpd_session;

/* Returns NULL if there is no such image. */
struct gpd_image *gpd_image_get(const struct gpd_session *session, uint32_t id);

/*
 * Reinitializes an image whose context was destroyed while its library stayed loaded: its variables
 * get their initial values, as when CUDA loads a library into a new context.
 */
CUresult gpd_image_refresh(struct gpd_session *session, struct gpd_image *image, int device);

/* Gives the image a library of its own, unless it has one, with the settings of the session. */
CUresult gpd_image_unshare(struct gpd_session *session, struct gpd_image *image, int device);

/* Discards the settings of its kernels that apply while the library is shared. */
void gpd_image_reset_dynamic(struct gpd_image *image);

#endif /* GPD_IMAGE_LIBRARY_H */
