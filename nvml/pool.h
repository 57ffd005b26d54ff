/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices of the pool, as seen through gpupool's libcuda.so.1 (client/base/pool_table.h). The
 * first nvmlInit opens that library, and with it the process's session, but creates no context. It
 * stays open until the process exits.
 *
 * Ownership: a device handle is the address of a struct gpn_device in static storage, valid from
 * the first nvmlInit to the end of the process.
 * Threads: any.
 * Errors: enum gpn_result.
 */
#ifndef GPN_POOL_H
#define GPN_POOL_H

#include "client/base/pool_table.h"
#include "nvml/nvml.h"

#include <stdbool.h>
#include <stdint.h>

#define GPN_DEVICES_MAX 64
/* Maximum age of cached sensor values in ns; memory and processes are always queried. */
#define GPN_AGE_NS UINT64_C(100000000)

struct gpn_device {
	struct gpc_pool_device facts;
	int index;
	char uuid[GPN_UUID_TEXT_SIZE];
};

/* nvmlInit and nvmlShutdown; calls are counted. gpus: fail if the pool cannot be opened. */
int gpn_init(int gpus);
int gpn_shutdown(void);
/* Returns GPN_SUCCESS between the two, else GPN_UNINITIALIZED. Every function calls it first. */
int gpn_check_init(void);

/* Returns the number of devices; valid after gpn_check_init() has succeeded. */
int gpn_get_device_count(void);
struct gpn_device *gpn_get_device(int index); /* NULL: none */
/* Finds the device of a handle. Returns GPN_INVALID_ARGUMENT if the handle is invalid. */
int gpn_find_device(const void *handle, struct gpn_device **device_p);

/* Returns whether kernels on one device can access the memory of the other. */
bool gpn_has_peer_access(int index, int other);

/* Returns the CUDA driver version, as cuDriverGetVersion. */
int gpn_get_driver_version(void);

/* Returns one number of the device's state, GP_STATE_*. GPN_NOT_SUPPORTED if its server does not
 * report it. */
int gpn_get_value(struct gpn_device *device, int value_id, uint64_t *value_p);
/* Copies one text of the device's state to out, including the terminating zero. */
int gpn_get_text(struct gpn_device *device, int text, char *out, unsigned int size);
/* Queries the device's memory within the session's quota. */
int gpn_get_memory(struct gpn_device *device, uint64_t *total_p, uint64_t *free_p);
/* Queries the processes of this machine and tenant, at most GP_STATE_PROCESSES_MAX. */
int gpn_get_processes(struct gpn_device *device, struct gp_state_process *processes,
		      size_t *count_p);
/* The same, with the GPU time of their kernels. */
int gpn_get_process_times(struct gpn_device *device, struct gp_state_process *processes,
			  size_t *count_p);

/* Copies a text to a caller's buffer. Returns GPN_INSUFFICIENT_SIZE if it does not fit. */
int gpn_copy_text(const char *text, char *out, unsigned int size);

#endif /* GPN_POOL_H */
