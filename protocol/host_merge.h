/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of changed words in which single bytes are unchanged (protocol/wire.md): the other end keeps
 * its own value of these bytes.  A host and a kernel may write different bytes of one word.
 *
 * A run of at most 32 bytes names its unchanged bytes in its head.  A longer run is packed: it lies
 * within 2048 aligned bytes and consists of blocks of 32 aligned bytes.  One bitmap names the
 * blocks with unchanged bytes; a mask of these precedes such a block, unless a second bitmap says
 * that it equals the mask before.
 *
 * Threads: any; all memory is the caller's.
 */
#ifndef GP_PROTOCOL_HOST_MERGE_H
#define GP_PROTOCOL_HOST_MERGE_H

#include "protocol/host_changes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Appends a run, without what equals the shadow at both ends of it, as one run or several.  They
 * occupy at most three times the room of one plain run. */
void gp_merge_write(struct gp_changes *changes, uint64_t address, const void *bytes,
		    const void *shadow, size_t size);

/* Whether a packed run can be unpacked. */
bool gp_merge_is_valid(const struct gp_change *packed);
/* Calls store() for each part of a sound packed run, in ascending order. */
void gp_merge_for_each(const struct gp_change *packed,
		       void (*store)(void *arg, const struct gp_change *change), void *arg);

/* The bits of `same` for some of a run's bytes. */
static inline uint32_t
gp_merge_get_bits(uint32_t same, size_t at, size_t size)
{
	if (!same)
		return 0;
	same >>= at;
	return size < 32 ? same & ((UINT32_C(1) << size) - 1) : same;
}

/* Copies the changed bytes; both are memory that no other thread uses. */
void gp_merge_copy(void *to, const void *from, size_t size, uint32_t same);
/* Stores the changed bytes into memory that other threads and a GPU write meanwhile: their bytes
 * stay.  An aligned word of 4 bytes is stored at once. */
void gp_merge_store(void *to, const void *from, size_t size, uint32_t same);

#endif /* GP_PROTOCOL_HOST_MERGE_H */
