/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocator for host memory that kernels can access (docs/host-memory.md): a heap in an address
 * range of each session, which the daemon reserves too.
 *
 * If the session can pass file descriptors (a Unix socket), the memory is shared with the worker.
 * Otherwise it belongs to this process, and the worker allocates memory at the same address on
 * request.
 *
 * Ownership: the process owns a session's range, from its first use until the process exits. The
 * caller owns a block until it frees it.
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note).
 * Errors: functions that return CUresult return CUDA_SUCCESS, the errors named at them, or the
 * session's error; out parameters are undefined after an error.
 * Units: bytes.
 */
#ifndef GPC_HOST_SPACE_H
#define GPC_HOST_SPACE_H

#include "base/status.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_context;
struct gpc_heap_range;

/* Allocates a block of at least `size` bytes, which is not 0, and stores its address, equal on both
 * sides, in *address_p. *shared_p is set to whether it is shared with the worker.
 * gpc_host_space_free() frees the block. May wait for the daemon, for some seconds while it
 * releases old memory. Returns CUDA_ERROR_NOT_SUPPORTED if the daemon does not support such memory
 * or the range is full; CUDA_ERROR_OUT_OF_MEMORY if the quota or this process's memory is
 * exhausted, or the old memory is not released in time; CUDA_ERROR_OPERATING_SYSTEM if shared
 * memory cannot be mapped here. */
CUresult gpc_host_space_alloc(struct gpc_context *context, uint64_t size, uint64_t *address_p,
			      bool *shared_p);
/* Frees a block. address: the start of a block. context: a context of the block's session.
 * device_mapped: kernels may still be using the block, so its memory is reused only after the work
 * posted so far. Does not wait. */
void gpc_host_space_free(struct gpc_context *context, uint64_t address, bool device_mapped);

/* Makes the worker allocate memory at the address of a block that is not shared; has no effect if
 * it has memory there. Waits for the daemon, for up to five seconds while it releases old memory at
 * the address. Returns CUDA_ERROR_INVALID_VALUE if the address is in no block of the context's
 * session, or CUDA_ERROR_OUT_OF_MEMORY if the quota is exhausted or the old memory is not released
 * in time. */
CUresult gpc_host_space_map_at_worker(struct gpc_context *context, uint64_t address);

/* Maps a part of a file that several processes map, as a block. size: a multiple of
 * GPC_HOST_GRANULARITY (host_range.h). fd remains the caller's and may be closed afterwards.
 * offset: the part's offset in the file; GPC_HOST_SPACE_OWN means gpc_host_space_offset() of the
 * block's address. Even if the session shares memory, the worker has no memory there until
 * gpc_host_space_map_at_worker(). The caller frees the block with gpc_host_space_free(). Returns
 * CUDA_ERROR_NOT_SUPPORTED if the session has no range; CUDA_ERROR_OUT_OF_MEMORY if the range is
 * full or the file cannot be mapped. */
#define GPC_HOST_SPACE_OWN UINT64_MAX
CUresult gpc_host_space_map_file(struct gpc_context *context, uint64_t size, int fd,
				 uint64_t offset, uint64_t *address_p);
/* Returns the size of the session's range, or 0 if the session has none. The first use of the range
 * may wait for the daemon. */
uint64_t gpc_host_space_size(struct gpc_context *context);
/* Returns the offset of an address in the range that contains it. The address must be in a
 * range. */
uint64_t gpc_host_space_offset(uint64_t address);

/* Allocates pages in the worker only, for memory that has another address in this process, and
 * stores their addresses in *range_p; `size` is rounded up to GPC_HOST_GRANULARITY. Waits for the
 * daemon. The caller frees the pages with gpc_host_space_unmap(). Returns CUDA_ERROR_NOT_SUPPORTED
 * if the session has no range or it is full; CUDA_ERROR_OUT_OF_MEMORY if the quota is exhausted or
 * old memory is not released in time. */
CUresult gpc_host_space_map(struct gpc_context *context, uint64_t size,
			    struct gpc_heap_range *range_p);
/* Frees pages of gpc_host_space_map(), after the calls posted so far. Does not wait. */
void gpc_host_space_unmap(struct gpc_context *context, const struct gpc_heap_range *range);

/* Returns whether the address is in the range of any session. */
bool gpc_host_space_contains(uint64_t address);
/* Stores in *base_p and *size_p bounds that contain the ranges of all sessions, for a quick check.
 * *size_p is 0, and *base_p is meaningless, if there are none. */
void gpc_host_space_bounds(uint64_t *base_p, uint64_t *size_p);

#endif /* GPC_HOST_SPACE_H */
