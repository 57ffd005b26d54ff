/* SPDX-License-Identifier: Apache-2.0 */
#include "client/stream/watch.h"

#include "client/wire/session.h"
#include "gpc_calls.h"

#include <stdatomic.h>
#include <stdlib.h>

struct gpc_watch {
	struct gpc_request request;
	uint64_t mark;
	atomic_uint refs;
};

/* Over all places. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint count;

static void
unref(struct gpc_watch *watch)
{
	if (!watch || atomic_fetch_sub(&watch->refs, 1) > 1)
		return;
	free(watch->request.reply);
	free(watch);
	atomic_fetch_sub(&count, 1);
}

static void
answered(struct gpc_request *request)
{
	unref(request->arg);
}

static struct gpc_watch *
exchange(struct gpc_watch **place, struct gpc_watch *watch)
{
	struct gpc_watch *before;

	(void)pthread_mutex_lock(&lock);
	before = *place;
	*place = watch;
	(void)pthread_mutex_unlock(&lock);
	return before;
}

void
gpc_watch_drop(struct gpc_watch **place)
{
	unref(exchange(place, NULL));
}

enum gpc_watched
gpc_watch_look(struct gpc_watch **place, uint64_t mark)
{
	enum gpc_watched watched = GPC_WATCHED_PENDING;
	struct gpc_watch *watch;

	(void)pthread_mutex_lock(&lock);
	watch = *place;
	if (watch && watch->mark == mark)
		atomic_fetch_add(&watch->refs, 1);
	else
		watch = NULL;
	(void)pthread_mutex_unlock(&lock);
	if (!watch)
		return GPC_WATCHED_NOT;
	if (gpc_request_poll(&watch->request))
		watched =
			watch->request.result == CUDA_SUCCESS ? GPC_WATCHED_DONE : GPC_WATCHED_NOT;
	unref(watch);
	return watched;
}

/* NULL: none is to be begun. */
static struct gpc_watch *
make(uint64_t mark, const struct gpc_context *context)
{
	struct gpc_watch *watch;

	if (gpc_session_has_functions(context->scope.session))
		return NULL;
	watch = atomic_fetch_add(&count, 1) < GPC_WATCHES_MAX ? calloc(1, sizeof(*watch)) : NULL;
	if (!watch) {
		atomic_fetch_sub(&count, 1);
		return NULL;
	}
	watch->mark = mark;
	watch->request.done = answered;
	watch->request.arg = watch;
	atomic_init(&watch->refs, 2);
	return watch;
}

/* result: of starting its request.  The place has it from now on. */
static void
begun(struct gpc_watch **place, struct gpc_watch *watch, CUresult result)
{
	if (result == CUDA_SUCCESS) {
		unref(exchange(place, watch));
		return;
	}
	unref(watch);
	unref(watch);
}

void
gpc_watch_event(struct gpc_watch **place, uint64_t mark, struct gpc_context *context,
		uint32_t event)
{
	const struct gp_args_cuEventSynchronize args = { .hEvent = event };
	struct gpc_watch *watch = make(mark, context);

	if (watch)
		begun(place, watch, gpc_start_cuEventSynchronize(context, &args, &watch->request));
}

void
gpc_watch_stream(struct gpc_watch **place, uint64_t mark, struct gpc_context *context,
		 uint32_t stream)
{
	const struct gp_args_cuStreamSynchronize args = { .hStream = stream };
	struct gpc_watch *watch = make(mark, context);

	if (watch)
		begun(place, watch, gpc_start_cuStreamSynchronize(context, &args, &watch->request));
}
