/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: pointer attributes. All of them are known in the client. */
#include "client/memory/pointer.h"

#include "base/lock.h"
#include "client/base/ranges.h"
#include "client/context/context.h"
#include "client/memory/address.h"
#include "client/memory/ipc_memory.h"
#include "client/memory/ipc_pool.h"
#include "client/memory/physical_memory.h"
#include "gpc_calls.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* Size of each attribute's value; 0: invalid attribute. Attributes documented as boolean are ints,
 * in NVIDIA's driver and in the programs that query it. */
static const uint8_t sizes[] = {
	[CU_POINTER_ATTRIBUTE_CONTEXT] = 8,
	[CU_POINTER_ATTRIBUTE_MEMORY_TYPE] = 4,
	[CU_POINTER_ATTRIBUTE_DEVICE_POINTER] = 8,
	[CU_POINTER_ATTRIBUTE_HOST_POINTER] = 8,
	[CU_POINTER_ATTRIBUTE_SYNC_MEMOPS] = 4,
	[CU_POINTER_ATTRIBUTE_BUFFER_ID] = 8,
	[CU_POINTER_ATTRIBUTE_IS_MANAGED] = 4,
	[CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL] = 4,
	[CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE] = 4,
	[CU_POINTER_ATTRIBUTE_RANGE_START_ADDR] = 8,
	[CU_POINTER_ATTRIBUTE_RANGE_SIZE] = 8,
	[CU_POINTER_ATTRIBUTE_MAPPED] = 4,
	[CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES] = 8,
	[CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE] = 4,
	[CU_POINTER_ATTRIBUTE_ACCESS_FLAGS] = 4,
	[CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE] = 8,
	[CU_POINTER_ATTRIBUTE_MAPPING_SIZE] = 8,
	[CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR] = 8,
	[CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID] = 8,
	[CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE] = 4,
};

/* Buffer IDs with CU_POINTER_ATTRIBUTE_SYNC_MEMOPS set, as ranges of size 1. */
static pthread_rwlock_t synchronous_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct gpc_ranges synchronous GP_GUARDED_BY(synchronous_lock);
static atomic_size_t synchronous_count;

static bool
buffer_is_synchronous(uint64_t id)
{
	bool found;

	if (atomic_load(&synchronous_count) == 0)
		return false;
	(void)pthread_rwlock_rdlock(&synchronous_lock);
	found = gpc_ranges_find(&synchronous, id, 1) != NULL;
	(void)pthread_rwlock_unlock(&synchronous_lock);
	return found;
}

bool
gpc_pointer_is_synchronous(uint64_t address)
{
	struct gpc_address found;

	if (atomic_load(&synchronous_count) == 0 && !gpc_ipc_memory_any() &&
	    !gpc_physical_any_shared() && !gpc_pool_any_shared())
		return false;
	gpc_address_lookup(address, &found);
	return found.buffer_id != 0 && (found.shared || buffer_is_synchronous(found.buffer_id) ||
					gpc_ipc_memory_is_shared(address));
}

static CUresult
buffer_set_synchronous(uint64_t id, bool on)
{
	struct gpc_range *range;
	int r = 0;

	(void)pthread_rwlock_wrlock(&synchronous_lock);
	range = gpc_ranges_find(&synchronous, id, 1);
	if (range && !on)
		gpc_ranges_remove(&synchronous, range);
	else if (!range && on)
		r = gpc_ranges_add(&synchronous, id, 1, NULL);
	atomic_store(&synchronous_count, synchronous.count);
	(void)pthread_rwlock_unlock(&synchronous_lock);
	return r ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* Returns 0 if there is no such pointer. Querying the device pointer does not mark host memory as
 * used by kernels: libraries query all attributes at once to classify an address. */
static uint64_t
address_get_pointer(CUpointer_attribute attribute, const struct gpc_address *found, uint64_t ptr)
{
	bool is_host_pointer = attribute == CU_POINTER_ATTRIBUTE_HOST_POINTER;
	uint64_t base;

	if (found->kind != GPC_ADDRESS_HOST)
		return is_host_pointer && !found->managed ? 0 : ptr;
	base = is_host_pointer ? found->host : found->device;
	return base ? base + (ptr - found->base) : 0;
}

/* For memory that CUDA knows. Attributes not listed are 0: nothing can be shared with other
 * devices. */
static CUresult
attribute_get(CUpointer_attribute attribute, const struct gpc_address *found, uint64_t ptr,
	      uint64_t *value_p)
{
	bool host = found->kind == GPC_ADDRESS_HOST;
	uint64_t value = 0;

	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*value_p = 0;
		if (found->contextless)
			return CUDA_ERROR_INVALID_VALUE;
		value = (uintptr_t)found->context->handle.token;
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		value = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*value_p = 0;
		value = address_get_pointer(attribute, found, ptr);
		if (!value)
			return CUDA_ERROR_INVALID_VALUE;
		break;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		value = buffer_is_synchronous(found->buffer_id);
		break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		value = found->buffer_id;
		break;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		value = found->managed;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		value = (uint32_t)found->context->device->ordinal;
		break;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		value = gpc_ipc_memory_can_export(found);
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		value = found->base;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		value = found->size;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		value = 1;
		break;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		value = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
		break;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		value = found->handle_types;
		break;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		value = (uintptr_t)found->pool;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		value = found->mapping_size;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		value = found->mapping_base;
		break;
	default:
		break;
	}
	*value_p = value;
	return CUDA_SUCCESS;
}

