/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/memory/ipc_memory.h"

#include "gpd_calls.h"
#include "server/worker/memory/memory.h"
#include "server/worker/memory/physical_memory.h"
#include "server/worker/memory/shared_physical.h"
#include "server/worker/session/ipc_export.h"
#include "server/worker/session/session.h"

#include <stdlib.h>

struct gpd_memory_export {
	struct gpd_handle handle;
	struct gpd_ipc_export ipc_export;
	int device;
	struct gpd_shared_physical *shared; /* NULL: a pool, which has no memory itself */
	uint64_t offset, size;              /* the exported part of it */
	uint32_t pool; /* export number of the pool that the memory belongs to */
};

/* Withdraws the export and drops its reference to the memory. */
static void
export_drop(struct gpd_session *session, struct gpd_memory_export *memory_export)
{
	gpd_ipc_export_withdraw(&memory_export->ipc_export);
	if (memory_export->shared)
		gpd_shared_physical_unref(memory_export->shared, &session->account);
	free(memory_export);
}

static CUresult
export_describe(const struct gpd_session *session, struct gpd_memory_export *memory_export,
		struct gp_bytes *handle_p)
{
	struct gp_ipc_handle *handle =
		gpd_ipc_export_create(&session->account, &memory_export->ipc_export);

	if (!handle)
		return CUDA_ERROR_OUT_OF_MEMORY;
	handle->device = (uint8_t)memory_export->device;
	handle->mapping = memory_export->shared ? memory_export->shared->size : 0;
	handle->offset = memory_export->offset;
	handle->size = memory_export->size;
	*handle_p = (struct gp_bytes){ handle, sizeof(*handle) };
	return CUDA_SUCCESS;
}

/* Creates an export as described, under an ID. */
static CUresult
memory_export(struct gpd_session *session, const struct gpd_memory_export *what, uint32_t id,
	      struct gp_bytes *handle_p)
{
	struct gpd_memory_export *made = malloc(sizeof(*made));
	CUresult result;

	if (!made)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*made = *what;
	made->ipc_export.thing = made;
	if (made->shared && !gpd_shared_physical_ref(made->shared, &session->account)) {
		free(made);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	result = gpd_session_add_handle(session, GPD_KIND_SHARE, id, &made->handle);
	if (result != CUDA_SUCCESS) {
		export_drop(session, made);
		return result;
	}
	result = export_describe(session, made, handle_p);
	if (result != CUDA_SUCCESS) {
		gpd_handle_remove(&session->handles, &made->handle);
		export_drop(session, made);
	}
	return result;
}

/* Adds a reference to the memory. */
static CUresult
export_create_memory(struct gpd_session *session, struct gpd_memory_export *what, uint32_t id,
		     struct gp_bytes *handle_p)
{
	if (!what->shared)
		return CUDA_ERROR_INVALID_VALUE;
	what->device = what->shared->device;
	return memory_export(session, what, id, handle_p);
}

CUresult
gpd_gpMemoryShare(struct gpd_session *session, const struct gp_args_gpMemoryShare *args,
		  struct gp_reply_gpMemoryShare *reply)
{
	struct gpd_memory_export what = { .ipc_export.kind = GP_IPC_MEMORY, .size = args->size };

	if (args->size)
		what.shared = gpd_memory_export(session, args->address, args->size, &what.offset);
	return export_create_memory(session, &what, args->share, &reply->handle);
}

CUresult
gpd_gpPhysicalShare(struct gpd_session *session, const struct gp_args_gpPhysicalShare *args,
		    struct gp_reply_gpPhysicalShare *reply)
{
	struct gpd_memory_export what = { .ipc_export.kind = GP_IPC_PHYSICAL };

	what.shared = gpd_physical_export(session, args->memory);
	what.size = what.shared ? what.shared->size : 0;
	return export_create_memory(session, &what, args->share, &reply->handle);
}

CUresult
gpd_gpPoolShare(struct gpd_session *session, const struct gp_args_gpPoolShare *args,
		struct gp_reply_gpPoolShare *reply)
{
	const struct gpd_memory_export what = { .ipc_export.kind = GP_IPC_POOL,
						.device = args->device };

	if (!gpd_account_may_use(&session->account, args->device))
		return CUDA_ERROR_INVALID_DEVICE;
	return memory_export(session, &what, args->share, &reply->handle);
}

CUresult
gpd_gpPoolMemoryShare(struct gpd_session *session, const struct gp_args_gpPoolMemoryShare *args,
		      struct gp_reply_gpPoolMemoryShare *reply)
{
	const struct gpd_memory_export *pool =
		gpd_handle_get(&session->handles, GPD_KIND_SHARE, args->pool);
	struct gpd_memory_export what = { .ipc_export.kind = GP_IPC_POOL_MEMORY,
					  .size = args->size };

