/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The private function tables that the CUDA runtime and NVIDIA's libraries ask of their driver, for
 * cuGetExportTable. A table lies at one address for the life of the process; any thread may ask.
 * What a table has but this library cannot do is a function that answers
 * CUDA_ERROR_NOT_SUPPORTED. With "tables" in the environment variable GPUPOOL_LOG every request
 * and every call of such a function is written to stderr.
 */
#ifndef GPC_EXPORT_TABLE_H
#define GPC_EXPORT_TABLE_H

#include "client/entry/integrity.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* CUDA_ERROR_INVALID_VALUE and NULL for a table that is not served. */
CUresult gpc_export_table_get(const void **table_p, const CUuuid *id);

/* What the tables need of the rest of the client (export_needs.c; besides it, init.h). */

/* NULL when the thread has none. */
CUcontext gpc_context_get_current_token(void);

/* The handle of the device's primary context, which stays inactive if it is. */
CUresult gpc_context_primary_handle(CUcontext *ctx_p, CUdevice dev);

/* As cuCtxGetId. */
CUresult gpc_context_id(CUcontext ctx, uint64_t *id_p);

/* As cuModuleLoadData: image may be a fatbin, its wrapper, an ELF or PTX. */
CUresult gpc_module_load(CUmodule *module_p, const void *image);

/* Calls for every function of the module; returns their number. */
int gpc_module_each_function(CUmodule module,
			     void (*callback)(void *opaque, CUfunction function, uint64_t number),
			     void *opaque);

/* Fills in devices in the order of ordinals; returns how many, at most max. */
int gpc_devices_get_identity(struct gpc_device_identity *out, int max);

#endif /* GPC_EXPORT_TABLE_H */
