/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options for the driver's compiler and linker: numbers from the client, and logs that are the
 * daemon's.  Belongs to the library or linker, as the driver may write into the logs as long as
 * that lives.  Executor only.
 */
#ifndef GPD_JIT_OPTIONS_H
#define GPD_JIT_OPTIONS_H

#include "protocol/enc.h"

#include <cuda.h>

#define GPD_JIT_LOG_SIZE 8192
/* What the client may give, and the logs. */
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

/* Those of a record.  CUDA_ERROR_INVALID_VALUE: there are too many, or bytes left over;
 * CUDA_ERROR_NOT_SUPPORTED: one that is no number. */
CUresult gpd_jit_read(struct gpd_jit_options *options, struct gp_bytes bytes);

/* Has the driver write its logs there, each with a NUL behind it. */
void gpd_jit_add_logs(struct gpd_jit *jit);

#endif /* GPD_JIT_OPTIONS_H */
