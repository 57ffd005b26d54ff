/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA arrays of a session, plain and mipmapped.
 *
 * Destroying an array frees its ID at once. When the preceding work is done and no texture or
 * surface object uses the array any more, it may be reused for an array of the same shape. Its
 * memory is freed when the device is idle (idle.h), because the driver cannot destroy an array
 * without blocking all sessions. The memory stays charged to the session until then, or until the
 * session ends.
 *
 * Ownership: the session's handle table refers to the arrays. A destroyed array belongs to a list
 * of the worker, and is freed by the thread that destroys it in the driver.
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
 * Counters of a session's arrays: session->arrays.
 * Threads: executor only.
 */
struct gpd_array_session {
	uint32_t count;         /* number of arrays that have an ID */
	uint32_t texture_count; /* number of texture and surface objects; texture.h */
};

/* Registers the functions that memory.h calls for arrays; session->memory must exist. */
void gpd_arrays_register(struct gpd_session *session);

/* State of an array. While the array is destroyed, the lock of the worker's list protects it. */
enum gpd_array_state {
	GPD_ARRAY_USED,    /* not destroyed */
	GPD_ARRAY_LEAVING, /* destroyed; work may still use it */
	GPD_ARRAY_IDLE,    /* unused: may be reused, or destroyed in the driver */
	GPD_ARRAY_FREEING, /* a thread is destroying it in the driver */
};

struct gpd_array {
	struct gpd_handle name;
	/* next in the worker's list of destroyed arrays, protected by the list's lock */
	struct gpd_array *next;
	/* While destroyed: session that is charged, borrowed; NULL: the session has ended.
	 * Protected by the list's lock. */
	struct gpd_session *session;
	enum gpd_array_state state;
	struct gp_array_shape shape;
	int device;
	uint64_t charged;        /* bytes charged for it */
	unsigned int users;      /* number of references: its ID, and objects that use it */
	CUmipmappedArray mipmap; /* of the driver; only if it is mipmapped (shape.levels) */
	CUarray levels[GP_ARRAY_LEVELS_MAX]; /* of the driver; [0] only if it is not mipmapped */
	/* Sparse arrays only (sparse_array.h): sizes of tiles, and memory that was mapped. */
	struct gp_array_tiling tiling;
	struct gpd_tiles_use *tiles;
};

static inline bool
gpd_array_is_sparse(const struct gpd_array *array)
{
	return array->shape.flags & CUDA_ARRAY3D_SPARSE;
}

/* Returns the array with this ID, borrowed; NULL: there is none. */
struct gpd_array *gpd_array_get(const struct gpd_session *session, uint32_t id);
/* Returns the driver's array of a level for a copy of the box, borrowed from the array. level: 0 if
 * it is not mipmapped. CUDA_ERROR_INVALID_HANDLE: no such array; CUDA_ERROR_INVALID_VALUE: no such
 * level, or the box exceeds it. *array_p is set on success only. */
CUresult gpd_array_find(const struct gpd_session *session, uint32_t id, uint32_t level,
			const struct gp_array_box *box, CUarray *array_p);

/* Drops a reference. Dropping the last reference destroys the array: it may be reused or freed when
 * all present work of the session is done; the function does not wait for that work. Returns
 * CUDA_SUCCESS; or an error if the GPU contexts are lost, and the array is freed with the
 * session. */
CUresult gpd_array_release(struct gpd_session *session, struct gpd_array *array);

/* Drops a reference at the session's end, when no work is left. Dropping the last reference
 * uncharges the array and leaves it to be freed when the device is idle. */
void gpd_array_release_at_end(struct gpd_session *session, struct gpd_array *array);

/* Destroys all arrays at the session's end, after its waits have ended and its textures are
 * destroyed. May wait for arrays that another thread is destroying. May be called again: it then
 * only detaches destroyed arrays that are still listed from the session. */
void gpd_arrays_destroy(struct gpd_session *session);

#endif /* GPD_ARRAY_H */
