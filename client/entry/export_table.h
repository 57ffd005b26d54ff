/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private driver function tables for cuGetExportTable(), as the CUDA runtime and NVIDIA's libraries
 * expect them.
 *
 * Table slots that this library does not implement contain functions that return
 * CUDA_ERROR_NOT_SUPPORTED. If the environment variable GPUPOOL_LOG contains "tables", each table
 * query and each call of such a function is written to standard error.
 *
 * Ownership: tables are static; a table's address is valid for the life of the process.
 * Threads: any.
 */
#ifndef GPC_EXPORT_TABLE_H
#define GPC_EXPORT_TABLE_H

#include "client/entry/integrity.h"

#include <cuda.h>
#include <stdint.h>

/* Sets *table_p to the table with this ID and returns CUDA_SUCCESS. Returns
 * CUDA_ERROR_INVALID_VALUE for an unknown table, with *table_p set to NULL, and if a pointer is
 * NULL. */
CUresult gpc_export_table_get(const void **table_p, const CUuuid *id);

/* Functions of the rest of the client that the functions in the tables call, implemented in
 * export_needs.c. All are called inside the call guard (client/guard/guard.h), except
 * gpc_module_each_function(), which enters it itself, and gpc_context_get_current_token() and
 * gpc_devices_get_identity(), which need none. The tables also call the functions in init.h and
 * client/context/context_storage.h. */

/* Returns the handle of the calling thread's current context, or NULL if there is none. */
CUcontext gpc_context_get_current_token(void);

/* Sets *ctx_p to the handle of the device's primary context, without activating the context.
 * Returns CUDA_SUCCESS. Errors, after which *ctx_p is unchanged: CUDA_ERROR_INVALID_DEVICE for an
 * invalid ordinal, and those of gpc_enter_local() (client/context/context.h). */
CUresult gpc_context_primary_handle(CUcontext *ctx_p, CUdevice dev);

/* Stores the ID of a context. Same contract as cuCtxGetId(). */
CUresult gpc_context_id(CUcontext ctx, uint64_t *id_p);

/* Loads a module into the current context. Same contract as cuModuleLoadData(): image may be a
 * fatbin, a fatbin wrapper, an ELF file or PTX; it is not used after the return, and
 * cuModuleUnload() destroys the module. */
CUresult gpc_module_load(CUmodule *module_p, const void *image);

/* Calls visit(arg, function, 0) for each function of the module, in the order of the image, on the
 * calling thread. The call guard (client/guard/guard.h) is cleared meanwhile, so visit() may call
 * CUDA. Returns the number of functions visited, fewer than the module has if out of memory; 0 for
 * an invalid module, or if the thread is already inside a call of the library. */
int gpc_module_each_function(CUmodule hmod, void (*visit)(void *, CUfunction, uint64_t), void *arg);

/* Fills in the identities of at most max devices that the program sees, in the order of their
 * ordinals. Returns the number of devices filled in; 0 before the sessions are opened. */
int gpc_devices_get_identity(struct gpc_device_identity *out, int max);

#endif /* GPC_EXPORT_TABLE_H */
