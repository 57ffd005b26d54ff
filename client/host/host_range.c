/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/host_range.h"

#include "client/connect/window.h"
#include "client/context/context.h"
#include "client/session/session.h"

#include <stdlib.h>

/* Size that a session requests; the daemon may grant less. */
#define RANGE_SIZE ((uint64_t)64 << 30)
#define ADDRESS_MAX ((uint64_t)1 << 47)
/* Number of proposals of the daemon that are tried, as this process may already use their
 * addresses. */
#define TRIES 8

/* Reserves the daemon's range if this process has nothing there. Returns GP_E_RESOURCE if the
 * daemon has no range. */
static int
range_reserve(const struct gp_reply_gpHostReserve *reply)
{
	if (reply->address % GPC_HOST_GRANULARITY || reply->room < GPC_HOST_GRANULARITY ||
	    reply->room % GPC_HOST_GRANULARITY || reply->address >= ADDRESS_MAX ||
	    reply->room > ADDRESS_MAX - reply->address)
		return GP_E_RESOURCE;
	return gpc_window_reserve(reply->address, reply->room);
}

/* Requests one proposal. */
static CUresult
range_request(struct gpc_context *context, struct gp_reply_gpHostReserve *reply)
{
	const struct gp_args_gpHostReserve args = { .size = RANGE_SIZE };
	struct gpc_request request = { .session = context->scope.session };
	struct gp_dec dec;
	CUresult result = gpc_start_gpHostReserve(context, &args, &request);

	if (result != CUDA_SUCCESS)
		return result;
	result = gpc_request_wait_own(&request);
	gp_dec_init(&dec, request.reply, request.reply_size);
	gp_reply_gpHostReserve_decode(&dec, reply);
	if (result == CUDA_SUCCESS && !gp_dec_done(&dec))
		result = CUDA_ERROR_UNKNOWN;
	free(request.reply);
	return result;
}

bool
gpc_host_range_find(struct gpc_context *context, struct gp_reply_gpHostReserve *reply)
{
	const struct gpc_session_facts *facts = gpc_session_facts(context->scope.session);
	int r = GP_E_INVALID;

	if (!gpc_facts_have_call(facts, GP_CALL_gpHostReserve) ||
	    !gpc_facts_have_call(facts, GP_CALL_gpHostTake))
		return false;
	/* The daemon may have proposed a range in its welcome message. */
	*reply = (struct gp_reply_gpHostReserve){ facts->host_base, facts->host_size };
	if (facts->host_size)
		r = range_reserve(reply);
	for (int i = 0; r == GP_E_INVALID && i < TRIES; i++) {
		if (range_request(context, reply) != CUDA_SUCCESS)
			return false;
		r = range_reserve(reply);
	}
	return r == 0;
}
