/* SPDX-License-Identifier: Apache-2.0 */
/* Unmapping of device memory, and waits for it. */
#include "gpd_calls.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/host/host_space.h"
#include "server/worker/memory/allowance.h"
#include "server/worker/memory/memory_internal.h"
#include "server/worker/memory/physical_memory.h"
#include "server/worker/memory/shared_physical.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/responder.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static struct gpd_leaving *
find_leaving(struct gpd_memory *memory, uint64_t address, uint64_t size)
{
	struct gpd_leaving *leaving = memory->leaving;

	while (leaving && (leaving->chunk.address >= address + size ||
			   leaving->chunk.address + leaving->chunk.size <= address))
		leaving = leaving->next;
	return leaving;
}

CUresult
gpd_memory_wait_unmapped(struct gpd_memory *memory, uint64_t address, uint64_t size)
{
	struct gpd_leaving *leaving;

	pthread_mutex_lock(&memory->lock);
	while ((leaving = find_leaving(memory, address, size)) && !leaving->wedged) {
		pthread_mutex_unlock(&memory->lock);
		gpd_wait_any(memory->session);
		pthread_mutex_lock(&memory->lock);
	}
	pthread_mutex_unlock(&memory->lock);
	return leaving ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static bool
is_leaving(struct gpd_memory *memory)
{
	bool leaving;

	pthread_mutex_lock(&memory->lock);
	leaving = memory->leaving != NULL;
	pthread_mutex_unlock(&memory->lock);
	return leaving;
}

/* The driver unmaps without waiting for the device. */
void
gpd_memory_leave_now(struct gpd_leaving *leaving)
{
	struct gpd_memory *memory = leaving->memory;
	struct gpd_physical *physical = leaving->chunk.physical;
	bool last = false;

	gpd_chunk_drop(&leaving->chunk);
	gpd_memory_mapping_release(memory);
	pthread_mutex_lock(&memory->lock);
	LL_DELETE(memory->leaving, leaving);
	if (physical)
		last = --physical->leaving == 0 && physical->released;
	pthread_mutex_unlock(&memory->lock);
	/* Only now can the tenant use it again. */
	if (leaving->chunk.host)
		gpd_account_uncharge_pinned(&memory->session->account,
					    gpd_host_memory_counts(leaving->chunk.size, false));
	else if (leaving->chunk.shared)
		gpd_shared_physical_unref(leaving->chunk.shared, &memory->session->account);
	else if (!physical)
		gpd_account_free(&memory->session->account, leaving->chunk.device,
				 leaving->chunk.size);
	else if (last)
		gpd_physical_finish(memory->session, physical);
	gpd_ledger_free_end(memory->session->account.entry, leaving->free_epoch);
	free(leaving);
}

static void
leaving_unused(struct gpd_session *session, void *arg, CUresult result)
{
	gpd_memory_leave_now(arg);
}

CUresult
gpd_gpMemoryUnmap(struct gpd_session *session, const struct gp_args_gpMemoryUnmap *args)
{
	struct gpd_memory *memory = session->memory;
	size_t i = gpd_memory_find(memory, args->address);
	struct gpd_leaving *leaving;
	CUresult result;

	if (i == memory->count || memory->chunks[i].address != args->address ||
	    memory->chunks[i].size != args->size)
		return CUDA_ERROR_INVALID_VALUE;
	leaving = malloc(sizeof(*leaving));
	if (!leaving)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (memory->chunks[i].host)
		gpd_host_memory_displace(session, args->address);
	*leaving =
		(struct gpd_leaving){ .memory = memory,
				      .chunk = memory->chunks[i],
				      .free_epoch = gpd_ledger_free_begin(session->account.entry) };
	if (leaving->chunk.physical)
		leaving->chunk.physical->mappings--;
	memory->count--;
	memmove(&memory->chunks[i], &memory->chunks[i + 1],
		(memory->count - i) * sizeof(struct gpd_chunk));
	pthread_mutex_lock(&memory->lock);
	if (leaving->chunk.physical)
		leaving->chunk.physical->leaving++;
	LL_PREPEND(memory->leaving, leaving);
	pthread_mutex_unlock(&memory->lock);
	result = gpd_wait_add_all(session, NULL, leaving_unused, leaving);
	/* The context is lost, or about to be: the chunk is freed with the session. */
	if (result != CUDA_SUCCESS)
		leaving->wedged = true;
	return result;
}

/* Bytes that the driver gets back with this chunk. Physical memory that was released is freed when
 * the last of its mappings has been unmapped. */
static uint64_t
leaving_part(const struct gpd_chunk *chunk)
{
	struct gpd_physical *physical = chunk->physical;

	if (!physical)
		return chunk->shared || chunk->host ? 0 : chunk->size;
	if (!physical->released || physical->counted || physical->shared)
		return 0;
	physical->counted = true;
	return physical->size;
}

/* Bytes that the session has unmapped and the driver has not yet freed. */
static uint64_t
leaving_size(struct gpd_memory *memory, int device)
{
	uint64_t size = 0;

	pthread_mutex_lock(&memory->lock);
	for (struct gpd_leaving *leaving = memory->leaving; leaving; leaving = leaving->next) {
		if (leaving->chunk.physical)
			leaving->chunk.physical->counted = false;
	}
	for (const struct gpd_leaving *leaving = memory->leaving; leaving;
	     leaving = leaving->next) {
		if (leaving->chunk.device == device)
			size += leaving_part(&leaving->chunk);
	}
	pthread_mutex_unlock(&memory->lock);
	return size;
}

/* The same of arrays: of the session, or (NULL) of sessions that have ended. */
static uint64_t
arrays_get_leaving_size(const struct gpd_memory *memory, const struct gpd_session *session,
			int device)
{
	return memory->array_ops ? memory->array_ops->leaving_size(session, device) : 0;
}

bool
gpd_memory_release_later(struct gpd_session *session, struct gpd_physical *physical)
{
	struct gpd_memory *memory = session->memory;
	bool later;

	pthread_mutex_lock(&memory->lock);
	later = physical->leaving > 0;
	physical->released = later;
	pthread_mutex_unlock(&memory->lock);
	return later;
}

bool
gpd_memory_wait_freed(struct gpd_session *session)
{
	bool waited = is_leaving(session->memory);

	if (session->memory->array_ops)
		waited = session->memory->array_ops->wait_freed(session) || waited;
	if (is_leaving(session->memory))
		(void)gpd_memory_wait_unmapped(session->memory, 0, UINT64_MAX);
	return waited;
}

bool
gpd_memory_wait(struct gpd_session *session, int device, uint64_t *until)
{
	struct gpd_memory *memory = session->memory;

	/* Memory freed by the client may still have been in use. */
	if (*until == 0 && is_leaving(memory) &&
	    gpd_memory_wait_unmapped(memory, 0, UINT64_MAX) == CUDA_SUCCESS)
		return true;
	if (*until == 0 && memory->array_ops && memory->array_ops->wait_idle_freed(session, device))
		return true;
	return gpd_account_wait(&session->account, false, until);
}

CUresult
gpd_gpMemoryInfo(struct gpd_session *session, const struct gp_args_gpMemoryInfo *args,
		 struct gp_reply_gpMemoryInfo *reply)
{
	struct gpd_ledger_headroom quota;
	struct gpd_ledger_reclaimable cached;
	size_t available, total;
	uint64_t leaving;
	CUresult result;

	/* Programs choose their sizes by this reply, and often start right after others. */
	gpd_account_wait_ended(&session->account);
	/* First the memory being freed: it may be freed between the two queries, and free memory
	 * must not seem to shrink. */
	leaving = leaving_size(session->memory, args->device) +
		  arrays_get_leaving_size(session->memory, session, args->device);
	result = gpd_account_may_use(&session->account, args->device)
			 ? gpd_device_get_memory(args->device, &available, &total)
			 : CUDA_ERROR_INVALID_DEVICE;
	if (result != CUDA_SUCCESS)
		return result;
	cached = gpd_ledger_reclaimable(session->account.ledger, session->account.entry,
					args->device);
	available += leaving + arrays_get_leaving_size(session->memory, NULL, args->device) +
		     gpd_allowance_get_excess(session, args->device) + cached.of_device;
	if (available > total)
		available = total;
	quota = gpd_ledger_headroom(session->account.ledger, session->account.entry, args->device,
				    cached.of_tenant);
	if (quota.left < quota.max)
		quota.left += leaving < quota.max - quota.left ? leaving : quota.max - quota.left;
	reply->free = quota.left < available ? quota.left : available;
	reply->total = quota.max < total ? quota.max : total;
	return CUDA_SUCCESS;
}

CUresult
gpd_gpMemoryKeep(struct gpd_session *session, const struct gp_args_gpMemoryKeep *args)
{
	uint32_t none = 0, nothing = GPD_CACHE_EMPTY;

	if (!atomic_compare_exchange_strong(&session->send.keep_request, &none,
					    session->current.request))
		return CUDA_ERROR_INVALID_VALUE;
	/* If GPD_CACHE_EMPTY was not set, the client has been requested to return its cache and has
	 * yet to report that. */
	(void)atomic_compare_exchange_strong(&session->account.entry->cache_state, &nothing,
					     GPD_CACHE_FILLED);
	return GPD_LATER;
}

CUresult
gpd_gpMemoryCountKept(struct gpd_session *session, const struct gp_args_gpMemoryCountKept *args)
{
	if (!gpd_account_may_use(&session->account, args->device))
		return CUDA_ERROR_INVALID_DEVICE;
	atomic_store(&session->account.entry->devices[args->device].cached, args->bytes);
	return CUDA_SUCCESS;
}

CUresult
gpd_gpMemoryKept(struct gpd_session *session, const struct gp_args_gpMemoryKept *args)
{
	gpd_ledger_set_cached(session->account.ledger, session->account.entry,
			      atomic_load(&session->send.keep_request) != 0);
	return CUDA_SUCCESS;
}
