/* SPDX-License-Identifier: Apache-2.0 */
/* Fake session of a worker (fake_session.h), its markers, and the functions of the worker that
 * sessions call. */

/* assert() checks the tested code, so it is active in every build. */
#undef NDEBUG
#include "tests/unit/server/fake_session.h"

#include "server/worker/copy/copy.h"
#include "server/worker/device/device.h"
#include "server/worker/memory/memory.h"
#include "server/worker/module/image.h"
#include "server/worker/session/sessions.h"
#include "server/worker/session/worker_retirement.h"
#include "server/worker/stream/event.h"
#include "server/worker/stream/responder.h"
#include "server/worker/stream/stream.h"
#include "tests/unit/server/fake_driver.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MARKERS_MAX 4096

struct marker {
	gpd_wait_done *done;
	void *arg;
};

struct gpd_wait_queue {
	struct marker markers[MARKERS_MAX];
	unsigned int first, last;
};

struct gpd_devices gpd_devices;
struct gpd_sessions gpd_sessions = { .lock = PTHREAD_MUTEX_INITIALIZER };

unsigned int
gpd_sessions_timeout_ms(void)
{
	return 30000;
}

/* The same as in executor.c. */
static bool
reclaim_memory(struct gpd_account *account)
{
	struct gpd_session *session =
		(struct gpd_session *)((char *)account - offsetof(struct gpd_session, account));
	bool waited = session->memory && gpd_memory_wait_freed(session);

	return gpd_image_wait_unloaded(session) || waited;
}

void
fake_session_create(struct fake_session *fake)
{
	int fd;

	memset(fake, 0, sizeof(*fake));
	fake_driver_create();
	gpd_devices.lost = 0;
	gpd_devices.count = 2;
	gpd_devices.granularity = FAKE_GRANULE;
	gpd_devices.all[0].peers = gpd_devices.all[1].peers = 0;
	gpd_devices.all[1].device = 1;
	gpd_devices.all[0].primary = (CUcontext)0x100;
	gpd_devices.all[1].primary = (CUcontext)0x101;
	gpd_devices.all[0].memory = gpd_devices.all[1].memory = (uint64_t)1 << 40;
	gpd_devices.all[0].granularity = FAKE_GRANULE;
	gpd_devices.all[1].granularity = FAKE_GRANULE;
	fake->ledger = gpd_ledger_create(&fd);
	assert(fake->ledger);
	fake->ledger->device_memory[0] = fake->ledger->device_memory[1] = gpd_devices.all[0].memory;
	(void)close(fd);
	fake->session.account.reclaim_memory = reclaim_memory;
	fake->session.account.closing = &fake->session.closing;
	fake->session.account.ledger = fake->ledger;
	fake->session.account.entry = gpd_ledger_open(fake->ledger, 1, 0, 0);
	fake->session.waits = calloc(1, sizeof(struct gpd_wait_queue));
	fake->session.graphs = &fake->graphs;
	fake->session.modules = &fake->modules;
	fake->session.copies = &fake->copies;
	fake->session.window_base = FAKE_WINDOW;
	fake->session.window_size = FAKE_WINDOW_SIZE;
	fake->session.streams = &fake->streams;
	fake->session.arrays = &fake->arrays;
	fake->session.stream_ops = &fake->stream_ops;
	fake->session.current.context = FAKE_CONTEXT;
	fake->context.legacy = &fake->stream;
	fake->stream.driver = (CUstream)0x55;
	fake->other.driver = (CUstream)0x66;
	fake->stream.context = fake->other.context = &fake->context;
	assert(!gpd_handle_add(&fake->session.handles, GPD_KIND_CONTEXT, FAKE_CONTEXT,
			       &fake->context.handle));
	assert(!gpd_handle_add(&fake->session.handles, GPD_KIND_STREAM, FAKE_STREAM,
			       &fake->stream.handle));
	assert(!gpd_handle_add(&fake->session.handles, GPD_KIND_STREAM, FAKE_OTHER_STREAM,
			       &fake->other.handle));
}

void
fake_session_destroy(struct fake_session *fake)
{
	gpd_handle_remove(&fake->session.handles, &fake->context.handle);
	gpd_handle_remove(&fake->session.handles, &fake->stream.handle);
	gpd_handle_remove(&fake->session.handles, &fake->other.handle);
	gpd_handle_fini(&fake->session.handles);
	free(fake->session.waits);
	gpd_ledger_destroy(fake->ledger);
	free(fake->data);
	free(fake->fields);
}

uint64_t
fake_session_allocated(const struct fake_session *fake, int device)
{
	return fake->session.account.entry->devices[device].memory;
}

static struct fake_session *
of(struct gpd_session *session)
{
	return (struct fake_session *)session;
}

unsigned int
fake_session_markers(const struct fake_session *fake)
{
	return fake->session.waits->last - fake->session.waits->first;
}

