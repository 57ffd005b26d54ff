/* SPDX-License-Identifier: Apache-2.0 */
/* Fetching of the changes that kernels made to the daemon's replicas. */
#include "base/clock.h"
#include "base/lock.h"
#include "client/base/error.h"
#include "client/base/stats.h"
#include "client/connect/welcome.h"
#include "client/context/context.h"
#include "client/host/coherence.h"
#include "client/host/coherence_internal.h"
#include "client/host/inflight_writes.h"
#include "client/session/session.h"
#include "gpc_calls.h"
#include "protocol/host_merge.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static bool
replica_contains(const struct gpc_replica *replica, const struct gp_change *change)
{
	return change->address >= replica->address && change->size <= replica->size &&
	       change->address - replica->address <= replica->size - change->size;
}

/* For a block that was added later, the reply describes earlier memory at its address. */
static bool
fetch_covers(const struct gpc_coherence_fetch *fetch, const struct gpc_replica *replica)
{
	return replica->writes <= fetch->writes;
}

/* Returns the block that contains the whole change, or NULL; called with the lock held. The last
 * block found is tried first. */
static struct gpc_replica *
fetch_find_replica(struct gpc_coherence_fetch *fetch, const struct gp_change *change)
{
	struct gpc_replica *replica = fetch->coherence->blocks;

	if (fetch->last && replica_contains(fetch->last, change))
		return fetch->last;
	while (replica && (!replica_contains(replica, change) || !fetch_covers(fetch, replica)))
		replica = replica->next;
	fetch->last = replica;
	return replica;
}

/* Calls use() for the parts of the change that are in blocks. If blocks were removed and added
 * since the request, a change may cover several, or extend beyond one. */
static void
change_each_part(struct gpc_coherence_fetch *fetch, const struct gp_change *change,
		 void (*use)(struct gpc_replica *replica, const struct gp_change *part))
{
	struct gpc_replica *replica = fetch_find_replica(fetch, change);

	if (replica) {
		use(replica, change);
		return;
	}
	DL_FOREACH(fetch->coherence->blocks, replica)
	{
		uint64_t end = change->address + change->size, block_end;
		struct gp_change part = { .address = replica->address };

		block_end = replica->address + replica->size;
		if (part.address < change->address)
			part.address = change->address;
		if (block_end < end)
			end = block_end;
		if (!fetch_covers(fetch, replica) || part.address >= end)
			continue;
		part.bytes = (const uint8_t *)change->bytes + (part.address - change->address);
		part.size = (uint32_t)(end - part.address);
		part.same = gp_merge_get_bits(change->same,
					      (size_t)(part.address - change->address), part.size);
		use(replica, &part);
	}
}

/* Like change_each_part(), but skips bytes that were sent since the request, which the reply does
 * not include. */
static void
change_each_unsent(struct gpc_coherence_fetch *fetch, const struct gp_change *change,
		   void (*use)(struct gpc_replica *replica, const struct gp_change *part))
{
	const struct gpc_inflight_writes *sent = fetch->coherence->sent;
	uint32_t step;

	if (!gpc_inflight_writes_overlap(sent, fetch->writes, change->address, change->size)) {
		change_each_part(fetch, change, use);
		return;
	}
	for (uint32_t at = 0; at < change->size; at += step) {
		struct gp_change part = { .address = change->address + at };

		step = GP_CHANGES_MASKED - part.address % GP_CHANGES_MASKED;
		step = step < change->size - at ? step : change->size - at;
		part.bytes = (const uint8_t *)change->bytes + at;
		part.size = step;
		part.same = gp_merge_get_bits(change->same, at, step) |
			    gpc_inflight_writes_mask(sent, fetch->writes, part.address, step);
		change_each_part(fetch, &part, use);
	}
}

static void
shadow_store_part(struct gpc_replica *replica, const struct gp_change *part)
{
	size_t offset = (size_t)(part->address - replica->address);

	gp_merge_copy(replica->shadow + offset, part->bytes, part->size, part->same);
	__builtin_prefetch(replica->host + offset, 1);
}

static void
shadow_store(void *arg, const struct gp_change *change)
{
	change_each_unsent(arg, change, shadow_store_part);
}

static void
host_store_part(struct gpc_replica *replica, const struct gp_change *part)
{
	gp_merge_store(replica->host + (part->address - replica->address), part->bytes, part->size,
		       part->same);
}

static void
host_store(void *arg, const struct gp_change *change)
{
	change_each_unsent(arg, change, host_store_part);
}

/* Replies arrive in the order in which the daemon scanned: later ones include at least as many
 * records. */
static void
fetch_unlink(struct gpc_coherence *coherence, struct gpc_coherence_fetch *fetch)
	GP_LOCKED(coherence->lock)
{
	DL_DELETE(coherence->fetches, fetch);
	if (!coherence->fetches)
		gpc_inflight_writes_drop(&coherence->sent, UINT64_MAX);
	else if (!fetch->failed)
		gpc_inflight_writes_drop(&coherence->sent, fetch->writes);
}

