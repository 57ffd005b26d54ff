/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects that exist only in the driver, of the kinds described with DESTROY in codegen/api/. Each
 * object has the client's ID and the driver's handle. Its kind has the driver's function that
 * destroys it.
 *
 * Ownership: the session's handle table refers to the objects, and this module frees them. An
 * object that belongs to a context is destroyed with it, all others at the session's end, unless
 * the client destroys it first.
 * Threads: executor only.
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
	/* Context with which it is destroyed, borrowed; NULL: it is destroyed at the session's
	 * end. */
	struct gpd_context *context;
	int device;   /* ordinal of the device on which it was created */
	void *driver; /* the driver's handle */
	/* Memory for functions that handle this kind themselves; freed with the object. */
	struct gp_scratch memory;
	/* for functions that handle this kind themselves; points into `memory` or is not owned */
	void *extra;
	uint64_t charged; /* bytes of host memory charged in addition to the COST of the kind */
	/* bytes charged by gpd_account_charge_code() (account.h); uncharged with the object */
	uint64_t code;
};

/* Properties of a kind of object. */
struct gpd_object_kind {
	/* Destroys the driver's object and returns the driver's result; NULL: not a kind of this
	 * module. */
	CUresult (*end)(void *driver);
	bool goes_with_context; /* objects of this kind are destroyed with their context */
};
/* All kinds, indexed by enum gpd_kind; generated. */
extern const struct gpd_object_kind gpd_object_kinds[];

/* Charges bytes of host memory that the driver or the object uses, in addition to earlier calls,
 * until the object is freed. Returns true; or false, and charges nothing, if the session's limit is
 * reached. */
bool gpd_object_charge(struct gpd_session *session, struct gpd_object *object, uint64_t bytes);

/* Adds an object that the driver has created in the current call's context, whose device must still
 * be current, under the client's ID (unchecked). Takes ownership of `driver`: on failure the
 * driver's object is destroyed. Returns CUDA_SUCCESS; CUDA_ERROR_OUT_OF_MEMORY; or
 * CUDA_ERROR_INVALID_HANDLE if the ID is 0 or in use, which ends the session. */
CUresult gpd_object_add(struct gpd_session *session, enum gpd_kind kind, uint32_t id, void *driver);

/* Returns the object with this ID, borrowed; NULL: there is none. */
struct gpd_object *gpd_object_get(const struct gpd_session *session, enum gpd_kind kind,
				  uint32_t id);

/* Returns the client's ID of a driver's object; 0: no object of this kind in the session has that
 * handle. Searches linearly. */
uint32_t gpd_object_id(struct gpd_session *session, enum gpd_kind kind, const void *driver);

/* Frees an object whose driver's object was already destroyed, with its `memory`, and uncharges it.
 * Does nothing if there is no object with this ID. */
void gpd_object_drop(struct gpd_session *session, enum gpd_kind kind, uint32_t id);

/* Destroys the objects that belong to the context (NULL: all objects of the session), in the driver
 * as well. Errors of the driver are ignored. Changes the current device. */
void gpd_objects_destroy_context(struct gpd_session *session, const struct gpd_context *context);
/* Destroys all objects of the session, in the driver as well, at the session's end. */
void gpd_objects_destroy_all(struct gpd_session *session);

#endif /* GPD_OBJECT_H */
