/* SPDX-License-Identifier: Apache-2.0 */
#include "client/alloc/heap.h"
#include "client/connect/window.h"
#include "client/context/context.h"
#include "client/memory/memory.h"
#include "client/memory/virtual_memory.h"
#include "client/session/session.h"
#include "gpc_calls.h"

/* Larger reservations may exceed the memory that exists, and the window does not have enough
 * addresses for them. */
#define IN_WINDOW_MAX ((uint64_t)1 << 30)
/* Number of addresses chosen by the daemon that are tried, as this process may already use them. */
#define TRIES 8

static uint64_t
round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) & ~(to - 1);
}

static CUresult
reserve_in_window(struct gpc_context *context, uint64_t size, struct gpc_virtual_address *address)
{
	struct gpc_heap_range range;
	CUresult result = gpc_memory_reserve_addresses(context, size, &range);

	if (result != CUDA_SUCCESS)
		return result;
	address->outside_window = false;
	address->whole = range.base;
	address->whole_size = range.size;
	return CUDA_SUCCESS;
}

static CUresult
reserve_outside_window(struct gpc_context *context, uint64_t size,
		       struct gpc_virtual_address *address)
{
	struct gp_args_gpAddressReserve args = { .size = size };
	struct gp_reply_gpAddressReserve reply;
	uint64_t occupied[TRIES];
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
	bool found = false;
	int count = 0;

	/* The daemon chooses other addresses while it holds those that did not fit. */
	while (!found && count < TRIES) {
		result = gpc_wait_gpAddressReserve(context, &args, &reply);
		if (result != CUDA_SUCCESS)
			break;
		found = gpc_window_reserve(reply.address, size) == 0;
		if (!found)
			occupied[count++] = reply.address;
	}
	while (count > 0) {
		struct gp_args_gpAddressFree free = { .address = occupied[--count] };

		(void)gpc_post_gpAddressFree(context, &free);
	}
	if (!found)
		return result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result;
	address->outside_window = true;
	address->whole = reply.address;
	address->whole_size = size;
	return CUDA_SUCCESS;
}

CUresult
gpc_virtual_address_reserve(struct gpc_context *context, uint64_t size, uint64_t alignment,
			    struct gpc_virtual_address *address)
{
	uint64_t granularity = gpc_session_facts(context->scope.session)->granularity;
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	if (alignment < granularity)
		alignment = granularity;
	if (size > UINT64_MAX / 4 || alignment > UINT64_MAX / 4)
		return CUDA_ERROR_OUT_OF_MEMORY;
	size = round_up(size, granularity) + alignment - granularity;
	if (size <= IN_WINDOW_MAX)
		result = reserve_in_window(context, size, address);
	if (result == CUDA_ERROR_OUT_OF_MEMORY)
		result = reserve_outside_window(context, size, address);
	if (size > IN_WINDOW_MAX && result != CUDA_SUCCESS)
		result = reserve_in_window(context, size, address);
	if (result == CUDA_SUCCESS)
		address->base = round_up(address->whole, alignment);
	return result;
}

void
gpc_virtual_address_free(struct gpc_context *context, const struct gpc_virtual_address *address)
{
	struct gp_args_gpAddressFree args = { .address = address->whole };
	const struct gpc_heap_range range = { address->whole, address->whole_size };

	if (!address->outside_window) {
		gpc_memory_unreserve_addresses(context, &range);
		return;
	}
	/* In this order: nothing of this process may be mapped where the daemon still has
	 * memory. */
	(void)gpc_post_gpAddressFree(context, &args);
	gpc_window_release(address->whole, address->whole_size);
}
