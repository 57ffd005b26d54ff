/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/host_block.h"

#include "base/lock.h"
#include "client/base/log.h"
#include "client/context/context.h"
#include "client/context/fence.h"
#include "client/guard/guard.h"
#include "client/host/coherence.h"
#include "client/host/host_alias.h"
#include "client/host/host_space.h"
#include "client/host/late_copy.h"
#include "client/host/listed_copy.h"
#include "client/host/pending_copy.h"
#include "client/host/pointer_scan.h"
#include "client/session/lane.h"
#include "gpc_calls.h"
#include "transport/transport.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct gpc_ranges blocks GP_GUARDED_BY(lock);
/* Registered and replicated blocks, by their device address. */
static struct gpc_ranges device_ranges GP_GUARDED_BY(lock);
/* Serializes the threads that map a block for kernels or remove one. */
static pthread_mutex_t change_lock = PTHREAD_MUTEX_INITIALIZER;

atomic_uint gpc_host_memory_copy_only, gpc_host_memory_registered, gpc_host_memory_shared;
atomic_bool gpc_host_memory_exchanged;
/* Bounds of all addresses that memory ever had. */
struct bounds {
	atomic_uint_fast64_t low, high;
};

/* Of registered memory; and of all blocks, by host and device addresses. */
static struct bounds registered_bounds = { UINT64_MAX, 0 }, all_bounds = { UINT64_MAX, 0 };

static void
bounds_extend(struct bounds *bounds, uint64_t address, uint64_t size)
{
	uint_fast64_t low = atomic_load(&bounds->low), high = atomic_load(&bounds->high);

	while (address < low && !atomic_compare_exchange_weak(&bounds->low, &low, address))
		continue;
	while (address + size > high &&
	       !atomic_compare_exchange_weak(&bounds->high, &high, address + size))
		continue;
}

static bool
bounds_have(const struct bounds *bounds, uint64_t address)
{
	return address >= atomic_load(&bounds->low) && address < atomic_load(&bounds->high);
}

bool
gpc_host_block_may_be_registered(uint64_t address)
{
	return bounds_have(&registered_bounds, address);
}

bool
gpc_host_block_is_mapped(const void *memory, size_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), end = (uintptr_t)memory + size;
	uintptr_t start = (uintptr_t)memory & ~(page - 1);

	gpc_guard_block();
	/* MS_ASYNC has no effect except that it fails with ENOMEM for a hole. */
	return end > (uintptr_t)memory && msync((void *)start, end - start, MS_ASYNC) == 0;
}

static bool
session_has_shared_block(const struct gpc_session *session) GP_LOCKED(lock)
{
	for (size_t i = 0; i < blocks.count; i++) {
		const struct gpc_host_block *block = blocks.list[i].item;

		if (block->state == GPC_HOST_SHARED && block->context->scope.session == session)
			return true;
	}
	return false;
}

/* Returns whether the session has a replicated block of this origin, not counting speculative
 * ones. */
static bool
session_has_replica(const struct gpc_session *session, enum gpc_host_origin origin) GP_LOCKED(lock)
{
	for (size_t i = 0; i < blocks.count; i++) {
		const struct gpc_host_block *block = blocks.list[i].item;

		if (block->state == GPC_HOST_REPLICATED && !block->speculative &&
		    block->origin == origin && block->context->scope.session == session)
			return true;
	}
	return false;
}

/* Replicated memory of sessions that also have shared memory, by origin: whether there was any, and
 * whether the program was warned. */
static struct {
	const char *subject, *where; /* NULL: never replicated in such sessions */
	atomic_bool present, warned;
} replicas[] = {
	[GPC_HOST_REGISTERED] = { .subject = "registered host memory",
				  .where = "registered memory" },
	[GPC_HOST_POOLED] = { .subject = "exportable pool of host memory", .where = "the pool" },
	[GPC_HOST_PLACED] = { .subject = "cuMemMap() of host memory",
			      .where = "memory that cuMemMap() mapped" },
};

