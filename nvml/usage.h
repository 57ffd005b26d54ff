/* SPDX-License-Identifier: Apache-2.0 */
/* Processes, for what is no symbol: nvidia-smi's private functions.  Any thread; results are enum
 * gpn_result. */
#ifndef GPN_USAGE_H
#define GPN_USAGE_H

#include "nvml/nvml.h"

#define GPN_NAME_SIZE 4096

/* As nvidia-smi 535 and 550 have it. */
struct gpn_process_named {
	struct gpn_process_detail process;
	char name[GPN_NAME_SIZE];
};

/* Up to *count of them; then *count is how many there are. */
int gpn_list_compute(void *handle, unsigned int *count, struct gpn_process_named *list);
/* There are none: of graphics, of MPS. */
int gpn_list_nothing(void *handle, unsigned int *count, struct gpn_process_named *list);

/* The command of a process of this machine, cut off where it has to be. */
int gpn_process_name(unsigned int pid, char *name, unsigned int size);

#endif /* GPN_USAGE_H */
