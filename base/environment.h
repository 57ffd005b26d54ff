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
 * Errors: if /proc is not readable, memory is short, or the program is set-user-ID, only the
 * current environment is searched.
 */
#ifndef GP_ENVIRONMENT_H
#define GP_ENVIRONMENT_H

#include <stddef.h>

/* Returns the value of the variable, which may be "", or NULL if the variable is not set and was
 * not set at process start. */
const char *gp_environment_get(const char *name);

/* Returns the value of a variable in a block of `size` bytes of NUL-terminated "NAME=VALUE"
 * strings, or NULL if it is not in the block. A NUL must end the block or follow it. The value
 * points into the block. */
const char *gp_environment_find(const char *block, size_t size, const char *name);

#endif /* GP_ENVIRONMENT_H */
