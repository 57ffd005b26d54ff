/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exports of memory to other processes, and the handles that these open, for the files of each kind
 * of memory: ipc_memory.h, ipc_pool.h and physical_memory.h.
 *
 * Ownership: the exported memory owns its export. The context in it is borrowed and never freed.
 * Threads: any thread. The file of the exported memory guards its exports.
 */
#ifndef GPC_IPC_EXPORT_H
#define GPC_IPC_EXPORT_H

#include "client/base/handle.h"
#include "protocol/ipc_handle.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct gpc_context;
struct gpc_session_facts;

/* An export: of an allocation, of physical memory (physical_memory.h), or of a pool or one of its
 * mappings (ipc_pool.h). */
struct gpc_ipc_export {
	struct gpc_handle handle;
	struct gpc_context *context; /* context of the memory */
	/* start address of an exported allocation; 0: another export */
	uint64_t address;
	struct gp_ipc_handle ipc_handle; /* handle that other processes open */
};

/* Withdraws an export, so that it cannot be opened any more, and frees it. Accepts NULL. May be
 * called with the pools' lock. */
void gpc_ipc_export_withdraw(struct gpc_ipc_export *export);

/* Returns whether the bytes are a handle of this kind. */
static inline bool
gpc_ipc_handle_is_of_kind(const struct gp_ipc_handle *ipc_handle, enum gp_ipc_kind kind)
{
	return memcmp(ipc_handle->magic, GP_IPC_MAGIC, sizeof(ipc_handle->magic)) == 0 &&
	       ipc_handle->kind == kind;
}

/* Returns whether a handle of device memory, of which another process may have changed the bytes,
 * is within the client's own limits; the daemon checks the rest. */
bool gpc_ipc_handle_is_valid(const struct gp_ipc_handle *ipc_handle, enum gp_ipc_kind kind,
			     const struct gpc_session_facts *facts);

#endif /* GPC_IPC_EXPORT_H */
