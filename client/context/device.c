/* SPDX-License-Identifier: Apache-2.0 */
#include "client/context/device.h"

#include "client/base/config.h"
#include "client/base/log.h"
#include "client/connect/connect.h"
#include "client/session/session.h"
#include "gpc_calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Number of bits of a PCI domain that are used within one machine. */
#define DOMAIN_SHIFT 12

/* Visible devices, followed by those that CUDA_VISIBLE_DEVICES hides. */
static struct gpc_device *devices;
static int device_count; /* number of visible devices */
static int *listed;      /* index in devices[] of each device of REMOTE_GPU */
static int listed_count;

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

CUresult
gpc_device_enter(CUdevice ordinal, struct gpc_device **device_p)
{
	CUresult result = gpc_enter_local();

	*device_p = gpc_device_get(ordinal);
	return result == CUDA_SUCCESS && !*device_p ? CUDA_ERROR_INVALID_DEVICE : result;
}

int
gpc_any_device_count(void)
{
	return listed_count;
}

const struct gpc_device *
gpc_any_device_get(int index)
{
	return index >= 0 && index < listed_count ? &devices[listed[index]] : NULL;
}

int
gpc_device_attribute(const struct gpc_device *device, CUdevice_attribute attribute)
{
	return (int)attribute >= 0 && (int)attribute < device->attribute_count
		       ? device->attributes[attribute]
		       : 0;
}

unsigned int
gpc_device_total_memory_32(const struct gpc_device *device)
{
	return device->total_memory > UINT32_MAX ? UINT32_MAX : (unsigned int)device->total_memory;
}

