/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listed copies: copies from pinned memory that were sent early and may have to be corrected.
 *
 * CUDA reads the source of an asynchronous copy from pinned memory when the stream reaches the
 * copy. A kernel before the copy may wait for a value in replicated memory (coherence.h), and the
 * program may fill the source until it stores that value. For programs that do so, the filled
 * source reaches device memory; for all others (such as a training step of cuDNN, which maps two
 * words) the data is sent at once, without a round trip.
 *
 * While work is in progress that may be such a kernel, each early copy is listed. Before changes of
 * replicated memory are published, the sources of the listed copies are sent again (gpCopyReplace):
 * all bytes the first time, then those that differ. After the first time, the session's copies
 * become late copies (late_copy.h) while such work is in progress, and so do copies that do not fit
 * into the list.
 *
 * Ownership: the list belongs to the session's coherence state.
 * Threads: any but the reader of the connection. The coherence state's send_lock guards the list;
 * calls posted under it are in the order of the list.
 */
#ifndef GPC_LISTED_COPY_H
#define GPC_LISTED_COPY_H

#include "base/lock.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_listed_record;
struct gpc_coherence;
struct gpc_session;

/* The list of a session. */
struct gpc_listed_copies {
	struct gpc_listed_record *records; /* oldest first */
	unsigned int count;
	uint64_t room; /* bytes of GP_LISTED_ROOM in use */
	uint32_t last_number;
	bool polled; /* sources were sent again */
};

/* The source of one record: rows of host memory, packed in the record. */
struct gpc_listed_rows {
	const uint8_t *base;
	uint64_t pitch, width, rows;
	bool on_lanes; /* the data is sent over data lanes, after the record */
};

/* Returns whether a kernel in progress may be waiting for a value in replicated memory. */
bool gpc_listed_copy_is_needed(struct gpc_session *session);

/*
 * Called before a copy is posted as at most `records` records, which need at most `room` bytes of
 * the worker's staging memory. Returns NULL if it must be a late copy; otherwise send_lock is held
 * until gpc_listed_copy_end().
 */
struct gpc_coherence *gpc_listed_copy_begin(struct gpc_session *session, uint64_t records,
					    uint64_t room) GP_LOCK_UNCHECKED;
/* Lists the record that is posted next. Returns its number, or 0 if memory is exhausted. */
uint32_t gpc_listed_copy_add(struct gpc_coherence *coherence, const struct gpc_listed_rows *rows,
			     uint64_t room) GP_LOCK_UNCHECKED;
/* Ends a copy whose records have been posted, and releases send_lock. */
void gpc_listed_copy_end(struct gpc_coherence *coherence) GP_LOCK_UNCHECKED;

/* Sends the sources of the listed copies again. Called with send_lock, after changes were read and
 * before they are posted. */
CUresult gpc_listed_copies_replace(struct gpc_coherence *coherence);
/* Drops the records that read from [base, base + size), which is about to be freed. */
void gpc_listed_copies_drop(const void *base, uint64_t size);

#endif /* GPC_LISTED_COPY_H */
