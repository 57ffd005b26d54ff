/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer access between devices of one daemon whose driver reports that they can access each other.
 *
 * Once the daemon has enabled access from one device to another, it stays enabled until the session
 * ends. If the program disables it, the calls behave as in CUDA, but the mapping remains. Otherwise
 * a kernel that uses the memory nevertheless would fault, and end the work of other sessions in the
 * same worker.
 *
 * Ownership: devices are borrowed and live as long as the process.
 * Threads: any thread may call; gpc_peer_access_enable() not on the thread that reads the daemon's
 * replies.
 */
#ifndef GPC_PEER_ACCESS_H
#define GPC_PEER_ACCESS_H

#include <cuda.h>
#include <stdbool.h>

struct gpc_device;

/* Returns whether kernels of `device` can be given access to the memory of the other device.
 * Returns false for devices of different daemons. Does not query the daemon. */
bool gpc_peer_access_is_possible(const struct gpc_device *device, const struct gpc_device *other);
/* Returns a property of the link between the devices, as the daemon's driver reports it. Returns 0
 * if access is not possible or the attribute is unknown. Does not query the daemon. */
int gpc_peer_access_get_attribute(const struct gpc_device *device, const struct gpc_device *other,
				  CUdevice_P2PAttribute attribute);
/* Enables access from `device` to all present and future memory of the other device;
 * gpc_peer_access_is_possible() must be true. Waits for the daemon the first time. Returns
 * CUDA_SUCCESS, also if it is enabled already, or the error of the daemon, of an earlier posted
 * call or of the session; access then does not count as enabled. */
CUresult gpc_peer_access_enable(struct gpc_device *device, const struct gpc_device *other);

#endif /* GPC_PEER_ACCESS_H */
