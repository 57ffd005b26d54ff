/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings that nothing uses any more: kept, had again, or given back when the daemon wants them.
 */
#include "client/base/log.h"
#include "client/context/context.h"
#include "client/memory/credit.h"
#include "client/memory/keeper.h"
#include "client/memory/memory_state.h"
#include "client/wire/session.h"
#include "client/wire/session_threads.h"
#include "gpc_calls.h"

#include <stdlib.h>

/* What a session keeps of the mappings that nothing uses any more. */
#define KEPT_MAX ((uint64_t)512 << 20)

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

/* What is kept beyond so many bytes goes, in the name of the primary context, which always exists.
 */
static void
give_back(struct gpc_memory *memory, uint64_t beyond)
{
	struct gpc_kept_mapping mapping;

	while (gpc_kept_take_excess(&memory->kept, beyond, &mapping))
		gpc_memory_unmap_now(memory, ((struct gpc_device *)mapping.owner)->primary,
				     &mapping.range);
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

	atomic_store(&memory->keeps, false);
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

	if (range->size > KEPT_MAX || !gpc_kept_put(&memory->kept, &mapping)) {
		gpc_memory_unmap_now(memory, context, range);
		return;
	}
	give_back(memory, KEPT_MAX);
	gpc_memory_tell_kept(memory, context);
	gpc_fence_start(&memory->fence, context);
}

/* Something that was kept.  What only waits for work is waited for, as cuMemFree itself may do:
 * mapping more would take a round trip, too. */
bool
gpc_memory_have_again(struct gpc_memory *memory, struct gpc_context *context, uint64_t size,
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
