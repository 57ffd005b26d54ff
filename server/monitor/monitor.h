/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device monitor: a process that reports events of the GPUs which no new context repairs, such
 * as one that has fallen off the bus.
 *
 * It is a process of its own because of what NVML may do. The supervisor must not call NVML, which
 * may hang with the GPU. A thread of a worker would report each event once per worker, none while
 * no worker runs, and would delay the exit of a worker whose GPU has failed.
 *
 * Threads: one.
 */
#ifndef GPD_MONITOR_H
#define GPD_MONITOR_H

struct gpd_device_list;

/* Options of the monitor. The caller owns the strings. */
struct gpd_monitor_options {
	int fd; /* socket of the channel to the supervisor (channel.h); used until the end */
	const struct gpd_device_list *devices; /* the devices to watch; their UUIDs are known */
	/* Path of a library with NVML's functions; NULL: NVIDIA's libnvidia-ml.so.1. */
	const char *library;
};

/* Watches the devices and sends GPD_CHANNEL_DEVICE_EVENT, until the supervisor closes the channel.
 * Answers GPD_CHANNEL_PING. Returns the exit status: 0; or 1 if nothing can be watched, after
 * GPD_CHANNEL_FAILED with the reason. Called once, by the main thread. */
int gpd_monitor_run(const struct gpd_monitor_options *options);

#endif /* GPD_MONITOR_H */
