/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/mirror.h"

#include "base/clock.h"
#include "base/lock.h"
#include "client/context/context.h"
#include "client/wire/session.h"
#include "client/wire/session_threads.h"
#include "gpc_calls.h"
#include "protocol/host_changes.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Between two exchanges: so long, and so many times as long as one takes. */
#define PAUSE_NS UINT64_C(100000)
#define PAUSE_FACTOR 3

struct block {
	struct block *prev, *next;
	uint8_t *host, *shadow;
	uint64_t address;
	size_t size;
	uint64_t fetches; /* as many had been started before it came: they do not mean it */
};

/* What was sent while a fetch was under way, whose answer does not know of it. */
struct sent {
	struct sent *prev, *next;
	uint64_t fetches; /* the last one started before it */
	size_t size;
	uint8_t bytes[] __attribute__((aligned(8)));
};

struct fetch {
	struct fetch *prev, *next;
	struct gpc_request request;
	struct mirror *mirror;
	uint64_t number;
	uint64_t done; /* bytes of its ranges that the answer holds for */
};

/* The blocks of one session; kept like the session itself. */
struct mirror {
	struct gpc_session *session;
	struct mirror *next;
	struct gpc_context *primary; /* in whose name it asks; it always exists */
	struct gpc_session_keeper keeper;

	/* The order in which changes go out; held while they are posted. */
	pthread_mutex_t send_lock;
	uint8_t *bytes; /* GP_CHANGES_MAX; under send_lock */

	/* Of what follows.  Never held while something is posted: the reader of the connection
	 * takes it. */
	pthread_mutex_t lock;
	pthread_cond_t wanted; /* for the thread */
	struct block *blocks;
	size_t count;
	uint64_t revision; /* of the list */
	struct gp_changes_range *ranges;
	size_t room; /* of them */
	uint64_t fetches;
	struct fetch *under_way;
	struct sent *sent;
	bool started;
	bool over;

	atomic_bool sleeps;
	/* All work up to this record is done, and what it has changed is here. */
	atomic_uint_fast64_t clean;
};

atomic_uint gpc_mirrored;
static struct mirror *_Atomic mirrors;
static pthread_mutex_t mirrors_lock = PTHREAD_MUTEX_INITIALIZER;

static struct mirror *
find_mirror(const struct gpc_session *session)
{
	struct mirror *mirror = atomic_load(&mirrors);

	while (mirror && mirror->session != session)
		mirror = mirror->next;
	return mirror;
}

static void
end(void *arg)
{
	struct mirror *mirror = arg;

	(void)pthread_mutex_lock(&mirror->lock);
	mirror->over = true;
	(void)pthread_cond_signal(&mirror->wanted);
	(void)pthread_mutex_unlock(&mirror->lock);
}

static void
before_function(void *arg)
{
	const struct mirror *mirror = arg;

	(void)gpc_mirror_fetch(mirror->session);
}

static struct mirror *
create(struct gpc_context *context)
{
	struct mirror *mirror = calloc(1, sizeof(*mirror));

	if (!mirror)
		return NULL;
	mirror->bytes = malloc(GP_CHANGES_MAX);
	if (!mirror->bytes) {
		free(mirror);
		return NULL;
	}
	mirror->session = context->scope.session;
	mirror->primary = context->device->primary;
	(void)pthread_mutex_init(&mirror->send_lock, NULL);
	(void)pthread_mutex_init(&mirror->lock, NULL);
	gp_cond_init(&mirror->wanted);
	mirror->next = atomic_load(&mirrors);
	atomic_store(&mirrors, mirror);
	mirror->keeper = (struct gpc_session_keeper){ end, before_function, mirror };
	gpc_session_set_keeper(mirror->session, &mirror->keeper);
	return mirror;
}

/* NULL: no memory for it. */
static struct mirror *
mirror_of(struct gpc_context *context)
{
	struct mirror *mirror = find_mirror(context->scope.session);

	if (mirror)
		return mirror;
	(void)pthread_mutex_lock(&mirrors_lock);
	mirror = find_mirror(context->scope.session);
	if (!mirror)
		mirror = create(context);
	(void)pthread_mutex_unlock(&mirrors_lock);
	return mirror;
}

