/* SPDX-License-Identifier: Apache-2.0 */
/*
 * List of the functions of a module or the kernels of a library, by their index in the image. An
 * object is created when it is first requested.
 *
 * Ownership: the list owns the objects; the module or library owns the list.
 * Threads: any thread may call; the image's lock protects the list.
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

struct gpc_function_list {
	enum gpc_kind kind; /* GPC_KIND_FUNCTION or GPC_KIND_KERNEL */
	struct gpc_image *image;
	struct gpc_context *context; /* of CUfunctions; NULL for CUkernels */
	struct gpc_function **made;
};

/* Allocates the list; the caller has set kind, image and context. Returns false if out of
 * memory. */
bool gpc_function_list_init(struct gpc_function_list *list);
/* Destroys all objects of the list. The image must still exist. */
void gpc_function_list_fini(struct gpc_function_list *list);

/* Returns the object for the kernel at index, which must be valid. Returns NULL if out of
 * memory. */
struct gpc_function *gpc_function_list_get(struct gpc_function_list *list, uint32_t index);
/* Returns the handle for the kernel of this name. Errors: CUDA_ERROR_NOT_FOUND,
 * CUDA_ERROR_INVALID_VALUE (NULL argument), CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gpc_function_list_find(struct gpc_function_list *list, const char *name, void **token_p);
/* Stores the handles of the first kernels, at most max. Errors: CUDA_ERROR_INVALID_VALUE,
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gpc_function_list_tokens(struct gpc_function_list *list, void **tokens, unsigned int max);

#endif /* GPC_FUNCTION_LIST_H */
