/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images that a session will probably load: what its program loaded before, or what it has
 * unloaded.
 *
 * The worker remembers for each program of a tenant which images its sessions loaded.  A session
 * that begins is promised them: it is told of their kernels in its Welcome, their bytes stay in
 * memory, and what loading them takes of its quotas is taken.  So it can load each once with
 * gpImageUse, without waiting.  A promise is the session's until it is kept or the session ends.
 *
 * A promise is made by the main thread, before the session has an executor; kept and forgotten by
 * the executor.
 */
#ifndef GPD_PROMISE_H
#define GPD_PROMISE_H

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
	uint64_t code;      /* taken of what the session may have of device code */
	uint64_t variables; /* and of the device's memory */
	bool retired;       /* the session had it: its variables are charged when it is loaded */
};

/* What a session of this program is told, a packed KnownImages, malloc'ed; no bytes: nothing.  All
 * zeros are no program. */
struct gp_bytes gpd_preload_create_all(struct gpd_session *session,
				       const uint8_t program[GPD_PROGRAM_KEY_SIZE]);

/* The session has loaded this without options; info: what it was told of its kernels. */
void gpd_preload_learn(const struct gpd_session *session, struct gpd_blob *blob, int device,
		       struct gp_bytes info);

/* The promise of this image on the device: the caller's now, to be freed.  NULL: there is none. */
struct gpd_preload *gpd_preload_pop(struct gpd_session *session, struct gp_bytes sha256,
				    int device);

/* The session has unloaded an image of these bytes, for which it has taken so much: both are the
 * promise's now.  Of the oldest of these there may be too many (protocol/image_info.h). */
void gpd_preload_retire(struct gpd_session *session, struct gpd_blob *blob, int device,
			uint64_t code);
/* All of those are given up. */
void gpd_preload_drop_retired(struct gpd_session *session);

/* It is not kept after all. */
void gpd_preload_release(struct gpd_session *session, struct gpd_preload *preload);

/* Those that were not kept. */
void gpd_preload_drop_all(struct gpd_session *session);

#endif /* GPD_PROMISE_H */
