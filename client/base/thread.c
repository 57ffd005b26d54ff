/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/thread.h"

#include "client/wire/session_state.h"

#include <signal.h>

int64_t
gpc_now_ns(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct timespec
gpc_deadline(int timeout_ms)
{
	int64_t end = gpc_now_ns() + (int64_t)timeout_ms * 1000000;

	return (struct timespec){ .tv_sec = end / 1000000000, .tv_nsec = end % 1000000000 };
}

void
gpc_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attributes;

	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(cond, &attributes);
	(void)pthread_condattr_destroy(&attributes);
}

int
gpc_thread_start(struct gpc_session *session, void *(*main)(void *arg), void *arg, const char *name)
{
	sigset_t all, before;
	pthread_t thread;
	int r;

	(void)pthread_mutex_lock(&session->threads_lock);
	session->threads++;
	(void)pthread_mutex_unlock(&session->threads_lock);

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&thread, NULL, main, arg);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r != 0) {
		gpc_thread_ended(session);
		return -r;
	}
	(void)pthread_setname_np(thread, name);
	(void)pthread_detach(thread);
	return 0;
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
gpc_threads_wait(struct gpc_session *session, const struct timespec *deadline)
{
	int r = 0;

	(void)pthread_mutex_lock(&session->threads_lock);
	while (session->threads > 0 && r == 0)
		r = pthread_cond_timedwait(&session->threads_ended, &session->threads_lock,
					   deadline);
	(void)pthread_mutex_unlock(&session->threads_lock);
	return r == 0;
}
