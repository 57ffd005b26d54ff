/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory of a session: the mappings in its window (the range of device addresses that is
 * reserved for it) and in additional address ranges that it has reserved.
 *
 * The worker reserves the window before a session starts and frees it after its end. Memory that
 * the client unmaps stays mapped until all work enqueued before is done; a later mapping of the
 * same addresses waits for that.
 *
 * Ownership: session->memory owns all mappings.
 * Threads: executor only, unless noted.
 * Errors: CUresult, unless noted.
 * Units: bytes; devices are the worker's numbers. Addresses and sizes may come from the client
 * unchecked, unless noted.
 */
#ifndef GPD_MEMORY_H
#define GPD_MEMORY_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_physical;
struct gpd_session;
struct gpd_shared_physical;

/* Memory outside of the window that the session's copies may access, such as a variable of a
 * module. Embedded in the owner's object; must stay valid while it is open. */
struct gpd_extent {
	struct gpd_extent *prev, *next; /* in the session's list of open extents */
	uint64_t address, size;
};

/* Functions of the arrays of a session (array.h) that this module needs; arrays are in a higher
 * layer. */
struct gpd_memory_array_ops {
	/* Returns the bytes of destroyed arrays that the driver has not freed yet. session: of this
	 * session; NULL: of sessions that have ended. Any thread. */
	uint64_t (*leaving_size)(const struct gpd_session *session, int device);
	/* Blocks until the driver has freed the destroyed arrays of the session. Returns whether
	 * there were any. Executor. */
	bool (*wait_freed)(struct gpd_session *session);
	/* Blocks until the driver has freed the unused arrays of all sessions on a device that is
	 * out of memory. May stop the launches of other sessions. Returns whether there were any
	 * and they were freed. Executor. */
	bool (*wait_idle_freed)(struct gpd_session *session, int device);
};

/* Main thread: creates session->memory (memory_internal.h) for the session's window, without a
 * mapping. Returns 0 or -ENOMEM. */
int gpd_memory_create(struct gpd_session *session);
/* Frees session->memory, after gpd_memory_unmap_all() and gpd_allowance_destroy() (allowance.h);
 * without them, only if the process is about to end. Does nothing if it is NULL. Called by the
 * thread that closes or discards the session. */
void gpd_memory_destroy(struct gpd_session *session);
/* Sets the functions for arrays, which must stay valid as long as the session; without them it has
 * no arrays. To be called before the session has a thread. */
void gpd_memory_set_array_ops(struct gpd_session *session, const struct gpd_memory_array_ops *ops);

/* Unmaps all memory and frees all memory objects and additional address ranges at the session's
 * end, when no work is left, the wait queue (stream/responder.h) is stopped, and
 * gpd_memory_exports_destroy() (ipc_memory.h) was called. The charges of memory that is still
 * mapped end with the session's entry in the ledger. */
void gpd_memory_unmap_all(struct gpd_session *session);

/*
 * Maps newly allocated device memory and zeroes it. The caller has charged it, and uncharges it on
 * failure. Blocks on work that may still use a former mapping of the range, on zeroing and, if out
 * of memory, as gpd_memory_wait() does. Makes the device current. Returns CUDA_SUCCESS; on failure
 * nothing is mapped. Unmapped, and uncharged, by the client's gpMemoryUnmap or at the session's
 * end.
 *
 * CUDA_ERROR_INVALID_VALUE: the range is empty, address or size is not a multiple of the device's
 * allocation granularity (gpd_device.granularity, device/device.h), it overlaps a mapping, or a
 * former mapping of it will never be unmapped, because the GPU contexts are lost. A range outside
 * the session's addresses also ends the session.
 * CUDA_ERROR_INVALID_DEVICE: the device does not exist.
 * CUDA_ERROR_OUT_OF_MEMORY: no memory, after the wait.
 * Other errors are those of the driver.
 */
CUresult gpd_memory_map(struct gpd_session *session, uint64_t address, uint64_t size, int device);

/* Maps zeroed host memory that kernels of all devices and this process can access, near the device,
 * as gpd_memory_map() does, but does not wait if out of memory. The caller has charged it as pinned
 * memory (gpd_host_memory_prepare(), host/host_space.h). CUDA_ERROR_NOT_SUPPORTED: the driver
 * cannot allocate such memory. Unmapped, and uncharged, by gpMemoryUnmap. */
CUresult gpd_memory_map_host(struct gpd_session *session, uint64_t address, uint64_t size,
			     int device);

/* Called when the client releases a memory object that has no mappings (physical->mappings is 0),
 * after its ID was removed: returns whether former mappings of the object are still being unmapped.
 * If true, gpd_physical_finish() (physical_memory.h) is called after the last one. If false, the
 * caller must call it. */
bool gpd_memory_release_later(struct gpd_session *session, struct gpd_physical *physical);