void
fake_session_run_markers(struct fake_session *fake, int count)
{
	struct gpd_wait_queue *queue = fake->session.waits;

	for (; count && queue->first != queue->last; count--) {
		struct marker *marker = &queue->markers[queue->first++ % MARKERS_MAX];

		marker->done(&fake->session, marker->arg, CUDA_SUCCESS);
	}
}

CUresult
gpd_wait_add(struct gpd_session *session, struct gpd_stream *stream, gpd_wait_done *done, void *arg)
{
	struct gpd_wait_queue *queue = session->waits;
	CUresult result = fake_driver_called("marker");

	if (result != CUDA_SUCCESS)
		return result;
	assert(queue->last - queue->first < MARKERS_MAX);
	queue->markers[queue->last++ % MARKERS_MAX] = (struct marker){ done, arg };
	return CUDA_SUCCESS;
}

CUresult
gpd_wait_add_all(struct gpd_session *session, struct gpd_context *context, gpd_wait_done *done,
		 void *arg)
{
	return gpd_wait_add(session, NULL, done, arg);
}

CUresult
gpd_stream_await(struct gpd_session *session, uint32_t id, gpd_wait_done *done, void *arg)
{
	CUresult result = CUDA_ERROR_INVALID_HANDLE;

	if (gpd_stream_get(session, id))
		result = gpd_wait_add(session, gpd_stream_get(session, id), done, arg);
	return result == CUDA_SUCCESS ? GPD_LATER : result;
}

/* The fake has no events. */
struct gpd_event *
gpd_event_get(const struct gpd_session *session, uint32_t id)
{
	return NULL;
}

struct gpd_event_ref *
gpd_event_get_ref(const struct gpd_event *event)
{
	return NULL;
}

void
gpd_event_unref(struct gpd_event_ref *ref)
{
}

void
gpd_wait_add_event(struct gpd_session *session, struct gpd_event_ref *event, gpd_wait_done *done,
		   void *arg)
{
	(void)gpd_wait_add(session, NULL, done, arg);
}

void
gpd_wait_reply(struct gpd_session *session, void *arg, CUresult result)
{
	uintptr_t packed = (uintptr_t)arg;

	(void)gpd_session_reply(session, (uint16_t)(packed >> 32), (uint32_t)packed, result, NULL,
				0);
}

void *
gpd_wait_request(const struct gpd_session *session)
{
	return (void *)((uintptr_t)session->current.call << 32 | session->current.request);
}

bool
gpd_wait_is_empty(struct gpd_session *session)
{
	return session->waits->last == session->waits->first;
}

void
gpd_wait_any(struct gpd_session *session)
{
	fake_session_run_markers(of(session), 1);
}

struct gpd_stream *
gpd_stream_get(const struct gpd_session *session, uint32_t id)
{
	return (struct gpd_stream *)gpd_handle_get(&session->handles, GPD_KIND_STREAM, id);
}

CUresult
gpd_stream_begin(struct gpd_session *session, uint32_t id, struct gpd_stream **stream_p)
{
	struct gpd_stream *stream = gpd_stream_get(session, id);

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	gpd_copy_await(session, stream);
	stream->work = ++session->progress.work;
	*stream_p = stream;
	return CUDA_SUCCESS;
}

void
gpd_stream_destroy_peer_stream(struct gpd_stream *stream)
{
	if (stream->peer_stream)
		(void)gpd_driver.cuStreamDestroy_v2(stream->peer_stream);
	stream->peer_stream = NULL;
}

CUresult
gpd_stream_record(struct gpd_stream *stream, CUevent *event)
{
	return fake_driver_called("record");
}

CUresult
gpd_stream_barrier(struct gpd_session *session, struct gpd_stream *stream)
{
	of(session)->barriers++;
	return CUDA_SUCCESS;
}

bool
gpd_session_set_state(struct gpd_session *session, enum gpd_session_state to)
{
	session->state = (int)to;
	return true;
}

void
gpd_session_add_waker(struct gpd_session *session, struct gpd_waker *waker)
{
}

void
gpd_session_remove_waker(struct gpd_session *session, struct gpd_waker *waker)
{
}

struct gpd_context *
gpd_context_get(const struct gpd_session *session, uint32_t id)
{
	return (struct gpd_context *)gpd_handle_get(&session->handles, GPD_KIND_CONTEXT, id);
}

int
gpd_context_device(const struct gpd_session *session, uint32_t id)
{
	const struct gpd_context *context = gpd_context_get(session, id);

	return context ? context->device : 0;
}

CUresult
gpd_context_enter(const struct gpd_session *session, uint32_t id)
{
	return CUDA_SUCCESS;
}

