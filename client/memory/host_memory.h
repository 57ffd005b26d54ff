/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory that the application allocated or registered through CUDA, and whether kernels reach
 * it (docs/host-memory.md).  Any thread may call.
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
struct gpc_context;

/* Fills found when address lies in pinned memory, as the program or as kernels name it. */
bool gpc_host_memory_find(uint64_t address, struct gpc_address *found);

/* Whether all of [address, address + size) is pinned, in one piece. */
bool gpc_host_memory_is_pinned(const void *address, size_t size);

/*
 * Whether kernels and copies on the device reach the memory: then *address, one of the program's or
 * of kernels', becomes the latter, and the range is a part of one block.
 */
bool gpc_host_memory_get_device_address(uint64_t *address, size_t size);

CUresult gpc_host_memory_scan_pointers(struct gpc_context *context, const void *bytes, size_t size,
				       const struct gp_kernel_info *kernel);

/* Bytes, aligned to 8, that the device is about to see: blocks whose addresses are among them are
 * reached by kernels from now on. */
static inline CUresult
gpc_host_memory_scan(struct gpc_context *context, const void *bytes, size_t size)
{
	return __builtin_expect(atomic_load(&gpc_host_memory_copy_only) == 0, 1)
		       ? CUDA_SUCCESS
		       : gpc_host_memory_scan_pointers(context, bytes, size, NULL);
}

/* The same for all parameters of a kernel, of which large ones may be filled only in part. */
static inline CUresult
gpc_host_memory_scan_parameters(struct gpc_context *context, const void *bytes, size_t size,
				const struct gp_kernel_info *kernel)
{
	return __builtin_expect(atomic_load(&gpc_host_memory_copy_only) == 0, 1)
		       ? CUDA_SUCCESS
		       : gpc_host_memory_scan_pointers(context, bytes, size, kernel);
}

bool gpc_host_memory_has_registered(const void *bytes, size_t size,
				    const struct gp_kernel_info *kernel);

/*
 * Whether parameters of a kernel, aligned to 8, name registered memory as the program does, which
 * kernels reach at other addresses: then gpc_host_memory_translate() puts those in, in place.
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
