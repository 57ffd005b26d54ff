/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed variables of images (__managed__): variables that host code and kernels access at the
 * same address. The daemon's driver has chosen the addresses, and this process has reserved the
 * pages there (client/memory/globals.h).
 *
 * Ownership: the list of variables is process-wide. A variable is in it until its image is unloaded
 * or its context is destroyed.
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note), but not between gpc_pages_begin() and
 * gpc_pages_end() (client/pages/pages.h). Functions block while another thread is in such a
 * section.
 */
#ifndef GPC_MANAGED_VARIABLE_H
#define GPC_MANAGED_VARIABLE_H

#include "client/module/image.h"

struct gpc_context;

/* Handlers for gpc_image_set_variable_calls() (client/module/image.h): they add and drop the
 * managed variables of an image. */
extern const struct gpc_image_variable_calls gpc_managed_variable_calls;

/* Callback unload() of struct gpc_context_part (client/context/context.h), called when the context
 * is destroyed or reset: sends local changes of its managed variables to the device, and drops the
 * variables. */
void gpc_managed_variable_drop_context(struct gpc_context *context);

#endif /* GPC_MANAGED_VARIABLE_H */
