/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker process: owns the GPU contexts and serves its sessions from them.
 *
 * Threads: the main thread handles messages of the supervisor; each session has two threads of its
 * own (session.h), and two for each data lane (lane.h).
 */
#ifndef GPD_WORKER_H
#define GPD_WORKER_H

#include <stdbool.h>

struct gpd_worker_options {
	int fd;             /* of the channel to the supervisor */
	int ledger_fd;      /* closed by gpd_worker_run() */
	const char *driver; /* path of the driver's library, or NULL */
	bool software;      /* allow the software device instead of NVIDIA's driver */
	const char *rdma;   /* URL to listen on for lanes over RDMA, or NULL */
	bool peer_memory;   /* register device memory with the RDMA device where possible */
};

/* Runs the worker until the process ends; returns the exit status if it could not start. */
int gpd_worker_run(const struct gpd_worker_options *options);

#endif /* GPD_WORKER_H */
