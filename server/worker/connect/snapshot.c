/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/connect/snapshot.h"

#include "gp_calls.h"
#include "protocol/control.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/memory/allowance.h"
#include "server/worker/memory/physical_memory.h"
#include "server/worker/session/handle.h"

#include <stdio.h>
#include <stdlib.h>

#define ATTRIBUTES CU_DEVICE_ATTRIBUTE_MAX
#define BITMAP_SIZE(bits) (((bits) + 7) / 8)
/* The newest CUDA version that the client supports. */
#define VERSION_MAX 13000
#define EXEC_AFFINITY_TYPES 1

/* All memory that a device's message points to. */
struct device_memory {
	Gpupool__Device device;
	char name[256];
	CUuuid uuid;
	char bus_id[32];
	int32_t attributes[ATTRIBUTES];
	uint8_t known[BITMAP_SIZE(ATTRIBUTES)];
	uint64_t limits[CU_LIMIT_MAX];
	uint8_t exec_affinity[BITMAP_SIZE(EXEC_AFFINITY_TYPES)];
	uint8_t peers[BITMAP_SIZE(GPD_DEVICES_MAX)];
	int32_t links[GPD_DEVICES_MAX * GP_LINK_ATTRIBUTES];
};

static void
fill_attributes(struct device_memory *memory, int ordinal)
{
	const CUdevice device = gpd_device_get(ordinal)->device;

	for (int i = 1; i < ATTRIBUTES; i++) {
		int value = 0;

		if (gpd_driver.cuDeviceGetAttribute(&value, (CUdevice_attribute)i, device) !=
		    CUDA_SUCCESS)
			continue;
		memory->attributes[i] = gpd_is_absent_attribute(i) ? 0 : value;
		memory->known[i / 8] |= (uint8_t)(1u << i % 8);
	}
	memory->attributes[CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID] = -1;
	memory->attributes[CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] =
		gpd_physical_has_host(ordinal);
}

/* Link attributes that the driver does not know are 0. */
static void
fill_peers(struct device_memory *memory, int ordinal)
{
	Gpupool__Device *device = &memory->device;

	if (gpd_devices.count < 2)
		return;
	for (int i = 0; i < gpd_devices.count; i++) {
		if (gpd_device_has_peer(ordinal, i))
			memory->peers[i / 8] |= (uint8_t)(1u << i % 8);
		for (int j = 0;
		     j < GP_LINK_ATTRIBUTES && i != ordinal && !gpd_devices.all[i].absent; j++) {
			int value = 0;

			(void)gpd_driver.cuDeviceGetP2PAttribute(
				&value, (CUdevice_P2PAttribute)(j + 1),
				gpd_device_get(ordinal)->device, gpd_device_get(i)->device);
			memory->links[i * GP_LINK_ATTRIBUTES + j] = value;
		}
	}
	device->peer_access = (ProtobufCBinaryData){ sizeof(memory->peers), memory->peers };
	device->n_p2p_attributes = (size_t)gpd_devices.count * GP_LINK_ATTRIBUTES;
	device->p2p_attributes = memory->links;
}

