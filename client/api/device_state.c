/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/device_state.h"

#include "client/context/device.h"
#include "client/memory/peer_access.h"
#include "client/session/session.h"
#include "gpc_calls.h"

#include <stdio.h>
#include <stdlib.h>

CUresult
gpc_any_device_describe(int index, struct gpc_nvml_device *out)
{
	const struct gpc_device *device = gpc_any_device_get(index);

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	(void)snprintf(out->name, sizeof(out->name), "%s", device->name);
	out->uuid = device->uuid;
	out->pci_domain = device->pci_domain;
	out->pci_bus = device->pci_bus;
	out->pci_device = device->pci_device;
	out->major = gpc_device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	out->minor = gpc_device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
	out->daemon = gpc_session_number(device->session);
	return CUDA_SUCCESS;
}

bool
gpc_any_device_has_peer_access(int index, int other)
{
	const struct gpc_device *device = gpc_any_device_get(index);
	const struct gpc_device *peer = gpc_any_device_get(other);

	return device && peer && gpc_peer_access_is_possible(device, peer);
}

/* Without a context, since a program that only monitors has none. Deferred errors are left to CUDA
 * calls; NVML does not report them. */
CUresult
gpc_any_device_get_state(int index, unsigned int parts, struct gp_device_state *state)
{
	const struct gpc_device *device = gpc_any_device_get(index);
	struct gp_args_gpDeviceState args = { .what = parts };
	struct gp_reply_gpDeviceState reply = { 0 };
	struct gpc_request request = { 0 };
	struct gpc_context no_context = { 0 };
	CUresult result;
	struct gp_dec dec;

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	args.device = device->remote;
	no_context.scope.session = device->session;
	result = gpc_start_gpDeviceState(&no_context, &args, &request);
	if (result == CUDA_SUCCESS)
		result = gpc_request_wait_own(&request);
	if (result == CUDA_SUCCESS) {
		gp_dec_init(&dec, request.reply, request.reply_size);
		gp_call_find(GP_CALL_gpDeviceState)->decode_reply(&dec, &reply);
		if (!gp_dec_done(&dec) ||
		    !gp_device_state_decode(state, reply.words, reply.texts, reply.processes))
			result = CUDA_ERROR_UNKNOWN;
	}
	free(request.reply);
	return result;
}
