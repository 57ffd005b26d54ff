/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory/ipc_memory.h"

#include "base/lock.h"
#include "client/alloc/heap.h"
#include "client/base/ranges.h"
#include "client/context/context.h"
#include "client/memory/address.h"
#include "client/memory/ipc_export.h"
#include "client/memory/memory.h"
#include "client/session/call.h"
#include "client/session/session.h"
#include "gpc_calls.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A mapping of another process's memory. */
struct import {
	struct gpc_context *context;
	struct gpc_heap_range range;
	struct gp_ipc_handle ipc_handle;
	uint64_t id;
	unsigned int count; /* number of cuIpcOpenMemHandle minus cuIpcCloseMemHandle */
};

/* Serializes the calls, including their round trips; mere lookups use the other lock. */
static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
/* Sorted by address; exports are allocations, imports whole mappings. */
static struct gpc_ranges exports GP_GUARDED_BY(lock), imports GP_GUARDED_BY(lock);
static atomic_bool any;

bool
gpc_ipc_memory_any(void)
{
	return atomic_load_explicit(&any, memory_order_relaxed);
}

static void *
ranges_find(const struct gpc_ranges *ranges, uint64_t at)
{
	const struct gpc_range *range;
	void *item;

	(void)pthread_rwlock_rdlock(&lock);
	range = gpc_ranges_find(ranges, at, 1);
	item = range ? range->item : NULL;
	(void)pthread_rwlock_unlock(&lock);
	return item;
}

