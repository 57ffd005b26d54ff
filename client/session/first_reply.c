/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session/first_reply.h"

#include "base/clock.h"
#include "base/lock.h"
#include "client/base/config.h"
#include "gp_calls.h"

#include <errno.h>
#include <stdio.h>

/* A pass of the receiver thread takes half of this, unless the process was stopped. */
#define CHECK_NS UINT64_C(1000000000)
/* Multiples of the time that a peer may pause within a message. */
#define STALLS 2
#define STALLS_OF_COMPILER 10

void
gpc_first_reply_init(struct gpc_first_reply *first)
{
	*first = (struct gpc_first_reply){ .checked_ns = gp_now_ns() };
}

/* Returns the time limit for the outstanding replies; 0: no limit, as they depend on the GPU's
 * work. */
static uint64_t
reply_limit_locked(struct gpc_session *session) GP_LOCKED(session->receiver.lock)
{
	unsigned int stalls = STALLS;

	if (atomic_load(&session->issued.work) || atomic_load(&session->sender.sending))
		return 0;
	for (size_t i = 0; i < GPC_REQUEST_BUCKETS; i++) {
		for (const struct gpc_request *r = session->receiver.requests[i]; r; r = r->next) {
			if (gp_call_compiles(r->call))
				stalls = STALLS_OF_COMPILER;
		}
	}
	return stalls * UINT64_C(1000000) * gpc_config_timeout_ms();
}

/* Before the first message on lane 0, the control connection can only report the end of the
 * session. */
static bool
control_reports_end(struct gpc_session *session)
{
	bool ended;

	(void)pthread_mutex_lock(&session->reason_lock);
	gpc_control_news_read(session);
	/* A silent network is reported by gpc_silence_check(). */
	ended = session->news.is_over ||
		(session->news.failed != 0 && session->news.failed != -ETIMEDOUT);
	(void)pthread_mutex_unlock(&session->reason_lock);
	return ended;
}

enum gpc_first_reply_end
gpc_first_reply_check_locked(struct gpc_session *session, struct gpc_first_reply *first)
{
	uint64_t now = gp_now_ns(), passed = now - first->checked_ns;
	uint64_t limit = reply_limit_locked(session);
	bool ended;

	if (atomic_load_explicit(&session->receiver.outstanding, memory_order_relaxed) == 0)
		limit = 0;
	/* Time during which the process was stopped does not count. */
	first->waited_ns += passed < 2 * CHECK_NS ? passed : CHECK_NS;
	first->checked_ns = now;
	if (limit == 0)
		first->waited_ns = 0;
	(void)pthread_mutex_unlock(&session->receiver.lock);
	ended = control_reports_end(session);
	(void)pthread_mutex_lock(&session->receiver.lock);
	if (ended)
		return GPC_FIRST_REPLY_ENDED;
	if (limit == 0 || first->waited_ns <= limit)
		return GPC_FIRST_REPLY_NONE;
	(void)snprintf(first->why, sizeof(first->why),
		       "no first reply within %u s: a proxy that forwards connections to the "
		       "daemon may have kept lane 0",
		       (unsigned int)(limit / UINT64_C(1000000000)));
	return GPC_FIRST_REPLY_LATE;
}
