/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marker pages: pinned memory that the GPU writes markers to, a page of slots at a time. Pages are
 * cut from larger allocations that are never freed: pinning memory may wait for every kernel on the
 * GPU, and a new session must not wait for that.
 *
 * Ownership: a page belongs to its caller from acquire to release.
 * Threads: any. gpd_marker_page_acquire() pins memory, with a context current, if no page is free.
 */
#ifndef GPD_MARKER_PAGE_H
#define GPD_MARKER_PAGE_H

#include <cuda.h>
#include <stdint.h>

/* Number of slots of a page. */
#define GPD_MARKER_PAGE_SLOTS 2048

/* A page of GPD_MARKER_PAGE_SLOTS 32-bit slots. */
struct gpd_marker_page {
	struct gpd_marker_page *next; /* free list; used while the page is free */
	volatile uint32_t *host;      /* its address for the CPU */
	CUdeviceptr device;           /* its address for the GPU */
};

/* Allocates the first pages. Called once, with a context current. Returns CUDA_SUCCESS or
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gpd_marker_page_setup(void);

/* Returns a page of zeros, which the caller releases; NULL: out of memory. */
struct gpd_marker_page *gpd_marker_page_acquire(void);
/* Returns the page to the free list. No stream may still write to it. Accepts NULL. */
void gpd_marker_page_release(struct gpd_marker_page *page);

#endif /* GPD_MARKER_PAGE_H */