static struct gp_changes_range
range_of(const struct block *block)
{
	return (struct gp_changes_range){ block->address, block->host, block->shadow, block->size };
}

/* Behind so many bytes of all blocks; how many ranges there are. */
static size_t
ranges_from(struct mirror *mirror, uint64_t skip) GP_LOCKED(mirror->lock)
{
	size_t count = 0;

	for (struct block *block = mirror->blocks; block; block = block->next) {
		struct gp_changes_range range = range_of(block);
		uint64_t less = skip < range.size ? skip : range.size;

		skip -= less;
		if (less == range.size)
			continue;
		range.address += less;
		range.copy = (uint8_t *)range.copy + less;
		range.shadow = (uint8_t *)range.shadow + less;
		range.size -= less;
		mirror->ranges[count++] = range;
	}
	return count;
}

/* Answers of fetches that are under way do not know of it. */
static void
remember_sent(struct mirror *mirror, const struct gp_changes *changes) GP_LOCKED(mirror->lock)
{
	struct sent *sent;

	if (!mirror->under_way)
		return;
	sent = malloc(sizeof(*sent) + changes->size);
	/* Without memory for it a word that both ends change meanwhile may differ. */
	if (!sent)
		return;
	sent->fetches = mirror->fetches;
	sent->size = changes->size;
	memcpy(sent->bytes, changes->bytes, changes->size);
	DL_APPEND(mirror->sent, sent);
}

static CUresult
post_changes(struct mirror *mirror, const struct gp_changes *changes) GP_LOCKED(mirror->send_lock)
{
	const struct gp_args_gpHostWrite args = { .changes = { changes->bytes, changes->size } };

	return changes->size ? gpc_post_gpHostWrite(mirror->primary, &args) : CUDA_SUCCESS;
}

/* Looks at all blocks from a place on; whether there is more behind it. */
static bool
find_changes(struct mirror *mirror, struct gp_changes *changes, uint64_t *at, uint64_t *revision)
	GP_LOCKED(mirror->send_lock)
{
	uint64_t all = 0;

	(void)pthread_mutex_lock(&mirror->lock);
	if (*revision != mirror->revision)
		*at = 0;
	*revision = mirror->revision;
	for (const struct block *block = mirror->blocks; block; block = block->next)
		all += block->size;
	*at += gp_changes_find(changes, mirror->ranges, ranges_from(mirror, *at));
	if (changes->size)
		remember_sent(mirror, changes);
	(void)pthread_mutex_unlock(&mirror->lock);
	return *at < all;
}

CUresult
gpc_mirror_send(struct gpc_session *session)
{
	struct mirror *mirror = find_mirror(session);
	uint64_t at = 0, revision = 0;
	CUresult result = CUDA_SUCCESS;
	bool more = true;

	if (!mirror)
		return CUDA_SUCCESS;
	(void)pthread_mutex_lock(&mirror->send_lock);
	while (more && result == CUDA_SUCCESS) {
		struct gp_changes changes = { .bytes = mirror->bytes, .room = GP_CHANGES_MAX };

		more = find_changes(mirror, &changes, &at, &revision);
		result = post_changes(mirror, &changes);
	}
	(void)pthread_mutex_unlock(&mirror->send_lock);
	return result;
}

void
gpc_mirror_wake(struct gpc_session *session)
{
	struct mirror *mirror = find_mirror(session);

	if (!mirror || !atomic_load(&mirror->sleeps))
		return;
	(void)pthread_mutex_lock(&mirror->lock);
	(void)pthread_cond_signal(&mirror->wanted);
	(void)pthread_mutex_unlock(&mirror->lock);
}

/* With the lock: the block that has all of it, and was there when the fetch began; NULL: there is
 * none. */
static struct block *
find_block(struct mirror *mirror, const struct gp_change *change, uint64_t number)
{
	struct block *block = mirror->blocks;

	while (block && (change->address < block->address || change->size > block->size ||
			 change->address - block->address > block->size - change->size ||
			 block->fetches >= number))
		block = block->next;
	return block;
}

