/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management of the application: physical memory (cuMemCreate), which the daemon
 * has, mapped at addresses that were reserved before.  It belongs to no context.  Any thread.
 * virtual_address.c has the reservations: small ones from the session's window, large ones besides
 * it, at addresses that the daemon chooses and this process has free.
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
	uint64_t base;              /* as the application has it */
	uint64_t whole, whole_size; /* what was taken for it */
	bool outside_window;        /* the window */
};

/* alignment: a power of two, or 0.  context names the session. */
CUresult gpc_virtual_address_reserve(struct gpc_context *context, uint64_t size, uint64_t alignment,
				     struct gpc_virtual_address *address);
/* What was mapped there has been unmapped. */
void gpc_virtual_address_free(struct gpc_context *context,
			      const struct gpc_virtual_address *address);

/* Whether the application has reserved the address; what is accessible there, as far as it goes on
 * without a gap. */
bool gpc_virtual_memory_find(uint64_t address, struct gpc_address *found);

/* Around what is done with physical memory: with the calls locked, if it succeeds; and the end of
 * it, which returns the result. */
CUresult gpc_virtual_memory_lock(void);
CUresult gpc_virtual_memory_unlock(CUresult result);

#endif /* GPC_VIRTUAL_MEMORY_H */