static void
coherence_note_round_trip(struct gpc_coherence *coherence, const struct gpc_coherence_fetch *fetch)
	GP_LOCKED(coherence->lock)
{
	uint64_t took = gp_now_ns() - fetch->begun_ns;

	if (coherence->least_ns == 0 || took < coherence->least_ns)
		coherence->least_ns = took;
}

/* Returns false if the reply is malformed. */
static bool
reply_decode(struct gpc_coherence_fetch *fetch, const struct gpc_request *request,
	     struct gp_bytes *changes)
{
	struct gp_reply_gpHostTakeBehind later = { 0 };
	struct gp_reply_gpHostTake now = { 0 };
	struct gp_dec dec;

	/* The replies of the other two calls have the same fields. */
	gp_dec_init(&dec, request->reply, request->reply_size);
	if (fetch->when == GPC_FETCH_NOW) {
		gp_reply_gpHostTake_decode(&dec, &now);
		*changes = now.changes;
		fetch->done = now.done;
	} else {
		gp_reply_gpHostTakeBehind_decode(&dec, &later);
		*changes = later.changes;
		fetch->done = fetch->requested;
	}
	if (!gp_dec_done(&dec) || fetch->done > fetch->requested ||
	    !gp_changes_are_valid(changes->data, changes->size))
		return false;
	if (fetch->when != GPC_FETCH_NOW)
		fetch->writes = later.writes;
	return true;
}

/* Called in the order of the replies, and before any thread can see a later one. */
static void
fetch_recv(struct gpc_request *request)
{
	struct gpc_coherence_fetch *fetch = request->arg;
	struct gpc_coherence *coherence = fetch->coherence;
	struct gp_bytes changes;

	(void)pthread_mutex_lock(&coherence->lock);
	fetch->failed = !request->reply || !reply_decode(fetch, request, &changes);
	if (!fetch->failed) {
		gpc_coherence_drop_unmapped(coherence);
		gp_changes_for_each(changes.data, changes.size, shadow_store, fetch);
		/* In one pass, so that changes without an order become visible at about the same
		 * time. */
		gp_changes_for_each(changes.data, changes.size, host_store, fetch);
	}
	if (fetch->when == GPC_FETCH_NOW)
		coherence_note_round_trip(coherence, fetch);
	fetch_unlink(coherence, fetch);
	(void)pthread_mutex_unlock(&coherence->lock);
}

/* Starts a fetch from the cursor on. Returns the encoded ranges. */
static struct gp_bytes
fetch_encode_ranges(struct gpc_coherence *coherence, struct gpc_coherence_fetch *fetch,
		    struct gpc_coherence_cursor *cursor, uint8_t *buffer)
	GP_LOCKED(coherence->send_lock)
{
	struct gp_enc enc;
	size_t count;

	gp_enc_init(&enc, buffer, GP_HOST_RANGES_MAX * 16);
	(void)pthread_mutex_lock(&coherence->lock);
	gpc_coherence_refresh_cursor(coherence, cursor);
	count = gpc_coherence_get_ranges(coherence, cursor->at);
	fetch->revision = coherence->revision;
	if (fetch->when != GPC_FETCH_NOW &&
	    (count > GP_HOST_AFTER_RANGES || coherence->size > GP_HOST_AFTER_MAX))
		count = 0;
	for (size_t i = 0; i < count && i < GP_HOST_RANGES_MAX; i++) {
		gp_enc_u64(&enc, coherence->ranges[i].address);
		gp_enc_u64(&enc, coherence->ranges[i].size);
		fetch->requested += coherence->ranges[i].size;
	}
	if (count) {
		fetch->coherence = coherence;
		fetch->writes = coherence->writes;
		DL_APPEND(coherence->fetches, fetch);
	}
	(void)pthread_mutex_unlock(&coherence->lock);
	return (struct gp_bytes){ buffer, gp_enc_size(&enc) };
}

static CUresult
fetch_post(struct gpc_context *context, struct gp_bytes ranges, enum gp_consistent_copy_part part,
	   struct gp_args_gpHostTakeBehind *after_args, struct gpc_coherence_fetch *fetch)
{
	const struct gp_args_gpHostTakeChanged changed = { ranges };
	const struct gp_args_gpHostTake now = { ranges, part };

	switch (fetch->when) {
	case GPC_FETCH_AFTER_WORK:
		after_args->ranges = ranges;
		return gpc_start_gpHostTakeBehind(context, after_args, &fetch->request);
	case GPC_FETCH_ON_CHANGE:
		return gpc_start_gpHostTakeChanged(context, &changed, &fetch->request);
	default:
		return gpc_start_gpHostTake(context, &now, &fetch->request);
	}
}

