/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices of the pool, as libcuda.so.1 knows them (client/base/pool_table.h): it is opened by
 * the first nvmlInit and stays, and with it the process's session, which has no context by that.
 *
 * A handle is the address of a struct gpn_device; it is valid from the first nvmlInit to the
 * end of the process.  Any thread.  Results are enum gpn_result.
 */
#ifndef GPN_POOL_H
#define GPN_POOL_H

#include "client/base/pool_table.h"
#include "nvml/nvml.h"

#include <stdbool.h>
#include <stdint.h>

#define GPN_DEVICES_MAX 64
/* How old an answer about sensors may be; memory and processes are always asked. */
#define GPN_AGE_NS UINT64_C(100000000)

struct gpn_device {
	struct gpc_pool_device facts;
	int index;
	char uuid[GPN_UUID_TEXT_SIZE];
};

/* nvmlInit and nvmlShutdown, which are counted.  gpus: whether it is an error that the pool cannot
 * be had. */
int gpn_init(int gpus);
int gpn_shutdown(void);
/* Between the two: what every function asks first. */
int gpn_check_init(void);

/* The number of devices, after gpn_check_init(). */
int gpn_get_device_count(void);
struct gpn_device *gpn_get_device(int index); /* NULL: there is none */
/* The device of a handle, or why it is none. */
int gpn_find_device(const void *handle, struct gpn_device **device_p);

/* Whether kernels of one device can be given the memory of the other. */
bool gpn_has_peer_access(int index, int other);

/* As cuDriverGetVersion says it. */
int gpn_get_driver_version(void);

/* One number of the GPU: not supported if its node does not say it. */
int gpn_get_value(struct gpn_device *device, int value_id, uint64_t *value_p);
/* One text, with its NUL. */
int gpn_get_text(struct gpn_device *device, int text, char *out, unsigned int size);
/* As the session's quota has it. */
int gpn_get_memory(struct gpn_device *device, uint64_t *total_p, uint64_t *free_p);
/* Processes of this machine and tenant, up to GP_STATE_PROCESSES_MAX of them. */
int gpn_get_processes(struct gpn_device *device, struct gp_state_process *processes,
		      size_t *count_p);
/* The same, with the time that their kernels have taken. */
int gpn_get_process_times(struct gpn_device *device, struct gp_state_process *processes,
			  size_t *count_p);

/* Copies a text to where a program has room for it. */
int gpn_copy_text(const char *text, char *out, unsigned int size);

#endif /* GPN_POOL_H */
