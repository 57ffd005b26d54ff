/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registry of device variables (of modules and libraries) whose addresses the application has
 * queried. Each is associated with the contexts and images through which it was queried.
 *
 * Threads: any.
 */
#ifndef GPC_GLOBALS_H
#define GPC_GLOBALS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_address;
struct gpc_context;

/* Adds a variable of an image in a context. Lookups find it, and its pages stay reserved in this
 * process, until all its images and contexts are dropped. Returns -ENOMEM or -EAGAIN if memory or
 * mappings are exhausted; GP_E_INVALID, without effect, if the addresses overlap another variable
 * or memory of this process, including the window. */
GP_MUST_CHECK int gpc_globals_add(struct gpc_context *context, uint64_t address, size_t size,
				  bool managed, uint32_t image);
/* Removes all variables of the image, except as queried through other images. */
void gpc_globals_drop_image(uint32_t image);

/* Fills in `found` and returns true if the address is in a registered variable. */
bool gpc_globals_find(uint64_t address, struct gpc_address *found);

/* Removes all variables of the context, except as queried through other contexts. */
void gpc_globals_drop_context(struct gpc_context *context);

#endif /* GPC_GLOBALS_H */
