/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/driver/memory/space.h"
#include "softgpu/driver/stream/stream.h"

#include <sys/mman.h>

/* Alignment of cuMemAlloc; at least this many bytes after the memory fault. */
#define PLAIN_ALIGN ((size_t)64 << 10)

#define HOST_ALLOC_FLAGS                                                                           \
	(CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define HOST_REGISTER_FLAGS                                                                        \
	(CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |                              \
	 CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY)

static void *
pointer(uint64_t address)
{
	return (void *)address; /* NOLINT(performance-no-int-to-ptr) */
}

CUresult CUDAAPI
cuMemGetInfo_v2(size_t *free_p, size_t *total_p)
{
	CUresult r = gs_enter();

	if (r)
		return r;
	if (free_p)
		*free_p = gs_device_memory() - gs_space_charged(gs_device_current());
	if (total_p)
		*total_p = gs_device_memory();
	return CUDA_SUCCESS;
}

/* A network card writes to this memory as to any other memory of the machine. Writes that a thread
 * has observed are also visible to kernels' threads: a launch acquires locks, and there is nothing
 * to flush. */
CUresult CUDAAPI
cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
			   CUflushGPUDirectRDMAWritesScope scope)
{
	CUresult r = gs_enter();

	if (r)
		return r;
	if (target != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX ||
	    (scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER &&
	     scope != CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* Reserves the slot and maps memory at its beginning; an access to the rest faults. For the
 * driver's checks the memory ends at the requested size. */
static CUresult
insert_plain(size_t size, int device, uint64_t *base_p)
{
	struct gs_span slot = { .size = (size / PLAIN_ALIGN + 2) * PLAIN_ALIGN,
				.use = GS_SPAN_PLAIN };
	struct gs_span memory = {
		.size = size, .use = GS_SPAN_PLAIN, .access = GS_ACCESS_READ_WRITE, .device = device
	};

	slot.base = gs_space_find(slot.size, PLAIN_ALIGN, 0, PROT_NONE);
	if (!slot.base)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memory.base = slot.base;
	if (mprotect(pointer(slot.base), gs_space_pages(size), PROT_READ | PROT_WRITE) == 0 &&
	    gs_spans_insert(&gs_space.reserved, &slot)) {
		if (gs_spans_insert(&gs_space.mapped, &memory)) {
			*base_p = slot.base;
			return CUDA_SUCCESS;
		}
		gs_spans_remove(&gs_space.reserved, gs_spans_at(&gs_space.reserved, slot.base));
	}
	munmap(pointer(slot.base), slot.size);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CUDAAPI
cuMemAlloc_v2(CUdeviceptr *ptr, size_t size)
{
	CUresult r = gs_enter();
	int device = gs_device_current();
	uint64_t base;

	if (r)
		return r;
	if (!ptr || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (size > gs_device_memory())
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!gs_space_charge(device, gs_space_pages(size)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_rwlock_wrlock(&gs_space.lock);
	r = insert_plain(size, device, &base);
	pthread_rwlock_unlock(&gs_space.lock);
	if (r)
		gs_space_discharge(device, gs_space_pages(size));
	else
		*ptr = base;
	return r;
}

static CUresult
remove_plain(uint64_t base)
{
	struct gs_span *slot = gs_spans_at(&gs_space.reserved, base), *memory;

	if (!slot || slot->use != GS_SPAN_PLAIN)
		return CUDA_ERROR_INVALID_VALUE;
	memory = gs_spans_at(&gs_space.mapped, base);
	gs_space_discharge(memory->device, gs_space_pages(memory->size));
	munmap(pointer(base), slot->size);
	gs_spans_remove(&gs_space.mapped, memory);
	gs_spans_remove(&gs_space.reserved, slot);
	return CUDA_SUCCESS;
}

/* Waits for the whole context, as NVIDIA's driver does. */
CUresult CUDAAPI
cuMemFree_v2(CUdeviceptr ptr)
{
	CUresult r = gs_enter();

	if (r || !ptr)
		return r;
	r = gs_stream_synchronize_all(NULL, -1);
	if (r)
		return r;
	pthread_rwlock_wrlock(&gs_space.lock);
	r = remove_plain(ptr);
	pthread_rwlock_unlock(&gs_space.lock);
	return r;
}

static CUresult
insert_host(uint64_t base, size_t size, enum gs_span_use use)
{
	const struct gs_span span = {
		.base = base, .size = size, .use = use, .access = GS_ACCESS_READ_WRITE
	};
	CUresult r = CUDA_SUCCESS;

	pthread_rwlock_wrlock(&gs_space.lock);
	if (gs_spans_overlap(&gs_space.host, base, size))
		r = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	else if (!gs_spans_insert(&gs_space.host, &span))
		r = CUDA_ERROR_OUT_OF_MEMORY;
	pthread_rwlock_unlock(&gs_space.lock);
	return r;
}

CUresult CUDAAPI
cuMemHostAlloc(void **ptr, size_t size, unsigned int flags)
{
	CUresult r = gs_enter();
	uint64_t base;

	if (r)
		return r;
	if (!ptr || !size || flags & ~(unsigned int)HOST_ALLOC_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	if (size > SIZE_MAX / 2)
		return CUDA_ERROR_OUT_OF_MEMORY;
	size = gs_space_pages(size);
	/* In the range that kernels can access, in which nothing else is mapped without a check. */
	pthread_rwlock_wrlock(&gs_space.lock);
	base = gs_space_find(size, gs_space_pages(1), 0, PROT_READ | PROT_WRITE);
	pthread_rwlock_unlock(&gs_space.lock);
	if (!base)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = insert_host(base, size, GS_SPAN_HOST);
	if (r)
		munmap(pointer(base), size);
	else
		*ptr = pointer(base);
	return r;
}

static CUresult
remove_host(void *ptr, enum gs_span_use use, CUresult missing)
{
	struct gs_span *span;
	CUresult r = CUDA_SUCCESS;

	pthread_rwlock_wrlock(&gs_space.lock);
	span = gs_spans_at(&gs_space.host, (uint64_t)(uintptr_t)ptr);
	if (!span || span->use != use) {
		r = missing;
	} else {
		if (use == GS_SPAN_HOST)
			munmap(ptr, span->size);
		gs_spans_remove(&gs_space.host, span);
	}
	pthread_rwlock_unlock(&gs_space.lock);
	return r;
}

CUresult CUDAAPI
cuMemFreeHost(void *ptr)
{
	CUresult r = gs_enter();

	if (r || !ptr)
		return r;
	r = gs_stream_synchronize_all(NULL, -1);
	return r ? r : remove_host(ptr, GS_SPAN_HOST, CUDA_ERROR_INVALID_VALUE);
}

CUresult CUDAAPI
cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned int flags)
{
	CUresult r = gs_enter();
	uint64_t address = (uint64_t)(uintptr_t)host;

	if (r)
		return r;
	if (!device || !host || flags || gs_space_place(address, 1, true) != GS_PLACE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	/* Registered memory stays at the address chosen by its owner. */
	if (!gs_space_in_range(address))
		return CUDA_ERROR_NOT_SUPPORTED;
	*device = address;
	return CUDA_SUCCESS;
}

/* Whether the range overlaps device memory or addresses reserved for it. */
static bool
is_reserved(uint64_t address, size_t size)
{
	bool reserved;

	gs_space_read_lock();
	reserved = gs_spans_overlap(&gs_space.reserved, address, size) ||
		   gs_spans_overlap(&gs_space.mapped, address, size);
	gs_space_read_unlock();
	return reserved;
}

CUresult CUDAAPI
cuMemHostRegister_v2(void *ptr, size_t size, unsigned int flags)
{
	CUresult r = gs_enter();
	uint64_t address = (uint64_t)(uintptr_t)ptr;

	if (r)
		return r;
	if (!ptr || !size || address + size < address || flags & ~(unsigned int)HOST_REGISTER_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_MEMHOSTREGISTER_IOMEMORY)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (is_reserved(address, size))
		return CUDA_ERROR_INVALID_VALUE;
	return insert_host(address, size, GS_SPAN_REGISTERED);
}

CUresult CUDAAPI
cuMemHostUnregister(void *ptr)
{
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!ptr)
		return CUDA_ERROR_INVALID_VALUE;
	return remove_host(ptr, GS_SPAN_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}
