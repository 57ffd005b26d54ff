/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/session/session.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "gpd_calls.h"
#include "server/common/base/log.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/lane.h"
#include "server/worker/copy/staging.h"
#include "server/worker/copy/texture.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/window.h"
#include "server/worker/host_function.h"
#include "server/worker/image/image.h"
#include "server/worker/image/library.h"
#include "server/worker/image/preload.h"
#include "server/worker/memory/array.h"
#include "server/worker/memory/memory.h"
#include "server/worker/record.h"
#include "server/worker/retire.h"
#include "server/worker/schedule/schedule.h"
#include "server/worker/session/context.h"
#include "server/worker/session/deferred.h"
#include "server/worker/session/event.h"
#include "server/worker/session/object.h"
#include "server/worker/session/print.h"
#include "server/worker/session/stream.h"
#include "server/worker/session/wait.h"
#include "server/worker/worker.h"
#include "transport/transport.h"

#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long the executor looks for the next call before it sleeps. */
#define SPIN_USEC 50
/* How often it looks whether the session is idle, where that has a limit. */
#define IDLE_LOOK_MS 500

uint64_t
gpd_session_bulk_size(const struct gpd_session *session)
{
	return session->bulk_left;
}

/* In pieces, so that the tenant's limit of bandwidth is charged for what comes, not for what was
 * announced. */
static int
recv_throttled(struct gpd_session *session, uint8_t *dst, size_t size)
{
	int r = 0;

	while (r == 0 && size > 0) {
		size_t part = gpd_account_link(&session->account, size, &session->closing);

		r = gp_conn_recv_bulk(session->conn, dst, part);
		dst = dst ? dst + part : NULL;
		size -= part;
	}
	return r;
}

int
gpd_session_recv_bulk(struct gpd_session *session, void *dst, size_t size)
{
	int r;

	if (size > session->bulk_left) {
		gpd_session_violation(session, "call 0x%04x came with too little data",
				      session->call);
		return -EPROTO;
	}
	if (session->bulk_kept) {
		if (dst)
			memcpy(dst, session->bulk_kept, size);
		session->bulk_kept += size;
		session->bulk_left -= size;
		return 0;
	}
	r = recv_throttled(session, dst, size);
	if (r > 0)
		r = -EPROTO;
	if (r == 0)
		session->bulk_left -= size;
	return r;
}

void
gpd_session_poison(struct gpd_session *session, CUresult result)
{
	gpd_worker_lost(session, result);
}

static void
set_reason(struct gpd_session *session, const char *reason)
{
	pthread_mutex_lock(&session->reason_lock);
	if (!session->reason[0])
		snprintf(session->reason, sizeof(session->reason), "%s", reason);
	pthread_mutex_unlock(&session->reason_lock);
}

void
gpd_session_violation(struct gpd_session *session, const char *format, ...)
{
	char reason[200];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	set_reason(session, reason);
	atomic_store(&session->violated, true);
	atomic_store(&session->closing, true);
}

void
gpd_session_end(struct gpd_session *session, const char *reason)
{
	set_reason(session, reason);
	atomic_store(&session->closing, true);
	gp_conn_shutdown(session->conn);
	gpd_lanes_wake(session);
}

void
gpd_session_log(const struct gpd_session *session, enum gpd_log_level level, const char *format,
		...)
{
	char text[900];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	gpd_log_budget_log(session->account.line->log_budget, level, "session %llu (%s): %s",
			   (unsigned long long)session->id, session->peer, text);
}

void
gpd_session_break(struct gpd_session *session)
{
	atomic_store(&session->closing, true);
	gpd_lanes_wake(session);
}

CUresult
gpd_session_enter(struct gpd_session *session, uint32_t context)
{
	struct gpd_context *found = gpd_context_get(session, context);

	return gpd_device_enter(found ? found->device : 0);
}

/* Copies that wait for staging memory go on until the client has something new. */
static void
continue_copies(struct gpd_session *session)
{
	while (gpd_copy_continue(session)) {
		if (gp_conn_wait(session->conn, GPD_COPY_CONTINUE_MS))
			return;
	}
}

