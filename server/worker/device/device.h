/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs of this process: what is known of them, and their contexts.
 *
 * All sessions work in one context of each device, its primary one.  gpd_devices_start() fills
 * gpd_devices before any session exists; after that only what is atomic changes, and limits, under
 * their lock.  Any thread.
 */
#ifndef GPD_DEVICE_H
#define GPD_DEVICE_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPD_DEVICES_MAX 32 /* as GPD_LEDGER_DEVICES */

struct gpd_ledger;

struct gpd_device {
	CUdevice device;
	CUcontext primary;
	uint64_t memory;      /* bytes in all */
	uint64_t granularity; /* of cuMemCreate and of the window's mappings; a power of two */
	uint32_t peers;       /* bit n: its kernels may be given the memory of device n */
	int multiprocessors;
	int threads_per_multiprocessor;
	int priority_least, priority_greatest;
	pthread_mutex_t limit_lock;
	_Atomic size_t limits[CU_LIMIT_MAX];   /* as they are; they only grow, under the lock */
	uint64_t default_limits[CU_LIMIT_MAX]; /* as sessions find them, or GP_LIMIT_UNSUPPORTED */
};

struct gpd_devices {
	int count;
	struct gpd_device all[GPD_DEVICES_MAX];
	uint64_t granularity; /* the largest of the devices' */
	_Atomic int lost;     /* CUresult that ended this process's CUDA, or 0 */
	/* A kernel was launched that may allocate memory on the device: what such kernels do not
	 * free stays in the context for ever. */
	_Atomic bool heap_used;
};

extern struct gpd_devices gpd_devices;

/* Opens the driver, as gpd_driver_open() does, and takes all its devices into use; writes their
 * memory into the ledger.  0, or -1 and why. */
int gpd_devices_start(const char *driver, bool software, struct gpd_ledger *ledger, char *error,
		      size_t size);

/* NULL: no such device. */
struct gpd_device *gpd_device_get(int ordinal);

/* Whether kernels of the first can be given the memory of the second, which is another one. */
bool gpd_device_has_peer(int ordinal, int peer);

/* Makes the device's primary context current in this thread. */
CUresult gpd_device_enter(int ordinal);

#endif /* GPD_DEVICE_H */
