/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocator for host memory that kernels can access (docs/host-memory.md): a heap in an address
 * range of each session, which the daemon reserves too.
 *
 * If the lane is shared memory, the memory is shared with the daemon. Otherwise it belongs to this
 * process, and the daemon allocates memory at the same address on request.
 * Ownership: a session's range is created with the first block and exists until the process exits.
 * Threads: any.
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
 * Allocates a block; *shared_p is set to whether it is shared with the daemon. Returns
 * CUDA_ERROR_NOT_SUPPORTED if the daemon has no such memory or the range is full,
 * CUDA_ERROR_OUT_OF_MEMORY if the quota is exhausted.
 */
CUresult gpc_host_space_alloc(struct gpc_context *context, uint64_t size, uint64_t *address_p,
			      bool *shared_p);
/* Frees a block. device_mapped: kernels may still be using it, so it is reused only after the work
 * posted so far. */
void gpc_host_space_free(struct gpc_context *context, uint64_t address, bool device_mapped);

/* Makes the daemon allocate memory at the address of a block that is not shared. */
CUresult gpc_host_space_map_at_worker(struct gpc_context *context, uint64_t address);

/*
 * Maps a part of a file that several processes map. Over every transport this process's memory is
 * that part, and the daemon has none until gpc_host_space_map_at_worker(). Freed by
 * gpc_host_space_free(). offset is the offset in the file, or GPC_HOST_SPACE_OWN for
 * gpc_host_space_offset() of the address. Returns CUDA_ERROR_NOT_SUPPORTED if the session has no
 * range.
 */
#define GPC_HOST_SPACE_OWN UINT64_MAX
CUresult gpc_host_space_map_file(struct gpc_context *context, uint64_t size, int fd,
				 uint64_t offset, uint64_t *address_p);
/* Returns the size of the session's range in bytes; 0 if it has none. */
uint64_t gpc_host_space_size(struct gpc_context *context);
/* Returns the offset of an address in its range. */
uint64_t gpc_host_space_offset(uint64_t address);

/* Allocates whole pages at the daemon only, for memory that has another address here; and frees
 * them. */
CUresult gpc_host_space_map(struct gpc_context *context, uint64_t size,
			    struct gpc_heap_range *range_p);
void gpc_host_space_unmap(struct gpc_context *context, const struct gpc_heap_range *range);

/* Returns whether the address is in the range of any session. */
bool gpc_host_space_contains(uint64_t address);
/* Returns bounds of all ranges, for a quick check. size 0: there are no ranges. */
void gpc_host_space_bounds(uint64_t *base_p, uint64_t *size_p);

#endif /* GPC_HOST_SPACE_H */
