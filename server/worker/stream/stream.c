/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/stream/stream.h"

#include "gpd_calls.h"
#include "server/worker/context/context.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/partition.h"
#include "server/worker/schedule/schedule.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/event.h"
#include "server/worker/stream/responder.h"
#include "server/worker/stream/stream_pool.h"

#include <stdlib.h>

/* Maximum per session: a driver's stream takes device memory. */
#define STREAMS_MAX 4096

CUresult
gpd_stream_record(struct gpd_stream *stream, CUevent *event)
{
	if (!*event) {
		CUresult result = gpd_driver.cuEventCreate(event, CU_EVENT_DISABLE_TIMING);

		if (result != CUDA_SUCCESS)
			return result;
	}
	return gpd_driver.cuEventRecord(*event, stream->driver);
}

void
gpd_stream_destroy_driver(CUstream driver, struct gpd_partition *partition)
{
	if (!partition && gpd_stream_pool_release(driver))
		return;
	/* In this order: the green context is destroyed after its last stream. */
	(void)gpd_driver.cuStreamDestroy_v2(driver);
	gpd_partition_unref(partition);
}

static bool
has_reached_its_end(const struct gpd_stream *stream)
{
	return atomic_load_explicit(&stream->reached, memory_order_acquire) >= stream->work;
}

/* Queries the stream's own work, without what was enqueued after it for other purposes. */
CUresult
gpd_stream_query_work(const struct gpd_stream *stream)
{
	const struct gpd_stream *legacy = stream->context ? stream->context->legacy : NULL;

	if (has_reached_its_end(stream))
		return CUDA_SUCCESS;
	/* The legacy stream has waited for all of it. */
	if (stream->blocking && legacy && stream->legacy_seen == stream->work &&
	    legacy->work > stream->work && has_reached_its_end(legacy))
		return CUDA_SUCCESS;
	/* A stream that was moved and has had no new work only waits for its former work. */
	if (stream->moved_work && stream->moved_work == stream->work)
		return gpd_driver.cuEventQuery(stream->order);
	return gpd_driver.cuStreamQuery(stream->driver);
}

CUresult
gpd_stream_order_after(struct gpd_stream *stream, struct gpd_stream *before)
{
	if (!before->order || before->order_work != before->work) {
		CUresult result = gpd_stream_record(before, &before->order);

		if (result != CUDA_SUCCESS)
			return result;
		before->order_work = before->work;
	}
	return gpd_driver.cuStreamWaitEvent(stream->driver, before->order, 0);
}

static CUresult
record_barrier(struct gpd_session *session)
{
	CUresult result;

	if (!session->streams->barrier_stream ||
	    session->streams->barrier_recorded == session->streams->barrier)
		return CUDA_SUCCESS;
	result = gpd_device_enter(session->streams->barrier_stream->device);
	if (result == CUDA_SUCCESS)
		result = gpd_stream_record(session->streams->barrier_stream,
					   &session->streams->barrier_stream->barrier);
	if (result == CUDA_SUCCESS)
		session->streams->barrier_recorded = session->streams->barrier;
	return result;
}

static CUresult
pass_barrier(struct gpd_session *session, struct gpd_stream *stream)
{
	CUresult result;

	if (stream->seen_barrier == session->streams->barrier)
		return CUDA_SUCCESS;
	if (session->streams->barrier_stream && session->streams->barrier_stream != stream) {
		gpd_issue_settle(&session->issue);
		result = record_barrier(session);
		if (result == CUDA_SUCCESS)
			result = gpd_device_enter(stream->device);
		if (result == CUDA_SUCCESS)
			result = gpd_driver.cuStreamWaitEvent(
				stream->driver, session->streams->barrier_stream->barrier, 0);
		if (result != CUDA_SUCCESS)
			return result;
	}
	stream->seen_barrier = session->streams->barrier;
	return CUDA_SUCCESS;
}

/* Work on the legacy stream waits for all work of the context's blocking streams. */
static CUresult
order_legacy(struct gpd_session *session, struct gpd_stream *legacy)
{
	for (struct gpd_stream *s = session->streams->list; s; s = s->next) {
		CUresult result = CUDA_SUCCESS;

		if (!s->blocking || s->context != legacy->context || s->work <= s->legacy_seen)
			continue;
		if (!gpd_stream_is_idle(s)) {
			gpd_issue_settle(&session->issue);
			result = gpd_stream_order_after(legacy, s);
		}
		if (result != CUDA_SUCCESS)
			return result;
		s->legacy_seen = s->work;
	}
	return CUDA_SUCCESS;
}

