/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of changed words (host_changes.h) in which single bytes are unchanged (protocol/wire.md,
 * 11): the receiver preserves its own value of these bytes, because a host thread and a kernel may
 * write different bytes of one word.
 *
 * A run of at most 32 bytes has a mask of its unchanged bytes in its head. A longer run is packed:
 * it lies within 2048 aligned bytes and consists of blocks of 32 aligned bytes. One bitmap marks
 * the blocks with unchanged bytes; a mask of these precedes such a block, unless a second bitmap
 * marks it as equal to the previous mask.
 *
 * Ownership: all memory is the caller's.
 * Threads: any; pure functions on the passed memory.
 */
#ifndef GP_PROTOCOL_HOST_MERGE_H
#define GP_PROTOCOL_HOST_MERGE_H

#include "protocol/host_changes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Appends the bytes as one or more runs, without those at both ends that equal the shadow. The
 * capacity of `changes` must suffice for three plain runs of this size. Neither `bytes` nor
 * `shadow` may change during the call. */
void gp_merge_write(struct gp_changes *changes, uint64_t address, const void *bytes,
		    const void *shadow, size_t size);

/* Returns whether a run with packed size, as decoded by gp_changes_next(), is valid. */
bool gp_merge_is_valid(const struct gp_change *packed);
/* Calls store() for each part of a valid packed run, in ascending order. *change is valid during
 * the call. */
void gp_merge_for_each(const struct gp_change *packed,
		       void (*store)(void *arg, const struct gp_change *change), void *arg);

/* Returns the mask of unchanged bytes for `size` bytes of a run from offset `at` on, given the
 * run's mask. */
static inline uint32_t
gp_merge_get_bits(uint32_t same, size_t at, size_t size)
{
	if (!same)
		return 0;
	same >>= at;
	return size < 32 ? same & ((UINT32_C(1) << size) - 1) : same;
}

/* Copies the bytes that are not set in the mask `same`. No other thread may use either memory. */
void gp_merge_copy(void *to, const void *from, size_t size, uint32_t same);
/* Stores the bytes that are not set in the mask `same` into memory that other threads and a GPU
 * write concurrently; the others keep their value. An aligned word of 4 bytes is stored by a single
 * access. */
void gp_merge_store(void *to, const void *from, size_t size, uint32_t same);

#endif /* GP_PROTOCOL_HOST_MERGE_H */
