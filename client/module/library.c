/* SPDX-License-Identifier: Apache-2.0 */
#include "client/context/object.h"
#include "client/module/jit_options.h"
#include "client/module/module.h"
#include "gpc_calls.h"
#include "image/fatbin.h"
#include "image/image_variables.h"

#include <stdlib.h>

/* A CUlibrary. Its images refer to it as owner. */
struct library {
	struct gpc_handle handle;
	struct gpc_image *image;
	struct gpc_module
		*modules; /* one view per context that requested one; protected by image->lock */
};

CUresult
gpc_library_enter_image(CUlibrary token, struct gpc_image **image_p)
{
	struct library *library;
	CUresult result = gpc_enter_kind(GPC_KIND_LIBRARY, token, &library);

	if (result == CUDA_SUCCESS)
		result = gpc_image_await(library->image);
	if (result == CUDA_SUCCESS)
		*image_p = library->image;
	return result;
}

/* A library belongs to no context. Without a current context it is loaded on the first device. */
static CUresult
library_enter_load(struct gpc_context **context_p)
{
	CUresult result = gpc_enter(context_p);

	if (result != CUDA_ERROR_INVALID_CONTEXT)
		return result;
	if (gpc_device_count() == 0)
		return CUDA_ERROR_NO_DEVICE;
	*context_p = gpc_device_get(0)->primary;
	return CUDA_SUCCESS;
}

static CUresult
library_create(struct gpc_image *image, CUlibrary *library_p)
{
	struct library *library = gpc_handle_new(GPC_KIND_LIBRARY, sizeof(*library));

	if (!library) {
		gpc_image_unload(image);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	library->image = image;
	for (; image; image = image->twin)
		image->owner = library->handle.token;
	*library_p = library->handle.token;
	return CUDA_SUCCESS;
}

/* Both options are hints: the source image is not used after loading, and universal tables are not
 * read. */
static CUresult
options_check(const CUlibraryOption *options, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		if (!options || (unsigned int)options[i] >= CU_LIBRARY_NUM_OPTIONS)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

/* Returns whether the load need not be waited for. Embedded compiler output is valid code, and
 * CUDA, too, loads it only when a kernel is needed. With several daemons the load is synchronous,
 * because each must have the image. */
static bool
load_may_be_async(const void *code, const struct gpc_jit_options *jit)
{
	enum gp_image_kind kind = code ? gp_image_kind(code) : GP_IMAGE_UNKNOWN;

	return jit->count == 0 && gpc_session_count() == 1 &&
	       (kind == GP_IMAGE_WRAPPER || kind == GP_IMAGE_FATBIN);
}

static CUresult
library_load(CUlibrary *library, const void *code, const struct gpc_jit_options *jit,
	     const CUlibraryOption *options, unsigned int option_count)
{
	struct gpc_context *context;
	struct gpc_image *image;
	CUresult result = library_enter_load(&context);

	if (result == CUDA_SUCCESS && !library)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = gpc_jit_options_check(jit);
	if (result == CUDA_SUCCESS)
		result = options_check(options, option_count);
	if (result == CUDA_SUCCESS)
		result = gpc_image_load(context, code, load_may_be_async(code, jit) ? NULL : jit,
					&image);
	if (result != CUDA_SUCCESS)
		return result;
	gpc_image_load_twins(image, code, jit);
	return library_create(image, library);
}

CUresult
gpc_cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jitOptions,
		      void **jitOptionsValues, unsigned int numJitOptions,
		      CUlibraryOption *libraryOptions, void **libraryOptionValues,
		      unsigned int numLibraryOptions)
{
	const struct gpc_jit_options jit = { jitOptions, jitOptionsValues, numJitOptions };

	return library_load(library, code, &jit, libraryOptions, numLibraryOptions);
}

CUresult
gpc_cuLibraryLoadFromFile(CUlibrary *library, const char *fileName, CUjit_option *jitOptions,
			  void **jitOptionsValues, unsigned int numJitOptions,
			  CUlibraryOption *libraryOptions, void **libraryOptionValues,
			  unsigned int numLibraryOptions)
{
	const struct gpc_jit_options jit = { jitOptions, jitOptionsValues, numJitOptions };
	struct gpc_context *context;
	void *code;
	CUresult result = library_enter_load(&context);

	if (result == CUDA_SUCCESS)
		result = gpc_image_read_file(fileName, &code);
	if (result != CUDA_SUCCESS)
		return result;
	result = library_load(library, code, &jit, libraryOptions, numLibraryOptions);
	free(code);
	return result;
}

CUresult
gpc_cuLibraryUnload(CUlibrary token)
{
	struct gpc_module *modules;
	struct gpc_image *image;
	struct library *library;
	CUresult result = gpc_enter_kind(GPC_KIND_LIBRARY, token, &library);

	if (result != CUDA_SUCCESS)
		return result;
	if (!gpc_handle_claim(GPC_KIND_LIBRARY, token))
		return CUDA_ERROR_INVALID_HANDLE;
	modules = library->modules;
	image = library->image;
	gpc_handle_remove(&library->handle);
	while (modules) {
		struct gpc_module *next = modules->next;

		gpc_module_destroy(modules);
		modules = next;
	}
	gpc_image_unload(image);
	return CUDA_SUCCESS;
}

CUresult
gpc_cuLibraryGetKernel(CUkernel *pKernel, CUlibrary token, const char *name)
{
	struct gpc_image *image;
	CUresult result = gpc_library_enter_image(token, &image);

	return result == CUDA_SUCCESS
		       ? gpc_function_list_find(&image->kernels, name, (void **)pKernel)
		       : result;
}

CUresult
gpc_cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
	struct gpc_image *image;
	CUresult result = gpc_library_enter_image(lib, &image);

	return result == CUDA_SUCCESS
		       ? gpc_function_list_tokens(&image->kernels, (void **)kernels, numKernels)
		       : result;
}

