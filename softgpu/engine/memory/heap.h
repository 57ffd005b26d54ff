/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implementation of malloc and free in kernels. A NULL heap has no memory.
 *
 * Threads: any worker.
 */
#ifndef GS_HEAP_H
#define GS_HEAP_H

#include "softgpu/engine/engine.h"

/* Returns the device address, or 0. */
uint64_t gs_heap_alloc(struct gs_heap *heap, uint64_t size);
/* Returns false if the address was not returned by gs_heap_alloc(). */
bool gs_heap_free(struct gs_heap *heap, uint64_t address);

#endif
