/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/placed_memory.h"

#include "client/context/context.h"
#include "client/host/host_block.h"
#include "gpc_calls.h"

#include <sys/mman.h>

static void *
address_to_pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

static void
range_cover(uint64_t address, uint64_t size)
{
	(void)mmap(address_to_pointer(address), size, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

CUresult
gpc_host_placed_map(struct gpc_context *context, uint64_t address, uint64_t size, int fd,
		    uint64_t id)
{
	const struct gpc_host_block block = {
		.context = context,
		.origin = GPC_HOST_PLACED,
		.state = GPC_HOST_PLAIN,
		.id = id,
		.device = address,
	};

	if (mmap(address_to_pointer(address), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
		 fd, 0) == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (gpc_host_block_add(address_to_pointer(address), size, &block) == 0)
		return CUDA_SUCCESS;
	range_cover(address, size);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

void
gpc_host_placed_unmap(uint64_t address)
{
	struct gpc_host_block *block;
	struct gpc_context *context;
	struct gpc_range range;
	bool known, device_mapped;

	block = gpc_host_block_remove(address, GPC_HOST_PLACED, &range, &known);
	if (!block)
		return;
	context = block->context;
	device_mapped = block->state == GPC_HOST_REPLICATED;
	(void)gpc_host_block_destroy(block, &range);
	if (device_mapped) {
		const struct gp_args_gpMemoryUnmap args = { range.base, range.size };

		(void)gpc_post_gpMemoryUnmap(context, &args);
	}
	range_cover(range.base, range.size);
}
