/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory/virtual_memory.h"

#include "base/lock.h"
#include "client/base/ranges.h"
#include "client/context/context.h"
#include "client/host/host_block.h"
#include "client/host/placed_memory.h"
#include "client/memory/address.h"
#include "client/memory/host_memory.h"
#include "client/memory/memory.h"
#include "client/memory/peer_access.h"
#include "client/memory/physical_memory.h"
#include "client/session/session.h"
#include "gpc_calls.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define PAGE ((uint64_t)4096)

struct mapping {
	struct gpc_physical *allocation;
	struct gpc_context *context; /* determines the session */
	uint64_t id;
	bool accessible;             /* by any device or by the host */
	uint64_t accessible_devices; /* bit mask of the application's devices */
	bool accessible_to_host;     /* host memory: by the host */
};

struct reservation {
	struct gpc_context *context; /* determines the session */
	struct gpc_virtual_address address;
	uint64_t size;
};

/* Serializes the calls, including their round trips; mere lookups use the other lock. */
static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct gpc_ranges reservations GP_GUARDED_BY(lock), mappings;
static atomic_bool any; /* there has been a reservation */

/* Returns the range that contains the address. */
static struct gpc_range *
range_find_around(const struct gpc_ranges *ranges, uint64_t address)
{
	return gpc_ranges_find(ranges, address, 1);
}

static bool
mapping_is_host(const struct mapping *mapping)
{
	return mapping->allocation->host_fd >= 0;
}

static bool
ranges_are_adjacent(const struct gpc_range *left, const struct gpc_range *right)
{
	return left->base + left->size == right->base &&
	       ((const struct mapping *)right->item)->accessible && !mapping_is_host(left->item) &&
	       !mapping_is_host(right->item);
}

static void
mapping_describe(const struct gpc_range *range, struct gpc_address *found)
{
	const struct mapping *mapping = range->item;
	const struct gpc_range *first = range, *last = range;

	if (!mapping->accessible || mapping_is_host(mapping))
		return;
	while (first > mappings.list && ((const struct mapping *)first[-1].item)->accessible &&
	       ranges_are_adjacent(first - 1, first))
		first--;
	while (last + 1 < mappings.list + mappings.count && ranges_are_adjacent(last, last + 1))
		last++;
	*found = (struct gpc_address){
		.kind = GPC_ADDRESS_DEVICE,
		.base = first->base,
		.size = last->base + last->size - first->base,
		.context = mapping->context,
		.buffer_id = mapping->id,
		.mapping_base = range->base,
		.mapping_size = range->size,
		.contextless = true,
		.joined = true,
		.shared = mapping->allocation->may_be_mapped_elsewhere,
		.handle_types = mapping->allocation->prop.requestedHandleTypes,
	};
}

bool
gpc_virtual_memory_find(uint64_t address, struct gpc_address *found)
{
	const struct gpc_range *range;
	bool reserved, host;

	if (!atomic_load_explicit(&any, memory_order_relaxed))
		return false;
	(void)pthread_rwlock_rdlock(&lock);
	reserved = range_find_around(&reservations, address) != NULL;
	range = range_find_around(&mappings, address);
	if (reserved)
		*found = (struct gpc_address){ .kind = GPC_ADDRESS_INVALID };
	host = range && mapping_is_host(range->item) &&
	       ((const struct mapping *)range->item)->accessible;
	if (range && !host)
		mapping_describe(range, found);
	(void)pthread_rwlock_unlock(&lock);
	if (host && !gpc_host_memory_find(address, found))
		*found = (struct gpc_address){ .kind = GPC_ADDRESS_INVALID };
	return reserved;
}

static int
ranges_add(struct gpc_ranges *ranges, uint64_t base, uint64_t size, void *item)
{
	int r;

	(void)pthread_rwlock_wrlock(&lock);
	r = gpc_ranges_add(ranges, base, size, item);
	(void)pthread_rwlock_unlock(&lock);
	return r;
}

