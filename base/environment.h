/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lookup of gpupool's own environment variables that also works after the program has cleared its
 * environment: a program that is started with REMOTE_GPU uses the pool although it calls clearenv()
 * before its first CUDA call.
 *
 *   variable is set, also to ""             its current value
 *   variable is no longer in environ        the value at process start (/proc/self/environ)
 *
 * CUDA's variables are read with getenv() instead, as the driver does.
 *
 * Ownership: returned values are borrowed. A current value is valid like that of getenv(), until
 * the program changes the variable; a value from process start is valid until the process ends.
 * Threads: any, as long as no other thread changes the environment.
 * Errors: only the current environment is searched if /proc is not readable or the program is
 * set-user-ID. If memory is short, or the environment exceeded 4 MiB at process start, the
 * variables at its end may not be found.
 */
#ifndef GP_ENVIRONMENT_H
#define GP_ENVIRONMENT_H

#include <stddef.h>

/* Returns the value of the variable, which may be "", or NULL if the variable is not set and was
 * not set at process start. */
const char *gp_environment_get(const char *name);

/* Returns the value of a variable in `strings`, a block of `size` bytes that contains
 * NUL-terminated "NAME=VALUE" strings, such as /proc/PID/environ, or NULL if it is not in the
 * block. The last byte of the block, or the byte after it, must be a NUL. The value points into the
 * block. */
const char *gp_environment_find(const char *strings, size_t size, const char *name);

#endif /* GP_ENVIRONMENT_H */
