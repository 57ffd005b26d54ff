/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer access between devices of one daemon that its driver reports as connected.
 *
 * Once the daemon has enabled access between two devices, it stays enabled for the life of the
 * session. If the program disables it, the calls behave as in CUDA, but the mapping remains: a
 * kernel that uses the memory nevertheless would otherwise fault and end the work of other sessions
 * in the same worker.
 *
 * Threads: any thread may call.
 */
#ifndef GPC_PEER_ACCESS_H
#define GPC_PEER_ACCESS_H

#include <cuda.h>
#include <stdbool.h>

struct gpc_device;

/* Returns whether kernels of device can access the memory of the other device. */
bool gpc_peer_access_is_possible(const struct gpc_device *device, const struct gpc_device *other);
/* Returns a property of the link, as the daemon's driver reports it; 0 if there is no link. */
int gpc_peer_access_get_attribute(const struct gpc_device *device, const struct gpc_device *other,
				  CUdevice_P2PAttribute attribute);
/* Enables access from device to all present and future memory of the other one;
 * gpc_peer_access_is_possible() must be true. Waits for the daemon the first time. Returns the
 * result of that call. */
CUresult gpc_peer_access_enable(struct gpc_device *device, const struct gpc_device *other);

#endif /* GPC_PEER_ACCESS_H */
