/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/listed_copy.h"

#include "client/connect/welcome.h"
#include "client/context/fence.h"
#include "client/guard/guard.h"
#include "client/host/coherence.h"
#include "client/host/coherence_internal.h"
#include "client/host/host_block.h"
#include "client/host/late_copy.h"
#include "client/session/lane.h"
#include "client/session/session.h"
#include "gpc_calls.h"
#include "protocol/frame.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* The driver queues only a limited number of copies that cannot start; the next one blocks the
 * worker. */
#define RECORDS_MAX 256

static atomic_uint listed; /* number of records of all sessions */

struct gpc_listed_record {
	struct gpc_listed_record *prev, *next;
	struct gpc_listed_rows rows;
	uint32_t number;
	uint64_t room;
	uint64_t issued; /* gpc_session_issued() after the copy; 0: not posted */
	uint64_t work;   /* gpc_session_work_mark() after the copy; 0: not posted */
	uint8_t *sent;   /* the bytes as last sent again; NULL: never, or memory was exhausted */
};

bool
gpc_listed_copy_is_needed(struct gpc_session *session)
{
	return atomic_load(&gpc_replica_count) > 0 && gpc_late_copy_is_known(session) &&
	       gpc_coherence_find(session) && !gpc_fence_is_redundant(session) &&
	       !gpc_session_is_abandoned(session);
}

static uint64_t
rows_span(const struct gpc_listed_rows *rows)
{
	return (rows->rows - 1) * rows->pitch + rows->width;
}

static void
record_remove(struct gpc_coherence *coherence, struct gpc_listed_record *record)
	GP_LOCKED(coherence->send_lock)
{
	struct gpc_listed_copies *copies = &coherence->listed;

	DL_DELETE(copies->records, record);
	copies->count--;
	copies->room -= record->room;
	atomic_fetch_sub(&listed, 1);
	free(record->sent);
	free(record);
}

/* Removes records of completed copies, whose source the device has read. */
static void
records_prune(struct gpc_coherence *coherence) GP_LOCKED(coherence->send_lock)
{
	uint64_t clean = atomic_load(&coherence->clean);
	uint64_t done = gpc_session_work_done(coherence->session);
	struct gpc_listed_record *record, *next;

	DL_FOREACH_SAFE(coherence->listed.records, record, next)
	{
		if ((record->issued && record->issued <= clean) ||
		    (record->work && record->work <= done))
			record_remove(coherence, record);
	}
}

struct gpc_coherence *
gpc_listed_copy_begin(struct gpc_session *session, uint64_t records,
		      uint64_t room) GP_LOCK_UNCHECKED
{
	struct gpc_coherence *coherence = gpc_coherence_find(session);

	if (!gpc_facts_have_call(gpc_session_facts(session), GP_CALL_gpCopyReplace) ||
	    records > RECORDS_MAX || room > GP_LISTED_ROOM)
		return NULL;
	(void)pthread_mutex_lock(&coherence->send_lock);
	records_prune(coherence);
	if (!coherence->listed.polled && coherence->listed.count + records <= RECORDS_MAX &&
	    coherence->listed.room + room <= GP_LISTED_ROOM)
		return coherence;
	(void)pthread_mutex_unlock(&coherence->send_lock);
	return NULL;
}

uint32_t
gpc_listed_copy_add(struct gpc_coherence *coherence, const struct gpc_listed_rows *rows,
		    uint64_t room) GP_LOCK_UNCHECKED
{
	struct gpc_listed_copies *copies = &coherence->listed;
	struct gpc_listed_record *record = calloc(1, sizeof(*record));

	if (!record)
		return 0;
	/* The number 0 means none. */
	copies->last_number = copies->last_number % (GP_COPY_NUMBERS - 1) + 1;
	record->number = copies->last_number;
	record->rows = *rows;
	record->room = room;
	DL_APPEND(copies->records, record);
	copies->count++;
	copies->room += room;
	atomic_fetch_add(&listed, 1);
	return record->number;
}

