/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/module/image_load.h"

#include "image/fatbin.h"
#include "protocol/image_info.h"
#include "server/worker/device/driver.h"
#include "server/worker/image_cache/image_cache.h"
#include "server/worker/module/jit_options.h"
#include "server/worker/module/library.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The driver defers compiling, but a caller that loads PTX must learn whether it is valid. */
static CUresult
library_compile(struct gpd_library *library)
{
	CUmodule module;
	CUresult result;

	if (!gpd_driver_has(cuLibraryGetModule))
		return CUDA_SUCCESS;
	result = gpd_driver.cuLibraryGetModule(&module, library->driver);
	if (result != CUDA_SUCCESS)
		gpd_image_unload(library);
	return result;
}

static CUresult
library_load(struct gpd_library *library, struct gp_bytes options)
{
	CUlibraryOption preserved = CU_LIBRARY_BINARY_IS_PRESERVED;
	struct gpd_jit_options *jit = &library->jit->options;
	void *yes = (void *)1;
	const struct gp_image *view = library->blob->image;
	bool compiles;
	CUresult result;

	if (!view)
		return library->blob->image_error == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY
							     : CUDA_ERROR_INVALID_IMAGE;
	result = gpd_jit_read(jit, options);
	if (result != CUDA_SUCCESS)
		return result;
	compiles = gp_image_type(view) == GP_IMAGE_PTX;
	/* The software device may reject more than a compiler does; the client prints the
	 * reason. */
	if (compiles || jit->count || gpd_driver.software)
		gpd_jit_add_logs(library->jit);
	result = gpd_driver.cuLibraryLoadData(&library->driver, gp_image_driver_pointer(view),
					      jit->keys, jit->values, jit->count, &preserved, &yes,
					      1);
	if (result == CUDA_SUCCESS && compiles)
		result = library_compile(library);
	return result;
}

