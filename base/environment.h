/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables of the environment, also in a program that has cleared its own: a program that is
 * started with REMOTE_GPU uses the pool although it calls clearenv() before its first CUDA call.
 *
 *   set by the program, also to nothing   that value counts
 *   not in the environment any more       the value that the process was started with
 *
 * Only for variables of gpupool: those of CUDA are what the program makes them.
 *
 * Threads: any.  Errors: where /proc is not readable, or the program runs with more rights than its
 * user, a variable that is not in the environment is not set.
 */
#ifndef GP_ENVIRONMENT_H
#define GP_ENVIRONMENT_H

#include <stddef.h>

/* As getenv(). */
const char *gp_environment_get(const char *name);

/* The value in a block of "NAME=VALUE" strings that end with '\0'; NULL: not there.  The block ends
 * with '\0'. */
const char *gp_environment_find(const char *block, size_t size, const char *name);

#endif /* GP_ENVIRONMENT_H */
