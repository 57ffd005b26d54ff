/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/host_space.h"

#include "base/clock.h"
#include "base/lock.h"
#include "client/alloc/heap.h"
#include "client/alloc/object_cache.h"
#include "client/base/log.h"
#include "client/base/ranges.h"
#include "client/connect/window.h"
#include "client/context/context.h"
#include "client/context/fence.h"
#include "client/guard/guard.h"
#include "client/host/host_range.h"
#include "client/session/session.h"
#include "client/session/shared_pages.h"
#include "gpc_calls.h"
#include "transport/shm/sealed_memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define GRANULARITY GPC_HOST_GRANULARITY
/* Small blocks are allocated from chunks of this size; the first chunks are smaller. */
#define CHUNK_FIRST ((uint64_t)4 << 20)
/* Bytes that are skipped at the start of a range, which the daemon may place at a multiple of 4
 * GiB: there, a small number next to the upper half of a stale address would look like an address
 * (gpc_pointer_scan_run()). */
#define SKIPPED ((uint64_t)0x6b400000)
#define CHUNK_MAX ((uint64_t)16 << 20)
/* Number of addresses that are tried, as the daemon may still be unmapping something there. */
#define TRIES 8
/* Number of unmapped addresses that are not reused while there are others. */
#define DEFERRED_MAX 1024
/* Number of attempts to allocate from a new chunk, as other threads may take its memory first. */
#define GROW_TRIES 16
/* After a refusal, number and interval of retries while cached memory is unmapped. */
#define UNMAP_TRIES 100
#define UNMAP_NAP_NS 2000000
/* Number of retries until the daemon has released its old memory at the addresses, which requires a
 * moment in which no kernel of any session runs. */
#define ADDRESS_TRIES 2500
/* Deferred-free bytes above which the client queries the progress of the work. */
#define WAITING_MAX ((uint64_t)1 << 20)

struct space {
	struct gpc_session *session;
	struct space *next;
	struct gpc_heap *heap; /* NULL: the daemon has no range */
	uint64_t base, end;
	bool shared;
	pthread_mutex_t lock; /* serializes the mapping of memory */
	/* Not shared: ranges for which the daemon has memory; guarded by the lock. */
	struct gpc_ranges device_mapped;
	struct gpc_ranges files; /* parts of files, over every transport; guarded by the lock */
	struct gpc_object_cache cache; /* unused shared memory, as mapping it is slow */
	struct gpc_context *primary;   /* context of the calls that unmap it */
	struct gpc_fence fence;
	/* Number of unmappings that the daemon has acknowledged. It releases the addresses when no
	 * kernel of any session runs. Nothing waits for that, because two sessions whose kernels
	 * wait for their programs would deadlock. */
	atomic_uint_fast64_t unmaps;
};

static struct space *_Atomic spaces;
static pthread_mutex_t spaces_lock = PTHREAD_MUTEX_INITIALIZER;

static void *
address_to_pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

static struct space *
space_find(const struct gpc_session *session)
{
	struct space *space = atomic_load(&spaces);

	while (space && space->session != session)
		space = space->next;
	return space;
}

static struct space *
space_find_around(uint64_t address)
{
	struct space *space = atomic_load(&spaces);

	while (space && !(space->heap && gpc_heap_contains(space->heap, address)))
		space = space->next;
	return space;
}

bool
gpc_host_space_contains(uint64_t address)
{
	return space_find_around(address) != NULL;
}

void
gpc_host_space_bounds(uint64_t *base_p, uint64_t *size_p)
{
	uint64_t low = UINT64_MAX, high = 0;

	for (const struct space *space = atomic_load(&spaces); space; space = space->next) {
		if (!space->heap)
			continue;
		low = space->base < low ? space->base : low;
		high = space->end > high ? space->end : high;
	}
	*base_p = low;
	*size_p = high > low ? high - low : 0;
}

static struct space *
space_create(struct gpc_context *context)
{
	struct space *space = calloc(1, sizeof(*space));
	struct gp_reply_gpHostReserve range;

	if (!space)
		return NULL;
	space->session = context->scope.session;
	space->shared = gpc_session_shares_memory(space->session);
	(void)pthread_mutex_init(&space->lock, NULL);
	gpc_object_cache_init(&space->cache, NULL);
	space->primary = context->device->primary;
	gpc_fence_init(&space->fence);
	if (gpc_host_range_find(context, &range)) {
		uint64_t skipped = range.room > 4 * SKIPPED ? SKIPPED : 0;

		space->base = range.address + skipped;
		space->end = range.address + range.room;
		if (gpc_heap_create(space->base, range.room - skipped, GRANULARITY, CHUNK_FIRST,
				    &space->heap)) {
			gpc_window_release(range.address, range.room);
			space->heap = NULL;
		}
	}
	if (!space->heap)
		gpc_log(GPC_LOG_INFO, "kernels do not reach pinned memory");
	space->next = atomic_load(&spaces);
	atomic_store(&spaces, space);
	return space;
}

