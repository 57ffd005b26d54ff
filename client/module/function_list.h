/* SPDX-License-Identifier: Apache-2.0 */
/*
 * List of the functions of a module or the kernels of a library, by their index in the image. An
 * object is created when it is first requested.
 *
 * Ownership: the module or library owns the list, and the list owns its objects until
 * gpc_function_list_fini(). The image is borrowed and must outlive the list.
 * Threads: any thread may call, except init and fini, which require that no other thread uses the
 * list; the image's lock guards `made`.
 * Errors: functions that return a CUresult return CUDA_SUCCESS or the errors stated with the
 * function.
 */
#ifndef GPC_FUNCTION_LIST_H
#define GPC_FUNCTION_LIST_H

#include "client/base/handle.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_context;
struct gpc_function;
struct gpc_image;

/* A list of functions or kernels. */
struct gpc_function_list {
	enum gpc_kind kind; /* GPC_KIND_FUNCTION or GPC_KIND_KERNEL */
	struct gpc_image *image;
	struct gpc_context
		*context; /* context of the CUfunction objects; NULL for CUkernel objects */
	/* objects by index; NULL: not requested yet */
	struct gpc_function **made;
};

/* Allocates the list. The caller has set kind, image and context; the image is loaded (image->info
 * is set). Returns true, or false if out of memory; then nothing needs to be freed. */
bool gpc_function_list_init(struct gpc_function_list *list);
/* Destroys all objects of the list; their handles become invalid. Called while image->info is still
 * valid. Has no effect on a list of zeros, or after a failed gpc_function_list_init(). */
void gpc_function_list_fini(struct gpc_function_list *list);

/* Returns the object of the kernel with this index, which must be less than
 * image->info->kernel_count; creates it on the first call. The list owns it. Returns NULL if out of
 * memory or handles. */
struct gpc_function *gpc_function_list_get(struct gpc_function_list *list, uint32_t index);
/* Stores the handle of the kernel of this name (gpc_image_find_kernel()). Errors:
 * CUDA_ERROR_NOT_FOUND, CUDA_ERROR_INVALID_VALUE if name or token_p is NULL,
 * CUDA_ERROR_OUT_OF_MEMORY; *token_p is then unchanged. */
CUresult gpc_function_list_find(struct gpc_function_list *list, const char *name, void **token_p);
/* Stores the handles of the first kernels, at most max, in the order of the image. Errors:
 * CUDA_ERROR_INVALID_VALUE if tokens is NULL; CUDA_ERROR_OUT_OF_MEMORY, after which some handles
 * may have been stored. */
CUresult gpc_function_list_tokens(struct gpc_function_list *list, void **tokens, unsigned int max);

#endif /* GPC_FUNCTION_LIST_H */
