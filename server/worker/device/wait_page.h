/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pinned memory that the GPU writes markers to, a page of slots for each session.  Pages are cut
 * from larger pieces that are kept: pinning memory may wait for every kernel on the GPU, so a new
 * session shall not have to.  Any thread.
 */
#ifndef GPD_WAIT_PAGE_H
#define GPD_WAIT_PAGE_H

#include <cuda.h>
#include <stdint.h>

#define GPD_MARKER_PAGE_SLOTS 2048

struct gpd_marker_page {
	struct gpd_marker_page *next; /* while nobody has it */
	volatile uint32_t *host;
	CUdeviceptr device;
};

/* Has a first piece ready; once, with a context current. */
CUresult gpd_marker_page_setup(void);

/* Full of zeros; NULL: no memory. */
struct gpd_marker_page *gpd_marker_page_acquire(void);
/* No stream will write to it any more.  Accepts NULL. */
void gpd_marker_page_release(struct gpd_marker_page *page);

#endif /* GPD_WAIT_PAGE_H */
