/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices of the pool, as seen through gpupool's libcuda.so.1 (client/base/nvml_table.h). The
 * first nvmlInit opens that library, and with it the process's session, but creates no CUDA
 * context. The library stays open until the process exits.
 *
 * Ownership: a device handle is the address of a struct gpn_device in static storage, valid from
 * the first nvmlInit that opens the pool to the end of the process.
 * Threads: any. Functions that query the daemon wait for its reply; they are serialized by one
 * lock.
 * Errors: functions that return int return enum gpn_result, unless noted. A failed query of the
 * daemon returns GPN_NOT_SUPPORTED, GPN_MEMORY, GPN_UNKNOWN or, for any other error of CUDA,
 * GPN_GPU_IS_LOST. Results are undefined unless GPN_SUCCESS is returned.
 * Order: gpn_init(); then in each NVML function gpn_check_arguments() or gpn_find_device(), and
 * only after its GPN_SUCCESS the functions with a device.
 */
#ifndef GPN_POOL_H
#define GPN_POOL_H

#include "client/base/nvml_table.h"
#include "nvml/nvml.h"

#include <stdbool.h>
#include <stdint.h>

/* Maximum number of devices; further ones are ignored. */
#define GPN_DEVICES_MAX 64
/* Maximum age of cached sensor values in nanoseconds; memory and processes are queried in each
 * call. */
#define GPN_AGE_NS UINT64_C(100000000)

/* A device of the pool; constant after the first nvmlInit that has opened the pool, which fills it
 * in before it returns. */
struct gpn_device {
	struct gpc_nvml_device facts;
	int index; /* ordinal, from 0 on */
	/* Text "GPU-01234567-89ab-...". */
	char uuid[GPN_UUID_TEXT_SIZE];
};

/* Implements nvmlInit: opens the pool on first use, which connects to its daemons, and increments
 * the number of users. gpus: 1: devices are required; 0: NVML_INIT_FLAG_NO_GPUS. If the pool cannot
 * be opened, returns GPN_DRIVER_NOT_LOADED with gpus 1, and succeeds without devices with gpus 0; a
 * later nvmlInit tries again. With any gpus returns GPN_LIBRARY_NOT_FOUND, with a message on
 * standard error, if there is no libcuda.so.1 of gpupool, and GPN_MEMORY if memory is exhausted. A
 * failed call does not change the number of users. */
int gpn_init(int gpus);
/* Implements nvmlShutdown: decrements the number of users. Returns GPN_UNINITIALIZED if it is 0.
 * Closes nothing. */
int gpn_shutdown(void);
/* Returns GPN_SUCCESS between nvmlInit and nvmlShutdown if the caller's arguments are valid;
 * GPN_UNINITIALIZED at other times; GPN_INVALID_ARGUMENT if they are not valid. Every NVML function
 * calls it or gpn_find_device() first. */
int gpn_check_arguments(bool valid);

/* Returns the number of devices; valid after gpn_check_arguments() has succeeded. */
int gpn_get_device_count(void);
/* Returns the device with this index, from 0 on; NULL: there is no such device. */
struct gpn_device *gpn_get_device(int index);
/* Finds the device of a handle, which may be any value. valid: whether the other arguments of the
 * caller are valid. Returns as gpn_check_arguments(), or GPN_INVALID_ARGUMENT if the handle is
 * invalid. *device_p is set on success only. */
int gpn_find_device(const void *handle, bool valid, struct gpn_device **device_p);

/* Returns whether kernels on the device `index` can access the memory of the device `other`. Both
 * must be valid indices, less than gpn_get_device_count(). */
bool gpn_has_peer_access(int index, int other);

/* Returns the CUDA driver version, as cuDriverGetVersion() reports it, not an enum gpn_result;
 * before libcuda.so.1 is found the version that this library was built for. */
int gpn_get_driver_version(void);

/* Stores a number of the device's state, at most GPN_AGE_NS old. value_id: enum gp_state_word
 * (protocol/device_state.h). Returns GPN_NOT_SUPPORTED if the daemon does not report the number. */
int gpn_get_value(struct gpn_device *device, int value_id, uint64_t *value_p);
/* Copies a text of the device's state to out, including the terminating NUL. text: index of the
 * text (GP_STATE_SERIAL, ...). May query the daemon, as gpn_get_value(). Returns as
 * gpn_copy_text(), or GPN_NOT_SUPPORTED if the daemon does not report the text. */
int gpn_get_text(struct gpn_device *device, int text, char *out, unsigned int size);
/* Queries the device's memory within the session's quota, in bytes. */
int gpn_get_memory(struct gpn_device *device, uint64_t *total_p, uint64_t *free_p);
/* Queries the processes of this machine and tenant with their GPU memory. processes: an array of
 * GP_STATE_PROCESSES_MAX elements (protocol/device_state.h). *count_p: their number; 0 on
 * failure. */
int gpn_get_processes(struct gpn_device *device, struct gp_state_process *processes,
		      size_t *count_p);
/* Queries the processes as gpn_get_processes(), but with the GPU time of their kernels instead of
 * their memory. */
int gpn_get_process_times(struct gpn_device *device, struct gp_state_process *processes,
			  size_t *count_p);

/* Copies a text to a buffer of `size` bytes. Returns GPN_SUCCESS; GPN_INSUFFICIENT_SIZE if it does
 * not fit with its NUL; GPN_INVALID_ARGUMENT if out is NULL. */
int gpn_copy_text(const char *text, char *out, unsigned int size);

#endif /* GPN_POOL_H */
