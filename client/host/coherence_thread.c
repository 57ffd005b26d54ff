/* SPDX-License-Identifier: Apache-2.0 */
/* Exchange thread: while work is in progress, periodically scans the program's memory for changes,
 * and requests the device's changes from the daemon. */
#include "base/clock.h"
#include "base/lock.h"
#include "client/base/handle.h"
#include "client/base/stats.h"
#include "client/connect/welcome.h"
#include "client/context/context.h"
#include "client/host/coherence.h"
#include "client/host/coherence_internal.h"
#include "client/session/session.h"
#include "client/session/session_threads.h"
#include "gpc_calls.h"

#include <stdlib.h>
#include <string.h>

/* Pause between two exchanges: at least this long, and at least this multiple of the CPU time of an
 * exchange. */
#define PAUSE_NS UINT64_C(70000)
#define PAUSE_FACTOR 3
/* Maximum number of outstanding fetches, over a slow link. */
#define FETCHES_MAX 64

/* Waits until work is in progress. Returns false if the session is over. */
static bool
coherence_await_work(struct gpc_coherence *coherence)
{
	bool over;

	(void)pthread_mutex_lock(&coherence->lock);
	for (;;) {
		/* Threads that post work check this flag afterwards. */
		atomic_store(&coherence->sleeps, true);
		over = coherence->over;
		if (over || coherence->publish_number ||
		    (coherence->blocks &&
		     atomic_load(&coherence->clean) < gpc_session_issued(coherence->session)))
			break;
		(void)pthread_cond_wait(&coherence->wanted, &coherence->lock);
	}
	atomic_store(&coherence->sleeps, false);
	(void)pthread_mutex_unlock(&coherence->lock);
	return !over;
}

/* Outstanding fetches, oldest first; used by the thread only. */
struct fetch_queue {
	struct gpc_coherence_fetch *list[FETCHES_MAX];
	unsigned int first, count;
	unsigned int
		parked_max; /* maximum number parked at the daemon; grows if changes are frequent */
};

static bool
fetch_may_be_parked(const struct gpc_coherence *coherence)
{
	return gpc_facts_have_call(gpc_session_facts(coherence->session),
				   GP_CALL_gpHostTakeChanged);
}

/* Over a link with a long round trip many fetches are in flight, but no more than fit into it; more
 * would wait at the daemon. */
static unsigned int
fetch_queue_limit(struct gpc_coherence *coherence, const struct fetch_queue *fetch_queue)
{
	uint64_t most;

	(void)pthread_mutex_lock(&coherence->lock);
	most = 1 + coherence->least_ns / PAUSE_NS;
	(void)pthread_mutex_unlock(&coherence->lock);
	return most < fetch_queue->parked_max ? (unsigned int)most : fetch_queue->parked_max;
}

static CUresult
fetch_queue_push(struct gpc_coherence *coherence, enum gpc_fetch_when when,
		 struct fetch_queue *fetch_queue)
{
	struct gpc_coherence_fetch *fetch = calloc(1, sizeof(*fetch));
	struct gpc_coherence_cursor cursor = { 0 };
	CUresult result;

	if (!fetch)
		return CUDA_ERROR_OUT_OF_MEMORY;
	fetch->when = when;
	result = gpc_coherence_fetch_start(coherence, fetch, &cursor);
	if (result != CUDA_SUCCESS || fetch->requested == 0) {
		free(fetch);
		return result;
	}
	fetch_queue->list[(fetch_queue->first + fetch_queue->count++) % FETCHES_MAX] = fetch;
	return CUDA_SUCCESS;
}

static uint64_t
coherence_get_size(struct gpc_coherence *coherence)
{
	uint64_t size;

	(void)pthread_mutex_lock(&coherence->lock);
	size = coherence->size;
	(void)pthread_mutex_unlock(&coherence->lock);
	return size;
}

/* Returns whether the last fetch names other blocks than exist now. */
static bool
fetch_queue_is_stale(struct gpc_coherence *coherence, const struct fetch_queue *fetch_queue)
{
	unsigned int last = fetch_queue->first + fetch_queue->count - 1;
	bool old;

	if (fetch_queue->count == 0)
		return false;
	(void)pthread_mutex_lock(&coherence->lock);
	old = fetch_queue->list[last % FETCHES_MAX]->revision != coherence->revision;
	(void)pthread_mutex_unlock(&coherence->lock);
	return old;
}

/* A fetch with GPC_FETCH_NOW ends the parked ones at the daemon, so it is used when the list of
 * blocks has changed. If there is too much to be parked, the client polls. */
static CUresult
fetch_queue_refill(struct gpc_coherence *coherence, struct fetch_queue *fetch_queue)
{
	unsigned int before = fetch_queue->count;
	CUresult result;

	if (!fetch_may_be_parked(coherence) || fetch_queue_is_stale(coherence, fetch_queue))
		return fetch_queue_push(coherence, GPC_FETCH_NOW, fetch_queue);
	result = fetch_queue_push(coherence, GPC_FETCH_ON_CHANGE, fetch_queue);
	if (result == CUDA_SUCCESS && fetch_queue->count == before) {
		fetch_queue->parked_max = FETCHES_MAX;
		result = fetch_queue_push(coherence, GPC_FETCH_NOW, fetch_queue);
	}
	return result;
}

