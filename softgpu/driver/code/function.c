/* SPDX-License-Identifier: Apache-2.0 */
/* Queries on kernels and functions: attributes, parameters, occupancy. */
#include "softgpu/driver/code/binary.h"
#include "softgpu/driver/code/loading.h"
#include "softgpu/driver/soft_cuda.h"

static CUresult
enter_kernel(void)
{
	CUresult r = gs_enter_device();

	return r ? r : gs_failure();
}

/* Returns the instance of a library's kernel on the device, with a reference. */
static CUresult
kernel_get(CUkernel handle, int device, struct gs_kernel **kernel_p)
{
	CUresult r;

	*kernel_p = gs_object_get(handle, GS_KIND_KERNEL);
	if (!*kernel_p)
		return CUDA_ERROR_INVALID_HANDLE;
	r = gs_kernel_on(kernel_p, device);
	if (r)
		gs_kernel_put(*kernel_p);
	return r;
}

static CUresult
get_attribute(struct gs_kernel *kernel, CUfunction_attribute attribute, int *value)
{
	const struct gs_function_info *info = &kernel->info;

	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = (int)info->max_threads;
		break;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
		*value = (int)info->shared_bytes;
		break;
	case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
		*value = (int)info->const_bytes;
		break;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
		*value = (int)info->local_bytes;
		break;
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*value = (int)info->registers;
		break;
	/* CUB compares these with the version it was compiled for: the target, not the device. */
	case CU_FUNC_ATTRIBUTE_PTX_VERSION:
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
		*value = info->target;
		break;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*value = __atomic_load_n(&kernel->dynamic_shared_max, __ATOMIC_RELAXED);
		break;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		*value = __atomic_load_n(&kernel->carveout, __ATOMIC_RELAXED);
		break;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		*value = __atomic_load_n(&kernel->non_portable_cluster, __ATOMIC_RELAXED);
		break;
	default:
		if ((int)attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX)
			return CUDA_ERROR_INVALID_VALUE;
		*value = 0;
	}
	return CUDA_SUCCESS;
}

static CUresult
set_attribute(struct gs_kernel *kernel, CUfunction_attribute attribute, int value)
{
	int *field;

	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		if (value < 0 || value > GS_BLOCK_SHARED_OPTIN - (int)kernel->info.shared_bytes)
			return CUDA_ERROR_INVALID_VALUE;
		field = &kernel->dynamic_shared_max;
		break;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		if (value < -1 || value > 100)
			return CUDA_ERROR_INVALID_VALUE;
		field = &kernel->carveout;
		break;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		field = &kernel->non_portable_cluster;
		break;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		return value == 0 || value == 1 ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	__atomic_store_n(field, value, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction handle)
{
	struct gs_kernel *kernel;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	kernel = gs_kernel_get(handle);
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	r = get_attribute(kernel, attribute, value);
	gs_kernel_put(kernel);
	return r;
}

CUresult CUDAAPI
cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value)
{
	struct gs_kernel *kernel;
	CUresult r = gs_enter();

	if (r)
		return r;
	kernel = gs_kernel_get(handle);
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	r = set_attribute(kernel, attribute, value);
	gs_kernel_put(kernel);
	return r;
}

