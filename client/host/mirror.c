/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/mirror.h"

#include "base/lock.h"
#include "client/connect/facts.h"
#include "client/context/context.h"
#include "client/host/host_block.h"
#include "client/host/listed_copy.h"
#include "client/host/mirror_state.h"
#include "client/host/sent.h"
#include "client/wire/session.h"
#include "client/wire/session_threads.h"
#include "gpc_calls.h"
#include "protocol/host_changes.h"
#include "protocol/host_marks.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* So often it is tried to get all at once; then it comes in parts that have no order. */
#define TRIES 4
/* And so often that a picture names no block which kernels do not reach. */
#define REACH_TRIES 16

atomic_uint gpc_mirrored;
static struct gpc_mirror *_Atomic mirrors;
static pthread_mutex_t mirrors_lock = PTHREAD_MUTEX_INITIALIZER;

struct gpc_mirror *
gpc_mirror_find(const struct gpc_session *session)
{
	struct gpc_mirror *mirror = atomic_load(&mirrors);

	while (mirror && mirror->session != session)
		mirror = mirror->next;
	return mirror;
}

static void
end(void *arg)
{
	struct gpc_mirror *mirror = arg;

	(void)pthread_mutex_lock(&mirror->lock);
	mirror->over = true;
	(void)pthread_cond_signal(&mirror->wanted);
	(void)pthread_mutex_unlock(&mirror->lock);
}

static void
before_function(void *arg)
{
	const struct gpc_mirror *mirror = arg;

	(void)gpc_mirror_fetch(mirror->session);
}

static void
after_function(void *arg)
{
	const struct gpc_mirror *mirror = arg;

	(void)gpc_mirror_send(mirror->session);
}

static void
publish(void *arg, uint32_t number)
{
	struct gpc_mirror *mirror = arg;

	(void)pthread_mutex_lock(&mirror->lock);
	mirror->publish_number = number;
	(void)pthread_cond_signal(&mirror->wanted);
	(void)pthread_mutex_unlock(&mirror->lock);
}

/* Of a picture, under both locks. */
static bool
may_send(void *arg, uint64_t value)
{
	struct gpc_mirror *mirror = arg;

	return !gpc_host_names_note(&mirror->names, value);
}

/* The program may have made a block while the picture was read, and have put its address there: so
 * this asks behind that whether there are blocks to be found, and where. */
static void
has_read(void *arg)
{
	struct gpc_mirror *mirror = arg;

	/* What only reads might be done before what was read. */
	(void)atomic_fetch_add(&gpc_host_memory_cold, 0);
	gpc_host_names_begin(&mirror->names, mirror->session);
	mirror->picture.may = mirror->names.size ? may_send : NULL;
}

static struct gpc_mirror *
create(struct gpc_context *context)
{
	struct gpc_mirror *mirror = calloc(1, sizeof(*mirror));

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
	mirror->keeper = (struct gpc_session_keeper){ end, before_function, after_function, publish,
						      mirror };
	gpc_session_set_keeper(mirror->session, &mirror->keeper);
	return mirror;
}

/* NULL: no memory for it. */
static struct gpc_mirror *
mirror_of(struct gpc_context *context)
{
	struct gpc_mirror *mirror = gpc_mirror_find(context->scope.session);

	if (mirror)
		return mirror;
	(void)pthread_mutex_lock(&mirrors_lock);
	mirror = gpc_mirror_find(context->scope.session);
	if (!mirror)
		mirror = create(context);
	(void)pthread_mutex_unlock(&mirrors_lock);
	return mirror;
}

static struct gp_changes_range
range_of(const struct gpc_mirror_block *block)
{
	return (struct gp_changes_range){ block->address, block->host, block->shadow, block->size,
					  block->marks };
}

