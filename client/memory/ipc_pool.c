/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory/ipc_pool.h"

#include "base/lock.h"
#include "client/alloc/heap.h"
#include "client/base/log.h"
#include "client/base/ranges.h"
#include "client/context/context.h"
#include "client/host/host_block.h"
#include "client/host/host_range.h"
#include "client/host/host_space.h"
#include "client/host/pool_block.h"
#include "client/memory/address.h"
#include "client/memory/ipc_export.h"
#include "client/memory/memory.h"
#include "client/memory/pool.h"
#include "client/session/call.h"
#include "client/session/session.h"
#include "gpc_calls.h"
#include "transport/shm/sealed_memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Name of the file of a host memory pool. */
#define FILE_NAME "gpupool-host-pool"

/* A mapping of another process's pool. */
struct import {
	struct import *next;
	struct gpc_pool *pool; /* referenced */
	struct gpc_heap_range range;
	struct gp_ipc_handle ipc_handle;
	unsigned int blocks;
	uint64_t tag; /* host memory: work up to this mark may use freed blocks */
};

struct block {
	struct import *import;
	uint64_t id;
};

/* Serializes the calls, including their round trips; mere lookups use the other lock. */
static pthread_mutex_t calls_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct import *imports GP_GUARDED_BY(calls_lock);
static struct gpc_ranges blocks GP_GUARDED_BY(lock); /* struct block */
static atomic_bool any;
static atomic_uint
	unused; /* number of imports of host memory without blocks, which wait for work */

bool
gpc_pool_any_shared(void)
{
	return atomic_load_explicit(&any, memory_order_relaxed);
}

/* Exports. */

static CUresult
pool_request_export(struct gpc_ipc_export *export, const struct gpc_pool *pool)
{
	const struct gp_args_gpPoolShare args = { .share = export->handle.id,
						  .device = pool->device->remote };
	struct gp_reply_gpPoolShare reply;
	void *raw = NULL;
	CUresult result = gpc_wait_gpPoolShare(export->context, &args, &reply, &raw);

	return gpc_reply_copy_bytes(result, &reply.handle, &export->ipc_handle,
				    sizeof(export->ipc_handle), raw);
}

static CUresult
mapping_request_export(struct gpc_ipc_export *export, const struct gpc_pool *pool,
		       const struct gpc_heap_range *range)
{
	const struct gp_args_gpPoolMemoryShare args = {
		.share = export->handle.id,
		.pool = pool->export->handle.id,
		.address = range->base,
		.size = range->size,
	};
	struct gp_reply_gpPoolMemoryShare reply;
	void *raw = NULL;
	CUresult result = gpc_wait_gpPoolMemoryShare(export->context, &args, &reply, &raw);

	return gpc_reply_copy_bytes(result, &reply.handle, &export->ipc_handle,
				    sizeof(export->ipc_handle), raw);
}

/* Exports the pool itself, or one of its mappings if range is not NULL. */
static CUresult
export_create(const struct gpc_pool *pool, const struct gpc_heap_range *range,
	      struct gpc_ipc_export **share_p)
{
	struct gpc_ipc_export *export = gpc_handle_new(GPC_KIND_SHARE, sizeof(*export));
	CUresult result;

	if (!export)
		return CUDA_ERROR_OUT_OF_MEMORY;
	export->context = pool->device->primary;
	result = range ? mapping_request_export(export, pool, range)
		       : pool_request_export(export, pool);
	if (result == CUDA_SUCCESS)
		*share_p = export;
	else
		gpc_handle_remove(&export->handle);
	return result;
}

/* Returns a referenced pool that may be exported, or NULL. */
static struct gpc_pool *
pool_ref_exportable(CUmemoryPool handle)
{
	struct gpc_pool *pool;

	gpc_pools_lock();
	pool = gpc_pool_get(handle);
	if (pool && pool->handle_types == CU_MEM_HANDLE_TYPE_NONE)
		pool = NULL;
	if (pool)
		gpc_pool_ref(pool);
	gpc_pools_unlock();
	return pool;
}

