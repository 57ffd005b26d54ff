/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device-visible memory of the engine itself, in GS_VA_INTERNAL..GS_VA_END. Any thread may call.
 * A block is whole pages, zeroed, and is followed by 1 MiB that no access may touch.
 */
#ifndef GS_VMEM_H
#define GS_VMEM_H

#include <stddef.h>

/* NULL when memory or addresses run out. */
void *gs_vmem_alloc(size_t size);
void gs_vmem_free(void *memory);

#endif
