/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/memory/memory.h"

#include "gpd_calls.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/gpudirect_memory.h"
#include "server/worker/device/mapping_quota.h"
#include "server/worker/device/window.h"
#include "server/worker/host/host_space.h"
#include "server/worker/memory/allowance.h"
#include "server/worker/memory/memory_internal.h"
#include "server/worker/memory/physical_memory.h"
#include "server/worker/memory/shared_physical.h"
#include "server/worker/session/session.h"
#include "transport/transport.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* The software device maps memory in this process, by two mappings or less. NVIDIA's driver maps it
 * on the GPU only, and the limit is for the worker's own tables. */
static struct gpd_mapping_quota software_quota = { .part = 16, .max = 4096, .more = 8192 };
static struct gpd_mapping_quota gpu_quota = { .part = 4096, .max = 1 << 18, .more = 1 << 20 };

static struct gpd_mapping_quota *
mapping_quota_get(void)
{
	return gpd_driver.software ? &software_quota : &gpu_quota;
}

bool
gpd_memory_mapping_acquire(struct gpd_memory *memory)
{
	struct gpd_mapping_quota *quota = mapping_quota_get();

	if (gpd_mapping_quota_acquire(quota, &memory->mappings) ||
	    (gpd_memory_wait_unmapped(memory, 0, UINT64_MAX) == CUDA_SUCCESS &&
	     gpd_mapping_quota_acquire(quota, &memory->mappings)))
		return true;
	gpd_session_log(memory->session, GPD_LOG_INFO,
			"refused a mapping of device memory: it has %u, and it or the process is "
			"at its limit of mappings",
			atomic_load(&memory->mappings));
	return false;
}

void
gpd_memory_mapping_release(struct gpd_memory *memory)
{
	gpd_mapping_quota_release(mapping_quota_get(), &memory->mappings);
}

void
gpd_chunk_drop(const struct gpd_chunk *chunk)
{
	/* First, because the network card accesses the memory directly. */
	if (chunk->rdma_registered)
		gp_memory_unregister((void *)(uintptr_t)chunk->address);
	gpd_driver.cuMemUnmap(chunk->address, chunk->size);
	if (!chunk->physical && !chunk->shared && !chunk->granted)
		gpd_driver.cuMemRelease(chunk->handle);
}

static uint64_t
chunk_get_zeroed(const struct gpd_chunk *chunk)
{
	if (chunk->shared)
		return chunk->size;
	return chunk->physical ? chunk->physical->zeroed : 0;
}

static CUresult
chunk_set_access(const struct gpd_chunk *chunk, uint32_t devices)
{
	CUmemAccessDesc access[GPD_DEVICES_MAX + 1];
	size_t count = 0;

	if (chunk->host)
		access[count++] = (CUmemAccessDesc){
			.location = gpd_physical_get_host_location(chunk->device),
			.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
		};
	for (int i = 0; i < gpd_devices.count; i++) {
		if (devices >> i & 1 && !gpd_devices.all[i].absent)
			access[count++] = (CUmemAccessDesc){
				.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
					      .id = gpd_devices.all[i].device },
				.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
			};
	}
	return gpd_driver.cuMemSetAccess(chunk->address, chunk->size, access, count);
}

static CUresult
chunk_place(const struct gpd_memory *memory, struct gpd_chunk *chunk)
{
	uint64_t zeroed = chunk_get_zeroed(chunk);
	CUresult result = CUDA_SUCCESS;

	if (chunk->host)
		result = gpd_physical_obtain_host(chunk->size, chunk->device, &chunk->handle);
	else if (!chunk->physical && !chunk->granted)
		result = gpd_physical_obtain(chunk->size, chunk->device, &chunk->handle);
	if (result != CUDA_SUCCESS)
		return result;
	result = gpd_driver.cuMemMap(chunk->address, chunk->size, 0, chunk->handle, 0);
	if (result != CUDA_SUCCESS) {
		if (!chunk->physical && !chunk->granted)
			gpd_driver.cuMemRelease(chunk->handle);
		return result;
	}
	result = chunk_set_access(chunk, chunk->host ? UINT32_MAX
						     : memory->peer_access[chunk->device] |
							       UINT32_C(1) << chunk->device);
	/* Another session may have had this memory. */
	if (result == CUDA_SUCCESS && zeroed < chunk->size)
		result = gpd_physical_zero(chunk->address + zeroed, chunk->size - zeroed,
					   chunk->device);
	if (result == CUDA_SUCCESS && chunk->host && !gpd_physical_is_accessible(chunk->address))
		result = CUDA_ERROR_NOT_SUPPORTED;
	if (result != CUDA_SUCCESS)
		gpd_chunk_drop(chunk);
	else if (chunk->physical && zeroed < chunk->size)
		chunk->physical->zeroed = chunk->size;
	return result;
}

