/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registry of device variables (of modules and libraries) whose addresses the application has
 * queried. Each has owners: pairs of a context and an image (loaded device code) through which it
 * was queried. A variable without owners is removed.
 *
 * Ownership: the registry owns its entries; contexts are borrowed.
 * Threads: any; the registry has a lock of its own. No function waits for the daemon.
 */
#ifndef GPC_GLOBALS_H
#define GPC_GLOBALS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_address;
struct gpc_context;

/* Adds a variable of `size` bytes, or one more owner of it. managed: it is a managed variable.
 * image: wire ID of the image. As long as the variable has owners, lookups find it, and its pages
 * are reserved in this process. Returns 0, also if size is 0, which adds nothing, or the variable
 * has this owner already. Returns -ENOMEM or -EAGAIN if memory or mappings are exhausted. Returns
 * GP_E_INVALID if the addresses overlap another variable of the same daemon, or memory of this
 * process, which includes the window. After an error the registry is unchanged. */
GP_MUST_CHECK int gpc_globals_add(struct gpc_context *context, uint64_t address, size_t size,
				  bool managed, uint32_t image);
/* Called when an image is unloaded: removes its owners from all variables. */
void gpc_globals_drop_image(uint32_t image);

/* Returns whether the address is in a registered variable. If so, fills in *found; otherwise *found
 * is unchanged. If several daemons use the address, returns the variable of the current context's
 * daemon. */
bool gpc_globals_find(uint64_t address, struct gpc_address *found);

/* Callback drop_context() of struct gpc_context_part (client/context/context.h), called when a
 * context is destroyed or reset: removes its owners from all variables. */
void gpc_globals_drop_context(struct gpc_context *context);

#endif /* GPC_GLOBALS_H */