CUresult
gpd_device_enter(int ordinal)
{
	return gpd_device_get(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

bool
gpd_device_has_context(int ordinal)
{
	return gpd_device_get(ordinal) != NULL;
}

CUresult
gpd_device_get_memory(int ordinal, size_t *free_p, size_t *total_p)
{
	CUresult result = gpd_device_enter(ordinal);

	return result == CUDA_SUCCESS ? gpd_driver.cuMemGetInfo_v2(free_p, total_p) : result;
}

CUresult
gpd_device_enter_any(void)
{
	return gpd_device_enter(0);
}

struct gpd_device *
gpd_device_get(int ordinal)
{
	return ordinal >= 0 && ordinal < gpd_devices.count ? &gpd_devices.all[ordinal] : NULL;
}

bool
gpd_device_has_peer(int ordinal, int peer)
{
	const struct gpd_device *device = gpd_device_get(ordinal);

	return device && (device->peers >> peer & 1);
}

bool
gpd_driver_is_sticky(CUresult result)
{
	return result == CUDA_ERROR_ILLEGAL_ADDRESS;
}

int
gpd_session_recv_bulk(struct gpd_session *session, void *dst, size_t size)
{
	const uint8_t **from =
		session->current.bulk_read ? &session->current.bulk_read : &of(session)->bulk;

	assert(size <= session->current.bulk_left);
	if (dst)
		memcpy(dst, *from, size);
	*from += size;
	session->current.bulk_left -= size;
	return 0;
}

int
gpd_session_reply(struct gpd_session *session, uint16_t call, uint32_t request, CUresult result,
		  const void *fields, size_t size)
{
	struct fake_session *fake = of(session);

	fake->data_before = fake->data_size;
	if (fake->keeps_no_replies)
		return 0;
	fake->replies[fake->reply_count++ % FAKE_REPLIES] =
		(struct fake_session_reply){ call, request, result };
	free(fake->fields);
	fake->fields = malloc(size + 1);
	assert(fake->fields);
	fake->fields_size = size;
	if (size)
		memcpy(fake->fields, fields, size);
	return 0;
}

int
gpd_session_reply_unthrottled(struct gpd_session *session, uint16_t call, uint32_t request,
			      CUresult result, const void *fields, size_t size)
{
	return gpd_session_reply(session, call, request, result, fields, size);
}

int
gpd_session_send_data(struct gpd_session *session, uint32_t request, uint64_t offset,
		      const void *data, size_t size)
{
	struct fake_session *fake = of(session);

	assert(offset == fake->data_size - fake->data_before);
	if (fake->data_size + size > fake->data_room) {
		fake->data_room = 4 * (fake->data_size + size);
		fake->data = realloc(fake->data, fake->data_room);
	}
	memcpy(fake->data + fake->data_size, data, size);
	fake->data_size += size;
	fake->data_notes++;
	return 0;
}

int
gpd_session_reply_data(struct gpd_session *session, uint16_t call, uint32_t request,
		       const void *data, size_t size)
{
	int r = gpd_session_send_data(session, request, 0, data, size);

	of(session)->data_notes--;
	return r ? r : gpd_session_reply(session, call, request, CUDA_SUCCESS, NULL, 0);
}

int
gpd_session_send_print(struct gpd_session *session, const char *text, size_t size)
{
	struct fake_session *fake = of(session);

	size_t used = strlen(fake->printed);

	if (size > FAKE_TEXT - 1 - used)
		size = FAKE_TEXT - 1 - used;
	if (size)
		memcpy(fake->printed + used, text, size);
	fake->printed[used + size] = 0;
	return 0;
}

int
gpd_session_send_complaint(struct gpd_session *session, const char *text)
{
	struct fake_session *fake = of(session);
	size_t used = strlen(fake->complained);

	snprintf(fake->complained + used, sizeof(fake->complained) - used, "%s", text);
	return 0;
}

void
gpd_session_log(const struct gpd_session *session, enum gpd_log_level level, const char *format,
		...)
{
}

void
gpd_session_poison(struct gpd_session *session, CUresult result)
{
	session->sticky = (int)result;
}

void
gpd_session_defer(struct gpd_session *session, CUresult result, uint16_t call)
{
	session->send.deferred = result;
	session->send.deferred_call = call;
}

void
gpd_session_stop_disconnected(struct gpd_session *session)
{
	gpd_session_stop(session, "");
}

void
gpd_session_stop(struct gpd_session *session, const char *reason)
{
	session->closing = true;
}

void
gpd_session_violation(struct gpd_session *session, const char *format, ...)
{
	struct fake_session *fake = of(session);
	va_list args;

	va_start(args, format);
	vsnprintf(fake->violation, sizeof(fake->violation), format, args);
	va_end(args);
}

void
gpd_retirement_check_idle(void)
{
}

bool
gpd_session_quiesce_begin(struct gpd_session *session, int device)
{
	return true;
}

void
gpd_session_quiesce_end(struct gpd_session *session, int device)
{
}
