/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory/memory_cache.h"

#include "client/base/log.h"
#include "client/context/context.h"
#include "client/memory/allowance.h"
#include "client/memory/memory_internal.h"
#include "client/memory/pool.h"
#include "client/session/session.h"
#include "client/session/session_threads.h"
#include "gpc_calls.h"

#include <stdlib.h>

/* Change of the count, in bytes, that is reported to the daemon. */
#define REPORT_STEP ((uint64_t)32 << 20)

static void
count_report(struct gpc_device *device, uint64_t reported, uint64_t now)
{
	do {
		const struct gp_args_gpMemoryCountKept args = { .device = device->remote,
								.bytes = now };

		if (!atomic_compare_exchange_strong(&device->cached_reported, &reported, now))
			return;
		(void)gpc_post_gpMemoryCountKept(device->primary, &args);
		reported = now;
		/* Another thread may have reported a newer count before this one. */
		now = atomic_load(&device->cached_reported);
	} while (now != reported);
}

void
gpc_memory_count_cached(struct gpc_device *device, uint64_t more)
{
	const uint64_t now = atomic_fetch_add(&device->cached_bytes, more) + more;
	const uint64_t reported = atomic_load(&device->cached_reported);

	if ((now > reported ? now - reported : reported - now) >= REPORT_STEP &&
	    gpc_facts_have_call(gpc_session_facts(device->session), GP_CALL_gpMemoryCountKept))
		count_report(device, reported, now);
}

void
gpc_memory_cache_count(const struct gpc_cached *cached, uint64_t more)
{
	gpc_memory_count_cached(cached->context->device, more);
}

/* Objects cached from now on allow a new recall. */
static void *
recall_return(void *arg)
{
	struct gpc_memory *memory = arg;
	const struct gp_args_gpMemoryKept args = { 0 };

	atomic_store(&memory->recallable, false);
	gpc_pool_release_spare(memory->session);
	gpc_memory_return_unused(memory, memory->primary);
	(void)gpc_post_gpMemoryKept(memory->primary, &args);
	gpc_thread_ended(memory->session);
	return NULL;
}

/* The thread that reads the replies must not post, because a call may have to wait for a reply. */
static void
recall_received(struct gpc_request *request)
{
	struct gpc_memory *memory = request->arg;

	free(request->reply);
	request->reply = NULL;
	if (request->result == CUDA_SUCCESS &&
	    gpc_thread_start(memory->session, recall_return, memory, "gpupool-recall") != 0)
		gpc_log(GPC_LOG_ERROR, "no thread that returns cached memory");
}

void
gpc_memory_allow_recall(struct gpc_context *context)
{
	const struct gp_args_gpMemoryKeep args = { 0 };
	struct gpc_memory *memory = gpc_memory_from_context(context);

	if (!memory || atomic_load(&memory->recallable) ||
	    atomic_exchange(&memory->recallable, true))
		return;
	memory->primary = context->device->primary;
	memory->recall = (struct gpc_request){
		.session = memory->session, .done = recall_received, .arg = memory, .lazy = true
	};
	if (gpc_start_gpMemoryKeep(memory->primary, &args, &memory->recall) != CUDA_SUCCESS)
		atomic_store(&memory->recallable, false);
}

/* Returns false if the object is too large or the session has failed. */
static bool
cache_put(struct gpc_memory *memory, const struct gpc_cached *cached)
{
	if (!memory || cached->bytes > cached->kind->bytes_max ||
	    gpc_session_status(memory->session) != CUDA_SUCCESS)
		return false;
	gpc_object_cache_put(&memory->cache, cached);
	if (!atomic_load(&memory->recallable))
		gpc_memory_allow_recall(cached->context);
	return true;
}

bool
gpc_memory_cache_put(const struct gpc_cached_kind *kind, void *object, struct gpc_context *context,
		     uint64_t bytes)
{
	struct gpc_session *session = context->scope.session;
	const struct gpc_cached cached = {
		.kind = kind,
		.object = object,
		.context = context,
		.bytes = bytes,
		.tag = gpc_session_work_posted(session),
	};

	if (!cache_put(gpc_memory_from_context(context), &cached))
		return false;
	if (cached.tag > gpc_session_work_done(session))
		gpc_memory_poll(context);
	return true;
}

static void *
cache_acquire(struct gpc_memory *memory, const struct gpc_cached_kind *kind,
	      struct gpc_context *context, const void *wanted, bool *busy_p)
{
	struct gpc_cached cached = { .kind = kind, .context = context };

