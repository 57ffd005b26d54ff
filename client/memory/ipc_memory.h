/* SPDX-License-Identifier: Apache-2.0 */
/*
 * IPC of device memory (cuIpcGetMemHandle, cuIpcOpenMemHandle): allocations of this process that
 * are exported to others, and imported allocations of other processes, mapped in this process's
 * window.
 *
 * An exported mapping is unmapped when it is freed instead of being cached (memory.h), because
 * importers may keep it longer.
 * Threads: any.
 */
#ifndef GPC_IPC_MEMORY_H
#define GPC_IPC_MEMORY_H

#include "client/base/handle.h"
#include "protocol/ipc_handle.h"

#include <stdbool.h>
#include <stdint.h>

struct gpc_address;
struct gpc_context;

/* An export: an allocation, or physical memory (physical_memory.h). */
struct gpc_ipc_export {
	struct gpc_handle handle;
	struct gpc_context *context; /* context of the memory */
	uint64_t address;            /* start address of an allocation */
	struct gp_ipc_handle bytes;
};

/* Returns whether anything was ever exported or imported; until then, the queries below need no
 * lock. */
bool gpc_ipc_memory_any(void);
/* Fills in `found` if the address is in imported memory. Returns whether it is in an imported
 * mapping. */
bool gpc_ipc_memory_find(uint64_t address, struct gpc_address *found);
/* Return whether the memory can be exported; and whether it is exported or imported. */
bool gpc_ipc_memory_can_export(const struct gpc_address *found);
bool gpc_ipc_memory_is_shared(uint64_t address);

/* Withdraws the export of the allocation that starts at the address, if any; called before it is
 * freed. */
void gpc_ipc_memory_withdraw(uint64_t address);

/* Hook for struct gpc_context_part. */
void gpc_ipc_memory_drop_context(struct gpc_context *context);

#endif /* GPC_IPC_MEMORY_H */
