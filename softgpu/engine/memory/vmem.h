/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocator of device-visible memory for the engine itself, in GS_VA_INTERNAL..GS_VA_END. An
 * allocation consists of whole pages, zeroed, and is followed by 1 MiB of inaccessible addresses.
 *
 * Threads: any.
 */
#ifndef GS_VMEM_H
#define GS_VMEM_H

#include <stddef.h>

/* Returns memory of at least `size` bytes, which the caller frees with gs_vmem_free(). NULL: memory
 * or addresses are exhausted. */
void *gs_vmem_alloc(size_t size);
void gs_vmem_free(void *memory);

#endif
