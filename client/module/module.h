/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules (CUmodule) and libraries (CUlibrary). A module belongs to a context and owns its image,
 * except for the view of a library that cuLibraryGetModule() returns, whose image the library owns.
 *
 * Ownership: modules, libraries, images and functions have no reference counts, because every
 * launch would have to update them. An image is freed when its module or library is unloaded.
 * Unloading code that another thread is launching or looking up is an error of the program with
 * NVIDIA's driver, too.
 * Threads: any thread may call.
 * Errors: functions that return a CUresult return CUDA_SUCCESS or the errors stated with the
 * function.
 */
#ifndef GPC_MODULE_H
#define GPC_MODULE_H

#include "client/module/image.h"

#include <cuda.h>

/* The object of a CUmodule. */
struct gpc_module {
	struct gpc_handle handle;
	struct gpc_image *image; /* owned, unless of_library is set */
	struct gpc_context *context;
	bool of_library;         /* a view of a library, which owns the image and the module */
	struct gpc_module *next; /* next view in the library's list; guarded by the lock of the
				    library's first image */
	struct gpc_function_list functions; /* its CUfunction objects, owned */
};

/* Looks up the module of a handle, borrowed. Does not check that CUDA is usable. Returns
 * CUDA_ERROR_INVALID_HANDLE, with *module_p NULL, if the handle is invalid. */
CUresult gpc_module_lookup(CUmodule hmod, struct gpc_module **module_p);
/* First step of a CUDA function on a library, as gpc_enter_kind() (context/object.h): checks that
 * CUDA is usable, looks the library up, blocks until its image is loaded, and stores it, borrowed.
 * Errors: CUDA_ERROR_INVALID_HANDLE, and those of gpc_enter_initialized() (context.h) and
 * gpc_image_await(); *image_p is then unchanged. */
CUresult gpc_library_enter_image(CUlibrary token, struct gpc_image **image_p);

/* Creates a module of a loaded image in a context. of_library: it is a view of a library's image;
 * if false, the module takes ownership of the image. Returns NULL if out of memory; the image then
 * stays the caller's. gpc_module_destroy() frees the module. */
struct gpc_module *gpc_module_create(struct gpc_image *image, struct gpc_context *context,
				     bool of_library);
/* Destroys a module and its functions, and unloads its image if the module owns it. A view must
 * have been removed from its library's list. */
void gpc_module_destroy(struct gpc_module *module);

/* Stores the view, for this context, of the library that owns this image, and creates it on first
 * use. The image must be loaded. The library owns the view. After an error *module_p is undefined.
 * Errors: CUDA_ERROR_INVALID_HANDLE: the library was unloaded; CUDA_ERROR_NO_BINARY_FOR_GPU: it is
 * not loaded in the session of the context; CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gpc_library_get_module(struct gpc_image *image, struct gpc_context *context,
				struct gpc_module **module_p);

/* Callback unload() of struct gpc_context_part (client/context/context.h), called when a context is
 * destroyed or reset: destroys its modules, except views of libraries. */
void gpc_module_drop_context(struct gpc_context *context);

/* Stores the handle of the module that the function, of a CUfunction, belongs to. Returns
 * CUDA_SUCCESS, or CUDA_ERROR_INVALID_HANDLE, with *hmod unchanged, if there is none. */
CUresult gpc_module_from_function(const struct gpc_function *function, CUmodule *hmod);

#endif /* GPC_MODULE_H */
