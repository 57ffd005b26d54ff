/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker process: owns the GPUs' contexts and serves all its sessions from them.
 *
 * There is one, gpd_worker.  What is in it before `lock` is filled before any session exists and
 * read-only afterwards.  The main thread reads what the supervisor says; every session brings two
 * threads of its own (session.h), and two for each data lane (lane.h).
 */
#ifndef GPD_WORKER_H
#define GPD_WORKER_H

#include "base/lock.h"
#include "server/common/ledger/channel.h"

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPD_DEVICES_MAX 32 /* as GPD_LEDGER_DEVICES */
/* What the client maps at once for small allocations; a multiple of every granularity. */
#define GPD_HEAP_SIZE ((uint64_t)4 << 20)

struct gpd_ledger;
struct gpd_session;

struct gpd_device {
	CUdevice device;
	CUcontext primary;
	uint64_t memory;      /* bytes in all */
	uint64_t granularity; /* of cuMemCreate and of the window's mappings; a power of two */
	int major, minor;     /* compute capability */
	int multiprocessors;
	int threads_per_multiprocessor;
	int priority_least, priority_greatest;
	pthread_mutex_t limit_lock;
	size_t limits[CU_LIMIT_MAX];           /* as they are; they only grow */
	uint64_t default_limits[CU_LIMIT_MAX]; /* as sessions find them, or GP_LIMIT_UNSUPPORTED */
};

struct gpd_worker {
	int device_count;
	struct gpd_device devices[GPD_DEVICES_MAX];
	uint64_t granularity; /* the largest of the devices' */
	bool software;
	uint16_t rdma_port; /* where lanes may come over RDMA; 0: nowhere */
	int cpus;
	struct gpd_ledger *ledger; /* shared with the supervisor */

	struct gpd_channel channel; /* to the supervisor; any thread sends */
	pthread_mutex_t lock;
	struct gpd_session *sessions; /* list of all; under lock */
	struct gpd_session *leaving; /* who are not among them any more, until their work is done */
	_Atomic int session_count;
	_Atomic int lost; /* CUresult that ended this process's CUDA, or 0 */
};

extern struct gpd_worker gpd_worker;

struct gpd_worker_options {
	int fd;             /* of the channel */
	int ledger_fd;      /* closed by gpd_worker_run() */
	const char *driver; /* path, or NULL */
	const char *rdma;   /* URL to listen on for lanes, or NULL */
	bool peer_memory;   /* register device memory for them, where that is possible */
};

/* The whole life of the process; returns its exit status. */
int gpd_worker_run(const struct gpd_worker_options *options);

/* NULL: no such device. */
struct gpd_device *gpd_device_get(int ordinal);

/* Makes the device's primary context current in this thread. */
CUresult gpd_device_enter(int ordinal);

/* The session stays as long as the lock is held.  NULL: there is none. */
struct gpd_session *gpd_worker_find_locked(uint64_t id) GP_LOCKED(gpd_worker.lock);

/* Whether threads may look for work without sleeping: few sessions, many processors. */
bool gpd_worker_may_spin(void);

/* The driver said that its CUDA is lost: tells all sessions and ends the process.  Any thread. */
void gpd_worker_lost(struct gpd_session *finder, CUresult result);

#endif /* GPD_WORKER_H */
