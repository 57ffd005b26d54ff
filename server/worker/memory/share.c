/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/memory/share.h"

#include "gpd_calls.h"
#include "server/worker/memory/memory.h"
#include "server/worker/memory/physical.h"
#include "server/worker/session/session.h"
#include "server/worker/share/offer.h"
#include "server/worker/share/shared.h"

#include <stdlib.h>

struct gpd_memory_share {
	struct gpd_handle name;
	struct gpd_offer offer;
	int device;
	struct gpd_shared *shared; /* NULL: it is a pool, which has none of its own */
	uint64_t offset, size;     /* the part of it that is meant */
	uint32_t pool;             /* of a pool's memory: the number of the pool's offer */
};

/* The share has a use of its own, which goes with it. */
static void
drop(struct gpd_session *session, struct gpd_memory_share *share)
{
	gpd_offer_withdraw(&share->offer);
	if (share->shared)
		gpd_shared_leave(share->shared, &session->account);
	free(share);
}

static CUresult
describe(const struct gpd_session *session, struct gpd_memory_share *share,
	 struct gp_bytes *handle_p)
{
	struct gp_ipc_handle *handle = calloc(1, sizeof(*handle));

	if (!handle || !gpd_offer_make(&session->account, &share->offer, handle)) {
		free(handle);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	handle->device = (uint8_t)share->device;
	handle->mapping = share->shared ? share->shared->size : 0;
	handle->offset = share->offset;
	handle->size = share->size;
	*handle_p = (struct gp_bytes){ handle, sizeof(*handle) };
	return CUDA_SUCCESS;
}

/* What is described, but for its name: copied. */
static CUresult
share(struct gpd_session *session, const struct gpd_memory_share *what, uint32_t name,
      struct gp_bytes *handle_p)
{
	struct gpd_memory_share *made = malloc(sizeof(*made));
	CUresult result;

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*made = *what;
	made->offer.thing = made;
	if (made->shared && !gpd_shared_use(made->shared, &session->account)) {
		free(made);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	result = gpd_session_name(session, GPD_KIND_SHARE, name, &made->name);
	if (result != CUDA_SUCCESS) {
		drop(session, made);
		return result;
	}
	result = describe(session, made, handle_p);
	if (result != CUDA_SUCCESS) {
		gpd_handle_remove(&session->handles, &made->name);
		drop(session, made);
	}
	return result;
}

/* With a use of the memory. */
static CUresult
share_memory(struct gpd_session *session, struct gpd_memory_share *what, uint32_t name,
	     struct gp_bytes *handle_p)
{
	if (!what->shared)
		return CUDA_ERROR_INVALID_VALUE;
	what->device = what->shared->device;
	return share(session, what, name, handle_p);
}

CUresult
gpd_gpMemoryShare(struct gpd_session *session, const struct gp_args_gpMemoryShare *args,
		  struct gp_reply_gpMemoryShare *reply)
{
	struct gpd_memory_share what = { .offer.kind = GP_IPC_MEMORY, .size = args->size };

	if (args->size)
		what.shared = gpd_memory_share(session, args->address, args->size, &what.offset);
	return share_memory(session, &what, args->share, &reply->handle);
}

CUresult
gpd_gpPhysicalShare(struct gpd_session *session, const struct gp_args_gpPhysicalShare *args,
		    struct gp_reply_gpPhysicalShare *reply)
{
	struct gpd_memory_share what = { .offer.kind = GP_IPC_PHYSICAL };

	what.shared = gpd_physical_share(session, args->memory);
	what.size = what.shared ? what.shared->size : 0;
	return share_memory(session, &what, args->share, &reply->handle);
}

CUresult
gpd_gpPoolShare(struct gpd_session *session, const struct gp_args_gpPoolShare *args,
		struct gp_reply_gpPoolShare *reply)
{
	const struct gpd_memory_share what = { .offer.kind = GP_IPC_POOL, .device = args->device };

	if (!gpd_account_may_use(&session->account, args->device))
		return CUDA_ERROR_INVALID_DEVICE;
	return share(session, &what, args->share, &reply->handle);
}

CUresult
gpd_gpPoolMemoryShare(struct gpd_session *session, const struct gp_args_gpPoolMemoryShare *args,
		      struct gp_reply_gpPoolMemoryShare *reply)
{
	const struct gpd_memory_share *pool =
		gpd_handle_get(&session->handles, GPD_KIND_SHARE, args->pool);
	struct gpd_memory_share what = { .offer.kind = GP_IPC_POOL_MEMORY, .size = args->size };

