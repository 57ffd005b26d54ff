/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pointer attributes that affect other calls (cuPointerSetAttribute).
 *
 * Threads: any thread may call.
 */
#ifndef GPC_POINTER_H
#define GPC_POINTER_H

#include <stdbool.h>
#include <stdint.h>

/* Returns whether copies and fills of the memory at the address must have ended when the call
 * returns, also where CUDA usually lets them run on: CU_POINTER_ATTRIBUTE_SYNC_MEMOPS is set, or
 * other processes can access the memory. Functions that are asynchronous by name do not call
 * this. */
bool gpc_pointer_is_synchronous(uint64_t address);

#endif /* GPC_POINTER_H */
