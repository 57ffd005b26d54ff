/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/stream/responder.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "server/worker/context/context.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/marker_page.h"
#include "server/worker/schedule/schedule.h"
#include "server/worker/session/session.h"
#include "server/worker/session/sessions.h"
#include "server/worker/stream/event.h"
#include "server/worker/stream/print.h"
#include "server/worker/stream/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <utlist.h>

#define ENTRIES GPD_MARKER_PAGE_SLOTS
/* Maximum per session: streams that are all full (stream_depth.h) have fewer entries. */
#define BLOCKS_MAX 64
/* How long the responder polls without a pause after an entry was added or completed, and how long
 * while entries are pending. After SPIN_ALONE_NS it continues only while no other thread wants the
 * processor. */
#define SPIN_NS 60000
#define SPIN_PENDING_NS 1000000
#define SPIN_ALONE_NS 20000
/* Polls between two checks of the queue. */
#define SPIN_ROUNDS 32
#define ERROR_POLL_NS 250000
/* The executor's condition may be met by something other than the GPU. */
#define OLDEST_NS 1000000

enum kind {
	MARKER,   /* a value that the GPU writes */
	EVENT,    /* queried from the driver */
	GROUP,    /* complete when its members are, which are markers before it */
	COMPLETE, /* complete at once */
};

struct entry {
	struct entry *prev, *next;
	volatile uint32_t *slot; /* in a page that lives as long as the queue ... */
	CUdeviceptr device;      /* ... and its address for the GPU */
	enum kind kind;
	bool complete;
	CUresult result;
	gpd_wait_done *done; /* NULL: no notification */
	void *arg;
	uint32_t value;
	uint32_t members_left;
	struct entry *group;
	struct gpd_stream *stream;
	CUstream driver; /* driver's stream with the marker; the stream may have been moved since */
	uint64_t work;
	struct gpd_event_ref *event;
};

/* Entries, each with its slot of the page. */
struct block {
	struct block *next;
	struct gpd_marker_page *page;
	unsigned int used; /* number of entries that were ever used */
	struct entry entries[ENTRIES];
};

/*
 * Pending entries, in the order of adding. The executor appends and only the responder removes
 * entries, so the responder may walk from the newest entry it has seen to the oldest without the
 * lock.
 */
struct gpd_wait_queue {
	pthread_mutex_t lock;
	pthread_cond_t wake; /* the responder waits */
	pthread_cond_t room; /* the executor waits */
	pthread_t responder;
	struct entry *entries_pending; /* utlist */
	struct entry *free;
	struct block *blocks; /* newest first; executor's own */
	unsigned int block_count;
	atomic_uint pending;        /* includes entries whose done() is running */
	atomic_uint_fast64_t added; /* number of entries added */
	uint32_t last_value;
	bool sleeping;
	bool stop;
	bool kicked;
	_Atomic uint64_t added_ns;
	uint64_t done_ns, error_polled_ns; /* responder's own */
	struct gpd_waker waker;
};

static bool
add_block(struct gpd_wait_queue *queue)
{
	struct block *block = queue->block_count < BLOCKS_MAX ? calloc(1, sizeof(*block)) : NULL;

	if (!block)
		return false;
	block->page = gpd_marker_page_acquire();
	if (!block->page) {
		free(block);
		return false;
	}
	LL_PREPEND(queue->blocks, block);
	queue->block_count++;
	return true;
}

static void
free_blocks(struct gpd_wait_queue *queue)
{
	struct block *block;

	while ((block = queue->blocks)) {
		LL_DELETE(queue->blocks, block);
		gpd_marker_page_release(block->page);
		free(block);
	}
}

/* NULL: all entries have been used. */
static struct entry *
entry_pop_unused(struct gpd_wait_queue *queue)
{
	struct block *block = queue->blocks;
	struct entry *entry;

	if (block->used == ENTRIES)
		return NULL;
	entry = &block->entries[block->used];
	entry->slot = &block->page->host[block->used];
	entry->device = block->page->device + sizeof(*entry->slot) * block->used;
	block->used++;
	return entry;
}

