/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/driver/memory/allocation.h"
#include "softgpu/driver/memory/space.h"
#include "softgpu/engine/engine.h"

#include <sys/mman.h>

static void *
pointer(uint64_t address)
{
	return (void *)address; /* NOLINT(performance-no-int-to-ptr) */
}

static CUresult
enter(void)
{
	CUresult r = gs_enter_device();

	return r ? r : gs_failure();
}

CUresult CUDAAPI
cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr hint,
		    unsigned long long flags)
{
	struct gs_span span = { .size = size, .use = GS_SPAN_RESERVED };
	CUresult r = enter();

	if (r)
		return r;
	if (!ptr || !size || size % GS_GRANULARITY || flags || (alignment & (alignment - 1)))
		return CUDA_ERROR_INVALID_VALUE;
	if (size > GS_VA_INTERNAL - GS_VA_BASE)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (alignment < GS_GRANULARITY)
		alignment = GS_GRANULARITY;
	pthread_rwlock_wrlock(&gs_space.lock);
	span.base = gs_space_find(size, alignment, hint, PROT_NONE);
	if (!span.base) {
		r = CUDA_ERROR_OUT_OF_MEMORY;
	} else if (!gs_spans_insert(&gs_space.reserved, &span)) {
		munmap(pointer(span.base), size);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_rwlock_unlock(&gs_space.lock);
	if (!r)
		*ptr = span.base;
	return r;
}

CUresult CUDAAPI
cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	struct gs_span *span;
	CUresult r = enter();

	if (r)
		return r;
	pthread_rwlock_wrlock(&gs_space.lock);
	span = gs_spans_at(&gs_space.reserved, ptr);
	if (!span || span->use != GS_SPAN_RESERVED || span->size != size ||
	    gs_spans_overlap(&gs_space.mapped, ptr, size)) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else {
		gs_spans_remove(&gs_space.reserved, span);
		munmap(pointer(ptr), size);
	}
	pthread_rwlock_unlock(&gs_space.lock);
	return r;
}

