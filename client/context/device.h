/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices of the pool that the application sees. They are created from the Welcome (the daemon's
 * description of the session and its devices) when the session is opened and are constant
 * afterwards, so queries about them need no round trip.
 *
 * Ownership: the process owns the devices; gpc_devices_destroy() frees them. Returned devices are
 * borrowed.
 * Threads: any thread may read; create and destroy are called while no other thread uses CUDA.
 */
#ifndef GPC_DEVICE_H
#define GPC_DEVICE_H

#include "client/context/context.h"
#include "protocol/control.h"

/* A device of a validated Welcome, and the session for its calls. Both are borrowed; the session
 * must live as long as the devices. */
struct gpc_device_source {
	const Gpupool__Device *device;
	struct gpc_session *session;
	int daemon;       /* index of the daemon in REMOTE_GPU */
	uint64_t granted; /* bytes of the device's memory that are already granted to the session */
};

/*
 * Creates the devices, each with its inactive primary context. The program sees those that
 * CUDA_VISIBLE_DEVICES selects. sources are copied, except for the sessions. Called once. Returns
 * 0, or -ENOMEM, after which no devices exist.
 */
GP_MUST_CHECK int gpc_devices_create(const struct gpc_device_source *sources, int count);
/* Frees the devices and all contexts. Only for the child of a fork, and for tests. */
void gpc_devices_destroy(void);

/* Returns the number of all devices, including hidden ones. */
int gpc_device_listed_count(void);
/* Returns a device, which may be hidden, by its index in the order of REMOTE_GPU, or NULL if the
 * index is not from 0 to gpc_device_listed_count() - 1. */
const struct gpc_device *gpc_device_get_listed(int index);

#endif /* GPC_DEVICE_H */