CUresult
gpc_pool_export(CUmemoryPool handle, struct gp_ipc_handle *ipc_handle)
{
	struct gpc_pool *pool = pool_ref_exportable(handle);
	CUresult result;

	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	(void)pthread_mutex_lock(&calls_lock);
	atomic_store(&any, true);
	/* The export of a referenced pool cannot be withdrawn. */
	result = pool->export ? CUDA_SUCCESS : export_create(pool, NULL, &pool->export);
	if (result == CUDA_SUCCESS)
		*ipc_handle = pool->export->ipc_handle;
	(void)pthread_mutex_unlock(&calls_lock);
	gpc_pool_unref(pool);
	return result;
}

static bool
fd_get_inode(int fd, uint64_t *inode_p)
{
	struct stat status;

	if (fstat(fd, &status))
		return false;
	*inode_p = (uint64_t)status.st_ino;
	return true;
}

int
gpc_pool_create_file(struct gpc_device *device)
{
	const uint64_t size = gpc_host_space_size(device->primary);

	return size ? gp_sealed_create(FILE_NAME, size, false) : -1;
}

CUresult
gpc_pool_export_file(CUmemoryPool handle, int *fd_p)
{
	struct gpc_pool *pool = pool_ref_exportable(handle);
	CUresult result = CUDA_ERROR_NOT_SUPPORTED;

	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (pool->file >= 0) {
		*fd_p = fcntl(pool->file, F_DUPFD_CLOEXEC, 0);
		result = *fd_p < 0 ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
	}
	if (result == CUDA_SUCCESS) {
		atomic_store(&any, true);
		atomic_store(&gpc_host_memory_exchanged, true);
		gpc_pools_lock();
		pool->exported = true;
		gpc_pools_unlock();
	}
	gpc_pool_unref(pool);
	return result;
}

/* The location of a block, and the present export of its mapping, or NULL. */
struct block_location {
	struct gpc_pool *pool;
	struct gpc_heap_range mapping;
	struct gpc_space_block block;
	struct gpc_ipc_export *export;
};

/* Called with the pools' lock held. */
static bool
location_find(uint64_t address, struct block_location *block_location)
{
	struct gpc_space_mapping *mapping = gpc_pool_find_mapping(address);

	if (!mapping || !gpc_space_find(mapping, address, &block_location->block) ||
	    block_location->block.address != address)
		return false;
	block_location->pool = gpc_pool_from_mapping(mapping);
	block_location->mapping =
		(struct gpc_heap_range){ .base = mapping->base, .size = mapping->size };
	block_location->export = mapping->export;
	return block_location->pool->handle_types != CU_MEM_HANDLE_TYPE_NONE &&
	       (block_location->pool->file < 0 || block_location->pool->exported);
}

static bool
location_find_and_ref(uint64_t address, struct block_location *block_location)
{
	bool found;

	gpc_pools_lock();
	found = location_find(address, block_location);
	if (found)
		gpc_pool_ref(block_location->pool);
	gpc_pools_unlock();
	return found;
}

/* The mapping still exists, unless the program has freed the block in the meantime. */
static bool
location_set_export(struct block_location *block_location, struct gpc_ipc_export *export)
{
	struct block_location now;
	bool same;

	gpc_pools_lock();
	same = location_find(block_location->block.address, &now) &&
	       now.mapping.base == block_location->mapping.base && !now.export;
	if (same)
		gpc_pool_find_mapping(block_location->block.address)->export = export;
	gpc_pools_unlock();
	block_location->export = export;
	return same;
}

/* Copies whose calls have returned may still be in progress; later copies are waited for
 * (pointer.h). */
static CUresult
location_export_mapping(struct block_location *block_location) GP_LOCKED(calls_lock)
{
	struct gpc_context *context = block_location->pool->device->primary;
	struct gpc_ipc_export *export;
	CUresult result = gpc_memory_settle(context);

	if (result == CUDA_SUCCESS)
		result = gpc_memory_set_uncacheable(context, block_location->mapping.base);
	if (result == CUDA_SUCCESS)
		result = export_create(block_location->pool, &block_location->mapping, &export);
	if (result != CUDA_SUCCESS || location_set_export(block_location, export))
		return result;
	gpc_ipc_export_withdraw(export);
	return CUDA_ERROR_INVALID_VALUE;
}