size_t
gpd_memory_find(const struct gpd_memory *memory, uint64_t address)
{
	size_t low = 0, high = memory->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct gpd_chunk *chunk = &memory->chunks[middle];

		if (chunk->address + chunk->size <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool
range_contains(uint64_t base, uint64_t range_size, uint64_t address, uint64_t size)
{
	return address >= base && address - base <= range_size &&
	       size <= range_size - (address - base);
}

/* Whether the range is in the window or in one of the other reserved ranges. */
static bool
memory_contains(const struct gpd_memory *memory, uint64_t address, uint64_t size)
{
	const struct gpd_session *session = memory->session;

	if (range_contains(session->window_base, session->window_size, address, size))
		return true;
	for (size_t i = 0; i < RESERVED_MAX; i++) {
		const struct gpd_range *range = &memory->reserved[i];

		if (range->size > 0 && range_contains(range->address, range->size, address, size))
			return true;
	}
	return false;
}

bool
gpd_memory_mapped(const struct gpd_session *session, uint64_t address, uint64_t size)
{
	const struct gpd_memory *memory = session->memory;
	uint64_t end;

	if (!memory_contains(memory, address, size))
		return false;
	end = address + size;
	for (size_t i = gpd_memory_find(memory, address); address < end; i++) {
		if (i == memory->count || memory->chunks[i].address > address)
			return false;
		address = memory->chunks[i].address + memory->chunks[i].size;
	}
	return true;
}

/* Returns the chunk that contains [address, address + size), or NULL. */
static struct gpd_chunk *
chunk_find(const struct gpd_memory *memory, uint64_t address, uint64_t size)
{
	size_t i = gpd_memory_find(memory, address);

	if (i == memory->count ||
	    !range_contains(memory->chunks[i].address, memory->chunks[i].size, address, size))
		return NULL;
	return &memory->chunks[i];
}

int
gpd_memory_get_gpudirect_device(struct gpd_session *session, uint64_t address, uint64_t size)
{
	struct gpd_memory *memory = session->memory;
	struct gpd_chunk *chunk = chunk_find(memory, address, size);

	if (!chunk || chunk->host)
		return -1;
	if (!chunk->rdma_tried)
		chunk->rdma_registered = gpd_gpudirect_memory_register(
			session->conn, chunk->address, chunk->size, chunk->device);
	chunk->rdma_tried = true;
	return chunk->rdma_registered ? chunk->device : -1;
}

int
gpd_memory_get_remote_device(const struct gpd_session *session, uint64_t address, int device)
{
	const struct gpd_memory *memory = session->memory;
	size_t i = gpd_devices.count > 1 ? gpd_memory_find(memory, address) : memory->count;
	int owner;

	if (i == memory->count || memory->chunks[i].address > address || memory->chunks[i].host)
		return -1;
	owner = memory->chunks[i].device;
	return owner == device || memory->peer_access[owner] >> device & 1 ? -1 : owner;
}

bool
gpd_memory_accessible(struct gpd_session *session, uint64_t address, uint64_t size)
{
	if (memory_contains(session->memory, address, size))
		return gpd_memory_mapped(session, address, size);
	if (gpd_host_memory_mapped(session, address, size))
		return true;
	for (const struct gpd_extent *e = session->memory->extents; e; e = e->next) {
		if (range_contains(e->address, e->size, address, size))
			return true;
	}
	return false;
}

bool
gpd_memory_get_span(uint64_t pitch, uint64_t width, uint64_t height, uint64_t *span_p)
{
	uint64_t rest;

	if (height == 1) {
		*span_p = width;
		return true;
	}
	return pitch >= width && !__builtin_mul_overflow(pitch, height - 1, &rest) &&
	       !__builtin_add_overflow(rest, width, span_p);
}

CUresult
gpd_memory_check_rows(struct gpd_session *session, uint64_t address, uint64_t pitch, uint64_t width,
		      uint64_t height)
{
	uint64_t size;

	if (!gpd_memory_get_span(pitch, width, height, &size) ||
	    !gpd_memory_accessible(session, address, size))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

void
gpd_memory_open_extent(struct gpd_session *session, struct gpd_extent *extent)
{
	DL_PREPEND(session->memory->extents, extent);
}

void
gpd_memory_close_extent(struct gpd_session *session, struct gpd_extent *extent)
{
	DL_DELETE(session->memory->extents, extent);
}

static bool
chunk_room(struct gpd_memory *memory)
{
	size_t count = memory->capacity ? memory->capacity * 2 : 64;
	struct gpd_chunk *chunks;

	if (memory->count < memory->capacity)
		return true;
	chunks = realloc(memory->chunks, count * sizeof(*chunks));
	if (!chunks)
		return false;
	memory->chunks = chunks;
	memory->capacity = count;
	return true;
}

static CUresult
range_check(struct gpd_session *session, uint64_t address, uint64_t size, int device)
{
	const struct gpd_device *on = gpd_device_get(device);

	if (!on)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!memory_contains(session->memory, address, size)) {
		gpd_session_violation(session, "it maps %llu bytes at %#llx, outside its window",
				      (unsigned long long)size, (unsigned long long)address);
		return CUDA_ERROR_INVALID_VALUE;
	}
	return !size || (address | size) % on->granularity ? CUDA_ERROR_INVALID_VALUE
							   : CUDA_SUCCESS;
}

static CUresult
chunk_add(struct gpd_session *session, struct gpd_chunk *chunk)
{
	struct gpd_memory *memory = session->memory;
	CUresult result = range_check(session, chunk->address, chunk->size, chunk->device);
	uint64_t until = 0;
	size_t i;

	if (result != CUDA_SUCCESS)
		return result;
	i = gpd_memory_find(memory, chunk->address);
	if (i < memory->count && memory->chunks[i].address < chunk->address + chunk->size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!chunk_room(memory) || !gpd_memory_mapping_acquire(memory))
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = gpd_memory_wait_unmapped(memory, chunk->address, chunk->size);
	if (result == CUDA_SUCCESS)
		result = chunk_place(memory, chunk);
	while (result == CUDA_ERROR_OUT_OF_MEMORY && !chunk->host &&
	       gpd_memory_wait(session, chunk->device, &until))
		result = chunk_place(memory, chunk);
	if (result != CUDA_SUCCESS) {
		gpd_memory_mapping_release(memory);
		return result;
	}
	chunk->granted = false;
	memmove(&memory->chunks[i + 1], &memory->chunks[i], (memory->count - i) * sizeof(*chunk));
	memory->chunks[i] = *chunk;
	memory->count++;
	return CUDA_SUCCESS;
}

CUresult
gpd_memory_map(struct gpd_session *session, uint64_t address, uint64_t size, int device)
{
	struct gpd_chunk chunk = { .address = address, .size = size, .device = device };

	return chunk_add(session, &chunk);
}

CUresult
gpd_memory_map_host(struct gpd_session *session, uint64_t address, uint64_t size, int device)
{
	struct gpd_chunk chunk = {
		.address = address, .size = size, .device = device, .host = true
	};

	return chunk_add(session, &chunk);
}

CUresult
gpd_memory_attach(struct gpd_session *session, uint64_t address, uint64_t size,
		  struct gpd_physical *physical)
{
	struct gpd_chunk chunk = {
		.address = address,
		.size = size,
		.device = physical->device,
		.handle = physical->allocation,
		.physical = physical,
	};
	CUresult result = chunk_add(session, &chunk);

	if (result == CUDA_SUCCESS)
		physical->mappings++;
	return result;
}

CUresult
gpd_memory_open(struct gpd_session *session, uint64_t address, struct gpd_shared_physical *shared)
{
	struct gpd_chunk chunk = {
		.address = address,
		.size = shared->size,
		.device = shared->device,
		.handle = shared->handle,
		.shared = shared,
		.granted = true,
	};

	return chunk_add(session, &chunk);
}

struct gpd_shared_physical *
gpd_memory_export(struct gpd_session *session, uint64_t address, uint64_t size, uint64_t *offset_p)
{
	struct gpd_memory *memory = session->memory;
	struct gpd_chunk *chunk = chunk_find(memory, address, size);

	if (!chunk || chunk->physical || chunk->host)
		return NULL;
	if (!chunk->shared)
		chunk->shared = gpd_shared_physical_create(&session->account, chunk->handle,
							   chunk->size, chunk->device);
	*offset_p = address - chunk->address;
	return chunk->shared;
}

CUresult
gpd_gpMemoryMap(struct gpd_session *session, const struct gp_args_gpMemoryMap *args)
{
	return gpd_memory_map(session, args->address, args->size, args->device);
}

/* Adds a chunk whose memory is already allocated and charged. */
static CUresult
chunk_add_charged(struct gpd_session *session, struct gpd_chunk *chunk)
{
	CUresult result = chunk_add(session, chunk);

	if (result != CUDA_SUCCESS) {
		gpd_driver.cuMemRelease(chunk->handle);
		gpd_account_free(&session->account, chunk->device, chunk->size);
	}
	return result;
}

CUresult
gpd_gpMemoryUse(struct gpd_session *session, const struct gp_args_gpMemoryUse *args)
{
	struct gpd_chunk chunk = {
		.address = args->address,
		.size = args->size,
		.device = args->device,
		.granted = true,
	};
	CUresult result;

	if (!gpd_allowance_consume(session, args->device, args->size))
		return CUDA_ERROR_INVALID_VALUE;
	result = range_check(session, args->address, args->size, args->device);
	if (result == CUDA_SUCCESS)
		result = gpd_allowance_obtain_memory(session, args->device, args->size,
						     &chunk.handle);
	if (result == CUDA_SUCCESS)
		return chunk_add_charged(session, &chunk);
	gpd_account_free(&session->account, args->device, args->size);
	return result;
}

/* Without gpd_account_allocate() and its handling of refusals: a failure here is not a refusal to
 * the program. */
CUresult
gpd_gpMemoryTry(struct gpd_session *session, const struct gp_args_gpMemoryTry *args)
{
	struct gpd_account *account = &session->account;
	struct gpd_chunk chunk = {
		.address = args->address,
		.size = args->size,
		.device = args->device,
		.granted = true,
	};
	CUresult result = gpd_account_may_use(account, args->device)
				  ? range_check(session, args->address, args->size, args->device)
				  : CUDA_ERROR_INVALID_DEVICE;

	if (result == CUDA_SUCCESS &&
	    !gpd_ledger_charge(account->ledger, account->entry, args->device, args->size))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS)
		return result;
	result = gpd_physical_obtain(args->size, args->device, &chunk.handle);
	if (result == CUDA_SUCCESS)
		return chunk_add_charged(session, &chunk);
	gpd_account_free(account, args->device, args->size);
	return result;
}

CUresult
gpd_memory_enable_peer_access(struct gpd_session *session, int device, int owner)
{
	struct gpd_memory *memory = session->memory;
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < memory->count && result == CUDA_SUCCESS; i++) {
		if (memory->chunks[i].device == owner && !memory->chunks[i].host)
			result = chunk_set_access(&memory->chunks[i], UINT32_C(1) << device);
	}
	if (result == CUDA_SUCCESS)
		memory->peer_access[owner] |= UINT32_C(1) << device;
	return result;
}

