/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/device/wait_page.h"

#include "base/lock.h"
#include "server/worker/device/driver.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define PAGE_SIZE_BYTES (GPD_WAIT_PAGE_SLOTS * sizeof(uint32_t))
#define PIECE_PAGES 64

struct node {
	struct node *next;
	struct gpd_wait_page page;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct node *free_pages GP_GUARDED_BY(lock);

static CUresult
add_piece(void) GP_LOCKED(lock)
{
	void *host = NULL;
	CUdeviceptr device = 0;
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
	for (size_t i = 0; i < PIECE_PAGES; i++) {
		struct node *node = malloc(sizeof(*node));

		if (!node)
			break;
		node->page.host = (volatile uint32_t *)((char *)host + i * PAGE_SIZE_BYTES);
		node->page.device = device + i * PAGE_SIZE_BYTES;
		node->next = free_pages;
		free_pages = node;
	}
	return CUDA_SUCCESS;
}

CUresult
gpd_wait_page_setup(void)
{
	CUresult result;

	pthread_mutex_lock(&lock);
	result = add_piece();
	pthread_mutex_unlock(&lock);
	return result;
}

int
gpd_wait_page_take(struct gpd_wait_page *page_p)
{
	struct node *node;

	pthread_mutex_lock(&lock);
	if (!free_pages)
		(void)add_piece();
	node = free_pages;
	if (node)
		free_pages = node->next;
	pthread_mutex_unlock(&lock);
	if (!node)
		return -ENOMEM;
	*page_p = node->page;
	free(node);
	for (size_t i = 0; i < GPD_WAIT_PAGE_SLOTS; i++)
		page_p->host[i] = 0;
	return 0;
}

void
gpd_wait_page_give(const struct gpd_wait_page *page)
{
	struct node *node = malloc(sizeof(*node));

	/* Without memory for its note the page is lost, and only that. */
	if (!node)
		return;
	node->page = *page;
	pthread_mutex_lock(&lock);
	node->next = free_pages;
	free_pages = node;
	pthread_mutex_unlock(&lock);
}
