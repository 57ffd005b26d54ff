/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of images that the application has asked for, by address, with those that have: a
 * context and an image each.  Any thread may call. */
#ifndef GPC_GLOBALS_H
#define GPC_GLOBALS_H

#include <stdbool.h>
#include <stdint.h>

struct gpc_address;
struct gpc_context;

/* Fills found when address lies in a variable that gpc_memory_add_global() named. */
bool gpc_globals_find(uint64_t address, struct gpc_address *found);

void gpc_globals_forget_context(struct gpc_context *context);

#endif /* GPC_GLOBALS_H */