/* Posts the request in its place among the changes that are sent, unless there are no ranges.
 * after_args: the work to wait for, or NULL. */
static CUresult
fetch_start(struct gpc_coherence *coherence, struct gpc_coherence_fetch *fetch,
	    struct gpc_coherence_cursor *cursor, struct gp_args_gpHostTakeBehind *after_args)
{
	struct gp_bytes ranges;
	CUresult result = CUDA_SUCCESS;

	(void)pthread_mutex_lock(&coherence->send_lock);
	ranges = fetch_encode_ranges(coherence, fetch, cursor, coherence->named);
	fetch->request.session = coherence->session;
	fetch->request.before = fetch_recv;
	fetch->request.arg = fetch;
	fetch->begun_ns = gp_now_ns();
	if (fetch->requested)
		result = fetch_post(coherence->primary, ranges, cursor->part, after_args, fetch);
	(void)pthread_mutex_unlock(&coherence->send_lock);
	if (result == CUDA_SUCCESS)
		return result;
	(void)pthread_mutex_lock(&coherence->lock);
	fetch->failed = true;
	fetch_unlink(coherence, fetch);
	(void)pthread_mutex_unlock(&coherence->lock);
	return result;
}

CUresult
gpc_coherence_fetch_start(struct gpc_coherence *coherence, struct gpc_coherence_fetch *fetch,
			  struct gpc_coherence_cursor *cursor)
{
	return fetch_start(coherence, fetch, cursor, NULL);
}

/* The reply must make progress; otherwise the daemon is faulty. */
CUresult
gpc_coherence_fetch_end(struct gpc_coherence_fetch *fetch, enum gp_consistent_copy_part part)
{
	CUresult result = gpc_request_wait_own(&fetch->request);

	free(fetch->request.reply);
	if (result != CUDA_SUCCESS ||
	    (!fetch->failed && (fetch->done > 0 || part == GP_CONSISTENT_COPY_ALL)))
		return result;
	gpc_session_fail(fetch->request.session, GPC_ERROR_LOST,
			 "malformed changes of host memory");
	return GPC_ERROR_LOST;
}

CUresult
gpc_coherence_fetch_all(struct gpc_coherence *coherence)
{
	struct gpc_coherence_cursor cursor = { 0 };

	for (;;) {
		struct gpc_coherence_fetch fetch = { 0 };
		CUresult result = gpc_coherence_fetch_start(coherence, &fetch, &cursor);

		if (result != CUDA_SUCCESS || fetch.requested == 0)
			return result;
		result = gpc_coherence_fetch_end(&fetch, cursor.part);
		if (result != CUDA_SUCCESS)
			return result;
		gpc_coherence_cursor_advance(&cursor, fetch.requested, fetch.done);
	}
}

/* Returns whether all work issued so far is done and its changes have been stored. */
static bool
coherence_is_clean(struct gpc_coherence *coherence)
{
	return atomic_load(&coherence->clean) >= gpc_session_issued(coherence->session);
}

CUresult
gpc_coherence_fetch(struct gpc_session *session)
{
	struct gpc_coherence *coherence = gpc_coherence_find(session);

	return !coherence || coherence_is_clean(coherence) ? CUDA_SUCCESS
							   : gpc_coherence_fetch_all(coherence);
}

/* The call does not mean work after a host function, so no fetch is started while one is
 * outstanding. */
struct gpc_coherence_fetch *
gpc_coherence_wait_begin(struct gpc_session *session, enum gp_host_after kind, uint32_t name,
			 uint16_t call)
{
	struct gp_args_gpHostTakeBehind args = { .kind = kind, .name = name };
	struct gpc_coherence *coherence = gpc_coherence_find(session);
	struct gpc_coherence_cursor cursor = { 0 };
	struct gpc_coherence_fetch *fetch;

	if (!coherence || coherence_is_clean(coherence) || gpc_session_awaits_host(session) ||
	    !gpc_facts_have_call(gpc_session_facts(session), GP_CALL_gpHostTakeBehind))
		return NULL;
	fetch = calloc(1, sizeof(*fetch));
	if (!fetch)
		return NULL;
	fetch->when = GPC_FETCH_AFTER_WORK;
	if (fetch_start(coherence, fetch, &cursor, &args) != CUDA_SUCCESS ||
	    fetch->requested == 0) {
		free(fetch);
		return NULL;
	}
	gpc_stats_wait_start(call);
	return fetch;
}

CUresult
gpc_coherence_wait_end(struct gpc_session *session, struct gpc_coherence_fetch *fetch,
		       CUresult result)
{
	CUresult requested = gpc_request_wait_own(&fetch->request);
	bool fetched = requested == CUDA_SUCCESS && !fetch->failed;

	free(fetch->request.reply);
	free(fetch);
	if (result == CUDA_SUCCESS && !fetched)
		result = gpc_coherence_fetch(session);
	gpc_stats_wait_stop();
	return result;
}