/* The driver reports the end of the parameters by CUDA_ERROR_INVALID_VALUE. */
static CUresult
kernel_read_params(struct gpd_kernel *kernel, struct gp_kernel_info *info)
{
	struct gp_param_info *list = NULL;
	uint32_t count = 0, end = 0;
	size_t offset, size;
	CUresult result;

	while ((result = gpd_driver.cuKernelGetParamInfo(kernel->driver, count, &offset, &size)) ==
	       CUDA_SUCCESS) {
		struct gp_param_info *grown = NULL;

		if (count < GP_KERNEL_PARAMS_MAX)
			grown = reallocarray(list, count + 1, sizeof(*list));
		if (!grown) {
			free(list);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		list = grown;
		list[count++] = (struct gp_param_info){ (uint32_t)offset, (uint32_t)size };
		if (offset + size > end)
			end = (uint32_t)(offset + size);
	}
	kernel->params_size = result == CUDA_ERROR_INVALID_VALUE ? end : UINT32_MAX;
	info->param_count = count;
	info->params = list;
	/* After these errors the parameters may be incomplete, and the client would take the image
	 * for another one. */
	return gpd_driver_is_sticky(result) || result == CUDA_ERROR_OUT_OF_MEMORY ? result
										  : CUDA_SUCCESS;
}

static void
kernel_read_attributes(struct gpd_library *library, uint32_t index, int device,
		       struct gp_kernel_info *info)
{
	struct gpd_function *loaded;
	CUfunction function;

	if (gpd_library_function(NULL, library, index, device, &loaded) != CUDA_SUCCESS)
		return;
	function = atomic_load(&loaded->driver);
	for (int i = 0; i < GP_KERNEL_ATTRIBUTES; i++) {
		if (gpd_driver.cuFuncGetAttribute(&info->attributes[i], (CUfunction_attribute)i,
						  function) == CUDA_SUCCESS)
			info->attributes_known |= 1u << i;
	}
}

const char *
gpd_image_unsupported(const struct gpd_kernel *kernel)
{
	const char *why = NULL;

	if (gpd_driver.gpSoftKernelUnsupported)
		(void)gpd_driver.gpSoftKernelUnsupported(kernel->driver, &why);
	return why;
}

/* The driver's order is arbitrary; sorted by name it is the same in every worker. */
static int
kernel_compare_name(const void *a, const void *b)
{
	return strcmp(((const struct gpd_kernel *)a)->name, ((const struct gpd_kernel *)b)->name);
}

static CUresult
list_kernels(struct gpd_library *library)
{
	const uint32_t count = library->kernel_count;
	CUkernel *library_kernels = calloc(count + 1, sizeof(CUkernel));
	CUresult result = library_kernels ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

	if (library_kernels && count)
		result = gpd_driver.cuLibraryEnumerateKernels(library_kernels, count,
							      library->driver);
	for (uint32_t i = 0; result == CUDA_SUCCESS && i < count; i++) {
		library->kernels[i].driver = library_kernels[i];
		result = gpd_driver.cuKernelGetName(&library->kernels[i].name, library_kernels[i]);
	}
	free(library_kernels);
	if (result == CUDA_SUCCESS)
		qsort(library->kernels, count, sizeof(*library->kernels), kernel_compare_name);
	return result;
}

static CUresult
library_describe(struct gpd_library *library, int device, struct gp_image_info *info)
{
	CUresult result = CUDA_SUCCESS;

	for (uint32_t i = 0; result == CUDA_SUCCESS && i < library->kernel_count; i++) {
		info->kernels[i].name = library->kernels[i].name;
		result = kernel_read_params(&library->kernels[i], &info->kernels[i]);
		if (library->kernel_count <= GPD_IMAGE_ATTRIBUTES_MAX)
			kernel_read_attributes(library, i, device, &info->kernels[i]);
		if (gpd_image_unsupported(&library->kernels[i])) {
			info->kernels[i].attributes_known |= GP_KERNEL_UNSUPPORTED;
			library->unsupported = true;
		}
	}
	return result;
}

static CUresult
library_kernels(struct gpd_library *library, unsigned int count, int device)
{
	struct gp_image_info info = { .kernel_count = count };
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
	void *data = NULL;
	size_t size = 0;

	library->kernels = calloc(count + 1, sizeof(*library->kernels));
	library->kernel_count = count;
	info.kernels = calloc(count + 1, sizeof(*info.kernels));
	if (library->kernels && info.kernels)
		result = list_kernels(library);
	if (result == CUDA_SUCCESS)
		result = library_describe(library, device, &info);
	if (result == CUDA_SUCCESS && gp_image_info_encode(&info, &data, &size))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	library->info = (struct gp_bytes){ data, size };
	for (unsigned int i = 0; info.kernels && i < count; i++)
		free((void *)info.kernels[i].params);
	free(info.kernels);
	return result;
}

CUresult
gpd_image_load(struct gpd_library *library, int device, struct gp_bytes options)
{
	unsigned int count = 0;
	const char *text;
	CUresult result;

	library->jit = calloc(1, sizeof(*library->jit));
	if (!library->jit)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = library_load(library, options);
	text = result == CUDA_SUCCESS ? library->jit->info : library->jit->error;
	(void)gpd_bytes_copy((struct gp_bytes){ text, strlen(text) }, &library->log);
	if (result != CUDA_SUCCESS)
		return result;
	result = gpd_driver.cuLibraryGetKernelCount(&count, library->driver);
	if (result == CUDA_SUCCESS && count > GP_IMAGE_KERNELS_MAX)
		result = CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS)
		result = library_kernels(library, count, device);
	if (result != CUDA_SUCCESS)
		gpd_image_unload(library);
	return result;
}

CUresult
gpd_image_load_function(const struct gpd_kernel *kernel, struct gpd_function *function)
{
	CUfunction driver;
	CUresult result = gpd_driver.cuKernelGetFunction(&driver, kernel->driver);

	if (result != CUDA_SUCCESS)
		return result;
	if (gpd_driver.cuFuncGetAttribute(&function->dynamic,
					  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
					  driver) != CUDA_SUCCESS)
		function->dynamic = 0;
	atomic_store(&function->dynamic_most, function->dynamic);
	atomic_store_explicit(&function->driver, driver, memory_order_release);
	return CUDA_SUCCESS;
}

void
gpd_image_unload(struct gpd_library *library)
{
	(void)gpd_driver.cuLibraryUnload(library->driver);
	library->driver = NULL;
}