/* Maps the first size bytes, at most physical->size (checked by the caller), of a memory object
 * that is not a tile pool, and counts the mapping in it. The object must stay valid while mapped.
 * Zeroes the part that was not zeroed before. Blocks as gpd_memory_map() does; errors are the same.
 * Unmapped by gpMemoryUnmap; charges do not change. */
CUresult gpd_memory_attach(struct gpd_session *session, uint64_t address, uint64_t size,
			   struct gpd_physical *physical);

/* Returns the memory that contains the range, for export to other sessions, and sets *offset_p to
 * the range's offset in it. The memory is borrowed from the mapping, which is one of its users: the
 * caller adds a reference. NULL: the range is not in one mapping by gpMemoryMap, gpMemoryUse,
 * gpMemoryTry or gpd_memory_open(), or out of memory; *offset_p is then undefined. size must not be
 * 0. */
struct gpd_shared_physical *gpd_memory_export(struct gpd_session *session, uint64_t address,
					      uint64_t size, uint64_t *offset_p);
/* Maps all of the memory at this address. On success the mapping takes over the caller's reference,
 * and gpMemoryUnmap drops it; on failure the caller keeps it. Blocks on work that may still use a
 * former mapping of the range; errors are those of gpd_memory_map(). */
CUresult gpd_memory_open(struct gpd_session *session, uint64_t address,
			 struct gpd_shared_physical *shared);

/* Blocks until the memory and arrays that the session has freed are unmapped or freed in the driver
 * too, which takes as long as work of the session uses them. Does not wait for those whose last use
 * cannot be detected, because the GPU contexts are lost. Called before an allocation is refused.
 * Returns whether there were any: the allocation is then worth another attempt. */
bool gpd_memory_wait_freed(struct gpd_session *session);
/* Called in a loop with attempts to allocate, when the device is out of memory. The device must be
 * valid. Blocks until memory freed by the session is unused, then until unused arrays are freed,
 * then as gpd_account_wait() (schedule/account.h) does. *until: 0 on the first call, then changed
 * only by this function. Returns whether another attempt is worthwhile and the call may be
 * repeated. */
bool gpd_memory_wait(struct gpd_session *session, int device, uint64_t *until);

/* Returns the device that has the memory of the whole range, if the range is in one mapping that
 * the session's lanes can access by GPUDirect; otherwise -1. The mapping is registered on its first
 * query (device/gpudirect_memory.h), until it is unmapped. Host memory is not included. */
int gpd_memory_get_gpudirect_device(struct gpd_session *session, uint64_t address, uint64_t size);

/* Gives kernels of `device` access to the session's present and future mappings of memory on device
 * `owner`; gpd_device_has_peer() (device/device.h) must be true. It is never undone. Returns
 * CUDA_SUCCESS or an error of the driver. After an error some mappings may be accessible already,
 * but future mappings will not be. */
CUresult gpd_memory_enable_peer_access(struct gpd_session *session, int device, int owner);
/* Returns the device that has the memory at the address if `device` has no access to it. Returns -1
 * if it has access, as to all host memory, or if the memory is not in a mapping of the session: the
 * driver can access memory that it has placed itself, from any device. */
int gpd_memory_get_remote_device(const struct gpd_session *session, uint64_t address, int device);

/* Returns whether all of [address, address + size) is mapped in the session's addresses. */
bool gpd_memory_mapped(const struct gpd_session *session, uint64_t address, uint64_t size);

/* Returns whether copies may access the whole range: it is mapped, in host memory (host_space.h),
 * or inside an open extent. */
bool gpd_memory_accessible(struct gpd_session *session, uint64_t address, uint64_t size);
/* Computes the number of bytes from the first byte of `height` rows of `width` bytes to their last
 * one. height must not be 0. pitch is the distance of two rows in bytes; it is ignored if height is
 * 1. Otherwise returns false if pitch is smaller than width or the number overflows; *span_p is
 * then undefined. */
bool gpd_memory_get_span(uint64_t pitch, uint64_t width, uint64_t height, uint64_t *span_p);
/* Returns CUDA_SUCCESS if copies may access all bytes that the rows span, otherwise
 * CUDA_ERROR_INVALID_VALUE, also if gpd_memory_get_span() returns false. height must not be 0. */
CUresult gpd_memory_check_rows(struct gpd_session *session, uint64_t address, uint64_t pitch,
			       uint64_t width, uint64_t height);
/* Allows the session's copies to access the extent, whose address and size the caller has set and
 * which must not be open already. */
void gpd_memory_open_extent(struct gpd_session *session, struct gpd_extent *extent);
/* Ends what gpd_memory_open_extent() has allowed. The caller may then free the extent. */
void gpd_memory_close_extent(struct gpd_session *session, struct gpd_extent *extent);

#endif /* GPD_MEMORY_H */
