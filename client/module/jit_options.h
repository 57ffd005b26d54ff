/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JIT compiler options that are handled in the client, such as the application's log buffers, which
 * are filled from the daemon's reply. Values of an option array are pointers or scalars in a void
 * *, as cuModuleLoadDataEx() defines.
 *
 * Ownership: the arrays and buffers are the application's.
 * Threads: any thread; the functions have no state.
 */
#ifndef GPC_JIT_OPTIONS_H
#define GPC_JIT_OPTIONS_H

#include "client/module/image.h"
#include "protocol/enc.h"

#include <cuda.h>

/* A log buffer of the application. */
struct gpc_jit_log {
	char *text; /* NULL: no buffer was passed */
	size_t room;
	void **size_p; /* receives the number of bytes written */
};

/* Returns CUDA_ERROR_INVALID_VALUE if an option is invalid or an array is missing. */
CUresult gpc_jit_options_check_keys(const struct gpc_jit_options *options);
/* Also rejects what NVIDIA's driver rejects for any code. Returns CUDA_ERROR_INVALID_VALUE. */
CUresult gpc_jit_options_check(const struct gpc_jit_options *options);

/* Return the buffer for the info log or the error log, and fill such a buffer; a text that is too
 * long is truncated. */
struct gpc_jit_log gpc_jit_log_find(const struct gpc_jit_options *options, bool error);
void gpc_jit_log_fill(const struct gpc_jit_log *log, struct gp_bytes text);

/* Fills the error log if result is a failure, else the info log; the other one becomes empty. */
void gpc_jit_options_log(const struct gpc_jit_options *options, CUresult result,
			 struct gp_bytes log);

#endif /* GPC_JIT_OPTIONS_H */
