/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses for host memory that kernels reach (docs/host-memory.md): a range of each session,
 * which the daemon reserves as well, and a heap in it.  Where the lane is shared memory the memory
 * is the daemon's, too; elsewhere it is this process's, until the daemon is told to have some
 * there.
 *
 * A session's range is made with the first block and kept to the end.  Any thread may call.
 */
#ifndef GPC_HOST_SPACE_H
#define GPC_HOST_SPACE_H

#include "base/status.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_context;
struct gpc_heap_range;

/*
 * Memory for a block of the session.  *shared_p: the daemon has the same. CUDA_ERROR_NOT_SUPPORTED:
 * the daemon has no such memory, or there is no room for it; CUDA_ERROR_OUT_OF_MEMORY: the quota.
 */
CUresult gpc_host_space_alloc(struct gpc_context *context, uint64_t size, uint64_t *address_p,
			      bool *shared_p);
/* reached: kernels may still use it. */
void gpc_host_space_free(struct gpc_context *context, uint64_t address, bool device_mapped);

/* The daemon has memory at a block that is not shared, from now on. */
CUresult gpc_host_space_map_at_worker(struct gpc_context *context, uint64_t address);

/*
 * Part of a file that several processes map: the client's memory is that part, and the daemon has
 * none until gpc_host_space_map_at_worker(), over every transport.  Freed by gpc_host_space_free().
 * offset: in the file; GPC_HOST_SPACE_OWN: gpc_host_space_offset() of the address.
 * CUDA_ERROR_NOT_SUPPORTED: the session has no range.
 */
#define GPC_HOST_SPACE_OWN UINT64_MAX
CUresult gpc_host_space_map_file(struct gpc_context *context, uint64_t size, int fd,
				 uint64_t offset, uint64_t *address_p);
/* Bytes of the session's range; 0: it has none. */
uint64_t gpc_host_space_size(struct gpc_context *context);
/* Offset of an address in its range. */
uint64_t gpc_host_space_offset(uint64_t address);

/* Whole pages that the daemon alone has, for memory that lies elsewhere here. */
CUresult gpc_host_space_map(struct gpc_context *context, uint64_t size,
			    struct gpc_heap_range *range_p);
void gpc_host_space_unmap(struct gpc_context *context, const struct gpc_heap_range *range);

/* Whether the address is in anybody's range. */
bool gpc_host_space_contains(uint64_t address);
/* Where all ranges are: a quick answer for what is in none.  size 0: there are none. */
void gpc_host_space_bounds(uint64_t *base_p, uint64_t *size_p);

#endif /* GPC_HOST_SPACE_H */