CUdevprop
gpc_device_properties(const struct gpc_device *device)
{
#define ATTRIBUTE(name) gpc_device_attribute(device, CU_DEVICE_ATTRIBUTE_##name)
	return (CUdevprop){
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
}

static bool
session_has_call(const struct gpc_session *session, int call)
{
	return session && gpc_facts_have_call(gpc_session_facts(session), (unsigned int)call);
}

static int
device_copy_attributes(struct gpc_device *device, const Gpupool__Device *source)
{
	/* At least as long as the client's own list, so that all indices below exist. */
	size_t count = source->n_attributes > CU_DEVICE_ATTRIBUTE_MAX ? source->n_attributes
								      : CU_DEVICE_ATTRIBUTE_MAX;
	int32_t *attributes = calloc(count, sizeof(*attributes));

	if (!attributes)
		return -ENOMEM;
	/* An older daemon may not clear all attributes that are absent. */
	for (size_t i = 0; i < source->n_attributes; i++)
		attributes[i] = gpc_is_absent_attribute((int64_t)i) ? 0 : source->attributes[i];
	/* Memory pools are implemented in this library, independent of the device. */
	attributes[CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED] = 1;
	/* So is managed memory, of which the GPU knows nothing. */
	attributes[CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY] = 1;
	/* Pools of this machine's memory, which kernels can access. */
	attributes[CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED] =
		session_has_call(device->session, GP_CALL_gpHostReserve) &&
		session_has_call(device->session, GP_CALL_gpHostTake);
	attributes[CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED] =
		attributes[CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED];
	/* No NUMA node of this machine is closer to the GPU than another: node 0 represents all. */
	attributes[CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID] =
		attributes[CU_DEVICE_ATTRIBUTE_HOST_NUMA_MEMORY_POOLS_SUPPORTED] ? 0 : -1;
	/* The daemon's driver maps the memory that kernels access; the program's copy is in this
	 * process. */
	attributes[CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] &=
		session_has_call(device->session, GP_CALL_gpHostPlace) &&
		session_has_call(device->session, GP_CALL_gpHostTake);
	attributes[CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] =
		attributes[CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED];
	attributes[CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED] =
		session_has_call(device->session, GP_CALL_gpMemoryCreate);
	attributes[CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED] =
		session_has_call(device->session, GP_CALL_gpEventShare);
	attributes[CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED] =
		session_has_call(device->session, GP_CALL_gpPhysicalShare);
	attributes[CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES] =
		session_has_call(device->session, GP_CALL_gpPoolShare)
			? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
			: CU_MEM_HANDLE_TYPE_NONE;
	if (!session_has_call(device->session, GP_CALL_gpArrayTiles))
		attributes[CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED] = 0;
	/* The runtime checks that the attributes agree with cuDeviceGetPCIBusId(). */
	attributes[CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID] = device->pci_domain;
	attributes[CU_DEVICE_ATTRIBUTE_PCI_BUS_ID] = source->pci_bus;
	attributes[CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID] = source->pci_device;
	device->attributes = attributes;
	device->attribute_count = (int)count;
	return 0;
}

static int
device_copy_limits(struct gpc_device *device, const Gpupool__Device *source)
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
device_copy_links(struct gpc_device *device, const Gpupool__Device *source)
{
	size_t count = source->n_p2p_attributes;
	int32_t *links = calloc(count + 1, sizeof(*links));

	if (!links)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		links[i] = source->p2p_attributes[i];
	for (size_t i = 0; i < source->peer_access.len && i < sizeof(device->peers); i++)
		device->peers |= (uint32_t)source->peer_access.data[i] << 8 * i;
	device->links = links;
	device->link_count = (int)count;
	return 0;
}

static int
device_init(struct gpc_device *device, int ordinal, const struct gpc_device_source *from)
{
	const Gpupool__Device *source = from->device;

	device->ordinal = ordinal;
	device->remote = source->ordinal;
	device->session = from->session;
	device->name = strdup(source->name);
	memcpy(device->uuid.bytes, source->uuid.data, sizeof(device->uuid.bytes));
	/* Devices of different machines may have the same PCI address, by which programs
	 * distinguish devices. */
	device->pci_domain =
		(int)(((uint32_t)source->pci_domain + ((uint32_t)from->daemon << DOMAIN_SHIFT)) &
		      0xffff);
	device->pci_bus = source->pci_bus;
	device->pci_device = source->pci_device;
	(void)snprintf(device->pci_bus_id, sizeof(device->pci_bus_id), "%04X:%02X:%02X.0",
		       (unsigned int)device->pci_domain, (unsigned int)source->pci_bus & 0xff,
		       (unsigned int)source->pci_device & 0xff);
	device->total_memory = source->total_memory;
	atomic_store(&device->no_context, source->no_context);
	atomic_store(&device->granted, from->granted);
	(void)pthread_mutex_init(&device->allowance.lock, NULL);
	device->priority_least = source->priority_least;
	device->priority_greatest = source->priority_greatest;
	if (!device->name || device_copy_attributes(device, source) != 0 ||
	    device_copy_limits(device, source) != 0 || device_copy_links(device, source) != 0)
		return -ENOMEM;
	device->primary =
		gpc_context_create(device, source->default_flags & CU_CTX_FLAGS_MASK, true);
	return device->primary ? 0 : -ENOMEM;
}

/* NVIDIA's driver silently ends the list at an entry that does not exist, and so does this library;
 * but such a mistake is hard to find, so it is reported. An empty list and -1 are intentional. */
static void
devices_warn_hidden(const char *list, int visible, int count)
{
	int entries = 0;

	if (!list || !*list || strcmp(list, "NoDevFiles") == 0)
		return;
	for (const char *at = list; at && at[*at == ',']; at = strchr(at + 1, ',')) {
		if (strncmp(at + (*at == ','), "-1", 2) == 0)
			return;
		entries++;
	}
	if (visible < entries)
		gpc_log_warn("CUDA_VISIBLE_DEVICES=%s (gpupool run --gpus sets it): the program "
			     "sees %d device%s of the pool's %d, counted from 0; the list ends at "
			     "the first invalid entry",
			     list, visible, visible == 1 ? "" : "s", count);
}

/* Fills order[] (visible devices first) and listed[]. Returns the number of visible devices. */
static int
devices_sort(const struct gpc_device_source *sources, int count, int *order)
{
	CUuuid *uuids = calloc((size_t)count + 1, sizeof(*uuids));
	int visible;

	if (!uuids)
		return -ENOMEM;
	for (int i = 0; i < count; i++) {
		memcpy(uuids[i].bytes, sources[i].device->uuid.data, sizeof(uuids[i].bytes));
		listed[i] = -1;
	}
	visible = gpc_config_visible_devices(getenv("CUDA_VISIBLE_DEVICES"), uuids, count, order);
	devices_warn_hidden(getenv("CUDA_VISIBLE_DEVICES"), visible, count);
	for (int i = 0; i < visible; i++)
		listed[order[i]] = i;
	for (int i = 0, hidden = visible; i < count; i++) {
		if (listed[i] >= 0)
			continue;
		order[hidden] = i;
		listed[i] = hidden++;
	}
	free(uuids);
	return visible;
}

int
gpc_devices_create(const struct gpc_device_source *sources, int source_count)
{
	int *order = calloc((size_t)source_count + 1, sizeof(*order));
	int visible, r;

	devices = calloc((size_t)source_count + 1, sizeof(*devices));
	listed = calloc((size_t)source_count + 1, sizeof(*listed));
	visible = order && devices && listed ? devices_sort(sources, source_count, order) : -ENOMEM;
	r = visible < 0 ? visible : 0;
	for (listed_count = 0; r == 0 && listed_count < source_count; listed_count++) {
		struct gpc_device *device = &devices[listed_count];

		r = device_init(device, listed_count, &sources[order[listed_count]]);
		if (r != 0 || listed_count >= visible)
			continue;
		device_count++;
		gpc_log(GPC_LOG_INFO, "device %d: %s, %llu MiB", listed_count, device->name,
			(unsigned long long)device->total_memory >> 20);
	}
	free(order);
	if (r != 0)
		gpc_devices_destroy();
	return r;
}

void
gpc_devices_destroy(void)
{
	gpc_contexts_drop_all();
	for (int i = 0; i < listed_count; i++) {
		free((char *)devices[i].name);
		free((int32_t *)devices[i].attributes);
		free((uint64_t *)devices[i].limits);
		free((int32_t *)devices[i].links);
	}
	free(devices);
	free(listed);
	devices = NULL;
	listed = NULL;
	device_count = listed_count = 0;
}
