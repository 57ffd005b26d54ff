/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "server/worker/code/image_cache.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/lane.h"
#include "server/worker/copy/staging.h"
#include "server/worker/copy/texture.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/window.h"
#include "server/worker/graph/graph.h"
#include "server/worker/host_function.h"
#include "server/worker/image/image.h"
#include "server/worker/image/library.h"
#include "server/worker/image/promise.h"
#include "server/worker/memory/array.h"
#include "server/worker/memory/grant.h"
#include "server/worker/memory/memory.h"
#include "server/worker/memory/share.h"
#include "server/worker/retire.h"
#include "server/worker/schedule/schedule.h"
#include "server/worker/session/context.h"
#include "server/worker/session/event.h"
#include "server/worker/session/object.h"
#include "server/worker/session/print.h"
#include "server/worker/session/session.h"
#include "server/worker/session/sessions.h"
#include "server/worker/session/stream.h"
#include "server/worker/session/wait.h"
#include "server/worker/session_life.h"
#include "server/worker/trace/trace.h"
#include "server/worker/word.h"
#include "transport/transport.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Cancels what the GPU has of it, or waits for it. */
static void
await_gpu(struct gpd_session *session)
{
	unsigned int waited = 0;

	gpd_stream_cancel_all(session);
	for (struct gpd_stream *s = session->streams; s; s = s->next) {
		unsigned int ms = 1;
		CUresult result;

		if (gpd_stream_is_idle(s))
			continue;
		/* Any error means that nothing runs any more. */
		while ((result = gpd_driver.cuStreamQuery(s->driver)) == CUDA_ERROR_NOT_READY &&
		       !atomic_load(&gpd_devices.lost)) {
			gp_nap((uint64_t)ms * 1000000);
			waited += ms;
			gpd_retire_waits(session, waited);
			if (ms < 16)
				ms *= 2;
		}
		/* While it is still known whose work was under way; cancelled work is no fault. */
		if (!gpd_driver.gpSoftStreamCancel && gpd_driver_is_sticky(result))
			gpd_session_poison(session, result);
	}
	gpd_retire_done(session);
}

static void
free_events(struct gpd_session *session)
{
	struct gpd_event *event;
	uint32_t at = 0;

	while ((event = gpd_handle_next(&session->handles, GPD_KIND_EVENT, &at)))
		gpd_event_destroy(session, event);
}

static void
free_names(struct gpd_session *session)
{
	struct gpd_context *context;
	uint32_t at = 0;

	while ((context = gpd_handle_next(&session->handles, GPD_KIND_CONTEXT, &at)))
		gpd_context_free(session, context);
	gpd_handle_fini(&session->handles);
}

static void
free_window(struct gpd_session *session)
{
	gpd_window_give(&(struct gpd_range){ session->window_base, session->window_size });
}

static void
tell_supervisor(const struct gpd_session *session, CUresult result, const char *reason)
{
	struct gpd_channel_header header = {
		.type = GPD_CHANNEL_CLOSED,
		.result = (int32_t)result,
		.session = session->id,
	};

	(void)gpd_channel_send(&gpd_sessions.channel, &header, reason, strlen(reason), -1);
}

static void
report_closed(struct gpd_session *session)
{
	CUresult result = (CUresult)atomic_load(&session->sticky);
	enum gpd_log_level level = GPD_LOG_INFO;
	char what[GPD_LEDGER_SUMMARY_MAX];
	uint64_t straight_in = atomic_load(&session->straight_in);
	uint64_t straight_out = atomic_load(&session->straight_out);
	char straight[100] = "";

	if (atomic_load(&session->violated)) {
		result = result ? result : CUDA_ERROR_UNKNOWN;
		level = GPD_LOG_WARNING;
	}
	if (straight_in || straight_out)
		snprintf(straight, sizeof(straight),
			 "; without staging %llu bytes in, %llu bytes out",
			 (unsigned long long)straight_in, (unsigned long long)straight_out);
	gpd_ledger_summary(session->account.line, what, sizeof(what));
	gpd_session_log(session, level, "closed: %s; %s%s", session->reason, what, straight);
	atomic_store(&session->account.line->logged, GPD_LOGGED_CLOSED);
	tell_supervisor(session, result, session->reason);
}

