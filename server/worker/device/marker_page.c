/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/device/marker_page.h"

#include "base/lock.h"
#include "server/worker/device/driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <utlist.h>

#define PAGE_SIZE_BYTES (GPD_MARKER_PAGE_SLOTS * sizeof(uint32_t))
/* Enough for about sixty sessions. */
#define PIECE_PAGES 192

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpd_marker_page *free_pages GP_GUARDED_BY(lock);

static CUresult
add_piece(void) GP_LOCKED(lock)
{
	void *host = NULL;
	CUdeviceptr device = 0;
	struct gpd_marker_page *pages;
	CUresult result =
		gpd_driver.cuMemHostAlloc(&host, PIECE_PAGES * PAGE_SIZE_BYTES,
					  CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);

	if (result != CUDA_SUCCESS)
		return result;
	result = gpd_driver.cuMemHostGetDevicePointer_v2(&device, host, 0);
	if (result != CUDA_SUCCESS) {
		(void)gpd_driver.cuMemFreeHost(host);
		return result;
	}
	/* Never freed: it stays for the life of the process. */
	pages = calloc(PIECE_PAGES, sizeof(*pages));
	for (size_t i = 0; pages && i < PIECE_PAGES; i++) {
		pages[i].host = (volatile uint32_t *)((char *)host + i * PAGE_SIZE_BYTES);
		pages[i].device = device + i * PAGE_SIZE_BYTES;
		LL_PREPEND(free_pages, &pages[i]);
	}
	return CUDA_SUCCESS;
}

CUresult
gpd_marker_page_setup(void)
{
	CUresult result;

	pthread_mutex_lock(&lock);
	result = free_pages ? CUDA_SUCCESS : add_piece();
	pthread_mutex_unlock(&lock);
	return result;
}

struct gpd_marker_page *
gpd_marker_page_acquire(void)
{
	struct gpd_marker_page *page;

	pthread_mutex_lock(&lock);
	if (!free_pages)
		(void)add_piece();
	page = free_pages;
	if (page)
		free_pages = page->next;
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; page && i < GPD_MARKER_PAGE_SLOTS; i++)
		page->host[i] = 0;
	return page;
}

void
gpd_marker_page_release(struct gpd_marker_page *page)
{
	if (!page)
		return;
	pthread_mutex_lock(&lock);
	LL_PREPEND(free_pages, page);
	pthread_mutex_unlock(&lock);
}
