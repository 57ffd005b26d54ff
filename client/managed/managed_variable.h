/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed variables of images (__managed__): variables that host code and kernels access at the
 * same address. The daemon's driver has chosen the addresses, at which this process has reserved
 * pages (client/memory/globals.h).
 *
 * Ownership: the list of variables is process-wide. A variable is in it until its image is unloaded
 * or its context is destroyed.
 * Threads: any thread may call, except between gpc_pages_begin() and gpc_pages_end().
 */
#ifndef GPC_MANAGED_VARIABLE_H
#define GPC_MANAGED_VARIABLE_H

#include "client/module/image.h"

struct gpc_context;

/* Handlers for gpc_image_set_variable_calls(): add and drop the managed variables of an image. */
extern const struct gpc_image_variable_calls gpc_managed_variable_calls;

/* Sends local changes of the managed variables of a context to the device, and drops the variables
 * (hook of struct gpc_context_part). */
void gpc_managed_variable_drop_context(struct gpc_context *context);

#endif /* GPC_MANAGED_VARIABLE_H */
