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

#define GPD_WAIT_PAGE_SLOTS 2048

struct gpd_wait_page {
	volatile uint32_t *host;
	CUdeviceptr device;
};

/* Has a first piece ready; once, with a context current. */
CUresult gpd_wait_page_setup(void);

/* 0 or -ENOMEM. */
int gpd_wait_page_take(struct gpd_wait_page *page_p);
/* No stream will write to it any more. */
void gpd_wait_page_give(const struct gpd_wait_page *page);

#endif /* GPD_WAIT_PAGE_H */
