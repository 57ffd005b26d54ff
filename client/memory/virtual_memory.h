/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management of the application (cuMemAddressReserve, cuMemMap, cuMemSetAccess):
 * maps physical memory (physical_memory.h) at reserved addresses.
 *
 * Reservations belong to no context. Small ones are in the session's window; large ones are outside
 * it, at addresses that the daemon chooses and that are free in this process (virtual_address.c).
 * Threads: any.
 */
#ifndef GPC_VIRTUAL_MEMORY_H
#define GPC_VIRTUAL_MEMORY_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_address;
struct gpc_context;

/* A reservation; for virtual_*.c only. */
struct gpc_virtual_address {
	uint64_t base;              /* address returned to the application */
	uint64_t whole, whole_size; /* the whole range reserved for it, including alignment */
	bool outside_window;        /* not in the session's window */
};

/* Reserves addresses. alignment: a power of two, or 0. context determines the session. Returns
 * CUDA_ERROR_OUT_OF_MEMORY if none are available. */
CUresult gpc_virtual_address_reserve(struct gpc_context *context, uint64_t size, uint64_t alignment,
				     struct gpc_virtual_address *address);
/* Frees a reservation in which nothing is mapped. */
void gpc_virtual_address_free(struct gpc_context *context,
			      const struct gpc_virtual_address *address);

/* Returns whether the application has reserved the address, and fills in `found` with the
 * accessible memory there, extended over adjacent mappings. */
bool gpc_virtual_memory_find(uint64_t address, struct gpc_address *found);

/* Serialize calls about physical memory. gpc_virtual_memory_lock() checks that CUDA is initialized
 * and acquires the lock only if it returns CUDA_SUCCESS; gpc_virtual_memory_unlock() releases it
 * and returns `result`. */
CUresult gpc_virtual_memory_lock(void);
CUresult gpc_virtual_memory_unlock(CUresult result);

#endif /* GPC_VIRTUAL_MEMORY_H */
