/* SPDX-License-Identifier: Apache-2.0 */
/* Images of the fake CUDA driver of fake_session.h. Each has the same two kernels and one
 * variable. */
#include "tests/unit/server/fake_driver.h"
#include "tests/unit/server/fake_session.h"

#include <string.h>

_Atomic int fake_driver_libraries;

static CUresult
library_load(CUlibrary *library, const void *code, CUjit_option *options, void **values,
	     unsigned int count, CUlibraryOption *library_options, void **library_values,
	     unsigned int library_count)
{
	CUresult result = fake_driver_called("cuLibraryLoadData options %u", count);

	for (unsigned int i = 0; result != CUDA_SUCCESS && i < count; i++) {
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
			strcpy(values[i], "line 1: it makes no sense");
	}
	if (result != CUDA_SUCCESS)
		return result;
	*library = (CUlibrary)0x99;
	fake_driver_libraries++;
	return CUDA_SUCCESS;
}

static CUresult
library_unload(CUlibrary library)
{
	fake_driver_libraries--;
	return fake_driver_called("cuLibraryUnload");
}

static const char *const kernel_names[] = { "zebra", "ant" };

static CUresult
kernel_count(unsigned int *count, CUlibrary library)
{
	*count = 2;
	return CUDA_SUCCESS;
}

static CUresult
enumerate(CUkernel *kernels, unsigned int count, CUlibrary library)
{
	for (unsigned int i = 0; i < count; i++)
		kernels[i] = (CUkernel)&kernel_names[i];
	return CUDA_SUCCESS;
}

static CUresult
kernel_name(const char **name, CUkernel kernel)
{
	*name = *(const char *const *)kernel;
	return CUDA_SUCCESS;
}

static CUresult
kernel_function(CUfunction *function, CUkernel kernel)
{
	*function = (CUfunction)kernel;
	return fake_driver_called("cuKernelGetFunction");
}

/* "ant" has a pointer and an int as parameters, "zebra" has none. */
static CUresult
kernel_param(CUkernel kernel, size_t index, size_t *offset, size_t *size)
{
	if ((const char *const *)kernel != &kernel_names[1] || index > 1)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = index * 8;
	*size = index ? 4 : 8;
	return CUDA_SUCCESS;
}

static CUresult
function_attribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
	*value = 1000 + (int)attribute;
	return CUDA_SUCCESS;
}

static CUresult
library_global(CUdeviceptr *address, size_t *size, CUlibrary library, const char *name)
{
	if (strcmp(name, "table"))
		return CUDA_ERROR_NOT_FOUND;
	*address = 0x700000;
	*size = 256;
	return CUDA_SUCCESS;
}

static CUresult
launch(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
	size_t size = extra ? *(size_t *)extra[3] : 0;

	for (unsigned int i = 0; i < config->numAttrs; i++) {
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
			(void)fake_driver_called("launch priority %d",
						 config->attrs[i].value.priority);
	}
	return fake_driver_called(
		"cuLaunchKernelEx %s %ux%ux%u %ux%ux%u shared %u attributes %u params %zu",
		*(const char *const *)function, config->gridDimX, config->gridDimY,
		config->gridDimZ, config->blockDimX, config->blockDimY, config->blockDimZ,
		config->sharedMemBytes, config->numAttrs, size);
}

void
fake_driver_add_images(void)
{
	gpd_driver.cuLibraryLoadData = library_load;
	gpd_driver.cuLibraryUnload = library_unload;
	gpd_driver.cuLibraryGetKernelCount = kernel_count;
	gpd_driver.cuLibraryEnumerateKernels = enumerate;
	gpd_driver.cuLibraryGetGlobal = library_global;
	gpd_driver.cuKernelGetName = kernel_name;
	gpd_driver.cuKernelGetFunction = kernel_function;
	gpd_driver.cuKernelGetParamInfo = kernel_param;
	gpd_driver.cuFuncGetAttribute = function_attribute;
	gpd_driver.cuLaunchKernelEx = launch;
}