/* This end has changed the words as well, and the daemon gets its: they stay. */
static void
keep_own(const struct sent *sent, const struct gp_change *change, uint8_t *bytes)
{
	struct gp_change own;
	size_t at = 0;

	while (gp_changes_next(sent->bytes, sent->size, &at, &own) > 0) {
		uint64_t from = own.address > change->address ? own.address : change->address;
		uint64_t own_end = own.address + own.size;
		uint64_t change_end = change->address + change->size;
		uint64_t to = own_end < change_end ? own_end : change_end;

		if (from < to)
			memcpy(bytes + (from - change->address),
			       (const uint8_t *)own.bytes + (from - own.address),
			       (size_t)(to - from));
	}
}

/* The daemon's change, in this end's copy and shadow. */
static void
store(void *arg, const struct gp_change *change)
{
	struct fetch *fetch = arg;
	struct mirror *mirror = fetch->mirror;
	struct block *block = find_block(mirror, change, fetch->number);
	size_t offset;

	if (!block)
		return;
	offset = (size_t)(change->address - block->address);
	for (const struct sent *sent = mirror->sent; sent; sent = sent->next) {
		/* The answer is this fetch's own memory. */
		if (sent->fetches >= fetch->number)
			keep_own(sent, change, (uint8_t *)(uintptr_t)change->bytes);
	}
	gp_changes_store(block->host + offset, change->bytes, change->size);
	memcpy(block->shadow + offset, change->bytes, change->size);
}

/* What no fetch that is under way can be behind. */
static void
forget_sent(struct mirror *mirror) GP_LOCKED(mirror->lock)
{
	uint64_t oldest = mirror->under_way ? mirror->under_way->number : UINT64_MAX;
	struct sent *sent, *next;

	DL_FOREACH_SAFE(mirror->sent, sent, next)
	{
		if (sent->fetches >= oldest)
			continue;
		DL_DELETE(mirror->sent, sent);
		free(sent);
	}
}

/* In the order of the answers, and before anybody learns of a later one. */
static void
take_answer(struct gpc_request *request)
{
	struct fetch *fetch = request->arg;
	struct mirror *mirror = fetch->mirror;
	struct gp_reply_gpHostFetch reply = { 0 };
	struct gp_dec dec;

	(void)pthread_mutex_lock(&mirror->lock);
	if (request->reply) {
		gp_dec_init(&dec, request->reply, request->reply_size);
		gp_reply_gpHostFetch_decode(&dec, &reply);
		if (gp_dec_done(&dec) &&
		    gp_changes_are_sound(reply.changes.data, reply.changes.size)) {
			gp_changes_each(reply.changes.data, reply.changes.size, store, fetch);
			fetch->done = reply.done;
		}
	}
	DL_DELETE(mirror->under_way, fetch);
	forget_sent(mirror);
	(void)pthread_mutex_unlock(&mirror->lock);
}

/* It goes out in its place among what is sent. */
static CUresult
start_fetch(struct mirror *mirror, const struct gp_bytes *ranges, struct fetch *fetch)
	GP_LOCKED(mirror->send_lock)
{
	const struct gp_args_gpHostFetch args = { .ranges = *ranges };
	CUresult result;

	fetch->request.session = mirror->session;
	fetch->request.before = take_answer;
	fetch->request.arg = fetch;
	result = gpc_start_gpHostFetch(mirror->primary, &args, &fetch->request);
	if (result == CUDA_SUCCESS)
		return result;
	(void)pthread_mutex_lock(&mirror->lock);
	DL_DELETE(mirror->under_way, fetch);
	forget_sent(mirror);
	(void)pthread_mutex_unlock(&mirror->lock);
	return result;
}

/* It always gets on, or the daemon is at fault. */
static CUresult
end_fetch(struct fetch *fetch)
{
	CUresult result = gpc_request_wait_own(&fetch->request);

	free(fetch->request.reply);
	if (result != CUDA_SUCCESS || fetch->done > 0)
		return result;
	gpc_session_fail(fetch->request.session, CUDA_ERROR_SYSTEM_NOT_READY,
			 "malformed changes of host memory");
	return CUDA_ERROR_SYSTEM_NOT_READY;
}