/* Returns NULL if the session has none. */
static struct space *
space_get(struct gpc_context *context)
{
	struct space *space = space_find(context->scope.session);

	if (!space) {
		(void)pthread_mutex_lock(&spaces_lock);
		space = space_find(context->scope.session);
		if (!space)
			space = space_create(context);
		(void)pthread_mutex_unlock(&spaces_lock);
	}
	return space && space->heap ? space : NULL;
}

/* Replaces the range by an inaccessible reservation. */
static void
range_cover(const struct gpc_heap_range *range)
{
	gpc_shared_pages_remove(range->base, range->size);
	(void)mmap(address_to_pointer(range->base), range->size, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/* Maps private memory of this process over its reservation. */
static CUresult
range_map_private(const struct gpc_heap_range *range)
{
	void *got = mmap(address_to_pointer(range->base), range->size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	return got == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

struct map_request {
	struct gpc_request request;
	const struct gpc_heap_range *range;
	bool mapped;
};

/* The daemon passes the file descriptor before its reply. */
static void
map_request_recv(struct gpc_request *request)
{
	struct map_request *map_request = request->arg;
	int fd = gpc_session_recv_fd(request->session);
	size_t size;

	if (fd < 0)
		return;
	if (gp_sealed_check(fd, &size) == 0 && size == map_request->range->size)
		map_request->mapped =
			mmap(address_to_pointer(map_request->range->base), size,
			     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
	if (map_request->mapped)
		gpc_shared_pages_add(request->session, map_request->range->base, size);
	(void)close(fd);
}

/* Frees blocks whose work is done, and the addresses of the first `unmaps` unmappings. */
static void
space_reap(struct space *space, uint64_t unmaps)
{
	gpc_heap_reap(space->heap, gpc_session_work_done(space->session), unmaps);
}

/* Unmapped addresses are reused, oldest first, only when there are no others. */
static int
space_reserve(struct space *space, uint64_t size, struct gpc_heap_range *range_p)
{
	const uint64_t unmaps = atomic_load(&space->unmaps);
	uint64_t reused = unmaps > DEFERRED_MAX ? unmaps - DEFERRED_MAX : 0;
	int r = gpc_heap_reserve(space->heap, size, range_p);

	while (r != 0 && reused < unmaps) {
		space_reap(space, ++reused);
		r = gpc_heap_reserve(space->heap, size, range_p);
	}
	return r;
}

struct unmap_request {
	struct gpc_request request;
	struct space *space;
	struct gpc_heap_range range;
};

static void
unmap_request_done(struct gpc_request *request)
{
	struct unmap_request *unmap_request = request->arg;
	struct space *space = unmap_request->space;
	const uint64_t unmaps = atomic_fetch_add(&space->unmaps, 1) + 1;

	free(request->reply);
	gpc_heap_defer_range(space->heap, &unmap_request->range, unmaps);
	if (unmaps > DEFERRED_MAX)
		space_reap(space, unmaps - DEFERRED_MAX);
	free(unmap_request);
}

/* The addresses are free when the daemon has replied. */
static void
unmap_request_post(struct space *space, struct gpc_context *context,
		   const struct gpc_heap_range *range)
{
	const struct gp_args_gpHostUnmap args = { .address = range->base, .size = range->size };
	struct unmap_request *unmap_request = calloc(1, sizeof(*unmap_request));

	/* If memory is exhausted, the addresses are lost. */
	if (!unmap_request)
		return;
	*unmap_request = (struct unmap_request){ .space = space, .range = *range };
	unmap_request->request.done = unmap_request_done;
	unmap_request->request.arg = unmap_request;
	if (gpc_start_gpHostUnmap(context->device->primary, &args, &unmap_request->request) ==
	    CUDA_SUCCESS)
		return;
	/* The memory of an ended session is freed with it. */
	free(unmap_request);
}

/* Makes the daemon allocate the memory; if it is shared, this process maps it too. */
static CUresult
map_request_wait(struct space *space, struct gpc_context *context,
		 const struct gpc_heap_range *range, bool shared) GP_LOCKED(space->lock)
{
	const struct gp_args_gpHostMap args = { range->base, range->size, shared };
	struct map_request map_request = { .range = range };
	CUresult result;

	map_request.request.session = space->session;
	map_request.request.arg = &map_request;
	map_request.request.before = shared ? map_request_recv : NULL;
	result = gpc_start_gpHostMap(context, &args, &map_request.request);
	if (result == CUDA_SUCCESS)
		result = gpc_request_wait_own(&map_request.request);
	free(map_request.request.reply);
	if (result != CUDA_SUCCESS || !shared || map_request.mapped)
		return result;
	unmap_request_post(space, context, range);
	return CUDA_ERROR_OPERATING_SYSTEM;
}

/* Maps memory at the block's own addresses, waiting until the daemon has released any old memory
 * there. */
static CUresult
map_request_retry(struct space *space, struct gpc_context *context,
		  const struct gpc_heap_range *range) GP_LOCKED(space->lock)
{
	CUresult result = map_request_wait(space, context, range, false);

	/* Memory freed a moment ago counts against the quota until it is unmapped. */
	for (int i = 0; (result == CUDA_ERROR_NOT_READY && i < ADDRESS_TRIES) ||
			(result == CUDA_ERROR_OUT_OF_MEMORY && i < UNMAP_TRIES);
	     i++) {
		gpc_guard_block();
		gp_sleep_ns(UNMAP_NAP_NS);
		result = map_request_wait(space, context, range, false);
	}
	return result == CUDA_ERROR_NOT_READY ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

/* Tries addresses until the daemon has no memory there that is still being unmapped. Returns
 * CUDA_ERROR_NOT_READY if it has at all that were tried. */
static CUresult
space_try_map_at_worker(struct space *space, struct gpc_context *context, uint64_t size,
			bool shared, struct gpc_heap_range *range_p) GP_LOCKED(space->lock)
{
	struct gpc_heap_range busy[TRIES];
	CUresult result = CUDA_ERROR_NOT_READY;
	int count = 0;

	while (result == CUDA_ERROR_NOT_READY && count < TRIES) {
		if (space_reserve(space, size, &busy[count])) {
			result = CUDA_ERROR_NOT_SUPPORTED;
			break;
		}
		result = map_request_wait(space, context, &busy[count++], shared);
	}
	if (result == CUDA_SUCCESS)
		*range_p = busy[--count];
	/* The daemon may have allocated it: its addresses are freed when the unmapping is
	 * acknowledged. */
	if (result == CUDA_ERROR_OPERATING_SYSTEM)
		count--;
	while (count > 0)
		gpc_heap_unreserve(space->heap, &busy[--count]);
	return result;
}

static CUresult
space_map_at_worker(struct space *space, struct gpc_context *context, uint64_t size, bool shared,
		    struct gpc_heap_range *range_p) GP_LOCKED(space->lock)
{
	CUresult result = space_try_map_at_worker(space, context, size, shared, range_p);

	for (int i = 0; result == CUDA_ERROR_NOT_READY && i < ADDRESS_TRIES; i++) {
		gpc_guard_block();
		gp_sleep_ns(UNMAP_NAP_NS);
		result = space_try_map_at_worker(space, context, size, shared, range_p);
	}
	return result == CUDA_ERROR_NOT_READY ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

static void
cached_drop(const struct gpc_cached *cached)
{
	const struct gpc_heap_range range = { (uintptr_t)cached->object, cached->bytes };
	struct space *space = space_find_around(range.base);

	range_cover(&range);
	unmap_request_post(space, space->primary, &range);
}

static const struct gpc_cached_kind shared_kind = {
	.drop = cached_drop,
	.count_max = 63,
	.bytes_max = (uint64_t)1 << 30,
};

/* Returns shared memory from the cache, or new. */
static CUresult
space_map_shared(struct space *space, struct gpc_context *context, uint64_t size,
		 struct gpc_heap_range *range_p) GP_LOCKED(space->lock)
{
	struct gpc_cached cached = { .kind = &shared_kind,
				     .tag = gpc_session_work_done(space->session) };
	bool busy;
	CUresult result;

	size = (size + GRANULARITY - 1) & ~(GRANULARITY - 1);
	if (gpc_object_cache_acquire(&space->cache, &cached, &size, &busy)) {
		*range_p = (struct gpc_heap_range){ (uintptr_t)cached.object, size };
		return CUDA_SUCCESS;
	}
	result = space_map_at_worker(space, context, size, true, range_p);
	if (result != CUDA_ERROR_OUT_OF_MEMORY)
		return result;
	/* Cached memory counts against the quota until it is unmapped, which takes some time. */
	if (!gpc_object_cache_drop(&space->cache, NULL, NULL))
		return result;
	for (int i = 0; result == CUDA_ERROR_OUT_OF_MEMORY && i < UNMAP_TRIES; i++) {
		gpc_guard_block();
		gp_sleep_ns(UNMAP_NAP_NS);
		result = space_map_at_worker(space, context, size, true, range_p);
	}
	return result;
}

static CUresult
space_map(struct space *space, struct gpc_context *context, uint64_t size,
	  struct gpc_heap_range *range_p) GP_LOCKED(space->lock)
{
	CUresult result;

	if (space->shared)
		return space_map_shared(space, context, size, range_p);
	if (space_reserve(space, size, range_p))
		return CUDA_ERROR_NOT_SUPPORTED;
	result = range_map_private(range_p);
	if (result != CUDA_SUCCESS)
		gpc_heap_unreserve(space->heap, range_p);
	return result;
}

/* Removes a range from one of the lists. Returns whether it was in it. */
static bool
ranges_remove(struct space *space, struct gpc_ranges *ranges, const struct gpc_heap_range *range)
{
	struct gpc_range *found;

	(void)pthread_mutex_lock(&space->lock);
	found = gpc_ranges_find(ranges, range->base, 1);
	if (found)
		gpc_ranges_remove(ranges, found);
	(void)pthread_mutex_unlock(&space->lock);
	return found != NULL;
}

/* Unmaps, or caches, a mapping without blocks. */
static void
space_unmap(struct space *space, struct gpc_context *context, const struct gpc_heap_range *range,
	    uint64_t tag)
{
	const struct gpc_cached cached = { .kind = &shared_kind,
					   .object = address_to_pointer(range->base),
					   .bytes = range->size,
					   .tag = tag };
	const bool is_file = ranges_remove(space, &space->files, range);
	const bool shared = space->shared && !is_file;

	if (shared && range->size <= shared_kind.bytes_max) {
		gpc_object_cache_put(&space->cache, &cached);
		return;
	}
	range_cover(range);
	if (shared || ranges_remove(space, &space->device_mapped, range))
		unmap_request_post(space, context, range);
	else
		gpc_heap_unreserve(space->heap, range);
}

/* Queries the progress of the work that freed memory waits for. */
static void
space_poll_work(struct space *space, struct gpc_context *context)
{
	gpc_fence_poll(&space->fence);
	gpc_fence_start(&space->fence, context->device->primary);
}

/* Allocates from the chunks, or from a new one; another thread may use the new one up, so that
 * a further one is needed. */
static CUresult
space_alloc_small(struct space *space, struct gpc_context *context, uint64_t size,
		  uint64_t *address_p) GP_LOCKED(space->lock)
{
	space_reap(space, 0);
	for (int i = 0; i < GROW_TRIES; i++) {
		uint64_t chunk = gpc_heap_chunk_size(space->heap, space);
		struct gpc_heap_range range;
		CUresult result;

		if (gpc_heap_alloc(space->heap, space, size, 0, address_p) == 0)
			return CUDA_SUCCESS;
		result = space_map(space, context, chunk < CHUNK_MAX ? chunk : CHUNK_MAX, &range);
		if (result == CUDA_ERROR_OUT_OF_MEMORY)
			result = space_map(space, context, size, &range);
		if (result != CUDA_SUCCESS)
			return result;
		/* If memory is exhausted, the new mapping is leaked. */
		if (gpc_heap_add_chunk(space->heap, space, &range))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
space_alloc_large(struct space *space, struct gpc_context *context, uint64_t size,
		  uint64_t *address_p) GP_LOCKED(space->lock)
{
	struct gpc_heap_range range;
	CUresult result = space_map(space, context, size, &range);

	if (result != CUDA_SUCCESS)
		return result;
	if (gpc_heap_add_large(space->heap, space, &range, size, 0))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*address_p = range.base;
	return CUDA_SUCCESS;
}

CUresult
gpc_host_space_alloc(struct gpc_context *context, uint64_t size, uint64_t *address_p,
		     bool *shared_p)
{
	struct space *space = space_get(context);
	CUresult result;

	if (!space)
		return CUDA_ERROR_NOT_SUPPORTED;
	*shared_p = space->shared;
	if (size <= GPC_HEAP_SMALL_MAX &&
	    gpc_heap_alloc(space->heap, space, size, 0, address_p) == 0)
		return CUDA_SUCCESS;
	if (gpc_heap_deferred_bytes(space->heap) > WAITING_MAX)
		space_poll_work(space, context);
	(void)pthread_mutex_lock(&space->lock);
	result = size <= GPC_HEAP_SMALL_MAX ? space_alloc_small(space, context, size, address_p)
					    : space_alloc_large(space, context, size, address_p);
	(void)pthread_mutex_unlock(&space->lock);
	return result;
}

void
gpc_host_space_free(struct gpc_context *context, uint64_t address, bool device_mapped)
{
	struct space *space = space_find_around(address);
	uint64_t tag = device_mapped ? gpc_session_work_posted(space->session) : 0;
	struct gpc_heap_range range;

	if (gpc_heap_free(space->heap, address, tag, gpc_session_work_done(space->session),
			  &range) == 0 &&
	    range.size != 0)
		space_unmap(space, context, &range, tag);
}

CUresult
gpc_host_space_map_at_worker(struct gpc_context *context, uint64_t address)
{
	struct space *space = space_find_around(address);
	struct gpc_heap_block block;
	struct gpc_heap_range range;
	CUresult result = CUDA_SUCCESS;

	if (!space || space->session != context->scope.session ||
	    !gpc_heap_find(space->heap, address, &block))
		return CUDA_ERROR_INVALID_VALUE;
	range = (struct gpc_heap_range){ block.mapping_base, block.mapping_size };
	(void)pthread_mutex_lock(&space->lock);
	if (!gpc_ranges_find(&space->device_mapped, range.base, 1)) {
		result = map_request_retry(space, context, &range);
		if (result == CUDA_SUCCESS &&
		    gpc_ranges_add(&space->device_mapped, range.base, range.size, NULL))
			result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	(void)pthread_mutex_unlock(&space->lock);
	return result;
}

static CUresult
space_map_file(struct space *space, const struct gpc_heap_range *range, int fd, uint64_t offset)
	GP_LOCKED(space->lock)
{
	if (gpc_ranges_add(&space->files, range->base, range->size, NULL))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (mmap(address_to_pointer(range->base), range->size, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED, fd, (off_t)offset) != MAP_FAILED) {
		if (gpc_heap_add_large(space->heap, space, range, range->size, 0) == 0)
			return CUDA_SUCCESS;
		range_cover(range);
	}
	gpc_ranges_remove(&space->files, gpc_ranges_find(&space->files, range->base, 1));
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
gpc_host_space_map_file(struct gpc_context *context, uint64_t size, int fd, uint64_t offset,
			uint64_t *address_p)
{
	struct space *space = space_get(context);
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
	struct gpc_heap_range range;

	if (!space)
		return CUDA_ERROR_NOT_SUPPORTED;
	(void)pthread_mutex_lock(&space->lock);
	if (space_reserve(space, size, &range) == 0) {
		if (offset == GPC_HOST_SPACE_OWN)
			offset = range.base - space->base;
		result = space_map_file(space, &range, fd, offset);
		if (result == CUDA_SUCCESS)
			*address_p = range.base;
		else
			gpc_heap_unreserve(space->heap, &range);
	}
	(void)pthread_mutex_unlock(&space->lock);
	return result;
}

uint64_t
gpc_host_space_size(struct gpc_context *context)
{
	const struct space *space = space_get(context);

	return space ? space->end - space->base : 0;
}

uint64_t
gpc_host_space_offset(uint64_t address)
{
	return address - space_find_around(address)->base;
}

CUresult
gpc_host_space_map(struct gpc_context *context, uint64_t size, struct gpc_heap_range *range_p)
{
	struct space *space = space_get(context);
	CUresult result;

	if (!space)
		return CUDA_ERROR_NOT_SUPPORTED;
	(void)pthread_mutex_lock(&space->lock);
	result = space_map_at_worker(space, context, size, false, range_p);
	(void)pthread_mutex_unlock(&space->lock);
	return result;
}

void
gpc_host_space_unmap(struct gpc_context *context, const struct gpc_heap_range *range)
{
	struct space *space = space_find_around(range->base);

	if (space)
		unmap_request_post(space, context, range);
}
