/* SPDX-License-Identifier: Apache-2.0 */
/* How busy each process keeps a GPU: what its kernels took between two looks.  Any thread. */
#ifndef GPN_SHARE_H
#define GPN_SHARE_H

#include "nvml/pool.h"

struct gpn_utilization_sample {
	unsigned int pid, percent;
};

struct gpn_utilization_samples {
	uint64_t time_us; /* of the later look, on the system's clock */
	size_t count;
	struct gpn_utilization_sample list[GP_STATE_PROCESSES_MAX];
};

/* Processes of this machine and tenant.  Who asks first waits for the second look.  enum
 * gpn_result. */
int gpn_utilization_samples(struct gpn_device *device, struct gpn_utilization_samples *shares);

#endif /* GPN_SHARE_H */
