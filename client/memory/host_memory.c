/* SPDX-License-Identifier: Apache-2.0 */
#include "client/memory/host_memory.h"

#include "client/base/log.h"
#include "client/base/ranges.h"
#include "client/context/context.h"
#include "client/host/host_alias.h"
#include "client/host/host_block.h"
#include "client/host/host_space.h"
#include "client/host/pointer_scan.h"
#include "client/memory/address.h"
#include "client/memory/memory.h"
#include "gpc_calls.h"

#include <string.h>
#include <sys/mman.h>

#define ALLOC_FLAGS                                                                                \
	(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define REGISTER_FLAGS                                                                             \
	(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_READ_ONLY)

static int
block_add(void *address, size_t size, struct gpc_host_block *block)
{
	block->id = gpc_memory_next_id();
	return gpc_host_block_add(address, size, block);
}

bool
gpc_host_memory_find(uint64_t address, struct gpc_address *found)
{
	struct gpc_host_block block;
	struct gpc_range range;
	bool from_device;

	if (!gpc_host_block_find(address, &range, &block, &from_device))
		return false;
	*found = (struct gpc_address){
		.kind = GPC_ADDRESS_HOST,
		.base = range.base,
		.size = range.size,
		.context = block.context,
		.flags = block.flags,
		.buffer_id = block.id,
		.mapping_base = range.base,
		.mapping_size = range.size,
		.host = from_device ? block.host : range.base,
		.device = block.device,
		.device_mapped = block.state >= GPC_HOST_REPLICATED,
		.replicated = block.state == GPC_HOST_REPLICATED,
		.copied = block.copied,
		.speculative = block.speculative,
		.pool = block.pool,
		.contextless = block.origin == GPC_HOST_POOLED || block.origin == GPC_HOST_PLACED,
	};
	return true;
}

bool
gpc_host_memory_get_device_address(uint64_t *address, size_t size)
{
	struct gpc_address found;
	uint64_t offset;

	if (!gpc_host_memory_find(*address, &found) || !found.device_mapped)
		return false;
	offset = *address - found.base;
	if (size > found.size - offset)
		return false;
	if (found.speculative && gpc_host_block_map(*address, &(uint64_t){ 0 }) != CUDA_SUCCESS)
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

CUresult
gpc_cuMemFreeHost(void *p)
{
	struct gpc_host_block *block;
	struct gpc_range range;
	bool known;
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS || !p)
		return result;
	(void)gpc_host_block_settle_wait_values((uintptr_t)p);
	block = gpc_host_block_remove((uintptr_t)p, GPC_HOST_ALLOCATED, &range, &known);
	return block ? gpc_host_block_destroy(block, &range) : CUDA_ERROR_INVALID_VALUE;
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
	/* With unified addressing, all pinned memory is reported as mapped, and as portable. */
	*pFlags = CU_MEMHOSTALLOC_DEVICEMAP | (found.flags & CU_MEMHOSTALLOC_WRITECOMBINED);
	return CUDA_SUCCESS;
}

/* Such memory is already pinned, but not registered. */
static bool
address_is_allocated(uintptr_t address)
{
	struct gpc_host_block block;
	struct gpc_range range;

	return gpc_host_block_find(address, &range, &block, NULL) &&
	       block.origin != GPC_HOST_REGISTERED;
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
	    address_is_allocated((uintptr_t)p) || !gpc_host_block_is_mapped(p, bytesize) ||
	    !gpc_host_alias_is_pinnable((uintptr_t)p, bytesize,
					Flags & CU_MEMHOSTREGISTER_READ_ONLY))
		return CUDA_ERROR_INVALID_VALUE;
	r = block_add(p, bytesize,
		      &(struct gpc_host_block){
			      .context = context, .flags = Flags, .origin = GPC_HOST_REGISTERED });
	if (r > 0)
		return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	return r ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult
gpc_cuMemHostUnregister(void *p)
{
	struct gpc_host_block *block;
	struct gpc_range range;
	bool known;
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS)
		return result;
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	(void)gpc_host_block_settle_wait_values((uintptr_t)p);
	block = gpc_host_block_remove((uintptr_t)p, GPC_HOST_REGISTERED, &range, &known);
	if (!block)
		return known ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	return gpc_host_block_destroy(block, &range);
}