/* NULL: no entry is free. wait: waits for one; only if there is no memory for more entries. */
static struct entry *
entry_pop_free(struct gpd_wait_queue *queue, bool wait)
{
	struct entry *entry;

	pthread_mutex_lock(&queue->lock);
	while (wait && !queue->free)
		pthread_cond_wait(&queue->room, &queue->lock);
	entry = queue->free;
	if (entry)
		queue->free = entry->next;
	pthread_mutex_unlock(&queue->lock);
	return entry;
}

/* Executor only. */
static struct entry *
entry_acquire(struct gpd_session *session)
{
	struct gpd_wait_queue *queue = session->waits;
	struct entry *entry = entry_pop_free(queue, false);

	if (!entry)
		entry = entry_pop_unused(queue);
	if (!entry)
		entry = add_block(queue) ? entry_pop_unused(queue) : entry_pop_free(queue, true);
	*entry = (struct entry){ .slot = entry->slot, .device = entry->device };
	return entry;
}

static void
entry_release(struct gpd_wait_queue *queue, struct entry *entry)
{
	pthread_mutex_lock(&queue->lock);
	entry->next = queue->free;
	queue->free = entry;
	pthread_mutex_unlock(&queue->lock);
}

/* done NULL: no notification. */
static void
entry_append(struct gpd_wait_queue *queue, struct entry *entry, gpd_wait_done *done, void *arg)
{
	bool wake;

	entry->done = done;
	entry->arg = arg;
	pthread_mutex_lock(&queue->lock);
	DL_APPEND(queue->entries_pending, entry);
	queue->pending++;
	queue->added++;
	atomic_store_explicit(&queue->added_ns, gp_now_ns(), memory_order_relaxed);
	wake = queue->sleeping;
	pthread_mutex_unlock(&queue->lock);
	if (wake)
		pthread_cond_signal(&queue->wake);
}

/* Makes the GPU write a value that the entry's slot has not had recently. */
static CUresult
entry_write_marker(struct gpd_wait_queue *queue, struct entry *entry, struct gpd_stream *stream)
{
	CUresult result;

	entry->kind = MARKER;
	entry->stream = stream;
	entry->driver = stream->driver;
	entry->work = stream->work;
	atomic_fetch_add_explicit(&stream->waits, 1, memory_order_relaxed);
	entry->value = ++queue->last_value;
	if (*entry->slot == entry->value)
		entry->value = ++queue->last_value;
	/* A wait for all streams marks streams of other devices, too. */
	result = gpd_device_enter(stream->device);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuStreamWriteValue32_v2(
			stream->driver, entry->device, entry->value, CU_STREAM_WRITE_VALUE_DEFAULT);
	if (result != CUDA_SUCCESS)
		atomic_fetch_sub_explicit(&stream->waits, 1, memory_order_relaxed);
	/* The marker also takes room in the stream's queue. */
	stream->depth.given++;
	return result;
}

CUresult
gpd_wait_add(struct gpd_session *session, struct gpd_stream *stream, gpd_wait_done *done, void *arg)
{
	struct entry *entry = entry_acquire(session);
	CUresult result;

	/* Measurements must be enqueued first: a client that learns that the stream is done must
	 * find it idle. */
	gpd_schedule_end_batches(session->account.schedule);
	result = entry_write_marker(session->waits, entry, stream);

	if (result != CUDA_SUCCESS) {
		entry_release(session->waits, entry);
		return result;
	}
	entry_append(session->waits, entry, done, arg);
	return CUDA_SUCCESS;
}

CUresult
gpd_wait_add_all(struct gpd_session *session, struct gpd_context *context, gpd_wait_done *done,
		 void *arg)
{
	struct gpd_wait_queue *queue = session->waits;
	struct entry *group = entry_acquire(session);
	CUresult result = CUDA_SUCCESS;

	gpd_schedule_end_batches(session->account.schedule);
	group->kind = GROUP;
	for (struct gpd_stream *s = session->streams->list; s && result == CUDA_SUCCESS;
	     s = s->next) {
		struct entry *entry;

		if ((context && !gpd_context_has(context, s)) || gpd_stream_is_idle(s))
			continue;
		entry = entry_acquire(session);
		result = entry_write_marker(queue, entry, s);
		if (result != CUDA_SUCCESS) {
			entry_release(queue, entry);
			break;
		}
		entry->group = group;
		pthread_mutex_lock(&queue->lock);
		group->members_left++;
		pthread_mutex_unlock(&queue->lock);
		entry_append(queue, entry, NULL, NULL);
	}
	/* On failure some members are pending; the group is freed with the last one. */
	entry_append(queue, group, result == CUDA_SUCCESS ? done : NULL, arg);
	return result;
}

