/* SPDX-License-Identifier: Apache-2.0 */
#include "client/stream/sync.h"

#include "client/context/context.h"
#include "client/host/coherence.h"
#include "client/memory/address.h"
#include "client/memory/ipc_memory.h"
#include "client/memory/ipc_pool.h"
#include "client/memory/physical_memory.h"
#include "client/memory/pool.h"
#include "client/session/session.h"
#include "client/stream/stream.h"
#include "gpc_calls.h"

#include <stdatomic.h>
#include <stdlib.h>

static CUresult
context_wait(struct gpc_context *context)
{
	const struct gp_args_gpContextSynchronize args = { .context = context->handle.id };
	struct gpc_session *session = context->scope.session;
	struct gpc_coherence_fetch *fetch = gpc_coherence_before_wait(
		session, GP_HOST_AFTER_CONTEXT, args.context, GP_CALL_gpContextSynchronize);
	CUresult result = gpc_wait_gpContextSynchronize(context, &args);

	return gpc_coherence_after_wait(session, fetch, result);
}

/* Waits for all work given to the context's streams up to this work number. */
static CUresult
context_wait_unless_done(struct gpc_context *context, uint64_t issued)
{
	struct gpc_session *session = context->scope.session;
	bool fetched;

	if (issued <= atomic_load(&context->done))
		return gpc_session_result(session);
	if (!gpc_stream_are_all_done(context, &fetched))
		return context_wait(context);
	return fetched ? gpc_session_result(session)
		       : gpc_coherence_after_wait(session, NULL, gpc_session_result(session));
}

CUresult
gpc_sync_context(struct gpc_context *context)
{
	uint64_t posted = gpc_session_work_posted(context->scope.session);
	uint64_t frees = gpc_pool_frees();
	uint64_t issued = gpc_session_issued(context->scope.session);
	bool only = atomic_load(&gpc_contexts_active) == 1;
	CUresult result;

	/* A green context does not wait for the primary context's other streams. */
	if (context->parent)
		return context_wait(context);
	result = context_wait_unless_done(context, issued);
	if (result == CUDA_SUCCESS)
		gpc_atomic_max(&context->done, issued);
	/* No other context has work that freed memory would have to wait for. */
	if (result == CUDA_SUCCESS && only)
		gpc_session_work_set_done(context->scope.session, posted);
	if (result == CUDA_SUCCESS)
		gpc_pool_context_done(context, frees);
	return result;
}

static bool
context_is_known_done(const struct gpc_context *context, uint64_t issued)
{
	return issued <= atomic_load(&context->done) || issued <= atomic_load(&context->implied);
}

/* Returns the last work number of the session whose effects the program or another process may see;
 * `issued` is the session's last work number. */
static uint64_t
session_get_issued_visible(const struct gpc_session *session, uint64_t issued)
{
	return gpc_ipc_memory_any() || gpc_physical_any_shared() || gpc_pool_any_shared()
		       ? issued
		       : gpc_session_issued_visible(session);
}

/* The error of earlier work is left for another call to report, because this call itself
 * succeeds. */
static void
session_defer_error(struct gpc_session *session, CUresult result)
{
	if (result != CUDA_SUCCESS && gpc_session_status(session) == CUDA_SUCCESS)
		gpc_session_defer(session, result);
}

/* Orders later work after all work of the context. Returns false if the daemon does not support
 * it. */
static bool
context_post_barrier(struct gpc_context *context)
{
	const struct gp_args_gpContextBarrier args = { .context = context->handle.id };
	const struct gpc_session_facts *facts = gpc_session_facts(context->scope.session);

	return gpc_facts_have_call(facts, GP_CALL_gpContextBarrier) &&
	       gpc_post_gpContextBarrier(context, &args) == CUDA_SUCCESS;
}

/* A CUDA runtime frees its libraries and contexts in exit(), even while a host function never
 * returns. */
static atomic_bool exiting;

static void
note_exit(void)
{
	atomic_store(&exiting, true);
}

void
gpc_sync_watch_exit(void)
{
	(void)atexit(note_exit);
}

void
gpc_sync_implicitly(struct gpc_context *context)
{
	struct gpc_session *session = context->scope.session;
	uint64_t issued = gpc_session_issued(session);
	CUresult result = CUDA_SUCCESS;

	if (context_is_known_done(context, issued) || !gpc_context_is_active(context) ||
	    atomic_load(&exiting))
		return;
	if (!context_is_known_done(context, session_get_issued_visible(session, issued)) ||
	    !context_post_barrier(context))
		result = gpc_sync_context(context);
	if (result == CUDA_SUCCESS)
		gpc_atomic_max(&context->implied, issued);
	session_defer_error(session, result);
}

/* Waiting is not allowed inside a host function; the call itself will be refused. */
static bool
thread_may_wait(void)
{
	return gpc_enter_initialized() == CUDA_SUCCESS;
}

void
gpc_sync_implicitly_current(void)
{
	struct gpc_context *context = gpc_context_get_current();

	if (context && thread_may_wait())
		gpc_sync_implicitly(context->parent ? context->parent : context);
}

/* Returns whether nothing is pending in any context, so that the lookup of the address can be
 * skipped. */
static bool
current_context_is_idle(void)
{
	const struct gpc_context *context = gpc_context_get_current();

	return context && !context->parent && atomic_load(&gpc_contexts_active) == 1 &&
	       context_is_known_done(context, gpc_session_issued(context->scope.session));
}

void
gpc_sync_implicitly_owner(uint64_t address)
{
	struct gpc_address found;
	struct gpc_context *context;

	if (!address || current_context_is_idle() || !thread_may_wait())
		return;
	gpc_address_lookup(address, &found);
	/* A block of a pool is freed in the order of a stream. */
	if (found.pool || !found.context)
		return;
	context = found.context->parent ? found.context->parent : found.context;
	gpc_sync_implicitly(context);
}

bool
gpc_sync_is_all_implied(const struct gpc_context *context, uint64_t issued)
{
	return issued <= atomic_load(&context->implied);
}

bool
gpc_sync_is_implied(const struct gpc_stream *stream, uint64_t issued)
{
	const struct gpc_context *context = stream->context;
	const struct gpc_stream *legacy = stream->green ? stream->green->legacy : context->legacy;

	return gpc_sync_is_all_implied(context, issued) ||
	       issued <= atomic_load(&stream->implied) ||
	       (legacy && !(stream->flags & CU_STREAM_NON_BLOCKING) &&
		issued <= atomic_load(&legacy->implied));
}

void
gpc_sync_implicitly_stream(struct gpc_stream *stream)
{
	struct gpc_session *session = stream->context->scope.session;
	uint64_t issued = gpc_session_issued(session),
		 seen = session_get_issued_visible(session, issued);
	CUresult result = CUDA_SUCCESS;

	if (context_is_known_done(stream->context, issued) || gpc_sync_is_implied(stream, issued) ||
	    atomic_load(&exiting))
		return;
	if (!context_is_known_done(stream->context, seen) && !gpc_sync_is_implied(stream, seen) &&
	    gpc_stream_pending(stream) != 0)
		result = gpc_stream_fence(stream);
	if (result == CUDA_SUCCESS)
		gpc_atomic_max(&stream->implied, issued);
	session_defer_error(session, result);
}
