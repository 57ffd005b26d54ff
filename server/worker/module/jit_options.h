/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options for the driver's compiler and linker: numbers from the client, and log buffers of the
 * worker.
 *
 * Ownership: part of the library or linker, because the driver may write to the logs as long as the
 * library or linker exists. A struct gpd_jit must not move after gpd_jit_add_logs().
 * Threads: executor only.
 */
#ifndef GPD_JIT_OPTIONS_H
#define GPD_JIT_OPTIONS_H

#include "protocol/enc.h"

#include <cuda.h>

/* Size of a log buffer in bytes, including the terminating zero. */
#define GPD_JIT_LOG_SIZE 8192
/* Maximum number of options, including the four for the log buffers. */
#define GPD_JIT_OPTIONS_MAX 32

/* Options in the form that the driver expects. */
struct gpd_jit_options {
	unsigned int count; /* number of valid elements of keys and values */
	CUjit_option keys[GPD_JIT_OPTIONS_MAX];
	void *values[GPD_JIT_OPTIONS_MAX]; /* numbers, or addresses of the log buffers */
};

/* Options with their log buffers. Initialized to zeros. */
struct gpd_jit {
	struct gpd_jit_options options;
	char info[GPD_JIT_LOG_SIZE];  /* compiler's information */
	char error[GPD_JIT_LOG_SIZE]; /* compiler's errors */
};

/* Decodes the options of a record, which come from the client unchecked, into *options, and leaves
 * room for the log buffers. Returns CUDA_SUCCESS; CUDA_ERROR_INVALID_VALUE if there are too many,
 * or the encoding is malformed; or CUDA_ERROR_NOT_SUPPORTED if an option is not a number. On
 * failure *options must not be used. */
CUresult gpd_jit_read(struct gpd_jit_options *options, struct gp_bytes bytes);

/* Adds the options for the log buffers, which the driver fills; both stay NUL-terminated. Called at
 * most once, after gpd_jit_read(). */
void gpd_jit_add_logs(struct gpd_jit *jit);

#endif /* GPD_JIT_OPTIONS_H */
