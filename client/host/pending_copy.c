/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/pending_copy.h"

#include "base/lock.h"
#include "client/host/coherence.h"
#include "client/session/host_queue.h"
#include "client/session/session.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <utlist.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpc_pending_copy *pending_copies GP_GUARDED_BY(lock);
static atomic_uint count;
static atomic_uint replicated; /* number of copies with `replicated` set */
static atomic_uint over_lanes; /* number of copies over data lanes */

/* Selects a copy by its destination, or by its stream. */
struct pending_query {
	uintptr_t base;
	uint64_t size; /* 0: select by stream */
	const struct gpc_session *session;
	uint32_t stream;
	uint64_t issued;
};

/* The last completed copy. */
static struct pending_query last_done GP_GUARDED_BY(lock);
static atomic_uint_fast64_t last_issued;

void
gpc_pending_copy_add(struct gpc_pending_copy *pending)
{
	pending->references = 2;
	(void)pthread_mutex_lock(&lock);
	DL_PREPEND(pending_copies, pending);
	atomic_fetch_add(&count, 1);
	if (pending->lanes)
		atomic_fetch_add(&over_lanes, 1);
	(void)pthread_mutex_unlock(&lock);
}

static void
pending_unref(struct gpc_pending_copy *pending, unsigned int references)
{
	bool last;

	(void)pthread_mutex_lock(&lock);
	pending->references -= references;
	last = pending->references == 0;
	(void)pthread_mutex_unlock(&lock);
	if (last)
		free(pending);
}

/* Returns whether a thread waits for the copy. */
static bool
pending_remove(struct gpc_pending_copy *pending)
{
	bool waited;

	(void)pthread_mutex_lock(&lock);
	DL_DELETE(pending_copies, pending);
	atomic_fetch_sub(&count, 1);
	if (pending->lanes)
		atomic_fetch_sub(&over_lanes, 1);
	if (pending->replicated)
		atomic_fetch_sub(&replicated, 1);
	waited = pending->waiters > 0;
	(void)pthread_mutex_unlock(&lock);
	return waited;
}

void
gpc_pending_copy_started(struct gpc_pending_copy *pending, bool success)
{
	if (success) {
		(void)pthread_mutex_lock(&lock);
		pending->started = true;
		(void)pthread_mutex_unlock(&lock);
		pending_unref(pending, 1);
	} else {
		(void)pending_remove(pending);
		pending_unref(pending, 2);
	}
}

bool
gpc_pending_copy_done(struct gpc_pending_copy *pending, CUresult result)
{
	const struct gpc_request *request = pending->request;
	bool waited;

	if (result == CUDA_SUCCESS) {
		(void)pthread_mutex_lock(&lock);
		last_done = (struct pending_query){ .session = request->session,
						    .stream = pending->stream,
						    .issued = request->issued };
		atomic_store(&last_issued, request->issued);
		(void)pthread_mutex_unlock(&lock);
	}
	waited = pending_remove(pending);

	pending_unref(pending, 1);
	return waited;
}

static bool
pending_matches(const struct gpc_pending_copy *pending, const struct pending_query *pending_query)
{
	const struct gpc_request *request = pending->request;

	if (!pending->started)
		return false;
	if (pending_query->size > 0)
		return !__atomic_load_n(&request->complete, __ATOMIC_ACQUIRE) &&
		       pending->start < pending_query->base + pending_query->size &&
		       pending_query->base < pending->end;
	return request->session == pending_query->session &&
	       pending->stream == pending_query->stream && request->issued == pending_query->issued;
}

/* Returns a new reference to a matching pending copy, or NULL. */
static struct gpc_pending_copy *
pending_find(const struct pending_query *pending_query)
{
	struct gpc_pending_copy *pending;

	(void)pthread_mutex_lock(&lock);
	for (pending = pending_copies; pending; pending = pending->next) {
		if (pending_matches(pending, pending_query)) {
			pending->references++;
			pending->waiters++;
			break;
		}
	}
	(void)pthread_mutex_unlock(&lock);
	return pending;
}

bool
gpc_pending_copy_writes(const void *base, uint64_t size)
{
	const struct pending_query pending_query = { .base = (uintptr_t)base, .size = size };
	const struct gpc_pending_copy *pending;

	if (atomic_load(&count) == 0 || size == 0)
		return false;
	(void)pthread_mutex_lock(&lock);
	for (pending = pending_copies; pending && !pending_matches(pending, &pending_query);
	     pending = pending->next)
		;
	(void)pthread_mutex_unlock(&lock);
	return pending != NULL;
}

bool
gpc_pending_copy_over_lanes(void)
{
	return atomic_load(&over_lanes) > 0;
}

static enum gpc_pending_overlap
pending_get_overlap(const struct gpc_pending_copy *pending, uint64_t stream)
{
	if (!pending->lanes)
		return GPC_OVERLAP_LANE_0;
	return pending->lanes == stream ? GPC_OVERLAP_STREAM : GPC_OVERLAP_OTHER;
}

