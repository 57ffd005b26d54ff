/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management: addresses that a client reserves besides its window, and mappings of
 * physical memory.  The hooks of gpAddressReserve, gpAddressFree, gpMemoryAttach, gpMemoryPlace and
 * gpHostPlace.
 */
#include "gpd_calls.h"
#include "server/worker/device/window.h"
#include "server/worker/host/host_space.h"
#include "server/worker/memory/memory.h"
#include "server/worker/memory/memory_internal.h"
#include "server/worker/memory/physical_memory.h"
#include "server/worker/session/session.h"

/* Maximum total size of the ranges besides the window: all sessions share the address space. */
#define RESERVED_SIZE_MAX ((uint64_t)1 << 40)

CUresult
gpd_gpAddressReserve(struct gpd_session *session, const struct gp_args_gpAddressReserve *args,
		     struct gp_reply_gpAddressReserve *reply)
{
	struct gpd_range *chunk_place = NULL, *ranges = session->memory->reserved;
	uint64_t sum = 0;

	for (size_t i = 0; i < RESERVED_MAX; i++) {
		sum += ranges[i].size;
		if (ranges[i].size == 0)
			chunk_place = &ranges[i];
	}
	if (args->size == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!chunk_place || args->size > RESERVED_SIZE_MAX - sum ||
	    !gpd_memory_mapping_acquire(session->memory))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (gpd_window_acquire(args->size, 0, NULL, 0, chunk_place)) {
		gpd_memory_mapping_release(session->memory);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	reply->address = chunk_place->address;
	return CUDA_SUCCESS;
}

CUresult
gpd_gpAddressFree(struct gpd_session *session, const struct gp_args_gpAddressFree *args)
{
	struct gpd_memory *memory = session->memory;
	CUresult result;
	size_t i = 0, at;

	while (i < RESERVED_MAX &&
	       (memory->reserved[i].size == 0 || memory->reserved[i].address != args->address))
		i++;
	if (i == RESERVED_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	at = gpd_memory_find(memory, args->address);
	if (at < memory->count &&
	    memory->chunks[at].address < args->address + memory->reserved[i].size)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpd_memory_wait_unmapped(memory, args->address, memory->reserved[i].size);
	if (result != CUDA_SUCCESS)
		return result;
	gpd_window_release(&memory->reserved[i]);
	memory->reserved[i].size = 0;
	gpd_memory_mapping_release(memory);
	return CUDA_SUCCESS;
}

static CUresult
physical_attach(struct gpd_session *session, uint32_t memory, uint64_t address, uint64_t size)
{
	struct gpd_physical *physical = gpd_physical_get(session, memory);

	if (!physical || physical->tiles || size > physical->size)
		return CUDA_ERROR_INVALID_VALUE;
	return gpd_memory_attach(session, address, size, physical);
}

CUresult
gpd_gpMemoryAttach(struct gpd_session *session, const struct gp_args_gpMemoryAttach *args)
{
	return physical_attach(session, args->memory, args->address, args->size);
}

CUresult
gpd_gpMemoryPlace(struct gpd_session *session, const struct gp_args_gpMemoryPlace *args)
{
	return physical_attach(session, args->memory, args->address, args->size);
}

CUresult
gpd_gpHostPlace(struct gpd_session *session, const struct gp_args_gpHostPlace *args)
{
	struct gpd_host_arena *arena;
	CUresult result;

	if (!gpd_account_may_use(&session->account, args->device))
		return CUDA_ERROR_INVALID_DEVICE;
	result = gpd_host_memory_prepare(session, args->address, args->size, &arena);
	if (result != CUDA_SUCCESS)
		return result;
	result = gpd_memory_map_host(session, args->address, args->size, args->device);
	if (result == CUDA_SUCCESS)
		gpd_host_memory_publish(session, arena);
	else
		gpd_host_memory_abandon(session, arena);
	return result;
}
