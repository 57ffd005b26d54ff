/* SPDX-License-Identifier: Apache-2.0 */
#include "client/managed/managed_copy.h"

#include "client/base/log.h"
#include "client/copy/copy_in.h"
#include "client/copy/copy_out.h"
#include "client/memory/host_memory.h"
#include "client/memory/pool.h"
#include "client/pages/pages.h"
#include "client/session/session.h"
#include "client/stream/stream.h"
#include "client/stream/stream_managed.h"
#include "gpc_calls.h"

#include <stdlib.h>

/* A deferred error of another call is reported by the next call that waits, which may be this one.
 * So a transfer fails only after this number of errors in a row. */
#define TRIES 8

/* A separate stream: its copies are not ordered after work of the program, and the daemon does not
 * defer them after host functions. It is destroyed with the context. */
static struct gpc_stream *
context_get_managed_stream(struct gpc_context *context)
{
	struct gpc_stream *stream = gpc_handle_from_token(GPC_KIND_STREAM, context->managed_stream);

	if (!stream && gpc_stream_create_in(context, CU_STREAM_NON_BLOCKING, 0,
					    &context->managed_stream) == CUDA_SUCCESS)
		stream = gpc_handle_from_token(GPC_KIND_STREAM, context->managed_stream);
	return stream;
}

static CUresult
session_await_work(struct gpc_context *context)
{
	struct gpc_session *session = context->scope.session;
	const struct gp_args_gpFence args = { 0 };
	struct gpc_request request = { 0 };
	CUresult result;

	if (gpc_managed_is_done(session))
		return gpc_session_status(session);
	result = gpc_start_gpFence(context, &args, &request);
	if (result != CUDA_SUCCESS)
		return result;
	result = gpc_request_wait_own(&request);
	free(request.reply);
	if (result == CUDA_SUCCESS)
		gpc_managed_set_done(session);
	return result;
}

/* The owner of the pages is the context, which is never freed. */
bool
gpc_managed_await(void *owner)
{
	CUresult result = session_await_work(owner);

	if (result != CUDA_SUCCESS)
		gpc_log_always("managed memory cannot be fetched: the session is over (%d)",
			       (int)result);
	return result == CUDA_SUCCESS;
}

typedef CUresult transfer_function(struct gpc_stream *stream, const struct gpc_copy *copy);

/* Programs build data structures with pointers in managed memory, so all of it is scanned for
 * addresses. */
static CUresult
copy_to_device(struct gpc_stream *stream, const struct gpc_copy *copy)
{
	(void)gpc_host_memory_scan(stream->context, (const void *)(uintptr_t)copy->src.base,
				   copy->width);
	return gpc_copy_in(stream, copy, true);
}

/* Deferred errors of other calls are preserved for the program. */
static bool
pages_transfer(struct gpc_context *context, transfer_function *transfer,
	       const struct gpc_copy *copy)
{
	struct gpc_session *session = context->scope.session;
	CUresult before = gpc_session_pop_deferred(session), result = CUDA_ERROR_OUT_OF_MEMORY;
	struct gpc_stream *stream;

	gpc_call_passes = true;
	stream = context_get_managed_stream(context);
	for (int i = 0; i < TRIES && stream && result != CUDA_SUCCESS &&
			gpc_session_status(session) == CUDA_SUCCESS;
	     i++)
		result = transfer(stream, copy);
	gpc_call_passes = false;
	if (before != CUDA_SUCCESS)
		gpc_session_defer(session, before);
	if (result != CUDA_SUCCESS)
		gpc_log_always("managed memory cannot be moved: the session is over (%d)",
			       (int)result);
	return result == CUDA_SUCCESS;
}

static struct gpc_side
side_from_address(uint64_t base, uint64_t size, bool host)
{
	return (struct gpc_side){ .base = base, .pitch = size, .slice = size, .host = host };
}

bool
gpc_managed_fetch(void *owner, uint64_t address, uint64_t size, void *to)
{
	const struct gpc_copy copy = { side_from_address((uintptr_t)to, size, true),
				       side_from_address(address, size, false), size, 1, 1 };

	return pages_transfer(owner, gpc_copy_out, &copy);
}

bool
gpc_managed_push(void *owner, uint64_t address, uint64_t size, const void *from)
{
	const struct gpc_copy copy = { side_from_address(address, size, false),
				       side_from_address((uintptr_t)from, size, true), size, 1, 1 };

	return pages_transfer(owner, copy_to_device, &copy);
}

const struct gpc_pages_ops gpc_managed_calls = {
	.await = gpc_managed_await,
	.fetch = gpc_managed_fetch,
	.push = gpc_managed_push,
};

CUresult
gpc_managed_alloc(struct gpc_context *context, uint64_t size, CUdeviceptr *address_p)
{
	CUdeviceptr address;
	struct gpc_pool *pool;
	CUmemoryPool token = NULL;
	CUresult result;

	gpc_pools_lock();
	pool = gpc_pool_get_managed(context, &gpc_managed_calls);
	if (pool)
		token = pool->handle.token;
	gpc_pools_unlock();
	if (!token)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = gpc_pool_alloc(token, context, GPC_POOL_NO_STREAM, size, &address);
	if (result != CUDA_SUCCESS)
		return result;
	gpc_pages_set_unused(address, size);
	*address_p = address;
	return CUDA_SUCCESS;
}
