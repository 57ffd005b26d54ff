/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session/session_threads.h"

#include "base/lock.h"
#include "base/thread.h"
#include "client/session/session_internal.h"

int
gpc_thread_start(struct gpc_session *session, void *(*main)(void *arg), void *arg, const char *name)
{
	int r;

	(void)pthread_mutex_lock(&session->threads_lock);
	session->threads++;
	(void)pthread_mutex_unlock(&session->threads_lock);

	r = gp_thread_start(name, 0, main, arg);
	if (r != 0)
		gpc_thread_ended(session);
	return r;
}

void
gpc_thread_ended(struct gpc_session *session)
{
	(void)pthread_mutex_lock(&session->threads_lock);
	session->threads--;
	(void)pthread_cond_broadcast(&session->threads_ended);
	(void)pthread_mutex_unlock(&session->threads_lock);
}

bool
gpc_threads_wait(struct gpc_session *session, uint64_t deadline)
{
	bool in_time = true;

	(void)pthread_mutex_lock(&session->threads_lock);
	while (session->threads > 0 && in_time)
		in_time = gp_cond_wait_until(&session->threads_ended, &session->threads_lock,
					     deadline);
	(void)pthread_mutex_unlock(&session->threads_lock);
	return in_time;
}
