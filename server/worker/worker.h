/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker process: owns the GPU contexts and serves sessions, each of which is one client
 * process. The supervisor starts it and controls it by messages over a channel (channel.h).
 *
 * Threads: the main thread handles messages of the supervisor. Each session has two threads of its
 * own (session.h), and two for each data lane (lane.h).
 */
#ifndef GPD_WORKER_H
#define GPD_WORKER_H

#include <stdbool.h>

/* Options of the worker. The caller owns the strings. */
struct gpd_worker_options {
	int fd;        /* Socket of the channel to the supervisor. */
	int ledger_fd; /* Shared memory of the ledger (ledger.h); closed by gpd_worker_run(). */
	const char *driver; /* Path of the driver's library; NULL: the default one. */
	bool software;      /* Allow gpupool's software device instead of NVIDIA's driver. */
	const char *rdma;   /* URL to listen on for lanes over RDMA; NULL: no RDMA. */
	bool peer_memory;   /* Register device memory with the RDMA device where possible. */
};

/* Runs the worker. If it starts, ends the process and does not return; the strings in the options
 * must stay valid until then. Returns the exit status, 1, if it could not start; the supervisor has
 * then been notified of the reason, if the channel works. To be called once, by the main thread. */
int gpd_worker_run(const struct gpd_worker_options *options);

#endif /* GPD_WORKER_H */