/* Begins a fetch of what is behind a place: its ranges, as they travel. */
static struct gp_bytes
begin_fetch(struct mirror *mirror, struct fetch *fetch, uint64_t *at, uint64_t *revision,
	    uint8_t *room) GP_LOCKED(mirror->send_lock)
{
	struct gp_enc enc;
	size_t count;

	gp_enc_init(&enc, room, GP_HOST_RANGES_MAX * 16);
	(void)pthread_mutex_lock(&mirror->lock);
	if (*revision != mirror->revision)
		*at = 0;
	*revision = mirror->revision;
	count = ranges_from(mirror, *at);
	for (size_t i = 0; i < count && i < GP_HOST_RANGES_MAX; i++) {
		gp_enc_u64(&enc, mirror->ranges[i].address);
		gp_enc_u64(&enc, mirror->ranges[i].size);
	}
	if (count) {
		fetch->mirror = mirror;
		fetch->number = ++mirror->fetches;
		DL_APPEND(mirror->under_way, fetch);
	}
	(void)pthread_mutex_unlock(&mirror->lock);
	return (struct gp_bytes){ room, gp_enc_size(&enc) };
}

static CUresult
fetch_all(struct mirror *mirror)
{
	uint8_t room[GP_HOST_RANGES_MAX * 16] __attribute__((aligned(8)));
	uint64_t at = 0, revision = 0;

	for (;;) {
		struct fetch fetch = { 0 };
		struct gp_bytes ranges;
		CUresult result = CUDA_SUCCESS;

		(void)pthread_mutex_lock(&mirror->send_lock);
		ranges = begin_fetch(mirror, &fetch, &at, &revision, room);
		if (ranges.size)
			result = start_fetch(mirror, &ranges, &fetch);
		(void)pthread_mutex_unlock(&mirror->send_lock);
		if (ranges.size == 0 || result != CUDA_SUCCESS)
			return result;
		result = end_fetch(&fetch);
		if (result != CUDA_SUCCESS)
			return result;
		at += fetch.done;
	}
}

CUresult
gpc_mirror_fetch(struct gpc_session *session)
{
	struct mirror *mirror = find_mirror(session);

	if (!mirror || atomic_load(&mirror->clean) >= gpc_session_given(session))
		return CUDA_SUCCESS;
	return fetch_all(mirror);
}

/* Until there is work under way, or the session is over: then false. */
static bool
await_work(struct mirror *mirror)
{
	bool over;

	(void)pthread_mutex_lock(&mirror->lock);
	for (;;) {
		/* Who posts work looks at this behind it. */
		atomic_store(&mirror->sleeps, true);
		over = mirror->over;
		if (over || (mirror->blocks &&
			     atomic_load(&mirror->clean) < gpc_session_given(mirror->session)))
			break;
		(void)pthread_cond_wait(&mirror->wanted, &mirror->lock);
	}
	atomic_store(&mirror->sleeps, false);
	(void)pthread_mutex_unlock(&mirror->lock);
	return !over;
}

/* Whether all work up to that record is done and fetched. */
static bool
exchange(struct mirror *mirror, struct gpc_request *fence)
{
	/* Before the fetch, or work might end in between. */
	bool done = gpc_request_poll(fence);

	return gpc_mirror_send(mirror->session) == CUDA_SUCCESS &&
	       fetch_all(mirror) == CUDA_SUCCESS && done;
}

/* Changes go both ways until all that has been given by now is done. */
static void
exchange_until_done(struct mirror *mirror)
{
	const struct gp_args_gpFence args = { 0 };
	struct gpc_request fence = { .session = mirror->session };
	uint64_t given = gpc_session_given(mirror->session);
	bool done;

	if (gpc_start_gpFence(mirror->primary, &args, &fence) != CUDA_SUCCESS)
		return;
	do {
		uint64_t begin = gp_now_ns(), took;

		done = exchange(mirror, &fence);
		took = (gp_now_ns() - begin) * PAUSE_FACTOR;
		if (!done)
			gp_nap(took > PAUSE_NS ? took : PAUSE_NS);
	} while (!done && gpc_session_status(mirror->session) == CUDA_SUCCESS);
	/* What is outstanding is completed with the session's end. */
	(void)gpc_request_wait_own(&fence);
	free(fence.reply);
	if (done && fence.result == CUDA_SUCCESS)
		atomic_store(&mirror->clean, given);
}

