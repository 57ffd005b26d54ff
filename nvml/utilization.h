/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU utilization per process: the percentage of the time between two samples during which kernels
 * of the process ran.
 *
 * Ownership: results are written to memory of the caller.
 * Threads: any; one lock serializes all calls, of any device. A call may sleep until the second
 * sample, and waits for replies of the daemon, with the lock held.
 */
#ifndef GPN_UTILIZATION_H
#define GPN_UTILIZATION_H

#include "nvml/pool.h"

/* Utilization of the device by a process, in percent. */
struct gpn_utilization_sample {
	unsigned int pid, percent;
};

/* The processes of a device. */
struct gpn_utilization_samples {
	uint64_t time_us; /* time of the later sample, in microseconds since 1970 */
	size_t count;     /* number of valid elements of list */
	struct gpn_utilization_sample list[GP_STATE_PROCESSES_MAX];
};

/* Stores the utilization of the device by processes of this machine and tenant, at most 100 percent
 * each. Takes another sample if the last one is at least 200 ms old. The first call for a device,
 * and the first one after a failed sample or after fork(), takes two and sleeps for 200 ms between
 * them. device: from gpn_find_device(). Returns GPN_SUCCESS, GPN_MEMORY or an error of
 * gpn_get_process_times() (pool.h); *shares is undefined unless it is GPN_SUCCESS. */
int gpn_utilization_samples(struct gpn_device *device, struct gpn_utilization_samples *shares);

#endif /* GPN_UTILIZATION_H */
