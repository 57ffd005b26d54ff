/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs of this worker process: their properties, limits and contexts.
 *
 * All sessions work in the primary context of each device. gpd_devices_start() fills gpd_devices
 * before any session exists.
 *
 * Ownership: gpd_devices lives as long as the process.
 * Threads: any after start; only the atomic members change later, the limits with limit_lock.
 * Errors: CUresult, unless noted.
 */
#ifndef GPD_DEVICE_H
#define GPD_DEVICE_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPD_DEVICES_MAX 32 /* same as GPD_LEDGER_DEVICES */

struct gpd_ledger;

struct gpd_device {
	CUdevice device;
	CUcontext primary;
	uint64_t memory;      /* total bytes */
	uint64_t granularity; /* of cuMemCreate() and of mappings in windows; a power of two */
	uint32_t peers;       /* bit n: its kernels can access memory of device n */
	int multiprocessors;
	int threads_per_multiprocessor;
	int priority_least, priority_greatest;
	pthread_mutex_t limit_lock;
	_Atomic size_t limits[CU_LIMIT_MAX]; /* current values; they only grow, under limit_lock */
	uint64_t default_limits[CU_LIMIT_MAX]; /* initial, or GP_LIMIT_UNSUPPORTED */
};

struct gpd_devices {
	int count;
	struct gpd_device all[GPD_DEVICES_MAX];
	uint64_t granularity; /* largest of all devices */
	_Atomic int lost;     /* CUresult that made CUDA unusable in this process, or 0 */
	/* A kernel was launched that may allocate device heap memory. Memory that such kernels do
	 * not free stays allocated in the context until the process ends. */
	_Atomic bool heap_used;
};

extern struct gpd_devices gpd_devices;

/* Opens the driver, as gpd_driver_open() does, initializes all its devices and writes their memory
 * sizes into the ledger. Returns 0, or -1 with the reason in error. */
int gpd_devices_start(const char *driver, bool software, struct gpd_ledger *ledger, char *error,
		      size_t size);

/* Returns NULL if there is no such device. */
struct gpd_device *gpd_device_get(int ordinal);

/* Whether kernels of the first device can access memory of the second, which must be another
 * one. */
bool gpd_device_has_peer(int ordinal, int peer);

/* Makes the device's primary context current in this thread. */
CUresult gpd_device_enter(int ordinal);

#endif /* GPD_DEVICE_H */
