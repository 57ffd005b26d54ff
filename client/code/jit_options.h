/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of the JIT compiler: to the wire, and the log buffers among them filled on the way back.
 * The values of an option array are pointers or scalars in a void *, as cuModuleLoadDataEx says.
 */
#ifndef GPC_JIT_OPTIONS_H
#define GPC_JIT_OPTIONS_H

#include "client/code/image.h"
#include "protocol/enc.h"

#include <cuda.h>

/* encoded_p owns what bytes_p points to. Log buffers stay here; other pointers are not supported.
 */
CUresult gpc_jit_options_encode(const struct gpc_jit_options *options, void **encoded_p,
				struct gp_bytes *bytes_p);

/* log went to the error log when result is a failure, else to the info log. */
void gpc_jit_options_log(const struct gpc_jit_options *options, CUresult result,
			 struct gp_bytes log);

#endif /* GPC_JIT_OPTIONS_H */