/* The device has no configurable split between cache and shared memory. */
CUresult CUDAAPI
cuFuncSetCacheConfig(CUfunction handle, CUfunc_cache config)
{
	struct gs_kernel *kernel;
	CUresult r = gs_enter();

	if (r)
		return r;
	if ((int)config < 0 || config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	kernel = gs_kernel_get(handle);
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	gs_kernel_put(kernel);
	return CUDA_SUCCESS;
}

/* All functions are loaded with their module. */
CUresult CUDAAPI
cuFuncLoad(CUfunction handle)
{
	return cuFuncSetCacheConfig(handle, CU_FUNC_CACHE_PREFER_NONE);
}

static CUresult
param_info(const void *handle, size_t i, size_t *offset, size_t *size)
{
	struct gs_kernel *kernel;
	CUresult r = CUDA_SUCCESS;

	if (!offset)
		return CUDA_ERROR_INVALID_VALUE;
	kernel = gs_kernel_get(handle);
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	if (i >= kernel->info.param_count) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else {
		*offset = kernel->info.params[i].offset;
		if (size)
			*size = kernel->info.params[i].size;
	}
	gs_kernel_put(kernel);
	return r;
}

static CUresult
get_name(const void *handle, const char **name)
{
	struct gs_kernel *kernel;

	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	kernel = gs_kernel_get(handle);
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	*name = kernel->info.name;
	gs_kernel_put(kernel);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuFuncGetParamInfo(CUfunction handle, size_t i, size_t *offset, size_t *size)
{
	CUresult r = gs_enter();

	return r ? r : param_info(handle, i, offset, size);
}

CUresult CUDAAPI
cuFuncGetName(const char **name, CUfunction handle)
{
	CUresult r = gs_enter();

	return r ? r : get_name(handle, name);
}

CUresult CUDAAPI
cuFuncGetModule(CUmodule *module, CUfunction handle)
{
	struct gs_kernel *kernel;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!module)
		return CUDA_ERROR_INVALID_VALUE;
	kernel = gs_kernel_get(handle);
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	*module = (CUmodule)&kernel->code->module;
	gs_kernel_put(kernel);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuKernelGetParamInfo(CUkernel handle, size_t i, size_t *offset, size_t *size)
{
	CUresult r = enter_kernel();

	return r ? r : param_info(handle, i, offset, size);
}

CUresult CUDAAPI
cuKernelGetName(const char **name, CUkernel handle)
{
	CUresult r = enter_kernel();

	return r ? r : get_name(handle, name);
}

CUresult CUDAAPI
cuKernelGetFunction(CUfunction *function, CUkernel handle)
{
	struct gs_kernel *kernel;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	r = kernel_get(handle, gs_device_current(), &kernel);
	if (r)
		return r;
	if (!__atomic_load_n(&kernel->loaded, __ATOMIC_ACQUIRE)) {
		gs_loading_wait();
		__atomic_store_n(&kernel->loaded, 1, __ATOMIC_RELEASE);
	}
	*function = (CUfunction)&kernel->function;
	gs_kernel_put(kernel);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuKernelGetLibrary(CUlibrary *library, CUkernel handle)
{
	struct gs_kernel *kernel;
	CUresult r = enter_kernel();

	if (r)
		return r;
	if (!library)
		return CUDA_ERROR_INVALID_VALUE;
	kernel = gs_object_get(handle, GS_KIND_KERNEL);
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	*library = (CUlibrary)kernel->code;
	gs_kernel_put(kernel);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel handle, CUdevice dev)
{
	struct gs_kernel *kernel;
	CUresult r = enter_kernel();

	if (!r)
		r = gs_check_device(dev);
	if (r)
		return r;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	r = kernel_get(handle, dev, &kernel);
	if (r)
		return r;
	r = get_attribute(kernel, attribute, value);
	gs_kernel_put(kernel);
	return r;
}

CUresult CUDAAPI
cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel handle, CUdevice dev)
{
	struct gs_kernel *kernel;
	CUresult r = enter_kernel();

	if (!r)
		r = gs_check_device(dev);
	if (r)
		return r;
	r = kernel_get(handle, dev, &kernel);
	if (r)
		return r;
	r = set_attribute(kernel, attribute, value);
	gs_kernel_put(kernel);
	return r;
}

CUresult CUDAAPI
gpSoftKernelUnsupported(CUkernel handle, const char **why_p)
{
	struct gs_kernel *kernel;
	CUresult r = enter_kernel();

	if (r)
		return r;
	if (!why_p)
		return CUDA_ERROR_INVALID_VALUE;
	kernel = gs_object_get(handle, GS_KIND_KERNEL);
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	*why_p = kernel->info.unsupported;
	gs_kernel_put(kernel);
	return CUDA_SUCCESS;
}
