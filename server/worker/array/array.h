/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA arrays of a session, plain and mipmapped.
 *
 * Destroying an array frees its name at once. When the preceding work is done and no texture or
 * surface object uses the array any more, it may be reused for an array of the same shape. Its
 * memory is freed when the device is idle (idle.h), because the driver cannot destroy an array
 * without blocking all sessions. The memory stays charged to the session until then, or until the
 * session ends.
 *
 * Ownership: the session, through its handle table. A destroyed array is only in a list of the
 * worker, and is freed by the thread that has returned its memory to the driver.
 * Threads: executor only, unless noted. The list has a lock of its own.
 * Errors: CUresult, unless noted.
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
	GPD_ARRAY_LEAVING, /* destroyed; work may still use it */
	GPD_ARRAY_IDLE,    /* unused: may be reused, or freed by the driver */
	GPD_ARRAY_FREEING, /* the driver is freeing it */
};

struct gpd_array {
	struct gpd_handle name;
	struct gpd_array *next;      /* list of destroyed arrays */
	struct gpd_session *session; /* charged while destroyed; NULL: ended */
	enum gpd_array_state state;
	struct gp_array_shape shape;
	int device;
	uint64_t charged;
	unsigned int users; /* references: its name, and objects that use it */
	CUmipmappedArray mipmap;
	CUarray levels[GP_ARRAY_LEVELS_MAX];
	/* Sparse arrays only; sparse_array.h. */
	struct gp_array_tiling tiling;
	struct gpd_tiles_use *tiles;
};

static inline bool
gpd_array_is_sparse(const struct gpd_array *array)
{
	return array->shape.flags & CUDA_ARRAY3D_SPARSE;
}

/* Returns NULL if there is no such array. */
struct gpd_array *gpd_array_get(const struct gpd_session *session, uint32_t id);
/* Returns the driver's array of a level for a copy of the box. CUDA_ERROR_INVALID_HANDLE: no such
 * array; CUDA_ERROR_INVALID_VALUE: no such level, or the box exceeds it. */
CUresult gpd_array_find(const struct gpd_session *session, uint32_t id, uint32_t level,
			const struct gp_array_box *box, CUarray *array_p);

/* Drops a reference; the last one destroys the array. */
CUresult gpd_array_release(struct gpd_session *session, struct gpd_array *array);

/* The same at the session's end, when no work is left. */
void gpd_array_release_at_end(struct gpd_session *session, struct gpd_array *array);

/* Destroys all arrays at the session's end, after its waits have ended and its textures are
 * destroyed. May be called again: it then only detaches the destroyed arrays that are still listed
 * from the session. */
void gpd_arrays_destroy(struct gpd_session *session);

#endif /* GPD_ARRAY_H */
