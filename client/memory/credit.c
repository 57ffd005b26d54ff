/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory/credit.h"

#include "client/base/error.h"
#include "client/context/context.h"
#include "client/context/device.h"
#include "client/memory/memory.h"
#include "client/wire/call.h"
#include "gpc_calls.h"

#include <stdlib.h>

#define MIB ((uint64_t)1 << 20)
/* For so many allocations more of its size, but no more than this; or as much as is mapped, but no
 * more than that; or for one large one more. */
#define TIMES 32
#define FOR_MANY (128 * MIB)
#define FOR_MAPPED (512 * MIB)
#define FOR_LARGE (2048 * MIB)
#define LEAST (16 * MIB)

static uint64_t
lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t
greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* How much there should be when this has been allocated. */
static uint64_t
suitable(const struct gpc_credit *credit, uint64_t size)
{
	const uint64_t mapped = atomic_load(&credit->mapped);
	uint64_t bytes = lesser(size, FOR_MANY / TIMES) * TIMES;

	bytes = greater(bytes, lesser(mapped, FOR_MAPPED));
	bytes = greater(bytes, lesser(size, FOR_LARGE));
	return greater(bytes, LEAST);
}

static bool
take(struct gpc_credit *credit, uint64_t size)
{
	uint64_t bytes = atomic_load(&credit->bytes);

	while (bytes >= size) {
		if (atomic_compare_exchange_weak(&credit->bytes, &bytes, bytes - size))
			return true;
	}
	return false;
}

static uint64_t
granted(struct gpc_request *request)
{
	struct gp_reply_gpMemoryGrant reply = { 0 };
	struct gp_dec dec;

	gp_dec_init(&dec, request->reply, request->reply_size);
	if (request->result == CUDA_SUCCESS)
		gp_reply_gpMemoryGrant_decode(&dec, &reply);
	if (request->result == CUDA_SUCCESS && !gp_dec_done(&dec)) {
		gpc_session_fail(request->session, GPC_ERROR_LOST, "malformed reply");
		reply.granted = 0;
	}
	free(request->reply);
	request->reply = NULL;
	return reply.granted;
}

/* Waits for the answer, which is how much there is more. */
static uint64_t
ask(struct gpc_device *device, uint64_t forgo, uint64_t least, uint64_t wanted)
{
	const struct gp_args_gpMemoryGrant args = {
		.device = device->remote, .forgo = forgo, .least = least, .wanted = wanted
	};
	struct gpc_request request = { 0 };

	if (gpc_start_gpMemoryGrant(device->primary, &args, &request) != CUDA_SUCCESS)
		return 0;
	(void)!gpc_request_wait_own(&request);
	return granted(&request);
}

/* By who reads the answers: nothing is posted here. */
static void
refilled(struct gpc_request *request)
{
	struct gpc_credit *credit = request->arg;
	const uint64_t more = granted(request);

	if (more == 0)
		atomic_store(&credit->dry, true);
	atomic_fetch_add(&credit->bytes, more);
	/* From here on the request may be used again. */
	atomic_store(&credit->asked, false);
}

static void
start_refill(struct gpc_device *device, uint64_t wanted)
{
	const struct gp_args_gpMemoryGrant args = { .device = device->remote, .wanted = wanted };
	struct gpc_credit *credit = &device->credit;

	credit->request = (struct gpc_request){
		.session = device->session, .done = refilled, .arg = credit, .lazy = true
	};
	if (gpc_start_gpMemoryGrant(device->primary, &args, &credit->request) != CUDA_SUCCESS)
		atomic_store(&credit->asked, false);
}

/* Before the last of it is gone.  That it is asked for is seen by who gives everything back, or
 * else the daemon is told first that something is kept. */
static void
refill(struct gpc_context *context, uint64_t size)
{
	struct gpc_credit *credit = &context->device->credit;
	const uint64_t wanted = suitable(credit, size), bytes = atomic_load(&credit->bytes);

	if (bytes >= wanted / 4 * 3 || atomic_load(&credit->dry) || atomic_load(&credit->asked) ||
	    pthread_mutex_trylock(&credit->lock))
		return;
	if (!atomic_exchange(&credit->asked, true)) {
		gpc_memory_keeps(context);
		start_refill(context->device, wanted - bytes);
	}
	(void)pthread_mutex_unlock(&credit->lock);
}

/* Whether what was asked for has come. */
static bool
poll_refill(struct gpc_credit *credit)
{
	bool asked = atomic_load(&credit->asked);

	if (!asked || pthread_mutex_trylock(&credit->lock))
		return false;
	if (atomic_load(&credit->asked))
		(void)gpc_request_poll(&credit->request);
	(void)pthread_mutex_unlock(&credit->lock);
	return !atomic_load(&credit->asked);
}

static bool
is_known(const struct gpc_context *context)
{
	return gpc_facts_know(gpc_session_facts(context->scope.session), GP_CALL_gpMemoryGrant);
}

bool
gpc_credit_take_present(struct gpc_context *context, uint64_t size)
{
	return take(&context->device->credit, size);
}

bool
gpc_credit_take(struct gpc_context *context, uint64_t size)
{
	struct gpc_credit *credit = &context->device->credit;
	uint64_t more;

	if (!is_known(context))
		return false;
	if (take(credit, size) || (poll_refill(credit) && take(credit, size))) {
		refill(context, size);
		return true;
	}
	/* The daemon must know whom to ask for it before there is any. */
	gpc_memory_keeps(context);
	more = ask(context->device, atomic_exchange(&credit->bytes, 0), size,
		   size + suitable(credit, size));
	if (more < size)
		return false;
	atomic_store(&credit->dry, false);
	atomic_fetch_add(&credit->bytes, more - size);
	/* And again, if it has asked for everything meanwhile. */
	gpc_memory_keeps(context);
	return true;
}

uint64_t
gpc_credit_bytes(struct gpc_device *device)
{
	(void)poll_refill(&device->credit);
	return atomic_load(&device->credit.bytes);
}

static void
forgo(struct gpc_device *device)
{
	struct gpc_credit *credit = &device->credit;

	while (atomic_load(&credit->bytes) > 0 || atomic_load(&credit->asked)) {
		if (gpc_session_status(device->session) != CUDA_SUCCESS)
			return;
		(void)!ask(device, atomic_exchange(&credit->bytes, 0), 0, 0);
	}
}

void
gpc_credit_forgo(const struct gpc_session *session)
{
	for (int i = 0; i < gpc_device_count(); i++) {
		struct gpc_device *device = gpc_device_get(i);

		if (device && device->session == session)
			forgo(device);
	}
}
