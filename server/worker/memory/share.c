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
	struct gpd_shared *shared;
	uint64_t offset, size; /* the part of it that is meant */
};

/* The share has a use of its own, which goes with it. */
static void
drop(struct gpd_session *session, struct gpd_memory_share *share)
{
	gpd_offer_withdraw(&share->offer);
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
	handle->device = (uint8_t)share->shared->device;
	handle->mapping = share->shared->size;
	handle->offset = share->offset;
	handle->size = share->size;
	*handle_p = (struct gp_bytes){ handle, sizeof(*handle) };
	return CUDA_SUCCESS;
}

/* What is described, but for its name: copied, with a use of its own. */
static CUresult
share(struct gpd_session *session, const struct gpd_memory_share *what, uint32_t name,
      struct gp_bytes *handle_p)
{
	struct gpd_memory_share *made;
	CUresult result;

	if (!what->shared || !gpd_shared_use(what->shared, &session->account))
		return CUDA_ERROR_INVALID_VALUE;
	made = malloc(sizeof(*made));
	if (!made) {
		gpd_shared_leave(what->shared, &session->account);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*made = *what;
	made->offer.thing = made;
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

CUresult
gpd_gpMemoryShare(struct gpd_session *session, const struct gp_args_gpMemoryShare *args,
		  struct gp_reply_gpMemoryShare *reply)
{
	struct gpd_memory_share what = { .offer.kind = GP_IPC_MEMORY, .size = args->size };

	if (args->size)
		what.shared = gpd_memory_share(session, args->address, args->size, &what.offset);
	return share(session, &what, args->share, &reply->handle);
}

CUresult
gpd_gpPhysicalShare(struct gpd_session *session, const struct gp_args_gpPhysicalShare *args,
		    struct gp_reply_gpPhysicalShare *reply)
{
	struct gpd_memory_share what = { .offer.kind = GP_IPC_PHYSICAL };

	what.shared = gpd_physical_share(session, args->memory);
	what.size = what.shared ? what.shared->size : 0;
	return share(session, &what, args->share, &reply->handle);
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
check(const struct gpd_session *session, const struct gpd_offer *offer, uint64_t size, int device)
{
	const struct gpd_memory_share *share = offer->thing;

	if (offer->kind == GP_IPC_MEMORY && offer->line == session->account.line)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!gpd_account_may_use(&session->account, device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (share->shared->device != device)
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	return share->shared->size == size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* One more use of what the handle names. */
static CUresult
take(struct gpd_session *session, const struct gp_bytes *handle, enum gp_ipc_kind kind,
     uint64_t size, int device, struct gpd_shared **shared_p)
{
	const char *why = NULL;
	struct gpd_offer *offer;
	CUresult result;

	pthread_mutex_lock(&gpd_offers_lock);
	result = gpd_offer_find_locked(&session->account, handle, kind, &offer, &why);
	if (result == CUDA_SUCCESS)
		result = check(session, offer, size, device);
	if (result == CUDA_SUCCESS) {
		*shared_p = ((struct gpd_memory_share *)offer->thing)->shared;
		if (!gpd_shared_use(*shared_p, &session->account))
			result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&gpd_offers_lock);
	if (why)
		gpd_session_refuse_handle(session, why);
	return result;
}

CUresult
gpd_gpMemoryOpen(struct gpd_session *session, const struct gp_args_gpMemoryOpen *args)
{
	struct gpd_shared *shared = NULL;
	CUresult result =
		take(session, &args->handle, GP_IPC_MEMORY, args->size, args->device, &shared);

	if (result != CUDA_SUCCESS)
		return result;
	result = gpd_memory_open(session, args->address, shared);
	if (result != CUDA_SUCCESS)
		gpd_shared_leave(shared, &session->account);
	return result;
}

CUresult
gpd_gpPhysicalOpen(struct gpd_session *session, const struct gp_args_gpPhysicalOpen *args)
{
	struct gpd_shared *shared = NULL;
	CUresult result =
		take(session, &args->handle, GP_IPC_PHYSICAL, args->size, args->device, &shared);

	if (result != CUDA_SUCCESS)
		return result;
	result = gpd_physical_open(session, args->memory, shared);
	if (result != CUDA_SUCCESS)
		gpd_shared_leave(shared, &session->account);
	return result;
}