static void
ranges_remove(struct gpc_ranges *ranges, struct gpc_range *range)
{
	(void)pthread_rwlock_wrlock(&lock);
	gpc_ranges_remove(ranges, range);
	(void)pthread_rwlock_unlock(&lock);
}

CUresult
gpc_virtual_memory_lock(void) GP_LOCK_UNCHECKED
{
	CUresult result = gpc_enter_initialized();

	if (result == CUDA_SUCCESS)
		(void)pthread_mutex_lock(&calls_lock);
	return result;
}

CUresult
gpc_virtual_memory_unlock(CUresult result) GP_LOCK_UNCHECKED
{
	(void)pthread_mutex_unlock(&calls_lock);
	return result;
}

/* Addresses. */

static CUresult
reservation_create(uint64_t size, uint64_t alignment, CUdeviceptr *ptr)
{
	struct gpc_context *current = gpc_context_get_current();
	struct reservation *reservation = calloc(1, sizeof(*reservation));
	CUresult result;

	if (!reservation)
		return CUDA_ERROR_OUT_OF_MEMORY;
	reservation->context = current ? current->device->primary : gpc_device_get(0)->primary;
	reservation->size = size;
	result = gpc_virtual_address_reserve(reservation->context, size, alignment,
					     &reservation->address);
	if (result == CUDA_SUCCESS &&
	    ranges_add(&reservations, reservation->address.base, size, reservation)) {
		gpc_virtual_address_free(reservation->context, &reservation->address);
		result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (result == CUDA_SUCCESS)
		*ptr = reservation->address.base;
	else
		free(reservation);
	return result;
}

CUresult
gpc_cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
			unsigned long long flags)
{
	CUresult result = gpc_virtual_memory_lock();

	if (result != CUDA_SUCCESS)
		return result;
	if (!ptr || size == 0 || size % PAGE || addr % PAGE || (alignment & (alignment - 1)) ||
	    flags)
		return gpc_virtual_memory_unlock(CUDA_ERROR_INVALID_VALUE);
	atomic_store(&any, true);
	return gpc_virtual_memory_unlock(reservation_create(size, alignment, ptr));
}

static CUresult
reservation_destroy(uint64_t address, uint64_t size)
{
	struct gpc_range *range = range_find_around(&reservations, address);
	struct reservation *reservation;

	if (!range || range->base != address || range->size != size ||
	    gpc_ranges_find(&mappings, address, size))
		return CUDA_ERROR_INVALID_VALUE;
	reservation = range->item;
	ranges_remove(&reservations, range);
	gpc_virtual_address_free(reservation->context, &reservation->address);
	free(reservation);
	return CUDA_SUCCESS;
}

CUresult
gpc_cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	CUresult result = gpc_virtual_memory_lock();

	return result == CUDA_SUCCESS ? gpc_virtual_memory_unlock(reservation_destroy(ptr, size))
				      : result;
}

/* Physical memory. */

CUresult
gpc_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
		unsigned long long flags)
{
	CUresult result = gpc_virtual_memory_lock();

	if (result != CUDA_SUCCESS)
		return result;
	if (!handle || !prop || flags)
		return gpc_virtual_memory_unlock(CUDA_ERROR_INVALID_VALUE);
	result = gpc_physical_check_prop(prop);
	return gpc_virtual_memory_unlock(
		result == CUDA_SUCCESS ? gpc_physical_create(size, prop, handle) : result);
}

CUresult
gpc_cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct gpc_physical *allocation;
	CUresult result = gpc_virtual_memory_lock();

	if (result != CUDA_SUCCESS)
		return result;
	allocation = gpc_physical_get(handle);
	if (!allocation)
		return gpc_virtual_memory_unlock(CUDA_ERROR_INVALID_VALUE);
	allocation->users--;
	gpc_physical_drop_unused(allocation);
	return gpc_virtual_memory_unlock(CUDA_SUCCESS);
}

