/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Context-local storage of the CUDA runtimes in this process: a map from (context, key) to a
 * pointer.
 *
 * Each runtime (every library may contain its own) has one key, and looks it up once per CUDA call.
 *
 * Ownership: values belong to the runtimes; the storage returns a value by calling its destructor,
 * or drops it.
 * Threads: process-wide; any thread may call. A repeated lookup takes no lock.
 */
#ifndef GPC_CONTEXT_STORAGE_H
#define GPC_CONTEXT_STORAGE_H

#include <cuda.h>

typedef void gpc_context_storage_destructor(CUcontext ctx, void *key, void *value);

/* Stores a value. Replaces an earlier value without calling its destructor. destructor may be NULL.
 * Returns CUDA_SUCCESS or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gpc_context_storage_put(CUcontext ctx, void *key, void *value,
				 gpc_context_storage_destructor *destructor);

/* Looks up a value. Returns CUDA_ERROR_INVALID_HANDLE if there is none; the runtime then creates
 * its state and stores it. Returns CUDA_ERROR_NOT_PERMITTED in a signal handler that has
 * interrupted a call. */
CUresult gpc_context_storage_get(void **value_p, CUcontext ctx, void *key);

/* Removes a value without calling its destructor. Returns CUDA_ERROR_INVALID_HANDLE if there is
 * none. */
CUresult gpc_context_storage_delete(CUcontext ctx, void *key);

/* Removes all values of a context that is being reset or destroyed, and calls their destructors. */
void gpc_context_storage_reset(CUcontext ctx);

#endif /* GPC_CONTEXT_STORAGE_H */
