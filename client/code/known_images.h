/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images that daemons have already, so that they are loaded without waiting: those that the same
 * program used before, as the daemon's Welcome says; those that this process has loaded, as long
 * as they are there; and the last few that it has unloaded (protocol/image_info.h).
 *
 * A session's are added before any other thread knows it; any thread may use them.
 */
#ifndef GPC_KNOWN_IMAGES_H
#define GPC_KNOWN_IMAGES_H

#include "client/code/image.h"
#include "image/fatbin.h"
#include "protocol/control.h"

#include <stdbool.h>

/* What makes no sense, or finds no memory, is passed over. */
void gpc_image_preload_parse(const struct gpc_session *session, const Gpupool__Welcome *welcome);

/* Loads an image that has its hash, and gives it what is known of its kernels; *result_p: of the
 * call.  view: the same image.  false: it is not known, or the daemon has found other kernels in it
 * than view shows. */
bool gpc_image_preload_load(struct gpc_image *image, struct gpc_context *context,
			    const struct gp_image *view, const struct gp_image_target *target,
			    CUresult *result_p);
/* The image is loaded, and its variables are known. */
void gpc_image_preload_add(struct gpc_image *image);
/* Tells the daemon that it goes, if the daemon has it.  Nobody has a kernel of it any more. */
void gpc_image_preload_unload(struct gpc_image *image);
/* There is no memory: what was unloaded goes for good.  Whether there was any. */
bool gpc_image_preload_drop(struct gpc_context *context);

#endif /* GPC_KNOWN_IMAGES_H */