CUresult
gpc_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	const struct gpc_range *range;
	struct gpc_physical *allocation;
	CUresult result = gpc_virtual_memory_lock();

	if (result != CUDA_SUCCESS)
		return result;
	range = range_find_around(&mappings, (uintptr_t)addr);
	if (!handle || !range)
		return gpc_virtual_memory_unlock(CUDA_ERROR_INVALID_VALUE);
	allocation = ((const struct mapping *)range->item)->allocation;
	allocation->users++;
	*handle = (uintptr_t)allocation->handle.token;
	return gpc_virtual_memory_unlock(CUDA_SUCCESS);
}

CUresult
gpc_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
					   CUmemGenericAllocationHandle handle)
{
	const struct gpc_physical *allocation;
	CUresult result = gpc_virtual_memory_lock();

	if (result != CUDA_SUCCESS)
		return result;
	allocation = gpc_physical_get(handle);
	if (!prop || !allocation)
		return gpc_virtual_memory_unlock(CUDA_ERROR_INVALID_VALUE);
	*prop = allocation->prop;
	/* For host memory without a node, the driver chooses one and reports it. */
	if (prop->location.type == CU_MEM_LOCATION_TYPE_HOST)
		prop->location = (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_HOST_NUMA };
	return gpc_virtual_memory_unlock(CUDA_SUCCESS);
}

