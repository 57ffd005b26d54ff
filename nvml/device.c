/* SPDX-License-Identifier: Apache-2.0 */
/* Device enumeration, identification and topology. */
#include "nvml/answer.h"
#include "nvml/pool.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* "1:2:3.0": domain, bus, device and function. The domain and the function are optional. */
#define PCI_FIELDS 3

static int
device_check_found(struct gpn_device *found, struct gpn_device **device_p)
{
	*device_p = found;
	return found ? GPN_SUCCESS : GPN_NOT_FOUND;
}

GPN_FUNCTION(nvmlDeviceGetCount_v2, unsigned int *count)
{
	int r = gpn_check_arguments(count);

	if (r == GPN_SUCCESS)
		*count = (unsigned int)gpn_get_device_count();
	return r;
}

GPN_ALIAS(nvmlDeviceGetCount, nvmlDeviceGetCount_v2, unsigned int *count);

GPN_FUNCTION(nvmlDeviceGetHandleByIndex_v2, unsigned int index, struct gpn_device **device)
{
	int r = gpn_check_arguments(device && index < (unsigned int)gpn_get_device_count());

	if (r == GPN_SUCCESS)
		*device = gpn_get_device((int)index);
	return r;
}

GPN_ALIAS(nvmlDeviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2, unsigned int index,
	  struct gpn_device **device);

GPN_FUNCTION(nvmlDeviceGetHandleByUUID, const char *uuid, struct gpn_device **device)
{
	struct gpn_device *found = NULL;
	int r = gpn_check_arguments(uuid && device);

	if (r != GPN_SUCCESS)
		return r;
	for (int i = 0; i < gpn_get_device_count() && !found; i++)
		found = strcasecmp(uuid, gpn_get_device(i)->uuid) == 0 ? gpn_get_device(i) : NULL;
	return device_check_found(found, device);
}

GPN_FUNCTION(nvmlDeviceGetHandleByUUIDV, const struct gpn_uuid *uuid, struct gpn_device **device)
{
	struct gpn_device *found = NULL;
	int r = gpn_check_arguments(uuid && device);

	if (r != GPN_SUCCESS)
		return r;
	if (uuid->version != GPN_VERSION(struct gpn_uuid, 1))
		return GPN_ARGUMENT_VERSION_MISMATCH;
	if (uuid->type == GPN_UUID_TEXT)
		return strnlen(uuid->value.text, GPN_UUID_TEXT_SIZE) < GPN_UUID_TEXT_SIZE
			       ? gpn_nvmlDeviceGetHandleByUUID(uuid->value.text, device)
			       : GPN_INVALID_ARGUMENT;
	if (uuid->type != GPN_UUID_BYTES)
		return GPN_INVALID_ARGUMENT;
	for (int i = 0; i < gpn_get_device_count() && !found; i++)
		found = memcmp(uuid->value.bytes, gpn_get_device(i)->facts.uuid.bytes, 16) == 0
				? gpn_get_device(i)
				: NULL;
	return device_check_found(found, device);
}

GPN_FUNCTION(nvmlDeviceGetHandleBySerial, const char *serial, struct gpn_device **device)
{
	struct gpn_device *found = NULL;
	char text[GP_STATE_TEXT_MAX];
	int r = gpn_check_arguments(serial && device);

	if (r != GPN_SUCCESS)
		return r;
	for (int i = 0; i < gpn_get_device_count() && !found; i++) {
		if (gpn_get_text(gpn_get_device(i), GP_STATE_SERIAL, text, sizeof(text)) ==
			    GPN_SUCCESS &&
		    strcmp(serial, text) == 0)
			found = gpn_get_device(i);
	}
	return device_check_found(found, device);
}

GPN_FUNCTION(nvmlDeviceGetHandleByPciBusId_v2, const char *bus_id, struct gpn_device **device)
{
	unsigned int domain = 0, bus, place;
	struct gpn_device *found = NULL;
	int r = gpn_check_arguments(bus_id && device);

	if (r != GPN_SUCCESS)
		return r;
	if (sscanf(bus_id, "%x:%x:%x", &domain, &bus, &place) != PCI_FIELDS) {
		domain = 0;
		if (sscanf(bus_id, "%x:%x", &bus, &place) != PCI_FIELDS - 1)
			return GPN_INVALID_ARGUMENT;
	}
	for (int i = 0; i < gpn_get_device_count() && !found; i++) {
		const struct gpc_nvml_device *facts = &gpn_get_device(i)->facts;

		if (facts->pci_domain == (int)domain && facts->pci_bus == (int)bus &&
		    facts->pci_device == (int)place)
			found = gpn_get_device(i);
	}
	return device_check_found(found, device);
}

GPN_ALIAS(nvmlDeviceGetHandleByPciBusId, nvmlDeviceGetHandleByPciBusId_v2, const char *bus_id,
	  struct gpn_device **device);

GPN_FUNCTION(nvmlDeviceGetName, void *handle, char *name, unsigned int size)
{
	struct gpn_device *device;
	int r = gpn_find_device(handle, name, &device);

	return r == GPN_SUCCESS ? gpn_copy_text(device->facts.name, name, size) : r;
}

GPN_FUNCTION(nvmlDeviceGetUUID, void *handle, char *uuid, unsigned int size)
{
	struct gpn_device *device;
	int r = gpn_find_device(handle, uuid, &device);

	return r == GPN_SUCCESS ? gpn_copy_text(device->uuid, uuid, size) : r;
}

