/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Environment variables of gpupool, found even if the program has cleared its environment: a
 * program that is started with REMOTE_GPU uses the pool although it calls clearenv() before its
 * first CUDA call.
 *
 *   variable is set, also to ""             its current value
 *   variable is no longer in environ        the value at process start (/proc/self/environ)
 *
 * Only for gpupool's own variables. CUDA's variables are read with getenv(), as the driver does.
 *
 * Threads: any.
 * Errors: if /proc is not readable, or the program is set-user-ID, only the current environment is
 * searched.
 */
#ifndef GP_ENVIRONMENT_H
#define GP_ENVIRONMENT_H

#include <stddef.h>

/* Like getenv(): returns the value, or NULL if the variable is not set. The value belongs to the
 * environment. */
const char *gp_environment_get(const char *name);

/* Returns the value of a variable in a block of NUL-terminated "NAME=VALUE" strings, or NULL if it
 * is not in the block. The block must end with a NUL; the value points into it. */
const char *gp_environment_find(const char *block, size_t size, const char *name);

#endif /* GP_ENVIRONMENT_H */
