/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IPC of device memory (cuIpcGetMemHandle, cuIpcOpenMemHandle): allocations of this process that
 * are exported to other processes, and imported allocations of other processes, mapped in this
 * process's window.
 *
 * An exported mapping is unmapped when it is freed, not cached (memory.h), because importers may
 * use it longer.
 *
 * Ownership: the module owns exports of allocations; struct gpc_physical (physical_memory.h),
 * struct gpc_pool (pool.h) and the mappings of a pool (struct gpc_space_mapping,
 * client/alloc/pool_space.h) own theirs.
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note). gpc_ipc_memory_withdraw() and
 * gpc_ipc_memory_drop_context() wait while another thread exports, opens or closes memory, which
 * takes a round trip.
 */
#ifndef GPC_IPC_MEMORY_H
#define GPC_IPC_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct gpc_address;
struct gpc_context;

/* Returns whether an export or import was ever attempted; without a lock. Until then the lookups
 * find nothing. */
bool gpc_ipc_memory_any(void);
/* Returns whether the address is in an imported mapping. If it is in the imported allocation, fills
 * in *found; otherwise *found is unchanged. */
bool gpc_ipc_memory_find(uint64_t address, struct gpc_address *found);
/* Returns whether the memory, as looked up by gpc_address_lookup() (address.h), can be exported. */
bool gpc_ipc_memory_can_export(const struct gpc_address *found);
/* Returns whether the address is in an exported allocation or an imported mapping. */
bool gpc_ipc_memory_is_shared(uint64_t address);

/* Withdraws the export of the allocation that starts at the address, so that it cannot be opened
 * any more. Has no effect if there is none. Called before the allocation is freed. */
void gpc_ipc_memory_withdraw(uint64_t address);

/* Callback unload() of struct gpc_context_part (client/context/context.h), called when a context is
 * destroyed or reset: withdraws its exports and unmaps its imports. */
void gpc_ipc_memory_drop_context(struct gpc_context *context);

#endif /* GPC_IPC_MEMORY_H */
