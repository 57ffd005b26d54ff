/* SPDX-License-Identifier: Apache-2.0 */
#include "client/module/function.h"

#include "client/base/log.h"
#include "client/context/device.h"
#include "client/context/object.h"
#include "client/module/module.h"
#include "gpc_calls.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

CUresult
gpc_function_lookup(struct gpc_context *context, CUfunction token, struct gpc_function **function_p)
{
	enum gpc_kind kind =
		gpc_handle_kind(token) == GPC_KIND_KERNEL ? GPC_KIND_KERNEL : GPC_KIND_FUNCTION;
	struct gpc_function *function = gpc_handle_from_token(kind, token);

	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	*function_p = function;
	return context ? gpc_function_get_twin(function, context, function_p) : CUDA_SUCCESS;
}

static CUresult
twin_find(struct gpc_function *function, struct gpc_session *session, struct gpc_function **twin_p)
{
	struct gpc_function **known = &function->twins[gpc_session_number(session)];
	struct gpc_image *image;
	int64_t index;

	*twin_p = __atomic_load_n(known, __ATOMIC_ACQUIRE);
	if (*twin_p)
		return CUDA_SUCCESS;
	/* cuModuleGetFunction: a function belongs to its context. */
	if (function->context)
		return CUDA_ERROR_INVALID_HANDLE;
	image = gpc_image_get_twin(function->image, session);
	index = image ? gpc_image_find_kernel(image, function->info->name) : -1;
	if (index < 0)
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	*twin_p = gpc_function_list_get(&image->kernels, (uint32_t)index);
	if (!*twin_p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	__atomic_store_n(known, *twin_p, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

CUresult
gpc_function_get_twin(struct gpc_function *function, const struct gpc_context *context,
		      struct gpc_function **twin_p)
{
	struct gpc_session *session = context->scope.session;

	*twin_p = function;
	if (__builtin_expect(function->image->device->session == session, 1))
		return CUDA_SUCCESS;
	return twin_find(function, session, twin_p);
}

CUresult
gpc_function_to_wire(struct gpc_context *context, CUfunction token, uint64_t *kernel_p)
{
	struct gpc_function *function;
	CUresult result = gpc_function_lookup(context, token, &function);

	if (result == CUDA_SUCCESS)
		*kernel_p = GP_KERNEL(function->image->handle.id, function->index);
	return result;
}

CUresult
gpc_function_enter(CUfunction token, struct gpc_function **function_p)
{
	CUresult result = gpc_enter_initialized();

	return result == CUDA_SUCCESS ? gpc_function_lookup(NULL, token, function_p) : result;
}

/* Returns the context for calls on a function: its own, the current one, or the primary context of
 * the image's device. */
static struct gpc_context *
function_get_context(const struct gpc_function *function)
{
	struct gpc_context *context;

	if (function->context)
		return function->context;
	return gpc_enter(&context) == CUDA_SUCCESS ? context : function->image->device->primary;
}

/* Kernel attributes are read without a lock: a program that sets one while another thread launches
 * has not defined an order between the two. */
static struct gp_kernel_info *
function_get_info(const struct gpc_function *function)
{
	return &function->image->info->kernels[function->index];
}

bool
gpc_function_get_attribute(const struct gpc_function *function, CUfunction_attribute attribute,
			   int *value_p)
{
	const struct gp_kernel_info *info = function_get_info(function);

	if ((unsigned int)attribute >= GP_KERNEL_ATTRIBUTES ||
	    !(__atomic_load_n(&info->attributes_known, __ATOMIC_ACQUIRE) >> attribute & 1))
		return false;
	*value_p = __atomic_load_n(&info->attributes[attribute], __ATOMIC_RELAXED);
	return true;
}

static void
function_report_unsupported(const struct gpc_function *function)
{
	const struct gpc_image *image = function->image;
	const struct gp_args_gpKernelUnsupported args = { .kernel = GP_KERNEL(image->handle.id,
									      function->index) };
	struct gp_reply_gpKernelUnsupported reply = { 0 };
	void *memory = NULL;
	CUresult result =
		gpc_wait_gpKernelUnsupported(image->device->primary, &args, &reply, &memory);

	if (result != CUDA_SUCCESS)
		reply.why = (struct gp_bytes){ 0 };
	gpc_log_warn("%s: the software device cannot run kernel %s, and launches of it fail: %.*s",
		     gpc_session_peer(image->device->session), function->info->name,
		     (int)reply.why.size, reply.why.size ? (const char *)reply.why.data : "");
	free(memory);
}

CUresult
gpc_function_check_supported(const struct gpc_function *function)
{
	struct gp_kernel_info *info = function_get_info(function);

	if (__builtin_expect(!(__atomic_load_n(&info->attributes_known, __ATOMIC_RELAXED) &
			       GP_KERNEL_UNSUPPORTED),
			     1))
		return CUDA_SUCCESS;
	if (!__atomic_exchange_n(&info->reported, true, __ATOMIC_RELAXED))
		function_report_unsupported(function);
	return CUDA_ERROR_NOT_SUPPORTED;
}

static void
attribute_store(const struct gpc_function *function, CUfunction_attribute attribute, int value)
{
	struct gp_kernel_info *info = function_get_info(function);

	if ((unsigned int)attribute >= GP_KERNEL_ATTRIBUTES)
		return;
	(void)pthread_mutex_lock(&function->image->lock);
	if (!(info->varies >> attribute & 1)) {
		__atomic_store_n(&info->attributes[attribute], value, __ATOMIC_RELAXED);
		(void)__atomic_fetch_or(&info->attributes_known, 1u << attribute, __ATOMIC_RELEASE);
	}
	(void)pthread_mutex_unlock(&function->image->lock);
}

static bool
attribute_varies(const struct gpc_function *function, CUfunction_attribute attribute)
{
	struct gp_kernel_info *info = function_get_info(function);
	bool is;

	(void)pthread_mutex_lock(&function->image->lock);
	is = (unsigned int)attribute >= GP_KERNEL_ATTRIBUTES || info->varies >> attribute & 1;
	(void)pthread_mutex_unlock(&function->image->lock);
	return is;
}

/* One of several devices has a value of its own, so from now on the attribute is queried for each
 * device. */
static void
attribute_set_varying(const struct gpc_function *function, CUfunction_attribute attribute)
{
	struct gp_kernel_info *info = function_get_info(function);

	if ((unsigned int)attribute >= GP_KERNEL_ATTRIBUTES)
		return;
	(void)pthread_mutex_lock(&function->image->lock);
	info->varies |= 1u << attribute;
	(void)__atomic_fetch_and(&info->attributes_known, ~(1u << attribute), __ATOMIC_RELEASE);
	(void)pthread_mutex_unlock(&function->image->lock);
}

/* Returns whether the known value applies to the context's device. Attributes that can be set have
 * a value per device; the known one is that of the image's device. */
static bool
attribute_is_of_device(const struct gpc_function *function, const struct gpc_context *context,
		       CUfunction_attribute attribute)
{
	return (int)attribute < CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
	       context->device == function->image->device;
}

/* Queries all attributes at once: a program that requests one usually requests others. */
static CUresult
attributes_query(const struct gpc_function *function, struct gpc_context *context)
{
	const struct gp_args_gpFunctionAttributes args = {
		.kernel = GP_KERNEL(function->image->handle.id, function->index)
	};
	struct gp_reply_gpFunctionAttributes reply;
	uint32_t values[GP_KERNEL_ATTRIBUTES];
	void *memory = NULL;
	CUresult result = gpc_wait_gpFunctionAttributes(context, &args, &reply, &memory);

	if (result == CUDA_SUCCESS && reply.values.size != sizeof(values))
		result = gpc_reply_fail_malformed(context);
	if (result == CUDA_SUCCESS)
		memcpy(values, reply.values.data, sizeof(values));
	free(memory);
	for (int i = 0; result == CUDA_SUCCESS && i < GP_KERNEL_ATTRIBUTES; i++) {
		if (reply.known >> i & 1)
			attribute_store(function, (CUfunction_attribute)i, (int)le32toh(values[i]));
	}
	return result;
}

static CUresult
attribute_get(struct gpc_function *function, struct gpc_context *context, int *value_p,
	      CUfunction_attribute attribute)
{
	struct gp_reply_cuFuncGetAttribute reply;
	struct gp_args_cuFuncGetAttribute args = { .attrib = (int32_t)attribute };
	CUresult result;
	bool known;

	if (!value_p || (unsigned int)attribute >= CU_FUNC_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpc_function_get_twin(function, context, &function);
	known = attribute_is_of_device(function, context, attribute);
	if (result != CUDA_SUCCESS ||
	    (known && gpc_function_get_attribute(function, attribute, value_p)))
		return result;
	if (context->device == function->image->device && !attribute_varies(function, attribute)) {
		result = attributes_query(function, context);
		/* An older daemon does not know the call. */
		if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_SUPPORTED)
			return result;
		if (gpc_function_get_attribute(function, attribute, value_p))
			return CUDA_SUCCESS;
	}
	args.hfunc = GP_KERNEL(function->image->handle.id, function->index);
	result = gpc_wait_cuFuncGetAttribute(context, &args, &reply);
	if (result != CUDA_SUCCESS)
		return result;
	*value_p = reply.pi;
	if (known)
		attribute_store(function, attribute, reply.pi);
	return CUDA_SUCCESS;
}

static bool
shared_size_fits(const struct gpc_function *function, int value)
{
	int fixed,
		most = gpc_device_attribute(function->image->device,
					    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);

	return value >= 0 &&
	       gpc_function_get_attribute(function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &fixed) &&
	       value <= most - fixed;
}

/* Returns whether every driver accepts the value. If that is not known here, the daemon is
 * queried. */
static bool
attribute_is_allowed(const struct gpc_function *function, CUfunction_attribute attribute, int value)
{
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		return shared_size_fits(function, value);
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return value >= -1 && value <= 100;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		return value == 0 || value == 1;
	default:
		return false;
	}
}

/* Posted if possible. If other sessions use the code with other settings, the daemon loads it once
 * more, which may fail for lack of memory. A later call then reports that, as a launch does in
 * NVIDIA's driver with lazy loading. */
static CUresult
attribute_send(const struct gpc_function *function, struct gpc_context *context,
	       CUfunction_attribute attribute, int value)
{
	const uint64_t kernel = GP_KERNEL(function->image->handle.id, function->index);
	const struct gp_args_gpFunctionAttribute post = { kernel, (int32_t)attribute, value };
	const struct gp_args_cuFuncSetAttribute args = { kernel, (int32_t)attribute, value };
	CUresult result = CUDA_ERROR_NOT_SUPPORTED;

	if (attribute_is_allowed(function, attribute, value))
		result = gpc_post_gpFunctionAttribute(context, &post);
	/* An older daemon does not know the call. */
	return result == CUDA_ERROR_NOT_SUPPORTED ? gpc_wait_cuFuncSetAttribute(context, &args)
						  : result;
}

/* Saves the value before the first change, which is the value in another load of the image. */
static void
setting_save_original(const struct gpc_function *function, CUfunction_attribute attribute)
{
	struct gpc_image *image = function->image;
	struct gpc_image_setting *setting;

	(void)pthread_mutex_lock(&image->lock);
	LL_FOREACH(image->settings, setting)
	{
		if (setting->kernel == function->index && setting->attribute == attribute)
			break;
	}
	if (!setting && (unsigned int)attribute < GP_KERNEL_ATTRIBUTES) {
		setting = calloc(1, sizeof(*setting));
		if (setting) {
			setting->kernel = function->index;
			setting->attribute = attribute;
			setting->known =
				gpc_function_get_attribute(function, attribute, &setting->value);
			LL_PREPEND(image->settings, setting);
		} else {
			image->plain = false;
		}
	}
	(void)pthread_mutex_unlock(&image->lock);
}

static CUresult
attribute_set(struct gpc_function *function, struct gpc_context *context,
	      CUfunction_attribute attribute, int value)
{
	CUresult result = gpc_function_get_twin(function, context, &function);
	bool known_here;
	int now;

	if (result != CUDA_SUCCESS)
		return result;
	known_here = context->device == function->image->device;
	if (known_here && (int)attribute >= CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
	    gpc_function_get_attribute(function, attribute, &now) && now == value)
		return CUDA_SUCCESS;
	setting_save_original(function, attribute);
	result = attribute_send(function, context, attribute, value);
	if (result == CUDA_SUCCESS && known_here)
		attribute_store(function, attribute, value);
	else if (result == CUDA_SUCCESS)
		attribute_set_varying(function, attribute);
	return result;
}

CUresult
gpc_cuFuncGetAttribute(int *pi, CUfunction_attribute attrib, CUfunction hfunc)
{
	struct gpc_function *function;
	CUresult result = gpc_function_enter(hfunc, &function);

	return result == CUDA_SUCCESS
		       ? attribute_get(function, function_get_context(function), pi, attrib)
		       : result;
}

CUresult
gpc_cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib, int value)
{
	struct gpc_function *function;
	CUresult result = gpc_function_enter(hfunc, &function);

	return result == CUDA_SUCCESS
		       ? attribute_set(function, function_get_context(function), attrib, value)
		       : result;
}

static CUresult
param_get_info(const struct gp_kernel_info *info, size_t index, size_t *offset_p, size_t *size_p)
{
	if (!offset_p || index >= info->param_count)
		return CUDA_ERROR_INVALID_VALUE;
	*offset_p = info->params[index].offset;
	if (size_p)
		*size_p = info->params[index].size;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuFuncGetParamInfo(CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	struct gpc_function *function;
	CUresult result = gpc_function_enter(func, &function);

	return result == CUDA_SUCCESS
		       ? param_get_info(function->info, paramIndex, paramOffset, paramSize)
		       : result;
}

CUresult
gpc_cuFuncGetModule(CUmodule *hmod, CUfunction hfunc)
{
	struct gpc_function *function;
	struct gpc_module *module;
	CUresult result = gpc_function_enter(hfunc, &function);

	if (result != CUDA_SUCCESS)
		return result;
	if (!hmod)
		return CUDA_ERROR_INVALID_VALUE;
	if (!function->image->owner)
		return gpc_module_from_function(function, hmod);
	result = gpc_library_get_module(function->image, function_get_context(function), &module);
	if (result == CUDA_SUCCESS)
		*hmod = module->handle.token;
	return result;
}

CUresult
gpc_cuKernelGetFunction(CUfunction *pFunc, CUkernel token)
{
	struct gpc_function *kernel, *function;
	struct gpc_context *context;
	struct gpc_module *module;
	CUresult result = gpc_enter(&context);

	if (result == CUDA_SUCCESS)
		result = gpc_enter_kind(GPC_KIND_KERNEL, token, &kernel);
	if (result == CUDA_SUCCESS && !pFunc)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = gpc_function_get_twin(kernel, context, &kernel);
	if (result == CUDA_SUCCESS)
		result = gpc_library_get_module(kernel->image, context, &module);
	if (result != CUDA_SUCCESS)
		return result;
	function = gpc_function_list_get(&module->functions, kernel->index);
	if (!function)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*pFunc = function->handle.token;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuKernelGetParamInfo(CUkernel token, size_t paramIndex, size_t *paramOffset, size_t *paramSize)
{
	struct gpc_function *kernel;
	CUresult result = gpc_enter_kind(GPC_KIND_KERNEL, token, &kernel);

	return result == CUDA_SUCCESS
		       ? param_get_info(kernel->info, paramIndex, paramOffset, paramSize)
		       : result;
}

/* Returns the context through which a kernel is queried on a device. */
static CUresult
kernel_enter_on_device(CUkernel token, CUdevice dev, struct gpc_function **kernel_p,
		       struct gpc_context **context_p)
{
	struct gpc_device *device = gpc_device_get(dev);
	CUresult result = gpc_enter_kind(GPC_KIND_KERNEL, token, kernel_p);

	if (result != CUDA_SUCCESS)
		return result;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	*context_p = device->primary;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuKernelGetAttribute(int *pi, CUfunction_attribute attrib, CUkernel token, CUdevice dev)
{
	struct gpc_function *kernel;
	struct gpc_context *context;
	CUresult result = kernel_enter_on_device(token, dev, &kernel, &context);

	return result == CUDA_SUCCESS ? attribute_get(kernel, context, pi, attrib) : result;
}

CUresult
gpc_cuKernelSetAttribute(CUfunction_attribute attrib, int val, CUkernel token, CUdevice dev)
{
	struct gpc_function *kernel;
	struct gpc_context *context;
	CUresult result = kernel_enter_on_device(token, dev, &kernel, &context);

	return result == CUDA_SUCCESS ? attribute_set(kernel, context, attrib, val) : result;
}

static CUresult
cache_config_set(struct gpc_function *function, struct gpc_context *context, CUfunc_cache config)
{
	struct gp_args_cuFuncSetCacheConfig args = { .config = (int32_t)config };
	CUresult result = gpc_function_get_twin(function, context, &function);

	if (result != CUDA_SUCCESS)
		return result;
	if ((unsigned int)config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	args.hfunc = GP_KERNEL(function->image->handle.id, function->index);
	result = gpc_post_cuFuncSetCacheConfig(context, &args);
	atomic_fetch_add(&function->image->cache_changes, 1);
	return result;
}

CUresult
gpc_cuFuncSetCacheConfig(CUfunction hfunc, CUfunc_cache config)
{
	struct gpc_function *function;
	CUresult result = gpc_function_enter(hfunc, &function);

	return result == CUDA_SUCCESS
		       ? cache_config_set(function, function_get_context(function), config)
		       : result;
}

CUresult
gpc_cuKernelSetCacheConfig(CUkernel token, CUfunc_cache config, CUdevice dev)
{
	struct gpc_function *kernel;
	struct gpc_context *context;
	CUresult result = kernel_enter_on_device(token, dev, &kernel, &context);

	return result == CUDA_SUCCESS ? cache_config_set(kernel, context, config) : result;
}