/* Builds the handle of memory in a pool's file. *ipc_handle contains mapping, offset and size. */
static bool
host_handle_init(int fd, uint64_t file_offset, struct gp_ipc_handle *ipc_handle)
{
	*ipc_handle = (struct gp_ipc_handle){
		.kind = GP_IPC_HOST_POOL_MEMORY,
		.mapping = ipc_handle->mapping,
		.offset = ipc_handle->offset,
		.size = ipc_handle->size,
	};
	memcpy(ipc_handle->magic, GP_IPC_MAGIC, sizeof(ipc_handle->magic));
	memcpy(ipc_handle->secret, &file_offset, sizeof(file_offset));
	return fd_get_inode(fd, &ipc_handle->daemon);
}

/* The pool is referenced. */
static CUresult
host_block_export(const struct block_location *block_location, struct gp_ipc_handle *ipc_handle)
{
	ipc_handle->mapping = block_location->mapping.size;
	ipc_handle->offset = block_location->block.address - block_location->mapping.base;
	ipc_handle->size = block_location->block.size;
	return host_handle_init(block_location->pool->file,
				gpc_host_space_offset(block_location->mapping.base), ipc_handle)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OPERATING_SYSTEM;
}

static CUresult
device_block_export(struct block_location *block_location, struct gp_ipc_handle *ipc_handle)
	GP_LOCKED(calls_lock)
{
	CUresult result = CUDA_SUCCESS;

	if (!block_location->pool->export)
		return CUDA_ERROR_INVALID_VALUE;
	if (!block_location->export)
		result = location_export_mapping(block_location);
	if (result != CUDA_SUCCESS)
		return result;
	*ipc_handle = block_location->export->ipc_handle;
	ipc_handle->offset = block_location->block.address - block_location->mapping.base;
	ipc_handle->size = block_location->block.size;
	return CUDA_SUCCESS;
}

CUresult
gpc_pool_export_block(uint64_t address, struct gp_ipc_handle *ipc_handle)
{
	struct block_location block_location;
	CUresult result;

	(void)pthread_mutex_lock(&calls_lock);
	if (!location_find_and_ref(address, &block_location)) {
		(void)pthread_mutex_unlock(&calls_lock);
		return CUDA_ERROR_INVALID_VALUE;
	}
	result = block_location.pool->file < 0 ? device_block_export(&block_location, ipc_handle)
					       : host_block_export(&block_location, ipc_handle);
	(void)pthread_mutex_unlock(&calls_lock);
	gpc_pool_unref(block_location.pool);
	return result;
}

/* Imports. */

