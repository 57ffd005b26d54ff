/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels and functions of loaded images.  A CUkernel belongs to a library, a CUfunction to a
 * context; CUDA accepts either wherever it launches.  Any thread may call.
 */
#ifndef GPC_FUNCTION_H
#define GPC_FUNCTION_H

#include "client/base/handle.h"
#include "client/context/context.h"
#include "client/wire/session.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_image;
struct gp_kernel_info;

/* What is behind a CUfunction or CUkernel. */
struct gpc_function {
	struct gpc_handle handle; /* GPC_KIND_KERNEL or GPC_KIND_FUNCTION */
	struct gpc_image *image;
	struct gpc_context *context; /* of a CUfunction; NULL for a CUkernel */
	uint32_t index;              /* of the kernel in the image */
	const struct gp_kernel_info *info;
	struct gpc_function *twins[GPC_SESSIONS_MAX]; /* of a CUkernel: found on first use */
};

/* A CUfunction or a CUkernel in its place; CUDA_ERROR_INVALID_HANDLE.  Loads the image if need be.
 */
CUresult gpc_function_lookup(struct gpc_context *context, CUfunction function,
			     struct gpc_function **function_p);

/* Begins a call about one, whichever it is. */
CUresult gpc_function_enter(CUfunction token, struct gpc_function **function_p);

/* The same kernel as the daemon of this context knows it.  CUDA_ERROR_INVALID_HANDLE: a function of
 * another daemon's context; CUDA_ERROR_NO_BINARY_FOR_GPU: the library did not load there. */
CUresult gpc_function_get_twin(struct gpc_function *function, const struct gpc_context *context,
			       struct gpc_function **twin_p);

/* An attribute that needs no question; false: ask the daemon. */
bool gpc_function_get_attribute(const struct gpc_function *function, CUfunction_attribute attribute,
				int *value_p);

/* CUDA_ERROR_NOT_SUPPORTED: the device cannot run it, and the reason is printed once. */
CUresult gpc_function_check_supported(const struct gpc_function *function);

/* Its name on the wire (gp_kernel). */
CUresult gpc_function_to_wire(struct gpc_context *context, CUfunction function, uint64_t *kernel_p);

#endif /* GPC_FUNCTION_H */