/* Nobody waits for anything of it, here or at the other end. */
static bool
is_idle(struct gpd_session *session)
{
	if (!gpd_wait_none(session) || !gpd_hold_is_empty(session) || !gpd_lanes_sent_all(session))
		return false;
	for (const struct gpd_stream *s = session->streams; s; s = s->next) {
		if (!gpd_stream_is_idle(s) &&
		    gpd_driver.cuStreamQuery(s->driver) == CUDA_ERROR_NOT_READY)
			return false;
	}
	return true;
}

/* A limit can come while a session waits, so it looks now and then without one, too: when a read
 * comes back anyway, for many sessions sleep. */
static unsigned int
look_without_limit_ms(void)
{
	unsigned int stall_ms = gp_conn_stall_of(getenv("GPUPOOL_STALL_MS"));

	return stall_ms ? stall_ms : GP_CONN_STALL_MS;
}

/* The next message.  -ETIMEDOUT with a reason: it was idle for too long. */
static int
receive(struct gpd_session *session, unsigned int usual_ms, struct gp_message *message)
{
	uint64_t since = 0;

	for (;;) {
		uint32_t limit = atomic_load(&session->account.ledger->idle_timeout);
		unsigned int look_ms = limit ? IDLE_LOOK_MS : usual_ms;
		uint64_t now;
		int r;

		gp_conn_set_rest(session->conn, look_ms);
		r = gp_conn_recv(session->conn, message);
		if (r != GP_E_TIMEOUT)
			return r;
		now = gp_now_ns();
		/* What it was before the look that first finds it idle nobody knows. */
		if (!is_idle(session))
			since = 0;
		else if (since == 0)
			since = now;
		if (limit == 0 || since == 0 || now - since < limit * 1000000000ull)
			continue;
		gpd_session_violation(session, "it was idle for %u s (idle-timeout)", limit);
		return -ETIMEDOUT;
	}
}

static void
serve(struct gpd_session *session)
{
	const unsigned int look_ms = look_without_limit_ms();
	struct gp_message message;
	bool spins = false;
	int r;

	do {
		if (gpd_worker_may_spin() != spins) {
			spins = !spins;
			gp_conn_set_spin(session->conn, spins ? SPIN_USEC : 0);
		}
		continue_copies(session);
		r = receive(session, look_ms, &message);
		if (r == 0)
			r = gpd_record_carry_out_all(session, &message);
		else if (!atomic_load(&session->sticky))
			set_reason(session, r == GP_E_EOF ? "the client closed it"
							  : gp_conn_error(session->conn));
	} while (r == 0);
}

static void
free_event(struct gpd_handle *handle, void *arg)
{
	gpd_event_destroy(arg, (struct gpd_event *)handle);
}

static void
free_context(struct gpd_handle *handle, void *arg)
{
	gpd_handle_remove(&((struct gpd_session *)arg)->handles, handle);
	free(handle);
}

/* Nothing of the session is left on the GPU, and nobody else knows it any more. */
static void
free_objects(struct gpd_session *session)
{
	gpd_handle_each(&session->handles, GPD_KIND_EVENT, free_event, session);
	gpd_objects_forget_session(session);
	gpd_host_function_forget(session);
	gpd_copy_forget(session);
	gpd_print_forget(session);
	gpd_image_forget_session(session);
	gpd_texture_forget(session);
	gpd_array_forget(session);
	if (session->memory)
		gpd_memory_destroy(session);
	if (session->staging)
		gpd_staging_destroy(session);
	gpd_stream_destroy_all(session);
	gpd_depth_free(session);
	gpd_handle_each(&session->handles, GPD_KIND_CONTEXT, free_context, session);
	gpd_handle_fini(&session->handles);
	gpd_window_give(&(struct gpd_range){ session->window_base, session->window_size });
}

static void
unlink_from(struct gpd_session **link, const struct gpd_session *session) GP_LOCKED(gpd_worker.lock)
{
	while (*link != session)
		link = &(*link)->next;
	*link = session->next;
}

static void
unlink_session(struct gpd_session *session)
{
	pthread_mutex_lock(&gpd_worker.lock);
	unlink_from(&gpd_worker.sessions, session);
	pthread_mutex_unlock(&gpd_worker.lock);
}

