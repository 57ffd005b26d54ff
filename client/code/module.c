/* SPDX-License-Identifier: Apache-2.0 */
#include "client/code/module.h"

#include "client/base/config.h"
#include "gpc_calls.h"

#include <stdlib.h>

CUresult
gpc_module_lookup(CUmodule hmod, struct gpc_module **module_p)
{
	*module_p = gpc_handle_get(GPC_KIND_MODULE, hmod);
	return *module_p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static struct gpc_module *
module_create(struct gpc_image *image, struct gpc_context *context, bool of_library)
{
	struct gpc_function **functions =
		calloc((size_t)image->info->kernel_count + 1, sizeof(struct gpc_function *));
	struct gpc_module *module =
		functions ? gpc_handle_new(GPC_KIND_MODULE, sizeof(*module)) : NULL;

	if (!module) {
		free(functions);
		return NULL;
	}
	module->functions = functions;
	module->image = image;
	module->context = context;
	module->of_library = of_library;
	return module;
}

struct gpc_module *
gpc_module_create_view(struct gpc_image *image, struct gpc_context *context)
{
	return module_create(image, context, true);
}

void
gpc_module_destroy(struct gpc_module *module)
{
	const struct gpc_module gone = *module;

	gpc_handle_remove(&module->handle);
	for (uint32_t i = 0; i < gone.image->info->kernel_count; i++) {
		if (gone.functions[i])
			gpc_handle_remove(&gone.functions[i]->handle);
	}
	if (!gone.of_library)
		gpc_image_unload(gone.image);
	free(gone.functions);
}

static void
forget_if_of(void *object, void *context)
{
	struct gpc_module *module = object;

	if (module->context == context && !module->of_library)
		gpc_module_destroy(module);
}

void
gpc_module_forget_context(struct gpc_context *context)
{
	gpc_handle_each(GPC_KIND_MODULE, forget_if_of, context);
}

struct gpc_function *
gpc_module_function(struct gpc_module *module, uint32_t index)
{
	struct gpc_image *image = module->image;
	struct gpc_function *function;

	pthread_mutex_lock(&image->lock);
	function = module->functions[index];
	if (!function) {
		function = gpc_function_create(GPC_KIND_FUNCTION, image, index);
		if (function)
			function->context = module->context;
		module->functions[index] = function;
	}
	pthread_mutex_unlock(&image->lock);
	return function;
}

/* A fresh module of an image that was just loaded, which it owns from now on. */
static CUresult
module_of_image(struct gpc_context *context, struct gpc_image *image, CUmodule *module_p)
{
	struct gpc_module *module = module_create(image, context, false);

	if (!module) {
		gpc_image_unload(image);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*module_p = module->handle.token;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int numOptions,
		       CUjit_option *options, void **optionValues)
{
	struct gpc_jit_options jit = { options, optionValues, numOptions };
	struct gpc_context *context;
	struct gpc_image *loaded;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpc_image_load(context, image, &jit, &loaded);
	return result == CUDA_SUCCESS ? module_of_image(context, loaded, module) : result;
}

CUresult
gpc_cuModuleLoadData(CUmodule *module, const void *image)
{
	return gpc_cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult
gpc_cuModuleLoadFatBinary(CUmodule *module, const void *fatCubin)
{
	return gpc_cuModuleLoadDataEx(module, fatCubin, 0, NULL, NULL);
}

CUresult
gpc_cuModuleLoad(CUmodule *module, const char *fname)
{
	struct gpc_context *context;
	struct gpc_image *loaded;
	void *source;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpc_image_read_file(fname, &source);
	if (result != CUDA_SUCCESS)
		return result;
	result = gpc_image_load(context, source, NULL, &loaded);
	free(source);
	return result == CUDA_SUCCESS ? module_of_image(context, loaded, module) : result;
}

CUresult
gpc_cuModuleUnload(CUmodule hmod)
{
	struct gpc_module *module;
	CUresult result = gpc_enter_initialized();

	if (result == CUDA_SUCCESS)
		result = gpc_module_lookup(hmod, &module);
	if (result != CUDA_SUCCESS)
		return result;
	/* cuModuleUnload: a library's module goes with the library. */
	if (module->of_library)
		return CUDA_ERROR_NOT_PERMITTED;
	gpc_module_destroy(module);
	return CUDA_SUCCESS;
}

CUresult
gpc_cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS)
		return result;
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = gpc_config_module_loading();
	return CUDA_SUCCESS;
}

static CUresult
enter_module(CUmodule hmod, struct gpc_module **module_p)
{
	CUresult result = gpc_enter_initialized();

	return result == CUDA_SUCCESS ? gpc_module_lookup(hmod, module_p) : result;
}

CUresult
gpc_cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
	struct gpc_function *function;
	struct gpc_module *module;
	CUresult result = enter_module(hmod, &module);
	int64_t index;

	if (result != CUDA_SUCCESS)
		return result;
	if (!hfunc || !name)
		return CUDA_ERROR_INVALID_VALUE;
	index = gpc_image_find(module->image, name);
	if (index < 0)
		return CUDA_ERROR_NOT_FOUND;
	function = gpc_module_function(module, (uint32_t)index);
	if (!function)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*hfunc = function->handle.token;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuModuleGetFunctionCount(unsigned int *count, CUmodule mod)
{
	struct gpc_module *module;
	CUresult result = enter_module(mod, &module);

	if (result != CUDA_SUCCESS)
		return result;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = module->image->info->kernel_count;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
	struct gpc_module *module;
	CUresult result = enter_module(mod, &module);

	if (result != CUDA_SUCCESS)
		return result;
	if (!functions)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < numFunctions && i < module->image->info->kernel_count; i++) {
		struct gpc_function *function = gpc_module_function(module, i);

		if (!function)
			return CUDA_ERROR_OUT_OF_MEMORY;
		functions[i] = function->handle.token;
	}
	return CUDA_SUCCESS;
}

CUresult
gpc_cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
	struct gpc_module *module;
	CUresult result = enter_module(hmod, &module);

	if (result != CUDA_SUCCESS)
		return result;
	if (!name || (!dptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return gpc_image_global(module->image, module->context, name, dptr, bytes);
}

struct search {
	const struct gpc_function *function;
	CUmodule found;
};

static void
match_function(void *object, void *arg)
{
	const struct gpc_module *module = object;
	struct search *search = arg;

	if (module->image == search->function->image &&
	    module->context == search->function->context)
		search->found = module->handle.token;
}

CUresult
gpc_module_of_function(const struct gpc_function *function, CUmodule *hmod)
{
	struct search search = { .function = function };

	gpc_handle_each(GPC_KIND_MODULE, match_function, &search);
	if (!search.found)
		return CUDA_ERROR_INVALID_HANDLE;
	*hmod = search.found;
	return CUDA_SUCCESS;
}
