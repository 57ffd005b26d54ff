/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules (CUmodule) and libraries (CUlibrary). A module belongs to a context and owns its image,
 * except for the view of a library that cuLibraryGetModule() returns, whose image the library owns.
 *
 * Ownership: modules, libraries, images and functions have no reference counts, because a launch
 * would pay for them. Unloading code that another thread is launching or looking up is an error of
 * the program with NVIDIA's driver, too. So an image is freed when its module or library is
 * unloaded.
 * Threads: any thread may call.
 */
#ifndef GPC_MODULE_H
#define GPC_MODULE_H

#include "client/module/image.h"

#include <cuda.h>

struct gpc_module {
	struct gpc_handle handle;
	struct gpc_image *image;
	struct gpc_context *context;
	bool of_library;                    /* the library owns the image */
	struct gpc_module *next;            /* in the library's list of views */
	struct gpc_function_list functions; /* CUfunction objects */
};

/* Returns the module of a handle, or CUDA_ERROR_INVALID_HANDLE. */
CUresult gpc_module_lookup(CUmodule hmod, struct gpc_module **module_p);
/* Starts a call on a library, and returns its image once it is loaded. Errors:
 * CUDA_ERROR_INVALID_HANDLE, and those of loading. */
CUresult gpc_library_enter_image(CUlibrary token, struct gpc_image **image_p);

/* Creates a module of an image in a context; of_library: it is a view of a library's image. Returns
 * NULL if out of memory. */
struct gpc_module *gpc_module_create(struct gpc_image *image, struct gpc_context *context,
				     bool of_library);
/* Destroys a module and its functions, and unloads its image if the module owns it. */
void gpc_module_destroy(struct gpc_module *module);

/* Returns the view of the library that owns this image, creating it on first use. Errors:
 * CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gpc_library_get_module(struct gpc_image *image, struct gpc_context *context,
				struct gpc_module **module_p);

/* Unloads the modules of a context that is being destroyed. */
void gpc_module_drop_context(struct gpc_context *context);

/* Returns the module that the function belongs to, or CUDA_ERROR_INVALID_HANDLE. */
CUresult gpc_module_from_function(const struct gpc_function *function, CUmodule *hmod);

#endif /* GPC_MODULE_H */
