/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "server/worker/array/array.h"
#include "server/worker/array/texture.h"
#include "server/worker/context/context.h"
#include "server/worker/context/context_limit.h"
#include "server/worker/context/object.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/lane.h"
#include "server/worker/copy/staging.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/window.h"
#include "server/worker/executor/executor.h"
#include "server/worker/executor/session_parts.h"
#include "server/worker/graph/graph_exec.h"
#include "server/worker/host/coherence_fetch.h"
#include "server/worker/host/host_space.h"
#include "server/worker/image_cache/image_cache.h"
#include "server/worker/memory/allowance.h"
#include "server/worker/memory/ipc_memory.h"
#include "server/worker/memory/memory.h"
#include "server/worker/module/image.h"
#include "server/worker/module/image_preload.h"
#include "server/worker/module/library.h"
#include "server/worker/schedule/schedule.h"
#include "server/worker/session/session.h"
#include "server/worker/session/sessions.h"
#include "server/worker/session/worker_retirement.h"
#include "server/worker/stream/event.h"
#include "server/worker/stream/print.h"
#include "server/worker/stream/responder.h"
#include "server/worker/stream/stream.h"
#include "server/worker/stream_ops/deferred_gate.h"
#include "server/worker/stream_ops/host_function.h"
#include "server/worker/stream_ops/mem_op.h"
#include "server/worker/trace/gpu_trace.h"
#include "transport/transport.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Time for a client to copy the shared memory: this, plus a second per GiB of pinned memory. */
#define CLIENT_S 2
#define CLIENT_NAP_NS 1000000
/* Interval at which the heap returns memory while there are other sessions. */
#define HEAP_S 60

/* Lets other sessions stop waiting for its uploads. */
static void
image_uploads_abandon(struct gpd_session *session)
{
	gpd_image_cache_abandon_upload(&session->modules->uploader);
}

static void
shut_connection(struct gpd_session *session)
{
	/* The responder must not wait for a client that does not read. */
	gp_conn_shutdown(session->conn);
}

static void
stop_schedule(struct gpd_session *session)
{
	gpd_schedule_stop(&session->account);
}

/* Cancels the session's GPU work, or waits for it. The work of a stream that is idle for the client
 * is done, but markers may follow it, whose page the next session gets. */
static void
await_gpu(struct gpd_session *session)
{
	unsigned int waited = 0;

	gpd_stream_cancel_all(session);
	for (struct gpd_stream *s = session->streams->list; s; s = s->next) {
		unsigned int ms = 1;
		CUresult result;

		/* Any error means that the work is no longer running. */
		while ((result = gpd_driver.cuStreamQuery(s->driver)) == CUDA_ERROR_NOT_READY &&
		       !atomic_load(&gpd_devices.lost)) {
			gp_sleep_ns((uint64_t)ms * 1000000);
			waited += ms;
			gpd_retirement_work_pending(session, waited);
			if (ms < 16)
				ms *= 2;
		}
		/* While the cause can still be attributed to this session; canceled work is not a
		 * fault. */
		if (!gpd_driver.gpSoftStreamCancel && gpd_driver_is_sticky(result))
			gpd_session_poison(session, result);
	}
	gpd_retirement_work_done(session);
}

/* A client that outlives the session copies its pinned memory when it reads the end of lane 0, and
 * then closes the lane. */
static void
await_client(struct gpd_session *session)
{
	const uint64_t gib =
		atomic_load(&session->account.entry->devices[GPD_LEDGER_PINNED].memory) >> 30;
	const uint64_t until = gp_now_ns() + (CLIENT_S + gib) * UINT64_C(1000000000);

	while (!atomic_load(&session->client_is_gone) &&
	       gpd_session_client_has_shared_memory(session) && gp_now_ns() < until)
		gp_sleep_ns(CLIENT_NAP_NS);
}

static void
free_schedule(struct gpd_session *session)
{
	gpd_schedule_free(&session->account);
}

static void
free_events(struct gpd_session *session)
{
	struct gpd_event *event;

	for (uint32_t at = 0; (event = gpd_handle_next(&session->handles, GPD_KIND_EVENT, &at));)
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
	gpd_window_release(&(struct gpd_range){ session->window_base, session->window_size });
}

