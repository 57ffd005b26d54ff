/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listed copies: copies from pinned memory that were sent early and may have to be corrected.
 *
 * CUDA reads the source of an asynchronous copy from pinned memory when the stream reaches the
 * copy.  A kernel before the copy may wait for a word of replicated memory (mirror.h), and the
 * program may fill the source until it stores that word.  Programs that do so find the filled
 * source in device memory, and all others (a training step of cuDNN, which maps two words) have
 * their bytes sent at once and pay no round trip.
 *
 * While work is under way that may be such a kernel, each early copy is listed.  Before changed
 * words are published, the sources of the listed copies are sent again (gpCopyReplace): all bytes
 * the first time, then those that differ.  From the first time on the session's copies are late
 * copies (late_copy.h) while such work is under way, and so are copies that do not fit into the
 * list.
 *
 * Ownership: a session's mirror has the list, its send_lock guards the list, and what is posted
 * with the lock is in the order of the list.
 * Threads: any but the reader of the connection.
 */
#ifndef GPC_LISTED_COPY_H
#define GPC_LISTED_COPY_H

#include "base/lock.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_listed_record;
struct gpc_coherence;
struct gpc_session;

struct gpc_listed_copies {
	struct gpc_listed_record *records; /* the oldest first */
	unsigned int count;
	uint64_t room; /* that they take of GP_LISTED_ROOM */
	uint32_t last_number;
	bool polled; /* they were sent again */
};

/* What one record brings: rows of host memory, packed. */
struct gpc_listed_rows {
	const uint8_t *base;
	uint64_t pitch, width, rows;
	bool on_lanes; /* their bytes go over data lanes, after the record was posted */
};

/* Whether a kernel that is under way may wait for a word of replicated memory. */
bool gpc_listed_copy_is_needed(struct gpc_session *session);

/*
 * Before a copy of at most so many records is posted, which take at most so much staging memory of
 * the worker.  NULL: it is to be a late copy; else the mirror's send_lock is held until
 * gpc_listed_copy_end().
 */
struct gpc_coherence *gpc_listed_copy_begin(struct gpc_session *session, uint64_t records,
					    uint64_t room) GP_LOCK_UNCHECKED;
/* The number of one of its records, which is posted next; 0: no memory. */
uint32_t gpc_listed_copy_add(struct gpc_coherence *coherence, const struct gpc_listed_rows *rows,
			     uint64_t room) GP_LOCK_UNCHECKED;
void gpc_listed_copy_end(struct gpc_coherence *coherence) GP_LOCK_UNCHECKED;

/* After changed words were read, and before they are posted; with the mirror's send_lock. */
CUresult gpc_listed_copies_replace(struct gpc_coherence *coherence);
/* Drops the records that read from [base, base + size), which is about to go. */
void gpc_listed_copies_drop(const void *base, uint64_t size);

#endif /* GPC_LISTED_COPY_H */
