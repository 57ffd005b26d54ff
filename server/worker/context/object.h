/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that exist only in the driver (GP_KIND with DESTROY): the client's name, the driver's
 * handle, and the driver's function that destroys it.
 *
 * Ownership: the session, through its handle table. An object that belongs to a context is
 * destroyed with it, all others with the session.
 * Threads: executor only.
 * Errors: CUresult; CUDA_ERROR_INVALID_HANDLE for a name in use.
 */
#ifndef GPD_OBJECT_H
#define GPD_OBJECT_H

#include "protocol/scratch.h"
#include "server/worker/session/handle.h"

#include <cuda.h>
#include <stdbool.h>

struct gpd_context;
struct gpd_session;

struct gpd_object {
	struct gpd_handle handle;
	struct gpd_context *context; /* context it belongs to; NULL: the session */
	int device;
	void *driver;
	struct gp_scratch memory; /* used by hand-written calls; freed with the object */
	void *extra;
	uint64_t charged; /* bytes of the machine's memory in addition to the kind's COST */
	uint64_t code;    /* bytes charged to code-memory */
};

/* Generated. end destroys the driver's object; NULL for kinds that are handled by hand. */
struct gpd_object_kind {
	CUresult (*end)(void *driver);
	bool goes_with_context;
};
extern const struct gpd_object_kind gpd_object_kinds[];

/* Charges bytes that the driver or the object uses until it is destroyed; false: over the session's
 * limit. */
bool gpd_object_charge(struct gpd_session *session, struct gpd_object *object, uint64_t bytes);

/* Adds an object that the driver has created in the call's context. On failure the driver's object
 * is destroyed. */
CUresult gpd_object_add(struct gpd_session *session, enum gpd_kind kind, uint32_t id, void *driver);

/* Returns NULL if there is no such object. */
struct gpd_object *gpd_object_get(const struct gpd_session *session, enum gpd_kind kind,
				  uint32_t id);

/* Returns the client's name of a driver's object; 0: none. */
uint32_t gpd_object_id(struct gpd_session *session, enum gpd_kind kind, const void *driver);

/* Removes an object that the driver has already destroyed. */
void gpd_object_drop(struct gpd_session *session, enum gpd_kind kind, uint32_t id);

/* Destroys the objects of the context; NULL: all. */
void gpd_objects_destroy_context(struct gpd_session *session, const struct gpd_context *context);
/* Destroys all objects. */
void gpd_objects_destroy_all(struct gpd_session *session);

#endif /* GPD_OBJECT_H */
