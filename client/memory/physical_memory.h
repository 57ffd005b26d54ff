/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory of the application (cuMemCreate): allocated by the daemon or, if its location is
 * the host, a memory file of this process.
 *
 * Memory of the daemon that was released and is not mapped is cached (memory_cache.h), unless it
 * was shared.
 * Ownership: an allocation is destroyed or cached by gpc_physical_drop_unused() when it has neither
 * users nor mappings.
 * Threads: the caller holds the lock of gpc_virtual_memory_lock(), unless noted otherwise.
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

/* An allocation of physical memory. */
struct gpc_physical {
	struct gpc_handle handle;
	struct gpc_device *device;
	uint64_t size;
	CUmemAllocationProp prop;
	int users;    /* number of cuMemCreate and cuMemRetainAllocationHandle minus cuMemRelease */
	int mappings; /* destroyed when both counts are 0 */
	struct gpc_ipc_export *share; /* its export; NULL: not exported by this process */
	bool shared;                  /* other processes may have it */
	int host;                     /* file of host memory; -1: device memory */
};

/* Returns CUDA_SUCCESS if such memory is supported, otherwise the error of cuMemCreate. */
CUresult gpc_physical_check_prop(const CUmemAllocationProp *prop);
/* Creates an allocation with one user. prop must have been checked. */
CUresult gpc_physical_create(uint64_t size, const CUmemAllocationProp *prop,
			     CUmemGenericAllocationHandle *handle);
/* Returns whether any allocation was ever shared. Any thread, without the lock. */
bool gpc_physical_any_shared(void);
/* Exports the allocation to other processes: creates its `share`. */
CUresult gpc_physical_export(struct gpc_physical *allocation);
/* Opens an allocation of another process, or of this one a second time, on this device. */
CUresult gpc_physical_open(struct gpc_device *device, const struct gp_ipc_handle *bytes,
			   CUmemGenericAllocationHandle *handle);
/* Returns whether a location, of memory or of an access, is the host. */
bool gpc_physical_is_host(const CUmemLocation *location);
/* Returns the device of a location. For the host, this is the device whose daemon makes the memory
 * accessible to kernels: that of the current context, or the first one. Returns NULL if there is
 * none. */
struct gpc_device *gpc_physical_device(const CUmemLocation *location);
/* Opens host memory of another process by the descriptor of its file, which stays the caller's.
 * Returns CUDA_ERROR_INVALID_VALUE if it is not such a file. */
CUresult gpc_physical_open_host(int fd, CUmemGenericAllocationHandle *handle);
/* Returns whether the memory is for sparse arrays and cannot be mapped elsewhere. */
bool gpc_physical_is_for_tiles(const struct gpc_physical *allocation);
/* Returns NULL if the handle is invalid or was released. */
struct gpc_physical *gpc_physical_get(CUmemGenericAllocationHandle handle);
/* Caches or destroys the allocation if it has no users and no mappings. */
void gpc_physical_drop_unused(struct gpc_physical *allocation);

#endif /* GPC_PHYSICAL_MEMORY_H */
