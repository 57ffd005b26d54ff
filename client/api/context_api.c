/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: contexts. */
#include "client/context/context.h"
#include "client/context/device.h"
#include "client/memory/memory.h"
#include "client/stream/sync.h"
#include "gpc_calls.h"
#include "protocol/control.h"

#define FIRST_API_VERSION 3010

static bool
flags_are_valid(unsigned int flags)
{
	unsigned int scheduling = flags & CU_CTX_SCHED_MASK;

	return !(flags & ~(unsigned int)CU_CTX_FLAGS_MASK) && (scheduling & (scheduling - 1)) == 0;
}

static CUresult
context_create(CUcontext *pctx, unsigned int flags, CUdevice dev, unsigned int api_version)
{
	struct gpc_device *device = gpc_device_get(dev);
	CUresult result = gpc_enter_initialized();
	struct gpc_context *context;

	if (result != CUDA_SUCCESS)
		return result;
	if (!pctx || !flags_are_valid(flags))
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	context = gpc_context_create(device, flags, false);
	if (!context)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context->retained = 1;
	context->api_version = api_version;
	result = gpc_context_activate(context);
	if (result == CUDA_SUCCESS)
		result = gpc_context_push(context);
	if (result != CUDA_SUCCESS) {
		gpc_context_reset(context);
		gpc_handle_remove(&context->handle);
		return result;
	}
	*pctx = context->handle.token;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return context_create(pctx, flags, dev, FIRST_API_VERSION);
}

CUresult
gpc_cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return context_create(pctx, flags, dev, GPC_API_VERSION);
}

CUresult
gpc_cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
		   unsigned int flags, CUdevice dev)
{
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS)
		return result;
	if (numParams < 0 || (numParams > 0 && !paramsArray))
		return CUDA_ERROR_INVALID_VALUE;
	/* No affinity is supported, as cuDeviceGetExecAffinitySupport() reports. */
	if (numParams > 0)
		return gpc_device_get(dev) ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY
					   : CUDA_ERROR_INVALID_DEVICE;
	return gpc_cuCtxCreate_v2(pctx, flags, dev);
}

CUresult
gpc_cuCtxCreate_v4(CUcontext *pctx, CUctxCreateParams *ctxCreateParams, unsigned int flags,
		   CUdevice dev)
{
	if (!ctxCreateParams)
		return gpc_cuCtxCreate_v2(pctx, flags, dev);
	if (ctxCreateParams->cigParams)
		return CUDA_ERROR_NOT_SUPPORTED;
	return gpc_cuCtxCreate_v3(pctx, ctxCreateParams->execAffinityParams,
				  ctxCreateParams->numExecAffinityParams, flags, dev);
}

/* Starts a call whose context must not be NULL; `null` is the error that NULL returns. */
static CUresult
context_enter_named(CUcontext ctx, struct gpc_context **context_p, CUresult null)
{
	CUresult result = gpc_enter_local();

	if (result == CUDA_SUCCESS && !ctx)
		result = null;
	return result == CUDA_SUCCESS ? gpc_context_lookup(ctx, context_p) : result;
}

static void
context_destroy(struct gpc_context *context)
{
	if (gpc_context_get_current() == context)
		(void)gpc_context_pop();
	gpc_context_reset(context);
	gpc_handle_remove(&context->handle);
}

CUresult
gpc_cuCtxDestroy_v2(CUcontext ctx)
{
	struct gpc_context *context;
	CUresult result = context_enter_named(ctx, &context, CUDA_ERROR_INVALID_VALUE);

	if (result != CUDA_SUCCESS)
		return result;
	/* Primary contexts are released or reset, green contexts destroyed by a function of their
	 * own. */
	if (context->primary || context->parent)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!gpc_handle_claim(GPC_KIND_CONTEXT, ctx))
		return CUDA_ERROR_INVALID_CONTEXT;
	context_destroy(context);
	return CUDA_SUCCESS;
}

CUresult
gpc_cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
	struct gpc_context *context;
	CUresult result = gpc_context_enter_current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!pctx || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!context->primary && !context->parent)
		(void)__atomic_add_fetch(&context->retained, 1, __ATOMIC_RELAXED);
	*pctx = context->handle.token;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuCtxDetach(CUcontext ctx)
{
	struct gpc_context *context;
	CUresult result = context_enter_named(ctx, &context, CUDA_ERROR_INVALID_VALUE);

	if (result != CUDA_SUCCESS)
		return result;
	if (context != gpc_context_get_current())
		return CUDA_ERROR_INVALID_CONTEXT;
	/* Primary and green contexts are not destroyed by a detach. */
	if (context->primary || context->parent)
		return CUDA_SUCCESS;
	if (__atomic_sub_fetch(&context->retained, 1, __ATOMIC_RELAXED) == 0 &&
	    gpc_handle_claim(GPC_KIND_CONTEXT, ctx))
		context_destroy(context);
	return CUDA_SUCCESS;
}

CUresult
gpc_cuCtxPushCurrent_v2(CUcontext ctx)
{
	struct gpc_context *context;
	CUresult result = context_enter_named(ctx, &context, CUDA_ERROR_INVALID_CONTEXT);

	return result == CUDA_SUCCESS ? gpc_context_push(context) : result;
}

