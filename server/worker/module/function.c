/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries and settings of kernels. For a kernel that sessions share (library.h), each session has
 * its own maximum of dynamic shared memory; any other setting first gives the image a library of
 * its own.
 */
#include "gpd_calls.h"
#include "protocol/image_info.h"
#include "server/worker/device/driver.h"
#include "server/worker/module/image.h"
#include "server/worker/module/image_load.h"
#include "server/worker/module/library.h"
#include "server/worker/session/session.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

static CUfunction
device_kernel_get_function(const struct gpd_device_kernel *device_kernel)
{
	return atomic_load(&device_kernel->function->driver);
}

static bool
is_shared(const struct gpd_device_kernel *device_kernel)
{
	return device_kernel->image->library->shared;
}

/* A driver need not be able to reject other numbers. */
static bool
is_attribute(int attribute)
{
	return attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX;
}

static CUresult
device_kernel_get_attribute(const struct gpd_device_kernel *device_kernel, int attribute,
			    int *value_p)
{
	if (is_shared(device_kernel) &&
	    attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
		*value_p = gpd_image_get_dynamic(device_kernel);
		return CUDA_SUCCESS;
	}
	return gpd_driver.cuFuncGetAttribute(value_p, (CUfunction_attribute)attribute,
					     device_kernel_get_function(device_kernel));
}

CUresult
gpd_cuFuncGetAttribute(struct gpd_session *session, const struct gp_args_cuFuncGetAttribute *args,
		       struct gp_reply_cuFuncGetAttribute *reply)
{
	struct gpd_device_kernel device_kernel;
	CUresult result = gpd_image_kernel_in_context(session, args->hfunc, &device_kernel);
	int value = 0;

	if (result != CUDA_SUCCESS)
		return result;
	if (!is_attribute(args->attrib))
		return CUDA_ERROR_INVALID_VALUE;
	result = device_kernel_get_attribute(&device_kernel, args->attrib, &value);
	reply->pi = value;
	return result;
}

CUresult
gpd_gpFunctionAttributes(struct gpd_session *session,
			 const struct gp_args_gpFunctionAttributes *args,
			 struct gp_reply_gpFunctionAttributes *reply)
{
	struct gpd_device_kernel device_kernel;
	CUresult result = gpd_image_kernel_in_context(session, args->kernel, &device_kernel);
	uint32_t *values;

	if (result != CUDA_SUCCESS)
		return result;
	values = calloc(GP_KERNEL_ATTRIBUTES, sizeof(values[0]));
	if (!values)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (int i = 0; i < GP_KERNEL_ATTRIBUTES; i++) {
		int value;

		if (device_kernel_get_attribute(&device_kernel, i, &value) != CUDA_SUCCESS)
			continue;
		values[i] = htole32((uint32_t)value);
		reply->known |= 1u << i;
	}
	reply->values = (struct gp_bytes){ values, GP_KERNEL_ATTRIBUTES * sizeof(values[0]) };
	return CUDA_SUCCESS;
}

CUresult
gpd_gpKernelUnsupported(struct gpd_session *session, const struct gp_args_gpKernelUnsupported *args,
			struct gp_reply_gpKernelUnsupported *reply)
{
	struct gpd_device_kernel device_kernel;
	CUresult result = gpd_image_kernel_in_context(session, args->kernel, &device_kernel);
	const char *why;

	if (result != CUDA_SUCCESS)
		return result;
	why = gpd_image_unsupported(device_kernel.kernel);
	if (!why)
		return CUDA_SUCCESS;
	return gpd_bytes_copy((struct gp_bytes){ why, strlen(why) }, &reply->why)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Read-only properties of the kernel; the driver itself rejects setting them. */
static bool
is_fact(int attribute)
{
	return attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
}

static bool
attribute_is_set(const struct gpd_device_kernel *device_kernel, int attribute, int value)
{
	int now;

	return gpd_driver.cuFuncGetAttribute(&now, (CUfunction_attribute)attribute,
					     device_kernel_get_function(device_kernel)) ==
		       CUDA_SUCCESS &&
	       now == value;
}

static CUresult
set_attribute(struct gpd_session *session, uint64_t kernel, int attribute, int value)
{
	struct gpd_device_kernel device_kernel;
	CUresult result = gpd_image_kernel_in_context(session, kernel, &device_kernel);

	if (result != CUDA_SUCCESS)
		return result;
	if (!is_attribute(attribute))
		return CUDA_ERROR_INVALID_VALUE;
	if (is_shared(&device_kernel) && !is_fact(attribute)) {
		if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
			return gpd_image_set_dynamic(&device_kernel, value);
		if (attribute_is_set(&device_kernel, attribute, value))
			return CUDA_SUCCESS;
		result = gpd_image_make_own(session, &device_kernel);
	}
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuFuncSetAttribute(device_kernel_get_function(&device_kernel),
						       (CUfunction_attribute)attribute, value);
	return result;
}

CUresult
gpd_cuFuncSetAttribute(struct gpd_session *session, const struct gp_args_cuFuncSetAttribute *args)
{
	return set_attribute(session, args->hfunc, args->attrib, args->value);
}

CUresult
gpd_gpFunctionAttribute(struct gpd_session *session, const struct gp_args_gpFunctionAttribute *args)
{
	return set_attribute(session, args->kernel, args->attribute, args->value);
}

CUresult
gpd_cuFuncSetCacheConfig(struct gpd_session *session,
			 const struct gp_args_cuFuncSetCacheConfig *args)
{
	struct gpd_device_kernel device_kernel;
	CUresult result = gpd_image_kernel_in_context(session, args->hfunc, &device_kernel);

	/* A shared kernel never has another setting. */
	if (result == CUDA_SUCCESS && is_shared(&device_kernel) &&
	    args->config == CU_FUNC_CACHE_PREFER_NONE)
		return CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		result = gpd_image_make_own(session, &device_kernel);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuFuncSetCacheConfig(device_kernel_get_function(&device_kernel),
							 (CUfunc_cache)args->config);
	return result;
}
