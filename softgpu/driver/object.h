/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything the application has a handle of begins with a struct gs_object. The handle is its
 * address; a table knows the live ones, so that a wrong handle is an error and never a pointer.
 * References keep an object alive after its handle is gone; objects with an owner count there.
 * Any thread may call.
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
	GS_KIND_ARRAY, /* a level of a mipmapped one has an owner */
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

/* One reference, the creator's. destroy is NULL exactly for objects with an owner. */
void gs_object_init(struct gs_object *object, enum gs_kind kind, struct gs_object *owner,
		    void (*destroy)(struct gs_object *object));

/* From now on gs_object_get() finds it. Takes no reference. */
void gs_object_publish(struct gs_object *object);

/* A new reference, or NULL: no live handle of that kind. */
void *gs_object_get(const void *handle, enum gs_kind kind);

/* The handle dies; false: it was none. References stay as they are. */
bool gs_object_retire(const void *handle, enum gs_kind kind);

/* Retires any one object of that kind, NULL when there is none left. */
void *gs_object_retire_any(enum gs_kind kind);

void gs_object_ref(struct gs_object *object);
/* false: it is on its way out. */
bool gs_object_try_ref(struct gs_object *object);
void gs_object_put(struct gs_object *object);

#endif /* GS_OBJECT_H */
