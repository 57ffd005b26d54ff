/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory of the fake wire layer: mappings, physical memory, and the allowance. */
#include "gpc_calls.h"
#include "protocol/frame.h"
#include "tests/unit/client/fake_wire.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MAPPINGS 256
#define PHYSICALS 64

struct mapping {
	uint64_t base, size;
	uint32_t memory; /* physical memory that begins here; 0: memory of the window */
};

struct physical {
	uint32_t id;
	uint64_t size;
};

static struct mapping mappings[MAPPINGS];
static struct physical physicals[PHYSICALS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A request without a waiter, which is completed before the next request. */
static struct gpc_request *refilling;

static void
answer_refill(void)
{
	struct gpc_request *request = refilling;

	refilling = NULL;
	if (request)
		request->done(request);
}

void
fake_wire_memory_end(void)
{
	if (refilling)
		answer_refill();
	assert_int_equal(fake.mapped, fake.allowance);
	memset(mappings, 0, sizeof(mappings));
}

void
fake_wire_expect_mapped(uint64_t address, uint64_t size)
{
	bool mapped = false;

	(void)pthread_mutex_lock(&lock);
	for (int i = 0; i < MAPPINGS; i++)
		mapped |= address >= mappings[i].base &&
			  address + size <= mappings[i].base + mappings[i].size;
	(void)pthread_mutex_unlock(&lock);
	if (!mapped && !fake_wire_host_has(address, size))
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

/* Completes a request at once. */
static CUresult
answered(struct gpc_request *request, CUresult result)
{
	request->session = gpc_session_get();
	request->result = result;
	__atomic_store_n(&request->complete, true, __ATOMIC_RELEASE);
	return CUDA_SUCCESS;
}

/* Returns the result of a request that waits for its own result (OWN_RESULT): an error of earlier
 * work is left to another call. */
static CUresult
get_own_result(CUresult result)
{
	struct gpc_request request = { .session = gpc_session_get(),
				       .result = result,
				       .complete = true };

	return gpc_request_wait_own(&request);
}

CUresult
gpc_wait_gpMemoryMap(struct gpc_context *c, const struct gp_args_gpMemoryMap *args)
{
	CUresult result;

	assert_int_equal(args->address % FAKE_WIRE_GRANULE, 0);
	assert_int_equal(args->size % FAKE_WIRE_GRANULE, 0);
	assert_int_equal(args->device, fake.context->device->remote);
	fake_wire_count(&fake.maps);
	(void)pthread_mutex_lock(&lock);
	result = args->size > fake.quota - fake.mapped ? CUDA_ERROR_OUT_OF_MEMORY
						       : map(args->address, args->size, 0);
	(void)pthread_mutex_unlock(&lock);
	return get_own_result(result);
}

void
fake_wire_allow_credit(void)
{
	fake.facts->unknown_calls[GP_CALL_gpMemoryGrant / 8] &=
		(uint8_t) ~(1u << GP_CALL_gpMemoryGrant % 8);
}

static uint64_t
grant(const struct gp_args_gpMemoryGrant *args)
{
	uint64_t room, granted;

	assert_true(args->forgo <= fake.allowance);
	fake.allowance -= args->forgo;
	fake.mapped -= args->forgo;
	room = fake.quota - fake.mapped;
	if (room < args->least)
		return 0;
	granted = args->wanted < room ? args->wanted : room;
	fake.allowance += granted;
	fake.mapped += granted;
	return granted;
}

CUresult
gpc_start_gpMemoryGrant(struct gpc_context *c, const struct gp_args_gpMemoryGrant *args,
			struct gpc_request *request)
{
	struct gp_reply_gpMemoryGrant reply;
	struct gp_enc enc;

	assert_int_equal(args->device, fake.context->device->remote);
	answer_refill();
	fake_wire_count(&fake.grants);
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
	request->session = gpc_session_get();
	request->result = CUDA_SUCCESS;
	refilling = request;
	return CUDA_SUCCESS;
}

/* Moves bytes of the allowance to an allocation, which adds them to `mapped` again. */
static void
use_credit(uint64_t size)
{
	assert_true(size <= fake.allowance);
	fake.allowance -= size;
	fake.mapped -= size;
}

CUresult
gpc_post_gpMemoryUse(struct gpc_context *c, const struct gp_args_gpMemoryUse *args)
{
	CUresult result;

	fake_wire_count(&fake.uses);
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

	if (fake_wire_host_displace(args->address, args->size))
		return CUDA_SUCCESS;
	fake_wire_count(&fake.unmaps);
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
	fake_wire_count(&fake.keeps);
	keeping = request;
	return CUDA_SUCCESS;
}

CUresult
gpc_post_gpMemoryCountKept(struct gpc_context *c, const struct gp_args_gpMemoryCountKept *args)
{
	fake.told_kept = args->bytes;
	return CUDA_SUCCESS;
}

CUresult
gpc_post_gpMemoryKept(struct gpc_context *c, const struct gp_args_gpMemoryKept *args)
{
	fake_wire_count(&fake.kept);
	return CUDA_SUCCESS;
}

void
fake_wire_recall(void)
{
	struct gpc_request *request = keeping;

	assert_non_null(request);
	keeping = NULL;
	request->result = CUDA_SUCCESS;
	request->complete = true;
	request->done(request);
}

uint64_t
fake_wire_mapped(void)
{
	if (keeping)
		fake_wire_recall();
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
gpc_wait_gpMemoryCreate(struct gpc_context *c, const struct gp_args_gpMemoryCreate *args)
{
	assert_int_equal(args->size % FAKE_WIRE_GRANULE, 0);
	assert_int_equal(args->device, fake.context->device->remote);
	if (args->size > fake.quota - fake.mapped)
		return get_own_result(CUDA_ERROR_OUT_OF_MEMORY);
	*physical_find(0) = (struct physical){ .id = args->memory, .size = args->size };
	fake.mapped += args->size;
	return get_own_result(CUDA_SUCCESS);
}

CUresult
gpc_post_gpMemoryMake(struct gpc_context *c, const struct gp_args_gpMemoryMake *args)
{
	fake_wire_count(&fake.uses);
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
	reply->address = FAKE_WIRE_BESIDES + ((uint64_t)fake.reserves++ << 33);
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