void
gpd_wait_add_event(struct gpd_session *session, struct gpd_event_ref *event, gpd_wait_done *done,
		   void *arg)
{
	struct entry *entry = entry_acquire(session);

	entry->kind = EVENT;
	entry->event = gpd_event_ref(event);
	entry_append(session->waits, entry, done, arg);
}

void
gpd_wait_any(struct gpd_session *session)
{
	struct gpd_wait_queue *queue = session->waits;

	pthread_mutex_lock(&queue->lock);
	if (atomic_load(&queue->pending) > 0)
		(void)gp_cond_wait_until(&queue->room, &queue->lock, gp_now_ns() + OLDEST_NS);
	pthread_mutex_unlock(&queue->lock);
}

bool
gpd_wait_is_empty(struct gpd_session *session)
{
	return atomic_load(&session->waits->pending) == 0;
}

void *
gpd_wait_request(const struct gpd_session *session)
{
	return (void *)((uintptr_t)session->current.call << 32 | session->current.request);
}

void
gpd_wait_reply(struct gpd_session *session, void *arg, CUresult result)
{
	uintptr_t packed = (uintptr_t)arg;

	gpd_print_flush(session);
	(void)gpd_session_reply(session, (uint16_t)(packed >> 32), (uint32_t)packed, result, NULL,
				0);
}

/* The GPU is done, but data of its copies may still be on its way to the client. */
CUresult
gpd_wait_reply_done(struct gpd_session *session)
{
	struct entry *entry;

	if (gpd_wait_is_empty(session))
		return CUDA_SUCCESS;
	entry = entry_acquire(session);
	entry->kind = COMPLETE;
	entry_append(session->waits, entry, gpd_wait_reply, gpd_wait_request(session));
	return GPD_LATER;
}

static bool
is_marked(const struct entry *entry)
{
	return __atomic_load_n(entry->slot, __ATOMIC_ACQUIRE) == entry->value;
}

/* Checks whether the GPU has reached the entry, as far as the entry itself can show it. */
static void
entry_poll(struct entry *entry)
{
	CUresult result;

	switch (entry->kind) {
	case MARKER:
		entry->complete = is_marked(entry);
		break;
	case EVENT:
		result = gpd_driver.cuEventQuery(entry->event->driver);
		entry->complete = result != CUDA_ERROR_NOT_READY;
		entry->result = result;
		break;
	case COMPLETE:
		entry->complete = true;
		break;
	case GROUP:
		break;
	}
}

/*
 * Removes the complete entries from the queue and returns them in the order of adding. The newest
 * is checked first. The GPU continues meanwhile, so all that it did before an entry that was found
 * complete is also found complete when its older entry is checked later. In the opposite order, the
 * reply of a synchronization could overtake the data of a copy that the GPU had finished before it.
 */
static struct entry *
entries_collect(struct gpd_wait_queue *queue, CUresult all)
{
	struct entry *first = NULL, **end = &first;
	struct entry *entry, *next, *oldest, *newest;

	pthread_mutex_lock(&queue->lock);
	oldest = queue->entries_pending;
	newest = oldest ? oldest->prev : NULL;
	pthread_mutex_unlock(&queue->lock);
	for (entry = newest; entry; entry = entry == oldest ? NULL : entry->prev) {
		if (!entry->complete)
			entry_poll(entry);
	}
	pthread_mutex_lock(&queue->lock);
	for (entry = oldest; entry; entry = next) {
		next = entry == newest ? NULL : entry->next;
		if (entry->kind == GROUP && entry->members_left == 0)
			entry->complete = true;
		if (!entry->complete && all != CUDA_SUCCESS)
			entry->result = all;
		else if (!entry->complete)
			continue;
		if (entry->group) {
			entry->group->members_left--;
			if (entry->result != CUDA_SUCCESS)
				entry->group->result = entry->result;
		}
		DL_DELETE(queue->entries_pending, entry);
		*end = entry;
		end = &entry->next;
	}
	*end = NULL;
	pthread_mutex_unlock(&queue->lock);
	return first;
}