bool
gpc_ipc_memory_is_shared(uint64_t address)
{
	return gpc_ipc_memory_any() &&
	       (ranges_find(&exports, address) || ranges_find(&imports, address));
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

/* Removes the range that contains the address. Returns its item, or NULL. */
static void *
ranges_remove(struct gpc_ranges *ranges, uint64_t at)
{
	struct gpc_range *range;
	void *item;

	(void)pthread_rwlock_wrlock(&lock);
	range = gpc_ranges_find(ranges, at, 1);
	item = range ? range->item : NULL;
	if (range)
		gpc_ranges_remove(ranges, range);
	(void)pthread_rwlock_unlock(&lock);
	return item;
}

/* Exports. */

bool
gpc_ipc_memory_can_export(const struct gpc_address *found)
{
	return found->kind == GPC_ADDRESS_DEVICE && found->plain &&
	       gpc_facts_have_call(gpc_session_facts(found->context->scope.session),
				   GP_CALL_gpMemoryShare);
}

/* Returns the export that starts at the address, or NULL. */
static struct gpc_ipc_export *
export_find(uint64_t address)
{
	struct gpc_ipc_export *export = ranges_find(&exports, address);

	return export && export->address == address ? export : NULL;
}

void
gpc_ipc_memory_withdraw(uint64_t address)
{
	if (!gpc_ipc_memory_any())
		return;
	(void)pthread_mutex_lock(&calls_lock);
	if (export_find(address))
		gpc_ipc_export_withdraw(ranges_remove(&exports, address));
	(void)pthread_mutex_unlock(&calls_lock);
}

static CUresult
export_request(struct gpc_ipc_export *export, const struct gpc_address *found)
{
	const struct gp_args_gpMemoryShare args = {
		.share = export->handle.id,
		.address = found->base,
		.size = found->size,
	};
	struct gp_reply_gpMemoryShare reply;
	void *raw = NULL;
	CUresult result = gpc_wait_gpMemoryShare(export->context, &args, &reply, &raw);

	return gpc_reply_copy_bytes(result, &reply.handle, &export->ipc_handle,
				    sizeof(export->ipc_handle), raw);
}

static CUresult
export_create(const struct gpc_address *found)
{
	struct gpc_ipc_export *export = gpc_handle_new(GPC_KIND_SHARE, sizeof(*export));
	CUresult result;

	if (!export)
		return CUDA_ERROR_OUT_OF_MEMORY;
	export->context = found->context;
	export->address = found->base;
	result = gpc_memory_set_uncacheable(found->context, found->mapping_base);
	if (result == CUDA_SUCCESS)
		result = export_request(export, found);
	if (result != CUDA_SUCCESS) {
		gpc_handle_remove(&export->handle);
		return result;
	}
	if (ranges_add(&exports, found->base, found->size, export) == 0)
		return CUDA_SUCCESS;
	gpc_ipc_export_withdraw(export);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* The handle of an allocation never changes. */
static CUresult
export_get_handle(const struct gpc_address *found, CUipcMemHandle *handle)
{
	CUresult result = CUDA_SUCCESS;

	(void)pthread_mutex_lock(&calls_lock);
	if (!export_find(found->base))
		result = export_create(found);
	if (result == CUDA_SUCCESS)
		memcpy(handle, &export_find(found->base)->ipc_handle, sizeof(*handle));
	(void)pthread_mutex_unlock(&calls_lock);
	return result;
}

CUresult
gpc_cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
	struct gpc_context *context;
	struct gpc_address found;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	gpc_address_lookup(dptr, &found);
	if (!pHandle || found.kind != GPC_ADDRESS_DEVICE || !found.plain)
		return CUDA_ERROR_INVALID_VALUE;
	atomic_store(&any, true);
	/* Copies whose calls have returned may still be in progress; later copies are waited for
	 * (pointer.h). */
	if (!gpc_ipc_memory_is_shared(found.base))
		result = gpc_memory_settle(found.context);
	return result == CUDA_SUCCESS ? export_get_handle(&found, pHandle) : result;
}

/* Imports. */

bool
gpc_ipc_memory_find(uint64_t address, struct gpc_address *found)
{
	const struct gpc_range *range;
	const struct import *import;

	if (!gpc_ipc_memory_any())
		return false;
	(void)pthread_rwlock_rdlock(&lock);
	range = gpc_ranges_find(&imports, address, 1);
	import = range ? range->item : NULL;
	if (import && address - range->base >= import->ipc_handle.offset &&
	    address - range->base - import->ipc_handle.offset < import->ipc_handle.size)
		*found = (struct gpc_address){
			.kind = GPC_ADDRESS_DEVICE,
			.base = range->base + import->ipc_handle.offset,
			.size = import->ipc_handle.size,
			.context = import->context,
			.buffer_id = import->id,
			.mapping_base = range->base,
			.mapping_size = range->size,
		};
	(void)pthread_rwlock_unlock(&lock);
	return range != NULL;
}

static CUresult
import_reserve_addresses(struct import *import)
{
	CUresult result = gpc_memory_reserve_addresses(import->context, import->ipc_handle.mapping,
						       &import->range);

	if (result == CUDA_ERROR_OUT_OF_MEMORY &&
	    gpc_memory_reclaim(import->context) == CUDA_SUCCESS)
		result = gpc_memory_reserve_addresses(import->context, import->ipc_handle.mapping,
						      &import->range);
	return result;
}

static CUresult
import_request(const struct import *import)
{
	const struct gp_args_gpMemoryOpen args = {
		.address = import->range.base,
		.size = import->range.size,
		.device = import->context->device->remote,
		.handle = { &import->ipc_handle, sizeof(import->ipc_handle) },
	};

	return gpc_wait_gpMemoryOpen(import->context, &args);
}

static void
import_unmap(const struct import *import)
{
	const struct gp_args_gpMemoryUnmap args = { .address = import->range.base,
						    .size = import->range.size };

	(void)gpc_post_gpMemoryUnmap(import->context->device->primary, &args);
	gpc_memory_unreserve_addresses(import->context, &import->range);
}

static CUresult
import_map(struct import *import)
{
	CUresult result = import_reserve_addresses(import);

	if (result != CUDA_SUCCESS)
		return result;
	result = import_request(import);
	if (result != CUDA_SUCCESS) {
		gpc_memory_unreserve_addresses(import->context, &import->range);
		return result;
	}
	import->id = gpc_memory_next_id();
	if (ranges_add(&imports, import->range.base, import->range.size, import) == 0)
		return CUDA_SUCCESS;
	import_unmap(import);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static struct import *
import_find_opened(const struct gpc_context *context, const struct gp_ipc_handle *ipc_handle)
{
	struct import *found = NULL;

	(void)pthread_rwlock_rdlock(&lock);
	for (size_t i = 0; !found && i < imports.count; i++) {
		struct import *import = imports.list[i].item;

		if (import->context == context &&
		    memcmp(&import->ipc_handle, ipc_handle, sizeof(*ipc_handle)) == 0)
			found = import;
	}
	(void)pthread_rwlock_unlock(&lock);
	return found;
}

static CUresult
import_create(struct gpc_context *context, const struct gp_ipc_handle *ipc_handle,
	      struct import **import_p)
{
	struct import *import = calloc(1, sizeof(*import));
	CUresult result;

	if (!import)
		return CUDA_ERROR_OUT_OF_MEMORY;
	import->context = context;
	import->ipc_handle = *ipc_handle;
	result = import_map(import);
	if (result == CUDA_SUCCESS)
		*import_p = import;
	else
		free(import);
	return result;
}

CUresult
gpc_cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	struct gpc_context *context;
	struct import *import;
	struct gp_ipc_handle ipc_handle;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	memcpy(&ipc_handle, &handle, sizeof(ipc_handle));
	if (!pdptr || Flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ||
	    !gpc_ipc_handle_is_valid(&ipc_handle, GP_IPC_MEMORY,
				     gpc_session_facts(context->scope.session)))
		return CUDA_ERROR_INVALID_VALUE;
	atomic_store(&any, true);
	(void)pthread_mutex_lock(&calls_lock);
	import = import_find_opened(context, &ipc_handle);
	if (!import)
		result = import_create(context, &ipc_handle, &import);
	if (result == CUDA_SUCCESS) {
		import->count++;
		*pdptr = import->range.base + import->ipc_handle.offset;
	}
	(void)pthread_mutex_unlock(&calls_lock);
	return result;
}

/* Called with calls_lock held. */
static void
import_destroy(struct import *import)
{
	(void)ranges_remove(&imports, import->range.base);
	import_unmap(import);
	free(import);
}

static CUresult
import_close(uint64_t address)
{
	struct import *import = ranges_find(&imports, address);

	if (!import || address != import->range.base + import->ipc_handle.offset)
		return CUDA_ERROR_INVALID_VALUE;
	if (--import->count == 0)
		import_destroy(import);
	return CUDA_SUCCESS;
}

CUresult
gpc_cuIpcCloseMemHandle(CUdeviceptr dptr)
{
	struct gpc_context *context;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	(void)pthread_mutex_lock(&calls_lock);
	result = import_close(dptr);
	(void)pthread_mutex_unlock(&calls_lock);
	return result;
}

/* Returns any import of the context, or NULL. */
static struct import *
context_next_import(const struct gpc_context *context)
{
	struct import *found = NULL;

	(void)pthread_rwlock_rdlock(&lock);
	for (size_t i = 0; !found && i < imports.count; i++) {
		struct import *import = imports.list[i].item;

		found = import->context == context ? import : NULL;
	}
	(void)pthread_rwlock_unlock(&lock);
	return found;
}

static struct gpc_ipc_export *
context_next_export(const struct gpc_context *context)
{
	struct gpc_ipc_export *found = NULL;

	(void)pthread_rwlock_rdlock(&lock);
	for (size_t i = 0; !found && i < exports.count; i++) {
		struct gpc_ipc_export *export = exports.list[i].item;

		found = export->context == context ? export : NULL;
	}
	(void)pthread_rwlock_unlock(&lock);
	return found;
}

void
gpc_ipc_memory_drop_context(struct gpc_context *context)
{
	struct import *import;
	struct gpc_ipc_export *export;

	if (!gpc_ipc_memory_any())
		return;
	(void)pthread_mutex_lock(&calls_lock);
	while ((import = context_next_import(context)))
		import_destroy(import);
	while ((export = context_next_export(context)))
		gpc_ipc_export_withdraw(ranges_remove(&exports, export->address));
	(void)pthread_mutex_unlock(&calls_lock);
}
