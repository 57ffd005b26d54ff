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

/* Size of a process name, with its NUL. */
#define GPN_NAME_SIZE 4096

/* A process with its name, in the layout of nvidia-smi 535 and 550. */
struct gpn_process_named {
	struct gpn_process_detail process;
	char name[GPN_NAME_SIZE];
};

/* Writes the processes with kernels on the device to list. *count: capacity of list; set to the
 * total number. Returns GPN_INSUFFICIENT_SIZE, and writes no process, if they do not fit. */
int gpn_list_compute(void *handle, unsigned int *count, struct gpn_process_named *list);
/* Reports that there are no processes, for graphics and MPS: sets *count to 0. */
int gpn_list_nothing(void *handle, unsigned int *count, struct gpn_process_named *list);

/* Writes the program name of a process of this machine, truncated to `size` with its NUL. Returns
 * GPN_SUCCESS; GPN_NOT_FOUND: no such process; GPN_NO_PERMISSION. */
int gpn_process_name(unsigned int pid, char *name, unsigned int size);

#endif /* GPN_USAGE_H */
