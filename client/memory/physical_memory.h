/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory of the application (cuMemCreate), which the daemon has, or, where its location is
 * the host, a file in memory of this process.  What the daemon has is kept when it has been
 * released and is mapped nowhere (memory_cache.h), unless it was shared.  The caller locks the
 * calls of virtual_memory.c.
 */
#ifndef GPC_PHYSICAL_MEMORY_H
#define GPC_PHYSICAL_MEMORY_H

#include "client/base/handle.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gp_ipc_handle;
struct gpc_device;
struct gpc_ipc_export;

struct gpc_physical {
	struct gpc_handle handle;
	struct gpc_device *device;
	uint64_t size;
	CUmemAllocationProp prop;
	int users;    /* cuMemCreate and cuMemRetainAllocationHandle, less cuMemRelease */
	int mappings; /* it goes when it has neither */
	struct gpc_ipc_export *share; /* NULL: nothing of this process opens it for others */
	bool shared;                  /* others have it, or may have */
	int host;                     /* the file of host memory; -1: it is the device's */
};

/* Whether such memory can be had at all. */
CUresult gpc_physical_check_prop(const CUmemAllocationProp *prop);
/* prop has been checked. */
CUresult gpc_physical_create(uint64_t size, const CUmemAllocationProp *prop,
			     CUmemGenericAllocationHandle *handle);
/* Whether any has been.  Any thread, without that lock. */
bool gpc_physical_any_shared(void);
/* Others may open it from now on: share says how. */
CUresult gpc_physical_export(struct gpc_physical *allocation);
/* Another process's, or this one's once more, on this device. */
CUresult gpc_physical_open(struct gpc_device *device, const struct gp_ipc_handle *bytes,
			   CUmemGenericAllocationHandle *handle);
/* Whether a location is the host, as one for memory or for access to it. */
bool gpc_physical_is_host(const CUmemLocation *location);
/* The device of a location; of the host, the one whose daemon kernels reach it by: the current
 * context's, or the first one.  NULL: there is none. */
struct gpc_device *gpc_physical_device(const CUmemLocation *location);
/* Another process's host memory, by the descriptor of its file, which stays the caller's.
 * CUDA_ERROR_INVALID_VALUE: it is none. */
CUresult gpc_physical_open_host(int fd, CUmemGenericAllocationHandle *handle);
/* Whether it is for sparse arrays, and mapped nowhere else. */
bool gpc_physical_is_for_tiles(const struct gpc_physical *allocation);
/* NULL: it is none, or has been released. */
struct gpc_physical *gpc_physical_get(CUmemGenericAllocationHandle handle);
/* If it has no users and no mappings. */
void gpc_physical_drop_unused(struct gpc_physical *allocation);

#endif /* GPC_PHYSICAL_MEMORY_H */
