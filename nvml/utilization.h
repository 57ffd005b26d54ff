/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU utilization per process: the share of the time that its kernels ran between two samples.
 *
 * Threads: any; a call may sleep until the second sample.
 */
#ifndef GPN_UTILIZATION_H
#define GPN_UTILIZATION_H

#include "nvml/pool.h"

struct gpn_utilization_sample {
	unsigned int pid, percent;
};

struct gpn_utilization_samples {
	uint64_t time_us; /* time of the later sample, on the system clock */
	size_t count;
	struct gpn_utilization_sample list[GP_STATE_PROCESSES_MAX];
};

/* Returns the utilization by processes of this machine and tenant. Takes a new sample if the last
 * one is too old; the first call takes two, 200 ms apart. Returns enum gpn_result. */
int gpn_utilization_samples(struct gpn_device *device, struct gpn_utilization_samples *shares);

#endif /* GPN_UTILIZATION_H */
