/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marker pages: pinned memory that the GPU writes markers to, a page of slots at a time. All
 * devices of the worker can write to a page. Pages are cut from larger allocations that are never
 * freed: pinning memory may wait for every kernel on the GPU, and a new session must not wait for
 * that.
 *
 * Ownership: a page belongs to its caller from acquire to release.
 * Threads: any.
 */
#ifndef GPD_MARKER_PAGE_H
#define GPD_MARKER_PAGE_H

#include <cuda.h>
#include <stdint.h>

/* Number of slots of a page. */
#define GPD_MARKER_PAGE_SLOTS 2048

/* A page of GPD_MARKER_PAGE_SLOTS 32-bit slots. */
struct gpd_marker_page {
	struct gpd_marker_page *next; /* next in the free list; used while the page is free */
	volatile uint32_t *host;      /* its address for the CPU */
	CUdeviceptr device;           /* its address for the GPU */
};

/* Allocates the first pages, enough for about sixty sessions, unless there are some. Called once,
 * by gpd_devices_start(), with a context current. Returns CUDA_SUCCESS or the driver's error. */
CUresult gpd_marker_page_setup(void);

/* Returns a page of zeros, which the caller releases with gpd_marker_page_release(); NULL: out of
 * memory. A context must be current: if no page is free, the function pins memory, which may block
 * until all kernels have ended. Other callers then block as well. */
struct gpd_marker_page *gpd_marker_page_acquire(void);
/* Returns the page to the free list. All writes to it that were enqueued must be done. Accepts
 * NULL. */
void gpd_marker_page_release(struct gpd_marker_page *page);

#endif /* GPD_MARKER_PAGE_H */
