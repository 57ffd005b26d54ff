/* SPDX-License-Identifier: Apache-2.0 */
#include "client/context/fence.h"

#include "client/context/context.h"
#include "client/session/session.h"
#include "gpc_calls.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static bool (*session_is_idle)(const struct gpc_session *session);

void
gpc_fence_set_idle_check(bool (*knows_done)(const struct gpc_session *session))
{
	session_is_idle = knows_done;
}

bool
gpc_fence_is_redundant(struct gpc_session *session)
{
	uint64_t count = gpc_session_work_posted(session);

	if (count <= gpc_session_work_done(session))
		return true;
	if (!session_is_idle || !session_is_idle(session))
		return false;
	gpc_session_work_set_done(session, count);
	return true;
}

void
gpc_fence_init(struct gpc_fence *fence)
{
	memset(fence, 0, sizeof(*fence));
	(void)pthread_mutex_init(&fence->lock, NULL);
}

static void
fence_done(struct gpc_request *request)
{
	struct gpc_fence *fence = request->arg;

	if (request->result == CUDA_SUCCESS)
		gpc_session_work_set_done(request->session, fence->count);
	free(request->reply);
	request->reply = NULL;
	/* After this the request may be reused. */
	atomic_store(&fence->outstanding, false);
}

void
gpc_fence_start(struct gpc_fence *fence, struct gpc_context *context)
{
	struct gp_args_gpFence args = { 0 };

	if (atomic_load(&fence->outstanding) || gpc_fence_is_redundant(context->scope.session) ||
	    pthread_mutex_trylock(&fence->lock))
		return;
	if (!atomic_load(&fence->outstanding)) {
		memset(&fence->request, 0, sizeof(fence->request));
		fence->request.session = context->scope.session;
		fence->request.done = fence_done;
		fence->request.arg = fence;
		fence->count = gpc_session_work_posted(context->scope.session);
		atomic_store(&fence->outstanding, true);
		if (gpc_start_gpFence(context, &args, &fence->request) != CUDA_SUCCESS)
			atomic_store(&fence->outstanding, false);
	}
	(void)pthread_mutex_unlock(&fence->lock);
}

void
gpc_fence_poll(struct gpc_fence *fence)
{
	if (!atomic_load(&fence->outstanding) || pthread_mutex_trylock(&fence->lock))
		return;
	if (atomic_load(&fence->outstanding))
		(void)gpc_request_poll(&fence->request);
	(void)pthread_mutex_unlock(&fence->lock);
}

CUresult
gpc_fence_wait(struct gpc_context *context)
{
	struct gpc_session *session = context->scope.session;
	struct gp_args_gpFence args = { 0 };
	uint64_t count = gpc_session_work_posted(session);
	CUresult result = gpc_wait_gpFence(context, &args);

	if (result == CUDA_SUCCESS)
		gpc_session_work_set_done(session, count);
	return result;
}
