/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "client/base/stats.h"
#include "client/guard/guard.h"
#include "client/session/session_internal.h"
#include "client/session/session_threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Time for which the sender thread polls for more records after the last message of any thread
 * before it sleeps: waking it costs the next caller a system call of some microseconds, which a
 * loop of launches must not pay each time. After SPIN_ALONE_NS it polls only while no other thread
 * needs the processor. */
#define SPIN_NS 30000
#define SPIN_ALONE_NS 10000
#define BUFFER_ALIGNMENT 64

int
gpc_sender_init(struct gpc_session *session)
{
	struct gpc_sender *sender = &session->sender;

	gp_lock_init_adaptive(&session->sender.lock);
	gp_cond_init(&sender->changed);
	gp_cond_init(&sender->gathered);
	for (int i = 0; i < 2; i++) {
		sender->buffers[i] = aligned_alloc(BUFFER_ALIGNMENT, GP_CONN_MESSAGE_MAX);
		if (!sender->buffers[i])
			return -ENOMEM;
	}
	return 0;
}

void
gpc_sender_fini(struct gpc_session *session)
{
	struct gpc_sender *sender = &session->sender;

	for (int i = 0; i < 2; i++)
		free(sender->buffers[i]);
	(void)pthread_cond_destroy(&sender->changed);
	(void)pthread_cond_destroy(&sender->gathered);
	(void)pthread_mutex_destroy(&session->sender.lock);
}

static void
sender_wait_for_change(struct gpc_sender *sender) GP_LOCKED(sender->lock)
{
	gpc_guard_block();
	sender->waiting++;
	(void)pthread_cond_wait(&sender->changed, &sender->lock);
	sender->waiting--;
}

static void
sender_notify_change(struct gpc_sender *sender) GP_LOCKED(sender->lock)
{
	if (sender->waiting)
		(void)pthread_cond_broadcast(&sender->changed);
}

void
gpc_sender_wait_locked(struct gpc_session *session)
{
	sender_wait_for_change(&session->sender);
}

void
gpc_sender_notify_locked(struct gpc_session *session)
{
	sender_notify_change(&session->sender);
}

/* Called with the token: sends the gathered records, followed by this bulk. The other buffer, which
 * is filled next, is empty, because only the holder of the token sends from it. */
static void
sender_write_locked(struct gpc_session *session, const struct iovec *bulk, int bulk_count)
	GP_LOCKED(session->sender.lock)
{
	struct gpc_sender *sender = &session->sender;
	int index = sender->filling;
	struct iovec data = { sender->buffers[index], sender->used[index] };
	int r;

	gpc_guard_block();
	sender->filling = !index;
	sender->sealed = false;
	sender->urgent = false;
	atomic_store_explicit(&sender->hint, 0, memory_order_relaxed);
	atomic_fetch_add_explicit(&sender->sent, 1, memory_order_relaxed);
	atomic_store_explicit(&sender->sending, true, memory_order_relaxed);
	gpc_stats_sent(data.iov_len, bulk, bulk_count);
	sender_notify_change(&session->sender);
	(void)pthread_mutex_unlock(&session->sender.lock);

	r = gpc_session_is_over(session) ? 0
					 : gp_conn_send(session->lane, &data, 1, bulk, bulk_count);
	if (r != 0)
		gpc_session_lost(session, r);
	gpc_silence_note_progress(&session->silence);

	(void)pthread_mutex_lock(&session->sender.lock);
	atomic_store_explicit(&sender->sending, false, memory_order_relaxed);
	sender->used[index] = 0;
}

static void
sender_release_token_locked(struct gpc_sender *sender) GP_LOCKED(sender->lock)
{
	sender->writing = false;
	sender_notify_change(sender);
	if (sender->used[sender->filling] > 0 && !sender->sealed && sender->sleeping) {
		sender->sleeping = false;
		(void)pthread_cond_signal(&sender->gathered);
	}
}

/* Called while neither `writing` nor `sealed` is set. */
static void
sender_write_gathered_locked(struct gpc_session *session) GP_LOCKED(session->sender.lock)
{
	struct gpc_sender *sender = &session->sender;

	sender->writing = true;
	do
		sender_write_locked(session, NULL, 0);
	while (sender->urgent && !sender->sealed && sender->used[sender->filling] > 0);
	sender_release_token_locked(&session->sender);
}

