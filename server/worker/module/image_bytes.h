/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Obtains the bytes of an image that a session loads, from the cache or from the client. The bytes
 * of each image are charged to the session and its tenant, even if other images have the same
 * bytes.
 *
 * Ownership: the caller owns the reference and the charge that it gets.
 * Threads: executor only.
 * Errors: CUresult.
 */
#ifndef GPD_IMAGE_BYTES_H
#define GPD_IMAGE_BYTES_H

#include "image/fatbin.h"

#include <cuda.h>
#include <stdint.h>

struct gp_args_gpImageLoad;
struct gpd_blob;
struct gpd_session;

/* Charges one more image of this size to the session; gpd_account_uncharge_code() undoes it.
 * CUDA_ERROR_OUT_OF_MEMORY: over a limit, which is logged. */
CUresult gpd_image_charge_bytes(struct gpd_session *session, uint64_t size);

/* The device's properties that decide which code of an image it can use. */
struct gp_image_target gpd_image_target(int device);

/* Bytes that the driver of the device allocates for the blob's code, in addition to the blob
 * (image/code_check.h). */
uint64_t gpd_image_driver_size(struct gpd_blob *blob, int device);

/* Returns a reference to the blob, with args->size charged (gpd_account_charge_code()). NULL with
 * CUDA_SUCCESS: the client has to send the bytes. On failure nothing is charged. */
CUresult gpd_image_bytes(struct gpd_session *session, const struct gp_args_gpImageLoad *args,
			 struct gpd_blob **blob_p);

#endif /* GPD_IMAGE_BYTES_H */
