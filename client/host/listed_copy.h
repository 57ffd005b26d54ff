/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listed copies: copies from pinned memory that were sent early and may have to be corrected.
 *
 * Example: a kernel polls a flag in replicated memory (coherence.h); a copy follows it in the
 * stream; the program fills the source and then sets the flag. CUDA reads the source after that,
 * but the client has already sent it: it cannot know whether a kernel waits, so it sends the data
 * at once, without a round trip, and corrects it if necessary.
 *
 * While work is in progress that may be such a kernel, each early copy is listed. Before changes of
 * replicated memory are published, the sources of the listed copies are sent again (gpCopyReplace):
 * all bytes the first time, then those that differ. After the first time, the session's copies
 * become late copies (late_copy.h) while such work is in progress, and so do copies that do not fit
 * into the list.
 *
 * Ownership: the coherence state of the session (coherence_internal.h) owns the list. Sources are
 * borrowed; gpc_listed_copies_drop() must be called before they are freed.
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note). The coherence state's send_lock guards the
 * list; calls posted under it are in the order of the list.
 * Units: bytes.
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

/* The list of a session. A zeroed struct is empty. */
struct gpc_listed_copies {
	struct gpc_listed_record *records; /* owned, oldest first; NULL: none */
	unsigned int count;                /* length of the list */
	/* bytes of the worker's staging memory (pinned memory through which copies go) that the
	 * listed copies use, at most GP_LISTED_ROOM (protocol/frame.h) */
	uint64_t room;
	/* number of the record that was listed last; 0: none */
	uint32_t last_number;
	/* sources were sent again at least once, so no more copies are listed; initially false,
	 * never cleared */
	bool polled;
};

/* The source of one record (call on the wire): `rows` rows of `width` bytes (neither is 0), whose
 * starts in memory are `pitch` bytes apart. In the record the rows are contiguous. */
struct gpc_listed_rows {
	const uint8_t *base; /* first byte; in memory of the program */
	uint64_t pitch, width, rows;
	/* the data is sent over data lanes (client/session/lane.h), after the record */
	bool on_lanes;
};

/* Returns whether a kernel in progress may be waiting for a value in replicated memory, so that the
 * caller of a copy must call gpc_listed_copy_begin(). Does not query the daemon. */
bool gpc_listed_copy_is_needed(struct gpc_session *session);

/* Called before a copy is posted, after gpc_listed_copy_is_needed() has returned true. The copy has
 * at most `records` records, which need at most `room` bytes of the worker's staging memory.
 * Returns the coherence state with send_lock held; gpc_listed_copy_end() must follow on every path.
 * Returns NULL, without the lock, if the copy must be a late copy: the daemon does not support
 * gpCopyReplace, `polled` is set, or the list has no room. */
struct gpc_coherence *gpc_listed_copy_begin(struct gpc_session *session, uint64_t records,
					    uint64_t room) GP_LOCK_UNCHECKED;
/* Called before each record of the copy is posted: lists it. *rows is copied. room: bytes of
 * staging memory that the record needs. Returns its number, from 1 to GP_COPY_NUMBERS - 1
 * (protocol/frame.h) and then from 1 again, which is sent in the record. Returns 0 if memory is
 * exhausted; the record is then not listed, and cannot be corrected. */
uint32_t gpc_listed_copy_add(struct gpc_coherence *coherence, const struct gpc_listed_rows *rows,
			     uint64_t room) GP_LOCK_UNCHECKED;
/* Ends a copy, whose records were posted or could not be, and releases send_lock. */
void gpc_listed_copy_end(struct gpc_coherence *coherence) GP_LOCK_UNCHECKED;

/* Sends the sources of the listed copies again. Called with send_lock held, after changes of
 * replicated memory were read and before they are posted. May wait until data lanes have sent their
 * data. Returns CUDA_SUCCESS, also if the list is empty, or the session's error. */
CUresult gpc_listed_copies_replace(struct gpc_coherence *coherence);
/* Drops the records, of all sessions, that read from [base, base + size), which is about to be
 * freed; they are not corrected any more. Called without send_lock, which it acquires. */
void gpc_listed_copies_drop(const void *base, uint64_t size);

#endif /* GPC_LISTED_COPY_H */
