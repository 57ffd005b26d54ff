/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether memory is there twice: a file that is mapped at several addresses.  What kernels write at
 * one of them they would not find at the other, as each has a copy of its own at the daemon
 * (docs/host-memory.md).
 *
 * Looks at what the kernel says of this process.  Any thread.
 */
#ifndef GPC_HOST_ALIAS_H
#define GPC_HOST_ALIAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether something that matters lies in [start, end). */
typedef bool gpc_host_alias_matters(void *arg, uint64_t start, uint64_t end);

/* The lowest address at which memory of [address, address + size) is once more, within that range
 * itself or where it matters; 0: there is none, or the kernel does not tell. */
uint64_t gpc_host_alias_find(uint64_t address, uint64_t size, gpc_host_alias_matters *matters,
			     void *arg);

#endif /* GPC_HOST_ALIAS_H */
