/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/driver/stream/stream.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "softgpu/driver/context/green.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <utlist.h>

/* Time after which a thread without work exits. */
#define IDLE_NS 1000000000u
/* Interval at which a waiting operation checks whether its own stream was cancelled. */
#define POLL_NS 10000000u

struct gs_stream {
	struct gs_object object;
	struct gs_stream *prev, *next; /* list `streams` */
	struct gs_green *green;        /* a reference; NULL: belongs to the primary context */
	int device;
	unsigned int flags;
	int priority;
	int stop; /* atomic */

	pthread_mutex_t lock;
	/* Signaled to the thread: an operation was queued, or the stream is closed. */
	pthread_cond_t work;
	pthread_cond_t done; /* signaled by the thread: `completed` has grown */
	struct gs_op *head, *tail;
	uint64_t submitted, completed;
	bool has_thread;
	bool closing;
};

/* Acquired before any stream's own lock. Makes the set of operations that a call on the legacy
 * stream waits for a consistent cut. */
static pthread_mutex_t order = PTHREAD_MUTEX_INITIALIZER;
static struct gs_stream *streams;
static struct gs_stream *legacy[GS_DEVICES_MAX];
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t per_thread_key;

static void
stream_destroy(struct gs_object *object)
{
	struct gs_stream *stream = (struct gs_stream *)object;

	pthread_mutex_lock(&order);
	DL_DELETE(streams, stream);
	pthread_mutex_unlock(&order);
	pthread_mutex_destroy(&stream->lock);
	pthread_cond_destroy(&stream->work);
	pthread_cond_destroy(&stream->done);
	gs_green_put(stream->green);
	free(stream);
}

static int
clamp(int priority)
{
	if (priority > GS_PRIORITY_LEAST)
		return GS_PRIORITY_LEAST;
	return priority < GS_PRIORITY_GREATEST ? GS_PRIORITY_GREATEST : priority;
}

struct gs_stream *
gs_stream_create(struct gs_green *green, int device, unsigned int flags, int priority)
{
	struct gs_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	gs_object_init(&stream->object, GS_KIND_STREAM, NULL, stream_destroy);
	stream->green = gs_green_ref(green);
	stream->device = device;
	stream->flags = flags;
	stream->priority = clamp(priority);
	pthread_mutex_init(&stream->lock, NULL);
	gp_cond_init(&stream->work);
	gp_cond_init(&stream->done);
	pthread_mutex_lock(&order);
	DL_APPEND(streams, stream);
	pthread_mutex_unlock(&order);
	return stream;
}

/* The thread exits when the queued work is done. */
void
gs_stream_close(struct gs_stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	stream->closing = true;
	pthread_cond_signal(&stream->work);
	pthread_mutex_unlock(&stream->lock);
	gs_object_put(&stream->object);
}

static void
close_per_thread(void *arg)
{
	struct gs_stream **own = arg;

	for (int i = 0; i < GS_DEVICES_MAX; i++) {
		if (own[i])
			gs_stream_close(own[i]);
	}
	free(own);
}

static void
init_once(void)
{
	for (int i = 0; i < gs_device_count(); i++)
		legacy[i] = gs_stream_create(NULL, i, CU_STREAM_DEFAULT, 0);
	pthread_key_create(&per_thread_key, close_per_thread);
}

static struct gs_stream *
per_thread(int device)
{
	struct gs_stream **own = pthread_getspecific(per_thread_key);

	if (!own) {
		own = calloc(GS_DEVICES_MAX, sizeof(struct gs_stream *));
		pthread_setspecific(per_thread_key, own);
	}
	if (own && !own[device])
		own[device] = gs_stream_create(NULL, device, CU_STREAM_DEFAULT, 0);
	return own ? own[device] : NULL;
}

