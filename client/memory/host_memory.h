/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory that the application allocated or registered through CUDA, as seen by copies and
 * kernel launches (docs/host-memory.md).
 *
 * Threads: any.
 * Errors: functions that return CUresult return CUDA_ERROR_OUT_OF_MEMORY or the session's error.
 */
#ifndef GPC_HOST_MEMORY_H
#define GPC_HOST_MEMORY_H

#include "client/host/host_block.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gp_kernel_info;
struct gpc_address;

/* Fills in `found` and returns true if the address, as used by the program or by kernels, is in
 * pinned memory. */
bool gpc_host_memory_find(uint64_t address, struct gpc_address *found);

/* Returns whether all of [address, address + size) is in one block of pinned memory. */
bool gpc_host_memory_is_pinned(const void *address, size_t size);

/*
 * Returns whether kernels and copies on the device can access the range, which is then part of one
 * block. *address, an address of the program or of kernels, is then replaced by the one for
 * kernels.
 */
bool gpc_host_memory_get_device_address(uint64_t *address, size_t size);

/* Slow path of the following two functions. kernel: the kernel whose parameters these are, or
 * NULL. */
CUresult gpc_host_memory_scan_pointers(struct gpc_context *context, const void *bytes, size_t size,
				       const struct gp_kernel_info *kernel);

/* Called with bytes, aligned to 8, that the device is about to see: makes the blocks that they
 * point to accessible to kernels. */
static inline CUresult
gpc_host_memory_scan(struct gpc_context *context, const void *bytes, size_t size)
{
	return __builtin_expect(atomic_load(&gpc_host_memory_copy_only) == 0, 1)
		       ? CUDA_SUCCESS
		       : gpc_host_memory_scan_pointers(context, bytes, size, NULL);
}

/* The same for all parameters of a kernel; large ones may be filled only in part. */
static inline CUresult
gpc_host_memory_scan_parameters(struct gpc_context *context, const void *bytes, size_t size,
				const struct gp_kernel_info *kernel)
{
	return __builtin_expect(atomic_load(&gpc_host_memory_copy_only) == 0, 1)
		       ? CUDA_SUCCESS
		       : gpc_host_memory_scan_pointers(context, bytes, size, kernel);
}

/* Slow path of gpc_host_memory_must_translate(). */
bool gpc_host_memory_has_registered(const void *bytes, size_t size,
				    const struct gp_kernel_info *kernel);

/*
 * Returns whether parameters of a kernel, aligned to 8, contain addresses of registered memory as
 * used by the program. Kernels access that memory at other addresses, which
 * gpc_host_memory_translate() then stores in place.
 */
static inline bool
gpc_host_memory_must_translate(const void *bytes, size_t size, const struct gp_kernel_info *kernel)
{
	return __builtin_expect(atomic_load(&gpc_host_memory_registered) != 0, 0) &&
	       gpc_host_memory_has_registered(bytes, size, kernel);
}
CUresult gpc_host_memory_translate(struct gpc_context *context, void *bytes, size_t size,
				   const struct gp_kernel_info *kernel);

#endif /* GPC_HOST_MEMORY_H */
