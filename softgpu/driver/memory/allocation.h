/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory as created by cuMemCreate(): a memfd, so that it can be exported and outlive the
 * process.
 *
 * Ownership: reference counted; handles and mappings are references.
 * Threads: any.
 */
#ifndef GS_ALLOCATION_H
#define GS_ALLOCATION_H

#include "softgpu/driver/driver.h"

struct gs_allocation;

/* Returns a new reference, or NULL. */
struct gs_allocation *gs_allocation_get(CUmemGenericAllocationHandle handle);
void gs_allocation_put(struct gs_allocation *allocation);
/* GS_HOST: host memory, which is not charged to a device. */
#define GS_HOST (-1)
int gs_allocation_device(const struct gs_allocation *allocation);
/* Whether a memory or access location is the host. */
bool gs_is_host(const CUmemLocation *location);
size_t gs_allocation_size(const struct gs_allocation *allocation);
/* Created with CU_MEM_CREATE_USAGE_TILE_POOL: for sparse arrays, and cannot be mapped elsewhere. */
bool gs_allocation_is_for_tiles(const struct gs_allocation *allocation);
int gs_allocation_fd(const struct gs_allocation *allocation);

/* Drops the remaining handles. */
void gs_allocation_destroy_all(void);

#endif /* GS_ALLOCATION_H */
