/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: primary contexts. */
#include "client/context/context.h"
#include "client/context/device.h"
#include "client/context/object.h"
#include "gpc_calls.h"

CUresult
gpc_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	struct gpc_context *primary;
	CUresult result = gpc_enter_device(dev, &primary);

	if (result != CUDA_SUCCESS)
		return result;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;

	(void)pthread_mutex_lock(&primary->lock);
	primary->retained++;
	primary->destroyed = false;
	(void)pthread_mutex_unlock(&primary->lock);
	/* The context is activated on first use, by a call that can return the reason for a
	 * failure. */
	*pctx = primary->handle.token;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	struct gpc_device *device;
	CUresult result = gpc_device_enter(dev, &device);
	bool last;

	if (result != CUDA_SUCCESS)
		return result;
	(void)pthread_mutex_lock(&device->primary->lock);
	if (device->primary->retained == 0)
		result = CUDA_ERROR_INVALID_CONTEXT;
	else
		device->primary->retained--;
	last = result == CUDA_SUCCESS && device->primary->retained == 0;
	(void)pthread_mutex_unlock(&device->primary->lock);
	if (last)
		gpc_context_reset(device->primary);
	return result;
}

CUresult
gpc_cuDevicePrimaryCtxRelease(CUdevice dev)
{
	CUresult result = gpc_cuDevicePrimaryCtxRelease_v2(dev);

	return result == CUDA_ERROR_INVALID_CONTEXT ? CUDA_SUCCESS : result;
}

CUresult
gpc_cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	struct gpc_device *device;
	CUresult result = gpc_device_enter(dev, &device);

	/* A reset does not change the retain count. */
	if (result == CUDA_SUCCESS)
		gpc_context_reset(device->primary);
	return result;
}

CUresult
gpc_cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	struct gpc_device *device;
	CUresult result = gpc_device_enter(dev, &device);

	if (result != CUDA_SUCCESS)
		return result;
	if (flags & ~(unsigned int)CU_CTX_FLAGS_MASK)
		return CUDA_ERROR_INVALID_VALUE;
	__atomic_store_n(&device->primary->flags, flags | CU_CTX_MAP_HOST, __ATOMIC_RELAXED);
	return CUDA_SUCCESS;
}

static bool
primary_is_active(struct gpc_context *primary)
{
	bool active;

	(void)pthread_mutex_lock(&primary->lock);
	active = gpc_context_is_active(primary) || (primary->retained > 0 && !primary->destroyed);
	(void)pthread_mutex_unlock(&primary->lock);
	return active;
}

CUresult
gpc_cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
	struct gpc_device *device;
	CUresult result = gpc_device_enter(dev, &device);

	if (result == CUDA_SUCCESS && primary_is_active(device->primary))
		result = CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE;
	return result == CUDA_SUCCESS ? gpc_cuDevicePrimaryCtxSetFlags_v2(dev, flags) : result;
}

CUresult
gpc_cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	struct gpc_device *device;
	CUresult result = gpc_device_enter(dev, &device);

	if (result != CUDA_SUCCESS)
		return result;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = __atomic_load_n(&device->primary->flags, __ATOMIC_RELAXED);
	*active = primary_is_active(device->primary);
	return CUDA_SUCCESS;
}