/* Allocates memory at addresses that kernels can use or, if there are none, anywhere. */
static CUresult
block_allocate(struct gpc_context *context, size_t size, struct gpc_host_block *block,
	       void **address_p)
{
	uint64_t address;
	bool shared;
	CUresult result = gpc_host_space_alloc(context, size, &address, &shared);

	if (result == CUDA_SUCCESS) {
		block->state = shared ? GPC_HOST_SHARED : GPC_HOST_COPY_ONLY;
		block->device = address;
		*address_p = (void *)(uintptr_t)address;
	}
	if (result != CUDA_ERROR_NOT_SUPPORTED)
		return result;
	block->mapped = gpc_page_above(size);
	if (block->mapped < size)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*address_p = mmap(NULL, block->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	return *address_p == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult
gpc_cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
	struct gpc_host_block block = { .flags = Flags };
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
	result = block_allocate(context, bytesize, &block, &address);
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
	/* A program with this flag may pass the address to kernels in ways that are not visible
	 * here. */
	if (block.state != GPC_HOST_COPY_ONLY || !(Flags & CU_MEMHOSTALLOC_DEVICEMAP))
		return CUDA_SUCCESS;
	result = gpc_host_block_map((uintptr_t)address, &(uint64_t){ 0 });
	if (result != CUDA_SUCCESS) {
		(void)gpc_cuMemFreeHost(address);
		*pp = NULL;
	}
	return result;
}

/* Result for a value that only may be an address: it is not one if kernels cannot access the
 * memory, or if another thread has freed the block in the meantime. */
static CUresult
result_of_pointer_guess(CUresult result)
{
	return result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_NOT_PERMITTED ||
			       result == CUDA_ERROR_INVALID_VALUE
		       ? CUDA_SUCCESS
		       : result;
}

CUresult
gpc_host_memory_scan_pointers(struct gpc_context *context, const void *bytes, size_t size,
			      const struct gp_kernel_info *kernel)
{
	struct gpc_pointer_scan pointers = { 0 };
	CUresult result = CUDA_SUCCESS;

	gpc_pointer_scan_init(&pointers, context->scope.session);
	gpc_pointer_scan_run(&pointers, bytes, size, kernel);
	if (pointers.count || pointers.failed)
		result = gpc_host_block_map_pointers(&pointers);
	gpc_pointer_scan_fini(&pointers);
	return result;
}

/* Returns whether the value at this offset of the kernel's parameters is an address of registered
 * memory as used by the program, and not stale. */
static bool
address_is_registered(uint64_t address, const struct gp_kernel_info *kernel, size_t place)
{
	struct gpc_host_block block;
	struct gpc_range range;

	return gpc_host_block_may_be_registered(address) &&
	       gpc_host_block_find(address, &range, &block, NULL) &&
	       block.origin == GPC_HOST_REGISTERED &&
	       !(block.copied && block.state < GPC_HOST_REPLICATED &&
		 gpc_pointer_scan_may_be_stale(kernel, place));
}

/* Returns the distance between offsets at which an address may start. */
static size_t
scan_get_step(size_t size)
{
	return size < GPC_POINTER_SCAN_UNALIGNED ? 1 : 8;
}

bool
gpc_host_memory_has_registered(const void *bytes, size_t size, const struct gp_kernel_info *kernel)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i + 8 <= size; i += scan_get_step(size)) {
		uint64_t value;

		memcpy(&value, at + i, sizeof(value));
		if (address_is_registered(value, kernel, i))
			return true;
	}
	return false;
}

/* Replaces *value by the device's address. */
static CUresult
pointer_translate(const struct gpc_context *context, uint64_t *value, bool *found_p)
{
	struct gpc_address found;
	CUresult result;

	*found_p = false;
	if (!gpc_host_memory_find(*value, &found) ||
	    found.context->scope.session != context->scope.session)
		return CUDA_SUCCESS;
	result = gpc_host_block_map(*value, value);
	*found_p = result == CUDA_SUCCESS;
	return result_of_pointer_guess(result);
}

CUresult
gpc_host_memory_translate(struct gpc_context *context, void *bytes, size_t size,
			  const struct gp_kernel_info *kernel)
{
	uint8_t *at = bytes;
	CUresult result = CUDA_SUCCESS;
	bool found;

	for (size_t i = 0; i + 8 <= size && result == CUDA_SUCCESS;
	     i += found ? 8 : scan_get_step(size)) {
		uint64_t value;

		memcpy(&value, at + i, sizeof(value));
		found = false;
		if (address_is_registered(value, kernel, i))
			result = pointer_translate(context, &value, &found);
		if (found)
			memcpy(at + i, &value, sizeof(value));
	}
	return result;
}

CUresult
gpc_cuMemHostGetDevicePointer_v2(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
	struct gpc_context *context;
	struct gpc_address found;
	uint64_t device;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!pdptr || !p || Flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	*pdptr = 0;
	if (!gpc_host_memory_find((uintptr_t)p, &found))
		return CUDA_ERROR_INVALID_VALUE;
	if (found.context->scope.session != context->scope.session) {
		gpc_log(GPC_LOG_ERROR,
			"kernels reach no memory at %p: it was allocated for a device of another "
			"daemon",
			p);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	result = gpc_host_block_map((uintptr_t)p, &device);
	if (result == CUDA_SUCCESS)
		*pdptr = device;
	if (result == CUDA_ERROR_NOT_SUPPORTED)
		gpc_log(GPC_LOG_ERROR,
			"kernels reach no memory at %p: the daemon has no room "
			"for it, or none of that kind",
			p);
	return result;
}