	gpc_fence_poll(&memory->fence);
	cached.tag = gpc_session_work_done(memory->session);
	return gpc_object_cache_acquire(&memory->cache, &cached, wanted, busy_p) ? cached.object
										 : NULL;
}

void *
gpc_memory_cache_acquire(const struct gpc_cached_kind *kind, struct gpc_context *context,
			 const void *wanted)
{
	struct gpc_memory *memory = gpc_memory_from_context(context);
	bool busy;

	return memory ? cache_acquire(memory, kind, context, wanted, &busy) : NULL;
}

void
gpc_memory_cache_drop_if(struct gpc_context *context, gpc_cached_filter *filter, const void *arg)
{
	struct gpc_memory *memory = gpc_memory_from_context(context);

	if (memory)
		(void)gpc_object_cache_drop(&memory->cache, filter, arg);
}

static bool
cached_is_of_context(const struct gpc_cached *cached, const void *context)
{
	return cached->context == context;
}

void
gpc_memory_cache_drop_context(struct gpc_context *context)
{
	gpc_memory_cache_drop_if(context, cached_is_of_context, context);
}

static void
mapping_unmap(const struct gpc_cached *cached)
{
	const struct gpc_heap_range range = { (uintptr_t)cached->object, cached->bytes };

	gpc_memory_unmap_now(gpc_memory_from_context(cached->context), cached->context, &range);
}

/* Cached with the primary context, which outlives the others. */
static const struct gpc_cached_kind mapping_kind = {
	.drop = mapping_unmap,
	.count_max = 63,
	.bytes_max = (uint64_t)512 << 20,
};

CUresult
gpc_memory_set_uncacheable(struct gpc_context *context, uint64_t base)
{
	struct gpc_memory *memory = gpc_memory_from_context(context);
	CUresult result = CUDA_SUCCESS;

	if (!memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(void)pthread_mutex_lock(&memory->refused_lock);
	if (!gpc_ranges_find(&memory->refused, base, 1) &&
	    gpc_ranges_add(&memory->refused, base, 1, NULL))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	atomic_store(&memory->any_refused, true);
	(void)pthread_mutex_unlock(&memory->refused_lock);
	return result;
}

static bool
mapping_is_refused(struct gpc_memory *memory, uint64_t base)
{
	struct gpc_range *refused;

	if (!atomic_load(&memory->any_refused))
		return false;
	(void)pthread_mutex_lock(&memory->refused_lock);
	refused = gpc_ranges_find(&memory->refused, base, 1);
	if (refused)
		gpc_ranges_remove(&memory->refused, refused);
	(void)pthread_mutex_unlock(&memory->refused_lock);
	return refused;
}

void
gpc_mapping_release(struct gpc_memory *memory, struct gpc_context *context,
		    const struct gpc_heap_range *range)
{
	const struct gpc_cached cached = {
		.kind = &mapping_kind,
		.object = (void *)(uintptr_t)range->base,
		.context = context->device->primary,
		.bytes = range->size,
		.tag = gpc_session_work_posted(memory->session),
	};

	if (!mapping_is_refused(memory, range->base) && cache_put(memory, &cached))
		gpc_fence_start(&memory->fence, context);
	else
		gpc_memory_unmap_now(memory, context, range);
}

/* A mapping that only waits for work is waited for, as cuMemFree itself may do: mapping more would
 * also take a round trip. */
bool
gpc_mapping_acquire(struct gpc_memory *memory, struct gpc_context *context, uint64_t size,
		    struct gpc_heap_range *range_p)
{
	const uint64_t unit = gpc_session_facts(memory->session)->granularity;
	struct gpc_context *primary = context->device->primary;
	void *base;
	bool busy;

	size = (size + unit - 1) & ~(unit - 1);
	base = cache_acquire(memory, &mapping_kind, primary, &size, &busy);
	if (busy && gpc_fence_is_redundant(memory->session))
		base = cache_acquire(memory, &mapping_kind, primary, &size, &busy);
	if (busy && !gpc_session_awaits_host(memory->session) &&
	    gpc_memory_settle_all(memory, context) == CUDA_SUCCESS)
		base = cache_acquire(memory, &mapping_kind, primary, &size, &busy);
	*range_p = (struct gpc_heap_range){ (uintptr_t)base, size };
	return base;
}
