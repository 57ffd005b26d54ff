/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory that the application allocated or registered through CUDA, as seen by copies and
 * kernel launches (docs/host-memory.md). The registry of its blocks is client/host/host_block.h,
 * which also has the counters gpc_host_memory_copy_only and gpc_host_memory_registered.
 *
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note), which may only look up addresses.
 * Errors: functions that return CUresult return CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY or the
 * session's error.
 * Units: bytes.
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

/* Returns whether the address, of the program or of kernels, is in pinned memory (allocated with or
 * registered with CUDA). If so, fills in *found; otherwise *found is unchanged. May be called by
 * any thread. */
bool gpc_host_memory_find(uint64_t address, struct gpc_address *found);

/* Returns whether all of [address, address + size) is in one block of pinned memory
 * (client/host/host_block.h). */
bool gpc_host_memory_is_pinned(const void *address, size_t size);

/* Returns whether kernels and copies on the device can access the range at present; it is then part
 * of one block. If so, *address, an address of the program or of kernels, is replaced by the
 * address for kernels; otherwise it is unchanged. May wait for the daemon, but does not make other
 * blocks accessible. */
bool gpc_host_memory_get_device_address(uint64_t *address, size_t size);

/* Slow path of gpc_host_memory_scan() and gpc_host_memory_scan_parameters(). kernel: the kernel
 * whose parameters the bytes are; NULL: other bytes. */
CUresult gpc_host_memory_scan_pointers(struct gpc_context *context, const void *bytes, size_t size,
				       const struct gp_kernel_info *kernel);

/* Called with bytes, aligned to 8, that the device is about to see: makes the blocks that they
 * point to accessible to kernels, which may wait for the daemon. Values that are not addresses of
 * such blocks are ignored. */
static inline CUresult
gpc_host_memory_scan(struct gpc_context *context, const void *bytes, size_t size)
{
	return __builtin_expect(atomic_load(&gpc_host_memory_copy_only) == 0, 1)
		       ? CUDA_SUCCESS
		       : gpc_host_memory_scan_pointers(context, bytes, size, NULL);
}

/* Called with all parameters of a kernel, before a launch: makes the blocks that they point to
 * accessible to kernels, like gpc_host_memory_scan(). A large parameter may be filled only in part,
 * so addresses in it may be stale (client/host/pointer_scan.h). */
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

/* Returns whether the parameters of a kernel contain addresses of registered memory as used by the
 * program, other than stale ones (client/host/pointer_scan.h). Kernels access such memory at other
 * addresses, which gpc_host_memory_translate() then stores in place. */
static inline bool
gpc_host_memory_must_translate(const void *bytes, size_t size, const struct gp_kernel_info *kernel)
{
	return __builtin_expect(atomic_load(&gpc_host_memory_registered) != 0, 0) &&
	       gpc_host_memory_has_registered(bytes, size, kernel);
}
/* Replaces, in the parameters of a kernel, addresses of registered memory of the context's session
 * by the addresses for kernels. This makes the memory accessible to kernels, and may wait for the
 * daemon. Addresses that kernels cannot access are left unchanged. After an error some may have
 * been replaced. */
CUresult gpc_host_memory_translate(struct gpc_context *context, void *bytes, size_t size,
				   const struct gp_kernel_info *kernel);

#endif /* GPC_HOST_MEMORY_H */
