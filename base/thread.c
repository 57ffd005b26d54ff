/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include "base/clock.h"

#include <sched.h>
#include <signal.h>

/* A sched_yield() during which no other thread ran takes less. */
#define YIELD_NS 10000

static void
signals_block(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	(void)pthread_sigmask(SIG_BLOCK, &all, before);
}

int
gp_thread_start_joinable(pthread_t *thread_p, const char *name, size_t stack_size,
			 gp_thread_main *main, void *arg)
{
	pthread_attr_t attributes;
	sigset_t before;
	int r = pthread_attr_init(&attributes);

	if (r)
		return -r;
	if (stack_size)
		r = pthread_attr_setstacksize(&attributes, stack_size);
	signals_block(&before);
	if (!r)
		r = pthread_create(thread_p, &attributes, main, arg);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attributes);
	if (!r)
		(void)pthread_setname_np(*thread_p, name);
	return -r;
}

int
gp_thread_start(const char *name, size_t stack_size, gp_thread_main *main, void *arg)
{
	pthread_t thread;
	int r = gp_thread_start_joinable(&thread, name, stack_size, main, arg);

	/* Detached only here: pthread_setname_np() needs a thread that still exists. */
	if (!r)
		(void)pthread_detach(thread);
	return r;
}

bool
gp_cpu_yield(void)
{
	uint64_t begin = gp_now_ns();

	(void)sched_yield();
	return gp_now_ns() - begin > YIELD_NS;
}
