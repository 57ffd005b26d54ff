/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer access: access of a device to a session's memory on another device. Memory that a session
 * maps is its own, so access is set for its mappings only. Memory placed by the driver (variables
 * and arrays) becomes accessible to whole contexts, which all sessions share anyway.
 */
#include "gpd_calls.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/session.h"

static CUresult
peer_access_enable(int device, int peer)
{
	CUresult result = gpd_device_enter(peer);

	if (result == CUDA_SUCCESS)
		result = gpd_device_enter(device);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuCtxEnablePeerAccess(gpd_device_get(peer)->primary, 0);
	return result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED ? CUDA_SUCCESS : result;
}

CUresult
gpd_gpPeerAccess(struct gpd_session *session, const struct gp_args_gpPeerAccess *args)
{
	CUresult result;

	if (!gpd_account_may_use(&session->account, args->device) ||
	    !gpd_account_may_use(&session->account, args->peer))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!gpd_device_has_peer(args->device, args->peer))
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	result = peer_access_enable(args->device, args->peer);
	return result == CUDA_SUCCESS
		       ? gpd_memory_enable_peer_access(session, args->device, args->peer)
		       : result;
}