CUresult
gpc_sender_reserve_locked(struct gpc_session *session, size_t size, void **memory_p)
{
	struct gpc_sender *sender = &session->sender;

	for (;;) {
		size_t used = sender->used[sender->filling];

		if (gpc_session_is_over(session))
			return gpc_session_status(session);
		if (!sender->sealed && size <= GP_CONN_MESSAGE_MAX - used) {
			*memory_p = sender->buffers[sender->filling] + used;
			return CUDA_SUCCESS;
		}
		if (sender->writing || sender->sealed)
			sender_wait_for_change(&session->sender);
		else
			sender_write_gathered_locked(session);
	}
}

void
gpc_sender_commit_locked(struct gpc_session *session, size_t size)
{
	struct gpc_sender *sender = &session->sender;

	sender->used[sender->filling] += size;
	atomic_store_explicit(&sender->hint, sender->used[sender->filling], memory_order_relaxed);
}

void
gpc_sender_post_unlock(struct gpc_session *session)
{
	struct gpc_sender *sender = &session->sender;
	/* A thread that is sending wakes the sender thread afterwards. */
	bool wake = sender->sleeping && !sender->writing;

	if (wake)
		sender->sleeping = false;
	(void)pthread_mutex_unlock(&session->sender.lock);
	if (wake)
		(void)pthread_cond_signal(&sender->gathered);
}

void
gpc_sender_flush_unlock(struct gpc_session *session)
{
	struct gpc_sender *sender = &session->sender;

	if (sender->writing)
		sender->urgent = true;
	else
		sender_write_gathered_locked(session);
	(void)pthread_mutex_unlock(&session->sender.lock);
}

CUresult
gpc_sender_bulk_unlock(struct gpc_session *session, const struct iovec *bulk, int count)
{
	struct gpc_sender *sender = &session->sender;

	sender->sealed = true;
	while (sender->writing)
		sender_wait_for_change(&session->sender);
	sender->writing = true;
	sender_write_locked(session, bulk, count);
	sender_release_token_locked(&session->sender);
	(void)pthread_mutex_unlock(&session->sender.lock);
	return gpc_session_status(session);
}

static void
sender_spin(struct gpc_sender *sender)
{
	uint64_t begin = gp_now_ns(), spent;

	do {
		for (int i = 0; i < 16; i++) {
			if (atomic_load_explicit(&sender->hint, memory_order_relaxed) > 0)
				return;
			gp_cpu_relax();
		}
		spent = gp_now_ns() - begin;
	} while (spent < SPIN_NS && (spent < SPIN_ALONE_NS || !gp_cpu_yield()));
}

void *
gpc_sender_main(void *arg)
{
	struct gpc_session *session = arg;
	struct gpc_sender *sender = &session->sender;
	uint64_t seen = 0; /* value of `sent` at the last poll */

	(void)pthread_mutex_lock(&session->sender.lock);
	while (!gpc_session_is_over(session)) {
		bool taken = sender->writing || sender->sealed;
		uint64_t sent = atomic_load_explicit(&sender->sent, memory_order_relaxed);

		if (!taken && sender->used[sender->filling] > 0) {
			sender_write_gathered_locked(session);
		} else if (sent != seen) {
			seen = sent;
			(void)pthread_mutex_unlock(&session->sender.lock);
			sender_spin(sender);
			(void)pthread_mutex_lock(&session->sender.lock);
		} else {
			sender->sleeping = true;
			while (sender->sleeping && !gpc_session_is_over(session))
				(void)pthread_cond_wait(&sender->gathered, &session->sender.lock);
		}
	}
	(void)pthread_mutex_unlock(&session->sender.lock);
	gpc_thread_ended(session);
	return NULL;
}

void
gpc_sender_wake_all(struct gpc_session *session)
{
	struct gpc_sender *sender = &session->sender;

	(void)pthread_mutex_lock(&session->sender.lock);
	(void)pthread_cond_broadcast(&sender->changed);
	(void)pthread_cond_broadcast(&sender->gathered);
	(void)pthread_mutex_unlock(&session->sender.lock);
}

bool
gpc_sender_drain(struct gpc_session *session, uint64_t deadline)
{
	struct gpc_sender *sender = &session->sender;
	bool in_time = true;

	(void)pthread_mutex_lock(&session->sender.lock);
	while (!gpc_session_is_over(session) &&
	       (sender->writing || sender->used[sender->filling] > 0) && in_time) {
		sender->waiting++;
		in_time = gp_cond_wait_until(&sender->changed, &session->sender.lock, deadline);
		sender->waiting--;
	}
	(void)pthread_mutex_unlock(&session->sender.lock);
	return in_time;
}