/* Called after a block was shared, or one of this origin replicated. If a session has both, a
 * polled flag in one may be seen before its data in the other (docs/memory-model.md). */
static void
session_warn_polled_flags(const struct gpc_session *session, enum gpc_host_origin origin)
{
	bool both;

	if (!replicas[origin].subject || !atomic_load(&replicas[origin].present) ||
	    atomic_load(&replicas[origin].warned))
		return;
	(void)pthread_rwlock_wrlock(&lock);
	both = session_has_shared_block(session) && session_has_replica(session, origin);
	(void)pthread_rwlock_unlock(&lock);
	if (both && !atomic_exchange(&replicas[origin].warned, true))
		gpc_log_warn("%s: a kernel or thread that polls a flag in pinned memory may see it "
			     "before its data in %s; keep both in one kind of memory",
			     replicas[origin].subject, replicas[origin].where);
}

/* Called when kernels can access the daemon's replica of the block. */
static void
block_note_replica(const struct gpc_host_block *block)
{
	atomic_store(&replicas[block->origin].present, true);
	session_warn_polled_flags(block->context->scope.session, block->origin);
}

int
gpc_host_block_add(void *address, size_t size, const struct gpc_host_block *what)
{
	struct gpc_host_block *block = malloc(sizeof(*block));
	int r;

	if (!block)
		return -ENOMEM;
	*block = *what;
	block->host = (uintptr_t)address;
	bounds_extend(&all_bounds, (uintptr_t)address, size);
	(void)pthread_rwlock_wrlock(&lock);
	r = gpc_ranges_add(&blocks, (uintptr_t)address, size, block);
	(void)pthread_rwlock_unlock(&lock);
	if (r) {
		free(block);
		return r;
	}
	if (what->state == GPC_HOST_COPY_ONLY)
		atomic_fetch_add(&gpc_host_memory_copy_only, 1);
	if (what->state == GPC_HOST_SHARED) {
		atomic_fetch_add(&gpc_host_memory_shared, 1);
		gpc_session_count_visible_blocks(what->context->scope.session, 1);
		for (size_t i = 0; atomic_load(&gpc_replica_count) > 0 &&
				   i < sizeof(replicas) / sizeof(replicas[0]);
		     i++)
			session_warn_polled_flags(what->context->scope.session,
						  (enum gpc_host_origin)i);
	}
	if (what->origin == GPC_HOST_REGISTERED) {
		bounds_extend(&registered_bounds, (uintptr_t)address, size);
		atomic_fetch_add(&gpc_host_memory_registered, 1);
	}
	gp_memory_register(address, size);
	gpc_session_note_pinned(what->context->scope.session);
	return 0;
}

bool
gpc_host_block_find(uint64_t address, struct gpc_range *range_p, struct gpc_host_block *copy_p,
		    bool *elsewhere_p)
{
	const struct gpc_range *range;

	/* A quick check, as most copies concern other memory. */
	if (!bounds_have(&all_bounds, address))
		return false;
	(void)pthread_rwlock_rdlock(&lock);
	range = gpc_ranges_find(&blocks, address, 1);
	if (elsewhere_p) {
		*elsewhere_p = !range;
		if (!range)
			range = gpc_ranges_find(&device_ranges, address, 1);
	}
	if (range) {
		*range_p = *range;
		*copy_p = *(const struct gpc_host_block *)range->item;
	}
	(void)pthread_rwlock_unlock(&lock);
	return range != NULL;
}

void
gpc_host_block_note_awaited(uint64_t address)
{
	const struct gpc_range *range;

	(void)pthread_rwlock_wrlock(&lock);
	range = gpc_ranges_find(&blocks, address, 1);
	if (!range)
		range = gpc_ranges_find(&device_ranges, address, 1);
	if (range)
		((struct gpc_host_block *)range->item)->awaited = true;
	(void)pthread_rwlock_unlock(&lock);
}