CUresult
gpc_library_get_module(struct gpc_image *image, struct gpc_context *context,
		       struct gpc_module **module_p)
{
	struct library *library = gpc_handle_from_token(GPC_KIND_LIBRARY, image->owner);
	struct gpc_module *module;
	struct gpc_image *view;

	if (!library)
		return CUDA_ERROR_INVALID_HANDLE;
	image = library->image;
	view = gpc_image_get_twin(image, context->scope.session);
	if (!view)
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	pthread_mutex_lock(&image->lock);
	for (module = library->modules; module && module->context != context;)
		module = module->next;
	if (!module) {
		module = gpc_module_create(view, context, true);
		if (module) {
			module->next = library->modules;
			library->modules = module;
		}
	}
	pthread_mutex_unlock(&image->lock);
	*module_p = module;
	return module ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
gpc_cuLibraryGetModule(CUmodule *pMod, CUlibrary token)
{
	struct gpc_context *context;
	struct gpc_module *module;
	struct library *library;
	CUresult result = gpc_enter(&context);

	if (result == CUDA_SUCCESS)
		result = gpc_enter_kind(GPC_KIND_LIBRARY, token, &library);
	if (result == CUDA_SUCCESS && !pMod)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = gpc_image_await(library->image);
	if (result == CUDA_SUCCESS)
		result = gpc_library_get_module(library->image, context, &module);
	if (result == CUDA_SUCCESS)
		*pMod = module->handle.token;
	return result;
}

CUresult
gpc_cuLibraryGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUlibrary token, const char *name)
{
	struct gpc_context *context;
	struct library *library;
	CUresult result = gpc_enter(&context);

	if (result == CUDA_SUCCESS)
		result = gpc_enter_kind(GPC_KIND_LIBRARY, token, &library);
	if (result != CUDA_SUCCESS)
		return result;
	if (!name || (!dptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	result = gpc_image_await(library->image);
	return result == CUDA_SUCCESS
		       ? gpc_image_get_global(library->image, context, name, dptr, bytes)
		       : result;
}

/* NVIDIA's runtime calls this before there is a context; then the first device is used. For code in
 * a form that is not parsed here, it is unknown which variables are managed. */
CUresult
gpc_cuLibraryGetManaged(CUdeviceptr *dptr, size_t *bytes, CUlibrary token, const char *name)
{
	struct gpc_context *context;
	struct gpc_image *image;
	uint64_t size;
	CUresult result = gpc_library_enter_image(token, &image);

	if (result != CUDA_SUCCESS)
		return result;
	if (!name || (!dptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	if (!gpc_image_is_managed(image, name))
		return image->variables && gp_image_variables_check(image->variables, name, 0,
								    &size) == GP_VARIABLE_UNKNOWN
			       ? CUDA_ERROR_NOT_SUPPORTED
			       : CUDA_ERROR_NOT_FOUND;
	result = library_enter_load(&context);
	if (result == CUDA_SUCCESS)
		result = gpc_context_activate(context);
	return result == CUDA_SUCCESS ? gpc_image_get_global(image, context, name, dptr, bytes)
				      : result;
}
