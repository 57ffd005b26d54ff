/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory at addresses that the program has reserved (cuMemMap): a file in memory of this
 * process, mapped over the reservation, and a block (host_block.h) around it.  Kernels reach it
 * from when a device is given access; then the daemon has memory there, too, which is kept alike.
 *
 * virtual_memory.c locks; any thread may call.
 */
#ifndef GPC_HOST_PLACED_H
#define GPC_HOST_PLACED_H

#include <cuda.h>
#include <stdint.h>

struct gpc_context;

/* All of the file, which stays the caller's; in the name of the context, which says of which daemon
 * the addresses are. */
CUresult gpc_host_placed_map(struct gpc_context *context, uint64_t address, uint64_t size, int fd,
			     uint64_t id);
/* Only the addresses are left, reserved. */
void gpc_host_placed_unmap(uint64_t address);

#endif /* GPC_HOST_PLACED_H */
