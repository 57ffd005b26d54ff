/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of sizes and addresses. Threads: any. */
#ifndef GPD_INTEGERS_H
#define GPD_INTEGERS_H

#include <stdint.h>

/* Returns the smaller number. */
static inline uint64_t
gpd_u64_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Returns the value rounded up to a multiple of `to`, which is not 0. The caller ensures that value
 * + to - 1 does not overflow. */
static inline uint64_t
gpd_round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

/* Returns an address that is the same in this process as a pointer. */
static inline void *
gpd_address_to_pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

#endif /* GPD_INTEGERS_H */
