/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds of arrays that the daemon's driver has made: format, channels, flags, and how many
 * dimensions.  One more of such a kind and of a size that every GPU takes is not refused, so nobody
 * waits for it.  Kept as long as the process; any thread may call.
 */
#ifndef GPC_ARRAY_KINDS_H
#define GPC_ARRAY_KINDS_H

#include "protocol/array_geometry.h"

#include <stdbool.h>

struct gpc_device;

/* Whether the driver is sure to take this shape, if it has the memory. */
bool gpc_array_kinds_have(const struct gpc_device *device, const struct gp_array_shape *shape);
/* One of this shape was made. */
void gpc_array_kinds_learn(const struct gpc_device *device, const struct gp_array_shape *shape);

#endif /* GPC_ARRAY_KINDS_H */
