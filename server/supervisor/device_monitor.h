/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the device monitor process (server/monitor/monitor.h) running, and handles its events: a
 * device that becomes sick loses its sessions and gets no new ones, instead of failing one program
 * after another until an operator notices.
 *
 * The monitor starts when the first worker has reported the devices. It watches those that are not
 * sick, and is replaced when that changes, because it has the GPUs open, and a GPU that a process
 * has open cannot be reset. It ends when the new one watches, so that no event is lost. Without
 * NVML or its events no monitor runs.
 *
 * Ownership: gpd_device_monitor_init() to gpd_device_monitor_fini().
 * Threads: the supervisor's main thread. No function blocks, except that gpd_device_monitor_fini()
 * waits up to a second for the process.
 * Units: times are milliseconds of gp_now_ms().
 */
#ifndef GPD_DEVICE_MONITOR_H
#define GPD_DEVICE_MONITOR_H

#include "server/supervisor/worker_pool.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

/* Maximum number of processes. */
#define GPD_DEVICE_MONITORS_MAX 2

struct gpd_device_monitor {
	struct gpd_worker_pool *pool;
	struct gpd_worker_process *process; /* owned; NULL: none runs. SERVING: it watches */
	/* The one that `process` replaces, owned, which watches until `process` does; NULL: none.
	 */
	struct gpd_worker_process *former;
	char *library;    /* path of the software device, owned; NULL: NVIDIA's NVML is used */
	int64_t start_ms; /* earliest time to start another process; 0: now */
	/* Time of the last gpd_device_monitor_check(); 0: none. */
	int64_t checked_ms;
	bool off; /* the driver reports no events, or the daemon stops: none is started */
};

/* Initializes without a process. pool: must outlive the monitor. */
void gpd_device_monitor_init(struct gpd_device_monitor *monitor, struct gpd_worker_pool *pool);
/* Kills the process. */
void gpd_device_monitor_fini(struct gpd_device_monitor *monitor);

/* Called in each iteration of the loop: starts the process, and replaces one that hangs. */
void gpd_device_monitor_check(struct gpd_device_monitor *monitor, int64_t now_ms);
/* Fills fds, of GPD_DEVICE_MONITORS_MAX entries, for poll(). Returns the number of entries. */
int gpd_device_monitor_poll(const struct gpd_device_monitor *monitor, struct pollfd *fds);
/* Called after poll(): handles messages of the processes. */
void gpd_device_monitor_serve(struct gpd_device_monitor *monitor);
/* Called after SIGCHLD. */
void gpd_device_monitor_reap(struct gpd_device_monitor *monitor);
/* Kills the process, and starts no other: the daemon stops. */
void gpd_device_monitor_stop(struct gpd_device_monitor *monitor);

/* Makes a sick device usable again. Returns 0; or GP_E_INVALID with a text in error, of size bytes,
 * if there is no such device, or it is not sick. */
int gpd_device_monitor_enable(struct gpd_device_monitor *monitor, uint32_t device, char *error,
			      size_t size);

#endif /* GPD_DEVICE_MONITOR_H */
