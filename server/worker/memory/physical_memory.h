/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory (cuMemCreate()): allocation from the driver for other modules, and the memory
 * objects that a client names and maps where it likes (gpMemoryCreate). A memory object stays
 * charged to the session until the driver has freed it.
 *
 * Threads: executor only, unless noted.
 * Errors: CUresult, unless noted.
 */
#ifndef GPD_PHYSICAL_MEMORY_H
#define GPD_PHYSICAL_MEMORY_H

#include "server/worker/session/handle.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_session;
struct gpd_shared_physical;

/* A memory object, registered under the client's name. */
struct gpd_physical {
	struct gpd_handle name;
	uint64_t size;
	int device;
	CUmemGenericAllocationHandle handle;
	struct gpd_shared_physical *shared; /* it is one of its users; NULL: it owns the memory */
	bool tiles;                         /* for sparse arrays (sparse_array.h); never mapped */
	uint64_t zeroed;       /* zeroed bytes at its start; the rest was never mapped */
	unsigned int mappings; /* without those being unmapped */
	unsigned int leaving;  /* being unmapped; memory's lock */
	bool released;         /* freed with the last mapping; memory's lock */
	bool counted;          /* in the sum of memory being freed; memory's lock */
};

/* Allocates whole granules, which the caller releases with cuMemRelease(). gpd_physical_zero()
 * zeroes mapped memory and waits for it. */
CUresult gpd_physical_obtain(uint64_t size, int device, CUmemGenericAllocationHandle *handle_p);
CUresult gpd_physical_zero(uint64_t address, uint64_t size, int device);

/* Memory of the machine: the best location for the device, its allocation, and whether the driver
 * can allocate any. */
CUmemLocation gpd_physical_host(int device);
CUresult gpd_physical_obtain_host(uint64_t size, int device,
				  CUmemGenericAllocationHandle *handle_p);
bool gpd_physical_has_host(int device);
/* Whether this process can read what is mapped at the address, as needed to keep it in sync with
 * the client's copy. */
bool gpd_physical_is_accessible(uint64_t address);

/* Returns the whole memory, zeroed, for use by other sessions; the memory object is one of its
 * users. NULL: no such object, or out of memory. */
struct gpd_shared_physical *gpd_physical_export(struct gpd_session *session, uint32_t memory);
/* NULL: no physical memory has this name. */
struct gpd_physical *gpd_physical_get(const struct gpd_session *session, uint32_t memory);
/* Returns the memory object for sparse arrays of this name, or NULL. */
struct gpd_physical *gpd_physical_tiles(const struct gpd_session *session, uint32_t memory);
/* Creates a memory object from memory that another session shares. On success it takes over the
 * caller's reference. */
CUresult gpd_physical_open(struct gpd_session *session, uint32_t memory,
			   struct gpd_shared_physical *shared);

/*
 * Names memory for the tiles of sparse arrays (gpTilePoolCreate).  obtain() creates and zeroes it;
 * it is called again while it returns CUDA_ERROR_OUT_OF_MEMORY and memory is on its way back.
 */
typedef CUresult gpd_physical_obtain_fn(uint64_t size, int device,
					CUmemGenericAllocationHandle *handle_p);
CUresult gpd_physical_create_tile_pool(struct gpd_session *session, uint32_t memory, uint64_t size,
				       int device, gpd_physical_obtain_fn *obtain);

/* Returns the stream of the device for zeroing, which all sessions share. The device must be
 * current. */
CUresult gpd_physical_zero_stream(int device, CUstream *stream_p);

/* Any thread. Frees a memory object without name and mappings, and its charge. */
void gpd_physical_finish(struct gpd_session *session, struct gpd_physical *physical);

/* Frees all memory objects at the session's end, when nothing is mapped. */
void gpd_physical_destroy_all(struct gpd_session *session);

#endif /* GPD_PHYSICAL_MEMORY_H */
