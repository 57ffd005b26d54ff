/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloads: images that a session will probably load, because its program loaded them before or
 * because the session has just unloaded them.
 *
 * For each program of a tenant, the worker stores which images its sessions loaded. A new session
 * of the program gets these images as preloads: the Welcome message describes their kernels, their
 * bytes stay in memory, and their quotas are charged in advance. The session can then load each of
 * them once with gpImageUse, without waiting. A preload lasts until it is used or dropped, at the
 * latest until the session ends.
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
	/* bytes of its variables, charged to the device's memory; 0 if retired */
	uint64_t variables;
	/* The session had unloaded the image (gpd_preload_retire()). Its variables are charged only
	 * when it is loaded again. */
	bool retired;
};

/* Main thread: stores the key of the client's program in session->modules (all zeros: none,
 * has_program stays false) and creates the preloads of a session that runs it. Returns a packed
 * KnownImages for the Welcome, whose data the caller frees. Size 0: there are none, or memory is
 * exhausted; preloads that exist then stay charged until the session ends. Left out are images that
 * do not fit into the quotas, that were loaded on devices the session may not use, that are no
 * longer cached, or that have variables of more than 64 KiB. */
struct gp_bytes gpd_preload_create_all(struct gpd_session *session,
				       const uint8_t key[GPD_PROGRAM_KEY_SIZE]);

/* Records, for later sessions of the program and tenant, that the session has loaded this image
 * without options on the device. Does nothing if the client has sent no program key or memory is
 * exhausted. info: the description of its kernels that the client received, which is copied. */
void gpd_preload_learn(const struct gpd_session *session, struct gpd_blob *blob, int device,
		       struct gp_bytes info);

/* Removes the preload of the image with this hash on the device and returns it. The caller then
 * owns it with its reference to the blob and its charges (code, variables). To use the preload, it
 * takes over the reference and the charges, and frees the struct with free(); otherwise it calls
 * gpd_preload_release(). Returns NULL if there is no such preload. sha256 may come from the client,
 * unchecked. */
struct gpd_preload *gpd_preload_pop(struct gpd_session *session, struct gp_bytes sha256,
				    int device);

/* Turns an image that the session has unloaded into a preload, which takes over its charge `code`
 * and adds a reference to the blob. Beyond the limits GP_RETIRED_MAX and GP_RETIRED_BYTES
 * (protocol/image_info.h), drops the oldest of such preloads. If out of memory, only uncharges
 * `code`. */
void gpd_preload_retire(struct gpd_session *session, struct gpd_blob *blob, int device,
			uint64_t code);
/* Drops all preloads of images that the session had unloaded, and undoes their charges. */
void gpd_preload_drop_retired(struct gpd_session *session);

/* Frees a preload from gpd_preload_pop() that is not used after all, releases its blob and undoes
 * its charges. */
void gpd_preload_release(struct gpd_session *session, struct gpd_preload *preload);

/* Drops all preloads, and undoes their charges, at the session's end. */
void gpd_preload_drop_all(struct gpd_session *session);

#endif /* GPD_IMAGE_PRELOAD_H */
