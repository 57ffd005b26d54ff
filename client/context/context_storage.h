/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the CUDA runtimes of this process keep per context: a map from (context, key) to a pointer.
 * Every runtime (each library may carry its own) has one key, and looks it up once per CUDA call.
 * Process-wide; any thread may call. Reads that repeat take no lock. Values belong to the runtimes:
 * one is given back through its destructor, or forgotten.
 */
#ifndef GPC_CONTEXT_STORAGE_H
#define GPC_CONTEXT_STORAGE_H

#include <cuda.h>

typedef void gpc_context_storage_destructor(CUcontext ctx, void *key, void *value);

/* Takes the place of an earlier value, whose destructor is not called. destructor may be NULL. */
CUresult gpc_context_storage_put(CUcontext ctx, void *key, void *value,
				 gpc_context_storage_destructor *destructor);

/* CUDA_ERROR_INVALID_HANDLE when there is none: the runtime then makes its state and puts it. */
CUresult gpc_context_storage_get(void **value_p, CUcontext ctx, void *key);

/* Forgets without calling the destructor. */
CUresult gpc_context_storage_delete(CUcontext ctx, void *key);

/* For a context that is reset or destroyed: forgets its values and calls their destructors. */
void gpc_context_storage_reset(CUcontext ctx);

#endif /* GPC_CONTEXT_STORAGE_H */
