/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base of all objects for which the application has a handle. The handle is the object's address; a
 * table has the live handles, so that an invalid handle causes an error and is never dereferenced.
 *
 * Ownership: reference counted. References keep an object allocated after its handle was retired;
 * references to an object with an owner count on the owner.
 * Threads: any.
 */
#ifndef GS_OBJECT_H
#define GS_OBJECT_H

#include <stdbool.h>
#include <uthash.h>

enum gs_kind {
	GS_KIND_STREAM = 1,
	GS_KIND_EVENT,
	GS_KIND_LIBRARY,
	GS_KIND_MODULE,
	GS_KIND_LIBRARY_MODULE,
	GS_KIND_KERNEL,
	GS_KIND_FUNCTION,
	GS_KIND_ALLOCATION,
	GS_KIND_ARRAY, /* a level of a mipmapped array has an owner */
	GS_KIND_MIPMAPPED_ARRAY,
	GS_KIND_TEXTURE,
	GS_KIND_SURFACE,
	GS_KIND_GREEN,
	GS_KIND_GREEN_CONTEXT,
	GS_KIND_RESOURCES,
	GS_KIND_LINKER,
	GS_KIND_TEXTURE_REFERENCE, /* owned by its code */
	GS_KIND_SURFACE_REFERENCE,
	GS_KIND_GRAPH,
	GS_KIND_GRAPH_NODE,
	GS_KIND_GRAPH_EXEC,
	GS_KIND_DEVICE_NODE,
};

struct gs_object {
	enum gs_kind kind;
	unsigned int refs;
	struct gs_object *owner;
	void (*destroy)(struct gs_object *object);
	const void *handle;
	UT_hash_handle hh;
};

/* Initializes an object with one reference, the creator's. destroy is NULL if and only if the
 * object has an owner. */
void gs_object_init(struct gs_object *object, enum gs_kind kind, struct gs_object *owner,
		    void (*destroy)(struct gs_object *object));

/* Makes the handle valid for gs_object_get(). Does not add a reference. */
void gs_object_publish(struct gs_object *object);

/* Returns a new reference, or NULL if it is not a live handle of that kind. */
void *gs_object_get(const void *handle, enum gs_kind kind);

/* Invalidates a handle; returns false if it was not valid. References are unchanged. */
bool gs_object_retire(const void *handle, enum gs_kind kind);

/* Retires an arbitrary object of that kind; returns NULL when none is left. */
void *gs_object_retire_any(enum gs_kind kind);

void gs_object_ref(struct gs_object *object);
/* Returns false if the object is being destroyed. */
bool gs_object_try_ref(struct gs_object *object);
void gs_object_put(struct gs_object *object);

#endif /* GS_OBJECT_H */
