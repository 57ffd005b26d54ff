/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listed copies: parts of copies to the device whose staged bytes may still be replaced.
 *
 * In CUDA a copy from pinned memory reads its source when the stream reaches the copy. The client
 * sends the bytes early, so that a copy costs no round trip. If a kernel before the copy may wait
 * for a value in the program's memory, the program may fill the source until it stores that value.
 * The client then sends the filled source again (gpCopyReplace) before the value, and the staged
 * bytes are overwritten in place.
 *
 * Ownership: the session's staging (staging.h) owns the list; a part is removed before its slot is
 * released.
 * Threads: the executor adds and replaces; the thread that releases the slot drops: the responder,
 * the executor, or the thread that closes the session. The list has its own lock.
 * Errors: only gpd_listed_add() can fail.
 */
#ifndef GPD_LISTED_COPY_H
#define GPD_LISTED_COPY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpd_slot;

/* A part of a listed copy. */
struct gpd_listed_part {
	struct gpd_listed_part *prev, *next; /* list gpd_listed.parts; a utlist */
	const struct gpd_slot *slot;         /* staging slot that contains it */
	/* client's number of the copy (GP_COPY_NUMBER_SHIFT, protocol/frame.h), which it reuses
	 * only after the copy is done */
	uint32_t number;
	/* offset in the bytes of the record's copy, whose rows follow one another without gaps */
	uint64_t offset;
	uint8_t *memory; /* its bytes in the slot */
	size_t size;     /* bytes of memory */
};

/* The listed parts of a session. */
struct gpd_listed {
	pthread_mutex_t lock;
	struct gpd_listed_part *parts; /* utlist; owned; lock */
};

/* Makes the list empty. */
void gpd_listed_init(struct gpd_listed *listed);
/* Frees all parts that are left; no other thread may use the list. */
void gpd_listed_fini(struct gpd_listed *listed);

/* Adds a copy of *part. prev and next are ignored. Returns false, and adds nothing, if out of
 * memory. */
bool gpd_listed_add(struct gpd_listed *listed, const struct gpd_listed_part *part);
/* Removes the parts in this slot. */
void gpd_listed_drop(struct gpd_listed *listed, const struct gpd_slot *slot);
/* Overwrites the size bytes at this offset of copy `number`, as far as they are listed; other bytes
 * are skipped. offset + size must not overflow; gpd_gpCopyReplace() checks the client's numbers. */
void gpd_listed_replace(struct gpd_listed *listed, uint32_t number, uint64_t offset,
			const void *bytes, size_t size);

#endif /* GPD_LISTED_COPY_H */
