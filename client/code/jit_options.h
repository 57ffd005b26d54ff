/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of the JIT compiler that stay here: the log buffers of the application among them, which
 * are filled on the way back.  The values of an option array are pointers or scalars in a void *,
 * as cuModuleLoadDataEx says.
 */
#ifndef GPC_JIT_OPTIONS_H
#define GPC_JIT_OPTIONS_H

#include "client/code/image.h"
#include "protocol/enc.h"

#include <cuda.h>

/* A buffer of the application's. */
struct gpc_jit_log {
	char *text; /* NULL: it gave none */
	size_t room;
	void **size_p; /* gets how much was written */
};

/* CUDA_ERROR_INVALID_VALUE: one of them is none. */
CUresult gpc_jit_options_check_keys(const struct gpc_jit_options *options);
/* What the driver refuses whatever the code is: CUDA_ERROR_INVALID_VALUE. */
CUresult gpc_jit_options_check(const struct gpc_jit_options *options);

/* The info log, or the error log. */
struct gpc_jit_log gpc_jit_log_find(const struct gpc_jit_options *options, bool error);
void gpc_jit_log_fill(const struct gpc_jit_log *log, struct gp_bytes text);

/* log went to the error log when result is a failure, else to the info log. */
void gpc_jit_options_log(const struct gpc_jit_options *options, CUresult result,
			 struct gp_bytes log);

#endif /* GPC_JIT_OPTIONS_H */