static void
supervisor_notify_closed(const struct gpd_session *session, CUresult result, const char *reason)
{
	(void)gpd_sessions_notify_supervisor(GPD_CHANNEL_CLOSED, (int32_t)result, session->id,
					     reason, strlen(reason));
}

static void
report_closed(struct gpd_session *session)
{
	CUresult result = (CUresult)atomic_load(&session->sticky);
	enum gpd_log_level level = GPD_LOG_INFO;
	char what[GPD_LEDGER_SUMMARY_MAX];
	uint64_t gpudirect_in = atomic_load(&session->copies->gpudirect_in);
	uint64_t gpudirect_out = atomic_load(&session->copies->gpudirect_out);
	char gpudirect[100] = "", handed[60] = "";

	if (atomic_load(&session->violated)) {
		result = result ? result : CUDA_ERROR_UNKNOWN;
		level = GPD_LOG_WARNING;
	}
	if (gpudirect_in || gpudirect_out)
		snprintf(gpudirect, sizeof(gpudirect),
			 "; without staging %llu bytes in, %llu bytes out",
			 (unsigned long long)gpudirect_in, (unsigned long long)gpudirect_out);
	if (session->issue.handed)
		snprintf(handed, sizeof(handed), "; %llu launches by threads of their own",
			 (unsigned long long)session->issue.handed);
	gpd_ledger_summary(session->account.entry, what, sizeof(what));
	gpd_session_log(session, level, "closed: %s; %s%s%s", session->reason, what, gpudirect,
			handed);
	atomic_store(&session->account.entry->logged, GPD_LOGGED_CLOSED);
	supervisor_notify_closed(session, result, session->reason);
}

const struct gpd_closing_part gpd_closing_parts[] = {
	{ GPD_CLOSING_STOP, image_uploads_abandon },
	{ GPD_CLOSING_STOP, shut_connection },
	{ GPD_CLOSING_STOP, gpd_lanes_stop },
	{ GPD_CLOSING_STOP, stop_schedule },

	{ GPD_CLOSING_AWAIT, await_gpu },
	{ GPD_CLOSING_AWAIT, gpd_host_watch_stop },
	/* Its done() functions release what was in flight; nothing below may be freed before. */
	{ GPD_CLOSING_AWAIT, gpd_wait_stop },
	{ GPD_CLOSING_AWAIT, gpd_lanes_destroy },
	{ GPD_CLOSING_AWAIT, free_schedule },

	{ GPD_CLOSING_OBJECTS, free_events },
	{ GPD_CLOSING_OBJECTS, gpd_memory_exports_destroy },
	{ GPD_CLOSING_OBJECTS, gpd_objects_destroy_all },
	{ GPD_CLOSING_OBJECTS, gpd_wait_values_destroy },
	{ GPD_CLOSING_OBJECTS, gpd_deferred_gates_destroy },
	{ GPD_CLOSING_OBJECTS, gpd_host_functions_destroy },
	{ GPD_CLOSING_OBJECTS, gpd_copy_destroy_all },
	{ GPD_CLOSING_OBJECTS, gpd_print_destroy },
	{ GPD_CLOSING_OBJECTS, gpd_trace_destroy },
	/* Graphs use kernels, and kernels belong to images. */
	{ GPD_CLOSING_OBJECTS, gpd_graph_destroy_all },
	{ GPD_CLOSING_OBJECTS, gpd_image_destroy_all },
	{ GPD_CLOSING_OBJECTS, gpd_preload_drop_all },
	/* Textures use arrays, and arrays use memory that is mapped. */
	{ GPD_CLOSING_OBJECTS, gpd_textures_destroy },
	{ GPD_CLOSING_OBJECTS, gpd_arrays_destroy },
	{ GPD_CLOSING_OBJECTS, gpd_memory_unmap_all },

	/* From here on the client uses no memory of the worker. */
	{ GPD_CLOSING_MEMORY, gpd_host_memory_destroy },
	{ GPD_CLOSING_MEMORY, gpd_allowance_destroy },
	{ GPD_CLOSING_MEMORY, gpd_stream_destroy_all },
	{ GPD_CLOSING_MEMORY, gpd_context_limits_release },
	/* After the streams, which have slots in it. */
	{ GPD_CLOSING_MEMORY, gpd_depth_free },
	/* After everything that has a name. */
	{ GPD_CLOSING_MEMORY, free_names },
	{ GPD_CLOSING_MEMORY, free_window },

	/* Again, for when the GPU is lost: the global list still contains its arrays, which refer
	 * to the session. */
	{ GPD_CLOSING_REPORT, gpd_arrays_destroy },
	{ GPD_CLOSING_REPORT, report_closed },
};
const size_t gpd_closing_part_count = sizeof(gpd_closing_parts) / sizeof(gpd_closing_parts[0]);

