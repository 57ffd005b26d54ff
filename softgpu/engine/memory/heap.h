/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implementation of malloc and free in kernels. struct gs_heap is created with gs_heap_create()
 * (engine.h).
 *
 * Threads: any; the heap has a lock.
 * Units: bytes.
 */
#ifndef GS_HEAP_H
#define GS_HEAP_H

#include "softgpu/engine/engine.h"

/* Returns the device address, or 0 for size 0, a NULL heap, or if there is no free range of that
 * size. */
uint64_t gs_heap_alloc(struct gs_heap *heap, uint64_t size);
/* Frees an allocation. Returns true, or false if the heap is NULL or the address is not an
 * allocation. */
bool gs_heap_free(struct gs_heap *heap, uint64_t address);

#endif
