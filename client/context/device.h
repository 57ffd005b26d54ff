/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices that the application sees: made from the Welcome when the session is opened, then
 * constant, so that questions about them are answered without asking the daemon.
 */
#ifndef GPC_DEVICE_H
#define GPC_DEVICE_H

#include "client/context/context.h"
#include "protocol/control.h"

/* A device of a checked Welcome, and the session that reaches it. */
struct gpc_device_source {
	const Gpupool__Device *device;
	struct gpc_session *session;
	int daemon; /* its number in REMOTE_GPU */
};

/*
 * Makes those devices that CUDA_VISIBLE_DEVICES admits, each with its primary context, which stays
 * inactive.  0 or -ENOMEM.
 */
GP_MUST_CHECK int gpc_devices_create(const struct gpc_device_source *sources, int count);
/* Forgets them and their primary contexts; for the child of a fork, and tests. */
void gpc_devices_destroy(void);

/* 0 for an attribute that the daemon's driver does not know. */
int gpc_device_attribute(const struct gpc_device *device, CUdevice_attribute attribute);

#endif /* GPC_DEVICE_H */
