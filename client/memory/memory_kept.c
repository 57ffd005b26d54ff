/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings that nothing uses any more: kept, had again, or given back when the daemon wants them.
 */
#include "client/base/log.h"
#include "client/context/context.h"
#include "client/memory/credit.h"
#include "client/memory/keeper.h"
#include "client/memory/memory_state.h"
#include "client/memory/pool.h"
#include "client/wire/session.h"
#include "client/wire/session_threads.h"
#include "gpc_calls.h"

#include <stdlib.h>

/* What a session keeps of the mappings that nothing uses any more. */
#define KEPT_MAX ((uint64_t)512 << 20)
/* The daemon is told the count again when it has changed by this much. */
#define KEPT_STEP ((uint64_t)32 << 20)

void
gpc_memory_unmap_now(struct gpc_memory *memory, struct gpc_context *context,
		     const struct gpc_heap_range *range)
{
	struct gp_args_gpMemoryUnmap args = { .address = range->base, .size = range->size };

	/* A dead session's memory is gone as well. */
	(void)gpc_post_gpMemoryUnmap(context, &args);
	atomic_fetch_sub(&context->device->credit.mapped, range->size);
	gpc_heap_unmapped(memory->heap, range, atomic_fetch_add(&memory->unmaps, 1) + 1);
}

static void
tell_count(struct gpc_device *device, uint64_t told, uint64_t now)
{
	do {
		const struct gp_args_gpMemoryCountKept args = { .device = device->remote,
								.bytes = now };

		if (!atomic_compare_exchange_strong(&device->kept_told, &told, now))
			return;
		(void)gpc_post_gpMemoryCountKept(device->primary, &args);
		told = now;
		/* Another thread may have told it something newer, and before this. */
		now = atomic_load(&device->kept_told);
	} while (now != told);
}

void
gpc_memory_count_kept(struct gpc_device *device, uint64_t more)
{
	const uint64_t now = atomic_fetch_add(&device->kept, more) + more;
	const uint64_t told = atomic_load(&device->kept_told);

	if ((now > told ? now - told : told - now) >= KEPT_STEP &&
	    gpc_facts_know(gpc_session_facts(device->session), GP_CALL_gpMemoryCountKept))
		tell_count(device, told, now);
}

/* What is kept beyond so many bytes goes, in the name of the primary context, which always exists.
 */
static void
give_back(struct gpc_memory *memory, uint64_t beyond)
{
	struct gpc_kept_mapping mapping;

	while (gpc_kept_take_excess(&memory->kept, beyond, &mapping)) {
		struct gpc_device *device = mapping.owner;

		gpc_memory_unmap_now(memory, device->primary, &mapping.range);
		gpc_memory_count_kept(device, -mapping.range.size);
	}
}

void
gpc_memory_give_all_back(struct gpc_memory *memory)
{
	gpc_keepers_give_back(memory->session);
	give_back(memory, 0);
}

/* Whoever keeps something from here on tells the daemon anew; what is kept already goes. */
static void *
return_all(void *arg)
{
	struct gpc_memory *memory = arg;
	struct gpc_context *primary = memory->primary;
	const struct gp_args_gpMemoryKept args = { 0 };
	struct gpc_heap_range range;

	atomic_store(&memory->keeps, false);
	gpc_pool_give_spare_back(memory->session);
	while (gpc_heap_take_spare(memory->heap, &range))
		gpc_memory_unmap_now(memory, primary, &range);
	gpc_memory_give_all_back(memory);
	gpc_credit_forgo(memory->session);
	(void)gpc_post_gpMemoryKept(primary, &args);
	gpc_thread_ended(memory->session);
	return NULL;
}

/* The thread that reads the answers must not post: a call may have to wait for one of them. */
static void
recalled(struct gpc_request *request)
{
	struct gpc_memory *memory = request->arg;

	free(request->reply);
	request->reply = NULL;
	if (request->result == CUDA_SUCCESS &&
	    gpc_thread_start(memory->session, return_all, memory, "gpupool-recall") != 0)
		gpc_log(GPC_LOG_ERROR, "no thread that gives kept memory back");
}

void
gpc_memory_tell_kept(struct gpc_memory *memory, struct gpc_context *context)
{
	const struct gp_args_gpMemoryKeep args = { 0 };

	if (atomic_load(&memory->keeps) || atomic_exchange(&memory->keeps, true))
		return;
	memory->primary = context->device->primary;
	memory->recall = (struct gpc_request){
		.session = memory->session, .done = recalled, .arg = memory, .lazy = true
	};
	if (gpc_start_gpMemoryKeep(memory->primary, &args, &memory->recall) != CUDA_SUCCESS)
		atomic_store(&memory->keeps, false);
}

/* The mapping may be had again without a round trip, until the daemon wants it back. */
void
gpc_memory_keep(struct gpc_memory *memory, struct gpc_context *context,
		const struct gpc_heap_range *range)
{
	const struct gpc_kept_mapping mapping = { *range, context->device,
						  gpc_session_work_posted(memory->session) };
	bool kept = range->size <= KEPT_MAX;

	if (kept) {
		gpc_memory_count_kept(context->device, range->size);
		kept = gpc_kept_put(&memory->kept, &mapping);
		if (!kept)
			gpc_memory_count_kept(context->device, -range->size);
	}
	if (!kept) {
		gpc_memory_unmap_now(memory, context, range);
		return;
	}
	give_back(memory, KEPT_MAX);
	gpc_memory_tell_kept(memory, context);
	gpc_fence_start(&memory->fence, context);
}

/* Something that was kept.  What only waits for work is waited for, as cuMemFree itself may do:
 * mapping more would take a round trip, too. */
static bool
have_again(struct gpc_memory *memory, struct gpc_context *context, uint64_t size,
	   struct gpc_heap_range *range_p)
{
	uint64_t unit = gpc_session_facts(memory->session)->granularity;
	bool waits;

	size = (size + unit - 1) & ~(unit - 1);
	gpc_fence_poll(&memory->fence);
	if (gpc_kept_take(&memory->kept, context->device, size,
			  gpc_session_work_done(memory->session), range_p, &waits))
		return true;
	if (waits && gpc_fence_is_needless(memory->session) &&
	    gpc_kept_take(&memory->kept, context->device, size,
			  gpc_session_work_done(memory->session), range_p, &waits))
		return true;
	if (!waits || gpc_session_has_functions(memory->session) ||
	    gpc_memory_settle_all(memory, context) != CUDA_SUCCESS)
		return false;
	return gpc_kept_take(&memory->kept, context->device, size,
			     gpc_session_work_done(memory->session), range_p, &waits);
}

bool
gpc_memory_have_again(struct gpc_memory *memory, struct gpc_context *context, uint64_t size,
		      struct gpc_heap_range *range_p)
{
	const bool had = have_again(memory, context, size, range_p);

	if (had)
		gpc_memory_count_kept(context->device, -range_p->size);
	return had;
}