/* Attributes of unknown memory. Returns false if nothing is written. */
static bool
attribute_get_unknown(CUpointer_attribute attribute, uint64_t ptr, uint64_t *value_p)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		return false;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*value_p = (uint32_t)CU_DEVICE_INVALID;
		return true;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*value_p = ptr;
		return true;
	default:
		*value_p = 0;
		return true;
	}
}

static bool
address_is_known(const struct gpc_address *found)
{
	return found->kind == GPC_ADDRESS_DEVICE || found->kind == GPC_ADDRESS_HOST;
}

static CUresult
attribute_check(CUpointer_attribute attribute, const void *data)
{
	if (attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!data || (unsigned int)attribute >= sizeof(sizes) || sizes[attribute] == 0)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* An address means the same in all contexts, so no current context is needed. */
CUresult
gpc_cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct gpc_address found;
	uint64_t value;
	CUresult result = gpc_enter_initialized();

	if (result == CUDA_SUCCESS)
		result = attribute_check(attribute, data);
	if (result != CUDA_SUCCESS)
		return result;
	gpc_address_lookup(ptr, &found);
	if (!address_is_known(&found))
		return CUDA_ERROR_INVALID_VALUE;
	result = attribute_get(attribute, &found, ptr, &value);
	/* CUDA writes NULL for a pointer that does not exist, in addition to the error. */
	memcpy(data, &value, sizes[attribute]);
	return result;
}

CUresult
gpc_cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
			   CUdeviceptr ptr)
{
	struct gpc_address found;
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS)
		return result;
	if (!attributes || !data || numAttributes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < numAttributes; i++) {
		result = attribute_check(attributes[i], data[i]);
		if (result != CUDA_SUCCESS)
			return result;
	}
	gpc_address_lookup(ptr, &found);
	for (unsigned int i = 0; i < numAttributes; i++) {
		uint64_t value = 0;

		if (address_is_known(&found))
			(void)attribute_get(attributes[i], &found, ptr, &value);
		else if (!attribute_get_unknown(attributes[i], ptr, &value))
			continue;
		memcpy(data[i], &value, sizes[attributes[i]]);
	}
	return CUDA_SUCCESS;
}

CUresult
gpc_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct gpc_context *context;
	struct gpc_address found;
	unsigned int on;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return CUDA_ERROR_INVALID_VALUE;
	gpc_address_lookup(ptr, &found);
	if (found.kind != GPC_ADDRESS_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&on, value, sizeof(on));
	return buffer_set_synchronous(found.buffer_id, on != 0);
}

CUresult
gpc_cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
	struct gpc_context *context;
	struct gpc_address found;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	gpc_address_lookup(dptr, &found);
	if (found.kind != GPC_ADDRESS_DEVICE && found.kind != GPC_ADDRESS_HOST)
		return CUDA_ERROR_NOT_FOUND;
	if (pbase)
		*pbase = found.joined ? found.mapping_base : found.base;
	if (psize)
		*psize = found.joined ? found.mapping_size : found.size;
	return CUDA_SUCCESS;
}