/* Nobody speaks for it any more, but its work goes on, and may be what the GPU is lost by. */
static void
begin_to_leave(struct gpd_session *session)
{
	pthread_mutex_lock(&gpd_worker.lock);
	unlink_from(&gpd_worker.sessions, session);
	session->next = gpd_worker.leaving;
	gpd_worker.leaving = session;
	pthread_mutex_unlock(&gpd_worker.lock);
}

static void
end_to_leave(struct gpd_session *session)
{
	pthread_mutex_lock(&gpd_worker.lock);
	unlink_from(&gpd_worker.leaving, session);
	pthread_mutex_unlock(&gpd_worker.lock);
}

uint32_t
gpd_session_set_multiprocessors(struct gpd_session *session, int device, uint32_t wanted)
{
	const struct gpd_account *account = &session->account;
	struct gpd_ledger_tenant_line *tenant =
		&account->ledger->tenants[account->line->tenant].devices[device];
	uint32_t assigned = gpd_partition_assign(&session->shares, device,
						 atomic_load(&tenant->sm_wanted), wanted);

	atomic_store(&account->line->devices[device].sm_assigned, assigned);
	return assigned;
}

void
gpd_session_follow_ledger(struct gpd_session *session)
{
	for (int i = 0; i < gpd_worker.device_count; i++) {
		uint32_t granularity = atomic_load(&session->account.ledger->sm_granularity[i]);
		uint32_t wanted = atomic_load(&session->account.line->devices[i].sm_wanted);

		if (granularity)
			gpd_partition_set_granularity(i, granularity);
		(void)gpd_session_set_multiprocessors(session, i, wanted);
	}
}

static void
free_session(struct gpd_session *session)
{
	gpd_partition_forget(&session->shares);
	gpd_lanes_destroy(session);
	gp_conn_destroy(session->conn);
	pthread_mutex_destroy(&session->send_lock);
	pthread_mutex_destroy(&session->reason_lock);
	pthread_mutex_destroy(&session->leaving_lock);
	free(session->complaint);
	explicit_bzero(session->ticket, sizeof(session->ticket));
	free(session);
}

/* What an audit needs: whose it is, and by what it was let in. */
static void
report_open(const struct gpd_session *session)
{
	const struct gpd_account *account = &session->account;

	gpd_session_log(session, GPD_LOG_INFO,
			"open from %s, tenant %s, let in by %s, window 0x%llx of %llu GiB",
			gp_conn_peer(session->conn),
			account->ledger->tenants[account->line->tenant].name, session->let_in_by,
			(unsigned long long)session->window_base,
			(unsigned long long)(session->window_size >> 30));
	atomic_store(&account->line->logged, GPD_LOGGED_OPEN);
}

static void
report_closed(const struct gpd_session *session)
{
	struct gpd_channel_header header = {
		.type = GPD_CHANNEL_CLOSED,
		.result = atomic_load(&session->sticky),
		.session = session->id,
	};
	enum gpd_log_level level = GPD_LOG_INFO;
	char what[GPD_LEDGER_SUMMARY_MAX];
	uint64_t straight_in = atomic_load(&session->straight_in);
	uint64_t straight_out = atomic_load(&session->straight_out);
	char straight[100] = "";

	if (atomic_load(&session->violated)) {
		header.result = header.result ? header.result : CUDA_ERROR_UNKNOWN;
		level = GPD_LOG_WARNING;
	}
	if (straight_in || straight_out)
		snprintf(straight, sizeof(straight),
			 "; without staging %llu bytes in, %llu bytes out",
			 (unsigned long long)straight_in, (unsigned long long)straight_out);
	gpd_ledger_summary(session->account.line, what, sizeof(what));
	gpd_session_log(session, level, "closed: %s; %s%s", session->reason, what, straight);
	atomic_store(&session->account.line->logged, GPD_LOGGED_CLOSED);
	(void)gpd_channel_send(&gpd_worker.channel, &header, session->reason,
			       strlen(session->reason), -1);
}

