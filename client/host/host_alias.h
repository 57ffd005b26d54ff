/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether memory is there twice: a file that is mapped at several addresses.  What kernels write at
 * one of them they would not find at the other, as each has a copy of its own at the daemon
 * (docs/host-memory.md).
 *
 * And whether the kernel would pin memory for a device, as NVIDIA's driver has it do when the
 * program registers the memory.
 *
 * Source: /proc/self/maps.  Threads: any.
 */
#ifndef GPC_HOST_ALIAS_H
#define GPC_HOST_ALIAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether something that matters lies in [start, end). */
typedef bool gpc_host_alias_filter(void *arg, uint64_t start, uint64_t end);

/* The lowest address at which memory of [address, address + size) is once more, within that range
 * itself or where it matters; 0: there is none, or the kernel does not tell. */
uint64_t gpc_host_alias_find(uint64_t address, uint64_t size, gpc_host_alias_filter *matters,
			     void *arg);

/* Whether [address, address + size) can be pinned, for a device that writes it unless read_only:
 * not what the program may not write itself, nor a shared mapping of a file on a disk.  Where that
 * is not known, true. */
bool gpc_host_alias_is_pinnable(uint64_t address, uint64_t size, bool read_only);

#endif /* GPC_HOST_ALIAS_H */
