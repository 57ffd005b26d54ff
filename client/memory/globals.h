/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registry of device variables (of modules and libraries) whose addresses the application has
 * queried. Each is associated with the contexts and images (loaded device code) through which it
 * was queried.
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

/* Adds a variable of `size` bytes of an image in a context. managed: it is a managed variable.
 * image: wire ID of the image. Lookups find the variable, and its pages stay reserved in this
 * process, until all its images and contexts are dropped. Returns 0, also if size is 0 or the
 * variable is registered already. Returns -ENOMEM or -EAGAIN if memory or mappings are exhausted;
 * GP_E_INVALID if the addresses overlap another variable or memory of this process, including the
 * window. After an error the registry is unchanged. */
GP_MUST_CHECK int gpc_globals_add(struct gpc_context *context, uint64_t address, size_t size,
				  bool managed, uint32_t image);
/* Drops the image: removes its variables, except those that were also queried through other
 * images. */
void gpc_globals_drop_image(uint32_t image);

/* Returns whether the address is in a registered variable. If so, fills in *found; otherwise *found
 * is unchanged. */
bool gpc_globals_find(uint64_t address, struct gpc_address *found);

/* Drops the context: removes its variables, except those that were also queried through other
 * contexts. */
void gpc_globals_drop_context(struct gpc_context *context);

#endif /* GPC_GLOBALS_H */
