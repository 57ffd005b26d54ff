/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon says that kernels have changed. */
#include "base/clock.h"
#include "base/lock.h"
#include "client/base/error.h"
#include "client/base/stats.h"
#include "client/connect/facts.h"
#include "client/context/context.h"
#include "client/host/mirror.h"
#include "client/host/mirror_state.h"
#include "client/host/sent.h"
#include "client/wire/session.h"
#include "gpc_calls.h"
#include "protocol/host_merge.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static bool
has(const struct gpc_mirror_block *block, const struct gp_change *change)
{
	return change->address >= block->address && change->size <= block->size &&
	       change->address - block->address <= block->size - change->size;
}

/* What the answer says of a block that came later is of what was there before. */
static bool
is_meant(const struct gpc_mirror_fetch *fetch, const struct gpc_mirror_block *block)
{
	return block->writes <= fetch->writes;
}

/* With the lock: the block that has all of it; NULL: there is none.  The last one is likely. */
static struct gpc_mirror_block *
block_of(struct gpc_mirror_fetch *fetch, const struct gp_change *change)
{
	struct gpc_mirror_block *block = fetch->mirror->blocks;

	if (fetch->last && has(fetch->last, change))
		return fetch->last;
	while (block && (!has(block, change) || !is_meant(fetch, block)))
		block = block->next;
	fetch->last = block;
	return block;
}

/* Calls use() for what lies in blocks.  Where some were given back and others made while the
 * daemon was asked, a run may lie in several, or reach over the end of one. */
static void
each_part(struct gpc_mirror_fetch *fetch, const struct gp_change *change,
	  void (*use)(struct gpc_mirror_block *block, const struct gp_change *part))
{
	struct gpc_mirror_block *block = block_of(fetch, change);

	if (block) {
		use(block, change);
		return;
	}
	DL_FOREACH(fetch->mirror->blocks, block)
	{
		uint64_t end = change->address + change->size, block_end;
		struct gp_change part = { .address = block->address };

		block_end = block->address + block->size;
		if (part.address < change->address)
			part.address = change->address;
		if (block_end < end)
			end = block_end;
		if (!is_meant(fetch, block) || part.address >= end)
			continue;
		part.bytes = (const uint8_t *)change->bytes + (part.address - change->address);
		part.size = (uint32_t)(end - part.address);
		part.same = gp_merge_bits(change->same, (size_t)(part.address - change->address),
					  part.size);
		use(block, &part);
	}
}

/* each_part() for all but the bytes that were sent meanwhile, of which the answer knows nothing. */
static void
each_unsent(struct gpc_mirror_fetch *fetch, const struct gp_change *change,
	    void (*use)(struct gpc_mirror_block *block, const struct gp_change *part))
{
	const struct gpc_sent *sent = fetch->mirror->sent;
	uint32_t step;

	if (!gpc_sent_has(sent, fetch->writes, change->address, change->size)) {
		each_part(fetch, change, use);
		return;
	}
	for (uint32_t at = 0; at < change->size; at += step) {
		struct gp_change part = { .address = change->address + at };

		step = GP_CHANGES_MASKED - part.address % GP_CHANGES_MASKED;
		step = step < change->size - at ? step : change->size - at;
		part.bytes = (const uint8_t *)change->bytes + at;
		part.size = step;
		part.same = gp_merge_bits(change->same, at, step) |
			    gpc_sent_mask(sent, fetch->writes, part.address, step);
		each_part(fetch, &part, use);
	}
}

static void
agree_on(struct gpc_mirror_block *block, const struct gp_change *part)
{
	size_t offset = (size_t)(part->address - block->address);

	gp_merge_copy(block->shadow + offset, part->bytes, part->size, part->same);
	__builtin_prefetch(block->host + offset, 1);
}

static void
agree(void *arg, const struct gp_change *change)
{
	each_unsent(arg, change, agree_on);
}

static void
store_in(struct gpc_mirror_block *block, const struct gp_change *part)
{
	gp_merge_store(block->host + (part->address - block->address), part->bytes, part->size,
		       part->same);
}

static void
store(void *arg, const struct gp_change *change)
{
	each_unsent(arg, change, store_in);
}

/* Answers come in the order in which the daemon looked: later ones know of no fewer records. */
static void
end_of(struct gpc_mirror *mirror, struct gpc_mirror_fetch *fetch) GP_LOCKED(mirror->lock)
{
	DL_DELETE(mirror->under_way, fetch);
	if (!mirror->under_way)
		gpc_sent_forget(&mirror->sent, UINT64_MAX);
	else if (!fetch->failed)
		gpc_sent_forget(&mirror->sent, fetch->writes);
}

