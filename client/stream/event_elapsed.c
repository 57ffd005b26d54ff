/* SPDX-License-Identifier: Apache-2.0 */
#include "client/stream/event_elapsed.h"

#include "client/base/stats.h"
#include "client/context/object.h"
#include "client/session/session.h"
#include "client/stream/event.h"
#include "client/stream/stream.h"
#include "gpc_calls.h"

#include <pthread.h>
#include <stdlib.h>

/* Maximum number of pairs that are prefetched with one query. */
#define AHEAD_MAX 32

/* Two events, identified by their record numbers, and the query of the time between them. */
struct pair {
	struct gpc_event *start, *end;
	uint64_t started, ended;
	struct gpc_request request;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool
event_has_timing(const struct gpc_event *event)
{
	return !(event->flags & CU_EVENT_DISABLE_TIMING);
}

void
gpc_elapsed_note(struct gpc_event *event, uint32_t stream_id)
{
	struct gpc_stream *stream = gpc_handle_from_id(GPC_KIND_STREAM, stream_id);
	struct gpc_event *before;

	if (!event_has_timing(event) || !stream)
		return;
	atomic_store(&event->elapsed.next, NULL);
	before = gpc_handle_from_token(GPC_KIND_EVENT,
				       atomic_exchange(&stream->timed, event->handle.token));
	if (before && before != event)
		atomic_store(&before->elapsed.next, event->handle.token);
}

static bool
pair_lookup(const struct pair *pair, float *ms)
{
	const struct gpc_elapsed *elapsed = &pair->end->elapsed;
	bool known;

	(void)pthread_mutex_lock(&lock);
	known = elapsed->started == pair->started && elapsed->ended == pair->ended;
	if (known)
		*ms = elapsed->ms;
	(void)pthread_mutex_unlock(&lock);
	return known;
}

static void
pair_store(const struct pair *pair, float ms)
{
	struct gpc_elapsed *elapsed = &pair->end->elapsed;

	(void)pthread_mutex_lock(&lock);
	elapsed->started = pair->started;
	elapsed->ended = pair->ended;
	elapsed->ms = ms;
	(void)pthread_mutex_unlock(&lock);
}

static CUresult
pair_start(struct pair *pair)
{
	const struct gp_args_cuEventElapsedTime_v2 args = { .hStart = pair->start->handle.id,
							    .hEnd = pair->end->handle.id };

	return gpc_start_cuEventElapsedTime_v2(pair->end->context, &args, &pair->request);
}

/* Sets up the pair of this event and the one recorded next. Returns false unless both belong to the
 * same session and are known to be complete. */
static bool
pair_init_next(struct gpc_event *event, struct pair *pair)
{
	struct gpc_event *next =
		gpc_handle_from_token(GPC_KIND_EVENT, atomic_load(&event->elapsed.next));

	*pair = (struct pair){ .start = event, .end = next };
	return next && next->context->scope.session == event->context->scope.session &&
	       gpc_event_is_done(event, &pair->started) && gpc_event_is_done(next, &pair->ended);
}

/* Starts queries for the events recorded after this one. Returns their number. */
static size_t
pairs_start_ahead(struct gpc_event *event, struct pair pairs[AHEAD_MAX])
{
	struct gpc_event *first = event;
	size_t count = 0;
	float ms;

	for (int i = 0; i < AHEAD_MAX && pair_init_next(event, &pairs[count]); i++) {
		event = pairs[count].end;
		if (event == first)
			break;
		if (!pair_lookup(&pairs[count], &ms) && pair_start(&pairs[count]) == CUDA_SUCCESS)
			count++;
	}
	return count;
}

/* Decodes and caches the reply of a query with this result. */
static CUresult
pair_finish(struct pair *pair, CUresult result, float *ms)
{
	struct gp_reply_cuEventElapsedTime_v2 reply = { 0 };
	struct gp_dec dec;

	gp_dec_init(&dec, pair->request.reply, pair->request.reply_size);
	if (result == CUDA_SUCCESS)
		gp_reply_cuEventElapsedTime_v2_decode(&dec, &reply);
	if (result == CUDA_SUCCESS && !gp_dec_done(&dec))
		result = gpc_reply_fail_malformed(pair->end->context);
	free(pair->request.reply);
	if (result != CUDA_SUCCESS)
		return result;
	pair_store(pair, reply.pMilliseconds);
	*ms = reply.pMilliseconds;
	return CUDA_SUCCESS;
}

static CUresult
pair_query(struct pair *pair, float *ms)
{
	struct pair ahead[AHEAD_MAX];
	CUresult result = pair_start(pair);
	size_t count;
	float other;

	if (result != CUDA_SUCCESS)
		return result;
	gpc_stats_wait_start(GP_CALL_cuEventElapsedTime_v2);
	count = pairs_start_ahead(pair->end, ahead);
	result = pair_finish(pair, gpc_request_wait(&pair->request), ms);
	for (size_t i = 0; i < count; i++)
		(void)pair_finish(&ahead[i], gpc_request_wait_own(&ahead[i].request), &other);
	gpc_stats_wait_stop();
	return result;
}

CUresult
gpc_cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	struct gpc_event *start, *end;
	struct pair pair;
	float ms;
	CUresult result = gpc_enter_kind(GPC_KIND_EVENT, hStart, &start);

	if (result == CUDA_SUCCESS)
		result = gpc_event_lookup(hEnd, &end);
	if (result != CUDA_SUCCESS)
		return result;
	pair = (struct pair){
		.start = start, .end = end, .started = start->recorded, .ended = end->recorded
	};
	if (start->context->scope.session != end->context->scope.session || !pair.started ||
	    !pair.ended || !event_has_timing(start) || !event_has_timing(end))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!pMilliseconds)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpc_event_settle(start);
	if (result == CUDA_SUCCESS)
		result = gpc_event_settle(end);
	if (result != CUDA_SUCCESS)
		return result;
	result = pair_lookup(&pair, &ms) ? gpc_session_result(end->context->scope.session)
					 : pair_query(&pair, &ms);
	if (result == CUDA_SUCCESS)
		*pMilliseconds = ms;
	return result;
}