bool
gs_stream_is_special(CUstream handle)
{
	return !handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

/* Returns the default stream of the thread's context. */
static struct gs_stream *
get_special(CUstream handle)
{
	struct gs_green *green = gs_green_of_context(gs_context_current());
	struct gs_stream *stream;

	if (handle == CU_STREAM_PER_THREAD)
		stream = green ? NULL : per_thread(gs_device_current());
	else
		stream = green ? gs_green_default_stream(green) : legacy[gs_device_current()];
	if (stream)
		gs_object_ref(&stream->object);
	gs_green_put(green);
	return stream;
}

struct gs_stream *
gs_stream_get(CUstream handle)
{
	struct gs_stream *stream;

	pthread_once(&once, init_once);
	if (gs_stream_is_special(handle))
		return get_special(handle);
	stream = gs_object_get(handle, GS_KIND_STREAM);
	if (stream && stream->green && gs_green_is_gone(stream->green)) {
		gs_stream_put(stream);
		return NULL;
	}
	return stream;
}

CUresult
gs_stream_missing(CUstream handle)
{
	struct gs_stream *stream =
		gs_stream_is_special(handle) ? NULL : gs_object_get(handle, GS_KIND_STREAM);

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	gs_stream_put(stream);
	return CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

struct gs_green *
gs_stream_green(const struct gs_stream *stream)
{
	return stream->green;
}

void
gs_stream_put(struct gs_stream *stream)
{
	gs_object_put(&stream->object);
}

bool
gs_stream_stopped(const struct gs_stream *stream)
{
	return __atomic_load_n(&stream->stop, __ATOMIC_ACQUIRE);
}

const volatile int *
gs_stream_cancel_flag(const struct gs_stream *stream)
{
	return &stream->stop;
}

bool
gs_stream_reached(struct gs_stream *stream, uint64_t seq)
{
	bool reached;

	pthread_mutex_lock(&stream->lock);
	reached = stream->completed >= seq;
	pthread_mutex_unlock(&stream->lock);
	return reached;
}

CUresult
gs_stream_wait(struct gs_stream *stream, uint64_t seq)
{
	pthread_mutex_lock(&stream->lock);
	while (stream->completed < seq)
		pthread_cond_wait(&stream->done, &stream->lock);
	pthread_mutex_unlock(&stream->lock);
	return gs_failure();
}

/* Called by the executing thread; returns early when its own stream is stopped. */
static void
wait_mark(const struct gs_mark *mark, const struct gs_stream *own)
{
	struct gs_stream *stream = mark->stream;

	pthread_mutex_lock(&stream->lock);
	while (stream->completed < mark->seq && !gs_stream_stopped(own))
		(void)gp_cond_wait_until(&stream->done, &stream->lock, gp_now_ns() + POLL_NS);
	pthread_mutex_unlock(&stream->lock);
}

static void
op_release(struct gs_op *op)
{
	for (unsigned int i = 0; i < op->wait_count; i++)
		gs_stream_put(op->waits[i].stream);
	free(op->waits);
	op->release(op);
}

static void
op_perform(struct gs_op *op, struct gs_stream *stream)
{
	for (unsigned int i = 0; i < op->wait_count; i++)
		wait_mark(&op->waits[i], stream);
	if (op->always || (!gs_stream_stopped(stream) && !gs_failure()))
		op->run(op, stream);
}

/* Returns with the lock held; NULL: the thread must exit. */
static struct gs_op *
next_op(struct gs_stream *stream)
{
	uint64_t until = gp_now_ns() + IDLE_NS;

	while (!stream->head && !stream->closing &&
	       gp_cond_wait_until(&stream->work, &stream->lock, until))
		;
	return stream->head;
}

static void *
execute(void *arg)
{
	struct gs_stream *stream = arg;
	struct gs_op *op;

	pthread_mutex_lock(&stream->lock);
	while ((op = next_op(stream))) {
		stream->head = op->next;
		if (!stream->head)
			stream->tail = NULL;
		pthread_mutex_unlock(&stream->lock);
		op_perform(op, stream);
		pthread_mutex_lock(&stream->lock);
		stream->completed = op->seq;
		pthread_cond_broadcast(&stream->done);
		pthread_mutex_unlock(&stream->lock);
		op_release(op);
		pthread_mutex_lock(&stream->lock);
	}
	stream->has_thread = false;
	pthread_mutex_unlock(&stream->lock);
	gs_stream_put(stream);
	return NULL;
}

/* The thread holds a reference of its own. */
static bool
start_thread(struct gs_stream *stream)
{
	int r;

	gs_object_ref(&stream->object);
	r = gp_thread_start("stream", 0, execute, stream);
	/* Never the last reference: the caller has one. */
	if (r)
		gs_stream_put(stream);
	return r == 0;
}

static bool
push(struct gs_stream *stream, struct gs_op *op, uint64_t *seq_p)
{
	bool pushed;

	pthread_mutex_lock(&stream->lock);
	if (!stream->has_thread)
		stream->has_thread = start_thread(stream);
	pushed = stream->has_thread;
	if (pushed) {
		op->next = NULL;
		op->seq = ++stream->submitted;
		if (seq_p)
			*seq_p = op->seq;
		if (stream->tail)
			stream->tail->next = op;
		else
			stream->head = op;
		stream->tail = op;
		pthread_cond_signal(&stream->work);
	}
	pthread_mutex_unlock(&stream->lock);
	return pushed;
}

/* Adds a mark at the end of the work submitted to `other`, unless that is complete. */
static bool
wait_for(struct gs_op *op, struct gs_stream *other)
{
	struct gs_mark *larger;
	uint64_t submitted, completed;

	pthread_mutex_lock(&other->lock);
	submitted = other->submitted;
	completed = other->completed;
	pthread_mutex_unlock(&other->lock);
	if (completed >= submitted)
		return true;
	larger = realloc(op->waits, (op->wait_count + 1) * sizeof(*op->waits));
	if (!larger)
		return false;
	op->waits = larger;
	/* A stream that is being destroyed has no work left. */
	if (gs_object_try_ref(&other->object))
		op->waits[op->wait_count++] = (struct gs_mark){ other, submitted };
	return true;
}

/* Returns the legacy stream of the stream's context. */
static struct gs_stream *
get_legacy(const struct gs_stream *stream)
{
	return stream->green ? gs_green_default_stream(stream->green) : legacy[stream->device];
}

/* The legacy stream waits for all blocking streams of its context, and they wait for it. */
static bool
add_legacy_waits(struct gs_stream *stream, struct gs_op *op)
{
	struct gs_stream *mine = get_legacy(stream), *other;

	if (stream != mine)
		return wait_for(op, mine);
	DL_FOREACH(streams, other)
	{
		if (other == mine || other->green != mine->green || other->device != mine->device ||
		    (other->flags & CU_STREAM_NON_BLOCKING))
			continue;
		if (!wait_for(op, other))
			return false;
	}
	return true;
}

CUresult
gs_stream_submit(struct gs_stream *stream, struct gs_op *op, uint64_t *seq_p)
{
	bool pushed;

	if (stream->flags & CU_STREAM_NON_BLOCKING) {
		pushed = push(stream, op, seq_p);
	} else {
		pthread_mutex_lock(&order);
		pushed = add_legacy_waits(stream, op) && push(stream, op, seq_p);
		pthread_mutex_unlock(&order);
	}
	if (pushed)
		return CUDA_SUCCESS;
	op_release(op);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Makes the operation wait for all streams of a device (-1: of all devices), or those of a green
 * context. */
static bool
wait_for_all(struct gs_op *op, const struct gs_green *green, int device)
{
	struct gs_stream *stream;
	bool done = true;

	pthread_mutex_lock(&order);
	DL_FOREACH(streams, stream)
	{
		if (green ? stream->green != green : device >= 0 && stream->device != device)
			continue;
		done = wait_for(op, stream);
		if (!done)
			break;
	}
	pthread_mutex_unlock(&order);
	return done;
}

static void
nothing(struct gs_op *op, struct gs_stream *stream)
{
}

static void
free_op(struct gs_op *op)
{
	free(op);
}

static struct gs_op *
waiting_op(void)
{
	struct gs_op *op = calloc(1, sizeof(*op));

	if (op) {
		op->run = nothing;
		op->release = free_op;
	}
	return op;
}

static CUresult
submit_waits(struct gs_stream *stream, struct gs_op *op, bool complete)
{
	if (complete && op->wait_count)
		return gs_stream_submit(stream, op, NULL);
	op_release(op);
	return complete ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
gs_stream_join(struct gs_stream *stream, const struct gs_green *green)
{
	struct gs_op *op = waiting_op();

	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return submit_waits(stream, op, wait_for_all(op, green, stream->device));
}

CUresult
gs_stream_follow(struct gs_stream *stream, struct gs_stream *other)
{
	struct gs_op *op = waiting_op();

	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return submit_waits(stream, op, wait_for(op, other));
}

CUresult
gs_stream_each(const struct gs_green *green, CUresult (*visit)(struct gs_stream *stream, void *arg),
	       void *arg)
{
	struct gs_stream *stream, *next, *kept = NULL;
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&order);
	for (stream = streams; stream && !r; stream = next) {
		bool mine = stream->green == green && gs_object_try_ref(&stream->object);

		if (mine) {
			pthread_mutex_unlock(&order);
			if (kept)
				gs_stream_put(kept);
			kept = stream;
			r = visit(stream, arg);
			pthread_mutex_lock(&order);
		}
		next = stream->next;
	}
	pthread_mutex_unlock(&order);
	if (kept)
		gs_stream_put(kept);
	return r;
}

CUresult
gs_stream_synchronize_all(const struct gs_green *green, int device)
{
	struct gs_op cut = { 0 };
	struct gs_mark *marks;
	unsigned int count;

	(void)wait_for_all(&cut, green, device);
	marks = cut.waits;
	count = cut.wait_count;
	for (unsigned int i = 0; i < count; i++) {
		(void)gs_stream_wait(marks[i].stream, marks[i].seq);
		gs_stream_put(marks[i].stream);
	}
	free(marks);
	return gs_failure();
}

void
gs_stream_stop_all(void)
{
	struct gs_stream *stream;

	pthread_mutex_lock(&order);
	DL_FOREACH(streams, stream)
	{
		__atomic_store_n(&stream->stop, 1, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&order);
}

void
gs_stream_destroy_all(void)
{
	struct gs_stream *stream;

	while ((stream = gs_object_retire_any(GS_KIND_STREAM)))
		gs_stream_close(stream);
}

void
gs_stream_publish(struct gs_stream *stream, CUstream *handle)
{
	gs_object_publish(&stream->object);
	*handle = (CUstream)stream;
}

CUresult
gs_stream_check(struct gs_stream *stream, bool wait)
{
	struct gs_op cut = { 0 };
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&order);
	if (!wait_for(&cut, stream) ||
	    (stream == get_legacy(stream) && !add_legacy_waits(stream, &cut)))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_unlock(&order);
	if (!r && !wait && cut.wait_count)
		r = CUDA_ERROR_NOT_READY;
	for (unsigned int i = 0; i < cut.wait_count; i++) {
		if (wait)
			(void)gs_stream_wait(cut.waits[i].stream, cut.waits[i].seq);
		gs_stream_put(cut.waits[i].stream);
	}
	free(cut.waits);
	return gs_failure() ? gs_failure() : r;
}

int
gs_stream_device(const struct gs_stream *stream)
{
	return stream->device;
}

unsigned int
gs_stream_flags(const struct gs_stream *stream)
{
	return stream->flags;
}

int
gs_stream_priority(const struct gs_stream *stream)
{
	return stream->priority;
}

CUresult
gs_stream_cancel(struct gs_stream *stream)
{
	uint64_t seq;

	__atomic_store_n(&stream->stop, 1, __ATOMIC_RELEASE);
	pthread_mutex_lock(&stream->lock);
	seq = stream->submitted;
	pthread_mutex_unlock(&stream->lock);
	return gs_stream_wait(stream, seq);
}