/* Behind so many bytes of all blocks; how many ranges there are. */
size_t
gpc_mirror_ranges_from(struct gpc_mirror *mirror, uint64_t skip) GP_LOCKED(mirror->lock)
{
	size_t count = 0;

	for (struct gpc_mirror_block *block = mirror->blocks; block; block = block->next) {
		struct gp_changes_range range = range_of(block);
		uint64_t less = skip < range.size ? skip : range.size;

		skip -= less;
		if (less == range.size)
			continue;
		range.address += less;
		range.marks = gp_marks_at(block->marks, block->address, range.address);
		range.copy = (uint8_t *)range.copy + less;
		range.shadow = (uint8_t *)range.shadow + less;
		range.size -= less;
		mirror->ranges[count++] = range;
	}
	return count;
}

static void
free_block(struct gpc_mirror_block *block)
{
	free(block->shadow);
	free(block->marks);
	free(block);
}

static void
delist(struct gpc_mirror *mirror, struct gpc_mirror_block *block) GP_LOCKED(mirror->lock)
{
	DL_DELETE(mirror->blocks, block);
	mirror->count--;
	mirror->size -= block->size;
	mirror->revision++;
	atomic_fetch_sub(&gpc_mirrored, 1);
	gpc_session_count_witnesses(mirror->session, -1);
}

/* The program may let go of memory that it has registered, and not say so.  What CUDA has given is
 * there. */
void
gpc_mirror_drop_gone(struct gpc_mirror *mirror) GP_LOCKED(mirror->lock)
{
	struct gpc_mirror_block *block, *next;

	DL_FOREACH_SAFE(mirror->blocks, block, next)
	{
		if (block->address == (uintptr_t)block->host ||
		    gpc_host_block_is_there(block->host, block->size))
			continue;
		delist(mirror, block);
		free_block(block);
	}
}

/* The blocks may be other ones than before. */
void
gpc_mirror_look_around(struct gpc_mirror *mirror, struct gpc_mirror_way *way)
	GP_LOCKED(mirror->lock)
{
	gpc_mirror_drop_gone(mirror);
	if (way->revision != mirror->revision)
		*way = (struct gpc_mirror_way){ .revision = mirror->revision };
}

/* So much was asked for from way->at on, and so much of it is done. */
void
gpc_mirror_go_on(struct gpc_mirror_way *way, uint64_t asked, uint64_t done)
{
	if (way->part == GP_PICTURE_ALL && done < asked) {
		way->from = way->at;
		way->end = way->at + asked;
		way->part = way->tries++ < TRIES ? GP_PICTURE_LONG : GP_PICTURE_ANY;
		return;
	}
	way->at += done;
	if (way->part == GP_PICTURE_ALL) {
		way->tries = 0;
	} else if (way->at >= way->end) {
		if (way->part == GP_PICTURE_LONG)
			way->at = way->from;
		else
			way->tries = 0;
		way->part = GP_PICTURE_ALL;
	}
}

static CUresult
post_changes(struct gpc_mirror *mirror, const struct gp_changes *changes)
	GP_LOCKED(mirror->send_lock)
{
	const struct gp_args_gpHostWrite args = { .changes = { changes->bytes, changes->size } };
	CUresult result;

	if (!changes->size)
		return CUDA_SUCCESS;
	result = gpc_post_gpHostWrite(mirror->primary, &args);
	mirror->writes += result == CUDA_SUCCESS;
	return result;
}

static CUresult
post_picture(struct gpc_mirror *mirror) GP_LOCKED(mirror->send_lock)
{
	CUresult result = CUDA_SUCCESS;
	size_t at = 0, skip = 0;

	while (result == CUDA_SUCCESS) {
		struct gp_changes changes = { .bytes = mirror->bytes, .room = GP_CHANGES_MAX };

		if (!gp_changes_move(&changes, &mirror->picture.ordered, &at, &skip))
			break;
		result = post_changes(mirror, &changes);
	}
	return result;
}