/* Transfers the caller's reference to the mapping. */
static CUresult
map_locked(uint64_t base, size_t size, size_t offset, struct gs_allocation *allocation)
{
	const struct gs_span span = {
		.base = base, .size = size, .use = GS_SPAN_MAPPED, .allocation = allocation
	};
	const struct gs_span *reserved = gs_spans_find(&gs_space.reserved, base);

	if (!reserved || reserved->use != GS_SPAN_RESERVED ||
	    size > reserved->base + reserved->size - base)
		return CUDA_ERROR_INVALID_VALUE;
	if (gs_spans_overlap(&gs_space.mapped, base, size))
		return CUDA_ERROR_INVALID_VALUE;
	if (mmap(pointer(base), size, PROT_NONE, MAP_SHARED | MAP_FIXED,
		 gs_allocation_fd(allocation), (off_t)offset) == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return gs_spans_insert(&gs_space.mapped, &span) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult CUDAAPI
cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
	 unsigned long long flags)
{
	struct gs_allocation *allocation;
	CUresult r = enter();

	if (r)
		return r;
	if (!size || (ptr | size | offset) % GS_GRANULARITY || flags)
		return CUDA_ERROR_INVALID_VALUE;
	allocation = gs_allocation_get(handle);
	if (!allocation)
		return CUDA_ERROR_INVALID_VALUE;
	if (gs_allocation_is_for_tiles(allocation) || offset > gs_allocation_size(allocation) ||
	    size > gs_allocation_size(allocation) - offset) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else {
		pthread_rwlock_wrlock(&gs_space.lock);
		r = map_locked(ptr, size, offset, allocation);
		pthread_rwlock_unlock(&gs_space.lock);
	}
	if (r)
		gs_allocation_put(allocation);
	return r;
}

/* Whether the range consists of whole mappings. */
static bool
is_whole_mappings(uint64_t ptr, size_t size)
{
	uint64_t at = ptr;

	while (at < ptr + size) {
		const struct gs_span *span = gs_spans_at(&gs_space.mapped, at);

		if (!span || span->use != GS_SPAN_MAPPED)
			return false;
		at += span->size;
	}
	return size && at == ptr + size;
}

CUresult CUDAAPI
cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	CUresult r = enter();

	if (r)
		return r;
	pthread_rwlock_wrlock(&gs_space.lock);
	if (!is_whole_mappings(ptr, size)) {
		pthread_rwlock_unlock(&gs_space.lock);
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (mmap(pointer(ptr), size, PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
		pthread_rwlock_unlock(&gs_space.lock);
		return CUDA_ERROR_UNMAP_FAILED;
	}
	for (uint64_t at = ptr; at < ptr + size;) {
		struct gs_span *span = gs_spans_at(&gs_space.mapped, at);

		at += span->size;
		gs_allocation_put(span->allocation);
		gs_spans_remove(&gs_space.mapped, span);
	}
	pthread_rwlock_unlock(&gs_space.lock);
	return CUDA_SUCCESS;
}

/* Requested access of each device; other devices stay unchanged. */
struct access {
	bool named[GS_DEVICES_MAX], named_host;
	uint8_t of[GS_DEVICES_MAX], of_host;
};

static CUresult
read_access(const CUmemAccessDesc *desc, size_t count, struct access *access)
{
	if (!desc || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		const bool host = gs_is_host(&desc[i].location);

		if (!host && desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
			return CUDA_ERROR_NOT_SUPPORTED;
		if (!host && gs_check_device(desc[i].location.id))
			return CUDA_ERROR_INVALID_DEVICE;
		if (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
		    desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
		    desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return CUDA_ERROR_INVALID_VALUE;
		if (host) {
			access->named_host = true;
			access->of_host = (uint8_t)desc[i].flags;
		} else {
			access->named[desc[i].location.id] = true;
			access->of[desc[i].location.id] = (uint8_t)desc[i].flags;
		}
	}
	return CUDA_SUCCESS;
}

/* Kernels run in the host's address space: they get the access of all devices and the host
 * combined. */
static CUresult
protect(const struct gs_span *span)
{
	int prot = span->access == GS_ACCESS_READ_WRITE ? PROT_READ | PROT_WRITE
		   : span->access == GS_ACCESS_READ     ? PROT_READ
							: PROT_NONE;

	return mprotect(pointer(span->base), span->size, prot) ? CUDA_ERROR_OUT_OF_MEMORY
							       : CUDA_SUCCESS;
}

static void
apply(struct gs_span *span, const struct access *access)
{
	if (access->named_host)
		span->access_of_host = access->of_host;
	span->access = span->access_of_host;
	for (int i = 0; i < GS_DEVICES_MAX; i++) {
		if (access->named[i])
			span->access_of[i] = access->of[i];
		span->access |= span->access_of[i];
	}
}

/* Without peer links a device can only access its own memory. */
static bool
is_within_reach(const struct gs_span *span, const struct access *access)
{
	const int owner = gs_allocation_device(span->allocation);

	for (int i = 0; i < GS_DEVICES_MAX && !gs_device_peers() && owner != GS_HOST; i++) {
		if (access->of[i] && i != owner)
			return false;
	}
	return true;
}

static CUresult
set_access_locked(uint64_t ptr, size_t size, const struct access *access)
{
	CUresult r = CUDA_SUCCESS;

	if (!is_whole_mappings(ptr, size))
		return CUDA_ERROR_INVALID_VALUE;
	for (uint64_t at = ptr; at < ptr + size && !r;) {
		struct gs_span *span = gs_spans_at(&gs_space.mapped, at);

		if (access->named_host && gs_allocation_device(span->allocation) != GS_HOST)
			return CUDA_ERROR_NOT_SUPPORTED;
		if (!is_within_reach(span, access))
			return CUDA_ERROR_INVALID_DEVICE;
		apply(span, access);
		r = protect(span);
		at += span->size;
	}
	return r;
}

CUresult CUDAAPI
cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	CUresult r = enter();
	struct access access = { 0 };

	if (!r)
		r = read_access(desc, count, &access);
	if (r)
		return r;
	pthread_rwlock_wrlock(&gs_space.lock);
	r = set_access_locked(ptr, size, &access);
	pthread_rwlock_unlock(&gs_space.lock);
	return r;
}

CUresult CUDAAPI
cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	const struct gs_span *span;
	CUresult r = enter();

	if (r)
		return r;
	if (!flags || !location ||
	    (location->type != CU_MEM_LOCATION_TYPE_DEVICE && !gs_is_host(location)))
		return CUDA_ERROR_INVALID_VALUE;
	if (!gs_is_host(location) && gs_check_device(location->id))
		return CUDA_ERROR_INVALID_DEVICE;
	gs_space_read_lock();
	span = gs_spans_find(&gs_space.mapped, ptr);
	if (span && span->use == GS_SPAN_MAPPED)
		*flags =
			gs_is_host(location) ? span->access_of_host : span->access_of[location->id];
	else
		r = CUDA_ERROR_INVALID_VALUE;
	gs_space_read_unlock();
	return r;
}
