/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed variables of images (__managed__). The daemon's driver has chosen their addresses, at
 * which this process has reserved pages (client/memory/globals.h).
 *
 * Threads: any thread may call.
 */
#ifndef GPC_MANAGED_VARIABLE_H
#define GPC_MANAGED_VARIABLE_H

#include "client/module/image.h"

struct gpc_context;

/* Handlers for gpc_image_set_variable_calls(). */
extern const struct gpc_image_variable_calls gpc_managed_variable_calls;

/* Drops the managed variables of a context (for struct gpc_context_part). */
void gpc_managed_variable_drop_context(struct gpc_context *context);

#endif /* GPC_MANAGED_VARIABLE_H */