GPN_FUNCTION(nvmlDeviceGetIndex, void *handle, unsigned int *index)
{
	struct gpn_device *device;
	int r = gpn_find_device(handle, index, &device);

	if (r == GPN_SUCCESS)
		*index = (unsigned int)device->index;
	return r;
}

GPN_FUNCTION(nvmlDeviceGetCudaComputeCapability, void *handle, int *major, int *minor)
{
	struct gpn_device *device;
	int r = gpn_find_device(handle, major && minor, &device);

	if (r != GPN_SUCCESS)
		return r;
	*major = device->facts.major;
	*minor = device->facts.minor;
	return GPN_SUCCESS;
}

/* The PCI address is also known to CUDA; the device and subsystem IDs come from the server. */
GPN_FUNCTION(nvmlDeviceGetPciInfo_v3, void *handle, struct gpn_pci *pci)
{
	struct gpn_device *device;
	uint64_t id = 0, subsystem = 0;
	int r = gpn_find_device(handle, pci, &device);

	if (r != GPN_SUCCESS)
		return r;
	(void)gpn_get_value(device, GP_STATE_PCI_ID, &id);
	(void)gpn_get_value(device, GP_STATE_PCI_SUBSYSTEM, &subsystem);
	*pci = (struct gpn_pci){
		.domain = (unsigned int)device->facts.pci_domain,
		.bus = (unsigned int)device->facts.pci_bus,
		.device = (unsigned int)device->facts.pci_device,
		.id = id == GP_STATE_NONE ? 0 : (unsigned int)id,
		.subsystem = subsystem == GP_STATE_NONE ? 0 : (unsigned int)subsystem,
	};
	(void)snprintf(pci->bus_id, sizeof(pci->bus_id), "%08X:%02X:%02X.0", pci->domain,
		       pci->bus & 0xff, pci->device & 0xff);
	(void)snprintf(pci->short_bus_id, sizeof(pci->short_bus_id), "%04X:%02X:%02X.0",
		       pci->domain & 0xffff, pci->bus & 0xff, pci->device & 0xff);
	return GPN_SUCCESS;
}

GPN_FUNCTION(nvmlDeviceGetPciInfo_v2, void *handle, struct gpn_pci *pci)
{
	struct gpn_pci all;
	int r = gpn_nvmlDeviceGetPciInfo_v3(handle, pci ? &all : NULL);

	/* The v2 struct ends before the long bus ID. */
	if (r == GPN_SUCCESS)
		memcpy(pci, &all, offsetof(struct gpn_pci, bus_id));
	return r;
}

GPN_FUNCTION(nvmlDeviceGetPciInfo, void *handle, struct gpn_pci *pci)
{
	struct gpn_pci all;
	int r = gpn_nvmlDeviceGetPciInfo_v3(handle, pci ? &all : NULL);

	/* The v1 struct ends before the subsystem ID as well. */
	if (r == GPN_SUCCESS)
		memcpy(pci, &all, offsetof(struct gpn_pci, subsystem));
	return r;
}

GPN_FUNCTION(nvmlDeviceGetPciInfoExt, void *handle, struct gpn_pci_ext *pci)
{
	struct gpn_pci all;
	int r = gpn_nvmlDeviceGetPciInfo_v3(handle, pci ? &all : NULL);

	if (r != GPN_SUCCESS)
		return r;
	if (pci->version != GPN_VERSION(struct gpn_pci_ext, 1))
		return GPN_ARGUMENT_VERSION_MISMATCH;
	pci->domain = all.domain;
	pci->bus = all.bus;
	pci->device = all.device;
	pci->id = all.id;
	pci->subsystem = all.subsystem;
	pci->base_class = 3; /* display controller, */
	pci->sub_class = 2;  /* 3D controller: the class of compute cards */
	memcpy(pci->bus_id, all.bus_id, sizeof(pci->bus_id));
	return GPN_SUCCESS;
}

/* Finds two devices, and checks the output pointer. */
static int
devices_find_pair(void *one, void *other, const void *out, struct gpn_device *devices[2])
{
	int r = gpn_find_device(one, out, &devices[0]);

	return r == GPN_SUCCESS ? gpn_find_device(other, true, &devices[1]) : r;
}

GPN_FUNCTION(nvmlDeviceGetP2PStatus, void *one, void *other, int capability, int *status)
{
	struct gpn_device *devices[2];
	int r = devices_find_pair(one, other, status, devices);

	if (r != GPN_SUCCESS)
		return r;
	if (capability < 0 || capability >= GPN_PEER_CAPABILITIES)
		return GPN_INVALID_ARGUMENT;
	*status = devices[0] == devices[1] ||
				  gpn_has_peer_access(devices[0]->index, devices[1]->index)
			  ? GPN_PEER_OK
			  : GPN_PEER_NOT_SUPPORTED;
	return GPN_SUCCESS;
}

/* Regardless of the server's topology, the program reaches both devices over the network. */
GPN_FUNCTION(nvmlDeviceGetTopologyCommonAncestor, void *one, void *other, int *level)
{
	struct gpn_device *devices[2];
	int r = devices_find_pair(one, other, level, devices);

	if (r == GPN_SUCCESS)
		*level = devices[0] == devices[1] ? GPN_TOPOLOGY_INTERNAL : GPN_TOPOLOGY_SYSTEM;
	return r;
}

GPN_FUNCTION(nvmlDeviceOnSameBoard, void *one, void *other, int *same)
{
	struct gpn_device *devices[2];
	int r = devices_find_pair(one, other, same, devices);

	if (r == GPN_SUCCESS)
		*same = devices[0] == devices[1];
	return r;
}