/* Work on a blocking stream waits for that of the legacy stream. */
static CUresult
order_blocking(struct gpd_session *session, struct gpd_stream *stream)
{
	struct gpd_stream *legacy = stream->context ? stream->context->legacy : NULL;
	CUresult result = CUDA_SUCCESS;

	if (!legacy || legacy->work <= stream->seen_legacy)
		return CUDA_SUCCESS;
	if (!gpd_stream_is_idle(legacy)) {
		gpd_issue_settle(&session->issue);
		result = gpd_stream_order_after(stream, legacy);
	}
	if (result == CUDA_SUCCESS)
		stream->seen_legacy = legacy->work;
	return result;
}

/* Counts one more operation; waits until there is room for it. */
static void
stream_count_work(struct gpd_session *session, struct gpd_stream *stream)
{
	if (gpd_stream_is_idle(stream))
		gpd_depth_set_idle(&stream->depth);
	if (++stream->depth.given - stream->depth.marked >= stream->depth.stride)
		gpd_depth_mark(session, stream);
	stream->work = gpd_session_count_work(session);
}

CUresult
gpd_stream_begin(struct gpd_session *session, uint32_t id, struct gpd_stream **stream_p)
{
	*stream_p = gpd_stream_get(session, id);
	return *stream_p ? gpd_stream_begin_on(session, *stream_p) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult
gpd_stream_begin_on(struct gpd_session *session, struct gpd_stream *stream)
{
	CUresult result;

	if (__builtin_expect(
		    atomic_load_explicit(&session->shares.changed, memory_order_relaxed) != 0, 0))
		gpd_stream_follow_shares(session);
	if (session->streams->before_work)
		session->streams->before_work(session, stream);
	result = gpd_device_enter(stream->device);
	if (result == CUDA_SUCCESS)
		result = pass_barrier(session, stream);
	if (result == CUDA_SUCCESS && stream->legacy)
		result = order_legacy(session, stream);
	else if (result == CUDA_SUCCESS && stream->blocking)
		result = order_blocking(session, stream);
	if (result != CUDA_SUCCESS)
		return result;
	stream_count_work(session, stream);
	return CUDA_SUCCESS;
}

CUresult
gpd_stream_wait_event(struct gpd_session *session, struct gpd_stream *stream, CUevent event)
{
	CUresult result = gpd_device_enter(stream->device);

	if (result != CUDA_SUCCESS)
		return result;
	stream_count_work(session, stream);
	return gpd_driver.cuStreamWaitEvent(stream->driver, event, 0);
}

struct gpd_stream *
gpd_stream_get(const struct gpd_session *session, uint32_t id)
{
	return gpd_handle_get(&session->handles, GPD_KIND_STREAM, id);
}

CUresult
gpd_stream_barrier(struct gpd_session *session, struct gpd_stream *stream)
{
	session->streams->barrier++;
	session->streams->barrier_stream = stream;
	stream->seen_barrier = session->streams->barrier;
	/* With a single stream no other one waits; gpd_stream_create() records the barrier
	 * later. */
	return session->streams->count > 1 ? record_barrier(session) : CUDA_SUCCESS;
}

bool
gpd_context_has(const struct gpd_context *context, const struct gpd_stream *stream)
{
	return stream->context == context ||
	       (stream->context && stream->context->parent == context);
}

CUresult
gpd_stream_barrier_context(struct gpd_session *session, const struct gpd_context *context)
{
	struct gpd_stream *last = NULL;

	for (struct gpd_stream *s = session->streams->list; s; s = s->next) {
		CUresult result;

		if (!gpd_context_has(context, s) || gpd_stream_is_idle(s))
			continue;
		if (last) {
			result = gpd_stream_order_after(last, s);
		} else {
			last = s;
			result = gpd_stream_begin_on(session, last);
		}
		if (result != CUDA_SUCCESS)
			return result;
	}
	return last ? gpd_stream_barrier(session, last) : CUDA_SUCCESS;
}

bool
gpd_stream_all_idle(const struct gpd_session *session, const struct gpd_context *context)
{
	for (const struct gpd_stream *s = session->streams->list; s; s = s->next) {
		if ((!context || gpd_context_has(context, s)) && !gpd_stream_is_idle(s))
			return false;
	}
	return true;
}

void
gpd_stream_destroy_peer_stream(struct gpd_stream *stream)
{
	if (!stream->peer_stream)
		return;
	(void)gpd_device_enter(stream->peer_stream_device);
	(void)gpd_driver.cuStreamDestroy_v2(stream->peer_stream);
	if (stream->peer_stream_end)
		(void)gpd_driver.cuEventDestroy_v2(stream->peer_stream_end);
	(void)gpd_device_enter(stream->device);
	if (stream->peer_stream_begin)
		(void)gpd_driver.cuEventDestroy_v2(stream->peer_stream_begin);
	stream->peer_stream = NULL;
	stream->peer_stream_begin = stream->peer_stream_end = NULL;
}

/* The stream must not be in the list any more. */
static void
stream_destroy(struct gpd_session *session, struct gpd_stream *stream)
{
	if (session->streams->barrier_stream == stream)
		session->streams->barrier_stream = NULL;
	gpd_stream_destroy_peer_stream(stream);
	(void)gpd_device_enter(stream->device);
	if (stream->order)
		(void)gpd_driver.cuEventDestroy_v2(stream->order);
	if (stream->before)
		(void)gpd_driver.cuEventDestroy_v2(stream->before);
	if (stream->barrier)
		(void)gpd_driver.cuEventDestroy_v2(stream->barrier);
	if (stream->driver)
		gpd_stream_destroy_driver(stream->driver, stream->partition);
	else
		gpd_partition_unref(stream->partition);
	gpd_depth_close(session, stream);
	session->streams->count--;
	gpd_stream_pool_stream_removed();
	free(stream);
}

void
gpd_stream_reap(struct gpd_session *session)
{
	struct gpd_stream **link = &session->streams->list;

	while (*link) {
		struct gpd_stream *stream = *link;

		if (stream->dropped && gpd_stream_is_idle(stream) &&
		    !gpd_stream_has_waits(stream)) {
			*link = stream->next;
			stream_destroy(session, stream);
		} else {
			link = &stream->next;
		}
	}
}

/* Orders a new stream after the events that its contexts wait for. */
static void
order_after_contexts(struct gpd_stream *stream)
{
	for (struct gpd_context *context = stream->context; context; context = context->parent) {
		if (context->gate && !gpd_stream_is_idle(context->gate))
			(void)gpd_stream_order_after(stream, context->gate);
	}
}

CUresult
gpd_stream_create(struct gpd_session *session, struct gpd_context *context, uint32_t id,
		  unsigned int flags, int priority, bool legacy)
{
	struct gpd_stream *stream;
	CUresult result;

	if (flags & ~(unsigned int)CU_STREAM_NON_BLOCKING)
		return CUDA_ERROR_INVALID_VALUE;
	gpd_stream_reap(session);
	if (session->streams->count >= STREAMS_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = record_barrier(session);
	if (result == CUDA_SUCCESS)
		result = gpd_device_enter(context->device);
	if (result != CUDA_SUCCESS)
		return result;
	stream = calloc(1, sizeof(*stream));
	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	session->streams->count++;
	gpd_stream_pool_stream_added();
	stream->context = context;
	stream->device = context->device;
	stream->legacy = legacy;
	stream->blocking = !legacy && !(flags & CU_STREAM_NON_BLOCKING);
	stream->priority = gpd_schedule_priority(&session->account, stream->device, priority);
	stream->partition = gpd_green_partition(session, context->green, stream->device);
	if (legacy && !stream->partition && !stream->priority)
		stream->driver = gpd_stream_pool_acquire(stream->device);
	if (!stream->driver)
		result = gpd_partition_stream(stream->partition, stream->priority,
					      &session->closing, &stream->driver);
	if (result == CUDA_SUCCESS && id)
		result = gpd_session_add_handle(session, GPD_KIND_STREAM, id, &stream->handle);
	if (result != CUDA_SUCCESS) {
		stream_destroy(session, stream);
		return result;
	}
	gpd_depth_open(session, stream);
	order_after_contexts(stream);
	stream->next = session->streams->list;
	session->streams->list = stream;
	if (legacy)
		context->legacy = stream;
	return CUDA_SUCCESS;
}

void
gpd_stream_drop(struct gpd_session *session, struct gpd_stream *stream)
{
	gpd_schedule_mark(session->account.schedule);
	gpd_handle_remove(&session->handles, &stream->handle);
	stream->dropped = true;
	/* A marker detects its end; without one the stream stays until the session's end. An idle
	 * stream may have measurements left, which are written to pages of the session. */
	if (gpd_device_enter(stream->device) == CUDA_SUCCESS &&
	    (!gpd_stream_is_idle(stream) ||
	     gpd_driver.cuStreamQuery(stream->driver) == CUDA_ERROR_NOT_READY))
		(void)gpd_wait_add(session, stream, NULL, NULL);
	gpd_stream_reap(session);
}

void
gpd_stream_cancel_all(struct gpd_session *session)
{
	if (!gpd_driver.gpSoftStreamCancel)
		return;
	for (struct gpd_stream *s = session->streams->list; s; s = s->next)
		(void)gpd_driver.gpSoftStreamCancel(s->driver);
}

void
gpd_stream_destroy_all(struct gpd_session *session)
{
	while (session->streams->list) {
		struct gpd_stream *stream = session->streams->list;

		session->streams->list = stream->next;
		stream_destroy(session, stream);
	}
}

CUresult
gpd_cuStreamCreateWithPriority(struct gpd_session *session,
			       const struct gp_args_cuStreamCreateWithPriority *args)
{
	struct gpd_context *context = gpd_context_get(session, session->current.context);

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	return gpd_stream_create(session, context, args->phStream, args->flags, args->priority,
				 false);
}

CUresult
gpd_cuStreamDestroy_v2(struct gpd_session *session, const struct gp_args_cuStreamDestroy_v2 *args)
{
	struct gpd_stream *stream = gpd_stream_get(session, args->hStream);

	if (!stream || stream->legacy)
		return CUDA_ERROR_INVALID_HANDLE;
	gpd_stream_drop(session, stream);
	return CUDA_SUCCESS;
}

CUresult
gpd_cuStreamWaitEvent(struct gpd_session *session, const struct gp_args_cuStreamWaitEvent *args)
{
	struct gpd_event *event = gpd_event_get(session, args->hEvent);
	struct gpd_event_ref *ref;
	struct gpd_stream *stream;
	CUresult result;

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	result = gpd_stream_begin(session, args->hStream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	ref = gpd_event_get_ref(event);
	result = gpd_driver.cuStreamWaitEvent(stream->driver, ref->driver, args->Flags);
	gpd_event_unref(ref);
	return result;
}

/* Whether the driver reports all work as done that the stream waits for. */
static CUresult
stream_query(const struct gpd_session *session, const struct gpd_stream *stream)
{
	CUresult result = gpd_stream_query_work(stream);

	if (!stream->legacy)
		return result;
	for (const struct gpd_stream *s = session->streams->list; s && result == CUDA_SUCCESS;
	     s = s->next) {
		if (s->blocking && s->context == stream->context)
			result = gpd_stream_query_work(s);
	}
	return result;
}

CUresult
gpd_cuStreamQuery(struct gpd_session *session, const struct gp_args_cuStreamQuery *args)
{
	struct gpd_stream *stream = gpd_stream_get(session, args->hStream);
	CUresult result;

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	result = gpd_device_enter(stream->device);
	if (result == CUDA_SUCCESS)
		result = stream_query(session, stream);
	return result == CUDA_SUCCESS ? gpd_wait_reply_done(session) : result;
}

static bool
blocking_idle(const struct gpd_session *session, const struct gpd_context *context)
{
	for (const struct gpd_stream *s = session->streams->list; s; s = s->next) {
		if (s->context == context && (s->legacy || s->blocking) && !gpd_stream_is_idle(s))
			return false;
	}
	return true;
}

CUresult
gpd_stream_await(struct gpd_session *session, uint32_t id, gpd_wait_done *done, void *arg)
{
	struct gpd_stream *stream = gpd_stream_get(session, id);
	CUresult result;

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	/* Waiting for the legacy stream includes all blocking streams of its context. */
	if (stream->legacy && blocking_idle(session, stream->context))
		return CUDA_SUCCESS;
	if (stream->legacy)
		result = gpd_stream_begin(session, id, &stream);
	else
		result = gpd_device_enter(stream->device);
	if (result != CUDA_SUCCESS || gpd_stream_is_idle(stream))
		return result;
	result = gpd_wait_add(session, stream, done, arg);
	return result == CUDA_SUCCESS ? GPD_LATER : result;
}

CUresult
gpd_cuStreamSynchronize(struct gpd_session *session, const struct gp_args_cuStreamSynchronize *args)
{
	return gpd_stream_await(session, args->hStream, gpd_wait_reply, gpd_wait_request(session));
}
