/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory at addresses that the program has reserved (cuMemMap): a memory file of this process,
 * mapped over the reservation, with a block (host_block.h) around it.
 *
 * Kernels can access it once a device is given access; the daemon then has a replica at the same
 * address.
 * Threads: any; serialized by virtual_memory.c.
 */
#ifndef GPC_HOST_MAPPING_H
#define GPC_HOST_MAPPING_H

#include <cuda.h>
#include <stdint.h>

struct gpc_context;

/* Maps the whole file, which stays the caller's, at the address. The context determines the daemon
 * that owns the addresses. Returns CUDA_ERROR_OUT_OF_MEMORY on failure. */
CUresult gpc_host_placed_map(struct gpc_context *context, uint64_t address, uint64_t size, int fd,
			     uint64_t id);
/* Unmaps the memory; the addresses stay reserved. */
void gpc_host_placed_unmap(uint64_t address);

#endif /* GPC_HOST_MAPPING_H */
