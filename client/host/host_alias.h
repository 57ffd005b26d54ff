/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of host memory that the program registers: whether it is mapped at several addresses, and
 * whether a device could pin it.
 *
 * A file mapped twice cannot be made accessible to kernels at both addresses, because each mapping
 * would have a replica of its own at the daemon (docs/host-memory.md). Memory that the Linux kernel
 * would not pin is rejected, as with NVIDIA's driver.
 * Threads: any.
 * Source: /proc/self/maps.
 */
#ifndef GPC_HOST_ALIAS_H
#define GPC_HOST_ALIAS_H

#include <stdbool.h>
#include <stdint.h>

/* Returns whether another mapping [start, end) of the same memory matters to the caller. arg: as
 * passed to gpc_host_alias_find(). */
typedef bool gpc_host_alias_filter(void *arg, uint64_t start, uint64_t end);

/* Returns the lowest address of another mapping (alias) of memory of [address, address + size), if
 * the alias overlaps the range itself or the filter accepts it. Returns 0 if there is none, or if
 * /proc/self/maps cannot be read. Only shared mappings of files are found. */
uint64_t gpc_host_alias_find(uint64_t address, uint64_t size, gpc_host_alias_filter *matters,
			     void *arg);

/* Returns whether [address, address + size) can be pinned for a device that writes to it, or only
 * reads it if read_only is set. Memory that the program itself may not write cannot be pinned for
 * writing, nor can, since Linux 6.5, shared mappings of files on a disk. Returns true if
 * /proc/self/maps cannot be read. */
bool gpc_host_alias_is_pinnable(uint64_t address, uint64_t size, bool read_only);

#endif /* GPC_HOST_ALIAS_H */
