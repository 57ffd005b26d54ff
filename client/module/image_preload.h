/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images that can be loaded without waiting because the daemon already has them: preloaded images,
 * which the same program used before and the daemon's Welcome lists; images that this process has
 * loaded; and the last few that it has unloaded (protocol/image_info.h).
 *
 * Threads: gpc_image_preload_parse() is called before other threads know the session; any thread
 * may call the others.
 */
#ifndef GPC_IMAGE_PRELOAD_H
#define GPC_IMAGE_PRELOAD_H

#include "client/module/image.h"
#include "image/fatbin.h"
#include "protocol/control.h"

#include <stdbool.h>

/* Adds the preloaded images of a Welcome. Invalid entries, and those for which there is no memory,
 * are skipped. */
void gpc_image_preload_parse(const struct gpc_session *session, const Gpupool__Welcome *welcome);

/* If the image (identified by its hash) is known: posts a load of it, fills image->info with the
 * known kernels, stores the result of the call in *result_p, and returns true. view: the same
 * image, parsed. Returns false if the image is unknown, or if the daemon found other kernels in it
 * than view contains. */
bool gpc_image_preload_load(struct gpc_image *image, struct gpc_context *context,
			    const struct gp_image *view, const struct gp_image_target *target,
			    CUresult *result_p);
/* Makes an image available for loading again. It must be loaded, and its variables known. */
void gpc_image_preload_add(struct gpc_image *image);
/* Unloads the image in the daemon, if it exists there. No kernel handles of it may exist. */
void gpc_image_preload_unload(struct gpc_image *image);
/* Makes the daemon free all unloaded images for good, when it is out of memory. Returns whether
 * there were any. */
bool gpc_image_preload_drop(struct gpc_context *context);

#endif /* GPC_IMAGE_PRELOAD_H */
