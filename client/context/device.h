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
	int daemon;       /* its number in REMOTE_GPU */
	uint64_t granted; /* memory that is the session's already */
};

/*
 * Makes the devices, each with its primary context, which stays inactive.  The program sees those
 * that CUDA_VISIBLE_DEVICES admits.  0 or -ENOMEM.
 */
GP_MUST_CHECK int gpc_devices_create(const struct gpc_device_source *sources, int count);
/* Forgets them and their primary contexts; for the child of a fork, and tests. */
void gpc_devices_destroy(void);

/* All of them, hidden ones too, in the order in which REMOTE_GPU lists them; NULL: none. */
int gpc_device_listed_count(void);
const struct gpc_device *gpc_device_get_listed(int index);

#endif /* GPC_DEVICE_H */
