/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options for the driver's compiler and linker: numbers from the client, and log buffers of the
 * daemon.
 *
 * Ownership: part of the library or linker, because the driver may write to the logs as long as
 * that exists.
 * Threads: executor only.
 */
#ifndef GPD_JIT_OPTIONS_H
#define GPD_JIT_OPTIONS_H

#include "protocol/enc.h"

#include <cuda.h>

#define GPD_JIT_LOG_SIZE 8192
/* Maximum number of options, including the log buffers. */
#define GPD_JIT_OPTIONS_MAX 32

struct gpd_jit_options {
	unsigned int count;
	CUjit_option keys[GPD_JIT_OPTIONS_MAX];
	void *values[GPD_JIT_OPTIONS_MAX];
};

struct gpd_jit {
	struct gpd_jit_options options;
	char info[GPD_JIT_LOG_SIZE];
	char error[GPD_JIT_LOG_SIZE];
};

/* Decodes the options of a record. CUDA_ERROR_INVALID_VALUE: too many, or trailing bytes;
 * CUDA_ERROR_NOT_SUPPORTED: an option that is not a number. */
CUresult gpd_jit_read(struct gpd_jit_options *options, struct gp_bytes bytes);

/* Adds the log buffers, which the driver fills; both stay NUL-terminated. */
void gpd_jit_add_logs(struct gpd_jit *jit);

#endif /* GPD_JIT_OPTIONS_H */
