/* SPDX-License-Identifier: Apache-2.0 */
#include "server/retire.h"

#include "server/log.h"
#include "server/quiet.h"
#include "server/session.h"
#include "server/worker.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Most kernels end sooner, and nobody need know. */
#define TELL_MS 100
/* A session that hangs for so long behind work that nobody waits for will not get on. */
#define HANG_MS 5000

static _Atomic bool retired;
static _Atomic bool heap_used;
static _Atomic bool told_stale;

static int64_t
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void
tell(const struct gpd_session *session, bool busy)
{
	struct gpd_channel_header header = {
		.type = GPD_CHANNEL_BUSY,
		.result = busy,
		.session = session->id,
	};

	(void)gpd_channel_send(&gpd_worker.channel, &header, session->peer, strlen(session->peer),
			       -1);
}

/* What the sessions do whose clients are still there; the closing ones are not in the list. */
static void
look(bool *any_p, bool *hangs_p)
{
	int64_t now = now_ms();

	*any_p = *hangs_p = false;
	pthread_mutex_lock(&gpd_worker.lock);
	for (struct gpd_session *s = gpd_worker.sessions; s; s = s->next) {
		int64_t since = atomic_load(&s->loading_since_ms);

		*any_p = true;
		if (since && now - since > HANG_MS)
			*hangs_p = true;
	}
	pthread_mutex_unlock(&gpd_worker.lock);
}

void
gpd_retire_waits(struct gpd_session *session, unsigned int waited_ms)
{
	bool any, hangs;

	if (waited_ms >= TELL_MS && !session->told_busy) {
		session->told_busy = true;
		tell(session, true);
	}
	if (!atomic_load(&retired))
		return;
	look(&any, &hangs);
	if (!any && waited_ms >= TELL_MS) {
		gpd_session_log(session, GPD_LOG_WARNING,
				"its client is gone and its work does not end: the worker ends "
				"with it");
		_exit(0);
	}
	if (hangs)
		gpd_worker_lost(session, CUDA_ERROR_LAUNCH_TIMEOUT);
}

void
gpd_retire_done(struct gpd_session *session)
{
	if (session->told_busy)
		tell(session, false);
	session->told_busy = false;
}

void
gpd_retire_uses_heap(void)
{
	if (!atomic_load_explicit(&heap_used, memory_order_relaxed))
		atomic_store(&heap_used, true);
}

static void
tell_stale(void)
{
	struct gpd_channel_header header = { .type = GPD_CHANNEL_STALE };

	if (atomic_load(&heap_used) && !atomic_exchange(&told_stale, true))
		(void)gpd_channel_send(&gpd_worker.channel, &header, NULL, 0, -1);
}

void
gpd_retire_closed(void)
{
	bool any, hangs;

	if (atomic_load(&gpd_worker.session_count))
		return;
	if (!atomic_load(&retired)) {
		tell_stale();
		return;
	}
	look(&any, &hangs);
	if (!any)
		_exit(0);
}

void
gpd_retire(void)
{
	atomic_store(&retired, true);
	gpd_retire_closed();
}

bool
gpd_retire_enter(struct gpd_session *session, int device)
{
	atomic_store(&session->loading_since_ms, now_ms());
	return gpd_quiet_begin(device, &session->closing);
}

void
gpd_retire_leave(struct gpd_session *session, int device)
{
	gpd_quiet_end(device);
	atomic_store(&session->loading_since_ms, 0);
}
