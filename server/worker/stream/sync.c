/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronization of contexts and of the whole session: the hooks of gpContextSynchronize,
 * gpContextBarrier and gpFence. */
#include "gpd_calls.h"
#include "server/worker/context/context.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/responder.h"
#include "server/worker/stream/stream.h"

/* context NULL: all contexts. */
static CUresult
reply_when_idle(struct gpd_session *session, struct gpd_context *context)
{
	CUresult result;

	if (gpd_stream_all_idle(session, context))
		return CUDA_SUCCESS;
	result = gpd_wait_add_all(session, context, gpd_wait_reply, gpd_wait_request(session));
	return result == CUDA_SUCCESS ? GPD_LATER : result;
}

CUresult
gpd_gpContextSynchronize(struct gpd_session *session,
			 const struct gp_args_gpContextSynchronize *args)
{
	struct gpd_context *context = gpd_context_get(session, args->context);

	return context ? reply_when_idle(session, context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult
gpd_gpContextBarrier(struct gpd_session *session, const struct gp_args_gpContextBarrier *args)
{
	const struct gpd_context *context = gpd_context_get(session, args->context);

	return context ? gpd_stream_barrier_context(session, context) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult
gpd_gpFence(struct gpd_session *session, const struct gp_args_gpFence *args)
{
	return reply_when_idle(session, NULL);
}
