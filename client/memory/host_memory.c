/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory/host_memory.h"

#include "base/lock.h"
#include "client/base/ranges.h"
#include "client/context/context.h"
#include "client/memory/address.h"
#include "client/memory/memory.h"
#include "client/memory/pending_copy.h"
#include "client/wire/lane.h"
#include "gpc_calls.h"
#include "transport/transport.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALLOC_FLAGS                                                                                \
	(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define REGISTER_FLAGS                                                                             \
	(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY)

struct host_block {
	struct gpc_context *context;
	unsigned int flags;
	bool registered;
	uint64_t id;
	size_t mapped; /* of allocated memory: whole pages */
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct gpc_ranges blocks GP_GUARDED_BY(lock);

static uintptr_t
page_size(void)
{
	return (uintptr_t)sysconf(_SC_PAGESIZE);
}

static int
block_add(struct gpc_context *context, void *address, size_t size, unsigned int flags,
	  size_t mapped)
{
	struct host_block *block = calloc(1, sizeof(*block));
	int r;

	if (!block)
		return -1;
	block->context = context;
	block->flags = flags;
	block->registered = mapped == 0;
	block->id = gpc_memory_next_id();
	block->mapped = mapped;
	(void)pthread_rwlock_wrlock(&lock);
	r = gpc_ranges_add(&blocks, (uintptr_t)address, size, block);
	(void)pthread_rwlock_unlock(&lock);
	if (r)
		free(block);
	else
		gp_memory_keep(address, size);
	return r;
}

/* Takes out the block that begins at address.  *known_p: address lies in a block. */
static struct host_block *
block_take(void *address, bool registered, struct gpc_range *taken, bool *known_p)
{
	struct host_block *block = NULL;
	struct gpc_range *range;

	(void)pthread_rwlock_wrlock(&lock);
	range = gpc_ranges_find(&blocks, (uintptr_t)address, 1);
	*known_p = range != NULL;
	if (range && range->base == (uintptr_t)address)
		block = range->item;
	if (block && block->registered != registered)
		block = NULL;
	if (block) {
		*taken = *range;
		gpc_ranges_remove(&blocks, range);
	}
	(void)pthread_rwlock_unlock(&lock);
	return block;
}

/* Copies that are still on their way to it, or from it, come first. */
static CUresult
block_destroy(struct host_block *block, const struct gpc_range *range)
{
	void *address = (void *)(uintptr_t)range->base;
	CUresult result = gpc_pending_copy_settle(address, range->size);

	gpc_lanes_settle(address, range->size);
	gp_memory_forget(address);
	if (block->mapped)
		(void)munmap(address, block->mapped);
	free(block);
	return result;
}

bool
gpc_host_memory_find(uint64_t address, struct gpc_address *found)
{
	const struct gpc_range *range;
	const struct host_block *block;

	(void)pthread_rwlock_rdlock(&lock);
	range = gpc_ranges_find(&blocks, address, 1);
	if (range) {
		block = range->item;
		*found = (struct gpc_address){
			.kind = GPC_ADDRESS_HOST,
			.base = range->base,
			.size = range->size,
			.context = block->context,
			.flags = block->flags,
			.buffer_id = block->id,
			.mapping_base = range->base,
			.mapping_size = range->size,
		};
	}
	(void)pthread_rwlock_unlock(&lock);
	return range != NULL;
}

bool
gpc_host_memory_is_pinned(const void *address, size_t size)
{
	struct gpc_address found;
	uint64_t at = (uintptr_t)address;

	return gpc_host_memory_find(at, &found) && size <= found.size - (at - found.base);
}

void
gpc_host_memory_forget_context(struct gpc_context *context)
{
	for (;;) {
		struct host_block *block = NULL;
		struct gpc_range range;

		(void)pthread_rwlock_wrlock(&lock);
		for (size_t i = 0; i < blocks.count && !block; i++) {
			struct host_block *candidate = blocks.list[i].item;

			if (candidate->context == context) {
				block = candidate;
				range = blocks.list[i];
				gpc_ranges_remove(&blocks, &blocks.list[i]);
			}
		}
		(void)pthread_rwlock_unlock(&lock);
		if (!block)
			return;
		(void)block_destroy(block, &range);
	}
}

CUresult
gpc_cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	struct gpc_context *context;
	size_t mapped;
	void *address;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!pp || (Flags & ~(unsigned int)ALLOC_FLAGS))
		return CUDA_ERROR_INVALID_VALUE;
	if (bytesize == 0) {
		*pp = NULL;
		return CUDA_SUCCESS;
	}
	mapped = (bytesize + page_size() - 1) & ~(page_size() - 1);
	if (mapped < bytesize)
		return CUDA_ERROR_OUT_OF_MEMORY;
	address = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (address == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (block_add(context, address, bytesize, Flags, mapped)) {
		(void)munmap(address, mapped);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*pp = address;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuMemFreeHost(void *p)
{
	struct gpc_context *context;
	struct gpc_range range;
	struct host_block *block;
	bool known;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS || !p)
		return result;
	block = block_take(p, false, &range, &known);
	if (!block)
		return CUDA_ERROR_INVALID_VALUE;
	return block_destroy(block, &range);
}

CUresult
gpc_cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
	struct gpc_context *context;
	struct gpc_address found;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!pFlags || !gpc_host_memory_find((uintptr_t)p, &found))
		return CUDA_ERROR_INVALID_VALUE;
	/* With unified addressing all of it counts as mapped, and as everybody's. */
	*pFlags = CU_MEMHOSTALLOC_DEVICEMAP | (found.flags & CU_MEMHOSTALLOC_WRITECOMBINED);
	return CUDA_SUCCESS;
}

/* Such memory is pinned already, but not registered. */
static bool
is_allocated(uintptr_t address)
{
	const struct gpc_range *range;
	bool allocated;

	(void)pthread_rwlock_rdlock(&lock);
	range = gpc_ranges_find(&blocks, address, 1);
	allocated = range && !((const struct host_block *)range->item)->registered;
	(void)pthread_rwlock_unlock(&lock);
	return allocated;
}

/* Whether there is memory at all: msync() has nothing to do but says ENOMEM for a hole. */
static bool
is_mapped(void *p, size_t size)
{
	uintptr_t start = (uintptr_t)p & ~(page_size() - 1);
	uintptr_t end = (uintptr_t)p + size;

	return end > (uintptr_t)p && msync((void *)start, end - start, MS_ASYNC) == 0;
}

CUresult
gpc_cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
	struct gpc_context *context;
	struct gpc_address found;
	CUresult result = gpc_enter(&context);
	int r;

	if (result != CUDA_SUCCESS)
		return result;
	if (!p || bytesize == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (Flags & CU_MEMHOSTREGISTER_IOMEMORY)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (Flags & ~(unsigned int)REGISTER_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	gpc_address_lookup((uintptr_t)p, &found);
	if (found.kind == GPC_ADDRESS_DEVICE || found.kind == GPC_ADDRESS_INVALID ||
	    is_allocated((uintptr_t)p) || !is_mapped(p, bytesize))
		return CUDA_ERROR_INVALID_VALUE;
	r = block_add(context, p, bytesize, Flags, 0);
	if (r > 0)
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	return r ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult
gpc_cuMemHostUnregister(void *p)
{
	struct gpc_context *context;
	struct gpc_range range;
	struct host_block *block;
	bool known;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	block = block_take(p, true, &range, &known);
	if (!block)
		return known ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	return block_destroy(block, &range);
}
