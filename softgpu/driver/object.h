/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Base of all objects for which the application has a handle (struct gs_object is their first
 * member or a member).
 *
 * The handle is the object's address. A hash table contains the live handles, so that an invalid
 * handle causes an error and is never dereferenced. To retire a handle is to remove it from the
 * table.
 * Ownership: reference counted. A reference keeps an object allocated after its handle was retired.
 * An object with an owner has no count of its own: a reference to it is a reference to the owner.
 * Threads: any; the table has a lock, and counts are atomic.
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

/* Members are private to object.c, except that `kind` and `owner` may be read. */
struct gs_object {
	enum gs_kind kind;
	unsigned int refs;
	struct gs_object *owner;
	void (*destroy)(struct gs_object *object);
	const void *handle;
	UT_hash_handle hh;
};

/* Initializes an object with one reference, which belongs to the creator. `owner` is borrowed and
 * must outlive the object; NULL: the object has its own count. `destroy` frees the object when the
 * last reference is dropped; it is NULL if and only if the object has an owner. */
void gs_object_init(struct gs_object *object, enum gs_kind kind, struct gs_object *owner,
		    void (*destroy)(struct gs_object *object));

/* Inserts the object's handle into the table, which makes it valid for gs_object_get(). Does not
 * add a reference; the handle must be retired before the object is freed. */
void gs_object_publish(struct gs_object *object);

/* Returns the object with a new reference, which gs_object_put() drops. NULL: not a live handle of
 * that kind, or the object is being destroyed. */
void *gs_object_get(const void *handle, enum gs_kind kind);

/* Removes a handle from the table. Returns true, or false if it was not a live handle of that kind.
 * References are unchanged. */
bool gs_object_retire(const void *handle, enum gs_kind kind);

/* Retires the handle of an arbitrary object of that kind and returns the object without a new
 * reference, or NULL when none is left. */
void *gs_object_retire_any(enum gs_kind kind);

/* Adds a reference. The caller must already have one. */
void gs_object_ref(struct gs_object *object);
/* Adds a reference and returns true, or returns false if the last reference has been dropped. */
bool gs_object_try_ref(struct gs_object *object);
/* Drops a reference. Dropping the last reference calls `destroy` in the calling thread. */
void gs_object_put(struct gs_object *object);

#endif /* GS_OBJECT_H */