	if (!pool || pool->offer.kind != GP_IPC_POOL)
		return CUDA_ERROR_INVALID_HANDLE;
	what.pool = pool->offer.number;
	if (args->size)
		what.shared = gpd_memory_share(session, args->address, args->size, &what.offset);
	if (what.shared && what.shared->device != pool->device)
		return CUDA_ERROR_INVALID_VALUE;
	return share_memory(session, &what, args->share, &reply->handle);
}

CUresult
gpd_gpUnshare(struct gpd_session *session, const struct gp_args_gpUnshare *args)
{
	struct gpd_memory_share *share =
		gpd_handle_get(&session->handles, GPD_KIND_SHARE, args->share);

	if (!share)
		return CUDA_ERROR_INVALID_HANDLE;
	gpd_handle_remove(&session->handles, &share->name);
	drop(session, share);
	return CUDA_SUCCESS;
}

void
gpd_share_forget(struct gpd_session *session)
{
	struct gpd_memory_share *share;
	uint32_t at = 0;

	while ((share = gpd_handle_next(&session->handles, GPD_KIND_SHARE, &at))) {
		gpd_handle_remove(&session->handles, &share->name);
		drop(session, share);
	}
}

static CUresult
check_device(const struct gpd_session *session, const struct gpd_memory_share *share, int device)
{
	if (!gpd_account_may_use(&session->account, device))
		return CUDA_ERROR_INVALID_DEVICE;
	return share->device == device ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
}

static CUresult
check(const struct gpd_session *session, const struct gpd_offer *offer, uint64_t size, int device)
{
	const struct gpd_memory_share *share = offer->thing;
	CUresult result;

	if (offer->kind == GP_IPC_MEMORY && offer->line == session->account.line)
		return CUDA_ERROR_INVALID_CONTEXT;
	result = check_device(session, share, device);
	if (result != CUDA_SUCCESS)
		return result;
	return share->shared->size == size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The pool that the handle names, and its number. */
static CUresult
find_pool_locked(const struct gpd_session *session, const struct gp_bytes *handle, int device,
		 uint32_t *number_p, const char **why_p) GP_LOCKED(gpd_offers_lock)
{
	struct gpd_offer *offer;
	CUresult result =
		gpd_offer_find_locked(&session->account, handle, GP_IPC_POOL, &offer, why_p);

	if (result != CUDA_SUCCESS)
		return result;
	*number_p = offer->number;
	return check_device(session, offer->thing, device);
}

struct wanted {
	const struct gp_bytes *handle, *pool; /* pool: of memory of one */
	enum gp_ipc_kind kind;
	uint64_t size;
	int device;
};

static CUresult
find_locked(const struct gpd_session *session, const struct wanted *wanted,
	    struct gpd_memory_share **share_p, const char **why_p) GP_LOCKED(gpd_offers_lock)
{
	struct gpd_offer *offer = NULL;
	uint32_t pool = 0;
	CUresult result = CUDA_SUCCESS;

	if (wanted->pool)
		result = find_pool_locked(session, wanted->pool, wanted->device, &pool, why_p);
	if (result == CUDA_SUCCESS)
		result = gpd_offer_find_locked(&session->account, wanted->handle, wanted->kind,
					       &offer, why_p);
	if (result == CUDA_SUCCESS)
		result = check(session, offer, wanted->size, wanted->device);
	if (result != CUDA_SUCCESS)
		return result;
	*share_p = offer->thing;
	return (*share_p)->pool == pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* One more use of what is wanted. */
static CUresult
take(struct gpd_session *session, const struct wanted *wanted, struct gpd_shared **shared_p)
{
	struct gpd_memory_share *share;
	const char *why = NULL;
	CUresult result;

	pthread_mutex_lock(&gpd_offers_lock);
	result = find_locked(session, wanted, &share, &why);
	if (result == CUDA_SUCCESS) {
		*shared_p = share->shared;
		if (!gpd_shared_use(*shared_p, &session->account))
			result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&gpd_offers_lock);
	if (why)
		gpd_session_refuse_handle(session, why);
	return result;
}

static CUresult
open_memory(struct gpd_session *session, const struct wanted *wanted, uint64_t address)
{
	struct gpd_shared *shared = NULL;
	CUresult result = take(session, wanted, &shared);

	if (result != CUDA_SUCCESS)
		return result;
	result = gpd_memory_open(session, address, shared);
	if (result != CUDA_SUCCESS)
		gpd_shared_leave(shared, &session->account);
	return result;
}

CUresult
gpd_gpMemoryOpen(struct gpd_session *session, const struct gp_args_gpMemoryOpen *args)
{
	const struct wanted wanted = { &args->handle, NULL, GP_IPC_MEMORY, args->size,
				       args->device };

	return open_memory(session, &wanted, args->address);
}

CUresult
gpd_gpPoolMemoryOpen(struct gpd_session *session, const struct gp_args_gpPoolMemoryOpen *args)
{
	const struct wanted wanted = { &args->handle, &args->pool, GP_IPC_POOL_MEMORY, args->size,
				       args->device };

	return open_memory(session, &wanted, args->address);
}

CUresult
gpd_gpPoolOpen(struct gpd_session *session, const struct gp_args_gpPoolOpen *args)
{
	const char *why = NULL;
	uint32_t number;
	CUresult result;

	pthread_mutex_lock(&gpd_offers_lock);
	result = find_pool_locked(session, &args->handle, args->device, &number, &why);
	pthread_mutex_unlock(&gpd_offers_lock);
	if (why)
		gpd_session_refuse_handle(session, why);
	return result;
}

CUresult
gpd_gpPhysicalOpen(struct gpd_session *session, const struct gp_args_gpPhysicalOpen *args)
{
	const struct wanted wanted = { &args->handle, NULL, GP_IPC_PHYSICAL, args->size,
				       args->device };
	struct gpd_shared *shared = NULL;
	CUresult result = take(session, &wanted, &shared);

	if (result != CUDA_SUCCESS)
		return result;
	result = gpd_physical_open(session, args->memory, shared);
	if (result != CUDA_SUCCESS)
		gpd_shared_leave(shared, &session->account);
	return result;
}
