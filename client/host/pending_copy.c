/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/pending_copy.h"

#include "base/lock.h"
#include "client/host/mirror.h"
#include "client/wire/host_queue.h"
#include "client/wire/session.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <utlist.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpc_pending_copy *all GP_GUARDED_BY(lock);
static atomic_uint count;
static atomic_uint replicated; /* of them, those that are */
static atomic_uint over_lanes; /* of them, those over data lanes */

/* What is looked for: a copy that writes to memory, or one that is a stream's. */
struct wanted {
	uintptr_t base;
	uint64_t size; /* 0: no memory is meant */
	const struct gpc_session *session;
	uint32_t stream;
	uint64_t given;
};

/* The last one that was done, as a stream's. */
static struct wanted last_done GP_GUARDED_BY(lock);
static atomic_uint_fast64_t last_given;

void
gpc_pending_copy_add(struct gpc_pending_copy *pending)
{
	pending->references = 2;
	(void)pthread_mutex_lock(&lock);
	DL_PREPEND(all, pending);
	atomic_fetch_add(&count, 1);
	if (pending->lanes)
		atomic_fetch_add(&over_lanes, 1);
	(void)pthread_mutex_unlock(&lock);
}

static void
put(struct gpc_pending_copy *pending, unsigned int references)
{
	bool last;

	(void)pthread_mutex_lock(&lock);
	pending->references -= references;
	last = pending->references == 0;
	(void)pthread_mutex_unlock(&lock);
	if (last)
		free(pending);
}

/* Whether anybody waits for it. */
static bool
take_out(struct gpc_pending_copy *pending)
{
	bool waited;

	(void)pthread_mutex_lock(&lock);
	DL_DELETE(all, pending);
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
		put(pending, 1);
	} else {
		(void)take_out(pending);
		put(pending, 2);
	}
}

bool
gpc_pending_copy_done(struct gpc_pending_copy *pending, CUresult result)
{
	const struct gpc_request *request = pending->request;
	bool waited;

	if (result == CUDA_SUCCESS) {
		(void)pthread_mutex_lock(&lock);
		last_done = (struct wanted){ .session = request->session,
					     .stream = pending->stream,
					     .given = request->given };
		atomic_store(&last_given, request->given);
		(void)pthread_mutex_unlock(&lock);
	}
	waited = take_out(pending);

	put(pending, 1);
	return waited;
}

static bool
is_wanted(const struct gpc_pending_copy *pending, const struct wanted *wanted)
{
	const struct gpc_request *request = pending->request;

	if (!pending->started)
		return false;
	if (wanted->size > 0)
		return !__atomic_load_n(&request->complete, __ATOMIC_ACQUIRE) &&
		       pending->start < wanted->base + wanted->size && wanted->base < pending->end;
	return request->session == wanted->session && pending->stream == wanted->stream &&
	       request->given == wanted->given;
}

