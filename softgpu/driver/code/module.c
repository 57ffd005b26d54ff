/* SPDX-License-Identifier: Apache-2.0 */
/* cuModule, cuLibrary and cuLink calls. */
#include "image/fatbin.h"
#include "softgpu/driver/code/binary.h"
#include "softgpu/driver/code/loading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINKER_TEXT_MAX ((size_t)256 << 20)

static CUresult
enter_library(void)
{
	CUresult r = gs_enter_device();

	return r ? r : gs_failure();
}

static CUresult
read_options(unsigned int count, const CUjit_option *options, void **values, struct gs_jit_log *log)
{
	memset(log, 0, sizeof(*log));
	if (count && (!options || !values))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < count; i++) {
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER) {
			log->buffer = values[i];
		} else if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
			log->size = (unsigned int)(uintptr_t)values[i];
			log->size_p = &values[i];
		}
	}
	return CUDA_SUCCESS;
}

/* Sets the lengths of logs that stay empty. */
static void
clear_sizes(unsigned int count, const CUjit_option *options, void **values)
{
	for (unsigned int i = 0; i < count; i++) {
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES ||
		    options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES)
			values[i] = NULL;
	}
}

static CUresult
load(const void *image, bool is_library, unsigned int count, const CUjit_option *options,
     void **values, struct gs_binary **code_p)
{
	struct gs_jit_log log;
	CUresult r;

	if (!image)
		return CUDA_ERROR_INVALID_VALUE;
	r = read_options(count, options, values, &log);
	if (r)
		return r;
	clear_sizes(count, options, values);
	return gs_binary_load(image, is_library, &log, code_p);
}

static struct gs_binary *
module_get(CUmodule handle)
{
	struct gs_object *object = gs_object_get(handle, GS_KIND_MODULE);

	if (!object)
		object = gs_object_get(handle, GS_KIND_LIBRARY_MODULE);
	return object ? (struct gs_binary *)object->owner : NULL;
}

static struct gs_binary *
library_get(CUlibrary handle)
{
	return gs_object_get(handle, GS_KIND_LIBRARY);
}

/* Returns the library's instance on the current device, which belongs to the library. */
static CUresult
here(struct gs_binary *library, struct gs_binary **code_p)
{
	return gs_binary_on(library, gs_device_current(), code_p);
}

static void
put(struct gs_binary *code)
{
	gs_object_put(&code->object);
}

CUresult CUDAAPI
cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, CUjit_option *options,
		   void **values)
{
	struct gs_binary *code;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	gs_loading_wait();
	r = load(image, false, count, options, values, &code);
	if (!r)
		*module = (CUmodule)&code->module;
	return r;
}

CUresult CUDAAPI
cuModuleLoadData(CUmodule *module, const void *image)
{
	return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

CUresult CUDAAPI
cuModuleUnload(CUmodule handle)
{
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!gs_object_retire(handle, GS_KIND_MODULE))
		return CUDA_ERROR_INVALID_HANDLE;
	gs_loading_wait();
	gs_binary_unload((struct gs_binary *)((struct gs_object *)handle)->owner);
	return CUDA_SUCCESS;
}

static CUresult
get_global(const struct gs_binary *code, const char *name, CUdeviceptr *ptr, size_t *size)
{
	uint64_t address, bytes;
	CUresult r;

	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	r = (CUresult)gs_module_global(code->engine, name, &address, &bytes);
	if (r)
		return CUDA_ERROR_NOT_FOUND;
	if (ptr)
		*ptr = address;
	if (size)
		*size = bytes;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuModuleGetGlobal_v2(CUdeviceptr *ptr, size_t *size, CUmodule handle, const char *name)
{
	struct gs_binary *code;
	CUresult r = gs_enter();

	if (r)
		return r;
	code = module_get(handle);
	if (!code)
		return CUDA_ERROR_INVALID_HANDLE;
	r = get_global(code, name, ptr, size);
	put(code);
	return r;
}

CUresult CUDAAPI
cuModuleGetFunction(CUfunction *function, CUmodule handle, const char *name)
{
	struct gs_binary *code;
	struct gs_kernel *kernel;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!function || !name)
		return CUDA_ERROR_INVALID_VALUE;
	code = module_get(handle);
	if (!code)
		return CUDA_ERROR_INVALID_HANDLE;
	kernel = gs_binary_kernel(code, name);
	if (kernel)
		*function = (CUfunction)&kernel->function;
	put(code);
	return kernel ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI
cuModuleGetFunctionCount(unsigned int *count, CUmodule handle)
{
	struct gs_binary *code;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	code = module_get(handle);
	if (!code)
		return CUDA_ERROR_INVALID_HANDLE;
	*count = (unsigned int)code->kernel_count;
	put(code);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuModuleEnumerateFunctions(CUfunction *functions, unsigned int room, CUmodule handle)
{
	struct gs_binary *code;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!functions || !room)
		return CUDA_ERROR_INVALID_VALUE;
	code = module_get(handle);
	if (!code)
		return CUDA_ERROR_INVALID_HANDLE;
	for (size_t i = 0; i < code->kernel_count && i < room; i++)
		functions[i] = (CUfunction)&code->kernels[i].function;
	put(code);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options, void **values,
		  unsigned int count, CUlibraryOption *library_options, void **library_values,
		  unsigned int library_count)
{
	struct gs_binary *code;
	CUresult r = enter_library();

	if (r)
		return r;
	if (!library || (library_count && !library_options))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < library_count; i++) {
		if ((int)library_options[i] < 0 || library_options[i] >= CU_LIBRARY_NUM_OPTIONS)
			return CUDA_ERROR_INVALID_VALUE;
	}
	r = load(image, true, count, options, values, &code);
	if (!r)
		*library = (CUlibrary)code;
	return r;
}