/* Completes the oldest fetch. Sets *more if there are changes that its reply did not include. */
static CUresult
fetch_queue_pop(struct fetch_queue *fetch_queue, bool *more)
{
	struct gpc_coherence_fetch *fetch = fetch_queue->list[fetch_queue->first];
	CUresult result = gpc_coherence_fetch_end(fetch, GP_CONSISTENT_COPY_ALL);

	if (fetch->last && fetch_queue->parked_max < FETCHES_MAX)
		fetch_queue->parked_max *= 2;
	*more |= fetch->done < fetch->requested ||
		 fetch->requested < coherence_get_size(fetch->coherence);
	free(fetch);
	fetch_queue->first = (fetch_queue->first + 1) % FETCHES_MAX;
	fetch_queue->count--;
	return result;
}

/* Sends the program's changes, and reports this to the daemon if it has requested a publication. */
static CUresult
changes_publish(struct gpc_coherence *coherence)
{
	struct gp_args_gpHostPublish args = { 0 };
	CUresult result;

	(void)pthread_mutex_lock(&coherence->lock);
	args.number = coherence->publish_number;
	coherence->publish_number = 0;
	(void)pthread_mutex_unlock(&coherence->lock);
	result = gpc_coherence_send(coherence->session);
	return result == CUDA_SUCCESS && args.number
		       ? gpc_post_gpHostPublish(coherence->primary, &args)
		       : result;
}

/* Exchanges changes in both directions, without waiting for the fetch that is started here. */
static CUresult
changes_exchange(struct gpc_coherence *coherence, struct fetch_queue *fetch_queue)
{
	CUresult result = changes_publish(coherence);
	bool more = false;

	while (result == CUDA_SUCCESS && fetch_queue->count > 0 &&
	       gpc_request_poll(&fetch_queue->list[fetch_queue->first]->request))
		result = fetch_queue_pop(fetch_queue, &more);
	if (result == CUDA_SUCCESS && more)
		return gpc_coherence_fetch_all(coherence);
	if (result == CUDA_SUCCESS &&
	    (fetch_queue->count < fetch_queue_limit(coherence, fetch_queue) ||
	     (fetch_queue->count < FETCHES_MAX && fetch_queue_is_stale(coherence, fetch_queue))))
		result = fetch_queue_refill(coherence, fetch_queue);
	return result;
}

static CUresult
fetch_queue_drain(struct fetch_queue *fetch_queue)
{
	CUresult result = CUDA_SUCCESS;
	bool more = false;

	while (fetch_queue->count > 0) {
		CUresult one = fetch_queue_pop(fetch_queue, &more);

		result = result == CUDA_SUCCESS ? one : result;
	}
	return result;
}

/* Saves other waits from fetching again. */
static void
context_set_clean(void *object, void *arg)
{
	struct gpc_context *context = object;
	const struct gpc_coherence *coherence = arg;

	if (context->scope.session == coherence->session)
		gpc_atomic_max(&context->done, atomic_load(&coherence->clean));
}

static void
coherence_set_clean(struct gpc_coherence *coherence, uint64_t issued)
{
	atomic_store(&coherence->clean, issued);
	gpc_handle_each(GPC_KIND_CONTEXT, context_set_clean, coherence);
}

/* Exchanges changes until all work issued so far is done. */
static void
changes_exchange_until_done(struct gpc_coherence *coherence)
{
	const struct gp_args_gpFence args = { 0 };
	struct gpc_request fence = { .session = coherence->session };
	uint64_t issued = gpc_session_issued(coherence->session);
	struct fetch_queue fetch_queue = { .parked_max = fetch_may_be_parked(coherence)
								 ? 1
								 : FETCHES_MAX };
	CUresult result = CUDA_SUCCESS;
	bool done = false;

	if (gpc_start_gpFence(coherence->primary, &args, &fence) != CUDA_SUCCESS)
		return;
	while (!done && gpc_session_status(coherence->session) == CUDA_SUCCESS) {
		uint64_t begin = gp_thread_cpu_ns(), took;

		done = gpc_request_poll(&fence);
		result = changes_exchange(coherence, &fetch_queue);
		took = (gp_thread_cpu_ns() - begin) * PAUSE_FACTOR;
		if (!done)
			gp_sleep_ns(took > PAUSE_NS ? took : PAUSE_NS);
	}
	/* Outstanding requests are completed when the session ends. */
	(void)gpc_request_wait_own(&fence);
	free(fence.reply);
	if (done && result == CUDA_SUCCESS && fence.result == CUDA_SUCCESS)
		result = gpc_coherence_fetch_all(coherence);
	else
		result = CUDA_ERROR_UNKNOWN;
	/* The fetch above has ended those parked at the daemon. */
	if (fetch_queue_drain(&fetch_queue) == CUDA_SUCCESS && result == CUDA_SUCCESS)
		coherence_set_clean(coherence, issued);
}

void *
gpc_coherence_run(void *arg)
{
	struct gpc_coherence *coherence = arg;

	gpc_stats_set_own_thread();
	while (coherence_await_work(coherence))
		changes_exchange_until_done(coherence);
	gpc_thread_ended(coherence->session);
	return NULL;
}
