/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pointer attributes (cuPointerSetAttribute) that affect other calls.
 *
 * Threads: any thread may call.
 */
#ifndef GPC_POINTER_H
#define GPC_POINTER_H

#include <stdbool.h>
#include <stdint.h>

/* Returns whether copies and fills of this memory are synchronous unless the function is
 * asynchronous by name: CU_POINTER_ATTRIBUTE_SYNC_MEMOPS is set, or other processes can access the
 * memory. */
bool gpc_pointer_is_synchronous(uint64_t address);

#endif /* GPC_POINTER_H */
