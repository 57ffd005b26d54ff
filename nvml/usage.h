/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process queries for the private functions of nvidia-smi (private.c).
 *
 * Ownership: results are written to memory of the caller.
 * Threads: any; the list functions may wait for a reply of the daemon.
 * Errors: enum gpn_result.
 */
#ifndef GPN_USAGE_H
#define GPN_USAGE_H

#include "nvml/nvml.h"

/* Size in bytes of a process name's buffer, with its NUL. */
#define GPN_NAME_SIZE 4096

/* A process with its name, in the layout of nvidia-smi 535 and 550. */
struct gpn_process_named {
	struct gpn_process_detail process;
	char name[GPN_NAME_SIZE];
};

/* Writes the processes of this machine and tenant that use the device to list. handle: the device.
 * *count: capacity of list, which may be NULL if *count is 0; set to the number of processes with
 * GPN_SUCCESS and GPN_INSUFFICIENT_SIZE. Returns GPN_SUCCESS; GPN_INSUFFICIENT_SIZE, and writes no
 * process, if they do not fit; GPN_INVALID_ARGUMENT, also for an invalid handle; GPN_UNINITIALIZED;
 * GPN_MEMORY; or an error of gpn_get_processes() (pool.h). */
int gpn_list_compute(void *handle, unsigned int *count, struct gpn_process_named *list);
/* As gpn_list_compute(), for graphics and MPS processes, of which there are none: sets *count to
 * 0. */
int gpn_list_nothing(void *handle, unsigned int *count, struct gpn_process_named *list);

/* Writes the first word of the command line of a process of this machine, truncated to 255 bytes
 * and to `size` with its NUL. Returns GPN_SUCCESS; GPN_NOT_FOUND: no such process; or
 * GPN_NO_PERMISSION. */
int gpn_process_name(unsigned int pid, char *name, unsigned int size);

#endif /* GPN_USAGE_H */
