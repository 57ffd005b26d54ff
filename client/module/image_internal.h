/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creation of images; internal to image.c and image_load.c.
 *
 * Ownership: the caller owns a created image until a module or library takes it over.
 * Threads: until it is loaded, an image is used only by the thread that loads it.
 */
#ifndef GPC_IMAGE_INTERNAL_H
#define GPC_IMAGE_INTERNAL_H

#include "client/module/image.h"

struct gpc_image_loading;

/* Creates an image that has a handle and nothing else. Returns NULL if out of memory. */
struct gpc_image *gpc_image_create(struct gpc_context *context);
/* Frees an image that the daemon does not have. */
void gpc_image_free(struct gpc_image *image);
/* Frees the state of a load for which no thread waits. Accepts NULL. */
void gpc_image_loading_free(struct gpc_image_loading *loading);

#endif /* GPC_IMAGE_INTERNAL_H */
