/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory of the application (cuMemCreate): allocated by the daemon or, if its location is
 * the host, a memory file of this process.
 *
 * Memory of the daemon that was released and is not mapped is cached (memory_cache.h), unless it
 * was shared or is for tiles. Host memory is never cached.
 *
 * Ownership: the handle table owns an allocation, until gpc_physical_drop_unused() destroys it or
 * passes it to the cache. Returned pointers are borrowed while the lock is held.
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note). The caller holds the lock of
 * gpc_virtual_memory_lock() (virtual_memory.h), unless noted otherwise; it stays held while a
 * function waits for the daemon.
 * Errors: functions that return CUresult return CUDA_SUCCESS; CUDA_ERROR_OUT_OF_MEMORY if the
 * quota, the device, or this process's memory or descriptors are exhausted; the errors named at
 * them; or an error of the daemon or the session. Out parameters are unchanged after an error.
 * Units: bytes.
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

/* An allocation of physical memory. Destroyed or cached when users and mappings are both 0. */
struct gpc_physical {
	struct gpc_handle handle;
	/* device that owns the memory; for host memory, the device of gpc_physical_device() */
	struct gpc_device *device;
	uint64_t size;
	CUmemAllocationProp prop; /* as passed to cuMemCreate, without hints */
	/* number of references of the program: calls of cuMemCreate() and
	 * cuMemRetainAllocationHandle(), minus calls of cuMemRelease() */
	int users;
	int mappings;                  /* number of addresses at which it is mapped */
	struct gpc_ipc_export *export; /* its export, owned; NULL: not exported by this process */
	/* other processes may have it mapped, so it is not cached */
	bool may_be_mapped_elsewhere;
	/* descriptor of the file of host memory, owned; -1: device memory */
	int host_fd;
};

/* Returns CUDA_SUCCESS if such memory is supported, otherwise the error that cuMemCreate() returns:
 * CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_DEVICE or CUDA_ERROR_NOT_SUPPORTED. Any thread,
 * without the lock. */
CUresult gpc_physical_check_prop(const CUmemAllocationProp *prop);
/* Creates an allocation with one user and stores its handle in *handle. *prop is copied and must
 * have passed gpc_physical_check_prop(). May wait for the daemon, and for posted work if memory is
 * exhausted. Returns CUDA_ERROR_INVALID_VALUE if the size is 0 or not a multiple of the
 * granularity, or CUDA_ERROR_NOT_SUPPORTED for host memory that the daemon does not support. */
CUresult gpc_physical_create(uint64_t size, const CUmemAllocationProp *prop,
			     CUmemGenericAllocationHandle *handle);
/* Returns whether any allocation of device memory was ever shared with another process. Any thread,
 * without the lock. */
bool gpc_physical_any_shared(void);
/* Exports an allocation of device memory to other processes: sets its `export` and
 * `may_be_mapped_elsewhere`. Waits
 * for the daemon. Has no effect if it is exported already. */
CUresult gpc_physical_export(struct gpc_physical *allocation);
/* Opens an allocation of another process, or of this process a second time, on this device, with
 * one user, and stores its handle in *handle. Waits for the daemon. ipc_handle comes from another
 * process: the caller has checked their kind, and that ipc_handle->mapping is a multiple of the
 * granularity and not 0; the daemon checks the rest, and its error is returned. */
CUresult gpc_physical_open(struct gpc_device *device, const struct gp_ipc_handle *ipc_handle,
			   CUmemGenericAllocationHandle *handle);
/* Returns whether a location, of memory or of an access, is the host. Any thread, without the
 * lock. */
bool gpc_physical_is_host(const CUmemLocation *location);
/* Returns the device of a location. For the host, returns the device whose daemon makes the memory
 * accessible to kernels: that of the current context or, without a current context, the first
 * device. Returns NULL if the location's device does not exist. Any thread, without the lock. */
struct gpc_device *gpc_physical_device(const CUmemLocation *location);
/* Opens host memory of another process by the descriptor of its file, with one user, and stores its
 * handle in *handle. fd remains the caller's. Returns CUDA_ERROR_INVALID_VALUE if it is not such a
 * file. */
CUresult gpc_physical_open_host(int fd, CUmemGenericAllocationHandle *handle);
/* Returns whether the memory is for the tiles of sparse arrays and cannot be mapped elsewhere. */
bool gpc_physical_is_for_tiles(const struct gpc_physical *allocation);
/* Returns the allocation of a handle. Returns NULL if the handle is invalid or the program has
 * released it. */
struct gpc_physical *gpc_physical_get(CUmemGenericAllocationHandle handle);
/* Called after a user or a mapping was removed. If none is left, caches the allocation, or destroys
 * it and posts its release; the pointer is then invalid. Does not wait. */
void gpc_physical_drop_unused(struct gpc_physical *allocation);

#endif /* GPC_PHYSICAL_MEMORY_H */
