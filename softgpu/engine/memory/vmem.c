/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/engine/memory/vmem.h"

#include "softgpu/engine/engine.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PAGE 4096ull
#define GAP (1ull << 20) /* gap to the next block, so that a slightly too large index faults */

/* Sorted by address; the gaps between regions are free. */
struct region {
	struct region *next;
	uint64_t start;
	uint64_t size; /* without the following gap */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct region *regions;

static bool
map_pages(uint64_t start, uint64_t size)
{
	void *want = (void *)(uintptr_t)start;
	void *got = mmap(want, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (got == want)
		return true;
	/* Kernels before 4.17 treat the address as a hint. */
	if (got != MAP_FAILED)
		munmap(got, size);
	return false;
}

/* Finds the first gap of sufficient size in which nothing else is mapped. */
static struct region *
place(struct region *region)
{
	struct region **link = &regions;
	uint64_t start = GS_VA_INTERNAL;

	while (start + region->size + GAP <= GS_VA_END) {
		uint64_t end = *link ? (*link)->start : GS_VA_END;

		if (end - start >= region->size + GAP && map_pages(start, region->size)) {
			region->start = start;
			region->next = *link;
			*link = region;
			return region;
		}
		if (!*link)
			return NULL;
		start = (*link)->start + (*link)->size + GAP;
		link = &(*link)->next;
	}
	return NULL;
}

void *
gs_vmem_alloc(size_t size)
{
	struct region *region = calloc(1, sizeof(*region));
	struct region *placed = NULL;

	if (region && size <= GS_VA_END - GS_VA_INTERNAL) {
		region->size = ((size ? size : 1) + PAGE - 1) & ~(PAGE - 1);
		pthread_mutex_lock(&lock);
		placed = place(region);
		pthread_mutex_unlock(&lock);
	}
	if (!placed) {
		free(region);
		return NULL;
	}
	return (void *)(uintptr_t)placed->start;
}

void
gs_vmem_free(void *memory)
{
	struct region **link = &regions;
	struct region *region;

	if (!memory)
		return;
	pthread_mutex_lock(&lock);
	while (*link && (*link)->start != (uint64_t)(uintptr_t)memory)
		link = &(*link)->next;
	region = *link;
	if (region) {
		munmap(memory, region->size);
		*link = region->next;
	}
	pthread_mutex_unlock(&lock);
	free(region);
}