static void
note_time(struct gpc_mirror *mirror, const struct gpc_mirror_fetch *fetch) GP_LOCKED(mirror->lock)
{
	uint64_t took = gp_now_ns() - fetch->begun_ns;

	if (mirror->least_ns == 0 || took < mirror->least_ns)
		mirror->least_ns = took;
}

/* false: it is none. */
static bool
decode(struct gpc_mirror_fetch *fetch, const struct gpc_request *request, struct gp_bytes *changes)
{
	struct gp_reply_gpHostTakeBehind later = { 0 };
	struct gp_reply_gpHostTake now = { 0 };
	struct gp_dec dec;

	/* The answers of later are alike. */
	gp_dec_init(&dec, request->reply, request->reply_size);
	if (fetch->when == GPC_MIRROR_NOW) {
		gp_reply_gpHostTake_decode(&dec, &now);
		*changes = now.changes;
		fetch->done = now.done;
	} else {
		gp_reply_gpHostTakeBehind_decode(&dec, &later);
		*changes = later.changes;
		fetch->done = fetch->asked;
	}
	if (!gp_dec_done(&dec) || fetch->done > fetch->asked ||
	    !gp_changes_are_sound(changes->data, changes->size))
		return false;
	if (fetch->when != GPC_MIRROR_NOW)
		fetch->writes = later.writes;
	return true;
}

/* In the order of the answers, and before anybody learns of a later one. */
static void
take_answer(struct gpc_request *request)
{
	struct gpc_mirror_fetch *fetch = request->arg;
	struct gpc_mirror *mirror = fetch->mirror;
	struct gp_bytes changes;

	(void)pthread_mutex_lock(&mirror->lock);
	fetch->failed = !request->reply || !decode(fetch, request, &changes);
	if (!fetch->failed) {
		gpc_mirror_drop_gone(mirror);
		gp_changes_each(changes.data, changes.size, agree, fetch);
		/* With nothing in between: what has no order is here at about the same time. */
		gp_changes_each(changes.data, changes.size, store, fetch);
	}
	if (fetch->when == GPC_MIRROR_NOW)
		note_time(mirror, fetch);
	end_of(mirror, fetch);
	(void)pthread_mutex_unlock(&mirror->lock);
}

/* Begins a fetch of what is behind a place: its ranges, as they travel. */
static struct gp_bytes
name_ranges(struct gpc_mirror *mirror, struct gpc_mirror_fetch *fetch, struct gpc_mirror_way *way,
	    uint8_t *room) GP_LOCKED(mirror->send_lock)
{
	struct gp_enc enc;
	size_t count;

	gp_enc_init(&enc, room, GP_HOST_RANGES_MAX * 16);
	(void)pthread_mutex_lock(&mirror->lock);
	gpc_mirror_look_around(mirror, way);
	count = gpc_mirror_ranges_from(mirror, way->at);
	fetch->revision = mirror->revision;
	if (fetch->when != GPC_MIRROR_NOW &&
	    (count > GP_HOST_BEHIND_RANGES || mirror->size > GP_HOST_BEHIND_MAX))
		count = 0;
	for (size_t i = 0; i < count && i < GP_HOST_RANGES_MAX; i++) {
		gp_enc_u64(&enc, mirror->ranges[i].address);
		gp_enc_u64(&enc, mirror->ranges[i].size);
		fetch->asked += mirror->ranges[i].size;
	}
	if (count) {
		fetch->mirror = mirror;
		fetch->writes = mirror->writes;
		DL_APPEND(mirror->under_way, fetch);
	}
	(void)pthread_mutex_unlock(&mirror->lock);
	return (struct gp_bytes){ room, gp_enc_size(&enc) };
}

static CUresult
ask(struct gpc_context *context, struct gp_bytes ranges, enum gp_picture_part part,
    struct gp_args_gpHostTakeBehind *behind, struct gpc_mirror_fetch *fetch)
{
	const struct gp_args_gpHostTakeChanged changed = { ranges };
	const struct gp_args_gpHostTake now = { ranges, part };

	switch (fetch->when) {
	case GPC_MIRROR_BEHIND:
		behind->ranges = ranges;
		return gpc_start_gpHostTakeBehind(context, behind, &fetch->request);
	case GPC_MIRROR_CHANGED:
		return gpc_start_gpHostTakeChanged(context, &changed, &fetch->request);
	default:
		return gpc_start_gpHostTake(context, &now, &fetch->request);
	}
}