enum gpc_pending_overlap
gpc_pending_copy_overlap(const void *base, uint64_t size, uint64_t stream)
{
	const struct pending_query pending_query = { .base = (uintptr_t)base, .size = size };
	enum gpc_pending_overlap most = GPC_OVERLAP_NONE;
	const struct gpc_pending_copy *pending;

	if (atomic_load(&count) == 0 || size == 0)
		return GPC_OVERLAP_NONE;
	(void)pthread_mutex_lock(&lock);
	DL_FOREACH(pending_copies, pending)
	{
		if (pending_matches(pending, &pending_query) &&
		    pending_get_overlap(pending, stream) > most)
			most = pending_get_overlap(pending, stream);
	}
	(void)pthread_mutex_unlock(&lock);
	return most;
}

CUresult
gpc_pending_copy_settle(const void *base, uint64_t size)
{
	const struct pending_query pending_query = { .base = (uintptr_t)base, .size = size };
	CUresult result = CUDA_SUCCESS;
	struct gpc_pending_copy *pending;

	if (atomic_load(&count) == 0 || size == 0)
		return CUDA_SUCCESS;
	while ((pending = pending_find(&pending_query))) {
		CUresult one = gpc_request_wait(pending->request);

		if (result == CUDA_SUCCESS)
			result = one;
		pending_unref(pending, 1);
	}
	return result;
}

static bool
session_has_pending(const struct gpc_session *session)
{
	const struct gpc_pending_copy *pending;

	(void)pthread_mutex_lock(&lock);
	for (pending = pending_copies; pending && pending->request->session != session;
	     pending = pending->next)
		;
	(void)pthread_mutex_unlock(&lock);
	return pending != NULL;
}

static void
ignore_due(CUstream stream, CUresult result, void *data)
{
	(void)stream;
	(void)result;
	(void)data;
}

static void
changes_publish(CUstream stream, CUresult result, void *data)
{
	(void)stream;
	if (result == CUDA_SUCCESS)
		(void)gpc_coherence_send(data);
}

void
gpc_pending_copy_replicate(const void *base, uint64_t size)
{
	const struct pending_query pending_query = { .base = (uintptr_t)base, .size = size };
	struct gpc_pending_copy *pending;

	if (atomic_load(&count) == 0 || size == 0)
		return;
	(void)pthread_mutex_lock(&lock);
	DL_FOREACH(pending_copies, pending)
	{
		if (pending->replicated || !pending_matches(pending, &pending_query))
			continue;
		pending->replicated = true;
		atomic_fetch_add(&replicated, 1);
	}
	(void)pthread_mutex_unlock(&lock);
}

CUresult
gpc_pending_copy_publish_when_due(const struct gpc_scope *scope, uint32_t stream)
{
	const struct gpc_host_call call = {
		.callback = changes_publish,
		.data = scope->session,
		.library = true,
	};

	return gpc_host_queue_post(scope, stream, &call);
}

/* A copy that completes before the scan of the program's memory is published by it. */
CUresult
gpc_pending_copy_publish(const struct gpc_scope *scope, uint32_t stream)
{
	bool before = atomic_load(&replicated) > 0;
	CUresult result = gpc_coherence_before_work(scope->session);

	if (result != CUDA_SUCCESS || (!before && atomic_load(&replicated) == 0))
		return result;
	return gpc_pending_copy_publish_when_due(scope, stream);
}

/* The daemon notifies the client of the function after it has sent the data of earlier copies, and
 * the client reads both from one connection. */
CUresult
gpc_pending_copy_order(const struct gpc_scope *scope, uint32_t stream)
{
	const struct gpc_host_call call = { .callback = ignore_due, .library = true };

	if (atomic_load(&count) == 0 || !session_has_pending(scope->session))
		return CUDA_SUCCESS;
	return gpc_host_queue_post(scope, stream, &call);
}

static bool
last_done_matches(const struct pending_query *pending_query)
{
	bool is;

	(void)pthread_mutex_lock(&lock);
	is = last_done.session == pending_query->session &&
	     last_done.stream == pending_query->stream && last_done.issued == pending_query->issued;
	(void)pthread_mutex_unlock(&lock);
	return is;
}

bool
gpc_pending_copy_await(struct gpc_session *session, uint32_t stream, uint64_t issued,
		       CUresult *result_p)
{
	const struct pending_query pending_query = { .session = session,
						     .stream = stream,
						     .issued = issued };
	struct gpc_pending_copy *pending =
		atomic_load(&count) > 0 ? pending_find(&pending_query) : NULL;

	if (pending) {
		*result_p = gpc_request_wait(pending->request);
		pending_unref(pending, 1);
		return true;
	}
	if (atomic_load(&last_issued) != issued || !last_done_matches(&pending_query))
		return false;
	*result_p = gpc_session_result(session);
	return true;
}
