/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory (cuMemCreate()): allocation from the driver for other modules, and memory objects
 * (gpMemoryCreate), which a client identifies by an ID and maps at addresses of its choice. A
 * memory object stays charged to the session until the driver has freed it.
 *
 * Ownership: the session's handle table refers to the memory objects. A memory object can be
 * released only when it has no mappings; it is freed when those still being unmapped are gone. All
 * others are freed at the session's end.
 * Threads: executor only, unless noted.
 * Errors: CUresult, unless noted.
 * Units: bytes; devices are the worker's numbers.
 */
#ifndef GPD_PHYSICAL_MEMORY_H
#define GPD_PHYSICAL_MEMORY_H

#include "server/worker/session/handle.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_session;
struct gpd_shared_physical;

/* A memory object of a session. */
struct gpd_physical {
	/* its ID in the handle table; not in the table once it is released */
	struct gpd_handle handle;
	uint64_t size;
	int device;
	CUmemGenericAllocationHandle allocation;
	/* Memory shared with other sessions, a reference; NULL: the object owns `allocation`. */
	struct gpd_shared_physical *shared;
	bool tiles;            /* a tile pool for sparse arrays (sparse_array.h); never mapped */
	uint64_t zeroed;       /* number of zeroed bytes at its start; the rest was never mapped */
	unsigned int mappings; /* number of mappings without those being unmapped */
	/* number of mappings being unmapped; protected by the memory's lock (memory_internal.h) */
	unsigned int leaving;
	/* The client has released the object, which is freed when the mappings being unmapped are
	 * gone; protected by the memory's lock. */
	bool released;
	/* Scratch flag of the function that sums up memory being freed: this object was already
	 * added. Protected by the memory's lock. */
	bool counted;
};

/* Allocates device memory; its content is undefined. size: a multiple of the device's granularity
 * (gpd_device.granularity, device/device.h), not 0. If the driver rejects memory that RDMA devices
 * can access, disables GPUDirect on the device and allocates without it. If the driver rejects
 * exportable memory (POSIX file descriptors), this process allocates memory without a handle type
 * afterwards. Returns CUDA_SUCCESS, and the caller owns *handle_p and releases it with
 * cuMemRelease(); or the driver's error. Does not wait for memory. Any thread. */
CUresult gpd_physical_obtain(uint64_t size, int device, CUmemGenericAllocationHandle *handle_p);
/* Zeroes mapped device memory and blocks until that is done, but not on kernels of other streams.
 * address and size are multiples of 4. Makes the device current. Returns CUDA_SUCCESS or the
 * driver's error. Any thread. */
CUresult gpd_physical_zero(uint64_t address, uint64_t size, int device);

/* Returns the location of host memory that is best for the device. */
CUmemLocation gpd_physical_get_host_location(int device);
/* Allocates host memory at gpd_physical_get_host_location(); its content is undefined. size: as for
 * gpd_physical_obtain(). Returns CUDA_SUCCESS, and the caller owns *handle_p and releases it with
 * cuMemRelease(); CUDA_ERROR_OUT_OF_MEMORY; or CUDA_ERROR_NOT_SUPPORTED for all other failures. */
CUresult gpd_physical_obtain_host(uint64_t size, int device,
				  CUmemGenericAllocationHandle *handle_p);
/* Returns whether the driver can allocate host memory, by allocating and releasing some. Any
 * thread. */
bool gpd_physical_has_host(int device);
/* Returns whether this process can read the memory mapped at the address, as needed to keep it in
 * sync with the client's copy. */
bool gpd_physical_is_accessible(uint64_t address);

/* Returns all memory of a memory object, zeroed, for export to other sessions. The reference
 * belongs to the object; a caller that keeps the result acquires a reference of its own. NULL:
 * there is no such object, it is a tile pool, zeroing failed, or out of memory. Blocks until
 * zeroing is done. */
struct gpd_shared_physical *gpd_physical_export(struct gpd_session *session, uint32_t id);
/* Returns the memory object with this ID, borrowed; NULL: there is none. */
struct gpd_physical *gpd_physical_get(const struct gpd_session *session, uint32_t id);
/* Returns the tile pool with this ID, borrowed; NULL: there is none. */
struct gpd_physical *gpd_physical_tiles(const struct gpd_session *session, uint32_t id);
/* Creates a memory object, under an ID chosen by the client, from memory that another session
 * shares. Returns CUDA_SUCCESS, and the object takes over the caller's reference; on failure the
 * caller keeps the reference: CUDA_ERROR_OUT_OF_MEMORY; or CUDA_ERROR_INVALID_HANDLE if the ID is 0
 * or in use, which ends the session. */
CUresult gpd_physical_open(struct gpd_session *session, uint32_t id,
			   struct gpd_shared_physical *shared_memory);

/* Allocates and zeroes the memory of a tile pool, with a result as of gpd_physical_obtain(). */
typedef CUresult gpd_physical_obtain_fn(uint64_t size, int device,
					CUmemGenericAllocationHandle *handle_p);
/*
 * Creates a tile pool: memory for the tiles of sparse arrays (gpTilePoolCreate), under an
 * ID that the client has chosen. Calls obtain(), again while it returns
 * CUDA_ERROR_OUT_OF_MEMORY and memory is being freed (gpd_memory_wait(), memory.h). The caller has
 * charged the memory, and uncharges it on failure.
 *
 * CUDA_ERROR_INVALID_DEVICE: the device does not exist.
 * CUDA_ERROR_INVALID_VALUE: size is 0 or not a multiple of the device's granularity, or the ID is 0
 * or in use; this does not end the session.
 * CUDA_ERROR_OUT_OF_MEMORY, or another error of obtain().
 */
CUresult gpd_physical_create_tile_pool(struct gpd_session *session, uint32_t id, uint64_t size,
				       int device, gpd_physical_obtain_fn *obtain);

/* Sets *stream_p to the device's stream for zeroing, which all sessions share and which is never
 * destroyed. The device must be current. After an error *stream_p is NULL. Any thread. */
CUresult gpd_physical_zero_stream(int device, CUstream *stream_p);

/* Frees a memory object that has no ID and no mappings, also none that is being unmapped, and its
 * charge or reference. Any thread. */
void gpd_physical_finish(struct gpd_session *session, struct gpd_physical *physical);

/* Frees all memory objects at the session's end, when nothing is mapped. */
void gpd_physical_destroy_all(struct gpd_session *session);

#endif /* GPD_PHYSICAL_MEMORY_H */