/* Answers that are under way may not know of the picture: by the records that it will go out in. */
static void
remember(struct gpc_mirror *mirror) GP_LOCKED(mirror->send_lock)
{
	uint64_t record = mirror->writes;
	size_t at = 0, skip = 0;

	for (;;) {
		struct gp_changes changes = { .bytes = mirror->bytes, .room = GP_CHANGES_MAX };

		if (!gp_changes_move(&changes, &mirror->picture.ordered, &at, &skip))
			break;
		gpc_sent_remember(&mirror->sent, ++record, &changes);
	}
}

static bool
is_refused(const struct gpc_mirror *mirror) GP_LOCKED(mirror->send_lock)
{
	return mirror->names.count || mirror->names.failed;
}

/* Kernels reach what a picture names before they see its address.  Without the lock, which that
 * takes; the next picture is another one. */
static CUresult
reach_named(struct gpc_mirror *mirror) GP_LOCKED(mirror->send_lock)
{
	struct gpc_host_names names = mirror->names;
	CUresult result;

	mirror->names = (struct gpc_host_names){ 0 };
	(void)pthread_mutex_unlock(&mirror->send_lock);
	result = gpc_host_block_reach_names(&names);
	gpc_host_names_fini(&names);
	(void)pthread_mutex_lock(&mirror->send_lock);
	return result;
}

/* Looks at all blocks from a place on; false: that was all.  is_refused(): it names blocks, which
 * are asked for, and was not taken. */
static bool
take_picture(struct gpc_mirror *mirror, struct gpc_mirror_way *way, bool ask, CUresult *result)
	GP_LOCKED(mirror->send_lock)
{
	struct gp_picture *picture = &mirror->picture;
	uint64_t asked = 0, done;
	size_t count;

	(void)pthread_mutex_lock(&mirror->lock);
	gpc_mirror_look_around(mirror, way);
	count = gpc_mirror_ranges_from(mirror, way->at);
	for (size_t i = 0; i < count; i++)
		asked += mirror->ranges[i].size;
	picture->may = NULL;
	picture->has_read = ask ? has_read : NULL;
	picture->arg = mirror;
	done = gp_picture_take(picture, mirror->ranges, count, way->part);
	if (picture->ordered.size && mirror->under_way)
		remember(mirror);
	(void)pthread_mutex_unlock(&mirror->lock);
	if (is_refused(mirror))
		return true;
	if (done == 0 && way->part != GP_PICTURE_ALL)
		*result = CUDA_ERROR_OUT_OF_MEMORY;
	gpc_mirror_go_on(way, asked, done);
	return asked > 0;
}

/* What kernels cannot reach does not keep a picture here for ever. */
static CUresult
send_pictures(struct gpc_mirror *mirror) GP_LOCKED(mirror->send_lock)
{
	CUresult result = CUDA_SUCCESS;
	struct gpc_mirror_way way = { 0 };
	int tries = 0;

	while (result == CUDA_SUCCESS && take_picture(mirror, &way, tries < REACH_TRIES, &result)) {
		if (is_refused(mirror)) {
			result = reach_named(mirror);
			tries++;
		} else if (result == CUDA_SUCCESS && mirror->picture.ordered.size) {
			result = gpc_listed_copies_replace(mirror);
			if (result == CUDA_SUCCESS)
				result = post_picture(mirror);
		}
	}
	return result;
}

/* What takes more than one record is not mixed with what another thread sends. */
CUresult
gpc_mirror_send(struct gpc_session *session)
{
	struct gpc_mirror *mirror = gpc_mirror_find(session);
	CUresult result;

	if (!mirror)
		return CUDA_SUCCESS;
	(void)pthread_mutex_lock(&mirror->send_lock);
	result = send_pictures(mirror);
	gp_picture_trim(&mirror->picture);
	(void)pthread_mutex_unlock(&mirror->send_lock);
	return result;
}

void
gpc_mirror_wake(struct gpc_session *session)
{
	struct gpc_mirror *mirror = gpc_mirror_find(session);

	if (!mirror || !atomic_load(&mirror->sleeps))
		return;
	(void)pthread_mutex_lock(&mirror->lock);
	(void)pthread_cond_signal(&mirror->wanted);
	(void)pthread_mutex_unlock(&mirror->lock);
}

