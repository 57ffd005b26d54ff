/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creation of the devices of all sessions, of which the application sees those that
 * CUDA_VISIBLE_DEVICES selects. They are created from the Welcomes (the daemons' descriptions of
 * their sessions and devices) when the sessions are opened. Queries about them then need no round
 * trip. struct gpc_device is in context.h.
 *
 * Ownership: the process owns the devices until gpc_devices_destroy(). Returned devices are
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
	int daemon;       /* number of the daemon, from 0 in the order of REMOTE_GPU */
	uint64_t granted; /* bytes of the device's memory that the daemon has granted to the session
			     in the Welcome */
};

/*
 * Creates the devices, each with its inactive primary context. sources: all devices in the order of
 * REMOTE_GPU, source_count elements; copied, except for the sessions. Warns by gpc_log_warn()
 * (client/base/log.h) if CUDA_VISIBLE_DEVICES contains an invalid entry. Called once, and again
 * only after gpc_devices_destroy(). Returns 0, or -ENOMEM, after which no devices exist.
 */
GP_MUST_CHECK int gpc_devices_create(const struct gpc_device_source *sources, int source_count);
/* Frees the devices and all contexts (gpc_contexts_drop_all()). Called in the child of a fork, so
 * that it can open sessions of its own, and by tests; never in a process that may use CUDA. A
 * failed gpc_devices_create() calls it itself. */
void gpc_devices_destroy(void);

/* Returns the number of all devices, including hidden ones. */
int gpc_any_device_count(void);
/* Returns a device, which may be hidden, by its index in the order of REMOTE_GPU, or NULL if the
 * index is not from 0 to gpc_any_device_count() - 1. */
const struct gpc_device *gpc_any_device_get(int index);

#endif /* GPC_DEVICE_H */
