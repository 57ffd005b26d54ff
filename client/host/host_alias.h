/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of host memory that the program registers: whether it is mapped at several addresses, and
 * whether a device could pin it.
 *
 * A file mapped twice cannot be made accessible to kernels at both addresses, because each mapping
 * would have a replica of its own at the daemon (docs/host-memory.md). Memory that the Linux kernel
 * would not pin is rejected, as with NVIDIA's driver.
 *
 * Threads: any.
 * Source: /proc/self/maps, which each function reads anew.
 */
#ifndef GPC_HOST_ALIAS_H
#define GPC_HOST_ALIAS_H

#include <stdbool.h>
#include <stdint.h>

/* Returns whether [start, end), the part of another mapping that is the same memory, conflicts with
 * the range; gpc_host_alias_find() then returns its start. arg: as passed to that function. */
typedef bool gpc_host_alias_filter(void *arg, uint64_t start, uint64_t end);

/* Returns the address of another mapping (alias) of a part of [address, address + size), if there
 * is one that overlaps this range itself or that the filter accepts. Returns 0 if there is none, or
 * if /proc/self/maps cannot be read. Only shared mappings of files are found, which include shared
 * memory. */
uint64_t gpc_host_alias_find(uint64_t address, uint64_t size, gpc_host_alias_filter *matters,
			     void *arg);

/* Returns whether [address, address + size) can be pinned for a device that reads and writes it or,
 * if read_only is set, only reads it. Memory that the program cannot write cannot be pinned for
 * writing; nor can, since Linux 6.5, shared mappings of files on a device with a major number other
 * than 0. Unmapped parts are ignored. Returns true if /proc/self/maps cannot be read. */
bool gpc_host_alias_is_pinnable(uint64_t address, uint64_t size, bool read_only);

#endif /* GPC_HOST_ALIAS_H */
