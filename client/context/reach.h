/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which devices can be given whose memory: those of one daemon between which its driver has a link.
 * The daemon is told once that kernels of a device shall reach another one's memory, and then keeps
 * to it while the session lives: what a program takes back is answered as CUDA does, but a kernel
 * that uses it all the same would end the work of others in the same worker.  Any thread.
 */
#ifndef GPC_REACH_H
#define GPC_REACH_H

#include <cuda.h>
#include <stdbool.h>

struct gpc_device;

/* Whether kernels of the device can be given the memory of the other one. */
bool gpc_peer_access_is_possible(const struct gpc_device *device, const struct gpc_device *other);
/* What the driver says of the link; 0 where there is none. */
int gpc_peer_access_get_attribute(const struct gpc_device *device, const struct gpc_device *other,
				  CUdevice_P2PAttribute attribute);
/* Has the daemon give it, all that is there and all that comes; the caller has asked
 * gpc_peer_access_is_possible().  It waits for the daemon, the first time. */
CUresult gpc_peer_access_enable(struct gpc_device *device, const struct gpc_device *other);

#endif /* GPC_REACH_H */
