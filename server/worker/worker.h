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

#include "server/worker/syscall_filter.h"

#include <stdbool.h>

/* Maximum number of hardware queues of a context. */
#define GPD_CONNECTIONS_MAX 32
struct gpd_device_list;

/* Options of the worker. The caller owns the strings. */
struct gpd_worker_options {
	int fd;        /* socket of the channel to the supervisor; used until the end */
	int ledger_fd; /* shared memory of the ledger (ledger.h); closed by gpd_worker_run() */
	/* CUDA_DEVICE_MAX_CONNECTIONS, unless the environment has it: 1 to GPD_CONNECTIONS_MAX. */
	int connections;
	const struct gpd_device_list *devices; /* the devices to create contexts on */
	const char *driver; /* path of the driver's library; NULL: the default one */
	bool software;      /* allow gpupool's software device instead of NVIDIA's driver */
	const char *rdma;   /* URL to listen on for lanes over RDMA; NULL: no RDMA */
	/* with rdma: register device memory with the RDMA device where possible */
	bool peer_memory;
	/* calls that the worker does not need fail, once it has started */
	enum gpd_syscall_filter_mode syscall_filter;
};

/* Runs the worker until the channel is closed or the supervisor requests the end, then ends the
 * process: it does not return. The strings in the options must stay valid. Returns 1, the exit
 * status, only if the worker could not start; the supervisor has then been notified of the reason
 * (GPD_CHANNEL_FAILED), if the channel works. Called once, by the main thread. */
int gpd_worker_run(const struct gpd_worker_options *options);

#endif /* GPD_WORKER_H */
