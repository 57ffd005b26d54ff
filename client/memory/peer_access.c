/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory/peer_access.h"

#include "client/context/context.h"
#include "gpc_calls.h"
#include "protocol/control.h"

/* Maximum number of devices of a daemon; devices with a higher ordinal have no peers. */
#define NUMBERS 32

static bool
device_shares_daemon(const struct gpc_device *device, const struct gpc_device *other)
{
	return device != other && device->session == other->session && other->remote >= 0 &&
	       other->remote < NUMBERS;
}

bool
gpc_peer_access_is_possible(const struct gpc_device *device, const struct gpc_device *other)
{
	return device_shares_daemon(device, other) && (device->peers >> other->remote & 1) &&
	       gpc_facts_have_call(gpc_session_facts(device->session), GP_CALL_gpPeerAccess);
}

int
gpc_peer_access_get_attribute(const struct gpc_device *device, const struct gpc_device *other,
			      CUdevice_P2PAttribute attribute)
{
	int index = other->remote * GP_LINK_ATTRIBUTES + (int)attribute - 1;

	return gpc_peer_access_is_possible(device, other) && (int)attribute >= 1 &&
			       (int)attribute <= GP_LINK_ATTRIBUTES && index < device->link_count
		       ? device->links[index]
		       : 0;
}

CUresult
gpc_peer_access_enable(struct gpc_device *device, const struct gpc_device *other)
{
	const struct gp_args_gpPeerAccess args = { .device = device->remote,
						   .peer = other->remote };
	uint32_t bit = UINT32_C(1) << other->remote;
	CUresult result;

	if (atomic_load(&device->peers_enabled) & bit)
		return CUDA_SUCCESS;
	result = gpc_wait_gpPeerAccess(device->primary, &args);
	if (result == CUDA_SUCCESS)
		(void)atomic_fetch_or(&device->peers_enabled, bit);
	return result;
}