static void
free_session(struct gpd_session *session)
{
	gpd_partition_unassign(&session->shares);
	gpd_session_parts_destroy(session);
	if (session->conn)
		gp_conn_discard(session->conn);
	gp_conn_destroy(session->conn);
	pthread_mutex_destroy(&session->send.lock);
	pthread_mutex_destroy(&session->wakers_lock);
	pthread_mutex_destroy(&session->reason_lock);
	free(session->send.complaint);
	explicit_bzero(session->ticket, sizeof(session->ticket));
	free(session);
}

static void
state_enter(struct gpd_session *session, enum gpd_session_state state)
{
	/* A thread that has found the session in the list uses it under the lock. */
	pthread_mutex_lock(&gpd_sessions.lock);
	(void)gpd_session_set_state(session, state);
	pthread_mutex_unlock(&gpd_sessions.lock);
}

static void
close_parts(struct gpd_session *session, enum gpd_closing_phase phase)
{
	bool needs_gpu = phase == GPD_CLOSING_OBJECTS || phase == GPD_CLOSING_MEMORY;

	for (size_t i = 0; i < gpd_closing_part_count; i++) {
		/* If the GPU is lost, these are freed with the process. */
		if (gpd_closing_parts[i].phase == phase &&
		    !(needs_gpu && atomic_load(&gpd_devices.lost)))
			gpd_closing_parts[i].close(session);
	}
}

/* Images and other buffers are large, and the next session may be far off. Trimming blocks all
 * allocations, for tens of milliseconds if many images were loaded, so it is rare while there are
 * other sessions. */
static void
heap_trim(void)
{
	static _Atomic uint64_t next_ns;
	const uint64_t now = gp_now_ns();
	uint64_t next = atomic_load(&next_ns);

	if (atomic_load(&gpd_sessions.count) == 1 ||
	    (now >= next &&
	     atomic_compare_exchange_strong(&next_ns, &next, now + HEAP_S * UINT64_C(1000000000))))
		(void)malloc_trim(0);
}

void
gpd_session_close(struct gpd_session *session)
{
	if (atomic_load(&session->sticky))
		gpd_session_set_reason(session, "its context was lost");
	/* The dead connection may have been detected by a reply, or by the data of a call. */
	gpd_session_set_reason(session, gp_conn_error(session->conn));
	gpd_session_set_reason(session, "the client does not read what is sent");
	(void)gpd_session_set_state(session, GPD_SESSION_ENDING);
	/* Ends when the supervisor closes its entry. */
	(void)gpd_ledger_free_begin(session->account.entry);
	gpd_ledger_set_closing(session->account.ledger, session->account.entry);
	state_enter(session, GPD_SESSION_DRAINING);
	close_parts(session, GPD_CLOSING_STOP);
	close_parts(session, GPD_CLOSING_AWAIT);
	state_enter(session, GPD_SESSION_FREEING);
	close_parts(session, GPD_CLOSING_OBJECTS);
	await_client(session);
	close_parts(session, GPD_CLOSING_MEMORY);
	close_parts(session, GPD_CLOSING_REPORT);
	pthread_mutex_lock(&gpd_sessions.lock);
	(void)gpd_session_set_state(session, GPD_SESSION_CLOSED);
	gpd_sessions_remove_locked(session);
	pthread_mutex_unlock(&gpd_sessions.lock);
	free_session(session);
	heap_trim();
	atomic_fetch_sub(&gpd_sessions.count, 1);
	gpd_library_trim();
	gpd_retirement_check_idle();
}

void
gpd_session_discard(struct gpd_session *session, CUresult result, const char *reason)
{
	gpd_preload_drop_all(session);
	gpd_allowance_destroy(session);
	gpd_host_memory_destroy(session);
	free_window(session);
	supervisor_notify_closed(session, result, reason);
	(void)gpd_session_set_state(session, GPD_SESSION_CLOSED);
	free_session(session);
	gpd_retirement_check_idle();
}
