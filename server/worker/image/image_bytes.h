/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of an image that a session loads: they are here, or the client sends them.  They count
 * for the session, and for its tenant, with each image: also where others have the same bytes.
 * Executor.
 */
#ifndef GPD_IMAGE_BYTES_H
#define GPD_IMAGE_BYTES_H

#include "image/fatbin.h"

#include <cuda.h>
#include <stdint.h>

struct gp_args_gpImageLoad;
struct gpd_blob;
struct gpd_session;

/* Room for one more image of this size, in what the session may have; gpd_account_uncharge_code()
 * gives it back. */
CUresult gpd_image_charge_bytes(struct gpd_session *session, uint64_t size);

struct gp_image_target gpd_image_target(int device);

/* Bytes that the driver of the device allocates for the blob's code, besides the blob
 * (image/code_check.h). */
uint64_t gpd_image_driver_size(struct gpd_blob *blob, int device);

/* A reference, and args->size are taken (gpd_account_charge_code()).  NULL with CUDA_SUCCESS: the
 * client is to send them. */
CUresult gpd_image_bytes(struct gpd_session *session, const struct gp_args_gpImageLoad *args,
			 struct gpd_blob **blob_p);

#endif /* GPD_IMAGE_BYTES_H */