/* Other threads may still write the values, so this waits for all work, as NVIDIA's driver does. */
CUresult
gpc_host_block_settle_wait_values(uint64_t address)
{
	struct gpc_host_block block;
	struct gpc_range range;

	return gpc_host_block_find(address, &range, &block, NULL) && block.awaited
		       ? gpc_fence_wait(block.context)
		       : CUDA_SUCCESS;
}

static void
device_ranges_drop(const struct gpc_host_block *block)
{
	struct gpc_range *range;

	if (!block->worker_range.size)
		return;
	(void)pthread_rwlock_wrlock(&lock);
	range = gpc_ranges_find(&device_ranges, block->device, 1);
	if (range)
		gpc_ranges_remove(&device_ranges, range);
	(void)pthread_rwlock_unlock(&lock);
}

struct gpc_host_block *
gpc_host_block_remove(uint64_t address, enum gpc_host_origin origin, struct gpc_range *taken,
		      bool *known_p)
{
	struct gpc_host_block *block = NULL;
	struct gpc_range *range;

	(void)pthread_mutex_lock(&change_lock);
	(void)pthread_rwlock_wrlock(&lock);
	range = gpc_ranges_find(&blocks, address, 1);
	*known_p = range != NULL;
	if (range && range->base == address)
		block = range->item;
	if (block && block->origin != origin)
		block = NULL;
	if (block) {
		*taken = *range;
		gpc_ranges_remove(&blocks, range);
	}
	(void)pthread_rwlock_unlock(&lock);
	(void)pthread_mutex_unlock(&change_lock);
	return block;
}

/* Removes the block's device mapping, which kernels may still be using. */
static void
block_unmap_device(const struct gpc_host_block *block)
{
	if (block->state == GPC_HOST_COPY_ONLY || block->speculative)
		atomic_fetch_sub(&gpc_host_memory_copy_only, 1);
	if (block->origin == GPC_HOST_REGISTERED)
		atomic_fetch_sub(&gpc_host_memory_registered, 1);
	if (block->state == GPC_HOST_SHARED) {
		atomic_fetch_sub(&gpc_host_memory_shared, 1);
		gpc_session_count_visible_blocks(block->context->scope.session, -1);
	}
	if (block->state == GPC_HOST_REPLICATED)
		gpc_coherence_remove(block->context->scope.session, block->device);
	device_ranges_drop(block);
	if (block->worker_range.size)
		gpc_host_space_unmap(block->context, &block->worker_range);
}

CUresult
gpc_host_block_destroy(struct gpc_host_block *block, const struct gpc_range *range)
{
	void *address = (void *)(uintptr_t)range->base;
	CUresult result = gpc_pending_copy_settle(address, range->size);

	gpc_late_copy_settle(address, range->size);
	gpc_lanes_settle(address, range->size);
	gpc_listed_copies_drop(address, range->size);
	gp_memory_unregister(address);
	block_unmap_device(block);
	if (block->mapped)
		(void)munmap(address, block->mapped);
	else if (block->origin == GPC_HOST_ALLOCATED)
		gpc_host_space_free(block->context, range->base,
				    block->state != GPC_HOST_COPY_ONLY || block->speculative);
	free(block);
	return result;
}

void
gpc_host_block_drop_context(struct gpc_context *context)
{
	for (;;) {
		struct gpc_host_block *block = NULL;
		struct gpc_range range;

		(void)pthread_mutex_lock(&change_lock);
		(void)pthread_rwlock_wrlock(&lock);
		for (size_t i = 0; i < blocks.count && !block; i++) {
			struct gpc_host_block *candidate = blocks.list[i].item;

			if (candidate->context == context &&
			    (candidate->origin == GPC_HOST_ALLOCATED ||
			     candidate->origin == GPC_HOST_REGISTERED)) {
				block = candidate;
				range = blocks.list[i];
				gpc_ranges_remove(&blocks, &blocks.list[i]);
			}
		}
		(void)pthread_rwlock_unlock(&lock);
		(void)pthread_mutex_unlock(&change_lock);
		if (!block)
			return;
		(void)gpc_host_block_destroy(block, &range);
	}
}

