/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory: from the driver, for whoever maps it, and that which a client holds by name and
 * maps where it likes (gpMemoryCreate).  It counts for the session until the driver has it back.
 * Executor only.
 */
#ifndef GPD_PHYSICAL_H
#define GPD_PHYSICAL_H

#include "server/worker/session/handle.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_session;
struct gpd_shared_physical;

struct gpd_physical {
	struct gpd_handle name;
	uint64_t size;
	int device;
	CUmemGenericAllocationHandle handle;
	struct gpd_shared_physical
		*shared; /* it is one of its users; NULL: the memory is its own */
	bool tiles;      /* for sparse arrays (tiles.h), and mapped nowhere */
	uint64_t zeroed; /* its beginning; the rest has never been mapped */
	unsigned int
		mappings; /* those on their way out not counted: the driver keeps memory for them */
	unsigned int leaving; /* and those; under the lock of the session's memory, as is */
	bool released;        /* the name is gone, and it ends with the last of them */
	bool counted;         /* in the sum of what is leaving */
};

/* Memory for whole granules, the caller's to release; and zeroing, which is waited for. */
CUresult gpd_physical_obtain(uint64_t size, int device, CUmemGenericAllocationHandle *handle_p);
CUresult gpd_physical_zero(uint64_t address, uint64_t size, int device);

/* The machine's memory, where the device would best have it; whether the driver makes any. */
CUmemLocation gpd_physical_host(int device);
CUresult gpd_physical_obtain_host(uint64_t size, int device,
				  CUmemGenericAllocationHandle *handle_p);
bool gpd_physical_has_host(int device);
/* Whether this process may read what is mapped there, as whoever keeps two copies alike does. */
bool gpd_physical_is_accessible(uint64_t address);

/* The memory, all of it zeroed, for others to use; the physical memory itself is one of its users.
 * NULL: there is none of that name, or no memory for it. */
struct gpd_shared_physical *gpd_physical_export(struct gpd_session *session, uint32_t memory);
/* NULL: no physical memory has this name. */
struct gpd_physical *gpd_physical_get(const struct gpd_session *session, uint32_t memory);
/* The memory of this name that is for sparse arrays; NULL: there is none. */
struct gpd_physical *gpd_physical_tiles(const struct gpd_session *session, uint32_t memory);
/* Names what another session shares.  The caller's use of it goes with the name, if that succeeds.
 */
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

/* The stream that zeroes, of all sessions; the device is current. */
CUresult gpd_physical_zero_stream(int device, CUstream *stream_p);

/* Gives it back to the driver and the quota; it has no name and no mapping.  Any thread. */
void gpd_physical_finish(struct gpd_session *session, struct gpd_physical *physical);

/* At the session's end, when nothing is mapped. */
void gpd_physical_destroy_all(struct gpd_session *session);

#endif /* GPD_PHYSICAL_H */
