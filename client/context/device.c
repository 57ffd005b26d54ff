/* SPDX-License-Identifier: Apache-2.0 */
#include "client/context/device.h"

#include "client/base/config.h"
#include "client/base/log.h"
#include "client/connect/connect.h"
#include "client/wire/session.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a PCI domain, how many bits are a machine's own. */
#define DOMAIN_SHIFT 12

static struct gpc_device *devices;
static int device_count;

int
gpc_device_count(void)
{
	return device_count;
}

struct gpc_device *
gpc_device_get(CUdevice ordinal)
{
	return ordinal >= 0 && ordinal < device_count ? &devices[ordinal] : NULL;
}

/*
 * What the GPU can do but this library does not carry to it: programs ask before they use it.
 * 0 means "no" for each of them.
 */
static const CUdevice_attribute not_remoted[] = {
	CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY,
	CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY,
	CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
	CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
	CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
	CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1,
	CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1,
	CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1,
	CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH,
	CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES,
	CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
	CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
	CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS,
	CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES,
	CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
	CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR,
	CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK,
	CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH,
	CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HOST_NUMA_MULTINODE_IPC_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED,
	CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED,
};

int
gpc_device_attribute(const struct gpc_device *device, CUdevice_attribute attribute)
{
	return (int)attribute >= 0 && (int)attribute < device->attribute_count
		       ? device->attributes[attribute]
		       : 0;
}

static bool
knows(const struct gpc_session *session, int call)
{
	return session && !(gpc_session_facts(session)->unknown_calls[call / 8] >> call % 8 & 1);
}

static int
copy_attributes(struct gpc_device *device, const Gpupool__Device *source)
{
	/* As long as we know of any, so that every place below exists. */
	size_t count = source->n_attributes > CU_DEVICE_ATTRIBUTE_MAX ? source->n_attributes
								      : CU_DEVICE_ATTRIBUTE_MAX;
	int32_t *attributes = calloc(count, sizeof(*attributes));

	if (!attributes)
		return -ENOMEM;
	for (size_t i = 0; i < source->n_attributes; i++)
		attributes[i] = source->attributes[i];
	for (size_t i = 0; i < sizeof(not_remoted) / sizeof(not_remoted[0]); i++)
		attributes[not_remoted[i]] = 0;
	/* The pools are this library's own, whatever the device has; the rest is the daemon's. */
	attributes[CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] = 1;
	attributes[CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] =
		knows(device->session, GP_CALL_gpMemoryCreate);
	/* The runtime checks that both ways of asking agree. */
	attributes[CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID] = device->pci_domain;
	attributes[CU_DEVICE_ATTRIBUTE_PCI_BUS_ID] = source->pci_bus;
	attributes[CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID] = source->pci_device;
	device->attributes = attributes;
	device->attribute_count = (int)count;
	return 0;
}

static int
copy_limits(struct gpc_device *device, const Gpupool__Device *source)
{
	uint64_t *limits = calloc(source->n_limits + 1, sizeof(*limits));

	if (!limits)
		return -ENOMEM;
	for (size_t i = 0; i < source->n_limits; i++)
		limits[i] = source->limits[i];
	device->limits = limits;
	device->limit_count = (int)source->n_limits;
	return 0;
}

static int
init_device(struct gpc_device *device, int ordinal, const struct gpc_device_source *from)
{
	const Gpupool__Device *source = from->device;

	device->ordinal = ordinal;
	device->remote = source->ordinal;
	device->session = from->session;
	device->name = strdup(source->name);
	memcpy(device->uuid.bytes, source->uuid.data, sizeof(device->uuid.bytes));
	/* Devices of several machines may have the same place on their buses, and programs tell
	 * devices apart by it. */
	device->pci_domain =
		(int)(((uint32_t)source->pci_domain + ((uint32_t)from->daemon << DOMAIN_SHIFT)) &
		      0xffff);
	device->pci_bus = source->pci_bus;
	device->pci_device = source->pci_device;
	(void)snprintf(device->pci_bus_id, sizeof(device->pci_bus_id), "%04X:%02X:%02X.0",
		       (unsigned int)device->pci_domain, (unsigned int)source->pci_bus & 0xff,
		       (unsigned int)source->pci_device & 0xff);
	device->total_memory = source->total_memory;
	device->priority_least = source->priority_least;
	device->priority_greatest = source->priority_greatest;
	if (!device->name || copy_attributes(device, source) != 0 ||
	    copy_limits(device, source) != 0)
		return -ENOMEM;
	device->primary =
		gpc_context_create(device, source->default_flags & CU_CTX_FLAGS_MASK, true);
	return device->primary ? 0 : -ENOMEM;
}

int
gpc_devices_create(const struct gpc_device_source *sources, int source_count)
{
	CUuuid *uuids = calloc((size_t)source_count + 1, sizeof(*uuids));
	int *indices = calloc((size_t)source_count + 1, sizeof(*indices));
	int count = 0, r = uuids && indices ? 0 : -ENOMEM;

	for (int i = 0; r == 0 && i < source_count; i++)
		memcpy(uuids[i].bytes, sources[i].device->uuid.data, sizeof(uuids[i].bytes));
	if (r == 0) {
		count = gpc_config_visible_devices(getenv("CUDA_VISIBLE_DEVICES"), uuids,
						   source_count, indices);
		devices = calloc((size_t)count + 1, sizeof(*devices));
		r = devices ? 0 : -ENOMEM;
	}
	for (device_count = 0; r == 0 && device_count < count; device_count++) {
		struct gpc_device *device = &devices[device_count];

		r = init_device(device, device_count, &sources[indices[device_count]]);
		if (r == 0)
			gpc_log(GPC_LOG_INFO, "device %d: %s, %llu MiB", device_count, device->name,
				(unsigned long long)device->total_memory >> 20);
	}
	free(uuids);
	free(indices);
	if (r != 0)
		gpc_devices_destroy();
	return r;
}

void
gpc_devices_destroy(void)
{
	gpc_contexts_abandon();
	for (int i = 0; i < device_count; i++) {
		free((char *)devices[i].name);
		free((int32_t *)devices[i].attributes);
		free((uint64_t *)devices[i].limits);
	}
	free(devices);
	devices = NULL;
	device_count = 0;
}
