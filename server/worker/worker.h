/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker process: owns the GPUs' contexts and serves all its sessions from them.
 *
 * The main thread reads what the supervisor says; every session brings two threads of its own
 * (session.h), and two for each data lane (lane.h).
 */
#ifndef GPD_WORKER_H
#define GPD_WORKER_H

#include <stdbool.h>

struct gpd_worker_options {
	int fd;             /* of the channel */
	int ledger_fd;      /* closed by gpd_worker_run() */
	const char *driver; /* path, or NULL */
	bool software;      /* the software device may replace NVIDIA's driver */
	const char *rdma;   /* URL to listen on for lanes, or NULL */
	bool peer_memory;   /* register device memory for them, where that is possible */
};

/* The whole life of the process; returns its exit status. */
int gpd_worker_run(const struct gpd_worker_options *options);

#endif /* GPD_WORKER_H */
