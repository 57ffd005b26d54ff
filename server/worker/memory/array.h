/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays of a session, plain and mipmapped.  Destroying one gives its name back at once.  When the
 * work before is done and no texture or surface object is of it any more it may be used again for
 * an array of the same shape; its memory goes at a quiet moment of the device (quiet.h), for
 * the driver cannot destroy arrays without holding up everybody, and counts for the session until
 * then, or until the session ends.  Executor only, where nothing else is said.  One that has left
 * is in a list alone, under its lock; who has given its memory to the driver frees it.
 */
#ifndef GPD_ARRAY_H
#define GPD_ARRAY_H

#include "protocol/array_tiles.h"
#include "server/worker/session/handle.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_session;
struct gpd_tiles_use;

/*
 * The part of a session that its arrays have.
 * Threads: the executor.
 */
struct gpd_array_session {
	uint32_t count;         /* arrays that have a name */
	uint32_t texture_count; /* objects made of arrays and of memory; texture.h */
};

/* The session has memory.  -ENOMEM. */
int gpd_array_session_create(struct gpd_session *session);
void gpd_array_session_destroy(struct gpd_session *session);

enum gpd_array_state {
	GPD_ARRAY_USED,
	GPD_ARRAY_LEAVING, /* work may still use it */
	GPD_ARRAY_IDLE,    /* the driver may have it */
	GPD_ARRAY_FREEING, /* the driver is being given it */
};

struct gpd_array {
	struct gpd_handle name;
	struct gpd_array *next;      /* of all that are leaving */
	struct gpd_session *session; /* whose it is while it is leaving; NULL: that has ended */
	enum gpd_array_state state;
	struct gp_array_shape shape;
	int device;
	uint64_t charged;
	unsigned int users; /* its name, and objects made of it */
	CUmipmappedArray mipmap;
	CUarray levels[GP_ARRAY_LEVELS_MAX];
	/* Of a sparse one: tiles.h. */
	struct gp_array_tiling tiling;
	struct gpd_tiles_use *tiles;
};

static inline bool
gpd_array_is_sparse(const struct gpd_array *array)
{
	return array->shape.flags & CUDA_ARRAY3D_SPARSE;
}

/* NULL: there is none of this name. */
struct gpd_array *gpd_array_get(const struct gpd_session *session, uint32_t id);
/* A level's box for a copy; CUDA_ERROR_INVALID_HANDLE, or CUDA_ERROR_INVALID_VALUE: the box does
 * not lie in it. */
CUresult gpd_array_find(const struct gpd_session *session, uint32_t id, uint32_t level,
			const struct gp_array_box *box, CUarray *array_p);

/* Of the users one less; the last one gives it back. */
CUresult gpd_array_release(struct gpd_session *session, struct gpd_array *array);

/* The same at the session's end, when no work is left. */
void gpd_array_release_at_end(struct gpd_session *session, struct gpd_array *array);

/* At the session's end, when nothing waits any more and its textures are gone: all of them, or, if
 * the names are gone with the context, what is left of them. */
void gpd_arrays_destroy(struct gpd_session *session);

#endif /* GPD_ARRAY_H */
