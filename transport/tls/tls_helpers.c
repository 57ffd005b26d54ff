/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/tls/tls_helpers.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/machine.h"
#include "base/thread.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>

/* Machines with fewer processors get no helpers. */
#define PROCESSORS_MIN 8
/* Processors per connection that is helped and per helper: the other end may run on the same
 * machine, and several connections use the processors better than helpers do. */
#define PROCESSORS_PER_THREAD 2
#define HELPERS_MAX 8
/* How long a helper polls for the next piece of a running job, and for another job. */
#define POLL_NS 50000
#define STACK_SIZE ((size_t)256 << 10)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t queue_cond;
GP_COND_CONSTRUCTOR(queue_cond);
static struct gp_tls_job *queue GP_GUARDED_BY(lock);
static atomic_uint queued_count; /* jobs in the queue */
static int helpers_max = -1, helpers, processors;
static unsigned int polling_count GP_GUARDED_BY(lock), sleeping_count
	GP_GUARDED_BY(lock); /* numbers of helpers */
static atomic_int job_count; /* running jobs */

void
gp_tls_helpers_set_max(int count)
{
	helpers_max = count;
}

/* ThreadSanitizer in a program sees locks and OpenSSL's memory accesses, but not the atomics of
 * this library; without this lock it reports races between helpers and the connection. */
static void
job_order_for_tsan(struct gp_tls_job *job)
{
	if (!job->shared)
		return;
	(void)pthread_mutex_lock(&job->order);
	(void)pthread_mutex_unlock(&job->order);
}

static bool
job_run_piece(struct gp_tls_job *job, bool helper)
{
	unsigned int piece = atomic_load(&job->claimed);
	bool good;

	do {
		if (piece >= atomic_load(&job->ready))
			return false;
	} while (!atomic_compare_exchange_weak(&job->claimed, &piece, piece + 1));
	job_order_for_tsan(job);
	good = job->run(job, piece, helper);
	job_order_for_tsan(job);
	atomic_store_explicit(&job->state[piece], good ? GP_TLS_PIECE_DONE : GP_TLS_PIECE_FAILED,
			      memory_order_release);
	return true;
}

static void
helper_run_job(struct gp_tls_job *job)
{
	uint64_t end = 0;

	while (!atomic_load(&job->over) || atomic_load(&job->claimed) < atomic_load(&job->ready)) {
		if (job_run_piece(job, true)) {
			end = 0;
		} else if (end == 0) {
			end = gp_now_ns() + POLL_NS;
		} else if (gp_now_ns() > end) {
			break;
		} else {
			gp_cpu_relax();
		}
	}
	job_order_for_tsan(job);
	atomic_store_explicit(&job->has_helper, false, memory_order_release);
}

/* The next part of the same copy usually arrives sooner than a sleeping thread would wake. */
static void
helper_poll_queue(void)
{
	uint64_t end = gp_now_ns() + POLL_NS;

	while (atomic_load_explicit(&queued_count, memory_order_relaxed) == 0 && gp_now_ns() < end)
		gp_cpu_relax();
}

static void *
helper_run(void *arg)
{
	(void)pthread_mutex_lock(&lock);
	for (;;) {
		struct gp_tls_job *job = queue;

		if (!job) {
			polling_count++;
			(void)pthread_mutex_unlock(&lock);
			helper_poll_queue();
			(void)pthread_mutex_lock(&lock);
			polling_count--;
			if (!queue) {
				sleeping_count++;
				(void)pthread_cond_wait(&queue_cond, &lock);
				sleeping_count--;
			}
			continue;
		}
		queue = job->next;
		atomic_fetch_sub(&queued_count, 1);
		job->queued = false;
		atomic_store(&job->has_helper, true);
		(void)pthread_mutex_unlock(&lock);
		helper_run_job(job);
		(void)pthread_mutex_lock(&lock);
	}
	return NULL;
}

static void
helpers_start(void)
{
	int wanted;

	processors = (int)gp_machine_processors("");
	wanted = processors >= PROCESSORS_MIN ? processors / (2 * PROCESSORS_PER_THREAD) : 0;
	if (wanted > HELPERS_MAX)
		wanted = HELPERS_MAX;
	if (helpers_max >= 0)
		wanted = helpers_max;
	while (helpers < wanted &&
	       gp_thread_start("gpupool-tls", STACK_SIZE, helper_run, NULL) == 0)
		helpers++;
}

bool
gp_tls_helpers_exist(void)
{
	(void)pthread_once(&once, helpers_start);
	return helpers > 0;
}

void
gp_tls_job_start(struct gp_tls_job *job, unsigned int ready)
{
	/* No helpers if the connections' own threads need all processors. */
	int now = atomic_fetch_add(&job_count, 1) + 1;
	bool spare = 2 * PROCESSORS_PER_THREAD * now <= processors || helpers_max > 0;

	bool wake;

	job->queued = job->shared = spare;
	atomic_init(&job->has_helper, false);
	atomic_init(&job->ready, ready);
	atomic_init(&job->claimed, 0);
	atomic_init(&job->over, false);
	for (unsigned int i = 0; i < GP_TLS_JOB_PIECES; i++)
		atomic_init(&job->state[i], GP_TLS_PIECE_PENDING);
	if (!spare)
		return;
	(void)pthread_mutex_init(&job->order, NULL);
	(void)pthread_mutex_lock(&lock);
	job->next = queue;
	queue = job;
	wake = atomic_fetch_add(&queued_count, 1) >= polling_count && sleeping_count > 0;
	(void)pthread_mutex_unlock(&lock);
	if (wake)
		(void)pthread_cond_signal(&queue_cond);
}

void
gp_tls_job_add_pieces(struct gp_tls_job *job, unsigned int ready)
{
	job_order_for_tsan(job);
	atomic_store(&job->ready, ready);
}

bool
gp_tls_job_run_piece(struct gp_tls_job *job)
{
	return job_run_piece(job, false);
}

bool
gp_tls_job_is_piece_done(struct gp_tls_job *job, unsigned int piece)
{
	if (atomic_load_explicit(&job->state[piece], memory_order_acquire) != GP_TLS_PIECE_DONE)
		return false;
	job_order_for_tsan(job);
	return true;
}

bool
gp_tls_job_wait_piece(struct gp_tls_job *job, unsigned int piece)
{
	unsigned int looked = 0;
	unsigned char state;

	/* A helper is processing the piece, which takes little time unless the helper was
	 * preempted. */
	while ((state = atomic_load_explicit(&job->state[piece], memory_order_acquire)) ==
	       GP_TLS_PIECE_PENDING) {
		if (++looked % 4096 == 0)
			(void)sched_yield();
		gp_cpu_relax();
	}
	job_order_for_tsan(job);
	return state == GP_TLS_PIECE_DONE;
}

void
gp_tls_job_stop(struct gp_tls_job *job)
{
	unsigned int looked = 0;

	atomic_fetch_sub(&job_count, 1);
	atomic_store(&job->over, true);
	(void)pthread_mutex_lock(&lock);
	for (struct gp_tls_job **place = &queue; job->queued && *place; place = &(*place)->next) {
		if (*place == job) {
			*place = job->next;
			atomic_fetch_sub(&queued_count, 1);
			job->queued = false;
			break;
		}
	}
	(void)pthread_mutex_unlock(&lock);
	while (atomic_load_explicit(&job->has_helper, memory_order_acquire)) {
		if (++looked % 4096 == 0)
			(void)sched_yield();
		gp_cpu_relax();
	}
	job_order_for_tsan(job);
	if (job->shared)
		(void)pthread_mutex_destroy(&job->order);
}
