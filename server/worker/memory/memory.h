/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory of a session: the mappings in its window and in the additional address ranges that
 * it has reserved.
 *
 * The worker reserves the window's addresses before a session starts and frees them after it.
 * Memory that the client unmaps stays mapped until all work enqueued before is done; a later
 * mapping of the same addresses waits for that.
 *
 * Ownership: session->memory owns all mappings.
 * Threads: executor only.
 * Errors: CUresult, unless noted.
 */
#ifndef GPD_MEMORY_H
#define GPD_MEMORY_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_physical;
struct gpd_session;
struct gpd_shared_physical;

/* Memory outside of the window that the session's copies may access, such as a variable. The owner
 * of the memory owns it. */
struct gpd_extent {
	struct gpd_extent *prev, *next; /* list of the session */
	uint64_t address, size;
};

/* What memory needs of the arrays of a session, which are above it (array.h). */
struct gpd_memory_array_ops {
	/* Bytes of arrays that the session or (NULL) sessions that have ended have released, and
	 * that the driver does not have back yet.  Any thread. */
	uint64_t (*leaving_size)(const struct gpd_session *session, int device);
	/* Waits until the driver has those of the session back; whether there were any. */
	bool (*wait_freed)(struct gpd_session *session);
	/* The same for idle arrays of all sessions, when the device is out of memory. */
	bool (*wait_idle_freed)(struct gpd_session *session, int device);
};

/* The part of a session that its memory has, session->memory (memory_internal.h).  -ENOMEM. */
int gpd_memory_create(struct gpd_session *session);
/* Nothing is mapped, or the process is about to end. */
void gpd_memory_destroy(struct gpd_session *session);
/* Before the session has a thread.  Without them the session has no arrays. */
void gpd_memory_set_array_ops(struct gpd_session *session, const struct gpd_memory_array_ops *ops);

/* Unmaps everything. To be called when the session has no work left and its wait queue is empty. */
void gpd_memory_unmap_all(struct gpd_session *session);

/* Maps zeroed device memory. The range must be whole granules of the window without mappings, else
 * CUDA_ERROR_INVALID_VALUE. The caller has charged it. */
CUresult gpd_memory_map(struct gpd_session *session, uint64_t address, uint64_t size, int device);

/* The same with memory of the machine that kernels of all devices and this process can access.
 * CUDA_ERROR_NOT_SUPPORTED: the driver cannot allocate it. Undone by gpMemoryUnmap. */
CUresult gpd_memory_map_host(struct gpd_session *session, uint64_t address, uint64_t size,
			     int device);

/* Whether mappings of the physical memory are still being unmapped; gpd_physical_finish() is then
 * called after the last one. */
bool gpd_memory_release_later(struct gpd_session *session, struct gpd_physical *physical);

/* Maps the start of physical memory at such an address. */
CUresult gpd_memory_attach(struct gpd_session *session, uint64_t address, uint64_t size,
			   struct gpd_physical *physical);

/* Returns the memory that contains the range, which must be in one mapping by gpMemoryMap or a
 * similar call, and the range's offset in it. The mapping is one of its users. NULL: no such
 * mapping, or out of memory. */
struct gpd_shared_physical *gpd_memory_export(struct gpd_session *session, uint64_t address,
					      uint64_t size, uint64_t *offset_p);
/* Maps all of the memory. On success the mapping takes over the caller's reference. */
CUresult gpd_memory_open(struct gpd_session *session, uint64_t address,
			 struct gpd_shared_physical *shared);

/* To be called before an allocation is refused: waits for the memory and arrays that the session
 * has freed. Returns whether there were any. */
bool gpd_memory_wait_freed(struct gpd_session *session);
/* To be called when the device is out of memory: waits for memory freed by the session, then for
 * that of others as gpd_account_wait() does. *until is 0 on the first call. Returns false if there
 * is nothing to wait for. */
bool gpd_memory_wait(struct gpd_session *session, int device, uint64_t *until);

/* Returns the device that has the memory of the whole range, if it is in one mapping that the
 * session's lanes can access by GPUDirect, else -1. The mapping is registered on its first query
 * (gpudirect_memory.h). */
int gpd_memory_get_gpudirect_device(struct gpd_session *session, uint64_t address, uint64_t size);

/* Gives kernels of `device` access to the session's present and future memory on `owner`. */
CUresult gpd_memory_enable_peer_access(struct gpd_session *session, int device, int owner);
/* Returns the device that has the memory at the address if `device` has no access to it. -1: it has
 * access, or the memory is the driver's own, which the driver can copy from anywhere. */
int gpd_memory_get_remote_device(const struct gpd_session *session, uint64_t address, int device);

/* Whether all of [address, address + size) is mapped. */
bool gpd_memory_mapped(const struct gpd_session *session, uint64_t address, uint64_t size);

/* Whether copies may access the whole range: it is mapped, in host memory, or inside an open
 * extent. */
bool gpd_memory_accessible(struct gpd_session *session, uint64_t address, uint64_t size);
/* Number of bytes from the first byte of the rows to their last.  false: pitch is smaller than
 * width, or the number overflows. */
bool gpd_memory_get_span(uint64_t pitch, uint64_t width, uint64_t height, uint64_t *span_p);
/* CUDA_ERROR_INVALID_VALUE unless the session may access all bytes that the rows span. */
CUresult gpd_memory_check_rows(struct gpd_session *session, uint64_t address, uint64_t pitch,
			       uint64_t width, uint64_t height);
void gpd_memory_open_extent(struct gpd_session *session, struct gpd_extent *extent);
void gpd_memory_close_extent(struct gpd_session *session, struct gpd_extent *extent);

#endif /* GPD_MEMORY_H */
