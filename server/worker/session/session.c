/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/session/session.h"

#include "base/clock.h"
#include "server/common/base/log.h"
#include "server/worker/device/quiesce.h"
#include "transport/transport.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

/* Receives in parts, so that the tenant's bandwidth limit is charged for bytes that arrive, not for
 * bytes that were announced. */
static int
recv_throttled(struct gpd_session *session, uint8_t *dst, size_t size)
{
	int r = 0;

	while (r == 0 && size > 0) {
		size_t part = gpd_account_throttle(&session->account, size);

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

	if (size > session->current.bulk_left) {
		gpd_session_violation(session, "call 0x%04x came with too little data",
				      session->current.call);
		return -EPROTO;
	}
	if (session->current.bulk_read) {
		if (dst)
			memcpy(dst, session->current.bulk_read, size);
		session->current.bulk_read += size;
		session->current.bulk_left -= size;
		return 0;
	}
	r = recv_throttled(session, dst, size);
	if (r > 0)
		r = -EPROTO;
	if (r == 0)
		session->current.bulk_left -= size;
	return r;
}

void
gpd_session_set_reason(struct gpd_session *session, const char *reason)
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
	gpd_session_set_reason(session, reason);
	atomic_store(&session->violated, true);
	(void)gpd_session_set_state(session, GPD_SESSION_ENDING);
}

void
gpd_session_add_waker(struct gpd_session *session, struct gpd_waker *waker)
{
	pthread_mutex_lock(&session->wakers_lock);
	LL_PREPEND(session->wakers, waker);
	pthread_mutex_unlock(&session->wakers_lock);
}

void
gpd_session_remove_waker(struct gpd_session *session, struct gpd_waker *waker)
{
	pthread_mutex_lock(&session->wakers_lock);
	LL_DELETE(session->wakers, waker);
	pthread_mutex_unlock(&session->wakers_lock);
}

void
gpd_session_wake(struct gpd_session *session)
{
	struct gpd_waker *waker;

	pthread_mutex_lock(&session->wakers_lock);
	LL_FOREACH(session->wakers, waker)
	{
		waker->wake(session);
	}
	pthread_mutex_unlock(&session->wakers_lock);
}

void
gpd_session_stop(struct gpd_session *session, const char *reason)
{
	gpd_session_set_reason(session, reason);
	(void)gpd_session_set_state(session, GPD_SESSION_ENDING);
	gp_conn_shutdown(session->conn);
	gpd_session_wake(session);
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
	gpd_log_budget_log(session->account.entry->log_budget, level, "session %llu (%s): %s",
			   (unsigned long long)session->id, session->peer, text);
}

void
gpd_session_stop_disconnected(struct gpd_session *session)
{
	(void)gpd_session_set_state(session, GPD_SESSION_ENDING);
	gpd_session_wake(session);
}

bool
gpd_session_client_has_shared_memory(const struct gpd_session *session)
{
	return session->conn && (gp_conn_caps(session->conn) & GP_CONN_CAP_PASS_FD) &&
	       !gp_conn_peer_closed(session->conn);
}

bool
gpd_session_quiesce_begin(struct gpd_session *session, int device)
{
	atomic_store(&session->loading_since_ms, gp_now_ms());
	return gpd_quiesce_begin(device, &session->closing);
}

void
gpd_session_quiesce_end(struct gpd_session *session, int device)
{
	gpd_quiesce_end(device);
	atomic_store(&session->loading_since_ms, 0);
}
