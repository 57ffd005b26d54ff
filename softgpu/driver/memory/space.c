/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/driver/memory/space.h"

#include "softgpu/driver/memory/allocation.h"
#include "softgpu/engine/engine.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* Reservations without a hint, and cuMemAlloc, use the last quarter; hints of callers use the
 * others. */
#define FREE_BASE (GS_VA_BASE + (GS_VA_INTERNAL - GS_VA_BASE) / 4 * 3)

/* Prefers writers: copies of many streams must not delay an unmapping call. */
struct gs_space gs_space = { .lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP };

static size_t charged[GS_DEVICES_MAX];

bool
gs_space_charge(int device, size_t size)
{
	size_t now = __atomic_load_n(&charged[device], __ATOMIC_RELAXED);

	do {
		if (size > gs_device_memory() - now)
			return false;
	} while (!__atomic_compare_exchange_n(&charged[device], &now, now + size, true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return true;
}

void
gs_space_discharge(int device, size_t size)
{
	__atomic_sub_fetch(&charged[device], size, __ATOMIC_RELAXED);
}

size_t
gs_space_charged(int device)
{
	return __atomic_load_n(&charged[device], __ATOMIC_RELAXED);
}

size_t
gs_space_pages(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (size + page - 1) / page * page;
}

/* Sets errno to ENOMEM where the process may map no more, so that other addresses fail, too. */
static bool
try_map(uint64_t base, size_t size, int prot)
{
	void *want = (void *)base; /* NOLINT(performance-no-int-to-ptr) */
	void *got = mmap(want, size, prot,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (got == want)
		return true;
	if (got != MAP_FAILED) {
		munmap(got, size);
		errno = EEXIST;
	}
	return false;
}

static bool
hint_fits(uint64_t hint, size_t size, size_t alignment)
{
	return hint >= GS_VA_BASE && hint < GS_VA_INTERNAL && size <= GS_VA_INTERNAL - hint &&
	       hint % alignment == 0 && !gs_spans_overlap(&gs_space.reserved, hint, size);
}

uint64_t
gs_space_find(size_t size, size_t alignment, uint64_t hint, int prot)
{
	const struct gs_spans *reserved = &gs_space.reserved;
	uint64_t at = (FREE_BASE + alignment - 1) / alignment * alignment;
	size_t i = gs_spans_index(reserved, at);

	if (hint_fits(hint, size, alignment) && try_map(hint, size, prot))
		return hint;
	while (at < GS_VA_INTERNAL && size <= GS_VA_INTERNAL - at) {
		bool free_here = i == reserved->count || reserved->items[i].base >= at + size;
		uint64_t end;

		if (free_here && try_map(at, size, prot))
			return at;
		if (free_here && errno == ENOMEM)
			return 0;
		/* Skips the next reservation, or a mapping of another part of the process. */
		if (!free_here) {
			end = reserved->items[i].base + reserved->items[i].size;
			i++;
		} else {
			end = at + size;
		}
		at = (end + alignment - 1) / alignment * alignment;
	}
	return 0;
}

bool
gs_space_in_range(uint64_t address)
{
	return address >= GS_VA_BASE && address < GS_VA_END;
}

static int
get_access(const struct gs_span *span, int device)
{
	return span->use == GS_SPAN_MAPPED && device != GS_ANY_DEVICE ? span->access_of[device]
								      : span->access;
}

static bool
covered(const struct gs_spans *spans, uint64_t address, size_t size, int access, int device)
{
	uint64_t end = address + size;
	size_t i = gs_spans_index(spans, address);

	if (end < address)
		return false;
	while (address < end) {
		const struct gs_span *span = &spans->items[i];

		if (i == spans->count || span->base > address ||
		    (get_access(span, device) & access) != access)
			return false;
		address = span->base + span->size;
		i++;
	}
	return true;
}

/* Pinned memory may be at any address; within the device range kernels can access it, too. */
bool
gs_space_usable_locked(uint64_t address, size_t size, bool write, int device)
{
	if (gs_space_in_range(address) &&
	    covered(&gs_space.mapped, address, size, write ? GS_ACCESS_READ_WRITE : GS_ACCESS_READ,
		    device))
		return true;
	return covered(&gs_space.host, address, size, GS_ACCESS_READ, GS_ANY_DEVICE);
}

void
gs_space_read_lock(void)
{
	pthread_rwlock_rdlock(&gs_space.lock);
}

void
gs_space_read_unlock(void)
{
	pthread_rwlock_unlock(&gs_space.lock);
}

bool
gs_space_is_device(uint64_t address, size_t size, bool write, int device)
{
	bool usable;

	gs_space_read_lock();
	usable = gs_space_usable_locked(address, size, write, device);
	gs_space_read_unlock();
	return usable;
}

bool
gs_space_is_one(uint64_t address, size_t size)
{
	const struct gs_span *span;
	bool one;

	gs_space_read_lock();
	span = gs_spans_find(&gs_space.host, address);
	one = !span || size <= span->base + span->size - address;
	gs_space_read_unlock();
	return one;
}

enum gs_place
gs_space_place(uint64_t address, size_t size, bool write)
{
	bool pinned, usable;

	gs_space_read_lock();
	pinned = covered(&gs_space.host, address, size, GS_ACCESS_READ, GS_ANY_DEVICE);
	usable = pinned || gs_space_usable_locked(address, size, write, GS_ANY_DEVICE);
	gs_space_read_unlock();
	if (pinned)
		return GS_PLACE_PINNED;
	if (gs_space_in_range(address))
		return usable ? GS_PLACE_DEVICE : GS_PLACE_FORBIDDEN;
	return GS_PLACE_PAGEABLE;
}

CUresult
gs_space_add_variable(uint64_t address, size_t size)
{
	const struct gs_span span = { .base = address,
				      .size = size,
				      .use = GS_SPAN_VARIABLE,
				      .access = GS_ACCESS_READ_WRITE };
	bool done = true;

	if (!size)
		return CUDA_SUCCESS;
	pthread_rwlock_wrlock(&gs_space.lock);
	done = !gs_spans_overlap(&gs_space.mapped, address, size) &&
	       gs_spans_insert(&gs_space.mapped, &span);
	pthread_rwlock_unlock(&gs_space.lock);
	return done ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void
gs_space_remove_variable(uint64_t address)
{
	struct gs_span *span;

	pthread_rwlock_wrlock(&gs_space.lock);
	span = gs_spans_at(&gs_space.mapped, address);
	if (span && span->use == GS_SPAN_VARIABLE)
		gs_spans_remove(&gs_space.mapped, span);
	pthread_rwlock_unlock(&gs_space.lock);
}

static void
unmap_all(struct gs_spans *spans)
{
	for (size_t i = 0; i < spans->count; i++) {
		const struct gs_span *span = &spans->items[i];

		if (span->use != GS_SPAN_REGISTERED) /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
			munmap((void *)span->base, span->size);
	}
	spans->count = 0;
}

void
gs_space_reset(void)
{
	size_t kept = 0;

	pthread_rwlock_wrlock(&gs_space.lock);
	for (size_t i = 0; i < gs_space.mapped.count; i++) {
		const struct gs_span *span = &gs_space.mapped.items[i];

		if (span->use == GS_SPAN_MAPPED)
			gs_allocation_put(span->allocation);
		else if (span->use == GS_SPAN_PLAIN)
			gs_space_discharge(span->device, gs_space_pages(span->size));
		else
			gs_space.mapped.items[kept++] = *span;
	}
	gs_space.mapped.count = kept;
	unmap_all(&gs_space.reserved);
	unmap_all(&gs_space.host);
	pthread_rwlock_unlock(&gs_space.lock);
	gs_allocation_destroy_all();
}
