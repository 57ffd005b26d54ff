/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory/host_memory.h"

#include "base/lock.h"
#include "client/alloc/heap.h"
#include "client/base/log.h"
#include "client/base/ranges.h"
#include "client/context/context.h"
#include "client/host/host_space.h"
#include "client/host/mirror.h"
#include "client/host/pending_copy.h"
#include "client/memory/address.h"
#include "client/memory/memory.h"
#include "client/wire/lane.h"
#include "gpc_calls.h"
#include "transport/transport.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define ALLOC_FLAGS                                                                                \
	(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define REGISTER_FLAGS                                                                             \
	(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY)

/* docs/host-memory.md says how they differ. */
enum state {
	PLAIN,    /* no kernel will reach it */
	COLD,     /* none does yet */
	MIRRORED, /* the daemon has a copy */
	SHARED,   /* the daemon has the same */
};

struct host_block {
	struct gpc_context *context;
	unsigned int flags;
	bool registered;
	enum state state;
	uint64_t id;
	uint64_t host;               /* where it begins */
	uint64_t device;             /* where kernels reach it, or will; 0: nowhere */
	struct gpc_heap_range there; /* registered and mirrored: what the daemon has for it */
	size_t mapped;               /* plain and allocated: whole pages */
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct gpc_ranges blocks GP_GUARDED_BY(lock);
/* Registered and mirrored ones, by the device's address. */
static struct gpc_ranges elsewhere GP_GUARDED_BY(lock);
/* One thread at a time makes a block one that kernels reach, or takes one away. */
static pthread_mutex_t change_lock = PTHREAD_MUTEX_INITIALIZER;

atomic_uint gpc_host_memory_cold, gpc_host_memory_registered;
/* All that was ever registered lies in between. */
static atomic_uint_fast64_t registered_low = UINT64_MAX, registered_high;

static uintptr_t
page_size(void)
{
	return (uintptr_t)sysconf(_SC_PAGESIZE);
}

static void
count_registered(uint64_t address, uint64_t size)
{
	uint_fast64_t low = atomic_load(&registered_low), high = atomic_load(&registered_high);

	while (address < low && !atomic_compare_exchange_weak(&registered_low, &low, address))
		continue;
	while (address + size > high &&
	       !atomic_compare_exchange_weak(&registered_high, &high, address + size))
		continue;
	atomic_fetch_add(&gpc_host_memory_registered, 1);
}

/* A copy of what it says; it is freed on failure. */
static int
block_add(void *address, size_t size, const struct host_block *what)
{
	struct host_block *block = malloc(sizeof(*block));
	int r;

	if (!block)
		return -1;
	*block = *what;
	block->host = (uintptr_t)address;
	block->id = gpc_memory_next_id();
	(void)pthread_rwlock_wrlock(&lock);
	r = gpc_ranges_add(&blocks, (uintptr_t)address, size, block);
	(void)pthread_rwlock_unlock(&lock);
	if (r) {
		free(block);
		return r;
	}
	if (what->state == COLD)
		atomic_fetch_add(&gpc_host_memory_cold, 1);
	if (what->registered)
		count_registered((uintptr_t)address, size);
	gp_memory_keep(address, size);
	gpc_session_note_pinned(what->context->scope.session);
	return 0;
}

static void
forget_elsewhere(const struct host_block *block)
{
	struct gpc_range *range;

	if (!block->there.size)
		return;
	(void)pthread_rwlock_wrlock(&lock);
	range = gpc_ranges_find(&elsewhere, block->device, 1);
	if (range)
		gpc_ranges_remove(&elsewhere, range);
	(void)pthread_rwlock_unlock(&lock);
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

/* What kernels have of it goes; they may still be using it. */
static void
leave_device(const struct host_block *block)
{
	if (block->state == COLD)
		atomic_fetch_sub(&gpc_host_memory_cold, 1);
	if (block->registered)
		atomic_fetch_sub(&gpc_host_memory_registered, 1);
	if (block->state == MIRRORED)
		gpc_mirror_remove(block->context->scope.session, block->device);
	forget_elsewhere(block);
	if (block->there.size)
		gpc_host_space_unmap(block->context, &block->there);
}

/* Copies that are still on their way to it, or from it, come first. */
static CUresult
block_destroy(struct host_block *block, const struct gpc_range *range)
{
	void *address = (void *)(uintptr_t)range->base;
	CUresult result = gpc_pending_copy_settle(address, range->size);

	gpc_lanes_settle(address, range->size);
	gp_memory_forget(address);
	leave_device(block);
	if (block->mapped)
		(void)munmap(address, block->mapped);
	else if (!block->registered)
		gpc_host_space_free(block->context, range->base, block->state != COLD);
	free(block);
	return result;
}

static void
describe(const struct gpc_range *range, bool from_device, struct gpc_address *found)
{
	const struct host_block *block = range->item;

	*found = (struct gpc_address){
		.kind = GPC_ADDRESS_HOST,
		.base = range->base,
		.size = range->size,
		.context = block->context,
		.flags = block->flags,
		.buffer_id = block->id,
		.mapping_base = range->base,
		.mapping_size = range->size,
		.host = from_device ? block->host : range->base,
		.device = block->device,
		.reached = block->state >= MIRRORED,
	};
}

bool
gpc_host_memory_find(uint64_t address, struct gpc_address *found)
{
	const struct gpc_range *range;

	(void)pthread_rwlock_rdlock(&lock);
	range = gpc_ranges_find(&blocks, address, 1);
	if (range) {
		describe(range, false, found);
	} else {
		range = gpc_ranges_find(&elsewhere, address, 1);
		if (range)
			describe(range, true, found);
	}
	(void)pthread_rwlock_unlock(&lock);
	return range != NULL;
}

bool
gpc_host_memory_reached(uint64_t *address, size_t size)
{
	struct gpc_address found;
	uint64_t offset;

	if (!gpc_host_memory_find(*address, &found) || !found.reached)
		return false;
	offset = *address - found.base;
	if (size > found.size - offset)
		return false;
	*address = found.device + offset;
	return true;
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

		(void)pthread_mutex_lock(&change_lock);
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
		(void)pthread_mutex_unlock(&change_lock);
		if (!block)
			return;
		(void)block_destroy(block, &range);
	}
}

CUresult
gpc_cuMemFreeHost(void *p)
{
	struct gpc_range range;
	struct host_block *block;
	bool known;
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS || !p)
		return result;
	(void)pthread_mutex_lock(&change_lock);
	block = block_take(p, false, &range, &known);
	(void)pthread_mutex_unlock(&change_lock);
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
	r = block_add(
		p, bytesize,
		&(struct host_block){ .context = context, .flags = Flags, .registered = true });
	if (r > 0)
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	return r ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult
gpc_cuMemHostUnregister(void *p)
{
	struct gpc_range range;
	struct host_block *block;
	bool known;
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS)
		return result;
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	(void)pthread_mutex_lock(&change_lock);
	block = block_take(p, true, &range, &known);
	(void)pthread_mutex_unlock(&change_lock);
	if (!block)
		return known ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	return block_destroy(block, &range);
}

/* Where kernels reach registered memory. */
static CUresult
set_elsewhere(struct host_block *block, const struct gpc_range *range,
	      const struct gpc_heap_range *there, uint64_t device)
{
	int r;

	(void)pthread_rwlock_wrlock(&lock);
	r = gpc_ranges_add(&elsewhere, device, range->size, block);
	if (r == 0) {
		block->device = device;
		block->there = *there;
	}
	(void)pthread_rwlock_unlock(&lock);
	return r ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

/* Registered memory: the daemon's copy lies as its page does, at addresses of its own. */
static CUresult
reach_registered(struct gpc_context *context, struct host_block *block,
		 const struct gpc_range *range)
{
	uint64_t offset = range->base & (page_size() - 1);
	struct gpc_heap_range there;
	CUresult result = gpc_host_space_map(context, offset + range->size, &there);

	if (result != CUDA_SUCCESS)
		return result;
	result = gpc_mirror_add(context, (void *)(uintptr_t)range->base, there.base + offset,
				range->size);
	if (result == CUDA_SUCCESS) {
		result = set_elsewhere(block, range, &there, there.base + offset);
		if (result == CUDA_SUCCESS)
			return result;
		gpc_mirror_remove(context->scope.session, there.base + offset);
	}
	gpc_host_space_unmap(context, &there);
	return result;
}

static CUresult
reach_allocated(struct gpc_context *context, const struct host_block *block,
		const struct gpc_range *range)
{
	CUresult result = gpc_host_space_reach(context, block->device);

	return result == CUDA_SUCCESS ? gpc_mirror_add(context, (void *)(uintptr_t)range->base,
						       block->device, range->size)
				      : result;
}

/* Kernels reach the block from now on, if they can.  The change lock keeps it. */
static CUresult
reach(struct host_block *block, const struct gpc_range *range) GP_LOCKED(change_lock)
{
	CUresult result;

	if (block->state >= MIRRORED)
		return CUDA_SUCCESS;
	if (block->state == PLAIN && !block->registered)
		return CUDA_ERROR_NOT_SUPPORTED;
	/* What is still on its way to it, or from it, goes by the program's memory. */
	result = gpc_pending_copy_settle((const void *)(uintptr_t)range->base, range->size);
	gpc_lanes_settle((void *)(uintptr_t)range->base, range->size);
	if (result != CUDA_SUCCESS)
		return result;
	result = block->registered ? reach_registered(block->context, block, range)
				   : reach_allocated(block->context, block, range);
	if (result != CUDA_SUCCESS)
		return result;
	if (block->state == COLD)
		atomic_fetch_sub(&gpc_host_memory_cold, 1);
	(void)pthread_rwlock_wrlock(&lock);
	block->state = MIRRORED;
	(void)pthread_rwlock_unlock(&lock);
	return CUDA_SUCCESS;
}

/* The block around an address of the program's. */
static bool
block_around(uint64_t address, struct gpc_range *range_p)
{
	const struct gpc_range *range;

	(void)pthread_rwlock_rdlock(&lock);
	range = gpc_ranges_find(&blocks, address, 1);
	if (range)
		*range_p = *range;
	(void)pthread_rwlock_unlock(&lock);
	return range != NULL;
}

static CUresult
reach_around(uint64_t address, uint64_t *device_p)
{
	struct gpc_range range;
	struct host_block *block;
	CUresult result = CUDA_ERROR_INVALID_VALUE;

	(void)pthread_mutex_lock(&change_lock);
	if (block_around(address, &range)) {
		block = range.item;
		result = reach(block, &range);
		*device_p = block->device + (address - range.base);
	}
	(void)pthread_mutex_unlock(&change_lock);
	return result;
}

/* Where kernels could reach it, or, if there is no such place, anywhere. */
static CUresult
make_memory(struct gpc_context *context, size_t size, struct host_block *block, void **address_p)
{
	uint64_t address;
	bool shared;
	CUresult result = gpc_host_space_alloc(context, size, &address, &shared);

	if (result == CUDA_SUCCESS) {
		block->state = shared ? SHARED : COLD;
		block->device = address;
		*address_p = (void *)(uintptr_t)address;
	}
	if (result != CUDA_ERROR_NOT_SUPPORTED)
		return result;
	block->mapped = (size + page_size() - 1) & ~(page_size() - 1);
	if (block->mapped < size)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*address_p = mmap(NULL, block->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	return *address_p == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult
gpc_cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	struct host_block block = { .flags = Flags };
	struct gpc_context *context;
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
	block.context = context;
	result = make_memory(context, bytesize, &block, &address);
	if (result != CUDA_SUCCESS)
		return result;
	if (block_add(address, bytesize, &block)) {
		if (block.mapped)
			(void)munmap(address, block.mapped);
		else
			gpc_host_space_free(context, block.device, false);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*pp = address;
	/* Who asks for that may tell kernels the address in ways that are not seen here. */
	if (block.state != COLD || !(Flags & CU_MEMHOSTALLOC_DEVICEMAP))
		return CUDA_SUCCESS;
	result = reach_around((uintptr_t)address, &(uint64_t){ 0 });
	if (result != CUDA_SUCCESS) {
		(void)gpc_cuMemFreeHost(address);
		*pp = NULL;
	}
	return result;
}

/* Of a number that may be an address: it is none where kernels reach nothing, or another thread has
 * freed the block meanwhile. */
static CUresult
unless_a_number(CUresult result)
{
	return result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_INVALID_VALUE
		       ? CUDA_SUCCESS
		       : result;
}

/* A number that may be an address: of a cold block, or of nothing. */
static CUresult
look_at(struct gpc_context *context, uint64_t address)
{
	struct gpc_address found;
	uint64_t device;

	if (!gpc_host_space_contains(address) || !gpc_host_memory_find(address, &found) ||
	    found.reached || found.context->scope.session != context->scope.session)
		return CUDA_SUCCESS;
	return unless_a_number(reach_around(address, &device));
}

CUresult
gpc_host_memory_look(struct gpc_context *context, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;
	uint64_t base, room;
	CUresult result = CUDA_SUCCESS;

	gpc_host_space_bounds(&base, &room);
	for (size_t i = 0; i + 8 <= size && result == CUDA_SUCCESS; i += 8) {
		uint64_t value;

		memcpy(&value, at + i, sizeof(value));
		if (__builtin_expect(value - base < room, 0))
			result = look_at(context, value);
	}
	return result;
}

/* Whether it is an address of registered memory, as the program names it. */
static bool
is_registered(uint64_t address)
{
	uint64_t low = atomic_load(&registered_low), high = atomic_load(&registered_high);
	const struct gpc_range *range;
	bool registered;

	if (address - low >= high - low)
		return false;
	(void)pthread_rwlock_rdlock(&lock);
	range = gpc_ranges_find(&blocks, address, 1);
	registered = range && ((const struct host_block *)range->item)->registered;
	(void)pthread_rwlock_unlock(&lock);
	return registered;
}

bool
gpc_host_memory_names_registered(const void *bytes, size_t size)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i + 8 <= size; i += 8) {
		uint64_t value;

		memcpy(&value, at + i, sizeof(value));
		if (is_registered(value))
			return true;
	}
	return false;
}

CUresult
gpc_host_memory_translate(struct gpc_context *context, void *bytes, size_t size)
{
	uint8_t *at = bytes;
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i + 8 <= size && result == CUDA_SUCCESS; i += 8) {
		struct gpc_address found;
		uint64_t value;

		memcpy(&value, at + i, sizeof(value));
		if (!is_registered(value) || !gpc_host_memory_find(value, &found) ||
		    found.context->scope.session != context->scope.session)
			continue;
		result = reach_around(value, &value);
		if (result == CUDA_SUCCESS)
			memcpy(at + i, &value, sizeof(value));
		result = unless_a_number(result);
	}
	return result;
}

CUresult
gpc_cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
	struct gpc_context *context;
	uint64_t device;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!pdptr || !p || Flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	*pdptr = 0;
	result = reach_around((uintptr_t)p, &device);
	if (result == CUDA_SUCCESS)
		*pdptr = device;
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		gpc_log(GPC_LOG_ERROR,
			"kernels reach no memory at %p: the daemon has no room "
			"for it, or none of that kind",
			p);
	return result;
}
