/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links between GPUs.  They are told where all devices of the program reach one another and a
 * switch joins them: then every other device is behind each link.  A link from GPU to GPU may lead
 * to one that is not the program's, so it is not told.  By these NCCL finds that peers are near.
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

/* A link by its number, and what is asked of it; *up_p: whether it leads to the others. */
static int
link_find(void *handle, unsigned int link, const void *out, bool *up_p)
{
	struct gpn_device *device;
	uint64_t state = 0, type = 0;
	int r = gpn_find_device(handle, &device);

	if (r == GPN_SUCCESS && (!out || link >= GP_STATE_LINKS))
		r = GPN_INVALID_ARGUMENT;
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

/* Of what a link may be able to do, access to peers is known. */
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

/* The switch of the node has no place on this machine's buses: this one nothing has. */
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

	/* It ends before the subsystem. */
	if (r == GPN_SUCCESS)
		memcpy(pci, &all, offsetof(struct gpn_pci, subsystem));
	return r;
}
