/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Context-local storage of the CUDA runtimes in this process: a map from (context, key) to a
 * pointer.
 *
 * Each runtime (every library may contain its own) has one key, and looks it up once per CUDA call.
 *
 * Ownership: values belong to the runtimes and are only stored. gpc_context_storage_reset() returns
 * them by calling their destructors; otherwise the map drops them without freeing.
 * Threads: the map is process-wide; any thread may call. A repeated lookup takes no lock.
 * Destructors are called without a lock, and may call these functions.
 */
#ifndef GPC_CONTEXT_STORAGE_H
#define GPC_CONTEXT_STORAGE_H

#include <cuda.h>

/* Called once when the context is reset, with the value and its context and key. */
typedef void gpc_context_storage_destructor(CUcontext ctx, void *key, void *value);

/* Stores a value. Replaces an earlier value of the context and key without calling its destructor.
 * destructor may be NULL. Returns CUDA_SUCCESS, or CUDA_ERROR_OUT_OF_MEMORY with the map
 * unchanged. */
CUresult gpc_context_storage_put(CUcontext ctx, void *key, void *value,
				 gpc_context_storage_destructor *destructor);

/* Looks up a value and stores it in *value_p, which is unchanged after an error. Returns
 * CUDA_SUCCESS. Returns CUDA_ERROR_INVALID_HANDLE if there is none; the runtime then creates its
 * state and stores it. Returns CUDA_ERROR_NOT_PERMITTED in a signal handler that has interrupted a
 * call. */
CUresult gpc_context_storage_get(void **value_p, CUcontext ctx, void *key);

/* Removes a value without calling its destructor. Returns CUDA_SUCCESS, or
 * CUDA_ERROR_INVALID_HANDLE if there is none. */
CUresult gpc_context_storage_delete(CUcontext ctx, void *key);

/* Removes all values of a context that is being reset or destroyed, and calls their destructors. */
void gpc_context_storage_reset(CUcontext ctx);

#endif /* GPC_CONTEXT_STORAGE_H */
