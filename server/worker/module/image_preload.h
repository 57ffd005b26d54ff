/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloads: images that a session will probably load, because its program loaded them before or
 * because the session has just unloaded them.
 *
 * The worker stores for each program of a tenant which images its sessions loaded. For a new
 * session these are preloaded: the Welcome describes their kernels, their bytes stay in memory, and
 * their quotas are charged in advance. The session can then load each of them once with gpImageUse,
 * without waiting. A preload lasts until it is used or the session ends.
 *
 * Ownership: the session owns its preloads.
 * Threads: the main thread creates preloads before the session has an executor; afterwards executor
 * only.
 */
#ifndef GPD_IMAGE_PRELOAD_H
#define GPD_IMAGE_PRELOAD_H

#include "protocol/enc.h"

#include <stdbool.h>
#include <stdint.h>

#define GPD_PROGRAM_KEY_SIZE 32

struct gpd_blob;
struct gpd_session;

struct gpd_preload {
	struct gpd_preload *next;
	struct gpd_blob *blob; /* a reference */
	int device;
	uint64_t code;      /* charged to the session's code memory */
	uint64_t variables; /* charged to device memory */
	bool retired;       /* the session had unloaded it: variables are charged at the load */
};

/* Creates the preloads of a session of this program. Returns a packed KnownImages for the Welcome,
 * for the caller to free; no bytes: none. A key of zeros means no program. */
struct gp_bytes gpd_preload_create_all(struct gpd_session *session,
				       const uint8_t program[GPD_PROGRAM_KEY_SIZE]);

/* Records that the session has loaded this image without options. info: the description of its
 * kernels that the client received. */
void gpd_preload_learn(const struct gpd_session *session, struct gpd_blob *blob, int device,
		       struct gp_bytes info);

/* Removes the preload of this image on the device and returns it; the caller frees it and owns its
 * blob and charges. NULL: there is none. */
struct gpd_preload *gpd_preload_pop(struct gpd_session *session, struct gp_bytes sha256,
				    int device);

/* Turns an image that the session has unloaded into a preload, which takes over its charge `code`.
 * The oldest of these are dropped beyond a limit (protocol/image_info.h). */
void gpd_preload_retire(struct gpd_session *session, struct gpd_blob *blob, int device,
			uint64_t code);
/* Drops all preloads of unloaded images. */
void gpd_preload_drop_retired(struct gpd_session *session);

/* Frees a preload from gpd_preload_pop() that is not used after all, and undoes its charges. */
void gpd_preload_release(struct gpd_session *session, struct gpd_preload *preload);

/* Drops all unused preloads at the session's end. */
void gpd_preload_drop_all(struct gpd_session *session);

#endif /* GPD_IMAGE_PRELOAD_H */
