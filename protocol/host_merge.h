/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of changed words (host_changes.h) in which single bytes are unchanged (protocol/wire.md,
 * 11): the receiver preserves its own value of these bytes, because a host thread and a kernel may
 * write different bytes of one word.
 *
 * A run of at most 32 bytes has a mask of its unchanged bytes in its head: bit i for byte i. A
 * longer run with unchanged bytes is packed: it lies within 2048 aligned bytes and consists of
 * blocks of 32 aligned bytes. A bitmap at its beginning marks the blocks that have unchanged bytes,
 * and their mask precedes each of these blocks. A second bitmap marks the blocks without a mask of
 * their own, because it would equal the previous one.
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

/* Appends the bytes as one or more runs, with those that equal the shadow marked as unchanged.
 * Appends nothing if there are at most 32 bytes and all are unchanged. The caller ensures that the
 * capacity of `changes` suffices for three plain runs of this size, and that neither `bytes` nor
 * `shadow` changes during the call. */
void gp_merge_write(struct gp_changes *changes, uint64_t address, const void *bytes,
		    const void *shadow, size_t size);

/* Returns whether a packed run (packed->packed is not 0) that gp_changes_next() has decoded is
 * valid. The run may come from the network. */
bool gp_merge_is_valid(const struct gp_change *packed);
/* Calls store() for each changed part of a packed run that gp_merge_is_valid() has accepted, in
 * ascending order. *change is not packed, and valid during the call of store(). */
void gp_merge_for_each(const struct gp_change *packed,
		       void (*store)(void *arg, const struct gp_change *change), void *arg);

/* Returns the mask of unchanged bytes for `size` bytes of a run from offset `at` on. same: the
 * run's mask; if it is not 0, at is below 32. */
static inline uint32_t
gp_merge_get_bits(uint32_t same, size_t at, size_t size)
{
	if (!same)
		return 0;
	same >>= at;
	return size < 32 ? same & ((UINT32_C(1) << size) - 1) : same;
}

/* Copies the bytes whose bit in the mask `same` is not set. If same is not 0, size is at most 32.
 * No other thread may use either memory. */
void gp_merge_copy(void *to, const void *from, size_t size, uint32_t same);
/* Stores the bytes whose bit in the mask `same` is not set into memory that other threads and a GPU
 * write concurrently; the other bytes keep their value. If same is not 0, size is at most 32.
 * Changed bytes of an aligned word of 4 bytes are stored by a single access. */
void gp_merge_store(void *to, const void *from, size_t size, uint32_t same);

#endif /* GP_PROTOCOL_HOST_MERGE_H */
