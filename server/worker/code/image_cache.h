/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device code by its SHA-256, kept for the sessions of the worker and, on disk, for later workers.
 *
 * A blob is one image's bytes, counted, never changed once it is made.  Blobs that nobody holds
 * stay in memory up to a limit, the most recently used ones.  Who keeps a blob for nobody has a
 * reference, too, but its bytes count as kept (code_memory.h) if there are no others.  On disk each
 * is a file named by the hash; a file that does not have it is thrown away.  Any thread.
 */
#ifndef GPD_IMAGE_CACHE_H
#define GPD_IMAGE_CACHE_H

#include "server/worker/code/image_scan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPD_SHA256_SIZE 32

/* Of a text that is kept about an image. */
#define GPD_NOTE_MAX ((size_t)64 << 10)

struct gp_image;
struct gpd_blob;
struct gpd_code_memory;

struct gpd_image_name {
	uint8_t sha256[GPD_SHA256_SIZE];
	uint64_t size;
};

/* Limits in bytes. */
struct gpd_image_cache_limits {
	uint64_t memory; /* of blobs that nobody holds */
	uint64_t disk;
};

/* dir NULL: where the environment says (GPUPOOL_CACHE_DIR, XDG_CACHE_HOME, HOME), "": nowhere. */
void gpd_image_cache_start(const char *dir, const struct gpd_image_cache_limits *limits);

/* Waits for what is being written and drops what nobody holds. */
void gpd_image_cache_stop(void);

/* NULL: in neither place; or, `full`, it is there, but not held by anybody, and there is no memory
 * left for it (as gpd_image_cache_take() says, by itself). */
struct gpd_blob *gpd_image_cache_find(const struct gpd_image_name *name, uint64_t more, bool *full);
/* The same in memory only. */
struct gpd_blob *gpd_image_cache_get(const struct gpd_image_name *name, uint64_t more, bool *full);

/* The same, without its being used. */
struct gpd_blob *gpd_image_cache_peek(const struct gpd_image_name *name);

/* Whether there is a disk. */
bool gpd_image_cache_is_kept(void);

/* It counts as used now. */
void gpd_image_cache_use(const uint8_t sha256[GPD_SHA256_SIZE]);

/* Those on disk about which there is a note, the last used ones first. */
size_t gpd_image_cache_recent(struct gpd_image_name *names, size_t room);

/* A text about an image, kept beside it on disk for later workers: malloc'ed, or NULL.  Who writes
 * one uses the image.  false: it is not there (yet). */
char *gpd_image_cache_note(const uint8_t sha256[GPD_SHA256_SIZE]);
bool gpd_image_cache_set_note(const uint8_t sha256[GPD_SHA256_SIZE], const char *text);
/* While it is held there is none, also for later workers. */
bool gpd_image_cache_hold_note(const uint8_t sha256[GPD_SHA256_SIZE], bool hold);

/* Takes bytes over, whose hash this is (from gpd_image_bytes_alloc()), and what was taken for them;
 * NULL: no memory. */
struct gpd_blob *gpd_image_cache_add(const uint8_t sha256[GPD_SHA256_SIZE], void *bytes,
				     size_t size);

/*
 * Before bytes come, and if they are not added after all: all workers together have a part of the
 * machine's memory for images (code_memory.h).  False: there is not so much left, and nothing was
 * taken.  `more`: as gpd_code_take() has it.
 */
bool gpd_image_cache_take(uint64_t size, uint64_t more);
void gpd_image_cache_give(uint64_t size);
/* Whether it would work at this moment. */
bool gpd_image_cache_could_take(uint64_t size, uint64_t more);
/* The limit is another one: what is kept beyond it goes. */
void gpd_image_cache_trim(void);
/* What there is may be more than that memory: what is kept for nobody is to go. */
bool gpd_image_cache_is_beyond(void);
/* More is kept here than stays: some of it goes when no kernel runs. */
bool gpd_image_cache_is_dropping(void);
/* Of it, what a worker may keep for nobody. */
uint64_t gpd_image_cache_part(void);
/* Before the first image: that there is such a limit.  -EAGAIN: there are too many workers. */
int gpd_image_cache_account(struct gpd_code_memory *memory);

void gpd_blob_ref(struct gpd_blob *blob);
/* Accepts NULL. */
void gpd_blob_unref(struct gpd_blob *blob);

/* One of its references is of who keeps it for nobody; it is not any more, and the caller has
 * another one; or it is given up. */
void gpd_blob_keep(struct gpd_blob *blob);
void gpd_blob_unkeep(struct gpd_blob *blob);
void gpd_blob_drop(struct gpd_blob *blob);

/* 0, or why the bytes are no image (image/fatbin.h). The view lives as long as the blob. */
int gpd_blob_image(struct gpd_blob *blob, const struct gp_image **image_p);
size_t gpd_blob_size(const struct gpd_blob *blob);
const uint8_t *gpd_blob_sha256(const struct gpd_blob *blob);

/* What its kernels call. */
struct gpd_image_uses gpd_blob_uses(struct gpd_blob *blob);

/* Aligned as images must be; free() frees it. */
void *gpd_image_bytes_alloc(size_t size);

#endif /* GPD_IMAGE_CACHE_H */