static void
fill_device(struct device_memory *memory, int ordinal)
{
	struct gpd_device *from = gpd_device_get(ordinal);
	Gpupool__Device *device = &memory->device;
	size_t minimum = 0, recommended = 0, free_memory = 0, total = 0;
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = from->device },
	};

	gpupool__device__init(device);
	device->ordinal = ordinal;
	device->name = memory->name;
	device->pci_bus_id = memory->bus_id;
	if (from->device < 0)
		return;
	(void)gpd_driver.cuDeviceGetName(memory->name, sizeof(memory->name), from->device);
	(void)gpd_driver.cuDeviceGetUuid_v2(&memory->uuid, from->device);
	(void)gpd_driver.cuDeviceGetPCIBusId(memory->bus_id, sizeof(memory->bus_id), from->device);
	fill_attributes(memory, ordinal);
	for (int i = 0; i < CU_LIMIT_MAX; i++)
		memory->limits[i] = from->default_limits[i];
	(void)gpd_driver.cuMemGetAllocationGranularity(&minimum, &prop,
						       CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	(void)gpd_driver.cuMemGetAllocationGranularity(&recommended, &prop,
						       CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
	(void)gpd_device_get_memory(ordinal, &free_memory, &total);

	device->uuid = (ProtobufCBinaryData){ sizeof(memory->uuid), (uint8_t *)&memory->uuid };
	device->total_memory = from->memory;
	device->n_attributes = ATTRIBUTES;
	device->attributes = memory->attributes;
	device->pci_domain = memory->attributes[CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID];
	device->pci_bus = memory->attributes[CU_DEVICE_ATTRIBUTE_PCI_BUS_ID];
	device->pci_device = memory->attributes[CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID];
	device->priority_least = from->priority_least;
	device->priority_greatest = from->priority_greatest;
	/* The flags that the driver reports for an unused primary context. */
	device->default_flags = CU_CTX_MAP_HOST;
	device->n_limits = CU_LIMIT_MAX;
	device->limits = memory->limits;
	device->granularity_minimum = minimum;
	device->granularity_recommended = recommended;
	device->attributes_known = (ProtobufCBinaryData){ sizeof(memory->known), memory->known };
	device->memory_free = free_memory;
	if (!from->absent)
		fill_peers(memory, ordinal);
	device->exec_affinity =
		(ProtobufCBinaryData){ sizeof(memory->exec_affinity), memory->exec_affinity };
}

static bool
welcome_pack(struct device_memory *devices, uint16_t rdma_port, void **data_p, size_t *size_p)
{
	Gpupool__Device *list[GPD_DEVICES_MAX];
	Gpupool__Welcome welcome = GPUPOOL__WELCOME__INIT;
	Gpupool__Limits limits = GPUPOOL__LIMITS__INIT;
	uint8_t calls[GP_CALL_BITMAP_SIZE];
	int version = 0;

	for (int i = 0; i < gpd_devices.count; i++)
		list[i] = &devices[i].device;
	gp_call_bitmap(calls);
	(void)gpd_driver.cuDriverGetVersion(&version);
	if (version > VERSION_MAX)
		version = VERSION_MAX;
	welcome.call_bitmap = (ProtobufCBinaryData){ sizeof(calls), calls };
	welcome.n_devices = (size_t)gpd_devices.count;
	welcome.devices = list;
	welcome.driver_name = gpd_driver.path;
	welcome.driver_version = (uint32_t)version;
	welcome.software = gpd_driver.software;
	limits.max_message = GP_CONN_MESSAGE_MAX;
	limits.max_bulk = GP_CONN_BULK_MAX;
	limits.max_image = (uint64_t)2 << 30;
	limits.max_outstanding = UINT32_MAX;
	limits.heap_size = GPD_HEAP_SIZE;
	limits.heap_granularity = gpd_devices.granularity;
	limits.max_handles = GPD_HANDLE_INDEX_MAX;
	welcome.limits = &limits;
	welcome.rdma_port = rdma_port;

	*size_p = gpupool__welcome__get_packed_size(&welcome);
	*data_p = malloc(*size_p);
	if (!*data_p)
		return false;
	gpupool__welcome__pack(&welcome, *data_p);
	return true;
}

bool
gpd_snapshot_pack(uint16_t rdma_port, void **data_p, size_t *size_p, char *error, size_t error_size)
{
	struct device_memory *devices = calloc((size_t)gpd_devices.count, sizeof(*devices));
	bool is_packed = false;

	if (devices) {
		for (int i = 0; i < gpd_devices.count; i++)
			fill_device(&devices[i], i);
		is_packed = welcome_pack(devices, rdma_port, data_p, size_p);
	}
	if (!is_packed)
		snprintf(error, error_size, "no memory");
	free(devices);
	return is_packed;
}
