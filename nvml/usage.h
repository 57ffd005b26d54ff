/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Process queries for the private functions of nvidia-smi (private.c).
 *
 * Threads: any.
 * Errors: enum gpn_result.
 */
#ifndef GPN_USAGE_H
#define GPN_USAGE_H

#include "nvml/nvml.h"

#define GPN_NAME_SIZE 4096

/* Layout of nvidia-smi 535 and 550. */
struct gpn_process_named {
	struct gpn_process_detail process;
	char name[GPN_NAME_SIZE];
};

/* Writes at most *count processes; sets *count to their total number. */
int gpn_list_compute(void *handle, unsigned int *count, struct gpn_process_named *list);
/* For graphics and MPS: reports that there are no processes. */
int gpn_list_nothing(void *handle, unsigned int *count, struct gpn_process_named *list);

/* Writes the command name of a process of this machine, truncated to size. */
int gpn_process_name(unsigned int pid, char *name, unsigned int size);

#endif /* GPN_USAGE_H */
