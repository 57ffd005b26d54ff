/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images that can be loaded without waiting because the daemon already has them. There are three
 * kinds: preloaded images, which the same program used before and the daemon's Welcome lists;
 * images that this process has loaded; and the last few that it has unloaded
 * (protocol/image_info.h).
 *
 * Ownership: the list of images has copies of all data; a loaded image is in the list until
 * gpc_image_preload_unload().
 * Threads: gpc_image_preload_parse() is called before other threads know the session; any thread
 * may call the others. A lock of image_preload.c serializes them.
 */
#ifndef GPC_IMAGE_PRELOAD_H
#define GPC_IMAGE_PRELOAD_H

#include "client/module/image.h"
#include "image/fatbin.h"
#include "protocol/control.h"

#include <stdbool.h>

/* Adds the preloaded images of a Welcome, which is not used after the return. Invalid entries, and
 * those for which there is no memory, are skipped. */
void gpc_image_preload_parse(const struct gpc_session *session, const Gpupool__Welcome *welcome);

/* If the daemon has the image (identified by image->sha256): posts a load of it, without waiting,
 * sets image->info to the list of its kernels, which the image then owns, stores the result of
 * posting in *result_p, and returns true. view: the parsed code of the image. Returns false, with
 * *result_p unchanged, if the daemon does not have the image, its list of kernels differs from that
 * of view, or the order of the calls would not be preserved; the caller then loads the image and
 * waits. */
bool gpc_image_preload_load(struct gpc_image *image, struct gpc_context *context,
			    const struct gp_image *view, const struct gp_image_target *target,
			    CUresult *result_p);
/* Makes a loaded image available for loading the same code again. Its variables must be known. Has
 * no effect on images with JIT options or with large variables. */
void gpc_image_preload_add(struct gpc_image *image);
/* Posts the unloading of the image in the daemon, if it exists there, and makes it available for
 * loading again if possible. No objects of its kernels may exist. The caller then frees the
 * image. */
void gpc_image_preload_unload(struct gpc_image *image);
/* Posts a request to free all unloaded images that the daemon still stores; called when the daemon
 * is out of memory. Returns whether there were any, so that a retry may succeed. */
bool gpc_image_preload_drop(struct gpc_context *context);

#endif /* GPC_IMAGE_PRELOAD_H */
