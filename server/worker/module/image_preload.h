/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloads: images that a session will probably load, because its program loaded them before or
 * because the session has just unloaded them.
 *
 * The worker stores for each program of a tenant which images its sessions loaded. For a new
 * session these are preloaded: the Welcome message describes their kernels, their bytes stay in
 * memory, and their quotas are charged in advance. The session can then load each of them once with
 * gpImageUse, without waiting. A preload lasts until it is used or the session ends.
 *
 * Ownership: the session owns its preloads.
 * Threads: the main thread creates preloads before the session has an executor; afterwards executor
 * only. No function blocks on the GPU.
 */
#ifndef GPD_IMAGE_PRELOAD_H
#define GPD_IMAGE_PRELOAD_H

#include "protocol/enc.h"

#include <stdbool.h>
#include <stdint.h>

/* Size in bytes of Hello.program_key, which identifies a program. */
#define GPD_PROGRAM_KEY_SIZE 32

struct gpd_blob;
struct gpd_session;

/* A preload. */
struct gpd_preload {
	struct gpd_preload *next; /* list gpd_module_session.preloads */
	struct gpd_blob *blob;    /* a reference */
	int device;               /* ordinal of the device on which the image will be loaded */
	uint64_t code;            /* bytes charged to the session's code memory */
	uint64_t variables;       /* bytes charged to device memory */
	/* The session had unloaded the image; its variables are not charged yet, but at the
	 * load. */
	bool retired;
};

/* Creates the preloads of a session whose client runs this program; a key of zeros means that the
 * program is not known. Returns a packed KnownImages for the Welcome, whose data the caller frees;
 * size 0: there are none. Images that do not fit into the quotas are left out. */
struct gp_bytes gpd_preload_create_all(struct gpd_session *session,
				       const uint8_t program[GPD_PROGRAM_KEY_SIZE]);

/* Records for later sessions of the program that the session has loaded this image without options.
 * info: the description of its kernels that the client received, which is copied. */
void gpd_preload_learn(const struct gpd_session *session, struct gpd_blob *blob, int device,
		       struct gp_bytes info);

/* Removes the preload of the image with this hash on the device and returns it. The caller takes
 * over its blob reference and charges and frees it with free(), or gives all back with
 * gpd_preload_release(). NULL: there is none. */
struct gpd_preload *gpd_preload_pop(struct gpd_session *session, struct gp_bytes sha256,
				    int device);

/* Turns an image that the session has unloaded into a preload, which takes over its charge `code`
 * and adds a reference to the blob. The oldest of such preloads are dropped beyond a limit
 * (protocol/image_info.h). If out of memory, only uncharges `code`. */
void gpd_preload_retire(struct gpd_session *session, struct gpd_blob *blob, int device,
			uint64_t code);
/* Drops all preloads of images that the session had unloaded. */
void gpd_preload_drop_retired(struct gpd_session *session);

/* Frees a preload from gpd_preload_pop() that is not used after all, releases its blob and undoes
 * its charges. */
void gpd_preload_release(struct gpd_session *session, struct gpd_preload *preload);

/* Drops all unused preloads at the session's end. */
void gpd_preload_drop_all(struct gpd_session *session);

#endif /* GPD_IMAGE_PRELOAD_H */
