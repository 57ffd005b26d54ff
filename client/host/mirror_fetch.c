/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemon says that kernels have changed. */
#include "base/clock.h"
#include "base/lock.h"
#include "client/context/context.h"
#include "client/host/mirror.h"
#include "client/host/mirror_state.h"
#include "client/host/sent.h"
#include "client/wire/session.h"
#include "gpc_calls.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static bool
has(const struct gpc_mirror_block *block, const struct gp_change *change)
{
	return change->address >= block->address && change->size <= block->size &&
	       change->address - block->address <= block->size - change->size;
}

/* With the lock: the block that has all of it, and was there when the fetch began; NULL: there is
 * none. */
static struct gpc_mirror_block *
find_block(struct gpc_mirror *mirror, const struct gp_change *change, uint64_t number)
{
	struct gpc_mirror_block *block = mirror->blocks;

	while (block && (!has(block, change) || block->fetches >= number))
		block = block->next;
	return block;
}

/* The block of a change; the last one is likely. */
static struct gpc_mirror_block *
block_of(struct gpc_mirror_fetch *fetch, const struct gp_change *change)
{
	if (!fetch->last || !has(fetch->last, change))
		fetch->last = find_block(fetch->mirror, change, fetch->number);
	return fetch->last;
}

static void
agree(void *arg, const struct gp_change *change)
{
	struct gpc_mirror_fetch *fetch = arg;
	struct gpc_mirror_block *block = block_of(fetch, change);
	size_t offset;

	if (!block)
		return;
	offset = (size_t)(change->address - block->address);
	/* The answer is this fetch's own memory. */
	gpc_sent_keep(fetch->mirror->sent, fetch->number, change->address,
		      (uint8_t *)(uintptr_t)change->bytes, change->size);
	memcpy(block->shadow + offset, change->bytes, change->size);
	__builtin_prefetch(block->host + offset, 1);
}

static void
store(void *arg, const struct gp_change *change)
{
	struct gpc_mirror_block *block = block_of(arg, change);

	if (block)
		gp_changes_store(block->host + (change->address - block->address), change->bytes,
				 change->size);
}

static void
end_of(struct gpc_mirror *mirror, struct gpc_mirror_fetch *fetch) GP_LOCKED(mirror->lock)
{
	DL_DELETE(mirror->under_way, fetch);
	gpc_sent_forget(&mirror->sent, mirror->under_way ? mirror->under_way->number : UINT64_MAX);
}

static void
note_time(struct gpc_mirror *mirror, const struct gpc_mirror_fetch *fetch) GP_LOCKED(mirror->lock)
{
	uint64_t took = gp_now_ns() - fetch->begun_ns;

	if (mirror->least_ns == 0 || took < mirror->least_ns)
		mirror->least_ns = took;
}

/* In the order of the answers, and before anybody learns of a later one. */
static void
take_answer(struct gpc_request *request)
{
	struct gpc_mirror_fetch *fetch = request->arg;
	struct gpc_mirror *mirror = fetch->mirror;
	struct gp_reply_gpHostTake reply = { 0 };
	struct gp_dec dec;

	(void)pthread_mutex_lock(&mirror->lock);
	fetch->failed = true;
	if (request->reply) {
		gp_dec_init(&dec, request->reply, request->reply_size);
		gp_reply_gpHostTake_decode(&dec, &reply);
		if (gp_dec_done(&dec) && reply.done <= fetch->asked &&
		    gp_changes_are_sound(reply.changes.data, reply.changes.size)) {
			gp_changes_each(reply.changes.data, reply.changes.size, agree, fetch);
			/* With nothing in between: what has no order is here at about the same
			 * time. */
			gp_changes_each(reply.changes.data, reply.changes.size, store, fetch);
			fetch->done = reply.done;
			fetch->failed = false;
		}
	}
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
	for (size_t i = 0; i < count && i < GP_HOST_RANGES_MAX; i++) {
		gp_enc_u64(&enc, mirror->ranges[i].address);
		gp_enc_u64(&enc, mirror->ranges[i].size);
		fetch->asked += mirror->ranges[i].size;
	}
	if (count) {
		fetch->mirror = mirror;
		fetch->number = ++mirror->fetches;
		DL_APPEND(mirror->under_way, fetch);
	}
	(void)pthread_mutex_unlock(&mirror->lock);
	return (struct gp_bytes){ room, gp_enc_size(&enc) };
}

/* It goes out in its place among what is sent.  Nothing is asked where there is nothing. */
CUresult
gpc_mirror_start_fetch(struct gpc_mirror *mirror, struct gpc_mirror_fetch *fetch,
		       struct gpc_mirror_way *way)
{
	struct gp_args_gpHostTake args = { 0 };
	CUresult result = CUDA_SUCCESS;

	(void)pthread_mutex_lock(&mirror->send_lock);
	args.ranges = name_ranges(mirror, fetch, way, mirror->named);
	args.part = way->part;
	fetch->request.session = mirror->session;
	fetch->request.before = take_answer;
	fetch->request.arg = fetch;
	fetch->begun_ns = gp_now_ns();
	if (fetch->asked)
		result = gpc_start_gpHostTake(mirror->primary, &args, &fetch->request);
	(void)pthread_mutex_unlock(&mirror->send_lock);
	if (result == CUDA_SUCCESS)
		return result;
	(void)pthread_mutex_lock(&mirror->lock);
	end_of(mirror, fetch);
	(void)pthread_mutex_unlock(&mirror->lock);
	return result;
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
	gpc_session_fail(fetch->request.session, CUDA_ERROR_SYSTEM_NOT_READY,
			 "malformed changes of host memory");
	return CUDA_ERROR_SYSTEM_NOT_READY;
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

CUresult
gpc_mirror_fetch(struct gpc_session *session)
{
	struct gpc_mirror *mirror = gpc_mirror_find(session);

	if (!mirror || atomic_load(&mirror->clean) >= gpc_session_given(session))
		return CUDA_SUCCESS;
	return gpc_mirror_fetch_all(mirror);
}
