/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory of one process in another (cuIpcGetMemHandle, cuIpcOpenMemHandle): allocations of
 * this process that others may open, and mappings of theirs in this one's window.  Any thread.
 *
 * A mapping that was shared is given back when it is freed, and not kept (memory.h): who has opened
 * it may have it for longer.
 */
#ifndef GPC_IPC_MEMORY_H
#define GPC_IPC_MEMORY_H

#include "client/base/handle.h"
#include "protocol/ipc_handle.h"

#include <stdbool.h>
#include <stdint.h>

struct gpc_address;
struct gpc_context;

/* What others may open: an allocation, or physical memory (physical_memory.h). */
struct gpc_ipc_export {
	struct gpc_handle handle;
	struct gpc_context *context; /* whose it is */
	uint64_t address;            /* of an allocation */
	struct gp_ipc_handle bytes;
};

/* Whether there has been any: what is asked below is answered without a lock while not. */
bool gpc_ipc_memory_any(void);
/* Of another process's memory. */
bool gpc_ipc_memory_find(uint64_t address, struct gpc_address *found);
/* Whether the memory can be given to other processes; whether another one has, or may have, it. */
bool gpc_ipc_memory_can_export(const struct gpc_address *found);
bool gpc_ipc_memory_is_shared(uint64_t address);

/* The allocation that begins there, if one does, is about to be freed. */
void gpc_ipc_memory_withdraw(uint64_t address);

/* For struct gpc_context_part. */
void gpc_ipc_memory_drop_context(struct gpc_context *context);

#endif /* GPC_IPC_MEMORY_H */
