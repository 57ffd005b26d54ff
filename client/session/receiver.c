/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/fd_poll.h"
#include "base/lock.h"
#include "client/base/error.h"
#include "client/base/stats.h"
#include "client/guard/guard.h"
#include "client/session/first_reply.h"
#include "client/session/receive.h"
#include "client/session/session_internal.h"
#include "client/session/session_threads.h"
#include "client/session/shared_pages.h"
#include "transport/descriptor.h"
#include "transport/private_fd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Interval at which the receiver thread polls for lazy replies, and for a sender that may be
 * blocked because the daemon, too, is blocked sending data that no thread here reads. */
#define WATCH_MS 500
/* Time for which the token is held at a time if there is no descriptor to poll. */
#define WAIT_MS 1
/* Maximum time that a reply without a waiter may stay unread. */
#define YIELD_NS 100000
/* A wait of WATCH_MS that takes this much longer means that the process was suspended; this is
 * remembered for REMEMBERED_NS. */
#define SUSPENDED_NS UINT64_C(5000000000)
#define REMEMBERED_NS UINT64_C(10000000000)

int
gpc_receiver_init(struct gpc_session *session)
{
	struct gpc_receiver *receiver = &session->receiver;

	gp_lock_init_adaptive(&session->receiver.lock);
	gp_cond_init(&receiver->wanted);
	/* Without this descriptor the receiver thread notices a little later. */
	gp_stdio_placeholders_open();
	receiver->wake_fd = gp_fd_move_above_stdio(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	gp_stdio_placeholders_close();
	gp_fd_guard_mark(receiver->wake_fd);
	return 0;
}

void
gpc_receiver_fini(struct gpc_session *session)
{
	gp_fd_guard_close(session->receiver.wake_fd);
	(void)pthread_cond_destroy(&session->receiver.wanted);
	(void)pthread_mutex_destroy(&session->receiver.lock);
}

/* Called by a reader that stops reading; wakes the next waiter to read instead. */
static void
reader_hand_over_locked(struct gpc_session *session) GP_LOCKED(session->receiver.lock)
{
	struct gpc_receiver *receiver = &session->receiver;
	uint64_t one = 1;

	if (receiver->reading)
		return;
	if (receiver->waiters)
		(void)pthread_cond_signal(&receiver->waiters->woken);
	else if (receiver->unattended > 0 && receiver->idle)
		(void)pthread_cond_signal(&receiver->wanted);
	/* The descriptor does not become readable for data that has been read ahead. */
	else if (receiver->polling && gp_conn_pending(session->lane) &&
		 gp_fd_guard_is_marked(receiver->wake_fd))
		(void)!write(receiver->wake_fd, &one, sizeof(one));
}

static struct gpc_request **
request_find_link(struct gpc_receiver *receiver, uint32_t id)
{
	struct gpc_request **place = &receiver->requests[id % GPC_REQUEST_BUCKETS];

	while (*place && (*place)->id != id)
		place = &(*place)->next;
	return place;
}

/* Counts a reply or note that is to be read even if no thread waits for it; called with the lock
 * held. */
static void
receiver_attend_locked(struct gpc_receiver *receiver)
{
	receiver->unattended++;
	receiver->attended++;
	if (!receiver->reading && receiver->idle)
		(void)pthread_cond_signal(&receiver->wanted);
}

uint32_t
gpc_receiver_expect(struct gpc_session *session, struct gpc_request *request)
{
	struct gpc_receiver *receiver = &session->receiver;
	struct gpc_request **place;
	uint32_t id;

	(void)pthread_mutex_lock(&session->receiver.lock);
	do
		request->id = ++receiver->last_id;
	while (request->id == 0 || *request_find_link(receiver, request->id));
	id = request->id;
	place = request_find_link(receiver, id);
	request->next = NULL;
	*place = request;
	atomic_fetch_add_explicit(&receiver->outstanding, 1, memory_order_relaxed);
	if (request->lazy)
		receiver->lazy++;
	else if (request->done)
		receiver_attend_locked(receiver);
	(void)pthread_mutex_unlock(&session->receiver.lock);
	return id;
}

void
gpc_receiver_expect_note(struct gpc_session *session)
{
	struct gpc_receiver *receiver = &session->receiver;

	(void)pthread_mutex_lock(&session->receiver.lock);
	receiver_attend_locked(receiver);
	receiver->notes++;
	/* The thread may be waiting while others read. */
	(void)pthread_cond_signal(&receiver->wanted);
	(void)pthread_mutex_unlock(&session->receiver.lock);
}

void
gpc_receiver_note_received(struct gpc_session *session)
{
	struct gpc_receiver *receiver = &session->receiver;

	(void)pthread_mutex_lock(&session->receiver.lock);
	receiver->unattended--;
	receiver->notes--;
	(void)pthread_mutex_unlock(&session->receiver.lock);
}

struct gpc_request *
gpc_receiver_find(struct gpc_session *session, uint32_t id)
{
	struct gpc_receiver *receiver = &session->receiver;
	struct gpc_request *request;

	(void)pthread_mutex_lock(&session->receiver.lock);
	request = *request_find_link(receiver, id);
	(void)pthread_mutex_unlock(&session->receiver.lock);
	return request;
}

void
gpc_receiver_complete(struct gpc_session *session, struct gpc_request *request, CUresult result)
{
	struct gpc_receiver *receiver = &session->receiver;
	void (*done)(struct gpc_request *) = request->done;
	struct gpc_request **place;

	if (request->before)
		request->before(request);
	(void)pthread_mutex_lock(&session->receiver.lock);
	place = request_find_link(receiver, request->id);
	*place = request->next;
	atomic_fetch_sub_explicit(&receiver->outstanding, 1, memory_order_relaxed);
	if (request->lazy)
		receiver->lazy--;
	else if (done)
		receiver->unattended--;
	for (struct gpc_waiter *waiter = receiver->waiters; waiter; waiter = waiter->next) {
		/* Waiters without a request wait until fewer requests are outstanding. */
		if (waiter->request && waiter->request != request)
			continue;
		waiter->complete = true;
		waiter->result = result;
		(void)pthread_cond_signal(&waiter->woken);
	}
	request->result = result;
	/* From here on the caller may free the request, unless it has done(). */
	__atomic_store_n(&request->complete, true, __ATOMIC_RELEASE);
	(void)pthread_mutex_unlock(&session->receiver.lock);
	if (done)
		done(request);
}

/* Called by the holder of the token. */
static void
requests_complete_all(struct gpc_session *session)
{
	struct gpc_receiver *receiver = &session->receiver;

	for (size_t i = 0; i < GPC_REQUEST_BUCKETS; i++) {
		for (;;) {
			struct gpc_request *request;

			(void)pthread_mutex_lock(&session->receiver.lock);
			request = receiver->requests[i];
			(void)pthread_mutex_unlock(&session->receiver.lock);
			if (!request)
				break;
			gpc_receiver_complete(session, request, gpc_session_status(session));
		}
	}
}

/* Called while no thread reads: reads one message or, if block is false, only what has arrived.
 * Returns with the lock held and the token released; returns whether anything was read. */
static bool
session_read_locked(struct gpc_session *session, bool block) GP_LOCKED(session->receiver.lock)
{
	struct gpc_receiver *receiver = &session->receiver;
	int ready = 1;

	gpc_guard_block();
	receiver->reading = true;
	(void)pthread_mutex_unlock(&session->receiver.lock);
	gpc_call_reads = true;
	if (!gpc_session_is_over(session)) {
		int r = 0;

		if (!block)
			ready = gp_conn_wait(session->lane, 0);
		if (ready > 0)
			r = gpc_receive(session);
		else if (ready < 0)
			r = ready;
		if (ready > 0 && r == 0)
			atomic_store_explicit(&receiver->served, true, memory_order_relaxed);
		if (r != 0)
			gpc_session_lost(session, r);
	}
	if (gpc_session_is_over(session))
		requests_complete_all(session);
	gpc_call_reads = false;
	(void)pthread_mutex_lock(&session->receiver.lock);
	receiver->reading = false;
	return ready > 0;
}

void
gpc_receiver_abort(struct gpc_session *session)
{
	struct gpc_receiver *receiver = &session->receiver;

	(void)pthread_mutex_lock(&session->receiver.lock);
	(void)pthread_cond_broadcast(&receiver->wanted);
	/* A thread that is reading was woken by the shutdown of the connection, and completes the
	 * requests itself. */
	if (!receiver->reading) {
		(void)session_read_locked(session, false);
		reader_hand_over_locked(session);
	}
	(void)pthread_mutex_unlock(&session->receiver.lock);
}

static void
waiter_add(struct gpc_receiver *receiver, struct gpc_waiter *waiter)
{
	struct gpc_waiter **place = &receiver->waiters;

	gp_cond_init(&waiter->woken);
	while (*place)
		place = &(*place)->next;
	*place = waiter;
}

static void
waiter_remove(struct gpc_session *session, struct gpc_waiter *waiter)
	GP_LOCKED(session->receiver.lock)
{
	struct gpc_receiver *receiver = &session->receiver;
	struct gpc_waiter **place = &receiver->waiters;

	while (*place != waiter)
		place = &(*place)->next;
	*place = waiter->next;
	(void)pthread_cond_destroy(&waiter->woken);
	reader_hand_over_locked(session);
}

/* The shortest time of a wait is the round-trip time of the link, as some replies are not delayed
 * by anything else. */
static void
session_note_round_trip(struct gpc_session *session, const struct gpc_request *request)
{
	uint64_t took = gp_now_ns() - request->started_ns;
	uint64_t least = atomic_load_explicit(&session->round_trip_ns, memory_order_relaxed);

	/* If two threads write at once, either value may remain; a later wait corrects it. */
	if (least == 0 || took < least)
		atomic_store_explicit(&session->round_trip_ns, took, memory_order_relaxed);
}

CUresult
gpc_request_wait(struct gpc_request *request)
{
	struct gpc_session *session = request->session;
	struct gpc_receiver *receiver = &session->receiver;
	struct gpc_waiter waiter = { .request = request };
	bool waits;

	gpc_guard_block();
	(void)pthread_mutex_lock(&session->receiver.lock);
	/* A reply that another thread has read in the meantime still counts as a wait, unless the
	 * request is one that continues after the call. */
	waits = !request->complete || !request->done;
	if (waits)
		gpc_stats_wait_start(request->call);
	if (request->complete) {
		waiter.result = request->result;
	} else {
		waiter_add(receiver, &waiter);
		while (!waiter.complete) {
			if (receiver->reading)
				(void)pthread_cond_wait(&waiter.woken, &session->receiver.lock);
			else
				(void)session_read_locked(session, true);
		}
		waiter_remove(session, &waiter);
		session_note_round_trip(session, request);
	}
	(void)pthread_mutex_unlock(&session->receiver.lock);
	if (waits)
		gpc_stats_wait_stop();
	return waiter.result == CUDA_SUCCESS ? gpc_session_pop_deferred(session) : waiter.result;
}

bool
gpc_request_poll(struct gpc_request *request)
{
	struct gpc_session *session = request->session;
	struct gpc_receiver *receiver = &session->receiver;
	bool complete;

	if (__atomic_load_n(&request->complete, __ATOMIC_ACQUIRE))
		return true;
	(void)pthread_mutex_lock(&session->receiver.lock);
	while (!request->complete && !receiver->reading && session_read_locked(session, false))
		;
	complete = request->complete;
	reader_hand_over_locked(session);
	(void)pthread_mutex_unlock(&session->receiver.lock);
	return complete;
}

static bool
session_is_full(struct gpc_session *session)
{
	return atomic_load_explicit(&session->receiver.outstanding, memory_order_relaxed) >=
	       session->max_outstanding;
}

CUresult
gpc_receiver_make_room(struct gpc_session *session)
{
	struct gpc_receiver *receiver = &session->receiver;
	struct gpc_waiter waiter = { .request = NULL };

	if (!session_is_full(session))
		return CUDA_SUCCESS;
	gpc_guard_block();
	gpc_stats_wait_start(GPC_WAIT_ROOM);
	(void)pthread_mutex_lock(&session->receiver.lock);
	waiter_add(receiver, &waiter);
	while (session_is_full(session) && !gpc_session_is_over(session)) {
		if (receiver->reading)
			(void)pthread_cond_wait(&waiter.woken, &session->receiver.lock);
		else
			(void)session_read_locked(session, true);
	}
	waiter_remove(session, &waiter);
	(void)pthread_mutex_unlock(&session->receiver.lock);
	gpc_stats_wait_stop();
	return gpc_session_status(session);
}

/* Returns whether the sender has been sending the same message since the last check. */
static bool
sender_is_blocked(struct gpc_session *session, uint64_t *seen_p)
{
	uint64_t sent = atomic_load_explicit(&session->sender.sent, memory_order_relaxed);
	bool blocked = atomic_load_explicit(&session->sender.sending, memory_order_relaxed) &&
		       sent == *seen_p;

	*seen_p = sent;
	return blocked;
}

/* Reads replies of lazy requests that have arrived. */
static void
receiver_poll_lazy_locked(struct gpc_session *session) GP_LOCKED(session->receiver.lock)
{
	struct gpc_receiver *receiver = &session->receiver;

	while (receiver->lazy > 0 && !receiver->reading && !gpc_session_is_over(session) &&
	       session_read_locked(session, false))
		;
	reader_hand_over_locked(session);
}

/* Waits for a message without the lock and, if there is a descriptor, without the token. Returns
 * whether one has arrived. */
static bool
session_wait_for_message_locked(struct gpc_session *session, int timeout_ms)
	GP_LOCKED(session->receiver.lock)
{
	struct gpc_receiver *receiver = &session->receiver;
	int fd = gp_conn_fd(session->lane);
	uint64_t count;
	bool came;

	if (fd < 0)
		receiver->reading = true;
	else
		receiver->polling = true;
	(void)pthread_mutex_unlock(&session->receiver.lock);
	if (fd >= 0) {
		/* The program may have closed the descriptor and opened another file with the same
		 * number. */
		int wake_fd = gp_fd_guard_is_marked(receiver->wake_fd) ? receiver->wake_fd : -1;
		struct pollfd pollers[2] = { { .fd = fd, .events = POLLIN },
					     { .fd = wake_fd, .events = POLLIN } };

		came = gp_fd_poll(pollers, 2, timeout_ms) != 0;
		if (pollers[1].revents & POLLIN && gp_fd_guard_is_marked(wake_fd))
			(void)!read(wake_fd, &count, sizeof(count));
	} else {
		came = gp_conn_wait(session->lane, WAIT_MS) != 0;
	}
	(void)pthread_mutex_lock(&session->receiver.lock);
	if (fd < 0)
		receiver->reading = false;
	receiver->polling = false;
	gp_conn_fd_unwatch(session->lane);
	return came;
}

/* A thread that starts a copy usually waits for it at once; letting it read the reply itself saves
 * a wakeup. The receiver thread yields for a short time, and while copies follow one another it
 * need not be woken. */
static void
receiver_yield_locked(struct gpc_session *session) GP_LOCKED(session->receiver.lock)
{
	struct gpc_receiver *receiver = &session->receiver;
	uint64_t seen;

	do {
		seen = receiver->attended;
		if (receiver->notes > 0 || gpc_session_is_over(session))
			return;
		(void)gp_cond_wait_until(&receiver->wanted, &session->receiver.lock,
					 gp_now_ns() + YIELD_NS);
	} while (receiver->attended != seen &&
		 (receiver->unattended == 0 || receiver->reading || receiver->waiters));
}

static void
suspension_watch_start(struct gpc_receiver *receiver)
{
	atomic_store_explicit(&receiver->watch_ns, gp_now_ns(), memory_order_relaxed);
}

static void
suspension_watch_stop(struct gpc_receiver *receiver)
{
	uint64_t now = gp_now_ns();
	uint64_t took =
		now - atomic_exchange_explicit(&receiver->watch_ns, 0, memory_order_relaxed);

	if (took < SUSPENDED_NS)
		return;
	atomic_store(&receiver->suspended_ns, took);
	atomic_store(&receiver->suspension_end_ns, now);
}

unsigned int
gpc_receiver_suspended(const struct gpc_session *session)
{
	const struct gpc_receiver *receiver = &session->receiver;
	uint64_t now = gp_now_ns(), begun = atomic_load(&receiver->watch_ns);
	uint64_t took = begun ? now - begun : 0;

	if (took < SUSPENDED_NS) {
		took = atomic_load(&receiver->suspended_ns);
		if (took && now - atomic_load(&receiver->suspension_end_ns) > REMEMBERED_NS)
			took = 0;
	}
	return (unsigned int)(took / UINT64_C(1000000000));
}

static void
first_reply_check_locked(struct gpc_session *session, struct gpc_first_reply *first)
	GP_LOCKED(session->receiver.lock)
{
	enum gpc_first_reply_end end = gpc_first_reply_check_locked(session, first);

	if (end == GPC_FIRST_REPLY_NONE)
		return;
	(void)pthread_mutex_unlock(&session->receiver.lock);
	if (end == GPC_FIRST_REPLY_ENDED)
		gpc_session_lost(session, GP_E_EOF);
	else
		gpc_session_fail(session, gpc_error_to_cuda(GP_E_TIMEOUT), first->why);
	(void)pthread_mutex_lock(&session->receiver.lock);
}

static void
session_check_silence_locked(struct gpc_session *session) GP_LOCKED(session->receiver.lock)
{
	char why[GPC_SILENCE_WHY_MAX];

	if (!gpc_silence_is_due(session))
		return;
	(void)pthread_mutex_unlock(&session->receiver.lock);
	if (gpc_silence_check(session, why, sizeof(why)))
		gpc_session_fail(session, gpc_error_to_cuda(-ETIMEDOUT), why);
	(void)pthread_mutex_lock(&session->receiver.lock);
}

/* While the program is idle, the pages that it shares with the worker can be copied. */
static void
receiver_poll_peer_closed_locked(struct gpc_session *session) GP_LOCKED(session->receiver.lock)
{
	struct gpc_receiver *receiver = &session->receiver;

	if (receiver->reading || receiver->waiters || !gpc_shared_pages_exist(session) ||
	    !gp_conn_peer_closed(session->lane))
		return;
	(void)session_read_locked(session, false);
	reader_hand_over_locked(session);
}

void *
gpc_receiver_main(void *arg)
{
	struct gpc_session *session = arg;
	struct gpc_receiver *receiver = &session->receiver;
	struct gpc_first_reply first;
	uint64_t seen = 0;
	bool blocked = false;

	gpc_first_reply_init(&first);
	(void)pthread_mutex_lock(&session->receiver.lock);
	while (!gpc_session_is_over(session)) {
		session_check_silence_locked(session);
		if (!atomic_load_explicit(&receiver->served, memory_order_relaxed))
			first_reply_check_locked(session, &first);
		if (receiver->reading || receiver->waiters ||
		    (receiver->unattended == 0 && !blocked)) {
			bool in_time;

			receiver->idle = true;
			suspension_watch_start(receiver);
			in_time = gp_cond_wait_until(&receiver->wanted, &session->receiver.lock,
						     gp_deadline_ns(WATCH_MS));
			suspension_watch_stop(receiver);
			receiver->idle = false;
			if (in_time) {
				receiver_yield_locked(session);
			} else {
				blocked = sender_is_blocked(session, &seen);
				receiver_poll_lazy_locked(session);
				receiver_poll_peer_closed_locked(session);
			}
		} else {
			bool came = session_read_locked(session, false);

			reader_hand_over_locked(session);
			if (!came && !gpc_session_is_over(session)) {
				suspension_watch_start(receiver);
				came = session_wait_for_message_locked(session, WATCH_MS);
				suspension_watch_stop(receiver);
				reader_hand_over_locked(session);
			}
			blocked = blocked && came;
		}
	}
	(void)pthread_mutex_unlock(&session->receiver.lock);
	gpc_thread_ended(session);
	return NULL;
}
