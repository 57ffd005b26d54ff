/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management of the application: physical memory (cuMemCreate), which the daemon
 * has, mapped at addresses that were reserved before.  It belongs to no context.  Any thread.
 */
#ifndef GPC_VIRTUAL_MEMORY_H
#define GPC_VIRTUAL_MEMORY_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_address;

/* Whether the application has reserved the address; what is accessible there, as far as it goes on
 * without a gap. */
bool gpc_virtual_memory_find(uint64_t address, struct gpc_address *found);

/* Around what is done with physical memory: with the calls locked, if it succeeds; and the end of
 * it, which returns the result. */
CUresult gpc_virtual_memory_enter(void);
CUresult gpc_virtual_memory_leave(CUresult result);

#endif /* GPC_VIRTUAL_MEMORY_H */