/* Responder only. */
static void
work_raise(_Atomic uint64_t *known, uint64_t work)
{
	if (atomic_load_explicit(known, memory_order_relaxed) < work)
		atomic_store_explicit(known, work, memory_order_release);
}

static void
entry_finish(struct gpd_session *session, struct entry *entry)
{
	if (entry->kind == EVENT && gpd_driver_is_sticky(entry->result))
		gpd_session_poison(session, entry->result);
	/* Before done(): the notified client may query at once. */
	if (entry->kind == MARKER && entry->complete)
		work_raise(&entry->stream->reached, entry->work);
	if (entry->done)
		entry->done(session, entry->arg, entry->result);
	if (entry->event)
		gpd_event_unref(entry->event);
	if (entry->kind != MARKER)
		return;
	/* All waiters have been notified, so the executor may now reply from this value alone. */
	if (entry->complete)
		work_raise(&entry->stream->done, entry->work);
	if (entry->complete && atomic_load(&session->progress.done_work) < entry->work)
		atomic_store(&session->progress.done_work, entry->work);
	/* The last use of the stream: the executor may destroy it now. */
	atomic_fetch_sub_explicit(&entry->stream->waits, 1, memory_order_release);
}

/* Completes the entries that are done; all entries, with this result, if it is not CUDA_SUCCESS. */
static bool
entries_complete(struct gpd_session *session, CUresult all)
{
	struct gpd_wait_queue *queue = session->waits;
	struct entry *first = entries_collect(queue, all);
	struct entry *last = NULL;
	unsigned int count = 0;

	if (!first)
		return false;
	for (struct entry *entry = first; entry; entry = entry->next) {
		entry_finish(session, entry);
		last = entry;
		count++;
	}
	pthread_mutex_lock(&queue->lock);
	last->next = queue->free;
	queue->free = first;
	queue->pending -= count;
	pthread_mutex_unlock(&queue->lock);
	pthread_cond_broadcast(&queue->room);
	queue->done_ns = gp_now_ns();
	return true;
}

/* A marker after a failed kernel is never written, so the driver must be queried from time to
 * time. */
static void
driver_poll_error(struct gpd_session *session, uint64_t now)
{
	struct gpd_wait_queue *queue = session->waits;
	struct entry *entry;
	CUresult result;

	queue->error_polled_ns = now;
	pthread_mutex_lock(&queue->lock);
	DL_SEARCH_SCALAR(queue->entries_pending, entry, kind, MARKER);
	pthread_mutex_unlock(&queue->lock);
	if (!entry)
		return;
	/* Only this thread removes entries, and the stream exists while an entry refers to it. */
	result = gpd_driver.cuStreamQuery(entry->driver);
	if (gpd_driver_is_sticky(result))
		gpd_session_poison(session, result);
}

/* Sleeps until woken, at most ns nanoseconds (0: no limit), unless an entry was added since
 * `added`. */
static void
responder_sleep(struct gpd_wait_queue *queue, uint64_t ns, uint64_t added)
{
	uint64_t end = ns ? gp_now_ns() + ns : GP_FOREVER;

	pthread_mutex_lock(&queue->lock);
	if (!queue->stop && !queue->kicked && queue->added == added) {
		queue->sleeping = true;
		(void)gp_cond_wait_until(&queue->wake, &queue->lock, end);
		queue->sleeping = false;
	}
	pthread_mutex_unlock(&queue->lock);
}

/* Polls briefly without the lock, which the executor needs, until the GPU has written one of the
 * values from oldest to newest, or an entry was added. */
