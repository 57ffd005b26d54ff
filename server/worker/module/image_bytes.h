/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Obtains the bytes of an image that a session loads, from the cache or from the client. The bytes
 * of each image are charged to the session and its tenant, even if other images have the same
 * bytes.
 *
 * Ownership: the caller owns the reference to the blob and the charge that it gets.
 * Threads: executor only.
 * Errors: CUresult, CUDA_SUCCESS on success.
 */
#ifndef GPD_IMAGE_BYTES_H
#define GPD_IMAGE_BYTES_H

#include "image/fatbin.h"

#include <cuda.h>
#include <stdint.h>

struct gp_args_gpImageLoad;
struct gpd_blob;
struct gpd_session;

/* Charges one more image of size bytes to the session; gpd_account_uncharge_code() undoes it. May
 * block as gpd_account_charge_code() (schedule/account.h). Returns CUDA_SUCCESS; or
 * CUDA_ERROR_OUT_OF_MEMORY if the image is too large, the session has too many images or the quota
 * code-memory is exhausted. This is logged, and nothing is charged. */
CUresult gpd_image_charge_bytes(struct gpd_session *session, uint64_t size);

/* Returns the properties of the device that decide which code of an image it can use. Any
 * thread. */
struct gp_image_target gpd_image_target(int device);

/* Returns the bytes that the driver of the device allocates for the blob's code, in addition to the
 * blob (image/code_check.h); 0 if the blob is not a valid image. */
uint64_t gpd_image_driver_size(struct gpd_blob *blob, int device);

/*
 * Gets the image of the current record, from the cache or from the record's bulk. Waits for the
 * bytes, also for those that another session of the tenant uploads. Returns CUDA_SUCCESS with
 * *blob_p a reference, and args->size bytes charged (gpd_account_charge_code()); or CUDA_SUCCESS
 * with *blob_p NULL and nothing charged: the client has to send the record again with the bytes. On
 * failure *blob_p is NULL, nothing is charged, and a part of the bulk may be left for the caller to
 * discard.
 *
 * CUDA_ERROR_INVALID_VALUE: the sizes of image, bulk or hash do not match, which ends the session.
 * CUDA_ERROR_INVALID_IMAGE: the bytes are not a valid image (logged), or do not match the hash,
 * which ends the session.
 * CUDA_ERROR_OUT_OF_MEMORY: out of memory, over a quota, or the connection has failed.
 */
CUresult gpd_image_bytes(struct gpd_session *session, const struct gp_args_gpImageLoad *args,
			 struct gpd_blob **blob_p);

#endif /* GPD_IMAGE_BYTES_H */
