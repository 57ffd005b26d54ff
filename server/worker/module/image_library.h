/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links a loaded image (image.h) to its driver library (library.h), and stores the session's
 * settings of its kernels. image_library.c also implements the functions of image.h that look up a
 * kernel, get or set its dynamic shared memory, or give the image a library of its own.
 *
 * Ownership: the image owns its library, or a reference to a shared one.
 * Threads: executor only, with the named device current. It is current again on return, except
 * after an error.
 * Errors: CUresult, CUDA_SUCCESS on success.
 */
#ifndef GPD_IMAGE_LIBRARY_H
#define GPD_IMAGE_LIBRARY_H

#include <cuda.h>
#include <stdint.h>

struct gpd_image;
struct gpd_session;

/* Returns the loaded image with this ID, borrowed from the session; NULL: there is none. */
struct gpd_image *gpd_image_get(const struct gpd_session *session, uint32_t id);

/*
 * Reinitializes an image if it is stale, which means that its context was destroyed while its
 * library stayed loaded; otherwise does nothing. Its variables get their initial values, as when
 * CUDA loads a library into a new context. It gets another library, so every struct
 * gpd_device_kernel of the image becomes invalid. Blocks until all work of the session is done and
 * the device is nearly idle (device/quiesce.h). On failure the image stays stale and may have no
 * library.
 * CUDA_ERROR_DEINITIALIZED: the session is closing, or the GPU contexts are lost.
 * Other errors are those of gpd_wait_add_all() (stream/responder.h) and gpd_library_get()
 * (library.h).
 */
CUresult gpd_image_refresh(struct gpd_session *session, struct gpd_image *image, int device);

/* Gives the image a library of its own with the settings of the session; does nothing if it has
 * one. The image must not be stale. Charges the driver's memory for the library until the image is
 * unloaded. Every struct gpd_device_kernel of the image becomes invalid; for users that have stored
 * the driver's kernels, session->modules->kernels_changed (image.h) is incremented. Blocks until
 * the device is nearly idle. On failure the image keeps its shared library and nothing is charged.
 * CUDA_ERROR_OUT_OF_MEMORY: also if the quota code-memory is exhausted.
 * CUDA_ERROR_DEINITIALIZED: the session is closing, or the GPU contexts are lost.
 * Other errors are those of the driver. */
CUresult gpd_image_unshare(struct gpd_session *session, struct gpd_image *image, int device);

/* Discards the image's settings of dynamic shared memory, which apply only while the library is
 * shared. */
void gpd_image_reset_dynamic(struct gpd_image *image);

#endif /* GPD_IMAGE_LIBRARY_H */
