/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs of this worker process: their properties, limits and contexts.
 *
 * All sessions work in the primary context of each device. gpd_devices_start() fills gpd_devices
 * before any session exists, and creates the first context; gpd_device_enter() creates the others
 * when a session uses their device. An ordinal is an index into gpd_devices.all, the daemon's
 * number of the device, which is the same in all workers. The driver's number, gpd_device.device,
 * may differ: it is that of the devices that this process sees. A device that the worker does not
 * use is absent: it never has a context, and no session of the worker sees it.
 *
 * Ownership: gpd_devices exists as long as the process, and so does every context.
 * Threads: any after start; only the atomic members change later, the limits with limit_lock held.
 * Members that need a context may be read once gpd_device_has_context() has returned true.
 * Errors: CUDA_SUCCESS or the driver's error, unless noted.
 */
#ifndef GPD_DEVICE_H
#define GPD_DEVICE_H

#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPD_DEVICES_MAX 32 /* maximum number of devices; same as GPD_LEDGER_DEVICES */

struct gpd_channel_context;
struct gpd_device_list;
struct gpd_ledger;
struct gpd_limit_request;

/* A GPU. */
struct gpd_device {
	CUdevice device; /* the driver's number of the device; -1: the process does not see it */
	bool absent;     /* the worker does not use the device, and has no context on it */
	uint64_t memory; /* total bytes */
	/* Granularity in bytes of cuMemCreate() and of mappings in windows; a power of two. */
	uint64_t granularity;
	uint32_t peers; /* bit n: its kernels can access memory of device n, another device */
	int multiprocessors;
	int threads_per_multiprocessor;
	pthread_mutex_t context_lock; /* held while the context is created */
	_Atomic bool has_context;     /* set with context_lock held */
	_Atomic bool has_failed;      /* creating the context has failed, which has been logged */
	CUcontext primary; /* needs a context: primary context, retained until the process ends */
	/* Range of stream priorities; least is the larger number. Without a context, as for
	 * default_limits, the values of another device. */
	int priority_least, priority_greatest;
	pthread_mutex_t limit_lock; /* serializes changes of the limits */
	/* Current values of cuCtxGetLimit(), by CUlimit; changed under limit_lock
	 * (context/context_limit.h). */
	_Atomic size_t limits[CU_LIMIT_MAX];
	/* List of the requests of sessions; limit_lock. NULL: none. */
	struct gpd_limit_request *limit_requests;
	/* Values that the worker has set when it created the context, by CUlimit. */
	uint64_t own_limits[CU_LIMIT_MAX];
	/* The driver's initial values, by CUlimit; GP_LIMIT_UNSUPPORTED (protocol/control.h): the
	 * device has no such limit. */
	uint64_t default_limits[CU_LIMIT_MAX];
};

/* All GPUs; the first count elements are valid, by ordinal. */
struct gpd_devices {
	int count;
	struct gpd_device all[GPD_DEVICES_MAX];
	int connections;      /* number of hardware queues of each context */
	uint64_t granularity; /* largest granularity of all devices */
	/* CUresult that made CUDA unusable in this process, set by gpd_session_poison(); 0: it is
	 * usable */
	_Atomic int lost;
	/* Why another worker must replace this one when it has no session: a constant text for the
	 * log. NULL: no reason. Set when something that a session has used cannot be returned: heap
	 * memory that kernels allocate and do not free stays allocated in the context. */
	_Atomic(const char *) worn;
};

extern struct gpd_devices gpd_devices;

/* Value of gpd_devices.worn after the launch of a kernel that may allocate device heap memory. */
#define GPD_WORN_HEAP "device heap may have leaked"
/* The same after a session has raised a limit of the context that the driver does not lower. */
#define GPD_WORN_LIMIT "a context limit that a session has raised cannot be lowered"

/* Functions of other files that a new context needs. They may be called by several threads. */
struct gpd_device_hooks {
	/* Returns CUDA_SUCCESS if a context may be created; CUDA_ERROR_DEVICE_UNAVAILABLE: the
	 * device is sick; CUDA_ERROR_OUT_OF_MEMORY: it has no place for another worker. Waits for
	 * the supervisor's reply, up to some seconds. */
	CUresult (*may_create)(int ordinal);
	/* Called before a context is created on the device, which may fail, hang or end the
	 * process, and afterwards. */
	void (*report)(int ordinal, const struct gpd_channel_context *context);
	/* Completes a new context, which is current and which no other thread uses yet. */
	void (*complete)(int ordinal);
};

/* Opens the driver (gpd_driver_open(), driver.h), initializes the devices of the list, including
 * their partitions, creates contexts on those that the list has in `contexts`, and allocates the
 * marker pages. Devices beyond GPD_DEVICES_MAX are ignored. path: file of the driver's library;
 * NULL: NVIDIA's. software: with NULL, the software device may be used if NVIDIA's library fails.
 * connections: number of hardware queues of each context, unless CUDA_DEVICE_MAX_CONNECTIONS has
 * it. hooks stay valid. Removes REMOTE_GPU from the environment, and sets CUDA_VISIBLE_DEVICES if
 * not all known devices are used. Blocks on the GPUs. Called once, by the main thread, before the
 * first session. Leaves the context of the first device that has one current. Returns
 * CUDA_SUCCESS; or an error, with the reason as one line of text in error, an array of size bytes,
 * and the worker cannot start. */
CUresult gpd_devices_start(const char *path, bool software, int connections,
			   const struct gpd_device_list *list, const struct gpd_device_hooks *hooks,
			   char *error, size_t size);

/* Returns the device with this ordinal, which is never freed; NULL: there is no such device. */
struct gpd_device *gpd_device_get(int ordinal);

/* Returns whether kernels of the first device can access memory of the second, another device.
 * False if one of them does not exist. */
bool gpd_device_has_peer(int ordinal, int peer);

/* Returns whether the device has a context. */
bool gpd_device_has_context(int ordinal);

/* Makes the device's primary context current in this thread. Creates it if there is none, which
 * takes some hundred milliseconds; other threads that enter the same device meanwhile wait. The
 * current device of each thread is cached, so other code must not change the current context.
 * CUDA_ERROR_INVALID_DEVICE: there is no such device, or it is absent.
 * CUDA_ERROR_OUT_OF_MEMORY: the device has no memory for a context.
 * CUDA_ERROR_DEVICE_UNAVAILABLE: it is sick, or the driver cannot create a context for another
 * reason. After an error the current device is unchanged, and the next call tries again. */
CUresult gpd_device_enter(int ordinal);
/* The same for the first device that has a context: for calls that need any context. Creates none.
 */
CUresult gpd_device_enter_any(void);

/* Stores the free and total memory of the device in bytes. Creates no context: without one, the
 * free memory is NVML's, or if that is not available, all. May make another device current. */
CUresult gpd_device_get_memory(int ordinal, size_t *free_p, size_t *total_p);

#endif /* GPD_DEVICE_H */
