/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and processors available to this process: those of the machine, or fewer if its control
 * group or an ancestor of it (cgroup version 1 or 2) sets a limit. Limits may change while a
 * process runs, so each call reads them again.
 *
 * The argument root is a prefix of the paths /proc and /sys: "" for the machine, or a test's
 * directory that contains proc/self/cgroup and sys/fs/cgroup.
 *
 * Threads: any.
 * Errors: none; an unreadable limit is ignored.
 */
#ifndef GP_MACHINE_H
#define GP_MACHINE_H

#include <stdint.h>

/* Returns the available memory in bytes: the machine's physical memory, or the cgroup's limit if it
 * is lower. Memory in use counts as available. */
uint64_t gp_machine_memory(const char *root);
/* Returns the number of usable processors, at least 1: those of the calling thread's CPU affinity,
 * or the cgroup's CPU quota if it is lower. A fraction of a processor is rounded up. */
unsigned int gp_machine_processors(const char *root);

#endif /* GP_MACHINE_H */
