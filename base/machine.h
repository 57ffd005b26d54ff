/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and processors that this process may use: those of the machine, or fewer where a control
 * group (version 1 or 2) of the process, or a group around that, has a limit.
 *
 * root: "", or a test's folder, which has proc/self/cgroup and sys/fs/cgroup.  Limits change while
 * a process runs, so that each call reads them.
 *
 * Threads: any.  Errors: none; a limit that is not readable does not count.
 */
#ifndef GP_MACHINE_H
#define GP_MACHINE_H

#include <stdint.h>

/* Bytes. */
uint64_t gp_machine_memory(const char *root);
/* At least 1.  A part of a processor counts as one. */
unsigned int gp_machine_processors(const char *root);

#endif /* GP_MACHINE_H */
