/* SPDX-License-Identifier: Apache-2.0 */
#include "client/module/module.h"

#include "client/context/object.h"
#include "client/module/jit_options.h"
#include "gpc_calls.h"

#include <stdlib.h>

CUresult
gpc_module_lookup(CUmodule hmod, struct gpc_module **module_p)
{
	*module_p = gpc_handle_from_token(GPC_KIND_MODULE, hmod);
	return *module_p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

struct gpc_module *
gpc_module_create(struct gpc_image *image, struct gpc_context *context, bool of_library)
{
	struct gpc_module *module = gpc_handle_new(GPC_KIND_MODULE, sizeof(*module));

	if (!module)
		return NULL;
	module->image = image;
	module->context = context;
	module->of_library = of_library;
	module->functions.kind = GPC_KIND_FUNCTION;
	module->functions.image = image;
	module->functions.context = context;
	if (gpc_function_list_init(&module->functions))
		return module;
	gpc_handle_remove(&module->handle);
	return NULL;
}

void
gpc_module_destroy(struct gpc_module *module)
{
	struct gpc_module gone = *module;

	gpc_handle_remove(&module->handle);
	gpc_function_list_fini(&gone.functions);
	if (!gone.of_library)
		gpc_image_unload(gone.image);
}

static void
module_destroy_if_in_context(void *object, void *context)
{
	struct gpc_module *module = object;

	if (module->context == context && !module->of_library &&
	    gpc_handle_claim(GPC_KIND_MODULE, module->handle.token))
		gpc_module_destroy(module);
}

void
gpc_module_drop_context(struct gpc_context *context)
{
	gpc_handle_each(GPC_KIND_MODULE, module_destroy_if_in_context, context);
}

/* Creates a module that owns the image just loaded; unloads the image on failure. */
static CUresult
module_create_owning(struct gpc_context *context, struct gpc_image *image, CUmodule *module_p)
{
	struct gpc_module *module = gpc_module_create(image, context, false);

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
	result = gpc_jit_options_check(&jit);
	if (result == CUDA_SUCCESS)
		result = gpc_image_load(context, image, &jit, &loaded);
	return result == CUDA_SUCCESS ? module_create_owning(context, loaded, module) : result;
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
	result = gpc_image_load(context, source, &(struct gpc_jit_options){ 0 }, &loaded);
	free(source);
	return result == CUDA_SUCCESS ? module_create_owning(context, loaded, module) : result;
}

CUresult
gpc_cuModuleUnload(CUmodule hmod)
{
	struct gpc_module *module;
	CUresult result = gpc_enter_kind(GPC_KIND_MODULE, hmod, &module);

	if (result != CUDA_SUCCESS)
		return result;
	/* cuModuleUnload: the module of a library is unloaded with the library. */
	if (module->of_library)
		return CUDA_ERROR_NOT_PERMITTED;
	if (!gpc_handle_claim(GPC_KIND_MODULE, hmod))
		return CUDA_ERROR_INVALID_HANDLE;
	gpc_module_destroy(module);
	return CUDA_SUCCESS;
}

CUresult
gpc_cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
	struct gpc_module *module;
	CUresult result = gpc_enter_kind(GPC_KIND_MODULE, hmod, &module);

	return result == CUDA_SUCCESS
		       ? gpc_function_list_find(&module->functions, name, (void **)hfunc)
		       : result;
}

CUresult
gpc_cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions, CUmodule mod)
{
	struct gpc_module *module;
	CUresult result = gpc_enter_kind(GPC_KIND_MODULE, mod, &module);

	return result == CUDA_SUCCESS ? gpc_function_list_tokens(&module->functions,
								 (void **)functions, numFunctions)
				      : result;
}

CUresult
gpc_cuModuleGetGlobal_v2(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name)
{
	struct gpc_module *module;
	CUresult result = gpc_enter_kind(GPC_KIND_MODULE, hmod, &module);

	if (result != CUDA_SUCCESS)
		return result;
	if (!name || (!dptr && !bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return gpc_image_get_global(module->image, module->context, name, dptr, bytes);
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
gpc_module_from_function(const struct gpc_function *function, CUmodule *hmod)
{
	struct search search = { .function = function };

	gpc_handle_each(GPC_KIND_MODULE, match_function, &search);
	if (!search.found)
		return CUDA_ERROR_INVALID_HANDLE;
	*hmod = search.found;
	return CUDA_SUCCESS;
}