/* Records the device address of registered memory. */
static CUresult
device_ranges_add(struct gpc_host_block *block, const struct gpc_range *range,
		  const struct gpc_heap_range *worker_range, uint64_t device)
{
	int r;

	bounds_extend(&all_bounds, device, range->size);
	(void)pthread_rwlock_wrlock(&lock);
	r = gpc_ranges_add(&device_ranges, device, range->size, block);
	if (r == 0) {
		block->device = device;
		block->worker_range = *worker_range;
	}
	(void)pthread_rwlock_unlock(&lock);
	return r ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* Returns whether any registered block in the range is replicated. */
static bool
range_is_replicated(void *arg, uint64_t start, uint64_t end)
{
	const struct gpc_host_block *block;
	const struct gpc_range *range;
	bool mirrored = false;

	(void)arg;
	(void)pthread_rwlock_rdlock(&lock);
	while (start < end && !mirrored && (range = gpc_ranges_find(&blocks, start, end - start))) {
		block = range->item;
		mirrored =
			block->origin == GPC_HOST_REGISTERED && block->state == GPC_HOST_REPLICATED;
		start = range->base + range->size;
	}
	(void)pthread_rwlock_unlock(&lock);
	return mirrored;
}

/* Rejects memory that is mapped twice: kernels would see two replicas, which are identical only at
 * times. */
static bool
range_is_mapped_twice(const struct gpc_range *range)
{
	uint64_t other = gpc_host_alias_find(range->base, range->size, range_is_replicated, NULL);

	if (other)
		gpc_log(GPC_LOG_ERROR,
			"kernels reach no memory at %p: it is the same memory as %p, a file that "
			"is mapped twice",
			(void *)(uintptr_t)range->base, (void *)(uintptr_t)other);
	return other != 0;
}

/* Maps registered memory: the daemon's replica has the same offset in its page, at an address of
 * its own. */
static CUresult
block_map_registered(struct gpc_context *context, struct gpc_host_block *block,
		     const struct gpc_range *range)
{
	uint64_t offset = range->base & ((uint64_t)sysconf(_SC_PAGESIZE) - 1);
	struct gpc_heap_range worker_range;
	CUresult result;

	if (!gpc_host_block_is_mapped((const void *)(uintptr_t)range->base, range->size))
		return CUDA_ERROR_INVALID_VALUE;
	if (range_is_mapped_twice(range))
		return CUDA_ERROR_NOT_PERMITTED;
	result = gpc_host_space_map(context, offset + range->size, &worker_range);
	if (result != CUDA_SUCCESS)
		return result;
	result = gpc_coherence_add(context, (void *)(uintptr_t)range->base,
				   worker_range.base + offset, range->size);
	if (result == CUDA_SUCCESS) {
		result = device_ranges_add(block, range, &worker_range, worker_range.base + offset);
		if (result == CUDA_SUCCESS)
			return result;
		gpc_coherence_remove(context->scope.session, worker_range.base + offset);
	}
	gpc_host_space_unmap(context, &worker_range);
	return result;
}

static CUresult
block_map_allocated(struct gpc_context *context, const struct gpc_host_block *block,
		    const struct gpc_range *range)
{
	CUresult result = gpc_host_space_map_at_worker(context, block->device);

	return result == CUDA_SUCCESS ? gpc_coherence_add(context, (void *)(uintptr_t)range->base,
							  block->device, range->size)
				      : result;
}

/* Maps placed memory at its own address, which is also the daemon's; the owner of the mapping
 * unmaps it there. */
static CUresult
block_map_placed(struct gpc_context *context, const struct gpc_range *range)
{
	const struct gp_args_gpHostPlace args = { range->base, range->size,
						  context->device->remote };
	const struct gp_args_gpMemoryUnmap unmap = { range->base, range->size };
	CUresult result = gpc_wait_gpHostPlace(context, &args);

	if (result != CUDA_SUCCESS)
		return result;
	result = gpc_coherence_add(context, (void *)(uintptr_t)range->base, range->base,
				   range->size);
	if (result != CUDA_SUCCESS)
		(void)gpc_post_gpMemoryUnmap(context, &unmap);
	return result;
}

static CUresult
block_map_by_origin(struct gpc_host_block *block, const struct gpc_range *range)
{
	switch (block->origin) {
	case GPC_HOST_REGISTERED:
		return block_map_registered(block->context, block, range);
	case GPC_HOST_PLACED:
		return block_map_placed(block->context, range);
	default:
		return block_map_allocated(block->context, block, range);
	}
}

/* Scans the block for addresses that kernels find when they read it. */
static void
block_scan_pointers(const struct gpc_host_block *block, const struct gpc_range *range,
		    struct gpc_pointer_scan *pointers)
{
	uint64_t skip = -range->base % 8;

	gpc_pointer_scan_init(pointers, block->context->scope.session);
	if (range->size > skip)
		gpc_pointer_scan_run(pointers, (const void *)(uintptr_t)(range->base + skip),
				     range->size - skip, NULL);
}

/* Sets the state. Returns false if the block stays copy-only, because a copy has used it in the
 * meantime and only possibly stale pointers refer to it. */
static bool
block_set_state(struct gpc_host_block *block, enum gpc_host_state state, bool speculative)
	GP_LOCKED(change_lock)
{
	bool counted = block->state == GPC_HOST_COPY_ONLY || block->speculative, set;

	(void)pthread_rwlock_wrlock(&lock);
	set = !speculative || !block->copied || state == GPC_HOST_COPY_ONLY;
	if (set)
		block->state = state;
	block->speculative = speculative;
	(void)pthread_rwlock_unlock(&lock);
	if (counted && state != GPC_HOST_COPY_ONLY && !speculative)
		atomic_fetch_sub(&gpc_host_memory_copy_only, 1);
	return set;
}

/* Called when a copy uses a speculative block: fetches what kernels have written so far and drops
 * the replica. */
static void
block_drop_replica(struct gpc_host_block *block) GP_LOCKED(change_lock)
{
	struct gpc_session *session = block->context->scope.session;

	(void)gpc_coherence_fetch(session);
	gpc_coherence_remove(session, block->device);
	(void)block_set_state(block, GPC_HOST_COPY_ONLY, true);
	gpc_log(GPC_LOG_INFO,
		"a copy names the pinned memory at %#llx: the pointer that a kernel got was stale",
		(unsigned long long)block->host);
}

/* Makes the block accessible to kernels, if possible, and adds the blocks that its contents point
 * to to *pointers. change_lock keeps the block alive. */
static CUresult
block_map(struct gpc_host_block *block, const struct gpc_range *range, bool may_be_stale,
	  struct gpc_pointer_scan *pointers) GP_LOCKED(change_lock)
{
	CUresult result;

	if (block->state >= GPC_HOST_REPLICATED) {
		if (block->speculative && !may_be_stale) {
			(void)block_set_state(block, block->state, false);
			block_note_replica(block);
		}
		return CUDA_SUCCESS;
	}
	if (block->state == GPC_HOST_PLAIN && block->origin != GPC_HOST_REGISTERED &&
	    block->origin != GPC_HOST_PLACED)
		return CUDA_ERROR_NOT_SUPPORTED;
	/* Data that is still being sent from the block is read from the program's memory. */
	gpc_lanes_settle((void *)(uintptr_t)range->base, range->size);
	result = block_map_by_origin(block, range);
	if (result != CUDA_SUCCESS)
		return result;
	if (!block_set_state(block, GPC_HOST_REPLICATED, may_be_stale)) {
		gpc_coherence_remove(block->context->scope.session, block->device);
		return CUDA_SUCCESS;
	}
	gpc_pending_copy_replicate((const void *)(uintptr_t)range->base, range->size);
	if (!may_be_stale)
		block_note_replica(block);
	gpc_log(GPC_LOG_INFO,
		"kernels reach pinned memory at %#llx from now on: its %llu bytes are compared "
		"before each launch",
		(unsigned long long)range->base, (unsigned long long)range->size);
	block_scan_pointers(block, range, pointers);
	return CUDA_SUCCESS;
}

/* Finds the block around an address of the program. */
static bool
block_find_around(uint64_t address, struct gpc_range *range_p)
{
	const struct gpc_range *range;

	(void)pthread_rwlock_rdlock(&lock);
	range = gpc_ranges_find(&blocks, address, 1);
	if (range)
		*range_p = *range;
	(void)pthread_rwlock_unlock(&lock);
	return range != NULL;
}

/* A value in the list may be an address that kernels cannot access, or the address of a block that
 * has been freed. */
static CUresult
pointers_map(struct gpc_pointer_scan *pointers) GP_LOCKED(change_lock)
{
	CUresult result = CUDA_SUCCESS;
	struct gpc_range range;
	struct gpc_scanned_pointer name;

	while (result == CUDA_SUCCESS && gpc_pointer_scan_pop(pointers, &name)) {
		if (!block_find_around(name.address, &range))
			continue;
		result = block_map(range.item, &range, name.may_be_stale, pointers);
		if (result == CUDA_ERROR_NOT_SUPPORTED)
			result = CUDA_SUCCESS;
	}
	return result == CUDA_SUCCESS && pointers->failed ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

CUresult
gpc_host_block_map_pointers(struct gpc_pointer_scan *pointers)
{
	CUresult result;

	(void)pthread_mutex_lock(&change_lock);
	result = pointers_map(pointers);
	(void)pthread_mutex_unlock(&change_lock);
	return result;
}

CUresult
gpc_host_block_map(uint64_t address, uint64_t *device_p)
{
	struct gpc_pointer_scan pointers = { 0 };
	struct gpc_range range;
	struct gpc_host_block *block;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	(void)pthread_mutex_lock(&change_lock);
	if (block_find_around(address, &range)) {
		block = range.item;
		result = block_map(block, &range, false, &pointers);
		*device_p = block->device + (address - range.base);
	}
	if (result == CUDA_SUCCESS)
		result = pointers_map(&pointers);
	(void)pthread_mutex_unlock(&change_lock);
	gpc_pointer_scan_fini(&pointers);
	return result;
}

/* Marks the block around the address as used by a copy. Returns false if its replica must be
 * dropped first. */
static bool
block_set_copied(uint64_t address)
{
	struct gpc_host_block *block;
	const struct gpc_range *range;
	bool leaves = false;

	(void)pthread_rwlock_wrlock(&lock);
	range = gpc_ranges_find(&blocks, address, 1);
	if (range) {
		block = range->item;
		leaves = block->state == GPC_HOST_REPLICATED && block->speculative;
		block->copied |= !leaves;
	}
	(void)pthread_rwlock_unlock(&lock);
	return !leaves;
}

/* In the common case only a flag is set, without change_lock. */
void
gpc_host_block_note_copied(uint64_t address)
{
	struct gpc_range range;

	while (!block_set_copied(address)) {
		(void)pthread_mutex_lock(&change_lock);
		if (!block_set_copied(address) && block_find_around(address, &range))
			block_drop_replica(range.item);
		(void)pthread_mutex_unlock(&change_lock);
	}
}
