/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/trace.h"

#include "base/clock.h"
#include "base/environment.h"
#include "client/base/stats.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Capacity of a thread's buffer, in events; a power of two. */
#define EVENTS 32768

enum kind {
	CALL,
	WAIT,
	BYTES,
};

struct event {
	uint64_t begun_ns;
	uint64_t value;   /* end time, or total bytes */
	const char *name; /* of a call */
	uint32_t what;    /* result, cause or direction */
	uint32_t kind;
};

/* Buffer of one thread: single producer, single consumer. Only the thread moves head; only the
 * flushing thread moves tail. */
struct buffer {
	struct buffer *next;
	atomic_uint_fast64_t head, tail, lost;
	atomic_bool ended; /* the thread has exited */
	bool named;
	int tid;
	char name[32];
	struct event events[EVENTS];
};

atomic_bool gpc_trace_on;

/* Any thread prepends a buffer; only the flushing thread removes one. */
static struct buffer *_Atomic buffers;
static uint64_t lost_before; /* by threads that have exited; used by the flushing thread only */
static uint64_t first_ns;
static pthread_key_t key;
static _Thread_local struct buffer *thread_buffer;

static void
thread_exited(void *arg)
{
	struct buffer *buffer = arg;

	thread_buffer = NULL;
	atomic_store_explicit(&buffer->ended, true, memory_order_release);
}

bool
gpc_trace_init(void)
{
	const char *path = gp_environment_get("GPUPOOL_TRACE");

	if (!path || !*path || pthread_key_create(&key, thread_exited) != 0)
		return false;
	first_ns = gp_now_ns();
	atomic_store(&gpc_trace_on, true);
	return true;
}

uint64_t
gpc_trace_start_ns(void)
{
	return first_ns;
}

/* Returns NULL if out of memory; the next event tries again. */
static struct buffer *
buffer_create(void)
{
	struct buffer *buffer = calloc(1, sizeof(*buffer));

	if (!buffer)
		return NULL;
	buffer->tid = (int)syscall(SYS_gettid);
	(void)prctl(PR_GET_NAME, buffer->name, 0, 0, 0);
	(void)pthread_setspecific(key, buffer);
	buffer->next = atomic_load(&buffers);
	while (!atomic_compare_exchange_weak(&buffers, &buffer->next, buffer))
		;
	thread_buffer = buffer;
	return buffer;
}

static void
event_record(const struct event *event)
{
	struct buffer *buffer = thread_buffer;
	uint64_t head;

	if (!gpc_trace_is_on() || (!buffer && !(buffer = buffer_create())))
		return;
	head = atomic_load_explicit(&buffer->head, memory_order_relaxed);
	if (head - atomic_load_explicit(&buffer->tail, memory_order_acquire) == EVENTS) {
		atomic_fetch_add_explicit(&buffer->lost, 1, memory_order_relaxed);
		return;
	}
	buffer->events[head % EVENTS] = *event;
	atomic_store_explicit(&buffer->head, head + 1, memory_order_release);
}

void
gpc_trace_call(const char *name, uint64_t begun_ns, CUresult result)
{
	event_record(&(struct event){ .begun_ns = begun_ns,
				      .value = gp_now_ns(),
				      .name = name,
				      .what = (uint32_t)result,
				      .kind = CALL });
}

void
gpc_trace_wait(unsigned int cause, uint64_t begun_ns)
{
	event_record(&(struct event){
		.begun_ns = begun_ns, .value = gp_now_ns(), .what = cause, .kind = WAIT });
}

void
gpc_trace_bytes(enum gpc_trace_direction direction, uint64_t total)
{
	event_record(&(struct event){
		.begun_ns = gp_now_ns(), .value = total, .what = direction, .kind = BYTES });
}

static void
event_write(struct gpc_trace_text *text, const struct buffer *buffer, const struct event *event)
{
	const struct gpc_trace_track track = { text->pid, buffer->tid };
	char name[64];

	switch ((enum kind)event->kind) {
	case CALL:
		gpc_trace_text_span(text, track, event->begun_ns, event->value, "call", event->name,
				    event->what ? "result" : NULL, event->what);
		break;
	case WAIT:
		(void)snprintf(name, sizeof(name), "wait: %s", gpc_wait_name(event->what));
		gpc_trace_text_span(text, track, event->begun_ns, event->value, "wait", name, NULL,
				    0);
		break;
	case BYTES:
		gpc_trace_text_count(
			text, (struct gpc_trace_track){ text->pid, 0 }, event->begun_ns,
			event->what == GPC_TRACE_SENT ? "sent" : "received", "bytes", event->value);
		break;
	}
}

static void
buffer_write(struct gpc_trace_text *text, struct buffer *buffer)
{
	uint64_t tail = atomic_load_explicit(&buffer->tail, memory_order_relaxed);
	uint64_t head = atomic_load_explicit(&buffer->head, memory_order_acquire);

	if (!buffer->named && head > tail) {
		gpc_trace_text_name(text, (struct gpc_trace_track){ text->pid, buffer->tid },
				    "thread_name", buffer->name);
		buffer->named = true;
	}
	for (; tail < head; tail++)
		event_write(text, buffer, &buffer->events[tail % EVENTS]);
	atomic_store_explicit(&buffer->tail, tail, memory_order_release);
}

/* Fails if another thread has just prepended a buffer; the next flush then removes this one. */
static bool
buffer_remove(struct buffer *before, struct buffer *buffer)
{
	struct buffer *first = buffer;

	if (before)
		before->next = buffer->next;
	else if (!atomic_compare_exchange_strong(&buffers, &first, buffer->next))
		return false;
	lost_before += atomic_load_explicit(&buffer->lost, memory_order_relaxed);
	free(buffer);
	return true;
}

uint64_t
gpc_trace_flush(struct gpc_trace_text *text)
{
	struct buffer *before = NULL, *buffer, *next;
	uint64_t lost = 0;

	for (buffer = atomic_load(&buffers); buffer; buffer = next) {
		/* Read before the last events are written: no event follows once it is set. */
		bool ended = atomic_load_explicit(&buffer->ended, memory_order_acquire);

		next = buffer->next;
		buffer_write(text, buffer);
		if (ended && buffer_remove(before, buffer))
			continue;
		lost += atomic_load_explicit(&buffer->lost, memory_order_relaxed);
		before = buffer;
	}
	return lost_before + lost;
}

void
gpc_trace_after_fork(void)
{
	atomic_store(&buffers, NULL);
	thread_buffer = NULL;
	lost_before = 0;
	if (gpc_trace_is_on())
		(void)pthread_setspecific(key, NULL);
}
