/* SPDX-License-Identifier: Apache-2.0 */
/* Devices as NVML's users ask for them: by their place in REMOTE_GPU's list.  Any thread, when
 * there are sessions. */
#ifndef GPC_LISTED_H
#define GPC_LISTED_H

#include "client/base/pool_table.h"

/* CUDA_ERROR_INVALID_DEVICE: there is none. */
CUresult gpc_listed_device_describe(int index, struct gpc_pool_device *out);
/* reach.h. */
bool gpc_listed_device_has_peer_access(int index, int other);
/* One round trip, in no context's name. */
CUresult gpc_listed_device_get_state(int index, unsigned int parts, struct gp_device_state *state);

#endif /* GPC_LISTED_H */
