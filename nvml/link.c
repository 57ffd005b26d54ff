/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVLink between GPUs. Links are reported only if all devices of the program have peer access to
 * one another and are connected by a switch: then each link leads to every other device. A direct
 * link between GPUs is not reported, as it may lead to a device that the program cannot use. NCCL
 * uses this information to detect nearby peers.
 */
#include "nvml/link.h"

#include "nvml/answer.h"
#include "nvml/pool.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool
peers_have_access(const struct gpn_device *device)
{
	for (int i = 0; i < gpn_get_device_count(); i++) {
		if (i != device->index && !gpn_has_peer_access(device->index, i))
			return false;
	}
	return gpn_get_device_count() > 1;
}

/* Checks a link number and the output pointer; *up_p: whether the link leads to the other
 * devices. */
static int
link_find(void *handle, unsigned int link, const void *out, bool *up_p)
{
	struct gpn_device *device;
	uint64_t state = 0, type = 0;
	int r = gpn_find_device(handle, out && link < GP_STATE_LINKS, &device);

	if (r == GPN_SUCCESS && !peers_have_access(device))
		r = GPN_NOT_SUPPORTED;
	if (r == GPN_SUCCESS)
		r = gpn_get_value(device, GP_STATE_LINK + (int)link, &state);
	if (r == GPN_SUCCESS)
		r = gpn_get_value(device, GP_STATE_LINK_TYPE + (int)link, &type);
	*up_p = r == GPN_SUCCESS && state == GPN_LINK_UP && type == GPN_LINK_TO_SWITCH;
	return r;
}

GPN_FUNCTION(nvmlDeviceGetNvLinkState, void *handle, unsigned int link, unsigned int *state)
{
	bool up;
	int r = link_find(handle, link, state, &up);

	if (r == GPN_SUCCESS)
		*state = up ? GPN_LINK_UP : GPN_LINK_DOWN;
	return r;
}

/* Of a link's capabilities only peer access is known. */
GPN_FUNCTION(nvmlDeviceGetNvLinkCapability, void *handle, unsigned int link,
	     unsigned int capability, unsigned int *can)
{
	bool up;
	int r = link_find(handle, link, can, &up);

	if (r == GPN_SUCCESS && capability != GPN_LINK_PEERS)
		r = GPN_NOT_SUPPORTED;
	if (r == GPN_SUCCESS)
		*can = up;
	return r;
}

GPN_FUNCTION(nvmlDeviceGetNvLinkRemoteDeviceType, void *handle, unsigned int link,
	     unsigned int *type)
{
	bool up;
	int r = link_find(handle, link, type, &up);

	if (r == GPN_SUCCESS && !up)
		r = GPN_NOT_SUPPORTED;
	if (r == GPN_SUCCESS)
		*type = GPN_LINK_TO_SWITCH;
	return r;
}

/* The server's switch has no PCI address on this machine, so one is returned that no device has. */
GPN_FUNCTION(nvmlDeviceGetNvLinkRemotePciInfo_v2, void *handle, unsigned int link,
	     struct gpn_pci *pci)
{
	bool up;
	int r = link_find(handle, link, pci, &up);

	if (r == GPN_SUCCESS && !up)
		r = GPN_NOT_SUPPORTED;
	if (r != GPN_SUCCESS)
		return r;
	*pci = (struct gpn_pci){ .domain = 0xffff, .bus = 0xff, .device = 0x1f };
	(void)snprintf(pci->bus_id, sizeof(pci->bus_id), "0000FFFF:FF:1F.0");
	(void)snprintf(pci->short_bus_id, sizeof(pci->short_bus_id), "FFFF:FF:1F.0");
	return GPN_SUCCESS;
}

GPN_FUNCTION(nvmlDeviceGetNvLinkRemotePciInfo, void *handle, unsigned int link, struct gpn_pci *pci)
{
	struct gpn_pci all;
	int r = gpn_nvmlDeviceGetNvLinkRemotePciInfo_v2(handle, link, pci ? &all : NULL);

	/* The v1 struct ends before the subsystem ID. */
	if (r == GPN_SUCCESS)
		memcpy(pci, &all, offsetof(struct gpn_pci, subsystem));
	return r;
}
