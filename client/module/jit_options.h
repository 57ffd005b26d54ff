/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JIT compiler options (struct gpc_jit_options of image.h) that are handled in the client, such as
 * the application's log buffers, which are filled from the daemon's reply. Values of an option
 * array are pointers or scalars in a void *, as cuModuleLoadDataEx() defines.
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
	char *text;      /* NULL: the application passed no buffer */
	size_t capacity; /* size of the buffer in bytes; 0: not passed */
	void **size_p;   /* the option value that receives the number of bytes written; NULL: not
			    passed */
};

/* Returns CUDA_SUCCESS, or CUDA_ERROR_INVALID_VALUE if an option is unknown, or an array is NULL
 * although the count is not 0. */
CUresult gpc_jit_options_check_keys(const struct gpc_jit_options *options);
/* Calls gpc_jit_options_check_keys(), and also rejects values that NVIDIA's driver rejects for any
 * code (CU_JIT_MAX_REGISTERS 0). Returns CUDA_SUCCESS or CUDA_ERROR_INVALID_VALUE. The functions
 * below require options that were checked by this function or by gpc_jit_options_check_keys(). */
CUresult gpc_jit_options_check(const struct gpc_jit_options *options);

/* Returns the application's buffer for the error log (error is true) or the info log. */
struct gpc_jit_log gpc_jit_log_find(const struct gpc_jit_options *options, bool error);
/* Fills a buffer of gpc_jit_log_find() with the text and a NUL, and stores the number of bytes
 * written, without the NUL, in *size_p; a text that is too long is truncated. Has no effect without
 * a buffer or if its size is 0. */
void gpc_jit_log_fill(const struct gpc_jit_log *log, struct gp_bytes text);

/* Returns the log of a load to the application: fills the error log with `log` if result is an
 * error, else the info log; the other one becomes empty. Sets CU_JIT_WALL_TIME to 0, if it was
 * passed. */
void gpc_jit_options_log(const struct gpc_jit_options *options, CUresult result,
			 struct gp_bytes log);

#endif /* GPC_JIT_OPTIONS_H */