/* It goes out in its place among what is sent.  Nothing is asked where there is nothing.  behind:
 * what is waited for, if it is. */
static CUresult
start(struct gpc_mirror *mirror, struct gpc_mirror_fetch *fetch, struct gpc_mirror_way *way,
      struct gp_args_gpHostTakeBehind *behind)
{
	struct gp_bytes ranges;
	CUresult result = CUDA_SUCCESS;

	(void)pthread_mutex_lock(&mirror->send_lock);
	ranges = name_ranges(mirror, fetch, way, mirror->named);
	fetch->request.session = mirror->session;
	fetch->request.before = take_answer;
	fetch->request.arg = fetch;
	fetch->begun_ns = gp_now_ns();
	if (fetch->asked)
		result = ask(mirror->primary, ranges, way->part, behind, fetch);
	(void)pthread_mutex_unlock(&mirror->send_lock);
	if (result == CUDA_SUCCESS)
		return result;
	(void)pthread_mutex_lock(&mirror->lock);
	fetch->failed = true;
	end_of(mirror, fetch);
	(void)pthread_mutex_unlock(&mirror->lock);
	return result;
}

CUresult
gpc_mirror_start_fetch(struct gpc_mirror *mirror, struct gpc_mirror_fetch *fetch,
		       struct gpc_mirror_way *way)
{
	return start(mirror, fetch, way, NULL);
}

/* It gets on, or the daemon is at fault. */
CUresult
gpc_mirror_end_fetch(struct gpc_mirror_fetch *fetch, enum gp_picture_part part)
{
	CUresult result = gpc_request_wait_own(&fetch->request);

	free(fetch->request.reply);
	if (result != CUDA_SUCCESS ||
	    (!fetch->failed && (fetch->done > 0 || part == GP_PICTURE_ALL)))
		return result;
	gpc_session_fail(fetch->request.session, GPC_ERROR_LOST,
			 "malformed changes of host memory");
	return GPC_ERROR_LOST;
}

CUresult
gpc_mirror_fetch_all(struct gpc_mirror *mirror)
{
	struct gpc_mirror_way way = { 0 };

	for (;;) {
		struct gpc_mirror_fetch fetch = { 0 };
		CUresult result = gpc_mirror_start_fetch(mirror, &fetch, &way);

		if (result != CUDA_SUCCESS || fetch.asked == 0)
			return result;
		result = gpc_mirror_end_fetch(&fetch, way.part);
		if (result != CUDA_SUCCESS)
			return result;
		gpc_mirror_go_on(&way, fetch.asked, fetch.done);
	}
}

/* Whether all that has been given is done, and what it has changed is here. */
static bool
is_clean(struct gpc_mirror *mirror)
{
	return atomic_load(&mirror->clean) >= gpc_session_given(mirror->session);
}

CUresult
gpc_mirror_fetch(struct gpc_session *session)
{
	struct gpc_mirror *mirror = gpc_mirror_find(session);

	return !mirror || is_clean(mirror) ? CUDA_SUCCESS : gpc_mirror_fetch_all(mirror);
}

/* Work behind a host function is not meant by the call, so it is not asked meanwhile. */
struct gpc_mirror_fetch *
gpc_mirror_ask(struct gpc_session *session, enum gp_host_behind kind, uint32_t name, uint16_t call)
{
	struct gp_args_gpHostTakeBehind args = { .kind = kind, .name = name };
	struct gpc_mirror *mirror = gpc_mirror_find(session);
	struct gpc_mirror_way way = { 0 };
	struct gpc_mirror_fetch *fetch;

	if (!mirror || is_clean(mirror) || gpc_session_has_functions(session) ||
	    !gpc_facts_know(gpc_session_facts(session), GP_CALL_gpHostTakeBehind))
		return NULL;
	fetch = calloc(1, sizeof(*fetch));
	if (!fetch)
		return NULL;
	fetch->when = GPC_MIRROR_BEHIND;
	if (start(mirror, fetch, &way, &args) != CUDA_SUCCESS || fetch->asked == 0) {
		free(fetch);
		return NULL;
	}
	gpc_stats_wait_begin(call);
	return fetch;
}

CUresult
gpc_mirror_take(struct gpc_session *session, struct gpc_mirror_fetch *fetch, CUresult result)
{
	CUresult asked = gpc_request_wait_own(&fetch->request);
	bool told = asked == CUDA_SUCCESS && !fetch->failed;

	free(fetch->request.reply);
	free(fetch);
	if (result == CUDA_SUCCESS && !told)
		result = gpc_mirror_fetch(session);
	gpc_stats_wait_end();
	return result;
}