int
gpd_memory_create(struct gpd_session *session)
{
	struct gpd_memory *memory = calloc(1, sizeof(*memory));

	if (!memory)
		return -ENOMEM;
	memory->session = session;
	pthread_mutex_init(&memory->lock, NULL);
	session->memory = memory;
	return 0;
}

void
gpd_memory_set_array_ops(struct gpd_session *session, const struct gpd_memory_array_ops *ops)
{
	session->memory->array_ops = ops;
}

void
gpd_memory_unmap_all(struct gpd_session *session)
{
	struct gpd_memory *memory = session->memory;

	while (memory->leaving)
		gpd_memory_leave_now(memory->leaving);
	for (size_t i = 0; i < memory->count; i++) {
		gpd_chunk_drop(&memory->chunks[i]);
		gpd_memory_mapping_release(memory);
		if (memory->chunks[i].shared)
			gpd_shared_physical_unref(memory->chunks[i].shared, &session->account);
	}
	memory->count = 0;
	gpd_physical_destroy_all(session);
	for (size_t i = 0; i < RESERVED_MAX; i++) {
		if (!memory->reserved[i].size)
			continue;
		gpd_window_release(&memory->reserved[i]);
		memory->reserved[i].size = 0;
		gpd_memory_mapping_release(memory);
	}
}

void
gpd_memory_destroy(struct gpd_session *session)
{
	struct gpd_memory *memory = session->memory;

	if (!memory)
		return;
	pthread_mutex_destroy(&memory->lock);
	free(memory->chunks);
	free(memory);
	session->memory = NULL;
}