	if (!pool || pool->ipc_export.kind != GP_IPC_POOL)
		return CUDA_ERROR_INVALID_HANDLE;
	what.pool = pool->ipc_export.number;
	if (args->size)
		what.shared = gpd_memory_export(session, args->address, args->size, &what.offset);
	if (what.shared && what.shared->device != pool->device)
		return CUDA_ERROR_INVALID_VALUE;
	return export_create_memory(session, &what, args->share, &reply->handle);
}

CUresult
gpd_gpUnshare(struct gpd_session *session, const struct gp_args_gpUnshare *args)
{
	struct gpd_memory_export *memory_export =
		gpd_handle_get(&session->handles, GPD_KIND_SHARE, args->share);

	if (!memory_export)
		return CUDA_ERROR_INVALID_HANDLE;
	gpd_handle_remove(&session->handles, &memory_export->handle);
	export_drop(session, memory_export);
	return CUDA_SUCCESS;
}

void
gpd_memory_exports_destroy(struct gpd_session *session)
{
	struct gpd_memory_export *memory_export;
	uint32_t at = 0;

	while ((memory_export = gpd_handle_next(&session->handles, GPD_KIND_SHARE, &at))) {
		gpd_handle_remove(&session->handles, &memory_export->handle);
		export_drop(session, memory_export);
	}
}

static CUresult
export_check_device(const struct gpd_session *session,
		    const struct gpd_memory_export *memory_export, int device)
{
	if (!gpd_account_may_use(&session->account, device))
		return CUDA_ERROR_INVALID_DEVICE;
	return memory_export->device == device ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
}

static CUresult
export_check(const struct gpd_session *session, const struct gpd_ipc_export *offer, uint64_t size,
	     int device)
{
	const struct gpd_memory_export *memory_export = offer->thing;
	CUresult result;

	if (offer->kind == GP_IPC_MEMORY && offer->entry == session->account.entry)
		return CUDA_ERROR_INVALID_CONTEXT;
	result = export_check_device(session, memory_export, device);
	if (result != CUDA_SUCCESS)
		return result;
	return memory_export->shared->size == size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Finds the pool that the handle refers to, and its number. */
static CUresult
find_pool_locked(const struct gpd_session *session, const struct gp_bytes *handle, int device,
		 uint32_t *number_p, const char **why_p) GP_LOCKED(gpd_ipc_exports_lock)
{
	struct gpd_ipc_export *offer;
	CUresult result =
		gpd_ipc_export_find_locked(&session->account, handle, GP_IPC_POOL, &offer, why_p);

	if (result != CUDA_SUCCESS)
		return result;
	*number_p = offer->number;
	return export_check_device(session, offer->thing, device);
}

struct wanted {
	const struct gp_bytes *handle, *pool; /* pool: for memory of a pool, else NULL */
	enum gp_ipc_kind kind;
	uint64_t size;
	int device;
};

static CUresult
find_locked(const struct gpd_session *session, const struct wanted *wanted,
	    struct gpd_memory_export **share_p, const char **why_p) GP_LOCKED(gpd_ipc_exports_lock)
{
	struct gpd_ipc_export *offer = NULL;
	uint32_t pool = 0;
	CUresult result = CUDA_SUCCESS;

	if (wanted->pool)
		result = find_pool_locked(session, wanted->pool, wanted->device, &pool, why_p);
	if (result == CUDA_SUCCESS)
		result = gpd_ipc_export_find_locked(&session->account, wanted->handle, wanted->kind,
						    &offer, why_p);
	if (result == CUDA_SUCCESS)
		result = export_check(session, offer, wanted->size, wanted->device);
	if (result != CUDA_SUCCESS)
		return result;
	*share_p = offer->thing;
	return (*share_p)->pool == pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Adds a reference to the wanted memory. */
static CUresult
shared_acquire(struct gpd_session *session, const struct wanted *wanted,
	       struct gpd_shared_physical **shared_p)
{
	struct gpd_memory_export *memory_export;
	const char *why = NULL;
	CUresult result;

	pthread_mutex_lock(&gpd_ipc_exports_lock);
	result = find_locked(session, wanted, &memory_export, &why);
	if (result == CUDA_SUCCESS) {
		*shared_p = memory_export->shared;
		if (!gpd_shared_physical_ref(*shared_p, &session->account))
			result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&gpd_ipc_exports_lock);
	if (why)
		gpd_session_refuse_handle(session, why);
	return result;
}

/* place: the address for it, or (GP_IPC_PHYSICAL) its ID. */
static CUresult
open_memory(struct gpd_session *session, const struct wanted *wanted, uint64_t place)
{
	struct gpd_shared_physical *shared = NULL;
	CUresult result = shared_acquire(session, wanted, &shared);

	if (result != CUDA_SUCCESS)
		return result;
	result = wanted->kind == GP_IPC_PHYSICAL
			 ? gpd_physical_open(session, (uint32_t)place, shared)
			 : gpd_memory_open(session, place, shared);
	if (result != CUDA_SUCCESS)
		gpd_shared_physical_unref(shared, &session->account);
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

	pthread_mutex_lock(&gpd_ipc_exports_lock);
	result = find_pool_locked(session, &args->handle, args->device, &number, &why);
	pthread_mutex_unlock(&gpd_ipc_exports_lock);
	if (why)
		gpd_session_refuse_handle(session, why);
	return result;
}

CUresult
gpd_gpPhysicalOpen(struct gpd_session *session, const struct gp_args_gpPhysicalOpen *args)
{
	const struct wanted wanted = { &args->handle, NULL, GP_IPC_PHYSICAL, args->size,
				       args->device };

	return open_memory(session, &wanted, args->memory);
}
