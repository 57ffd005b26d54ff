/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUmodule and CUlibrary.  A module belongs to a context and owns its image, unless it is the view
 * that cuLibraryGetModule gives of a library, which owns the image then.  Any thread may call.
 *
 * Neither they nor images and functions are counted: a launch would pay for it.  To unload what
 * another thread launches from, or looks a name up in, is an error of the program with NVIDIA's
 * driver, too; so an image goes when its module or library is unloaded, and not before.
 */
#ifndef GPC_MODULE_H
#define GPC_MODULE_H

#include "client/code/image.h"

#include <cuda.h>
#include <stdint.h>

struct gpc_module {
	struct gpc_handle handle;
	struct gpc_image *image;
	struct gpc_context *context;
	bool of_library;                    /* the image is the library's */
	struct gpc_module *next;            /* of the library's views */
	struct gpc_function_list functions; /* CUfunction objects */
};

CUresult gpc_module_lookup(CUmodule hmod, struct gpc_module **module_p);
/* Begins a call about a library, and finds its image. */
CUresult gpc_library_enter_image(CUlibrary token, struct gpc_image **image_p);

/* A view of a library's image in a context; NULL: out of memory. */
struct gpc_module *gpc_module_create_view(struct gpc_image *image, struct gpc_context *context);
void gpc_module_destroy(struct gpc_module *module);

/* The view of the library whose image this is; made on first use. */
CUresult gpc_library_get_module(struct gpc_image *image, struct gpc_context *context,
				struct gpc_module **module_p);

/* Unloads the modules of a context that is being destroyed. */
void gpc_module_drop_context(struct gpc_context *context);

/* The module that a function was taken from; CUDA_ERROR_INVALID_HANDLE. */
CUresult gpc_module_from_function(const struct gpc_function *function, CUmodule *hmod);

#endif /* GPC_MODULE_H */