/* A reference to such a copy that is under way; NULL: none is. */
static struct gpc_pending_copy *
find(const struct wanted *wanted)
{
	struct gpc_pending_copy *pending;

	(void)pthread_mutex_lock(&lock);
	for (pending = all; pending; pending = pending->next) {
		if (is_wanted(pending, wanted)) {
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
	const struct wanted wanted = { .base = (uintptr_t)base, .size = size };
	const struct gpc_pending_copy *pending;

	if (atomic_load(&count) == 0 || size == 0)
		return false;
	(void)pthread_mutex_lock(&lock);
	for (pending = all; pending && !is_wanted(pending, &wanted); pending = pending->next)
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
get_overlap(const struct gpc_pending_copy *pending, uint64_t stream)
{
	if (!pending->lanes)
		return GPC_OVERLAP_LANE_0;
	return pending->lanes == stream ? GPC_OVERLAP_STREAM : GPC_OVERLAP_OTHER;
}

enum gpc_pending_overlap
gpc_pending_copy_overlap(const void *base, uint64_t size, uint64_t stream)
{
	const struct wanted wanted = { .base = (uintptr_t)base, .size = size };
	enum gpc_pending_overlap most = GPC_OVERLAP_NONE;
	const struct gpc_pending_copy *pending;

	if (atomic_load(&count) == 0 || size == 0)
		return GPC_OVERLAP_NONE;
	(void)pthread_mutex_lock(&lock);
	DL_FOREACH(all, pending)
	{
		if (is_wanted(pending, &wanted) && get_overlap(pending, stream) > most)
			most = get_overlap(pending, stream);
	}
	(void)pthread_mutex_unlock(&lock);
	return most;
}

CUresult
gpc_pending_copy_settle(const void *base, uint64_t size)
{
	const struct wanted wanted = { .base = (uintptr_t)base, .size = size };
	CUresult result = CUDA_SUCCESS;
	struct gpc_pending_copy *pending;

	if (atomic_load(&count) == 0 || size == 0)
		return CUDA_SUCCESS;
	while ((pending = find(&wanted))) {
		CUresult one = gpc_request_wait(pending->request);

		if (result == CUDA_SUCCESS)
			result = one;
		put(pending, 1);
	}
	return result;
}

static bool
is_any_pending(const struct gpc_session *session)
{
	const struct gpc_pending_copy *pending;

	(void)pthread_mutex_lock(&lock);
	for (pending = all; pending && pending->request->session != session;
	     pending = pending->next)
		;
	(void)pthread_mutex_unlock(&lock);
	return pending != NULL;
}

static void
ignore_turn(CUstream stream, CUresult result, void *data)
{
	(void)stream;
	(void)result;
	(void)data;
}

static void
publish(CUstream stream, CUresult result, void *data)
{
	(void)stream;
	if (result == CUDA_SUCCESS)
		(void)gpc_mirror_send(data);
}

void
gpc_pending_copy_replicate(const void *base, uint64_t size)
{
	const struct wanted wanted = { .base = (uintptr_t)base, .size = size };
	struct gpc_pending_copy *pending;

	if (atomic_load(&count) == 0 || size == 0)
		return;
	(void)pthread_mutex_lock(&lock);
	DL_FOREACH(all, pending)
	{
		if (pending->replicated || !is_wanted(pending, &wanted))
			continue;
		pending->replicated = true;
		atomic_fetch_add(&replicated, 1);
	}
	(void)pthread_mutex_unlock(&lock);
}

CUresult
gpc_pending_copy_publish_in_turn(const struct gpc_scope *scope, uint32_t stream)
{
	const struct gpc_host_call call = {
		.callback = publish,
		.data = scope->session,
		.library = true,
	};

	return gpc_host_queue_post(scope, stream, &call);
}

/* A copy that is done before the look was published by it. */
CUresult
gpc_pending_copy_publish(const struct gpc_scope *scope, uint32_t stream)
{
	bool before = atomic_load(&replicated) > 0;
	CUresult result = gpc_mirror_before_work(scope->session);

	if (result != CUDA_SUCCESS || (!before && atomic_load(&replicated) == 0))
		return result;
	return gpc_pending_copy_publish_in_turn(scope, stream);
}

/* The daemon notifies the client of the function after it has sent the bytes of earlier copies, and
 * the client reads both from one connection. */
CUresult
gpc_pending_copy_order(const struct gpc_scope *scope, uint32_t stream)
{
	const struct gpc_host_call call = { .callback = ignore_turn, .library = true };

	if (atomic_load(&count) == 0 || !is_any_pending(scope->session))
		return CUDA_SUCCESS;
	return gpc_host_queue_post(scope, stream, &call);
}

static bool
is_last(const struct wanted *wanted)
{
	bool is;

	(void)pthread_mutex_lock(&lock);
	is = last_done.session == wanted->session && last_done.stream == wanted->stream &&
	     last_done.given == wanted->given;
	(void)pthread_mutex_unlock(&lock);
	return is;
}

bool
gpc_pending_copy_await(struct gpc_session *session, uint32_t stream, uint64_t given,
		       CUresult *result_p)
{
	const struct wanted wanted = { .session = session, .stream = stream, .given = given };
	struct gpc_pending_copy *pending = atomic_load(&count) > 0 ? find(&wanted) : NULL;

	if (pending) {
		*result_p = gpc_request_wait(pending->request);
		put(pending, 1);
		return true;
	}
	if (atomic_load(&last_given) != given || !is_last(&wanted))
		return false;
	*result_p = gpc_session_result(session);
	return true;
}
