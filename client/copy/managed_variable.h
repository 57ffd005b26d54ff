/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables of images that are managed memory (__managed__): the driver has chosen their addresses,
 * at which this process has reserved their pages (client/memory/globals.h).  Any thread.
 */
#ifndef GPC_MANAGED_VARIABLE_H
#define GPC_MANAGED_VARIABLE_H

#include "client/code/image.h"

struct gpc_context;

/* For gpc_image_set_variable_calls(). */
extern const struct gpc_image_variable_calls gpc_managed_variable_calls;

/* For struct gpc_context_part. */
void gpc_managed_variable_drop_context(struct gpc_context *context);

#endif /* GPC_MANAGED_VARIABLE_H */
