/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marker pages: pinned memory that the GPU writes markers to, a page of slots at a time. Pages are
 * cut from larger allocations that are never freed: pinning memory may wait for every kernel on the
 * GPU, and a new session must not wait for that.
 *
 * Ownership: a page belongs to its caller from acquire to release.
 * Threads: any.
 * Errors: CUresult or NULL.
 */
#ifndef GPD_MARKER_PAGE_H
#define GPD_MARKER_PAGE_H

#include <cuda.h>
#include <stdint.h>

#define GPD_MARKER_PAGE_SLOTS 2048

/* A page of GPD_MARKER_PAGE_SLOTS 32-bit slots, by its host and device address. */
struct gpd_marker_page {
	struct gpd_marker_page *next; /* while it is in the free list */
	volatile uint32_t *host;
	CUdeviceptr device;
};

/* Allocates the first pages; to be called once, with a context current. */
CUresult gpd_marker_page_setup(void);

/* Returns a page of zeros. NULL: out of memory. */
struct gpd_marker_page *gpd_marker_page_acquire(void);
/* No stream may still write to the page. Accepts NULL. */
void gpd_marker_page_release(struct gpd_marker_page *page);

#endif /* GPD_MARKER_PAGE_H */
