/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listed copies: parts of copies to the device whose staged bytes may still be replaced.
 *
 * CUDA reads pinned memory when the stream reaches the copy. The client sends the bytes early, so
 * that a copy costs no round trip. If a kernel before the copy may wait for a word of the program's
 * memory, the program may fill the source until it stores that word. The client then sends the
 * filled source again (gpCopyReplace) before the word, and the staged bytes are overwritten in
 * place.
 *
 * Ownership: the session's staging owns the list; a part is removed before its slot is released.
 * Threads: the executor adds and replaces; the responder and the data lanes drop.
 * Errors: only gpd_listed_add() can fail.
 */
#ifndef GPD_LISTED_COPY_H
#define GPD_LISTED_COPY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpd_slot;

struct gpd_listed_part {
	struct gpd_listed_part *prev, *next;
	const struct gpd_slot *slot;
	uint32_t number; /* of the record; a number is reused only after its copy is done */
	uint64_t offset; /* in the packed bytes of the record */
	uint8_t *memory;
	size_t size;
};

struct gpd_listed {
	pthread_mutex_t lock;
	struct gpd_listed_part *parts;
};

void gpd_listed_init(struct gpd_listed *listed);
void gpd_listed_fini(struct gpd_listed *listed);

/* Adds a copy of *part. false: out of memory. */
bool gpd_listed_add(struct gpd_listed *listed, const struct gpd_listed_part *part);
/* Removes the parts in this slot. */
void gpd_listed_drop(struct gpd_listed *listed, const struct gpd_slot *slot);
/* Overwrites these bytes of the record where they are listed; bytes that are no longer listed are
 * skipped. */
void gpd_listed_replace(struct gpd_listed *listed, uint32_t number, uint64_t offset,
			const void *bytes, size_t size);

#endif /* GPD_LISTED_COPY_H */
