/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA driver API: notifications and checkpoints of a process. A notification would report memory
 * over a budget that the operating system sets. The quota of a tenant is enforced by refusing
 * allocations, so no notification is ever sent, and registering one only creates a handle.
 */
#include "client/context/context.h"
#include "gpc_calls.h"

#include <unistd.h>

struct notification {
	struct gpc_handle handle;
	const struct gpc_device *device;
};

CUresult
gpc_cuDeviceRegisterAsyncNotification(CUdevice device, CUasyncCallback callbackFunc, void *userData,
				      CUasyncCallbackHandle *callback)
{
	struct notification *notification;
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS)
		return result;
	if (!gpc_device_get(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!callbackFunc || !callback)
		return CUDA_ERROR_INVALID_VALUE;
	notification = gpc_handle_new(GPC_KIND_NOTIFICATION, sizeof(*notification));
	if (!notification)
		return CUDA_ERROR_OUT_OF_MEMORY;
	notification->device = gpc_device_get(device);
	*callback = notification->handle.token;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuDeviceUnregisterAsyncNotification(CUdevice device, CUasyncCallbackHandle callback)
{
	struct notification *notification;
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS)
		return result;
	if (!gpc_device_get(device))
		return CUDA_ERROR_INVALID_DEVICE;
	notification = gpc_handle_from_token(GPC_KIND_NOTIFICATION, callback);
	if (!notification || notification->device != gpc_device_get(device) ||
	    !gpc_handle_claim(GPC_KIND_NOTIFICATION, callback))
		return CUDA_ERROR_INVALID_VALUE;
	gpc_handle_remove(&notification->handle);
	return CUDA_SUCCESS;
}

/* A process is never locked: cuCheckpointProcessLock() is not supported. Works before cuInit(). */
CUresult
gpc_cuCheckpointProcessGetState(int pid, CUprocessState *state)
{
	if (!state || pid <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (pid != getpid())
		return CUDA_ERROR_NOT_SUPPORTED;
	*state = CU_PROCESS_STATE_RUNNING;
	return CUDA_SUCCESS;
}
