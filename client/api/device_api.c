/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: devices. */
#include "client/context/context.h"
#include "client/context/device.h"
#include "gpc_calls.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* No driver has had attributes beyond this; asking for one is a mistake, not a newer question. */
#define ATTRIBUTE_LIMIT 1024

static CUresult
enter_device(CUdevice dev, const struct gpc_device **device_p)
{
	CUresult result = gpc_enter_local();

	if (result != CUDA_SUCCESS)
		return result;
	*device_p = gpc_device_get(dev);
	return *device_p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult
gpc_cuDeviceGetCount(int *count)
{
	CUresult result = gpc_enter_local();

	if (result != CUDA_SUCCESS)
		return result;
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = gpc_device_count();
	return CUDA_SUCCESS;
}

CUresult
gpc_cuDeviceGet(CUdevice *device, int ordinal)
{
	const struct gpc_device *found;
	CUresult result = enter_device(ordinal, &found);

	if (result != CUDA_SUCCESS)
		return result;
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuDeviceGetName(char *name, int len, CUdevice dev)
{
	const struct gpc_device *device;
	CUresult result = enter_device(dev, &device);

	if (result != CUDA_SUCCESS)
		return result;
	if (!name || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	(void)snprintf(name, (size_t)len, "%s", device->name);
	return CUDA_SUCCESS;
}

CUresult
gpc_cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
	const struct gpc_device *device;
	CUresult result = enter_device(dev, &device);

	if (result != CUDA_SUCCESS)
		return result;
	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	*uuid = device->uuid;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
	return gpc_cuDeviceGetUuid_v2(uuid, dev);
}

/* Of Windows only. */
CUresult
gpc_cuDeviceGetLuid(char *luid, unsigned int *deviceNodeMask, CUdevice dev)
{
	const struct gpc_device *device;
	CUresult result = enter_device(dev, &device);

	return result == CUDA_SUCCESS ? CUDA_ERROR_NOT_SUPPORTED : result;
}

CUresult
gpc_cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
	const struct gpc_device *device;
	CUresult result = enter_device(dev, &device);

	if (result != CUDA_SUCCESS)
		return result;
	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	*bytes = device->total_memory;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuDeviceGetAttribute(int *pi, CUdevice_attribute attrib, CUdevice dev)
{
	const struct gpc_device *device;
	CUresult result = enter_device(dev, &device);

	if (result != CUDA_SUCCESS)
		return result;
	if (!pi || (int)attrib <= 0 || (int)attrib >= ATTRIBUTE_LIMIT)
		return CUDA_ERROR_INVALID_VALUE;
	/* 0 for those that the daemon's driver does not know: the runtime of a newer toolkit gives
	 * up altogether when one of its questions fails. */
	*pi = gpc_device_attribute(device, attrib);
	return CUDA_SUCCESS;
}

CUresult
gpc_cuDeviceGetProperties(CUdevprop *prop, CUdevice dev)
{
	const struct gpc_device *device;
	CUresult result = enter_device(dev, &device);

	if (result != CUDA_SUCCESS)
		return result;
	if (!prop)
		return CUDA_ERROR_INVALID_VALUE;
#define ATTRIBUTE(name) gpc_device_attribute(device, CU_DEVICE_ATTRIBUTE_##name)
	*prop = (CUdevprop){
		.maxThreadsPerBlock = ATTRIBUTE(MAX_THREADS_PER_BLOCK),
		.maxThreadsDim = { ATTRIBUTE(MAX_BLOCK_DIM_X), ATTRIBUTE(MAX_BLOCK_DIM_Y),
				   ATTRIBUTE(MAX_BLOCK_DIM_Z) },
		.maxGridSize = { ATTRIBUTE(MAX_GRID_DIM_X), ATTRIBUTE(MAX_GRID_DIM_Y),
				 ATTRIBUTE(MAX_GRID_DIM_Z) },
		.sharedMemPerBlock = ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK),
		.totalConstantMemory = ATTRIBUTE(TOTAL_CONSTANT_MEMORY),
		.SIMDWidth = ATTRIBUTE(WARP_SIZE),
		.memPitch = ATTRIBUTE(MAX_PITCH),
		.regsPerBlock = ATTRIBUTE(MAX_REGISTERS_PER_BLOCK),
		.clockRate = ATTRIBUTE(CLOCK_RATE),
		.textureAlign = ATTRIBUTE(TEXTURE_ALIGNMENT),
	};
#undef ATTRIBUTE
	return CUDA_SUCCESS;
}

CUresult
gpc_cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	const struct gpc_device *device;
	CUresult result = enter_device(dev, &device);

	if (result != CUDA_SUCCESS)
		return result;
	if (!major || !minor)
		return CUDA_ERROR_INVALID_VALUE;
	*major = gpc_device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
	*minor = gpc_device_attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
	return CUDA_SUCCESS;
}

CUresult
gpc_cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
	const struct gpc_device *device;
	CUresult result = enter_device(dev, &device);

	if (result != CUDA_SUCCESS)
		return result;
	if (!pciBusId || len <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	(void)snprintf(pciBusId, (size_t)len, "%s", device->pci_bus_id);
	return CUDA_SUCCESS;
}

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
gpc_cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev)
{
	const struct gpc_device *device;
	CUresult result = enter_device(dev, &device);

	if (result != CUDA_SUCCESS)
		return result;
	if (!pi || (unsigned int)type >= CU_EXEC_AFFINITY_TYPE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	*pi = 0;
	return CUDA_SUCCESS;
}

static CUresult
enter_pair(CUdevice a, CUdevice b)
{
	const struct gpc_device *device;
	CUresult result = enter_device(a, &device);

	return result == CUDA_SUCCESS ? enter_device(b, &device) : result;
}

CUresult
gpc_cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
	CUresult result = enter_pair(dev, peerDev);

	if (result != CUDA_SUCCESS)
		return result;
	if (!canAccessPeer)
		return CUDA_ERROR_INVALID_VALUE;
	*canAccessPeer = 0;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
			    CUdevice dstDevice)
{
	CUresult result = enter_pair(srcDevice, dstDevice);

	if (result != CUDA_SUCCESS)
		return result;
	if (!value || (int)attrib < CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK ||
	    (int)attrib > CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED)
		return CUDA_ERROR_INVALID_VALUE;
	if (srcDevice == dstDevice)
		return CUDA_ERROR_INVALID_DEVICE;
	*value = 0;
	return CUDA_SUCCESS;
}
