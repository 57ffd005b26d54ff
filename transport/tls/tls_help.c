/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tls/tls_help.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/machine.h"
#include "base/thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>

/* Of a machine with fewer processors none is left over. */
#define PROCESSORS_MIN 8
/* A connection that is helped and its helper have so many each: the other end may be here, too, and
 * more connections share the processors better than helpers do. */
#define PROCESSORS_EACH 2
#define HELPERS_MAX 8
/* How long a helper looks for the next piece of a job that goes on, and for another job. */
#define LOOK_NS 50000
#define STACK_SIZE ((size_t)256 << 10)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work;
GP_COND_AT_START(work);
static struct gp_help *queue GP_GUARDED_BY(lock);
static atomic_uint waiting; /* in the queue */
static int limit = -1, helpers, processors;
static unsigned int looking GP_GUARDED_BY(lock), sleeping GP_GUARDED_BY(lock); /* helpers */
static atomic_int jobs; /* that have begun and not ended */

void
gp_help_limit(int count)
{
	limit = count;
}

/* The thread sanitizer of a program sees locks, and what OpenSSL reads and writes, but not the
 * atomics of this library: without this it reports races between helpers and the connection. */
static void
show_order(struct gp_help *help)
{
	if (!help->shared)
		return;
	(void)pthread_mutex_lock(&help->order);
	(void)pthread_mutex_unlock(&help->order);
}

static bool
do_one(struct gp_help *help, bool helper)
{
	unsigned int piece = atomic_load(&help->claimed);
	bool good;

	do {
		if (piece >= atomic_load(&help->ready))
			return false;
	} while (!atomic_compare_exchange_weak(&help->claimed, &piece, piece + 1));
	show_order(help);
	good = help->run(help, piece, helper);
	show_order(help);
	atomic_store_explicit(&help->state[piece], good ? GP_HELP_DONE : GP_HELP_FAILED,
			      memory_order_release);
	return true;
}

static void
help_with(struct gp_help *help)
{
	uint64_t end = 0;

	while (!atomic_load(&help->over) ||
	       atomic_load(&help->claimed) < atomic_load(&help->ready)) {
		if (do_one(help, true)) {
			end = 0;
		} else if (end == 0) {
			end = gp_now_ns() + LOOK_NS;
		} else if (gp_now_ns() > end) {
			break;
		} else {
			gp_pause();
		}
	}
	show_order(help);
	atomic_store_explicit(&help->helped, false, memory_order_release);
}

/* The next part of the same copy comes sooner than a thread that sleeps. */
static void
look_for_work(void)
{
	uint64_t end = gp_now_ns() + LOOK_NS;

	while (atomic_load_explicit(&waiting, memory_order_relaxed) == 0 && gp_now_ns() < end)
		gp_pause();
}

static void *
help_main(void *arg)
{
	(void)pthread_mutex_lock(&lock);
	for (;;) {
		struct gp_help *help = queue;

		if (!help) {
			looking++;
			(void)pthread_mutex_unlock(&lock);
			look_for_work();
			(void)pthread_mutex_lock(&lock);
			looking--;
			if (!queue) {
				sleeping++;
				(void)pthread_cond_wait(&work, &lock);
				sleeping--;
			}
			continue;
		}
		queue = help->next;
		atomic_fetch_sub(&waiting, 1);
		help->queued = false;
		atomic_store(&help->helped, true);
		(void)pthread_mutex_unlock(&lock);
		help_with(help);
		(void)pthread_mutex_lock(&lock);
	}
	return NULL;
}

static void
start_helpers(void)
{
	int wanted;

	processors = (int)gp_machine_processors("");
	wanted = processors >= PROCESSORS_MIN ? processors / (2 * PROCESSORS_EACH) : 0;
	if (wanted > HELPERS_MAX)
		wanted = HELPERS_MAX;
	if (limit >= 0)
		wanted = limit;
	while (helpers < wanted && gp_thread_start("gpupool-tls", STACK_SIZE, help_main, NULL) == 0)
		helpers++;
}

bool
gp_help_is_there(void)
{
	(void)pthread_once(&once, start_helpers);
	return helpers > 0;
}

void
gp_help_begin(struct gp_help *help, unsigned int ready)
{
	/* Where the connections' own threads need the processors there is nobody left to help. */
	int now = atomic_fetch_add(&jobs, 1) + 1;
	bool spare = 2 * PROCESSORS_EACH * now <= processors || limit > 0;

	bool wake;

	help->queued = help->shared = spare;
	atomic_init(&help->helped, false);
	atomic_init(&help->ready, ready);
	atomic_init(&help->claimed, 0);
	atomic_init(&help->over, false);
	for (unsigned int i = 0; i < GP_HELP_PIECES; i++)
		atomic_init(&help->state[i], GP_HELP_OPEN);
	if (!spare)
		return;
	(void)pthread_mutex_init(&help->order, NULL);
	(void)pthread_mutex_lock(&lock);
	help->next = queue;
	queue = help;
	wake = atomic_fetch_add(&waiting, 1) >= looking && sleeping > 0;
	(void)pthread_mutex_unlock(&lock);
	if (wake)
		(void)pthread_cond_signal(&work);
}

void
gp_help_more(struct gp_help *help, unsigned int ready)
{
	show_order(help);
	atomic_store(&help->ready, ready);
}

bool
gp_help_oneself(struct gp_help *help)
{
	return do_one(help, false);
}

bool
gp_help_is_done(struct gp_help *help, unsigned int piece)
{
	if (atomic_load_explicit(&help->state[piece], memory_order_acquire) != GP_HELP_DONE)
		return false;
	show_order(help);
	return true;
}

bool
gp_help_wait(struct gp_help *help, unsigned int piece)
{
	unsigned int looked = 0;
	unsigned char state;

	/* Somebody is at it, for as long as a piece takes, unless his processor has been taken. */
	while ((state = atomic_load_explicit(&help->state[piece], memory_order_acquire)) ==
	       GP_HELP_OPEN) {
		if (++looked % 4096 == 0)
			(void)sched_yield();
		gp_pause();
	}
	show_order(help);
	return state == GP_HELP_DONE;
}

void
gp_help_end(struct gp_help *help)
{
	unsigned int looked = 0;

	atomic_fetch_sub(&jobs, 1);
	atomic_store(&help->over, true);
	(void)pthread_mutex_lock(&lock);
	for (struct gp_help **place = &queue; help->queued && *place; place = &(*place)->next) {
		if (*place == help) {
			*place = help->next;
			atomic_fetch_sub(&waiting, 1);
			help->queued = false;
			break;
		}
	}
	(void)pthread_mutex_unlock(&lock);
	while (atomic_load_explicit(&help->helped, memory_order_acquire)) {
		if (++looked % 4096 == 0)
			(void)sched_yield();
		gp_pause();
	}
	show_order(help);
	if (help->shared)
		(void)pthread_mutex_destroy(&help->order);
}
