/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of images that the application has asked for, by address, with those that have: a
 * context and an image each.  Any thread may call. */
#ifndef GPC_GLOBALS_H
#define GPC_GLOBALS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_address;
struct gpc_context;

/* A variable of an image became known in a context: lookups find it from now on, until all images
 * and contexts with which it was named are forgotten, and so long its pages are reserved.  -ENOMEM,
 * -EAGAIN: or this process may map no more. GP_E_INVALID: another variable, or memory of this
 * process, the window too, lies there; nothing is known of it. */
GP_MUST_CHECK int gpc_globals_add(struct gpc_context *context, uint64_t address, size_t size,
				  bool managed, uint32_t image);
void gpc_globals_drop_image(uint32_t image);

/* Fills found when address lies in a variable that gpc_globals_add() named. */
bool gpc_globals_find(uint64_t address, struct gpc_address *found);

void gpc_globals_drop_context(struct gpc_context *context);

#endif /* GPC_GLOBALS_H */
