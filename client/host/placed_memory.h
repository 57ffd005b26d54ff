/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placed memory: host memory at addresses that the program has reserved (cuMemMap). It is a memory
 * file of this process (memfd_create), mapped over the reservation and registered as a block with
 * origin GPC_HOST_PLACED (host_block.h).
 *
 * Kernels can access it once the program gives a device access. The worker then has a replica:
 * memory at the same address, whose content coherence.h keeps identical.
 *
 * Ownership: the caller owns the file and the reservation. Reserved addresses are inaccessible
 * (PROT_NONE) until memory is mapped there, so no block with contents can be there.
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note); client/memory/virtual_memory.c serializes the
 * calls for one reservation.
 * Units: addresses and sizes are bytes and multiples of the page size.
 */
#ifndef GPC_PLACED_MEMORY_H
#define GPC_PLACED_MEMORY_H

#include <cuda.h>
#include <stdint.h>

struct gpc_context;

/* Maps the first `size` bytes of the file at the address. gpc_host_placed_unmap() undoes it. fd
 * remains the caller's and may be closed afterwards. context: a context of the session to which the
 * addresses belong. id: CU_POINTER_ATTRIBUTE_BUFFER_ID. The addresses must be reserved, with
 * nothing mapped there: memory at them is replaced, also on failure. Returns CUDA_SUCCESS, or
 * CUDA_ERROR_OUT_OF_MEMORY with the addresses inaccessible as before, also if the registry has
 * another block there: one whose memory the program unmapped without unregistering it. */
CUresult gpc_host_placed_map(struct gpc_context *context, uint64_t address, uint64_t size, int fd,
			     uint64_t id);
/* Unmaps the memory that starts at the address, in this process and in the worker; the addresses
 * stay reserved. Waits, without limit, for copies in flight to or from the memory, and ignores
 * their errors. Has no effect if there is no such memory. */
void gpc_host_placed_unmap(uint64_t address);

#endif /* GPC_PLACED_MEMORY_H */
