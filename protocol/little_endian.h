/* SPDX-License-Identifier: Apache-2.0 */
/* Reads little-endian numbers, which need not be aligned. Threads: any; pure functions. */
#ifndef GP_LITTLE_ENDIAN_H
#define GP_LITTLE_ENDIAN_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t
gp_read_le32(const void *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return le32toh(value);
}

static inline uint64_t
gp_read_le64(const void *at)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return le64toh(value);
}

#endif /* GP_LITTLE_ENDIAN_H */
