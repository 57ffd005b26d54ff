/* SPDX-License-Identifier: Apache-2.0 */
/* What malloc and free of kernels do. Any worker may call; a NULL heap has no memory. */
#ifndef GS_HEAP_H
#define GS_HEAP_H

#include "softgpu/engine/engine.h"

/* The device address, or 0. */
uint64_t gs_heap_alloc(struct gs_heap *heap, uint64_t size);
/* False: the address is not one that gs_heap_alloc gave. */
bool gs_heap_free(struct gs_heap *heap, uint64_t address);

#endif
