/* SPDX-License-Identifier: Apache-2.0 */
#include "client/stream/completion_watch.h"

#include "client/session/session.h"
#include "gpc_calls.h"

#include <stdatomic.h>
#include <stdlib.h>

struct gpc_watch {
	struct gpc_request request;
	uint32_t
		id; /* wire ID of the event or stream; a successor in the same memory has another */
	uint64_t mark;
	atomic_uint refs;
};

/* Guards all slots. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Value of a dropped slot: a concurrent query does not start a watch there. */
static struct gpc_watch dropped;
static atomic_uint count;

static void
watch_unref(struct gpc_watch *watch)
{
	if (!watch || watch == &dropped || atomic_fetch_sub(&watch->refs, 1) > 1)
		return;
	free(watch->request.reply);
	free(watch);
	atomic_fetch_sub(&count, 1);
}

static void
watch_complete(struct gpc_request *request)
{
	watch_unref(request->arg);
}

/* Stores the watch in the slot unless that is dropped. Returns the watch that the caller must
 * unref: the previous one, or the new one if it was not stored. */
static struct gpc_watch *
watch_exchange(struct gpc_watch **slot, struct gpc_watch *watch)
{
	struct gpc_watch *before;

	(void)pthread_mutex_lock(&lock);
	before = *slot == &dropped ? watch : *slot;
	if (*slot != &dropped)
		*slot = watch;
	(void)pthread_mutex_unlock(&lock);
	return before;
}

void
gpc_watch_drop(struct gpc_watch **slot)
{
	watch_unref(watch_exchange(slot, &dropped));
}

enum watched {
	WATCHED_NOT, /* no watch for the work up to this mark: query the daemon */
	WATCHED_PENDING,
	WATCHED_DONE,
};

/* Polls the watch, reading arrived messages without blocking. */
static enum watched
watch_poll(struct gpc_watch **slot, uint32_t id, uint64_t mark)
{
	enum watched watched = WATCHED_PENDING;
	struct gpc_watch *watch;

	(void)pthread_mutex_lock(&lock);
	watch = *slot;
	if (watch && watch->id == id && watch->mark == mark)
		atomic_fetch_add(&watch->refs, 1);
	else
		watch = NULL;
	(void)pthread_mutex_unlock(&lock);
	if (!watch)
		return WATCHED_NOT;
	if (gpc_request_poll(&watch->request))
		watched = watch->request.result == CUDA_SUCCESS ? WATCHED_DONE : WATCHED_NOT;
	watch_unref(watch);
	return watched;
}

/* Returns NULL if no watch is to be started. */
static struct gpc_watch *
watch_create(uint64_t mark, const struct gpc_watched *watched)
{
	struct gpc_watch *watch;

	if (gpc_session_awaits_host(watched->context->scope.session))
		return NULL;
	watch = atomic_fetch_add(&count, 1) < GPC_WATCHES_MAX ? calloc(1, sizeof(*watch)) : NULL;
	if (!watch) {
		atomic_fetch_sub(&count, 1);
		return NULL;
	}
	watch->id = watched->id;
	watch->mark = mark;
	watch->request.done = watch_complete;
	watch->request.arg = watch;
	atomic_init(&watch->refs, 2);
	return watch;
}

/* Called with the result of starting the request. The slot owns the watch from here, unless it was
 * dropped. */
static void
watch_started(struct gpc_watch **slot, struct gpc_watch *watch, CUresult result)
{
	if (result == CUDA_SUCCESS) {
		watch_unref(watch_exchange(slot, watch));
		return;
	}
	watch_unref(watch);
	watch_unref(watch);
}

void
gpc_watch_start(struct gpc_watch **slot, uint64_t mark, const struct gpc_watched *watched)
{
	const struct gp_args_cuStreamSynchronize stream = { .hStream = watched->id };
	const struct gp_args_cuEventSynchronize event = { .hEvent = watched->id };
	struct gpc_context *context = watched->context;
	struct gpc_watch *watch = watch_create(mark, watched);

	if (watch && watched->is_event)
		watch_started(slot, watch,
			      gpc_start_cuEventSynchronize(context, &event, &watch->request));
	else if (watch)
		watch_started(slot, watch,
			      gpc_start_cuStreamSynchronize(context, &stream, &watch->request));
}

CUresult
gpc_watch_query(struct gpc_watch **slot, uint64_t mark, const struct gpc_watched *watched)
{
	const struct gp_args_cuStreamQuery stream = { .hStream = watched->id };
	const struct gp_args_cuEventQuery event = { .hEvent = watched->id };
	CUresult result;

	switch (watch_poll(slot, watched->id, mark)) {
	case WATCHED_PENDING:
		return CUDA_ERROR_NOT_READY;
	case WATCHED_DONE:
		return gpc_session_result(watched->context->scope.session);
	default:
		break;
	}
	result = watched->is_event ? gpc_wait_cuEventQuery(watched->context, &event)
				   : gpc_wait_cuStreamQuery(watched->context, &stream);
	if (result == CUDA_ERROR_NOT_READY)
		gpc_watch_start(slot, mark, watched);
	return result;
}
