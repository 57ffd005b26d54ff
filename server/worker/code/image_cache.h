/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device code by its SHA-256, for the sessions of the worker and, on disk, for later workers.
 *
 * A blob is one image's bytes, counted, never changed once they are there.  The blobs that were
 * used last stay in memory without a reference, up to a limit.  On disk each is a file for each
 * tenant (image_disk.h); a file whose bytes do not have the hash is thrown away.
 *
 * A hash is no proof that a client has the image.  So a session gets a blob only if a session of
 * its tenant has sent the bytes; for other tenants the image is missing.
 *
 * Programs that start together load the same code, and it travels once for each tenant: a blob
 * exists from the moment on at which somebody is about to bring its bytes, from the disk or from a
 * client.  Other sessions of the tenant wait for them, as long as they come.  Any thread.
 */
#ifndef GPD_IMAGE_CACHE_H
#define GPD_IMAGE_CACHE_H

#include "server/worker/code/image_disk.h"
#include "server/worker/code/image_scan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gp_image;
struct gp_unpack_limiter;
struct gpd_blob;

/* Limits in bytes. */
struct gpd_image_cache_limits {
	uint64_t memory; /* of blobs without a reference */
	uint64_t disk;
};

/* Somebody who brings one image at a time: a session has one.  All zeros at first. */
struct gpd_image_uploader {
	const char *tenant; /* its name, or NULL; outlives the calls here; its own thread */
	/* What compressed code passes while it is read, or NULL; its own thread. */
	struct gp_unpack_limiter *limiter;
	struct gpd_blob *blob; /* whose bytes are to come; NULL: none; the cache's lock */
	uint64_t waited_ns;    /* for others, in all; its own thread */
};

/* Of what has not come for so long nobody expects that it does, and nobody waits longer than this
 * in all: who says again and again that bytes will come holds nobody up for ever. */
extern uint64_t gpd_image_cache_stall_ns, gpd_image_cache_wait_ns;

/* dir NULL: where the environment says (GPUPOOL_CACHE_DIR, XDG_CACHE_HOME, HOME), "": nowhere. */
void gpd_image_cache_start(const char *dir, const struct gpd_image_cache_limits *limits);

/* Waits for what is being written and drops what nobody has. */
void gpd_image_cache_stop(void);

/* A reference, if it is here or another bringer brings it.  NULL: the caller is to bring it, until
 * gpd_image_cache_add() or gpd_image_cache_abandon_upload(); or *given_up has become true. */
struct gpd_blob *gpd_image_cache_get(const struct gpd_image_name *name,
				     struct gpd_image_uploader *bringer,
				     const _Atomic bool *given_up);

/* The same, if its bytes are in memory; only for a tenant that has loaded it before. */
struct gpd_blob *gpd_image_cache_find(const struct gpd_image_name *name);

/* Some of the bytes have come. */
void gpd_image_cache_upload_progress(struct gpd_image_uploader *bringer);
/* They do not come from this bringer, if any were to. */
void gpd_image_cache_abandon_upload(struct gpd_image_uploader *bringer);

/* Takes bytes over that the bringer's client has sent, whose hash this is (from
 * gpd_image_bytes_alloc()); NULL: no memory, or the gate refused it. */
struct gpd_blob *gpd_image_cache_add(struct gpd_image_uploader *bringer,
				     const uint8_t sha256[GPD_SHA256_SIZE], void *bytes,
				     size_t size);

void gpd_blob_ref(struct gpd_blob *blob);
/* Accepts NULL. */
void gpd_blob_unref(struct gpd_blob *blob);

/* 0, or why the bytes are no image (image/fatbin.h). The view lives as long as the blob. */
int gpd_blob_image(struct gpd_blob *blob, const struct gp_image **image_p);
/* The same as the end of a sentence, as long as the blob lives. */
const char *gpd_blob_get_error_text(const struct gpd_blob *blob);
const struct gpd_image_name *gpd_blob_name(const struct gpd_blob *blob);

/* What its kernels call. */
struct gpd_image_uses gpd_blob_uses(struct gpd_blob *blob);

#endif /* GPD_IMAGE_CACHE_H */
