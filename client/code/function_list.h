/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of a module or the kernels of a library, by their index in the image.  An object is
 * made when it is first asked for, under the image's lock.  Any thread may ask.
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
	struct gpc_context *context; /* of a CUfunction; NULL for a CUkernel */
	struct gpc_function **made;
};

/* kind, image and context are set.  false: out of memory. */
bool gpc_function_list_init(struct gpc_function_list *list);
/* While the image is still there. */
void gpc_function_list_fini(struct gpc_function_list *list);

/* NULL: out of memory. */
struct gpc_function *gpc_function_list_get(struct gpc_function_list *list, uint32_t index);
/* What the application calls the one of this name; CUDA_ERROR_NOT_FOUND. */
CUresult gpc_function_list_find(struct gpc_function_list *list, const char *name, void **token_p);
/* The first of all, so many at most. */
CUresult gpc_function_list_tokens(struct gpc_function_list *list, void **tokens, unsigned int max);

#endif /* GPC_FUNCTION_LIST_H */
