/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images that can be loaded without waiting because the daemon already has them. There are three
 * kinds: preloaded images, which the same program used before and the daemon's Welcome lists;
 * images that this process has loaded; and the last few that it has unloaded
 * (protocol/image_info.h).
 *
 * Ownership: preloaded and unloaded images are copies, which image_preload.c owns. A loaded image
 * is listed, and belongs to its caller, from gpc_image_preload_add() to gpc_image_preload_unload().
 * Threads: gpc_image_preload_parse() is called before other threads know the session; any thread
 * may call the others. A lock of image_preload.c serializes them.
 */
#ifndef GPC_IMAGE_PRELOAD_H
#define GPC_IMAGE_PRELOAD_H

#include "client/module/image.h"
#include "image/fatbin.h"
#include "protocol/control.h"

#include <stdbool.h>

/* Adds the preloaded images of a Welcome, which is not used after the return. Called by cuInit()
 * for each session. Skips invalid entries and, if out of memory, any entry. */
void gpc_image_preload_parse(const struct gpc_session *session, const Gpupool__Welcome *welcome);

/* Tries to load an image without waiting for a reply. image: handle, device and sha256 are set.
 * view: the parsed code of the image. target: the device's capabilities (image/fatbin.h). If the
 * daemon is known to have the image, posts a load of it, sets image->info to the list of its
 * kernels, which the image then owns, stores the result of posting in *result_p, and returns true.
 * If *result_p is an error, the caller unloads the image. Returns false, with *result_p unchanged,
 * if the daemon is not known to have the image, does not know the call, or has another list of
 * kernels than view; if host functions are outstanding, which could change the order of the calls;
 * or if out of memory. The caller then loads the image and waits. */
bool gpc_image_preload_load(struct gpc_image *image, struct gpc_context *context,
			    const struct gp_image *view, const struct gp_image_target *target,
			    CUresult *result_p);
/* Makes a loaded image available for loading the same code again. image->variables must be set. Has
 * no effect on images with JIT options (image->plain is false) or with more than 64 KiB of
 * variables. */
void gpc_image_preload_add(struct gpc_image *image);
/* Posts the unloading of the image in the daemon, if it exists there, and makes it available for
 * loading again if possible; image->info may then be NULL. No CUkernel or CUfunction objects of the
 * image may exist. The caller then frees the image. */
void gpc_image_preload_unload(struct gpc_image *image);
/* Posts a request to free all images that the session has unloaded but the daemon still stores.
 * Called when the daemon is out of memory. Returns whether there were any, so that a retry may
 * succeed. */
bool gpc_image_preload_drop(struct gpc_context *context);

#endif /* GPC_IMAGE_PRELOAD_H */
