/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JIT compiler options that are handled in the client, such as the application's log buffers, which
 * are filled from the daemon's reply. Values of an option array are pointers or scalars in a void
 * *, as cuModuleLoadDataEx() defines.
 *
 * Ownership: the arrays and buffers are the application's, and must stay valid during each call.
 * Threads: any thread; the functions have no state.
 */
#ifndef GPC_JIT_OPTIONS_H
#define GPC_JIT_OPTIONS_H

#include "client/module/image.h"
#include "protocol/enc.h"

#include <cuda.h>

/* A log buffer of the application, borrowed. */
struct gpc_jit_log {
	char *text; /* NULL: the application passed no buffer */
	/* size of the buffer in bytes */
	size_t room;
	void **size_p; /* the option value that receives the number of bytes written; NULL: not
			  passed */
};

/* Returns CUDA_SUCCESS, or CUDA_ERROR_INVALID_VALUE if an option is unknown or an array is
 * missing. */
CUresult gpc_jit_options_check_keys(const struct gpc_jit_options *options);
/* Calls gpc_jit_options_check_keys(), and also rejects values that NVIDIA's driver rejects for any
 * code. Returns CUDA_SUCCESS or CUDA_ERROR_INVALID_VALUE. */
CUresult gpc_jit_options_check(const struct gpc_jit_options *options);

/* Returns the application's buffer for the error log (error is true) or the info log. */
struct gpc_jit_log gpc_jit_log_find(const struct gpc_jit_options *options, bool error);
/* Fills a buffer with the text and a NUL, and stores the number of bytes written; a text that is
 * too long is truncated. Has no effect without a buffer. */
void gpc_jit_log_fill(const struct gpc_jit_log *log, struct gp_bytes text);

/* Fills the error log with `log` if result is an error, else the info log; the other one becomes
 * empty. Sets CU_JIT_WALL_TIME to 0. */
void gpc_jit_options_log(const struct gpc_jit_options *options, CUresult result,
			 struct gp_bytes log);

#endif /* GPC_JIT_OPTIONS_H */