void
gpc_listed_copy_end(struct gpc_coherence *coherence) GP_LOCK_UNCHECKED
{
	uint64_t issued = gpc_session_issued(coherence->session);
	uint64_t work = gpc_session_work_mark(coherence->session);
	struct gpc_listed_record *record =
		coherence->listed.records ? coherence->listed.records->prev : NULL;

	for (; record && !record->work; record = record->prev) {
		record->issued = issued;
		record->work = work;
	}
	(void)pthread_mutex_unlock(&coherence->send_lock);
}

/* Sends again a row of a record, as far as it differs from what was sent. */
static CUresult
row_replace(struct gpc_coherence *coherence, struct gpc_listed_record *record, uint64_t row,
	    bool all) GP_LOCKED(coherence->send_lock)
{
	const struct gpc_listed_rows *rows = &record->rows;
	const uint8_t *bytes = rows->base + row * rows->pitch;
	uint64_t offset = row * rows->width;
	CUresult result = CUDA_SUCCESS;

	for (uint64_t at = 0; at < rows->width && result == CUDA_SUCCESS;) {
		size_t left = rows->width - at;
		size_t size = left < GP_REPLACE_MAX ? left : GP_REPLACE_MAX;
		struct gp_args_gpCopyReplace args = {
			.copy = record->number,
			.offset = offset + at,
			.data = { bytes + at, size },
		};

		if (all || memcmp(record->sent + offset + at, bytes + at, size)) {
			/* The stored bytes are sent, so that both are the same even if the program
			 * writes concurrently. */
			if (record->sent)
				args.data.data =
					memcpy(record->sent + offset + at, bytes + at, size);
			result = gpc_post_gpCopyReplace(coherence->primary, &args);
		}
		at += size;
	}
	return result;
}

static CUresult
record_replace(struct gpc_coherence *coherence, struct gpc_listed_record *record)
	GP_LOCKED(coherence->send_lock)
{
	const struct gpc_listed_rows *rows = &record->rows;
	bool all = !record->sent;
	CUresult result = CUDA_SUCCESS;

	gpc_guard_block();
	/* The program may have unmapped registered memory without unregistering it. */
	if (!gpc_host_block_is_mapped(rows->base, rows_span(rows)))
		return CUDA_SUCCESS;
	/* A chunk that was read before the replacement must also arrive before it. */
	if (rows->on_lanes)
		gpc_lanes_settle(rows->base, rows_span(rows));
	if (!record->sent)
		record->sent = malloc(rows->width * rows->rows);
	for (uint64_t row = 0; row < rows->rows && result == CUDA_SUCCESS; row++)
		result = row_replace(coherence, record, row, all);
	return result;
}

CUresult
gpc_listed_copies_replace(struct gpc_coherence *coherence) GP_LOCKED(coherence->send_lock)
{
	struct gpc_listed_record *record;
	CUresult result = CUDA_SUCCESS;

	if (!coherence->listed.records)
		return CUDA_SUCCESS;
	records_prune(coherence);
	/* The changes must be read before the sources. */
	atomic_thread_fence(memory_order_acquire);
	DL_FOREACH(coherence->listed.records, record)
	{
		coherence->listed.polled = true;
		result = record_replace(coherence, record);
		if (result != CUDA_SUCCESS)
			break;
	}
	return result;
}

static void
records_drop(struct gpc_coherence *coherence, uintptr_t start, uintptr_t end)
{
	struct gpc_listed_record *record, *next;

	(void)pthread_mutex_lock(&coherence->send_lock);
	DL_FOREACH_SAFE(coherence->listed.records, record, next)
	{
		uintptr_t first = (uintptr_t)record->rows.base;

		if (first < end && start < first + rows_span(&record->rows))
			record_remove(coherence, record);
	}
	(void)pthread_mutex_unlock(&coherence->send_lock);
}

void
gpc_listed_copies_drop(const void *base, uint64_t size)
{
	for (int i = 0; atomic_load(&listed) > 0 && i < gpc_session_count(); i++) {
		struct gpc_coherence *coherence = gpc_coherence_find(gpc_session_at(i));

		if (coherence && !gpc_session_is_abandoned(coherence->session))
			records_drop(coherence, (uintptr_t)base, (uintptr_t)base + size);
	}
}
