/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA arrays of a session, plain and mipmapped.
 *
 * Destroying an array frees its ID at once. When the preceding work is done and no texture or
 * surface object uses the array any more, it may be reused for an array of the same shape. Its
 * memory is freed when the device is nearly idle (quiesce.h), because the driver cannot destroy an
 * array without blocking all sessions. The memory stays charged to the session until then, or until
 * the session ends.
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

/* Registers the functions of array.c that memory/memory.h calls for arrays. Called once, while the
 * session is being created; session->memory must exist. */
void gpd_arrays_register(struct gpd_session *session);

/* State of an array. Once the client has destroyed the array, the lock of the worker's list
 * protects the state. An array that is reused becomes GPD_ARRAY_USED again. */
enum gpd_array_state {
	GPD_ARRAY_USED,    /* not destroyed */
	GPD_ARRAY_LEAVING, /* destroyed; work may still use it */
	GPD_ARRAY_IDLE,    /* unused: may be reused, or destroyed in the driver */
	GPD_ARRAY_FREEING, /* a thread is destroying it in the driver */
};

struct gpd_array {
	struct gpd_handle handle; /* its ID in the handle table, until it is destroyed */
	/* next in the worker's list of destroyed arrays, protected by the list's lock */
	struct gpd_array *next;
	/* Session that is charged, borrowed; NULL: the session has ended. Valid once the array is
	 * destroyed. Protected by the list's lock. */
	struct gpd_session *session;
	enum gpd_array_state state;
	struct gp_array_shape shape;
	int device;       /* the worker's number of its device */
	uint64_t charged; /* bytes charged to the session's account */
	/* number of references: its ID, and texture and surface objects; executor only */
	unsigned int users;
	/* the driver's, owned; only if shape.levels is not 0 (mipmapped) */
	CUmipmappedArray mipmap;
	/* the driver's; [0], owned, if it is not mipmapped, else borrowed from mipmap */
	CUarray levels[GP_ARRAY_LEVELS_MAX];
	/* sparse arrays only: sizes of tiles (sparse_array.h) */
	struct gp_array_tiling tiling;
	/* sparse arrays only: list of all memory that was ever mapped, owned */
	struct gpd_tiles_use *tiles;
};

static inline bool
gpd_array_is_sparse(const struct gpd_array *array)
{
	return array->shape.flags & CUDA_ARRAY3D_SPARSE;
}

/* Returns the array with this ID, borrowed; NULL: there is none. */
struct gpd_array *gpd_array_get(const struct gpd_session *session, uint32_t id);
/* Returns the driver's array of a level for a copy of the box, borrowed from the array. level must
 * be 0 for an array that is not mipmapped. id, level and box may come from the client unchecked.
 * Returns CUDA_SUCCESS and sets *array_p; CUDA_ERROR_INVALID_HANDLE if there is no such array; or
 * CUDA_ERROR_INVALID_VALUE if there is no such level or the box exceeds the level. */
CUresult gpd_array_find(const struct gpd_session *session, uint32_t id, uint32_t level,
			const struct gp_array_box *box, CUarray *array_p);

/* Drops a reference. Before it drops the reference of the ID, the caller removes the ID from the
 * handle table. Dropping the last reference destroys the array: it may be reused or freed when all
 * present work of the session is done; the function does not wait for that work. Returns
 * CUDA_SUCCESS; or an error of gpd_wait_add_all() (stream/responder.h), which means that the GPU
 * contexts are lost, and the array is freed with the session. */
CUresult gpd_array_release(struct gpd_session *session, struct gpd_array *array);

/* Drops a reference at the session's end, when no work is left, in the same way. Dropping the last
 * reference uncharges the array; a job of the worker frees it when the device is nearly idle
 * (device/quiesce_jobs.h). */
void gpd_array_release_at_end(struct gpd_session *session, struct gpd_array *array);

/* Destroys all arrays at the session's end, after its waits have ended and its textures are
 * destroyed. May wait for arrays that another thread is destroying. Called twice by
 * gpd_session_close() (executor/executor.h): if the GPU is lost, the first call is skipped, and the
 * second one removes all references to the session from the list. */
void gpd_arrays_destroy(struct gpd_session *session);

#endif /* GPD_ARRAY_H */