static void
close_session(struct gpd_session *session)
{
	if (atomic_load(&session->sticky))
		set_reason(session, "its context was lost");
	set_reason(session, "the client does not take what is sent");
	atomic_store(&session->closing, true);
	gpd_image_cache_give_up(&session->bringer);
	/* Until the supervisor closes its line. */
	gpd_account_leave_begin(&session->account);
	/* The responder shall not wait for a client that does not read. */
	gp_conn_shutdown(session->conn);
	begin_to_leave(session);
	gpd_lanes_stop(session);
	gpd_print_leave(session);
	gpd_schedule_stop(session);
	gpd_stream_finish_all(session);
	gpd_wait_stop(session);
	end_to_leave(session);
	gpd_lanes_destroy(session);
	gpd_schedule_free(session);
	if (atomic_load(&gpd_worker.lost) == 0)
		free_objects(session);
	/* What else there was of arrays does not know the session any more. */
	gpd_array_forget(session);
	report_closed(session);
	free_session(session);
	/* Images and their like are large, and the next session may be long in coming. */
	(void)malloc_trim(0);
	atomic_fetch_sub(&gpd_worker.session_count, 1);
	gpd_library_trim();
	if (atomic_load(&gpd_worker.session_count) == 0)
		gpd_preload_idle();
	gpd_retire_closed();
}

static void *
execute(void *arg)
{
	struct gpd_session *session = arg;
	int r = 0;

	if (gpd_device_enter(0) != CUDA_SUCCESS)
		r = -EIO;
	if (r == 0)
		r = gpd_memory_create(session, session->window_base, session->window_size);
	if (r == 0)
		r = gpd_staging_create(session);
	if (r == 0)
		r = gpd_wait_start(session);
	if (r) {
		gpd_session_violation(session, "it could not be set up: %s", strerror(-r));
	} else {
		report_open(session);
		gpd_lanes_open(session);
		serve(session);
	}
	close_session(session);
	return NULL;
}

struct gpd_session *
gpd_session_open(uint64_t id, const struct gpd_channel_open *open, const struct gpd_range *window)
{
	struct gpd_session *session = calloc(1, sizeof(*session));

	if (!session)
		return NULL;
	if (gpd_lanes_create(session)) {
		free(session);
		return NULL;
	}
	session->id = id;
	session->worker = &gpd_worker;
	session->window_base = window->address;
	session->window_size = window->size;
	memcpy(session->ticket, open->ticket, sizeof(session->ticket));
	session->lanes_max = open->lanes_max;
	session->account.ledger = gpd_worker.ledger;
	session->account.line = &gpd_worker.ledger->sessions[open->line];
	session->handles.memory = (struct gpd_name_memory){ .ledger = session->account.ledger,
							    .line = session->account.line };
	session->shares.tenant = session->account.line->tenant + 1;
	gpd_session_follow_ledger(session);
	snprintf(session->peer, sizeof(session->peer), "%.*s", (int)sizeof(session->peer) - 1,
		 open->peer);
	snprintf(session->let_in_by, sizeof(session->let_in_by), "%.*s",
		 (int)sizeof(session->let_in_by) - 1, open->let_in_by);
	pthread_mutex_init(&session->send_lock, NULL);
	pthread_mutex_init(&session->reason_lock, NULL);
	pthread_mutex_init(&session->leaving_lock, NULL);
	pthread_mutex_lock(&gpd_worker.lock);
	session->next = gpd_worker.sessions;
	gpd_worker.sessions = session;
	pthread_mutex_unlock(&gpd_worker.lock);
	return session;
}

int
gpd_session_start(struct gpd_session *session, struct gp_conn *conn)
{
	session->conn = conn;
	atomic_fetch_add(&gpd_worker.session_count, 1);
	if (gp_thread_start("session", 0, execute, session)) {
		atomic_fetch_sub(&gpd_worker.session_count, 1);
		session->conn = NULL;
		return -ENOMEM;
	}
	return 0;
}

void
gpd_session_discard(struct gpd_session *session, CUresult result, const char *reason)
{
	struct gpd_channel_header header = {
		.type = GPD_CHANNEL_CLOSED,
		.result = (int32_t)result,
		.session = session->id,
	};

	unlink_session(session);
	gpd_window_give(&(struct gpd_range){ session->window_base, session->window_size });
	(void)gpd_channel_send(&gpd_worker.channel, &header, reason, strlen(reason), -1);
	free_session(session);
	gpd_retire_closed();
}