/*
 * The end goes part by part, in this order.  What is new in a session gets a line here.
 */

/* Nothing new is taken; the GPU and the responder are still at work. */
static void
stop(struct gpd_session *session)
{
	/* Others need not wait for what it was to bring. */
	gpd_image_cache_give_up(&session->bringer);
	/* The responder shall not wait for a client that does not read. */
	gp_conn_shutdown(session->conn);
	gpd_lanes_stop(session);
	gpd_schedule_stop(&session->account);
}

/* What the GPU has is done or cancelled; whoever waits for it is told. */
static void
await(struct gpd_session *session)
{
	await_gpu(session);
	/* Its callers give back what they had under way: before that nothing below may be freed. */
	gpd_wait_stop(session);
	gpd_lanes_destroy(session);
	gpd_schedule_free(&session->account);
}

/* No thread but this one knows the session. */
static void
free_objects(struct gpd_session *session)
{
	free_events(session);
	gpd_share_forget(session);
	gpd_objects_forget_context(session, NULL);
	gpd_words_forget(session);
	gpd_host_function_forget(session);
	gpd_copy_forget(session);
	gpd_print_forget(session);
	gpd_trace_forget(session);
	/* Graphs are of kernels, and kernels of images. */
	gpd_graph_forget_session(session);
	gpd_image_forget_session(session);
	gpd_promise_forget(session);
	/* Textures are of arrays, and arrays of memory that is mapped. */
	gpd_texture_forget(session);
	gpd_array_forget(session);
}

/* No object is left. */
static void
free_memory(struct gpd_session *session)
{
	gpd_memory_destroy(session);
	gpd_grant_forget(session);
	gpd_stream_destroy_all(session);
	/* After the streams, which have places in it. */
	gpd_depth_free(session);
	/* After all that has a name. */
	free_names(session);
	free_window(session);
}

static void
free_session(struct gpd_session *session)
{
	gpd_partition_forget(&session->shares);
	gpd_lanes_destroy(session);
	gpd_staging_destroy(session);
	gp_conn_destroy(session->conn);
	pthread_mutex_destroy(&session->send_lock);
	pthread_mutex_destroy(&session->wakers_lock);
	pthread_mutex_destroy(&session->reason_lock);
	free(session->complaint);
	explicit_bzero(session->ticket, sizeof(session->ticket));
	free(session);
}

static void
enter(struct gpd_session *session, enum gpd_session_state state)
{
	/* Who has found it in the list goes on with it under the lock. */
	pthread_mutex_lock(&gpd_sessions.lock);
	(void)gpd_session_set_state(session, state);
	pthread_mutex_unlock(&gpd_sessions.lock);
}

void
gpd_session_close(struct gpd_session *session)
{
	if (atomic_load(&session->sticky))
		gpd_session_set_reason(session, "its context was lost");
	gpd_session_set_reason(session, "the client does not take what is sent");
	(void)gpd_session_set_state(session, GPD_SESSION_ENDING);
	/* Until the supervisor closes its line. */
	gpd_account_leave_begin(&session->account);
	enter(session, GPD_SESSION_DRAINING);
	stop(session);
	await(session);
	enter(session, GPD_SESSION_FREEING);
	/* What is lost goes with the process, but others still know its arrays, which know it. */
	if (atomic_load(&gpd_devices.lost)) {
		gpd_array_forget(session);
	} else {
		free_objects(session);
		free_memory(session);
	}
	report_closed(session);
	pthread_mutex_lock(&gpd_sessions.lock);
	(void)gpd_session_set_state(session, GPD_SESSION_CLOSED);
	gpd_sessions_remove_locked(session);
	pthread_mutex_unlock(&gpd_sessions.lock);
	free_session(session);
	/* Images and their like are large, and the next session may be long in coming. */
	(void)malloc_trim(0);
	atomic_fetch_sub(&gpd_sessions.count, 1);
	gpd_library_trim();
	gpd_retire_closed();
}

void
gpd_session_discard(struct gpd_session *session, CUresult result, const char *reason)
{
	gpd_promise_forget(session);
	gpd_grant_forget(session);
	free_window(session);
	tell_supervisor(session, result, reason);
	(void)gpd_session_set_state(session, GPD_SESSION_CLOSED);
	free_session(session);
	gpd_retire_closed();
}