static void *
run(void *arg)
{
	struct mirror *mirror = arg;

	while (await_work(mirror))
		exchange_until_done(mirror);
	gpc_thread_ended(mirror->session);
	return NULL;
}

static CUresult
start_thread(struct mirror *mirror) GP_LOCKED(mirror->lock)
{
	if (mirror->started)
		return CUDA_SUCCESS;
	if (gpc_thread_start(mirror->session, run, mirror, "gpupool-mirror"))
		return CUDA_ERROR_OUT_OF_MEMORY;
	mirror->started = true;
	return CUDA_SUCCESS;
}

static struct block *
make_block(void *host, uint64_t address, size_t size)
{
	struct block *block = calloc(1, sizeof(*block));

	if (!block)
		return NULL;
	block->shadow = malloc(size);
	if (!block->shadow) {
		free(block);
		return NULL;
	}
	block->host = host;
	block->address = address;
	block->size = size;
	return block;
}

static void
free_block(struct block *block)
{
	free(block->shadow);
	free(block);
}

/* All of the block goes out, before anything that is posted later. */
static CUresult
send_all(struct mirror *mirror, struct block *block) GP_LOCKED(mirror->send_lock)
{
	const struct gp_changes_range range = range_of(block);
	CUresult result = CUDA_SUCCESS;

	for (size_t at = 0; at < block->size && result == CUDA_SUCCESS;) {
		struct gp_changes changes = { .bytes = mirror->bytes, .room = GP_CHANGES_MAX };

		at += gp_changes_take_all(&changes, &range, at);
		result = post_changes(mirror, &changes);
	}
	return result;
}

static CUresult
enlist(struct mirror *mirror, struct block *block) GP_LOCKED(mirror->send_lock)
{
	CUresult result = CUDA_SUCCESS;

	(void)pthread_mutex_lock(&mirror->lock);
	if (mirror->count == mirror->room) {
		size_t room = mirror->room ? mirror->room * 2 : 16;
		struct gp_changes_range *ranges = realloc(mirror->ranges, room * sizeof(*ranges));

		if (ranges) {
			mirror->ranges = ranges;
			mirror->room = room;
		} else {
			result = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (result == CUDA_SUCCESS)
		result = start_thread(mirror);
	if (result == CUDA_SUCCESS) {
		block->fetches = mirror->fetches;
		DL_APPEND(mirror->blocks, block);
		mirror->count++;
		mirror->revision++;
		atomic_fetch_add(&gpc_mirrored, 1);
	}
	(void)pthread_mutex_unlock(&mirror->lock);
	return result;
}

CUresult
gpc_mirror_add(struct gpc_context *context, void *host, uint64_t address, size_t size)
{
	struct mirror *mirror = mirror_of(context);
	struct block *block = mirror ? make_block(host, address, size) : NULL;
	CUresult result;

	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(void)pthread_mutex_lock(&mirror->send_lock);
	result = send_all(mirror, block);
	if (result == CUDA_SUCCESS)
		result = enlist(mirror, block);
	(void)pthread_mutex_unlock(&mirror->send_lock);
	if (result != CUDA_SUCCESS)
		free_block(block);
	return result;
}

void
gpc_mirror_remove(struct gpc_session *session, uint64_t address)
{
	struct mirror *mirror = find_mirror(session);
	struct block *block;

	if (!mirror)
		return;
	/* Nothing of it is posted behind this. */
	(void)pthread_mutex_lock(&mirror->send_lock);
	(void)pthread_mutex_lock(&mirror->lock);
	DL_SEARCH_SCALAR(mirror->blocks, block, address, address);
	if (block) {
		DL_DELETE(mirror->blocks, block);
		mirror->count--;
		mirror->revision++;
		atomic_fetch_sub(&gpc_mirrored, 1);
	}
	(void)pthread_mutex_unlock(&mirror->lock);
	(void)pthread_mutex_unlock(&mirror->send_lock);
	if (block)
		free_block(block);
}