CUresult CUDAAPI
cuLibraryUnload(CUlibrary handle)
{
	CUresult r = enter_library();

	if (r)
		return r;
	if (!gs_object_retire(handle, GS_KIND_LIBRARY))
		return CUDA_ERROR_INVALID_HANDLE;
	gs_loading_wait();
	gs_binary_unload((struct gs_binary *)handle);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuLibraryGetModule(CUmodule *module, CUlibrary handle)
{
	struct gs_binary *code, *on;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	code = library_get(handle);
	if (!code)
		return CUDA_ERROR_INVALID_HANDLE;
	r = here(code, &on);
	if (!r)
		*module = (CUmodule)&on->module;
	put(code);
	return r;
}

CUresult CUDAAPI
cuLibraryGetKernel(CUkernel *handle_p, CUlibrary handle, const char *name)
{
	struct gs_binary *code;
	struct gs_kernel *kernel;
	CUresult r = enter_library();

	if (r)
		return r;
	if (!handle_p || !name)
		return CUDA_ERROR_INVALID_VALUE;
	code = library_get(handle);
	if (!code)
		return CUDA_ERROR_INVALID_HANDLE;
	kernel = gs_binary_kernel(code, name);
	if (kernel)
		*handle_p = (CUkernel)kernel;
	put(code);
	return kernel ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI
cuLibraryGetKernelCount(unsigned int *count, CUlibrary handle)
{
	struct gs_binary *code;
	CUresult r = enter_library();

	if (r)
		return r;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	code = library_get(handle);
	if (!code)
		return CUDA_ERROR_INVALID_HANDLE;
	*count = (unsigned int)code->kernel_count;
	put(code);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int room, CUlibrary handle)
{
	struct gs_binary *code;
	CUresult r = enter_library();

	if (r)
		return r;
	if (!kernels || !room)
		return CUDA_ERROR_INVALID_VALUE;
	code = library_get(handle);
	if (!code)
		return CUDA_ERROR_INVALID_HANDLE;
	for (size_t i = 0; i < code->kernel_count && i < room; i++)
		kernels[i] = (CUkernel)&code->kernels[i];
	put(code);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuLibraryGetGlobal(CUdeviceptr *ptr, size_t *size, CUlibrary handle, const char *name)
{
	struct gs_binary *code, *on;
	CUresult r = gs_enter();

	if (r)
		return r;
	code = library_get(handle);
	if (!code)
		return CUDA_ERROR_INVALID_HANDLE;
	r = here(code, &on);
	if (!r)
		r = get_global(on, name, ptr, size);
	put(code);
	return r;
}

/* Input of cuLinkAddData(): consecutive texts, as the engine links them. */
struct linker {
	struct gs_object object; /* GS_KIND_LINKER */
	struct gs_jit_log log;
	char *text;
	size_t size;
};

static void
linker_destroy(struct gs_object *object)
{
	struct linker *linker = (struct linker *)object;

	free(linker->text);
	free(linker);
}

CUresult CUDAAPI
cuLinkCreate_v2(unsigned int count, CUjit_option *options, void **values, CUlinkState *state)
{
	struct linker *linker;
	struct gs_jit_log log;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!state)
		return CUDA_ERROR_INVALID_VALUE;
	r = read_options(count, options, values, &log);
	if (r)
		return r;
	clear_sizes(count, options, values);
	linker = calloc(1, sizeof(*linker));
	if (!linker)
		return CUDA_ERROR_OUT_OF_MEMORY;
	linker->log = log;
	gs_object_init(&linker->object, GS_KIND_LINKER, NULL, linker_destroy);
	gs_object_publish(&linker->object);
	*state = (CUlinkState)linker;
	return CUDA_SUCCESS;
}

static CUresult
append(struct linker *linker, const char *text, size_t size)
{
	char *larger;

	size = strnlen(text, size);
	larger = realloc(linker->text, linker->size + size + 2);
	if (!larger)
		return CUDA_ERROR_OUT_OF_MEMORY;
	linker->text = larger;
	memcpy(larger + linker->size, text, size);
	linker->size += size;
	larger[linker->size++] = '\n';
	larger[linker->size] = '\0';
	return CUDA_SUCCESS;
}

static CUresult
explain(const struct linker *linker, const char *text, CUresult result)
{
	const struct gs_jit_log *log = &linker->log;

	if (log->buffer && log->size) {
		int length = snprintf(log->buffer, log->size, "%s", text);

		if (log->size_p)
			*log->size_p = (void *)(uintptr_t)length;
	}
	return result;
}

/* Whether a text is valid by itself, except for symbols defined in other texts. */
static CUresult
check_text(const struct linker *linker, const char *text, size_t size)
{
	struct gs_module *module;
	struct gs_error error;
	int r = gs_module_load(text, size, &module, &error);

	if (r == 0) {
		gs_module_unload(module);
		return CUDA_SUCCESS;
	}
	if (r == GS_INVALID_PTX && strstr(error.text, "is not defined in this module"))
		return CUDA_SUCCESS;
	return explain(linker, error.text, (CUresult)r);
}

/* Appends the PTX of a fatbin or an object. */
static CUresult
append_image(struct linker *linker, const void *data)
{
	struct gp_image *image;
	CUresult r = CUDA_ERROR_INVALID_IMAGE;

	if (gp_image_create(data, &image))
		return r;
	for (unsigned int i = 0; i < gp_image_count(image); i++) {
		char *text;
		size_t size;

		if (gp_image_software_ptx(image, i, LINKER_TEXT_MAX - linker->size, &text, &size))
			continue;
		r = append(linker, text, size);
		free(text);
	}
	gp_image_destroy(image);
	return r;
}

CUresult CUDAAPI
cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t size, const char *name,
		 unsigned int count, CUjit_option *options, void **values)
{
	struct linker *linker;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!data || !size || size > LINKER_TEXT_MAX || (count && (!options || !values)))
		return CUDA_ERROR_INVALID_VALUE;
	linker = gs_object_get(state, GS_KIND_LINKER);
	if (!linker)
		return CUDA_ERROR_INVALID_HANDLE;
	switch (type) {
	case CU_JIT_INPUT_PTX:
		r = check_text(linker, data, strnlen(data, size));
		if (!r)
			r = append(linker, data, size);
		break;
	case CU_JIT_INPUT_FATBINARY:
		r = append_image(linker, data);
		break;
	default:
		r = explain(linker, "the software device links PTX only",
			    CUDA_ERROR_NO_BINARY_FOR_GPU);
	}
	gs_object_put(&linker->object);
	return r;
}

CUresult CUDAAPI
cuLinkComplete(CUlinkState state, void **image, size_t *size)
{
	struct gs_module *module;
	struct gs_error error;
	struct linker *linker;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!image)
		return CUDA_ERROR_INVALID_VALUE;
	linker = gs_object_get(state, GS_KIND_LINKER);
	if (!linker)
		return CUDA_ERROR_INVALID_HANDLE;
	r = linker->size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = (CUresult)gs_module_load(linker->text, linker->size, &module, &error);
	if (r == CUDA_ERROR_INVALID_PTX)
		r = explain(linker, error.text, CUDA_ERROR_INVALID_SOURCE);
	if (!r) {
		gs_module_unload(module);
		*image = linker->text;
		if (size)
			*size = linker->size + 1;
	}
	gs_object_put(&linker->object);
	return r;
}

CUresult CUDAAPI
cuLinkDestroy(CUlinkState state)
{
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!gs_object_retire(state, GS_KIND_LINKER))
		return CUDA_ERROR_INVALID_HANDLE;
	gs_object_put((struct gs_object *)state);
	return CUDA_SUCCESS;
}
