/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: devices. */
#include "client/base/query_cache.h"
#include "client/context/context.h"
#include "client/context/device.h"
#include "client/memory/peer_access.h"
#include "gpc_calls.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* [domain:]bus:device[.function], hexadecimal. */
static bool
parse_bus_id(const char *text, unsigned int *domain, unsigned int *bus, unsigned int *device)
{
	unsigned int function = 0;
	int end = 0;

	if (sscanf(text, "%x:%x:%x%n", domain, bus, device, &end) != 3) {
		*domain = 0;
		end = 0;
		if (sscanf(text, "%x:%x%n", bus, device, &end) != 2)
			return false;
	}
	text += end;
	if (*text == '.') {
		end = 0;
		if (sscanf(text, ".%x%n", &function, &end) != 1)
			return false;
		text += end;
	}
	return *text == '\0' && function == 0;
}

CUresult
gpc_cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
	unsigned int domain, bus, number;
	CUresult result = gpc_enter_local();

	if (result != CUDA_SUCCESS)
		return result;
	if (!dev || !pciBusId || !parse_bus_id(pciBusId, &domain, &bus, &number))
		return CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < gpc_device_count(); i++) {
		const struct gpc_device *device = gpc_device_get(i);

		if (device->pci_domain == (int)domain && device->pci_bus == (int)bus &&
		    device->pci_device == (int)number) {
			*dev = i;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

CUresult
gpc_cuDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements, CUarray_format format,
				       unsigned numChannels, CUdevice dev)
{
	static struct gpc_query_cache cache = GPC_QUERY_CACHE(64);
	struct gp_args_cuDeviceGetTexture1DLinearMaxWidth args = { .format = (int32_t)format,
								   .numChannels = numChannels };
	struct gp_reply_cuDeviceGetTexture1DLinearMaxWidth reply;
	struct {
		struct gpc_device *device;
		CUarray_format format;
		unsigned int channels;
	} query = { NULL, format, numChannels };
	CUresult result = gpc_device_enter(dev, &query.device);

	if (result != CUDA_SUCCESS)
		return result;
	if (!maxWidthInElements)
		return CUDA_ERROR_INVALID_VALUE;
	if (!gpc_query_cache_find(&cache, &query, sizeof(query), &reply, sizeof(reply))) {
		args.dev = query.device->remote;
		result = gpc_wait_cuDeviceGetTexture1DLinearMaxWidth(query.device->primary, &args,
								     &reply);
		if (result != CUDA_SUCCESS)
			return result;
		gpc_query_cache_put(&cache, &query, sizeof(query), &reply, sizeof(reply));
	}
	*maxWidthInElements = reply.maxWidthInElements;
	return CUDA_SUCCESS;
}

/* No kind of affinity is supported. */
CUresult
gpc_cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev)
{
	struct gpc_device *device;
	CUresult result = gpc_device_enter(dev, &device);

	if (result == CUDA_SUCCESS && !pi)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		*pi = 0;
	return result;
}

static CUresult
device_enter_pair(CUdevice ordinal, CUdevice other, struct gpc_device *devices[2])
{
	CUresult result = gpc_device_enter(ordinal, &devices[0]);

	return result == CUDA_SUCCESS ? gpc_device_enter(other, &devices[1]) : result;
}

CUresult
gpc_cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
	struct gpc_device *devices[2];
	CUresult result = device_enter_pair(dev, peerDev, devices);

	if (result == CUDA_SUCCESS && !canAccessPeer)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		*canAccessPeer = gpc_peer_access_is_possible(devices[0], devices[1]);
	return result;
}

CUresult
gpc_cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
			    CUdevice dstDevice)
{
	struct gpc_device *devices[2];
	CUresult result = device_enter_pair(srcDevice, dstDevice, devices);

	if (result != CUDA_SUCCESS)
		return result;
	if (srcDevice == dstDevice && value)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!value || (int)attrib < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
	    (int)attrib > CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED)
		return CUDA_ERROR_INVALID_VALUE;
	*value = gpc_peer_access_get_attribute(devices[0], devices[1], attrib);
	return CUDA_SUCCESS;
}
