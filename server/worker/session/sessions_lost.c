/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a worker whose GPU contexts are lost: whose work it was, and who is told. */
#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/driver_stderr.h"
#include "server/worker/session/running_work.h"
#include "server/worker/session/session.h"
#include "server/worker/session/sessions.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* How long the sessions have to tell their clients. */
#define LOST_MS 900
#define LOOK_MS 10

/* What has happened, and after whose work; the only one that it can have been, or NULL. */
static struct gpd_session *
describe_culprits(CUresult result, char *text, size_t size) GP_LOCKED(gpd_sessions.lock)
{
	char whose[900];
	struct gpd_session *culprit = gpd_running_work_find(whose, sizeof(whose));
	const char *name = NULL;

	(void)gpd_driver.cuGetErrorName(result, &name);
	(void)snprintf(text, size, "%.80s (%d)%s%s", name ? name : "unknown error", (int)result,
		       whose[0] ? ", after work of " : "", whose);
	return culprit;
}

/* Ends the process when all clients know, or when they have had their time. */
static void *
bury(void *arg)
{
	for (int waited = 0; waited < LOST_MS; waited += LOOK_MS) {
		bool all = true;

		pthread_mutex_lock(&gpd_sessions.lock);
		for (struct gpd_session *s = gpd_sessions_next_locked(NULL); s;
		     s = gpd_sessions_next_locked(s))
			all = all &&
			      (gpd_session_is(s, GPD_SESSION_OPENED) || atomic_load(&s->told));
		pthread_mutex_unlock(&gpd_sessions.lock);
		/* The replies to calls that were on their way go out, too. */
		if (all && waited >= 100)
			break;
		gp_nap(LOOK_MS * UINT64_C(1000000));
	}
	_exit(0);
}

/* Whether it is still there, under the worker's lock. */
static bool
is_listed(const struct gpd_session *session) GP_LOCKED(gpd_sessions.lock)
{
	const struct gpd_session *s = gpd_sessions_next_locked(NULL);

	while (s && s != session)
		s = gpd_sessions_next_locked(s);
	return s != NULL;
}

/* Of those who find it the first.  A session that is about to go finds it as well, and takes the
 * lock before it is gone: so it is still among those whose work it may have been. */
static bool
is_first_to_find(CUresult result, char *text, size_t size, struct gpd_session **culprit_p)
{
	int none = 0;
	bool first;

	/* The same holds for what the driver has written about it. */
	gpd_driver_stderr_flush();
	pthread_mutex_lock(&gpd_sessions.lock);
	first = atomic_compare_exchange_strong(&gpd_devices.lost, &none, (int)result);
	if (first)
		*culprit_p = describe_culprits(result, text, size);
	pthread_mutex_unlock(&gpd_sessions.lock);
	return first;
}

void
gpd_sessions_lost(struct gpd_session *finder, CUresult result)
{
	struct gpd_channel_header header = {
		.type = GPD_CHANNEL_LOST,
		.result = (int32_t)result,
		.session = finder ? finder->id : 0,
	};
	char text[1024], complaint[GPD_DRIVER_STDERR_MAX];
	struct gpd_session *culprit;

	if (!is_first_to_find(result, text, sizeof(text), &culprit))
		return;
	(void)gpd_driver_stderr_take(complaint, sizeof(complaint));
	pthread_mutex_lock(&gpd_sessions.lock);
	/* A GPU's driver says nothing of other errors to who runs the program. */
	if (is_listed(culprit) && *complaint && result == CUDA_ERROR_ASSERT)
		culprit->complaint = strdup(complaint);
	for (struct gpd_session *s = gpd_sessions_next_locked(NULL); s;
	     s = gpd_sessions_next_locked(s)) {
		atomic_store(&s->sticky, (int)result);
		(void)gpd_session_set_state(s, GPD_SESSION_LOST);
		gpd_session_wake(s);
	}
	pthread_mutex_unlock(&gpd_sessions.lock);
	(void)gpd_channel_send(&gpd_sessions.channel, &header, text, strlen(text), -1);
	if (gp_thread_start("bury", 0, bury, NULL))
		_exit(0);
}
