/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/client/fake_wire.h"

#include "client/context/fence.h"
#include "client/host/host_block.h"
#include "client/managed/managed_copy.h"
#include "client/memory/globals.h"
#include "client/memory/host_memory.h"
#include "client/memory/ipc_memory.h"
#include "client/memory/memory.h"
#include "client/pages/pages.h"
#include "client/session/lane.h"
#include "client/session/session.h"
#include "client/session/session_threads.h"
#include "gpc_calls.h"
#include "protocol/control.h"
#include "protocol/frame.h"
#include "transport/transport.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define NOTE_MAX 1000 /* an odd size, so that rows are split at any byte */

struct gpc_session {
	struct gpc_session_facts facts;
};

/* A queued reply, with its bytes as they were when the request was sent. */
struct under_way {
	struct gpc_request *request;
	uint8_t *bytes;
	uint64_t size;
	CUresult result;
	struct under_way *next;
};

struct fake_wire fake;
static struct gpc_session session;
static struct gpc_device device;
static struct gpc_context context;
static struct gpc_stream streams[2];
static struct under_way *under_way;
static const uint8_t *note; /* remaining bytes that the request may receive */
static uint64_t note_left;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t reader = PTHREAD_MUTEX_INITIALIZER;

int
fake_wire_setup(void **state)
{
	uint8_t *window = mmap(NULL, FAKE_WIRE_WINDOW + FAKE_WIRE_GRANULE, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(window != MAP_FAILED);
	/* The client caches the window of a session, so each test uses the window of the first
	 * one. */
	if (session.facts.window_base == 0) {
		session.facts = (struct gpc_session_facts){
			.window_base = ((uintptr_t)window + FAKE_WIRE_GRANULE - 1) &
				       ~(FAKE_WIRE_GRANULE - 1),
			.window_size = FAKE_WIRE_WINDOW,
			.granularity = FAKE_WIRE_GRANULE,
			.heap_size = 4 * FAKE_WIRE_MIB,
		};
	} else {
		(void)munmap(window, FAKE_WIRE_WINDOW + FAKE_WIRE_GRANULE);
	}
	memset(&fake, 0, sizeof(fake));
	fake.host_quota = FAKE_WIRE_WINDOW;
	session.facts.max_bulk = UINT32_MAX;
	session.facts.features = 0;
	session.facts.unknown_calls[GP_CALL_gpMemoryGrant / 8] |=
		(uint8_t)(1u << GP_CALL_gpMemoryGrant % 8);
	fake.facts = &session.facts;
	fake_wire_forbid_host();
	fake.window = session.facts.window_base;
	fake.device = mmap(NULL, FAKE_WIRE_WINDOW, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(fake.device != MAP_FAILED);
	fake.quota = FAKE_WIRE_WINDOW;
	device = (struct gpc_device){
		.ordinal = 3,
		.remote = 1,
		.session = &session,
		.primary = &context,
		.total_memory = FAKE_WIRE_WINDOW,
	};
	(void)pthread_mutex_init(&device.allowance.lock, NULL);
	context = (struct gpc_context){ .device = &device, .scope = { &session, 77 } };
	context.handle.id = 77;
	context.handle.token = &context;
	for (int i = 0; i < 2; i++) {
		streams[i] = (struct gpc_stream){ .context = &context, .number = (uint64_t)i + 1 };
		streams[i].handle.id = 100 + (uint32_t)i;
	}
	fake.context = &context;
	fake.legacy = &streams[0];
	fake.stream = &streams[1];
	return 0;
}

int
fake_wire_teardown(void **state)
{
	fake_wire_deliver();
	gpc_host_block_drop_context(&context);
	gpc_globals_drop_context(&context);
	gpc_ipc_memory_drop_context(&context);
	gpc_memory_drop_context(&context);
	fake.done = fake.posted;
	fake_wire_memory_end();
	(void)munmap(fake.device, FAKE_WIRE_WINDOW);
	return 0;
}

uint8_t *
fake_wire_at(CUdeviceptr address)
{
	assert_in_range(address, fake.window, fake.window + FAKE_WIRE_WINDOW);
	return fake.device + (address - fake.window);
}

/* The transfer path of managed memory. */
static bool
pages_await(void *owner)
{
	return true;
}

static bool
pages_fetch(void *owner, uint64_t address, uint64_t size, void *to)
{
	memcpy(to, fake_wire_at(address), size);
	return true;
}

static bool
pages_push(void *owner, uint64_t address, uint64_t size, const void *from)
{
	memcpy(fake_wire_at(address), from, size);
	return true;
}

const struct gpc_pages_ops gpc_managed_calls = { pages_await, pages_fetch, pages_push };

CUdeviceptr
fake_wire_alloc(size_t size)
{
	CUdeviceptr address = 0;

	assert_int_equal(gpc_cuMemAlloc_v2(&address, size), CUDA_SUCCESS);
	return address;
}

uint8_t *
fake_wire_pattern(size_t size, unsigned int seed)
{
	uint8_t *bytes = malloc(size);

	assert_non_null(bytes);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(seed = seed * 1664525u + 1013904223u, seed >> 24);
	return bytes;
}

/* Replacements of the session's functions. */

CUresult
gpc_enter(struct gpc_context **context_p)
{
	*context_p = &context;
	return fake.enter;
}

int
gpc_session_count(void)
{
	return 1;
}

struct gpc_session *
gpc_session_at(int number)
{
	return &session;
}

/* Replacements of the data lanes, which carry copies from the device. */

bool
gpc_lanes_open_for_copy(struct gpc_session *s, uint64_t size, bool later)
{
	return fake.lanes && size >= gpc_lane_copy_min(later);
}

void
gpc_lanes_settle(const void *base, uint64_t size)
{
}

CUresult
gpc_lanes_send(const struct gpc_scope *scope, uint32_t stream, uint64_t dst, const void *memory,
	       uint64_t size, unsigned int flags, unsigned int *wait)
{
	abort();
}

CUresult
gpc_lanes_wait_sent(struct gpc_session *s, const unsigned int *wait)
{
	abort();
}

CUresult
gpc_start_gpCopyOutLanes(struct gpc_context *c, const struct gp_args_gpCopyOutLanes *args,
			 struct gpc_request *request)
{
	fake_wire_count(&fake.copies_out_lanes);
	fake_wire_start(request, NULL, 0, CUDA_SUCCESS);
	return CUDA_SUCCESS;
}

void
gpc_lanes_expect(struct gpc_session *s, struct gpc_incoming_copy *in)
{
	assert_int_not_equal(in->stream, 0);
	fake.ordered += in->ordered;
}

void
gpc_lanes_posted(struct gpc_session *s, struct gpc_incoming_copy *in)
{
	in->posted = 1;
}

void
gpc_lanes_finish(struct gpc_session *s, struct gpc_incoming_copy *in, uint64_t sent)
{
	assert_int_equal(in->posted, 1);
	in->received = in->size;
}

int
gpc_session_number(const struct gpc_session *s)
{
	return 0;
}

__thread struct gpc_context *gpc_current_context __attribute__((tls_model("initial-exec"))) =
	&context;

CUresult
gpc_enter_initialized(void)
{
	return fake.enter == CUDA_ERROR_INVALID_CONTEXT ? CUDA_SUCCESS : fake.enter;
}

int
gpc_device_count(void)
{
	return device.ordinal + 1;
}

void
gpc_session_note_pinned(struct gpc_session *of)
{
}

struct gpc_session *
gpc_session_get(void)
{
	return &session;
}

struct gpc_device *
gpc_device_get(CUdevice ordinal)
{
	return ordinal == device.ordinal ? &device : NULL;
}

int
gpc_device_attribute(const struct gpc_device *d, CUdevice_attribute attribute)
{
	if (attribute == CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)
		return gpc_facts_have_call(fake.facts, GP_CALL_gpHostReserve);
	if (attribute == CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED)
		return fake.sparse;
	return attribute == CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES
		       ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
		       : 0;
}

const struct gpc_session_facts *
gpc_session_facts(const struct gpc_session *s)
{
	return &s->facts;
}

CUresult
gpc_session_status(struct gpc_session *s)
{
	return CUDA_SUCCESS;
}

CUresult
gpc_session_result(struct gpc_session *s)
{
	return gpc_session_status(s);
}

bool
gpc_session_is_host_gated(const struct gpc_session *unused)
{
	return fake.has_functions || fake.foreign_wait;
}

__thread bool gpc_call_passes;

CUresult
gpc_host_queue_post(const struct gpc_scope *scope, uint32_t stream,
		    const struct gpc_host_call *call)
{
	assert_true(call->library);
	assert_true(fake.late_count < 4);
	fake.late[fake.late_count++] = *call;
	(void)gpc_session_work_mark(scope->session);
	return CUDA_SUCCESS;
}

void
fake_wire_allow_late(void)
{
	fake.facts->features |= GP_FEATURE_LATE;
}

void
fake_wire_run_late(CUresult result)
{
	struct gpc_host_call call = fake.late[0];

	assert_true(fake.late_count > 0);
	memmove(fake.late, fake.late + 1, (size_t)--fake.late_count * sizeof(call));
	call.callback(NULL, result, call.data);
}

bool
gpc_session_is_abandoned(const struct gpc_session *s)
{
	return false;
}

bool
gpc_session_awaits_host(const struct gpc_session *unused)
{
	return fake.has_functions;
}

uint64_t
gpc_session_work_mark(struct gpc_session *s)
{
	return __atomic_add_fetch(&fake.posted, 1, __ATOMIC_SEQ_CST);
}

uint64_t
gpc_session_work_posted(struct gpc_session *s)
{
	return __atomic_load_n(&fake.posted, __ATOMIC_SEQ_CST);
}

uint64_t
gpc_session_issued(const struct gpc_session *s)
{
	return __atomic_load_n(&fake.posted, __ATOMIC_SEQ_CST);
}

void
gpc_session_count_visible_blocks(struct gpc_session *s, int count)
{
}

void
gpc_session_note_visible(struct gpc_session *s)
{
}

void
gpc_sync_implicitly_stream(struct gpc_stream *stream)
{
}

uint64_t
gpc_session_work_done(struct gpc_session *s)
{
	return __atomic_load_n(&fake.done, __ATOMIC_SEQ_CST);
}

void
gpc_session_work_set_done(struct gpc_session *s, uint64_t count)
{
	if (count > gpc_session_work_done(s))
		__atomic_store_n(&fake.done, count, __ATOMIC_SEQ_CST);
}

void
gpc_session_defer(struct gpc_session *s, CUresult result)
{
	fake.deferred = result;
}

void
gpc_session_fail(struct gpc_session *s, CUresult result, const char *why)
{
	fake.failed = result;
}

CUresult
gpc_stream_default(struct gpc_context *c, struct gpc_stream **stream_p)
{
	*stream_p = fake.legacy;
	return CUDA_SUCCESS;
}

CUresult
gpc_stream_lookup(struct gpc_context *c, CUstream hStream, struct gpc_stream **stream_p)
{
	if (hStream && hStream != FAKE_WIRE_STREAM)
		return CUDA_ERROR_INVALID_HANDLE;
	*stream_p = hStream ? fake.stream : fake.legacy;
	return CUDA_SUCCESS;
}

CUresult
gpc_stream_enter(CUstream hStream, struct gpc_stream **stream_p)
{
	struct gpc_context *c;
	CUresult result = gpc_enter(&c);

	return result == CUDA_SUCCESS ? gpc_stream_lookup(c, hStream, stream_p) : result;
}

void
gpc_stream_set_fetched(struct gpc_stream *stream, uint64_t issued)
{
}

void
gpc_stream_set_done(struct gpc_stream *stream, uint64_t issued)
{
}

bool
gpc_stream_is_known_idle(const struct gpc_stream *stream)
{
	return gpc_fence_is_redundant(stream->context->scope.session);
}

/* Sends late copies at their turn in the stream. */
CUresult
gpc_stream_fence(struct gpc_stream *stream)
{
	struct gp_args_cuStreamSynchronize args = { .hStream = stream->handle.id };

	while (fake.late_count > 0)
		fake_wire_run_late(CUDA_SUCCESS);
	return gpc_wait_cuStreamSynchronize(stream->context, &args);
}

CUresult
gpc_stream_fence_functions(struct gpc_stream *stream)
{
	return fake.has_functions ? gpc_stream_fence(stream) : CUDA_SUCCESS;
}

int
gpc_thread_start(struct gpc_session *s, void *(*main)(void *arg), void *arg, const char *name)
{
	/* This thread is for work that continues while no thread waits. */
	if (strcmp(name, "gpupool-replica") != 0)
		(void)main(arg);
	return 0;
}

void
gpc_thread_ended(struct gpc_session *s)
{
}

/* Replacements of the functions that send requests. */

void
fake_wire_start(struct gpc_request *request, uint8_t *bytes, uint64_t size, CUresult result)
{
	struct under_way *new = calloc(1, sizeof(*new)), **link = &under_way;

	*new = (struct under_way){
		.request = request, .bytes = bytes, .size = size, .result = result
	};
	if (request->issued == 0)
		request->issued = gpc_session_issued(request->session);
	(void)pthread_mutex_lock(&lock);
	while (*link)
		link = &(*link)->next;
	*link = new;
	(void)pthread_mutex_unlock(&lock);
	if (!fake.lazy)
		fake_wire_deliver();
}

static void
answer(struct under_way *one)
{
	struct gpc_request *request = one->request;
	/* As in receiver.c: a complete request without done() belongs to its caller again. */
	void (*done)(struct gpc_request *) = request->done;

	fake_wire_host_look(request);
	for (uint64_t at = 0; at < one->size;) {
		uint64_t size = one->size - at < NOTE_MAX ? one->size - at : NOTE_MAX;

		note = one->bytes + at;
		note_left = size;
		assert_int_equal(request->data(request, NULL, at, size), 0);
		assert_int_equal(note_left, 0);
		at += size;
	}
	if (request->before)
		request->before(request);
	request->result = one->result;
	__atomic_store_n(&request->complete, true, __ATOMIC_RELEASE);
	if (done)
		done(request);
	free(one->bytes);
	free(one);
}

void
fake_wire_deliver(void)
{
	struct under_way *one;

	(void)pthread_mutex_lock(&reader);
	do {
		(void)pthread_mutex_lock(&lock);
		one = under_way;
		if (one)
			under_way = one->next;
		(void)pthread_mutex_unlock(&lock);
		if (one)
			answer(one);
	} while (one);
	(void)pthread_mutex_unlock(&reader);
}

bool
fake_wire_is_idle(void)
{
	bool idle;

	(void)pthread_mutex_lock(&lock);
	idle = !under_way;
	(void)pthread_mutex_unlock(&lock);
	return idle;
}

CUresult
gpc_request_wait(struct gpc_request *request)
{
	CUresult pending = fake.pending;
	void (*meanwhile)(void) = fake.meanwhile;

	if (meanwhile && !request->complete) {
		fake.meanwhile = NULL;
		meanwhile();
	}
	while (!__atomic_load_n(&request->complete, __ATOMIC_ACQUIRE))
		fake_wire_deliver();
	if (request->result != CUDA_SUCCESS || pending == CUDA_SUCCESS)
		return request->result;
	fake.pending = CUDA_SUCCESS;
	return pending;
}

bool
gpc_request_poll(struct gpc_request *request)
{
	if (!fake.busy)
		fake_wire_deliver();
	return __atomic_load_n(&request->complete, __ATOMIC_ACQUIRE);
}

int
gp_conn_recv_bulk(struct gp_conn *conn, void *dst, size_t size)
{
	if (size > note_left)
		return GP_E_INVALID;
	memcpy(dst, note, size);
	note += size;
	note_left -= size;
	return 0;
}
