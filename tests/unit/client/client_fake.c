/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/client/client_fake.h"

#include "client/copy/managed_copy.h"
#include "client/host/host_block.h"
#include "client/memory/globals.h"
#include "client/memory/host_memory.h"
#include "client/memory/ipc_memory.h"
#include "client/memory/memory.h"
#include "client/pages/pages.h"
#include "client/wire/lane.h"
#include "client/wire/session.h"
#include "client/wire/session_threads.h"
#include "gpc_calls.h"
#include "protocol/frame.h"
#include "transport/transport.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define NOTE_MAX 1000 /* an odd size, so that rows are cut anywhere */
#define MAPPINGS 256
#define PHYSICALS 64

struct gpc_session {
	struct gpc_session_facts facts;
};

/* What a request still has to get: its bytes as they were when it was started. */
struct under_way {
	struct gpc_request *request;
	uint8_t *bytes;
	uint64_t size;
	CUresult result;
	struct under_way *next;
};

struct mapping {
	uint64_t base, size;
	uint32_t memory; /* whose beginning it is; 0: its own */
};

struct physical {
	uint32_t id;
	uint64_t size;
};

struct fake fake;
static struct gpc_session session;
static struct gpc_device device;
static struct gpc_context context;
static struct gpc_stream streams[2];
static struct mapping mappings[MAPPINGS];
static struct physical physicals[PHYSICALS];
static struct under_way *under_way;
static const uint8_t *note; /* bytes that the data sink may take */
static uint64_t note_left;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t reader = PTHREAD_MUTEX_INITIALIZER;

