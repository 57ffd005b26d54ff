/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creation of images; internal to image.c and image_load.c.
 *
 * Ownership: the caller owns a created image until a module or library takes it over.
 * Threads: until gpc_image_load() returns, an image is used only by the calling thread.
 */
#ifndef GPC_IMAGE_INTERNAL_H
#define GPC_IMAGE_INTERNAL_H

#include "client/module/image.h"

struct gpc_image_loading;

/* Creates an empty image with a handle, for the context's device. Returns NULL if out of memory or
 * handles. The caller frees it with gpc_image_free() or, if image->info is set, so that the daemon
 * may have loaded it, with gpc_image_unload(). */
struct gpc_image *gpc_image_create(struct gpc_context *context);
/* Frees an image that the daemon does not have, and invalidates its handle and those of its
 * kernels. */
void gpc_image_free(struct gpc_image *image);
/* Frees the state of an asynchronous load, with the code and the reply. Its request must be
 * complete, or never started. Accepts NULL. */
void gpc_image_loading_free(struct gpc_image_loading *loading);

#endif /* GPC_IMAGE_INTERNAL_H */