CUresult
gpc_cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
				  CUmemAllocationGranularity_flags option)
{
	const struct gpc_device *device;
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS)
		return result;
	if (!granularity || !prop ||
	    (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
	     option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
		return CUDA_ERROR_INVALID_VALUE;
	/* Without a location, the first device is used. */
	if (prop->type != CU_MEM_ALLOCATION_TYPE_INVALID ||
	    prop->location.type != CU_MEM_LOCATION_TYPE_INVALID)
		result = gpc_physical_check_prop(prop);
	device = gpc_physical_device(&prop->location);
	if (result == CUDA_SUCCESS && !device)
		result = CUDA_ERROR_INVALID_DEVICE;
	if (result == CUDA_SUCCESS)
		*granularity = gpc_session_facts(device->session)->granularity;
	return result;
}

/* Mappings. */

/* Everything that the daemon would check has been checked, so the call is posted without
 * waiting. */
static CUresult
mapping_place(const struct mapping *mapping, uint64_t address, uint64_t size)
{
	const struct gp_args_gpMemoryPlace args = {
		.memory = mapping->allocation->handle.id,
		.address = address,
		.size = size,
	};

	return mapping_is_host(mapping)
		       ? gpc_host_placed_map(mapping->context, address, size,
					     mapping->allocation->host_fd, mapping->id)
		       : gpc_post_gpMemoryPlace(mapping->context, &args);
}

static CUresult
mapping_create(uint64_t address, uint64_t size, struct gpc_physical *allocation)
{
	const struct reservation *reservation = range_find_around(&reservations, address)->item;
	struct mapping *mapping = calloc(1, sizeof(*mapping));
	CUresult result;

	if (!mapping)
		return CUDA_ERROR_OUT_OF_MEMORY;
	mapping->allocation = allocation;
	mapping->id = gpc_memory_next_id();
	mapping->context =
		allocation->host_fd >= 0 ? reservation->context : allocation->device->primary;
	if (ranges_add(&mappings, address, size, mapping)) {
		free(mapping);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	result = mapping_place(mapping, address, size);
	if (result != CUDA_SUCCESS) {
		ranges_remove(&mappings, range_find_around(&mappings, address));
		free(mapping);
		return result;
	}
	allocation->mappings++;
	return CUDA_SUCCESS;
}

static CUresult
mapping_check(uint64_t address, uint64_t size, const struct gpc_physical *allocation)
{
	const struct gpc_range *range = range_find_around(&reservations, address);
	const struct reservation *reservation;
	uint64_t granularity;

	if (!allocation || gpc_physical_is_for_tiles(allocation) || !range || size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	reservation = range->item;
	granularity = gpc_session_facts(reservation->context->scope.session)->granularity;
	if ((address | size) % granularity || size > range->size - (address - range->base) ||
	    gpc_ranges_find(&mappings, address, size) ||
	    (allocation->host_fd < 0 &&
	     reservation->context->scope.session != allocation->device->session))
		return CUDA_ERROR_INVALID_VALUE;
	/* NVIDIA's driver does not map parts, or more than the size, either. */
	return size == allocation->size ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult
gpc_cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
	     unsigned long long flags)
{
	struct gpc_physical *allocation;
	CUresult result = gpc_virtual_memory_lock();

	if (result != CUDA_SUCCESS)
		return result;
	allocation = gpc_physical_get(handle);
	result = offset || flags ? CUDA_ERROR_INVALID_VALUE : mapping_check(ptr, size, allocation);
	return gpc_virtual_memory_unlock(
		result == CUDA_SUCCESS ? mapping_create(ptr, size, allocation) : result);
}

/* Returns the first of the mappings that fill the range exactly, or NULL if they do not. */
static struct gpc_range *
mappings_find_filling(uint64_t address, uint64_t size, size_t *count_p)
{
	struct gpc_range *first = range_find_around(&mappings, address), *next = first;
	uint64_t end = address + size;

	if (!first || first->base != address || end < address || size == 0)
		return NULL;
	while (address < end && next < mappings.list + mappings.count && next->base == address) {
		address += next->size;
		next++;
	}
	*count_p = (size_t)(next - first);
	return address == end ? first : NULL;
}

static void
mapping_destroy(struct gpc_range *range)
{
	struct gp_args_gpMemoryUnmap args = { .address = range->base, .size = range->size };
	struct mapping *mapping = range->item;
	struct gpc_physical *allocation = mapping->allocation;

	ranges_remove(&mappings, range);
	if (mapping_is_host(mapping))
		gpc_host_placed_unmap(args.address);
	else
		(void)gpc_post_gpMemoryUnmap(mapping->context, &args);
	free(mapping);
	allocation->mappings--;
	gpc_physical_drop_unused(allocation);
}

/* Returns whether the range is reserved but unmapped, which cuMemUnmap of NVIDIA's driver
 * accepts. */
static bool
range_is_unmapped(uint64_t address, uint64_t size)
{
	const struct gpc_range *range = range_find_around(&reservations, address);

	return range && size > 0 && size <= range->size - (address - range->base) &&
	       !gpc_ranges_find(&mappings, address, size);
}

CUresult
gpc_cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	struct gpc_range *range;
	size_t count = 0;
	CUresult result = gpc_virtual_memory_lock();

	if (result != CUDA_SUCCESS)
		return result;
	if (range_is_unmapped(ptr, size))
		return gpc_virtual_memory_unlock(CUDA_SUCCESS);
	range = mappings_find_filling(ptr, size, &count);
	if (!range)
		return gpc_virtual_memory_unlock(CUDA_ERROR_INVALID_VALUE);
	/* Each removal moves the next one to its place. */
	for (; count > 0; count--)
		mapping_destroy(range);
	return gpc_virtual_memory_unlock(CUDA_SUCCESS);
}

/* Host memory can be made accessible to the host, and to devices of the daemon that the addresses
 * belong to. */
static CUresult
access_check_host(const struct mapping *mapping, const CUmemAccessDesc *access)
{
	const struct gpc_device *device;

	if (access->flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (access->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
	    access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
		return CUDA_ERROR_INVALID_VALUE;
	if (gpc_physical_is_host(&access->location))
		return CUDA_SUCCESS;
	if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	device = gpc_device_get(access->location.id);
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	return device->session == mapping->context->scope.session ? CUDA_SUCCESS
								  : CUDA_ERROR_INVALID_DEVICE;
}

/* A device can be given read-write access to its own memory and to that of its peers; access to its
 * own cannot be revoked. */
static CUresult
access_check(const struct mapping *mapping, const CUmemAccessDesc *access)
{
	const struct gpc_device *device, *owner = mapping->allocation->device;

	if (mapping_is_host(mapping))
		return access_check_host(mapping, access);
	if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	device = gpc_device_get(access->location.id);
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	if (access->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE &&
	    (device != owner || !(mapping->accessible_devices >> device->ordinal & 1)))
		return CUDA_SUCCESS;
	if (device != owner && !gpc_peer_access_is_possible(device, owner))
		return CUDA_ERROR_INVALID_DEVICE;
	return access->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? CUDA_SUCCESS
								   : CUDA_ERROR_NOT_SUPPORTED;
}

/* Reports the access to the daemon if necessary. */
static CUresult
access_map_for_device(const struct gpc_range *range, const CUmemAccessDesc *access)
{
	struct gpc_device *device = gpc_device_get(access->location.id);
	const struct mapping *mapping = range->item;
	const struct gpc_device *owner = mapping->allocation->device;

	if (mapping_is_host(mapping))
		return access->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
				       access->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE
			       ? gpc_host_block_map(range->base, &(uint64_t){ 0 })
			       : CUDA_SUCCESS;
	return device == owner || access->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE
		       ? CUDA_SUCCESS
		       : gpc_peer_access_enable(device, owner);
}

static void
access_note(struct mapping *mapping, const CUmemAccessDesc *access)
{
	const bool given = access->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
	uint64_t bit;

	if (access->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
		mapping->accessible_to_host = given;
	} else {
		bit = UINT64_C(1) << access->location.id;
		mapping->accessible_devices = given ? mapping->accessible_devices | bit
						    : mapping->accessible_devices & ~bit;
	}
	mapping->accessible = mapping->accessible_devices != 0 || mapping->accessible_to_host;
}

static CUresult
access_set(struct gpc_range *range, size_t count, const CUmemAccessDesc *desc, size_t desc_count)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < count * desc_count && result == CUDA_SUCCESS; i++)
		result = access_check(range[i / desc_count].item, &desc[i % desc_count]);
	for (size_t i = 0; i < count * desc_count && result == CUDA_SUCCESS; i++)
		result = access_map_for_device(&range[i / desc_count], &desc[i % desc_count]);
	if (result != CUDA_SUCCESS)
		return result;
	(void)pthread_rwlock_wrlock(&lock);
	for (size_t i = 0; i < count * desc_count; i++)
		access_note(range[i / desc_count].item, &desc[i % desc_count]);
	(void)pthread_rwlock_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult
gpc_cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	struct gpc_range *range;
	size_t range_count = 0;
	CUresult result = gpc_virtual_memory_lock();

	if (result != CUDA_SUCCESS)
		return result;
	range = mappings_find_filling(ptr, size, &range_count);
	if (!range || !desc || count == 0)
		return gpc_virtual_memory_unlock(CUDA_ERROR_INVALID_VALUE);
	return gpc_virtual_memory_unlock(access_set(range, range_count, desc, count));
}

CUresult
gpc_cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	const struct gpc_range *range;
	const struct mapping *mapping;
	CUresult result = gpc_virtual_memory_lock();

	if (result != CUDA_SUCCESS)
		return result;
	range = range_find_around(&mappings, ptr);
	if (flags && location && ptr && location->type == CU_MEM_LOCATION_TYPE_INVALID)
		return gpc_virtual_memory_unlock(CUDA_ERROR_INVALID_DEVICE);
	if (!flags || !location || !range)
		return gpc_virtual_memory_unlock(CUDA_ERROR_INVALID_VALUE);
	mapping = range->item;
	if (mapping_is_host(mapping) && gpc_physical_is_host(location)) {
		*flags = mapping->accessible_to_host ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
						     : CU_MEM_ACCESS_FLAGS_PROT_NONE;
		return gpc_virtual_memory_unlock(CUDA_SUCCESS);
	}
	*flags = location->type == CU_MEM_LOCATION_TYPE_DEVICE && gpc_device_get(location->id) &&
				 (mapping->accessible_devices >> location->id & 1)
			 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			 : CU_MEM_ACCESS_FLAGS_PROT_NONE;
	return gpc_virtual_memory_unlock(CUDA_SUCCESS);
}
