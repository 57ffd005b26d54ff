/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images that are being loaded, for image.c and image_load.c only.  An image is its loader's until
 * it is loaded.
 */
#ifndef GPC_IMAGE_INSIDE_H
#define GPC_IMAGE_INSIDE_H

#include "client/code/image.h"

struct gpc_image_loading;

/* It has a name and nothing else; NULL: no memory. */
struct gpc_image *gpc_image_create(struct gpc_context *context);
/* The daemon need not be told. */
void gpc_image_free(struct gpc_image *image);
/* Nobody waits for it.  Accepts NULL. */
void gpc_image_loading_free(struct gpc_image_loading *loading);

#endif /* GPC_IMAGE_INSIDE_H */
