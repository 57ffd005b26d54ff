/* SPDX-License-Identifier: Apache-2.0 */
#include "client/wire/first_answer.h"

#include "base/clock.h"
#include "base/lock.h"
#include "client/base/config.h"
#include "gp_calls.h"

#include <errno.h>
#include <stdio.h>

/* A turn of the receiver thread takes half of it, unless the process was stopped. */
#define LOOK_NS UINT64_C(1000000000)
/* So many times what a peer may pause inside a message. */
#define STALLS 2
#define STALLS_OF_COMPILER 10

void
gpc_first_answer_begin(struct gpc_first_answer *first)
{
	*first = (struct gpc_first_answer){ .looked_ns = gp_now_ns() };
}

/* How long the answers that are awaited may take; 0: as long as the GPU's work does. */
static uint64_t
limit_locked(struct gpc_session *session) GP_LOCKED(session->receiver.lock)
{
	unsigned int stalls = STALLS;

	if (atomic_load(&session->given.work) || atomic_load(&session->sender.sending))
		return 0;
	for (size_t i = 0; i < GPC_REQUEST_BUCKETS; i++) {
		for (const struct gpc_request *r = session->receiver.requests[i]; r; r = r->next) {
			if (gp_call_compiles(r->call))
				stalls = STALLS_OF_COMPILER;
		}
	}
	return stalls * UINT64_C(1000000) * gpc_config_timeout_ms();
}

/* What the control connection has to say before lane 0 says anything is that the session is over.
 */
static bool
is_told_on_control(struct gpc_session *session)
{
	bool told;

	(void)pthread_mutex_lock(&session->reason_lock);
	gpc_control_news_read(session);
	/* A silent network is reported by gpc_silence_check(). */
	told = session->news.is_over ||
	       (session->news.failed != 0 && session->news.failed != -ETIMEDOUT);
	(void)pthread_mutex_unlock(&session->reason_lock);
	return told;
}

enum gpc_first_answer_end
gpc_first_answer_look_locked(struct gpc_session *session, struct gpc_first_answer *first)
{
	uint64_t now = gp_now_ns(), passed = now - first->looked_ns;
	uint64_t limit = limit_locked(session);
	bool told;

	if (atomic_load_explicit(&session->receiver.outstanding, memory_order_relaxed) == 0)
		limit = 0;
	/* While the process was stopped nobody was waited for. */
	first->waited_ns += passed < 2 * LOOK_NS ? passed : LOOK_NS;
	first->looked_ns = now;
	if (limit == 0)
		first->waited_ns = 0;
	(void)pthread_mutex_unlock(&session->receiver.lock);
	told = is_told_on_control(session);
	(void)pthread_mutex_lock(&session->receiver.lock);
	if (told)
		return GPC_FIRST_ANSWER_TOLD;
	if (limit == 0 || first->waited_ns <= limit)
		return GPC_FIRST_ANSWER_NONE;
	(void)snprintf(first->why, sizeof(first->why),
		       "its first answer has not come within %u s: whoever passes connections on "
		       "to the daemon may have kept lane 0",
		       (unsigned int)(limit / UINT64_C(1000000000)));
	return GPC_FIRST_ANSWER_LATE;
}