int
fake_setup(void **state)
{
	uint8_t *window = mmap(NULL, FAKE_WINDOW + FAKE_GRANULE, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(window != MAP_FAILED);
	/* The client keeps what it knows of a session, so each test has the first one's window. */
	if (session.facts.window_base == 0) {
		session.facts = (struct gpc_session_facts){
			.window_base = ((uintptr_t)window + FAKE_GRANULE - 1) & ~(FAKE_GRANULE - 1),
			.window_size = FAKE_WINDOW,
			.granularity = FAKE_GRANULE,
			.heap_size = 4 * FAKE_MIB,
		};
	} else {
		(void)munmap(window, FAKE_WINDOW + FAKE_GRANULE);
	}
	memset(&fake, 0, sizeof(fake));
	fake.host_quota = FAKE_WINDOW;
	session.facts.max_bulk = UINT32_MAX;
	session.facts.unknown_calls[GP_CALL_gpMemoryGrant / 8] |=
		(uint8_t)(1u << GP_CALL_gpMemoryGrant % 8);
	fake.facts = &session.facts;
	fake_forbid_host();
	fake.window = session.facts.window_base;
	fake.device = mmap(NULL, FAKE_WINDOW, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(fake.device != MAP_FAILED);
	fake.quota = FAKE_WINDOW;
	device = (struct gpc_device){
		.ordinal = 3,
		.remote = 1,
		.session = &session,
		.primary = &context,
		.total_memory = FAKE_WINDOW,
	};
	(void)pthread_mutex_init(&device.credit.lock, NULL);
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

/* What nobody waits for, and is answered before the next question is. */
static struct gpc_request *refilling;

static void
answer_refill(void)
{
	struct gpc_request *request = refilling;

	refilling = NULL;
	if (request)
		request->done(request);
}

int
fake_teardown(void **state)
{
	fake_deliver();
	gpc_host_block_forget_context(&context);
	gpc_globals_forget_context(&context);
	gpc_ipc_memory_forget_context(&context);
	gpc_memory_forget_context(&context);
	fake.done = fake.posted;
	if (refilling)
		answer_refill();
	assert_int_equal(fake.mapped, fake.credit);
	memset(mappings, 0, sizeof(mappings));
	(void)munmap(fake.device, FAKE_WINDOW);
	return 0;
}

uint8_t *
fake_at(CUdeviceptr address)
{
	assert_in_range(address, fake.window, fake.window + FAKE_WINDOW);
	return fake.device + (address - fake.window);
}

/* How bytes of managed memory travel. */
static bool
pages_await(void *owner)
{
	return true;
}

static bool
pages_fetch(void *owner, uint64_t address, uint64_t size, void *to)
{
	memcpy(to, fake_at(address), size);
	return true;
}

static bool
pages_push(void *owner, uint64_t address, uint64_t size, const void *from)
{
	memcpy(fake_at(address), from, size);
	return true;
}

const struct gpc_pages_calls gpc_managed_calls = { pages_await, pages_fetch, pages_push };

CUdeviceptr
fake_alloc(size_t size)
{
	CUdeviceptr address = 0;

	assert_int_equal(gpc_cuMemAlloc_v2(&address, size), CUDA_SUCCESS);
	return address;
}

uint8_t *
fake_pattern(size_t size, unsigned int seed)
{
	uint8_t *bytes = malloc(size);

	assert_non_null(bytes);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(seed = seed * 1664525u + 1013904223u, seed >> 24);
	return bytes;
}

/* The session. */

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

/* It has no data lanes. */

bool
gpc_lanes_want(struct gpc_session *s, uint64_t size, bool later)
{
	return false;
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
	abort();
}

void
gpc_lanes_expect(struct gpc_session *s, struct gpc_lane_in *in)
{
	abort();
}

void
gpc_lanes_finish(struct gpc_session *s, struct gpc_lane_in *in, uint64_t sent)
{
	abort();
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
		return gpc_facts_know(fake.facts, GP_CALL_gpHostReserve);
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
gpc_session_has_functions(const struct gpc_session *unused)
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
gpc_session_given(const struct gpc_session *s)
{
	return __atomic_load_n(&fake.posted, __ATOMIC_SEQ_CST);
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
	if (hStream && hStream != FAKE_STREAM)
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
gpc_stream_set_here(struct gpc_stream *stream, uint64_t given)
{
}

void
gpc_stream_set_done(struct gpc_stream *stream, uint64_t given)
{
}

CUresult
gpc_stream_fence(struct gpc_stream *stream)
{
	struct gp_args_cuStreamSynchronize args = { .hStream = stream->handle.id };

	return gpc_wait_cuStreamSynchronize(stream->context, &args);
}

CUresult
gpc_stream_fence_functions(struct gpc_stream *stream)
{
	return fake.has_functions ? gpc_stream_fence(stream) : CUDA_SUCCESS;
}

static void
count(int *counter)
{
	__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

/* Requests. */

void
fake_start(struct gpc_request *request, uint8_t *bytes, uint64_t size, CUresult result)
{
	struct under_way *new = calloc(1, sizeof(*new)), **link = &under_way;

	*new = (struct under_way){
		.request = request, .bytes = bytes, .size = size, .result = result
	};
	(void)pthread_mutex_lock(&lock);
	while (*link)
		link = &(*link)->next;
	*link = new;
	(void)pthread_mutex_unlock(&lock);
	if (!fake.lazy)
		fake_deliver();
}

static void
answer(struct under_way *one)
{
	struct gpc_request *request = one->request;

	fake_host_look(request);
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
	if (request->done)
		request->done(request);
	free(one->bytes);
	free(one);
}

void
fake_deliver(void)
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
fake_is_idle(void)
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
		fake_deliver();
	if (request->result != CUDA_SUCCESS || pending == CUDA_SUCCESS)
		return request->result;
	fake.pending = CUDA_SUCCESS;
	return pending;
}

bool
gpc_request_poll(struct gpc_request *request)
{
	if (!fake.busy)
		fake_deliver();
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

/* The device. */

static void
expect_mapped(uint64_t address, uint64_t size)
{
	bool mapped = false;

	(void)pthread_mutex_lock(&lock);
	for (int i = 0; i < MAPPINGS; i++)
		mapped |= address >= mappings[i].base &&
			  address + size <= mappings[i].base + mappings[i].size;
	(void)pthread_mutex_unlock(&lock);
	if (!mapped && !fake_host_has(address, size))
		fail_msg("device access outside mapped memory");
}

static CUresult
map(uint64_t address, uint64_t size, uint32_t memory)
{
	struct mapping *place = NULL;

	for (int i = 0; i < MAPPINGS; i++) {
		assert_true(mappings[i].size == 0 ||
			    address >= mappings[i].base + mappings[i].size ||
			    address + size <= mappings[i].base);
		if (mappings[i].size == 0)
			place = &mappings[i];
	}
	assert_non_null(place);
	*place = (struct mapping){ .base = address, .size = size, .memory = memory };
	fake.mapped += memory ? 0 : size;
	return CUDA_SUCCESS;
}

CUresult
gpc_wait_gpMemoryMap(struct gpc_context *c, const struct gp_args_gpMemoryMap *args)
{
	CUresult result;

	assert_int_equal(args->address % FAKE_GRANULE, 0);
	assert_int_equal(args->size % FAKE_GRANULE, 0);
	assert_int_equal(args->device, device.remote);
	count(&fake.maps);
	(void)pthread_mutex_lock(&lock);
	result = args->size > fake.quota - fake.mapped ? CUDA_ERROR_OUT_OF_MEMORY
						       : map(args->address, args->size, 0);
	(void)pthread_mutex_unlock(&lock);
	return result;
}

/* What is answered before anybody waits. */
static CUresult
answered(struct gpc_request *request, CUresult result)
{
	request->session = &session;
	request->result = result;
	__atomic_store_n(&request->complete, true, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

CUresult
gpc_start_gpMemoryMap(struct gpc_context *c, const struct gp_args_gpMemoryMap *args,
		      struct gpc_request *request)
{
	return answered(request, gpc_wait_gpMemoryMap(c, args));
}

void
fake_allow_credit(void)
{
	session.facts.unknown_calls[GP_CALL_gpMemoryGrant / 8] &=
		(uint8_t) ~(1u << GP_CALL_gpMemoryGrant % 8);
}

static uint64_t
grant(const struct gp_args_gpMemoryGrant *args)
{
	uint64_t room, granted;

	assert_true(args->forgo <= fake.credit);
	fake.credit -= args->forgo;
	fake.mapped -= args->forgo;
	room = fake.quota - fake.mapped;
	if (room < args->least)
		return 0;
	granted = args->wanted < room ? args->wanted : room;
	fake.credit += granted;
	fake.mapped += granted;
	return granted;
}

CUresult
gpc_start_gpMemoryGrant(struct gpc_context *c, const struct gp_args_gpMemoryGrant *args,
			struct gpc_request *request)
{
	struct gp_reply_gpMemoryGrant reply;
	struct gp_enc enc;

	assert_int_equal(args->device, device.remote);
	answer_refill();
	count(&fake.grants);
	(void)pthread_mutex_lock(&lock);
	reply.granted = grant(args);
	(void)pthread_mutex_unlock(&lock);
	request->reply_size = gp_reply_gpMemoryGrant_size(&reply);
	request->reply = malloc(request->reply_size);
	assert_non_null(request->reply);
	gp_enc_init(&enc, request->reply, request->reply_size);
	gp_reply_gpMemoryGrant_encode(&enc, &reply);
	if (!request->done)
		return answered(request, CUDA_SUCCESS);
	assert_true(request->lazy);
	request->session = &session;
	request->result = CUDA_SUCCESS;
	refilling = request;
	return CUDA_SUCCESS;
}

/* Whatever is made of it counts as before. */
static void
use_credit(uint64_t size)
{
	assert_true(size <= fake.credit);
	fake.credit -= size;
	fake.mapped -= size;
}

CUresult
gpc_post_gpMemoryUse(struct gpc_context *c, const struct gp_args_gpMemoryUse *args)
{
	CUresult result;

	count(&fake.uses);
	(void)pthread_mutex_lock(&lock);
	use_credit(args->size);
	result = map(args->address, args->size, 0);
	(void)pthread_mutex_unlock(&lock);
	return result;
}

CUresult
gpc_post_gpMemoryUnmap(struct gpc_context *c, const struct gp_args_gpMemoryUnmap *args)
{
	bool mapped = false;

	if (fake_host_displace(args->address, args->size))
		return CUDA_SUCCESS;
	count(&fake.unmaps);
	(void)pthread_mutex_lock(&lock);
	for (int i = 0; i < MAPPINGS && !mapped; i++) {
		mapped = mappings[i].base == args->address && mappings[i].size == args->size;
		if (mapped) {
			fake.mapped -= mappings[i].memory ? 0 : args->size;
			mappings[i].size = 0;
		}
	}
	(void)pthread_mutex_unlock(&lock);
	if (!mapped)
		fail_msg("unmapping of what was not mapped as one");
	return CUDA_SUCCESS;
}

static struct gpc_request *keeping;

CUresult
gpc_start_gpMemoryKeep(struct gpc_context *c, const struct gp_args_gpMemoryKeep *args,
		       struct gpc_request *request)
{
	assert_null(keeping);
	assert_true(request->lazy);
	count(&fake.keeps);
	keeping = request;
	return CUDA_SUCCESS;
}

CUresult
gpc_post_gpMemoryKept(struct gpc_context *c, const struct gp_args_gpMemoryKept *args)
{
	count(&fake.kept);
	return CUDA_SUCCESS;
}

void
fake_recall(void)
{
	struct gpc_request *request = keeping;

	assert_non_null(request);
	keeping = NULL;
	request->result = CUDA_SUCCESS;
	request->complete = true;
	request->done(request);
}

int
gpc_thread_start(struct gpc_session *s, void *(*main)(void *arg), void *arg, const char *name)
{
	/* That one is for work that goes on while nobody waits. */
	if (strcmp(name, "gpupool-mirror") != 0)
		(void)main(arg);
	return 0;
}

void
gpc_thread_ended(struct gpc_session *s)
{
}

uint64_t
fake_mapped(void)
{
	if (keeping)
		fake_recall();
	return fake.mapped;
}

static struct physical *
physical_find(uint32_t id)
{
	for (int i = 0; i < PHYSICALS; i++) {
		if (physicals[i].id == id)
			return &physicals[i];
	}
	fail_msg("no such physical memory");
	return NULL;
}

CUresult
gpc_start_gpMemoryCreate(struct gpc_context *c, const struct gp_args_gpMemoryCreate *args,
			 struct gpc_request *request)
{
	assert_int_equal(args->size % FAKE_GRANULE, 0);
	assert_int_equal(args->device, device.remote);
	if (args->size > fake.quota - fake.mapped)
		return answered(request, CUDA_ERROR_OUT_OF_MEMORY);
	*physical_find(0) = (struct physical){ .id = args->memory, .size = args->size };
	fake.mapped += args->size;
	return answered(request, CUDA_SUCCESS);
}

CUresult
gpc_post_gpMemoryMake(struct gpc_context *c, const struct gp_args_gpMemoryMake *args)
{
	count(&fake.uses);
	use_credit(args->size);
	*physical_find(0) = (struct physical){ .id = args->memory, .size = args->size };
	fake.mapped += args->size;
	return CUDA_SUCCESS;
}

CUresult
gpc_post_gpMemoryRelease(struct gpc_context *c, const struct gp_args_gpMemoryRelease *args)
{
	struct physical *physical = physical_find(args->memory);

	for (int i = 0; i < MAPPINGS; i++)
		assert_false(mappings[i].size > 0 && mappings[i].memory == args->memory);
	fake.mapped -= physical->size;
	physical->id = 0;
	return CUDA_SUCCESS;
}

CUresult
gpc_post_gpMemoryPlace(struct gpc_context *c, const struct gp_args_gpMemoryPlace *args)
{
	assert_int_equal(args->size, physical_find(args->memory)->size);
	return map(args->address, args->size, args->memory);
}

CUresult
gpc_wait_gpAddressReserve(struct gpc_context *c, const struct gp_args_gpAddressReserve *args,
			  struct gp_reply_gpAddressReserve *reply)
{
	reply->address = FAKE_BESIDES + ((uint64_t)fake.reserves++ << 33);
	fake.reserved++;
	return fake.reserve_result;
}

CUresult
gpc_post_gpAddressFree(struct gpc_context *c, const struct gp_args_gpAddressFree *args)
{
	fake.reserved--;
	return CUDA_SUCCESS;
}

CUresult
gpc_wait_gpMemoryInfo(struct gpc_context *c, const struct gp_args_gpMemoryInfo *args,
		      struct gp_reply_gpMemoryInfo *reply)
{
	answer_refill();
	reply->total = fake.quota;
	reply->free = fake.quota - fake.mapped;
	return CUDA_SUCCESS;
}

CUresult
gpc_wait_gpPeerAccess(struct gpc_context *c, const struct gp_args_gpPeerAccess *args)
{
	fail_msg("there is one device, and it is not its own peer");
	return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
}

CUresult
gpc_wait_gpFence(struct gpc_context *c, const struct gp_args_gpFence *args)
{
	count(&fake.waits);
	fake_deliver();
	return CUDA_SUCCESS;
}

CUresult
gpc_start_gpFence(struct gpc_context *c, const struct gp_args_gpFence *args,
		  struct gpc_request *request)
{
	count(&fake.fences);
	fake_start(request, NULL, 0, CUDA_SUCCESS);
	return CUDA_SUCCESS;
}

CUresult
gpc_wait_cuStreamSynchronize(struct gpc_context *c, const struct gp_args_cuStreamSynchronize *args)
{
	count(&fake.syncs);
	fake_deliver();
	return CUDA_SUCCESS;
}

CUresult
gpc_post_gpCopyIn(struct gpc_context *c, const struct gp_args_gpCopyIn *args,
		  const struct iovec *bulk, int bulk_count)
{
	uint64_t size = args->width * args->height, at = 0;
	uint8_t *packed = malloc(size);

	for (int i = 0; i < bulk_count; i++) {
		assert_true(bulk[i].iov_len <= size - at);
		memcpy(packed + at, bulk[i].iov_base, bulk[i].iov_len);
		at += bulk[i].iov_len;
	}
	assert_int_equal(at, size);
	for (uint64_t y = 0; y < args->height; y++) {
		expect_mapped(args->dst + y * args->pitch, args->width);
		memcpy(fake_at(args->dst + y * args->pitch), packed + y * args->width, args->width);
	}
	free(packed);
	count(&fake.copies_in);
	if (args->flags == GP_COPY_BARRIER)
		count(&fake.barriers);
	(void)pthread_mutex_lock(&lock);
	if (size > fake.largest_copy_in)
		fake.largest_copy_in = size;
	(void)pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult
gpc_post_gpCopyInShort(struct gpc_context *c, const struct gp_args_gpCopyInShort *args)
{
	const struct gp_args_gpCopyIn copy = { .stream = args->stream,
					       .dst = args->dst,
					       .pitch = args->pitch,
					       .width = args->width,
					       .height = args->height,
					       .flags = args->flags };
	const struct iovec bytes = { (void *)args->data.data, args->data.size };

	count(&fake.copies_in_short);
	return gpc_post_gpCopyIn(c, &copy, &bytes, 1);
}

CUresult
gpc_start_gpCopyOut(struct gpc_context *c, const struct gp_args_gpCopyOut *args,
		    struct gpc_request *request)
{
	uint64_t size = args->width * args->height;
	bool empty = fake.copy_out_short || fake.copy_out_result != CUDA_SUCCESS;
	uint8_t *packed = malloc(size);

	for (uint64_t y = 0; y < args->height; y++) {
		expect_mapped(args->src + y * args->pitch, args->width);
		memcpy(packed + y * args->width, fake_at(args->src + y * args->pitch), args->width);
	}
	count(&fake.copies_out);
	fake_start(request, packed, empty ? 0 : size, fake.copy_out_result);
	return CUDA_SUCCESS;
}

CUresult
gpc_post_gpCopyDevice(struct gpc_context *c, const struct gp_args_gpCopyDevice *args)
{
	for (uint64_t z = 0; z < args->depth; z++) {
		for (uint64_t y = 0; y < args->height; y++) {
			uint64_t dst = args->dst + z * args->dst_slice + y * args->dst_pitch;
			uint64_t src = args->src + z * args->src_slice + y * args->src_pitch;

			expect_mapped(dst, args->width);
			expect_mapped(src, args->width);
			memmove(fake_host_has(dst, 1) ? fake_host_at(dst) : fake_at(dst),
				fake_at(src), args->width);
		}
	}
	count(&fake.copies_device);
	return CUDA_SUCCESS;
}

CUresult
gpc_post_gpFill(struct gpc_context *c, const struct gp_args_gpFill *args)
{
	for (uint64_t y = 0; y < args->height; y++) {
		uint64_t row = args->dst + y * args->pitch;

		expect_mapped(row, args->width * args->element_size);
		for (uint64_t x = 0; x < args->width; x++)
			memcpy(fake_at(row + x * args->element_size), &args->value,
			       args->element_size);
	}
	count(&fake.fills);
	return CUDA_SUCCESS;
}
