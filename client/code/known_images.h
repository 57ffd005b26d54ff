/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The images that daemons keep for this process, as their Welcomes say: those that the same program
 * used before.  Each can be loaded once without waiting, for all that its load would tell is here.
 * A session's are added before any other thread knows it; any thread may use them.
 */
#ifndef GPC_KNOWN_IMAGES_H
#define GPC_KNOWN_IMAGES_H

#include "client/context/context.h"
#include "image/fatbin.h"
#include "protocol/control.h"
#include "protocol/image_info.h"

#include <stdbool.h>
#include <stdint.h>

#define GPC_SHA256_SIZE 32

/* What makes no sense, or finds no memory, is passed over. */
void gpc_known_images_take(const struct gpc_session *session, const Gpupool__Welcome *welcome);

/* The image of this hash, for a context of the device: what is known of its kernels, to be
 * destroyed.  It is known no more.  false: it was not, or the daemon has found other kernels in it
 * than view shows. */
bool gpc_known_images_use(const struct gpc_device *device, const uint8_t sha256[GPC_SHA256_SIZE],
			  const struct gp_image *view, const struct gp_image_target *target,
			  struct gp_image_info **info_p);

#endif /* GPC_KNOWN_IMAGES_H */
