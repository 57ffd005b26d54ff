/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels (CUkernel) and functions (CUfunction) of loaded images. A CUkernel belongs to a library,
 * a CUfunction to a context; CUDA accepts either in a launch.
 *
 * Ownership: objects belong to the struct gpc_function_list of their library or module, and are
 * valid until it is unloaded. Unloading code that another thread uses is an error of the program
 * (module.h).
 * Threads: any thread may call.
 * Errors: functions that return a CUresult return CUDA_SUCCESS or the errors stated with the
 * function; out parameters are undefined after an error.
 */
#ifndef GPC_FUNCTION_H
#define GPC_FUNCTION_H

#include "client/base/handle.h"
#include "client/context/context.h"
#include "client/session/session.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_image;
struct gp_kernel_info;

/* The object of a CUfunction or CUkernel. */
struct gpc_function {
	struct gpc_handle handle; /* GPC_KIND_KERNEL or GPC_KIND_FUNCTION */
	struct gpc_image *image;
	struct gpc_context
		*context; /* of a CUfunction: the context that it belongs to; NULL for a CUkernel */
	uint32_t index;   /* index of the kernel in the image's list of kernels */
	/* name, parameters and attributes; belongs to the image */
	const struct gp_kernel_info *info;
	struct gpc_function
		*twins[GPC_SESSIONS_MAX]; /* of a CUkernel, by session number: its twins, that is,
					     the same kernel in the sessions with other daemons;
					     NULL: not found yet. Accessed atomically. */
};

/* Looks up the object of a CUfunction, or of a CUkernel that was cast to one, borrowed. Unlike
 * gpc_function_enter(), does not check that CUDA is usable. context NULL: the object itself;
 * otherwise the same kernel in the context's session, as gpc_function_get_twin() finds it. Errors:
 * CUDA_ERROR_INVALID_HANDLE if it is neither, and those of gpc_function_get_twin(). */
CUresult gpc_function_lookup(struct gpc_context *context, CUfunction token,
			     struct gpc_function **function_p);

/* Starts a call on a CUfunction or CUkernel: checks that CUDA is usable, and looks up the object.
 * Errors: CUDA_ERROR_INVALID_HANDLE, and those of gpc_enter_initialized() (context.h). */
CUresult gpc_function_enter(CUfunction token, struct gpc_function **function_p);

/* Finds the function's twin in the session of this context, with which the kernel can be launched
 * there. It is the function itself if its image is loaded in that session. function: from
 * gpc_function_lookup(). Errors: CUDA_ERROR_INVALID_HANDLE: a CUfunction of a context of another
 * daemon; CUDA_ERROR_NO_BINARY_FOR_GPU: the library, or this kernel, could not be loaded in that
 * session; CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gpc_function_get_twin(struct gpc_function *function, const struct gpc_context *context,
			       struct gpc_function **twin_p);

/* Returns true and stores the value that the attribute has on the image's device, if it is known
 * without a query. Otherwise returns false, with *value_p unchanged; the caller queries the daemon.
 * Any value of attribute is allowed. */
bool gpc_function_get_attribute(const struct gpc_function *function, CUfunction_attribute attribute,
				int *value_p);

/* Returns CUDA_SUCCESS, or CUDA_ERROR_NOT_SUPPORTED if the software device (the daemon's device
 * without a GPU) cannot run the kernel. The first call for such a kernel queries the reason from
 * the daemon, waits for the reply and prints a warning. */
CUresult gpc_function_check_supported(const struct gpc_function *function);

/* Stores the kernel's ID in messages to the daemon (GP_KERNEL of protocol/image_info.h), in the
 * session of the context. token: a CUfunction or CUkernel. Errors: CUDA_ERROR_INVALID_HANDLE, and
 * those of gpc_function_get_twin(); *kernel_p is then unchanged. */
CUresult gpc_function_to_wire(struct gpc_context *context, CUfunction token, uint64_t *kernel_p);

#endif /* GPC_FUNCTION_H */