CUresult
gpc_cuCtxPopCurrent_v2(CUcontext *pctx)
{
	CUresult result = gpc_enter_local();
	struct gpc_context *context;

	if (result != CUDA_SUCCESS)
		return result;
	context = gpc_context_pop();
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (pctx)
		*pctx = context->handle.token;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuCtxSetCurrent(CUcontext ctx)
{
	struct gpc_context *context = NULL;
	CUresult result = ctx ? gpc_context_enter(ctx, &context) : gpc_enter_local();

	return result == CUDA_SUCCESS ? gpc_context_set_current(context) : result;
}

CUresult
gpc_cuCtxGetCurrent(CUcontext *pctx)
{
	CUresult result = gpc_enter_local();
	struct gpc_context *context = gpc_context_get_current();

	if (result != CUDA_SUCCESS)
		return result;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	*pctx = context ? context->handle.token : NULL;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuCtxSetFlags(unsigned int flags)
{
	struct gpc_context *context;
	CUresult result = gpc_context_enter_current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!flags_are_valid(flags))
		return CUDA_ERROR_INVALID_VALUE;
	context->flags = flags;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuCtxSynchronize(void)
{
	struct gpc_context *context;
	CUresult result = gpc_enter(&context);

	return result == CUDA_SUCCESS ? gpc_sync_context(gpc_context_get_current()) : result;
}

CUresult
gpc_cuCtxSynchronize_v2(CUcontext ctx)
{
	CUresult result = gpc_enter_initialized();
	struct gpc_context *context;

	if (result == CUDA_SUCCESS)
		result = gpc_context_lookup(ctx, &context);
	if (result == CUDA_SUCCESS)
		result = gpc_context_activate(context);
	return result == CUDA_SUCCESS ? gpc_sync_context(context) : result;
}

/* For a limit that its driver does not know, the daemon sends GP_LIMIT_UNSUPPORTED. */
static CUresult
limit_check(const struct gpc_context *context, CUlimit limit)
{
	if ((unsigned int)limit >= CU_LIMIT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if ((int)limit >= context->device->limit_count ||
	    context->device->limits[limit] == GP_LIMIT_UNSUPPORTED)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	return CUDA_SUCCESS;
}

/* Maximum granularity in bytes that cuCtxSetLimit() accepts. */
#define L2_GRANULARITY_MAX 128

/* The daemon's limits are common to all sessions and only grow. So a value is already in effect if
 * it is at most the device's limit at the start of the session or the value that this context set
 * last. The L2 fetch granularity is a hint that daemons ignore: any value up to a cache line is
 * accepted. */
static bool
limit_is_satisfied(const struct gpc_context *context, CUlimit limit, size_t value)
{
	const struct gpc_device *device = context->device;
	uint64_t set = __atomic_load_n(&context->limits[limit], __ATOMIC_RELAXED);

	if (limit == CU_LIMIT_MAX_L2_FETCH_GRANULARITY)
		return value <= L2_GRANULARITY_MAX;
	return value <= set || ((int)limit < device->limit_count && value <= device->limits[limit]);
}

/* The L2 cache is shared by all sessions of the device, so no part of it is set aside for one of
 * them. */
static CUresult
persisting_l2_set(struct gpc_context *context, size_t value)
{
	const size_t most = (size_t)gpc_device_attribute(
		context->device, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE);

	if (most == 0)
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	__atomic_store_n(&context->limits[CU_LIMIT_PERSISTING_L2_CACHE_SIZE],
			 value < most ? value : most, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

CUresult
gpc_cuCtxSetLimit(CUlimit limit, size_t value)
{
	struct gp_args_gpContextSetLimit args = { .limit = (int32_t)limit, .value = value };
	struct gpc_context *context;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	result = limit_check(context, limit);
	if (result != CUDA_SUCCESS)
		return result;
	if (limit == CU_LIMIT_SHMEM_SIZE || limit == CU_LIMIT_CIG_ENABLED)
		return CUDA_ERROR_NOT_PERMITTED; /* fixed when the context is created */
	if (limit == CU_LIMIT_PERSISTING_L2_CACHE_SIZE)
		return persisting_l2_set(context, value);
	/* NVIDIA's driver synchronizes here too, as it remaps the stacks. */
	if (limit == CU_LIMIT_STACK_SIZE)
		gpc_sync_implicitly(context);
	args.context = context->handle.id;
	if (!limit_is_satisfied(context, limit, value))
		result = gpc_wait_gpContextSetLimit(context, &args);
	/* Memory cached by this client may be all that is missing. */
	if (result == CUDA_ERROR_OUT_OF_MEMORY && gpc_memory_reclaim(context) == CUDA_SUCCESS)
		result = gpc_wait_gpContextSetLimit(context, &args);
	if (result == CUDA_SUCCESS)
		__atomic_store_n(&context->limits[limit], value, __ATOMIC_RELAXED);
	return result;
}

CUresult
gpc_cuCtxGetLimit(size_t *pvalue, CUlimit limit)
{
	struct gpc_context *context;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!pvalue)
		return CUDA_ERROR_INVALID_VALUE;
	result = limit_check(context, limit);
	if (result != CUDA_SUCCESS)
		return result;
	*pvalue = __atomic_load_n(&context->limits[limit], __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

CUresult
gpc_cuCtxGetExecAffinity(CUexecAffinityParam *pExecAffinity, CUexecAffinityType type)
{
	struct gpc_context *context;
	CUresult result = gpc_context_enter_current(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!pExecAffinity)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	pExecAffinity->type = type;
	pExecAffinity->param.smCount.val = (unsigned int)gpc_device_attribute(
		context->device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	return CUDA_SUCCESS;
}