CUresult
gpc_pool_import(struct gpc_device *device, const struct gp_ipc_handle *ipc_handle,
		CUmemoryPool *handle_p)
{
	const struct gp_args_gpPoolOpen args = { .device = device->remote,
						 .handle = { ipc_handle, sizeof(*ipc_handle) } };
	struct gpc_pool *pool;
	CUresult result;

	if (!gpc_ipc_handle_is_of_kind(ipc_handle, GP_IPC_POOL))
		return CUDA_ERROR_INVALID_VALUE;
	result = gpc_wait_gpPoolOpen(device->primary, &args);
	if (result != CUDA_SUCCESS)
		return result;
	atomic_store(&any, true);
	gpc_pools_lock();
	pool = gpc_pool_create(device);
	if (pool) {
		pool->imported = true;
		pool->origin = *ipc_handle;
		*handle_p = pool->handle.token;
	}
	gpc_pools_unlock();
	return pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* A session may have only one mapping of a file, because two would be separate replicas for
 * kernels. */
static bool
file_is_own(int fd)
{
	const struct gpc_pool *pool = gpc_pools_first();
	uint64_t inode, other;

	if (!fd_get_inode(fd, &inode))
		return false;
	while (pool && (pool->imported || pool->file < 0 || !fd_get_inode(pool->file, &other) ||
			other != inode))
		pool = pool->next;
	return pool != NULL;
}

/* Takes ownership of the descriptor, also on failure. */
static CUresult
pool_create_from_file(struct gpc_device *device, int fd, CUmemoryPool *handle_p)
{
	struct gpc_pool *pool = NULL;
	bool own;

	gpc_pools_lock();
	own = file_is_own(fd);
	if (!own)
		pool = gpc_pool_create(device);
	if (pool) {
		pool->location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
		pool->location.id = 0;
		pool->host = pool->imported = true;
		pool->file = fd;
		*handle_p = pool->handle.token;
	}
	gpc_pools_unlock();
	if (pool)
		return CUDA_SUCCESS;
	(void)close(fd);
	if (own)
		gpc_log_warn(
			"pool of host memory: the process that created it cannot import it; use "
			"the pool itself");
	return own ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
gpc_pool_import_file(int fd, CUmemoryPool *handle_p)
{
	struct gpc_device *device = gpc_pool_device();
	size_t size;
	int own;

	if (!gp_sealed_has_name(fd, FILE_NAME) || gp_sealed_check(fd, &size))
		return CUDA_ERROR_INVALID_VALUE;
	if (!gpc_pool_can_be_host(device))
		return CUDA_ERROR_NOT_SUPPORTED;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	atomic_store(&any, true);
	atomic_store(&gpc_host_memory_exchanged, true);
	return pool_create_from_file(device, own, handle_p);
}

bool
gpc_pool_find_imported(uint64_t address, struct gpc_address *found)
{
	const struct gpc_range *range;

	if (!gpc_pool_any_shared())
		return false;
	(void)pthread_rwlock_rdlock(&lock);
	range = gpc_ranges_find(&blocks, address, 1);
	if (range) {
		const struct block *block = range->item;
		const struct import *import = block->import;

		*found = (struct gpc_address){
			.kind = GPC_ADDRESS_DEVICE,
			.base = range->base,
			.size = range->size,
			.context = import->pool->device->primary,
			.buffer_id = block->id,
			.mapping_base = import->range.base,
			.mapping_size = import->range.size,
			.pool = import->pool->handle.token,
			.contextless = true,
			.shared = true,
		};
	}
	(void)pthread_rwlock_unlock(&lock);
	return range != NULL;
}

static uint64_t
file_offset(const struct gp_ipc_handle *ipc_handle)
{
	uint64_t offset;

	memcpy(&offset, ipc_handle->secret, sizeof(offset));
	return offset;
}

/* The handle comes from another process: it must denote memory inside the pool's file, whose size
 * is sealed. */
static bool
host_handle_is_valid(const struct gp_ipc_handle *ipc_handle, int fd)
{
	const uint64_t from = file_offset(ipc_handle);
	struct gp_ipc_handle same = *ipc_handle;
	size_t size;

	return host_handle_init(fd, from, &same) && memcmp(ipc_handle, &same, sizeof(same)) == 0 &&
	       gp_sealed_check(fd, &size) == 0 && ipc_handle->mapping > 0 &&
	       ipc_handle->mapping <= size && from <= size - ipc_handle->mapping &&
	       (ipc_handle->mapping | from) % GPC_HOST_GRANULARITY == 0 &&
	       ipc_handle->offset < ipc_handle->mapping && ipc_handle->size > 0 &&
	       ipc_handle->size <= ipc_handle->mapping - ipc_handle->offset;
}

static CUresult
import_request(const struct import *import)
{
	const struct gp_args_gpPoolMemoryOpen args = {
		.address = import->range.base,
		.size = import->range.size,
		.device = import->pool->device->remote,
		.pool = { &import->pool->origin, sizeof(import->pool->origin) },
		.handle = { &import->ipc_handle, sizeof(import->ipc_handle) },
	};

	return gpc_wait_gpPoolMemoryOpen(import->pool->device->primary, &args);
}

static CUresult
import_map(struct import *import)
{
	struct gpc_context *context = import->pool->device->primary;
	CUresult result;

	if (import->pool->host) {
		import->range.size = import->ipc_handle.mapping;
		return gpc_host_space_map_file(context, import->range.size, import->pool->file,
					       file_offset(&import->ipc_handle),
					       &import->range.base);
	}
	result = gpc_memory_reserve_addresses(context, import->ipc_handle.mapping, &import->range);
	if (result == CUDA_ERROR_OUT_OF_MEMORY && gpc_memory_reclaim(context) == CUDA_SUCCESS)
		result = gpc_memory_reserve_addresses(context, import->ipc_handle.mapping,
						      &import->range);
	if (result != CUDA_SUCCESS)
		return result;
	result = import_request(import);
	if (result != CUDA_SUCCESS)
		gpc_memory_unreserve_addresses(context, &import->range);
	return result;
}

static void
import_unmap(const struct import *import)
{
	const struct gp_args_gpMemoryUnmap args = { .address = import->range.base,
						    .size = import->range.size };
	struct gpc_context *context = import->pool->device->primary;

	if (import->pool->host) {
		gpc_host_pooled_reap(&(struct gpc_host_pooled_query){ .base = import->range.base,
								      .size = import->range.size });
		gpc_host_space_free(context, import->range.base, true);
		return;
	}
	(void)gpc_post_gpMemoryUnmap(context, &args);
	gpc_memory_unreserve_addresses(context, &import->range);
}

/* Returns whether work posted before blocks were freed may still use them. */
static bool
import_is_waiting(const struct import *import)
{
	return gpc_session_work_done(import->pool->device->session) < import->tag;
}

/* Closes a mapping without imported blocks. Host functions and copies may still use host memory. */
static void
import_close_unused(struct import *import) GP_LOCKED(calls_lock)
{
	struct import **link = &imports;

	if (import->blocks > 0 || (import->pool->host && import_is_waiting(import)))
		return;
	while (*link != import)
		link = &(*link)->next;
	*link = import->next;
	if (import->pool->host)
		atomic_fetch_sub(&unused, 1);
	import_unmap(import);
	gpc_pool_unref(import->pool);
	free(import);
}

void
gpc_pool_close_unused(void)
{
	struct import *next;

	if (atomic_load(&unused) == 0)
		return;
	(void)pthread_mutex_lock(&calls_lock);
	for (struct import *import = imports; import; import = next) {
		next = import->next;
		if (import->pool->host && import->blocks == 0 && import_is_waiting(import))
			gpc_memory_poll(import->pool->device->primary);
		if (import->pool->host)
			import_close_unused(import);
	}
	(void)pthread_mutex_unlock(&calls_lock);
}

/* A session has one mapping of a file even if it was imported as two pools. */
static bool
pools_share_mappings(const struct gpc_pool *pool, const struct gpc_pool *other)
{
	return pool == other ||
	       (pool->host && other->host && pool->device->session == other->device->session);
}

/* Handles of pointers into one mapping are equal up to the offset. */
static struct import *
import_find(const struct gpc_pool *pool, const struct gp_ipc_handle *ipc_handle)
	GP_LOCKED(calls_lock)
{
	struct import *import = imports;

	while (import && (!pools_share_mappings(import->pool, pool) ||
			  memcmp(&import->ipc_handle, ipc_handle,
				 offsetof(struct gp_ipc_handle, offset)) != 0))
		import = import->next;
	return import;
}

static CUresult
import_open(struct gpc_pool *pool, const struct gp_ipc_handle *ipc_handle, struct import **import_p)
	GP_LOCKED(calls_lock)
{
	struct import *import = calloc(1, sizeof(*import));
	CUresult result;

	if (!import)
		return CUDA_ERROR_OUT_OF_MEMORY;
	import->pool = pool;
	import->ipc_handle = *ipc_handle;
	result = import_map(import);
	if (result != CUDA_SUCCESS) {
		free(import);
		return result;
	}
	gpc_pools_lock();
	gpc_pool_ref(pool);
	gpc_pools_unlock();
	import->next = imports;
	imports = import;
	if (pool->host)
		atomic_fetch_add(&unused, 1);
	*import_p = import;
	return CUDA_SUCCESS;
}

/* Removes the block that starts at the address from the table. */
static struct block *
block_remove(uint64_t address)
{
	struct gpc_range *range;
	struct block *block = NULL;

	(void)pthread_rwlock_wrlock(&lock);
	range = gpc_ranges_find(&blocks, address, 1);
	if (range && range->base == address) {
		block = range->item;
		gpc_ranges_remove(&blocks, range);
	}
	(void)pthread_rwlock_unlock(&lock);
	return block;
}

/* Kernels may still be writing to blocks that were freed there; that must finish first. */
static int
host_block_create(const struct import *import, uint64_t address, uint64_t size, uint64_t id)
{
	struct gpc_context *context = import->pool->device->primary;

	if (import_is_waiting(import) && gpc_memory_settle(context) != CUDA_SUCCESS)
		return GP_E_RESOURCE;
	return gpc_host_pooled_create(context, address, size, id, import->pool->handle.token, true);
}

static CUresult
block_add(struct import *import, uint64_t address, uint64_t size)
{
	struct block *block = calloc(1, sizeof(*block));
	int r;

	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*block = (struct block){ .import = import, .id = gpc_memory_next_id() };
	(void)pthread_rwlock_wrlock(&lock);
	r = gpc_ranges_add(&blocks, address, size, block);
	(void)pthread_rwlock_unlock(&lock);
	if (r == 0 && import->pool->host) {
		r = host_block_create(import, address, size, block->id);
		if (r)
			(void)block_remove(address);
	}
	if (r == 0) {
		if (import->blocks++ == 0 && import->pool->host)
			atomic_fetch_sub(&unused, 1);
		return CUDA_SUCCESS;
	}
	free(block);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Returns whether any block overlaps; *same_p is set to whether it is the same one. */
static bool
blocks_overlap(uint64_t address, uint64_t size, bool *same_p)
{
	const struct gpc_range *range;

	(void)pthread_rwlock_rdlock(&lock);
	range = gpc_ranges_find(&blocks, address, size);
	*same_p = range && range->base == address && range->size == size;
	(void)pthread_rwlock_unlock(&lock);
	return range != NULL;
}

/* Device memory that is imported twice exists once, and is freed once; host memory is rejected, as
 * NVIDIA's driver does (580, measured). An overlap with a different block that the program has not
 * freed is an error. */
static CUresult
import_add_block(struct import *import, const struct gp_ipc_handle *ipc_handle, uint64_t *address_p)
{
	const uint64_t address = import->range.base + ipc_handle->offset;
	CUresult result = CUDA_SUCCESS;
	bool same;

	if (!blocks_overlap(address, ipc_handle->size, &same))
		result = block_add(import, address, ipc_handle->size);
	else if (!same)
		result = CUDA_ERROR_INVALID_VALUE;
	else if (import->pool->host)
		result = CUDA_ERROR_ALREADY_MAPPED;
	if (result == CUDA_SUCCESS)
		*address_p = address;
	return result;
}

static CUresult
pool_import_block(struct gpc_pool *pool, const struct gp_ipc_handle *ipc_handle,
		  uint64_t *address_p)
{
	struct import *import;
	CUresult result = CUDA_SUCCESS;

	(void)pthread_mutex_lock(&calls_lock);
	import = import_find(pool, ipc_handle);
	if (!import)
		result = import_open(pool, ipc_handle, &import);
	if (result == CUDA_SUCCESS) {
		result = import_add_block(import, ipc_handle, address_p);
		import_close_unused(import);
	}
	(void)pthread_mutex_unlock(&calls_lock);
	return result;
}

CUresult
gpc_pool_import_block(CUmemoryPool handle, const struct gp_ipc_handle *ipc_handle,
		      uint64_t *address_p)
{
	struct gpc_pool *pool;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	gpc_pools_lock();
	pool = gpc_pool_get(handle);
	if (pool && !pool->imported)
		pool = NULL;
	if (pool)
		gpc_pool_ref(pool);
	gpc_pools_unlock();
	if (!pool)
		return result;
	if (pool->host ? host_handle_is_valid(ipc_handle, pool->file)
		       : gpc_ipc_handle_is_valid(ipc_handle, GP_IPC_POOL_MEMORY,
						 gpc_session_facts(pool->device->session)))
		result = pool_import_block(pool, ipc_handle, address_p);
	gpc_pool_unref(pool);
	return result;
}

static void
host_block_free(struct import *import, uint64_t address, const struct gpc_context *context,
		uint64_t stream) GP_LOCKED(calls_lock)
{
	const struct gpc_space_free_order end =
		gpc_pool_number_free(import->pool->device->session, context, stream);

	import->tag = end.tag;
	gpc_host_pooled_free(address, &end);
	if (import->blocks > 0)
		return;
	atomic_fetch_add(&unused, 1);
	if (import_is_waiting(import))
		gpc_memory_poll(import->pool->device->primary);
}

/* The daemon orders the unmapping after the posted work of all streams. */
CUresult
gpc_pool_free_imported(uint64_t address, const struct gpc_context *context, uint64_t stream)
{
	struct block *block;

	if (!gpc_pool_any_shared())
		return CUDA_ERROR_INVALID_VALUE;
	(void)pthread_mutex_lock(&calls_lock);
	block = block_remove(address);
	if (block) {
		block->import->blocks--;
		if (block->import->pool->host)
			host_block_free(block->import, address, context, stream);
		import_close_unused(block->import);
		free(block);
	}
	(void)pthread_mutex_unlock(&calls_lock);
	return block ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
