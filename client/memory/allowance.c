/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory/allowance.h"

#include "client/base/error.h"
#include "client/context/context.h"
#include "client/context/device.h"
#include "client/memory/memory.h"
#include "client/session/call.h"
#include "gpc_calls.h"

#include <stdlib.h>

#define MIB ((uint64_t)1 << 20)
/* The target is the maximum of: 32 more allocations of the last size, up to TARGET_SMALL_MAX; the
 * memory that is mapped, up to TARGET_MAPPED_MAX; one more large allocation, up to
 * TARGET_LARGE_MAX. */
#define TARGET_COUNT 32
#define TARGET_SMALL_MAX (128 * MIB)
#define TARGET_MAPPED_MAX (512 * MIB)
#define TARGET_LARGE_MAX (2048 * MIB)
#define TARGET_MIN (16 * MIB)

static uint64_t
min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t
max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Returns the target size after an allocation of this size. */
static uint64_t
allowance_get_target(const struct gpc_allowance *allowance, uint64_t size)
{
	const uint64_t mapped = atomic_load(&allowance->mapped);
	uint64_t bytes = min_u64(size, TARGET_SMALL_MAX / TARGET_COUNT) * TARGET_COUNT;

	bytes = max_u64(bytes, min_u64(mapped, TARGET_MAPPED_MAX));
	bytes = max_u64(bytes, min_u64(size, TARGET_LARGE_MAX));
	return max_u64(bytes, TARGET_MIN);
}

static bool
allowance_consume(struct gpc_allowance *allowance, uint64_t size)
{
	uint64_t bytes = atomic_load(&allowance->bytes);

	while (bytes >= size) {
		if (atomic_compare_exchange_weak(&allowance->bytes, &bytes, bytes - size))
			return true;
	}
	return false;
}

static uint64_t
reply_get_granted(struct gpc_request *request)
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

/* Waits for the daemon's reply. Returns the number of bytes granted. */
static uint64_t
allowance_request(struct gpc_device *device, uint64_t device_return_allowance, uint64_t least,
		  uint64_t wanted)
{
	const struct gp_args_gpMemoryGrant args = { .device = device->remote,
						    .forgo = device_return_allowance,
						    .least = least,
						    .wanted = wanted };
	struct gpc_request request = { 0 };

	if (gpc_start_gpMemoryGrant(device->primary, &args, &request) != CUDA_SUCCESS)
		return 0;
	(void)!gpc_request_wait_own(&request);
	return reply_get_granted(&request);
}

/* Called by the thread that reads the replies, so nothing may be posted here. */
static void
refill_done(struct gpc_request *request)
{
	struct gpc_allowance *allowance = request->arg;
	const uint64_t more = reply_get_granted(request);

	if (more == 0)
		atomic_store(&allowance->exhausted, true);
	atomic_fetch_add(&allowance->bytes, more);
	/* From here on the request may be reused. */
	atomic_store(&allowance->requested, false);
}

static void
refill_start(struct gpc_device *device, uint64_t wanted)
{
	const struct gp_args_gpMemoryGrant args = { .device = device->remote, .wanted = wanted };
	struct gpc_allowance *allowance = &device->allowance;

	allowance->request = (struct gpc_request){
		.session = device->session, .done = refill_done, .arg = allowance, .lazy = true
	};
	if (gpc_start_gpMemoryGrant(device->primary, &args, &allowance->request) != CUDA_SUCCESS)
		atomic_store(&allowance->requested, false);
}

/* Starts a refill before the allowance is used up. `requested` is set first, so that a thread that
 * returns everything sees the refill in flight, and recalls are allowed before the daemon grants
 * anything. */
static void
refill_start_if_low(struct gpc_context *context, uint64_t size)
{
	struct gpc_allowance *allowance = &context->device->allowance;
	const uint64_t wanted = allowance_get_target(allowance, size),
		       bytes = atomic_load(&allowance->bytes);

	if (bytes >= wanted / 4 * 3 || atomic_load(&allowance->exhausted) ||
	    atomic_load(&allowance->requested) || pthread_mutex_trylock(&allowance->lock))
		return;
	if (!atomic_exchange(&allowance->requested, true)) {
		gpc_memory_allow_recall(context);
		refill_start(context->device, wanted - bytes);
	}
	(void)pthread_mutex_unlock(&allowance->lock);
}

/* Returns whether an outstanding refill has completed. */
static bool
refill_poll(struct gpc_allowance *allowance)
{
	bool requested = atomic_load(&allowance->requested);

	if (!requested || pthread_mutex_trylock(&allowance->lock))
		return false;
	if (atomic_load(&allowance->requested))
		(void)gpc_request_poll(&allowance->request);
	(void)pthread_mutex_unlock(&allowance->lock);
	return !atomic_load(&allowance->requested);
}

static bool
session_has_allowance(const struct gpc_context *context)
{
	return gpc_facts_have_call(gpc_session_facts(context->scope.session),
				   GP_CALL_gpMemoryGrant);
}

bool
gpc_allowance_try_acquire(struct gpc_context *context, uint64_t size)
{
	return allowance_consume(&context->device->allowance, size);
}

bool
gpc_allowance_acquire(struct gpc_context *context, uint64_t size)
{
	struct gpc_allowance *allowance = &context->device->allowance;
	uint64_t more;

	if (!session_has_allowance(context))
		return false;
	if (allowance_consume(allowance, size) ||
	    (refill_poll(allowance) && allowance_consume(allowance, size))) {
		refill_start_if_low(context, size);
		return true;
	}
	/* The daemon must be able to recall the allowance before there is any. */
	gpc_memory_allow_recall(context);
	more = allowance_request(context->device, atomic_exchange(&allowance->bytes, 0), size,
				 size + allowance_get_target(allowance, size));
	if (more < size)
		return false;
	atomic_store(&allowance->exhausted, false);
	atomic_fetch_add(&allowance->bytes, more - size);
	/* Again, in case the daemon has recalled everything in the meantime. */
	gpc_memory_allow_recall(context);
	return true;
}

uint64_t
gpc_allowance_get_bytes(struct gpc_device *device)
{
	(void)refill_poll(&device->allowance);
	return atomic_load(&device->allowance.bytes);
}

static void
device_return_allowance(struct gpc_device *device)
{
	struct gpc_allowance *allowance = &device->allowance;

	while (atomic_load(&allowance->bytes) > 0 || atomic_load(&allowance->requested)) {
		if (gpc_session_status(device->session) != CUDA_SUCCESS)
			return;
		(void)!allowance_request(device, atomic_exchange(&allowance->bytes, 0), 0, 0);
	}
}

void
gpc_allowance_return(const struct gpc_session *session)
{
	for (int i = 0; i < gpc_device_count(); i++) {
		struct gpc_device *device = gpc_device_get(i);

		if (device && device->session == session)
			device_return_allowance(device);
	}
}