static void
responder_spin(struct gpd_wait_queue *queue, struct entry *oldest, struct entry *newest,
	       uint64_t added)
{
	for (int i = 0; i < SPIN_ROUNDS; i++) {
		gp_cpu_relax();
		if (atomic_load_explicit(&queue->added, memory_order_relaxed) != added)
			return;
		for (struct entry *entry = newest; entry;
		     entry = entry == oldest ? NULL : entry->prev) {
			if (entry->kind == MARKER && is_marked(entry))
				return;
		}
	}
}

static bool
may_spin(uint64_t idle, bool pending)
{
	return gpd_sessions_may_spin() && idle < (pending ? SPIN_PENDING_NS : SPIN_NS) &&
	       (idle < SPIN_ALONE_NS || !gp_cpu_yield());
}

/* Nothing was complete: waits until the next poll. */
static void
responder_pause(struct gpd_session *session)
{
	struct gpd_wait_queue *queue = session->waits;
	uint64_t since = atomic_load_explicit(&queue->added_ns, memory_order_relaxed);
	uint64_t now = gp_now_ns();
	struct entry *oldest, *newest;
	uint64_t added, idle;

	if (since < queue->done_ns)
		since = queue->done_ns;
	idle = now > since ? now - since : 0;
	pthread_mutex_lock(&queue->lock);
	oldest = queue->entries_pending;
	newest = oldest ? oldest->prev : NULL;
	added = queue->added;
	pthread_mutex_unlock(&queue->lock);
	if (oldest && idle > ERROR_POLL_NS / 2 && now - queue->error_polled_ns > ERROR_POLL_NS)
		driver_poll_error(session, now);
	if (may_spin(idle, oldest != NULL))
		responder_spin(queue, oldest, newest, added);
	else
		responder_sleep(queue, oldest ? gpd_sessions_nap_ns(idle) : 0, added);
}

static void *
responder_run(void *arg)
{
	struct gpd_session *session = arg;
	struct gpd_wait_queue *queue = session->waits;

	/* Sleeps are shorter than the kernel's default timer slack of 50 us. */
	(void)prctl(PR_SET_TIMERSLACK, 1000ul, 0, 0, 0);
	(void)gpd_device_enter_any();
	for (;;) {
		CUresult sticky = (CUresult)atomic_load(&session->sticky);
		bool stop;

		if (sticky != CUDA_SUCCESS)
			gpd_session_report_sticky(session);
		gpd_session_recall(session);
		pthread_mutex_lock(&queue->lock);
		stop = queue->stop;
		queue->kicked = false;
		pthread_mutex_unlock(&queue->lock);
		if (entries_complete(session, sticky))
			continue;
		if (stop)
			break;
		responder_pause(session);
	}
	while (entries_complete(session, CUDA_ERROR_DEINITIALIZED))
		continue;
	return NULL;
}

static void
responder_wake(struct gpd_session *session)
{
	struct gpd_wait_queue *queue = session->waits;

	pthread_mutex_lock(&queue->lock);
	queue->kicked = true;
	pthread_mutex_unlock(&queue->lock);
	pthread_cond_signal(&queue->wake);
}

int
gpd_wait_start(struct gpd_session *session)
{
	struct gpd_wait_queue *queue = calloc(1, sizeof(*queue));
	int r;

	if (!queue)
		return -ENOMEM;
	if (!add_block(queue)) {
		free(queue);
		return -ENOMEM;
	}
	gp_lock_init_adaptive(&queue->lock);
	gp_cond_init(&queue->wake);
	gp_cond_init(&queue->room);
	session->waits = queue;
	r = gp_thread_start_joinable(&queue->responder, "responder", 0, responder_run, session);
	if (r) {
		free_blocks(queue);
		free(queue);
		session->waits = NULL;
		return r;
	}
	queue->waker.wake = responder_wake;
	gpd_session_add_waker(session, &queue->waker);
	return 0;
}

void
gpd_wait_stop(struct gpd_session *session)
{
	struct gpd_wait_queue *queue = session->waits;

	if (!queue)
		return;
	gpd_session_remove_waker(session, &queue->waker);
	pthread_mutex_lock(&queue->lock);
	queue->stop = true;
	pthread_mutex_unlock(&queue->lock);
	pthread_cond_signal(&queue->wake);
	(void)pthread_join(queue->responder, NULL);
	session->waits = NULL;
	free_blocks(queue);
	free(queue);
}
