/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory as cuMemCreate makes it: a memfd, so that it can be exported and outlive the
 * process. Handles and mappings count as references. Any thread may call.
 */
#ifndef GS_ALLOCATION_H
#define GS_ALLOCATION_H

#include "softgpu/driver/driver.h"

struct gs_allocation;

/* A new reference, or NULL. */
struct gs_allocation *gs_allocation_get(CUmemGenericAllocationHandle handle);
void gs_allocation_put(struct gs_allocation *allocation);
/* GS_HOST: it is the host's, and no device is charged for it. */
#define GS_HOST (-1)
int gs_allocation_device(const struct gs_allocation *allocation);
/* Whether a location of memory or of access is the host. */
bool gs_is_host(const CUmemLocation *location);
size_t gs_allocation_size(const struct gs_allocation *allocation);
/* Made with CU_MEM_CREATE_USAGE_TILE_POOL: for sparse arrays, and mapped nowhere else. */
bool gs_allocation_is_for_tiles(const struct gs_allocation *allocation);
int gs_allocation_fd(const struct gs_allocation *allocation);

/* Drops the handles that are left. */
void gs_allocation_destroy_all(void);

#endif /* GS_ALLOCATION_H */
