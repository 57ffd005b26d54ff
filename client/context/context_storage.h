/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Context-local storage of the CUDA runtimes in this process: a map from (context, key) to a
 * pointer, in which a runtime stores its state for a context. The runtimes use it through a private
 * table (client/entry/export_table.c).
 *
 * Each runtime (every library may contain its own) has one key. It looks up its value in every
 * call, so lookups must be fast. In all functions `ctx` is a context's handle, not NULL; the
 * private table replaces NULL by the current context.
 *
 * Ownership: values belong to the runtimes, and the map never frees them.
 * gpc_context_storage_reset() passes them to their destructors.
 * Threads: the map is process-wide; any thread may call. A lookup that a thread repeats acquires no
 * lock while the map does not change. Destructors are called without a lock, and may call these
 * functions and CUDA.
 */
#ifndef GPC_CONTEXT_STORAGE_H
#define GPC_CONTEXT_STORAGE_H

#include <cuda.h>

/* Called once when the context is reset or destroyed, with the value and its context and key. */
typedef void gpc_context_storage_destructor(CUcontext ctx, void *key, void *value);

/* Stores a value. Replaces an earlier value of the context and key without calling its destructor.
 * destructor may be NULL. Returns CUDA_SUCCESS, or CUDA_ERROR_OUT_OF_MEMORY with the map
 * unchanged. */
CUresult gpc_context_storage_put(CUcontext ctx, void *key, void *value,
				 gpc_context_storage_destructor *destructor);

/* Looks up a value. Returns CUDA_SUCCESS and stores the value in *value_p. Errors, after which
 * *value_p is unchanged: CUDA_ERROR_INVALID_HANDLE: there is none, so that the runtime creates its
 * state and stores it; CUDA_ERROR_NOT_PERMITTED: the caller is a signal handler that has
 * interrupted a call of the library, and the value is not in this thread's cache. */
CUresult gpc_context_storage_get(void **value_p, CUcontext ctx, void *key);

/* Removes a value without calling its destructor. Returns CUDA_SUCCESS, or
 * CUDA_ERROR_INVALID_HANDLE if there is none. */
CUresult gpc_context_storage_delete(CUcontext ctx, void *key);

/* Removes all values of a context, then calls their destructors. Called by gpc_context_reset()
 * (context.h) while the context still works. */
void gpc_context_storage_reset(CUcontext ctx);

#endif /* GPC_CONTEXT_STORAGE_H */
