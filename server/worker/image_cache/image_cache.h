/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cache of device code images, keyed by SHA-256: in memory for the sessions of this worker and on
 * disk for later workers.
 *
 * A blob is the bytes of one image. It is reference counted and its bytes never change. The most
 * recently used blobs stay in memory without a reference, up to a limit. On disk, each image is one
 * file per tenant (image_disk.h); a file whose bytes do not match the hash is deleted.
 *
 * Knowing a hash does not prove that a client has the image. A session therefore gets a blob only
 * if a session of the same tenant has sent its bytes; for other tenants the image is missing.
 *
 * An uploader is a session that is about to provide the bytes of an image, from the disk or from
 * its client. Programs that start together load the same code, and each tenant sends it only once.
 * The cache therefore creates the blob's entry when the first uploader starts, before the bytes
 * arrive, and other sessions of the tenant wait as long as the bytes keep arriving.
 *
 * Life cycle: module/image_bytes.c calls gpd_image_cache_get(). If it returns NULL the client sends
 * the bytes, with gpd_image_cache_upload_progress() for each part; then gpd_image_cache_add() or,
 * after a failure, gpd_image_cache_abandon_upload().
 * Ownership: each reference is released with gpd_blob_unref(). The cache owns the bytes and the
 * parsed image.
 * Threads: any; the cache has one lock, which is not held while bytes are read or extracted. Start
 * and stop: main thread.
 */
#ifndef GPD_IMAGE_CACHE_H
#define GPD_IMAGE_CACHE_H

#include "server/worker/image_cache/image_disk.h"
#include "server/worker/image_cache/image_scan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

struct gp_image;
struct gp_unpack_limiter;
struct gpd_blob_owner;
struct gpd_image_uploader;

/* A blob. */
struct gpd_blob {
	/* Constant while there is a reference. */
	struct gpd_image_key key; /* hash and size; size 0: the bytes have not arrived */
	struct gp_image *image;   /* the parsed image; NULL: the bytes are not a valid one */
	/* reason for that (errors of gp_image_open() and gp_image_check_code()); 0: valid */
	int image_error;
	char *error_text;           /* text of the error -EBADMSG; NULL: none */
	struct gpd_image_uses uses; /* features of the image's code, by gpd_image_scan() */
	/* Protected by the cache's lock, and used by the cache only. Once set, bytes does not
	 * change. */
	UT_hash_handle hh;
	void *bytes;                         /* NULL: not uploaded yet */
	struct gpd_image_uploader *uploader; /* of the bytes; NULL: none, or complete */
	uint64_t heard_ns;                   /* gp_now_ns() of the last progress */
	unsigned int refs;
	struct gpd_blob_owner *owners; /* tenants that have sent the bytes; a utlist */
	struct gpd_blob *prev, *next;  /* list of blobs without a reference */
};

/* Limits of the cache in bytes. There are also at most 16384 blobs without a reference. */
struct gpd_image_cache_limits {
	uint64_t memory; /* of the blobs without a reference; default: 128 MiB */
	uint64_t disk;   /* of the files on disk; default: 1 GiB */
};

/* An uploader: a session, as the provider of the bytes of one image at a time. The session owns it.
 * Initialized to zeros. Members are used by the uploader's own thread unless noted. */
struct gpd_image_uploader {
	/* Name of its tenant, borrowed; must stay valid during the calls below. NULL: no tenant.
	 * All uploaders without a tenant share images like those of one tenant. */
	const char *tenant;
	/* Limits the extraction of compressed code during the check of an image; NULL: no limit.
	 * Used during a call only. */
	struct gp_unpack_limiter *limiter;
	/* Blob whose bytes it is about to provide, borrowed; NULL: none. Protected by the cache's
	 * lock. */
	struct gpd_blob *blob;
	uint64_t waited_ns; /* total nanoseconds for which it waited for other uploaders */
};

/* Time limits in nanoseconds, changed only by tests. stall_ns (2 s): an upload without progress for
 * this time counts as stalled, and other sessions no longer wait for it. wait_ns (10 s): maximum
 * total time for which a session waits for other uploaders, so that an uploader that repeatedly
 * announces bytes cannot delay it forever. */
extern uint64_t gpd_image_cache_stall_ns, gpd_image_cache_wait_ns;

/* Sets the limits (NULL: the defaults) and opens the folder of the disk cache. dir: its path; NULL:
 * chosen by the environment (GPUPOOL_CACHE_DIR, XDG_CACHE_HOME, HOME); "": no disk cache. Called
 * once, before other threads exist. */
void gpd_image_cache_start(const char *dir, const struct gpd_image_cache_limits *limits);

/* Blocks until the files in progress are written, and frees all blobs without a reference. Called
 * once, at the end of the process. */
void gpd_image_cache_stop(void);

/*
 * Looks an image up, in memory and then on disk. First abandons an earlier upload of `uploader`. If
 * another uploader of the tenant is about to provide the bytes, blocks until they are there, the
 * limits above are reached or *given_up becomes true (noticed within 20 ms). Also blocks on the
 * disk and on the uploader's limiter. given_up must not be NULL.
 *
 * Returns a reference to the blob. Returns NULL if the caller has to obtain the bytes from its
 * client and pass them to gpd_image_cache_add(). Usually `uploader` then provides the bytes: other
 * sessions of its tenant wait until it calls gpd_image_cache_add() or
 * gpd_image_cache_abandon_upload(). No session waits for `uploader` if another tenant has sent the
 * bytes or is about to, if an image of another size has this hash, or if memory is exhausted; the
 * caller does the same in these cases.
 */
struct gpd_blob *gpd_image_cache_get(const struct gpd_image_key *key,
				     struct gpd_image_uploader *uploader,
				     const _Atomic bool *given_up);

/* Returns a reference to the blob if its bytes are in memory and of this size, else NULL. Does not
 * wait. Does not check the tenant: to be called only for an image that the caller's tenant has
 * loaded before. */
struct gpd_blob *gpd_image_cache_find(const struct gpd_image_key *key);

/* Reports that some of the bytes that the uploader provides have arrived. Does nothing if it
 * provides none. */
void gpd_image_cache_upload_progress(struct gpd_image_uploader *uploader);
/* Ends the uploader's upload, if there is one, without bytes, and wakes the waiters. */
void gpd_image_cache_abandon_upload(struct gpd_image_uploader *uploader);

/* Adds the bytes that the uploader's client has sent, whose hash the caller has computed and
 * compared with the announced one, and ends the upload. Takes ownership of bytes, which are from
 * gpd_image_bytes_alloc() (image_disk.h), also on failure. uploader NULL: no tenant and no limiter.
 * Returns a reference to the blob, also for an invalid image (image_error is then set; uses has
 * only `state` set). Returns NULL if memory is exhausted or the uploader's limiter refused the
 * extraction; then gpd_image_cache_abandon_upload() has to end the upload. May block on the
 * limiter, and on the disk if the tenant writes much. */
struct gpd_blob *gpd_image_cache_add(struct gpd_image_uploader *uploader,
				     const uint8_t sha256[GPD_SHA256_SIZE], void *bytes,
				     size_t size);

/* Adds a reference, to be released with gpd_blob_unref(). The caller must have one already. */
void gpd_blob_ref(struct gpd_blob *blob);
/* Releases a reference. Accepts NULL. */
void gpd_blob_unref(struct gpd_blob *blob);

#endif /* GPD_IMAGE_CACHE_H */
