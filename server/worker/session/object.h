/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of a session that are the driver's and nothing else (GP_KIND with DESTROY): a name of the
 * client's, the driver's handle, and the driver's function that ends it.  The session's table owns
 * them; one that goes with its context ends with that, all end with the session.  Executor only.
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
	struct gpd_context *context; /* in which it was made; NULL: it goes with the session */
	int device;
	void *driver;
	struct gp_scratch memory; /* of hand-written calls: it goes with the object */
	void *extra;
	uint64_t charged; /* bytes of the machine's memory besides the kind's COST */
	uint64_t code;    /* bytes charged to code-memory */
};

/* Generated.  end is NULL for a kind whose life is written by hand. */
struct gpd_object_kind {
	CUresult (*end)(void *driver);
	bool goes_with_context;
};
extern const struct gpd_object_kind gpd_object_kinds[];

/* Counts bytes that the driver or the object keeps until it ends; false: it may not have them. */
bool gpd_object_charge(struct gpd_session *session, struct gpd_object *object, uint64_t bytes);

/* Adds an object that the driver has created in the call's context.  Errors: the object is ended.
 */
CUresult gpd_object_add(struct gpd_session *session, enum gpd_kind kind, uint32_t id, void *driver);

/* NULL: no such object. */
struct gpd_object *gpd_object_get(const struct gpd_session *session, enum gpd_kind kind,
				  uint32_t id);

/* The client's name of the driver's object; 0: it has none. */
uint32_t gpd_object_id(struct gpd_session *session, enum gpd_kind kind, const void *driver);

/* The driver has ended it. */
void gpd_object_drop(struct gpd_session *session, enum gpd_kind kind, uint32_t id);

/* Ends those that go with the context; NULL: all. */
void gpd_objects_destroy_context(struct gpd_session *session, const struct gpd_context *context);
/* Ends all. */
void gpd_objects_destroy_all(struct gpd_session *session);

#endif /* GPD_OBJECT_H */
