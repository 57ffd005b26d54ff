/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory as created by cuMemCreate(): a memfd, so that it can be exported to other
 * processes and outlive this one.
 *
 * Ownership: reference counted (object.h). The handle has one reference per cuMemCreate(), import
 * or retain, and each mapping has one.
 * Threads: any.
 */
#ifndef GS_ALLOCATION_H
#define GS_ALLOCATION_H

#include "softgpu/driver/driver.h"

struct gs_allocation;

/* Returns a new reference, which gs_allocation_put() drops. NULL: unknown handle. */
struct gs_allocation *gs_allocation_get(CUmemGenericAllocationHandle handle);
void gs_allocation_put(struct gs_allocation *allocation);
/* Returns the device that the memory is charged to, or GS_HOST for host memory, which is not
 * charged to a device. */
#define GS_HOST (-1)
int gs_allocation_device(const struct gs_allocation *allocation);
/* Returns whether a memory or access location is the host (of any NUMA node). */
bool gs_is_host(const CUmemLocation *location);
/* Returns the size in bytes. */
size_t gs_allocation_size(const struct gs_allocation *allocation);
/* Returns whether the memory was created with CU_MEM_CREATE_USAGE_TILE_POOL. It is then for sparse
 * arrays and cannot be mapped elsewhere. */
bool gs_allocation_is_for_tiles(const struct gs_allocation *allocation);
/* Returns the memfd, which belongs to the allocation. The caller must not close it. */
int gs_allocation_fd(const struct gs_allocation *allocation);

/* Drops the references of all handles when the context ends. Mapped memory stays allocated until it
 * is unmapped. */
void gs_allocation_destroy_all(void);

#endif /* GS_ALLOCATION_H */