static CUresult
start_thread(struct gpc_mirror *mirror) GP_LOCKED(mirror->lock)
{
	if (mirror->started)
		return CUDA_SUCCESS;
	if (gpc_thread_start(mirror->session, gpc_mirror_run, mirror, "gpupool-mirror"))
		return CUDA_ERROR_OUT_OF_MEMORY;
	mirror->started = true;
	return CUDA_SUCCESS;
}

static struct gpc_mirror_block *
make_block(void *host, uint64_t address, size_t size)
{
	struct gpc_mirror_block *block = calloc(1, sizeof(*block));

	if (!block)
		return NULL;
	block->shadow = malloc(size);
	block->marks = calloc(1, gp_marks_room(size));
	if (!block->shadow || !block->marks) {
		free_block(block);
		return NULL;
	}
	block->host = host;
	block->address = address;
	block->size = size;
	return block;
}

/* Before the first change: unchanged bytes of changed words are not sent from here on. */
static CUresult
mirror_open(struct gpc_mirror *mirror) GP_LOCKED(mirror->send_lock)
{
	const struct gp_args_gpHostPublish none = { 0 };
	const struct gp_args_gpHostMerge args = { 0 };
	CUresult result = CUDA_SUCCESS;

	if (mirror->opened)
		return CUDA_SUCCESS;
	if (gpc_facts_know(gpc_session_facts(mirror->session), GP_CALL_gpHostMerge)) {
		result = gpc_post_gpHostMerge(mirror->primary, &args);
		mirror->picture.merges = result == CUDA_SUCCESS;
	}
	/* Flags in memory that is shared are seen at once, and data here is not. */
	if (result == CUDA_SUCCESS && gpc_session_shares_memory(mirror->session) &&
	    gpc_facts_know(gpc_session_facts(mirror->session), GP_CALL_gpHostPublish))
		result = gpc_post_gpHostPublish(mirror->primary, &none);
	mirror->opened = result == CUDA_SUCCESS;
	return result;
}

/* All of the block goes out, before anything that is posted later. */
static CUresult
send_all(struct gpc_mirror *mirror, struct gpc_mirror_block *block) GP_LOCKED(mirror->send_lock)
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
enlist(struct gpc_mirror *mirror, struct gpc_mirror_block *block) GP_LOCKED(mirror->send_lock)
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
		block->writes = mirror->writes;
		DL_APPEND(mirror->blocks, block);
		mirror->count++;
		mirror->size += block->size;
		mirror->revision++;
		atomic_fetch_add(&gpc_mirrored, 1);
		gpc_session_count_witnesses(mirror->session, 1);
	}
	(void)pthread_mutex_unlock(&mirror->lock);
	return result;
}

CUresult
gpc_mirror_add(struct gpc_context *context, void *host, uint64_t address, size_t size)
{
	struct gpc_mirror *mirror = mirror_of(context);
	struct gpc_mirror_block *block = mirror ? make_block(host, address, size) : NULL;
	CUresult result;

	if (!block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(void)pthread_mutex_lock(&mirror->send_lock);
	result = mirror_open(mirror);
	if (result == CUDA_SUCCESS)
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
	struct gpc_mirror *mirror = gpc_mirror_find(session);
	struct gpc_mirror_block *block;

	if (!mirror)
		return;
	/* Nothing of it is posted behind this. */
	(void)pthread_mutex_lock(&mirror->send_lock);
	(void)pthread_mutex_lock(&mirror->lock);
	DL_SEARCH_SCALAR(mirror->blocks, block, address, address);
	if (block)
		delist(mirror, block);
	(void)pthread_mutex_unlock(&mirror->lock);
	(void)pthread_mutex_unlock(&mirror->send_lock);
	if (block)
		free_block(block);
}
