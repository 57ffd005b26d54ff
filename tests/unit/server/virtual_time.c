/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/server/virtual_time.h"

#include "base/clock.h"
#include "base/lock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#define THREADS_MAX 64

/* A thread that waits. */
struct waiter {
	struct waiter *prev, *next;
	uint64_t at_ns;
	const void *of; /* a condition variable or a thread; NULL: only the time */
	bool woken;     /* and no longer in the list */
	bool timed_out;
	pthread_cond_t go;
};

/* Threads that were started; a slot without a living thread is used again. */
static struct thread {
	pthread_t id;
	void *(*main)(void *);
	void *arg;
	bool lives;
} threads[THREADS_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct waiter *waiters; /* all under the lock: the one that came first is the first */
static unsigned int running = 1;
static void (*watch)(uint64_t now_ns);
static _Atomic uint64_t now_ns = UINT64_C(1000000000);

int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __real_pthread_cond_signal(pthread_cond_t *cond);
int __real_pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*main)(void *),
			  void *arg);
int __real_pthread_join(pthread_t id, void **result);

uint64_t __wrap_gp_now_ns(void);
void __wrap_gp_sleep_ns(uint64_t ns);
bool __wrap_gp_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t at_ns);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_signal(pthread_cond_t *cond);
int __wrap_pthread_cond_broadcast(pthread_cond_t *cond);
int __wrap_pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*main)(void *),
			  void *arg);
int __wrap_pthread_join(pthread_t id, void **result);

static void
wake(struct waiter *waiter, bool timed_out)
{
	DL_DELETE(waiters, waiter);
	waiter->woken = true;
	waiter->timed_out = timed_out;
	running++;
	(void)__real_pthread_cond_signal(&waiter->go);
}

static void
pass_to(uint64_t ns)
{
	now_ns = ns;
	if (watch)
		watch(ns);
}

/* If no thread runs, time passes to the first deadline, whose thread goes on alone. */
static void
pass_time(void)
{
	struct waiter *first = waiters, *waiter;

	if (running)
		return;
	DL_FOREACH(waiters, waiter)
	if (waiter->at_ns < first->at_ns)
		first = waiter;
	if (!first || first->at_ns == GP_FOREVER) {
		fprintf(stderr, "every thread waits, and none for the time\n");
		abort();
	}
	if (first->at_ns > now_ns)
		pass_to(first->at_ns);
	wake(first, true);
}

/* Called with the lock.  false: the deadline has passed. */
static bool
await(const void *of, uint64_t at_ns)
{
	struct waiter waiter = { .at_ns = at_ns, .of = of, .go = PTHREAD_COND_INITIALIZER };

	DL_APPEND(waiters, &waiter);
	running--;
	pass_time();
	while (!waiter.woken)
		(void)__real_pthread_cond_wait(&waiter.go, &lock);
	return !waiter.timed_out;
}

static void
wake_all(const void *of)
{
	struct waiter *waiter, *next;

	DL_FOREACH_SAFE(waiters, waiter, next)
	if (waiter->of == of)
		wake(waiter, false);
}

uint64_t
virtual_now_ns(void)
{
	return now_ns;
}

void
virtual_sleep_until(uint64_t ns)
{
	pthread_mutex_lock(&lock);
	if (ns > now_ns)
		(void)await(NULL, ns);
	pthread_mutex_unlock(&lock);
}

void
virtual_time_watch(void (*passed)(uint64_t now_ns))
{
	watch = passed;
}

uint64_t
__wrap_gp_now_ns(void)
{
	return now_ns;
}

void
__wrap_gp_sleep_ns(uint64_t ns)
{
	virtual_sleep_until(now_ns + ns);
}

bool
__wrap_gp_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t at_ns)
{
	bool in_time = false;

	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(mutex);
	if (at_ns > now_ns)
		in_time = await(cond, at_ns);
	pthread_mutex_unlock(&lock);
	pthread_mutex_lock(mutex);
	return in_time;
}

int
__wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	(void)__wrap_gp_cond_wait_until(cond, mutex, GP_FOREVER);
	return 0;
}

int
__wrap_pthread_cond_signal(pthread_cond_t *cond)
{
	struct waiter *waiter;

	pthread_mutex_lock(&lock);
	DL_SEARCH_SCALAR(waiters, waiter, of, (const void *)cond);
	if (waiter)
		wake(waiter, false);
	pthread_mutex_unlock(&lock);
	return 0;
}

int
__wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
	pthread_mutex_lock(&lock);
	wake_all(cond);
	pthread_mutex_unlock(&lock);
	return 0;
}

static void *
run(void *arg)
{
	struct thread *thread = arg;
	void *result = thread->main(thread->arg);

	pthread_mutex_lock(&lock);
	thread->lives = false;
	wake_all(thread);
	running--;
	pass_time();
	pthread_mutex_unlock(&lock);
	return result;
}

int
__wrap_pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*main)(void *),
		      void *arg)
{
	struct thread *thread = threads;
	int r;

	pthread_mutex_lock(&lock);
	while (thread->lives)
		if (++thread == threads + THREADS_MAX)
			abort();
	*thread = (struct thread){ .main = main, .arg = arg };
	r = __real_pthread_create(&thread->id, attributes, run, thread);
	if (r == 0) {
		thread->lives = true;
		running++;
		*id = thread->id;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

int
__wrap_pthread_join(pthread_t id, void **result)
{
	pthread_mutex_lock(&lock);
	for (struct thread *thread = threads; thread < threads + THREADS_MAX; thread++)
		if (thread->lives && pthread_equal(thread->id, id))
			(void)await(thread, GP_FOREVER);
	pthread_mutex_unlock(&lock);
	return __real_pthread_join(id, result);
}
