/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/coherence.h"

#include "base/lock.h"
#include "client/base/list.h"
#include "client/connect/welcome.h"
#include "client/context/context.h"
#include "client/host/coherence_internal.h"
#include "client/host/host_block.h"
#include "client/host/inflight_writes.h"
#include "client/host/listed_copy.h"
#include "client/session/session.h"
#include "client/session/session_threads.h"
#include "gpc_calls.h"
#include "protocol/host_changes.h"
#include "protocol/host_run_bitmap.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Number of attempts to build a consistent copy of everything; then it is sent in parts that have
 * no order. */
#define TRIES 4
/* Number of attempts to map all blocks that a consistent copy points to. */
#define MAP_TRIES 16

atomic_uint gpc_replica_count;
static struct gpc_coherence *_Atomic coherences;
static pthread_mutex_t coherences_lock = PTHREAD_MUTEX_INITIALIZER;

struct gpc_coherence *
gpc_coherence_find(const struct gpc_session *session)
{
	struct gpc_coherence *coherence = atomic_load(&coherences);

	while (coherence && coherence->session != session)
		coherence = coherence->next;
	return coherence;
}

static void
coherence_stop(void *arg)
{
	struct gpc_coherence *coherence = arg;

	(void)pthread_mutex_lock(&coherence->lock);
	coherence->over = true;
	(void)pthread_cond_signal(&coherence->wanted);
	(void)pthread_mutex_unlock(&coherence->lock);
}

static void
coherence_before_function(void *arg)
{
	const struct gpc_coherence *coherence = arg;

	(void)gpc_coherence_fetch(coherence->session);
}

static void
coherence_after_function(void *arg)
{
	const struct gpc_coherence *coherence = arg;

	(void)gpc_coherence_send(coherence->session);
}

static void
coherence_request_publish(void *arg, uint32_t number)
{
	struct gpc_coherence *coherence = arg;

	(void)pthread_mutex_lock(&coherence->lock);
	coherence->publish_number = number;
	(void)pthread_cond_signal(&coherence->wanted);
	(void)pthread_mutex_unlock(&coherence->lock);
}

/* Filter of a consistent copy, called with both locks held. */
static bool
value_may_be_sent(void *arg, uint64_t value)
{
	struct gpc_coherence *coherence = arg;

	return !gpc_pointer_scan_check(&coherence->pointers, value);
}

/* The program may have created a block while the copy was read, and stored its address there. So
 * the existence and bounds of blocks are checked after the read. */
static void
scan_prepare(void *arg)
{
	struct gpc_coherence *coherence = arg;

	/* A write, as a mere load might be executed before the preceding reads. */
	(void)atomic_fetch_add(&gpc_host_memory_copy_only, 0);
	gpc_pointer_scan_init(&coherence->pointers, coherence->session);
	coherence->consistent_copy.allow = coherence->pointers.size ? value_may_be_sent : NULL;
}

static struct gpc_coherence *
coherence_create(struct gpc_context *context)
{
	struct gpc_coherence *coherence = calloc(1, sizeof(*coherence));

	if (!coherence)
		return NULL;
	coherence->bytes = malloc(GP_CHANGES_MAX);
	if (!coherence->bytes) {
		free(coherence);
		return NULL;
	}
	coherence->session = context->scope.session;
	coherence->primary = context->device->primary;
	(void)pthread_mutex_init(&coherence->send_lock, NULL);
	(void)pthread_mutex_init(&coherence->lock, NULL);
	gp_cond_init(&coherence->wanted);
	coherence->next = atomic_load(&coherences);
	atomic_store(&coherences, coherence);
	coherence->callbacks =
		(struct gpc_session_callbacks){ coherence_stop, coherence_before_function,
						coherence_after_function, coherence_request_publish,
						coherence };
	gpc_session_set_callbacks(coherence->session, &coherence->callbacks);
	return coherence;
}

/* Returns NULL if memory is exhausted. */
static struct gpc_coherence *
coherence_get(struct gpc_context *context)
{
	struct gpc_coherence *coherence = gpc_coherence_find(context->scope.session);

	if (coherence)
		return coherence;
	(void)pthread_mutex_lock(&coherences_lock);
	coherence = gpc_coherence_find(context->scope.session);
	if (!coherence)
		coherence = coherence_create(context);
	(void)pthread_mutex_unlock(&coherences_lock);
	return coherence;
}

static struct gp_changes_range
replica_get_range(const struct gpc_replica *replica)
{
	return (struct gp_changes_range){ replica->address, replica->host, replica->shadow,
					  replica->size, replica->run_bitmap };
}

/* Fills coherence->ranges with the blocks from the byte offset `skip` on. Returns their number. */
size_t
gpc_coherence_get_ranges(struct gpc_coherence *coherence, uint64_t skip) GP_LOCKED(coherence->lock)
{
	size_t count = 0;

	for (struct gpc_replica *replica = coherence->blocks; replica; replica = replica->next) {
		struct gp_changes_range range = replica_get_range(replica);
		uint64_t less = skip < range.size ? skip : range.size;

		skip -= less;
		if (less == range.size)
			continue;
		range.address += less;
		range.run_bitmap =
			gp_run_bitmap_at(replica->run_bitmap, replica->address, range.address);
		range.copy = (uint8_t *)range.copy + less;
		range.shadow = (uint8_t *)range.shadow + less;
		range.size -= less;
		coherence->ranges[count++] = range;
	}
	return count;
}

static void
replica_free(struct gpc_replica *replica)
{
	free(replica->shadow);
	free(replica->run_bitmap);
	free(replica);
}

static void
replica_unlink(struct gpc_coherence *coherence, struct gpc_replica *replica)
	GP_LOCKED(coherence->lock)
{
	DL_DELETE(coherence->blocks, replica);
	coherence->count--;
	coherence->size -= replica->size;
	coherence->revision++;
	atomic_fetch_sub(&gpc_replica_count, 1);
	gpc_session_count_visible_blocks(coherence->session, -1);
}

/* The program may unmap registered memory without unregistering it. Memory allocated by CUDA is
 * always mapped. */
void
gpc_coherence_drop_unmapped(struct gpc_coherence *coherence) GP_LOCKED(coherence->lock)
{
	struct gpc_replica *replica, *next;

	DL_FOREACH_SAFE(coherence->blocks, replica, next)
	{
		if (replica->address == (uintptr_t)replica->host ||
		    gpc_host_block_is_mapped(replica->host, replica->size))
			continue;
		replica_unlink(coherence, replica);
		replica_free(replica);
	}
}

/* Restarts the cursor if the list of blocks has changed. */
void
gpc_coherence_refresh_cursor(struct gpc_coherence *coherence, struct gpc_coherence_cursor *cursor)
	GP_LOCKED(coherence->lock)
{
	gpc_coherence_drop_unmapped(coherence);
	if (cursor->revision != coherence->revision)
		*cursor = (struct gpc_coherence_cursor){ .revision = coherence->revision };
}

/* Advances the cursor: `requested` bytes were requested from cursor->at on, of which `done` were
 * processed. */
void
gpc_coherence_cursor_advance(struct gpc_coherence_cursor *cursor, uint64_t requested, uint64_t done)
{
	if (cursor->part == GP_CONSISTENT_COPY_ALL && done < requested) {
		cursor->from = cursor->at;
		cursor->end = cursor->at + requested;
		cursor->part =
			cursor->tries++ < TRIES ? GP_CONSISTENT_COPY_LONG : GP_CONSISTENT_COPY_ANY;
		return;
	}
	cursor->at += done;
	if (cursor->part == GP_CONSISTENT_COPY_ALL) {
		cursor->tries = 0;
	} else if (cursor->at >= cursor->end) {
		if (cursor->part == GP_CONSISTENT_COPY_LONG)
			cursor->at = cursor->from;
		else
			cursor->tries = 0;
		cursor->part = GP_CONSISTENT_COPY_ALL;
	}
}

static CUresult
changes_post(struct gpc_coherence *coherence, const struct gp_changes *changes)
	GP_LOCKED(coherence->send_lock)
{
	const struct gp_args_gpHostWrite args = { .changes = { changes->bytes, changes->size } };
	CUresult result;

	if (!changes->size)
		return CUDA_SUCCESS;
	result = gpc_post_gpHostWrite(coherence->primary, &args);
	coherence->writes += result == CUDA_SUCCESS;
	return result;
}

static CUresult
consistent_copy_post(struct gpc_coherence *coherence) GP_LOCKED(coherence->send_lock)
{
	CUresult result = CUDA_SUCCESS;
	size_t at = 0, skip = 0;

	while (result == CUDA_SUCCESS) {
		struct gp_changes changes = { .bytes = coherence->bytes,
					      .capacity = GP_CHANGES_MAX };

		if (!gp_changes_move(&changes, &coherence->consistent_copy.ordered, &at, &skip))
			break;
		result = changes_post(coherence, &changes);
	}
	return result;
}

/* Replies in flight may not include this copy, so it is recorded by the numbers of the records that
 * will carry it. */
static void
inflight_writes_note(struct gpc_coherence *coherence) GP_LOCKED(coherence->send_lock)
{
	uint64_t record = coherence->writes;
	size_t at = 0, skip = 0;

	for (;;) {
		struct gp_changes changes = { .bytes = coherence->bytes,
					      .capacity = GP_CHANGES_MAX };

		if (!gp_changes_move(&changes, &coherence->consistent_copy.ordered, &at, &skip))
			break;
		gpc_inflight_writes_add(&coherence->sent, ++record, &changes);
	}
}

static bool
copy_is_refused(const struct gpc_coherence *coherence) GP_LOCKED(coherence->send_lock)
{
	return coherence->pointers.count || coherence->pointers.failed;
}

/* Makes the blocks that the copy points to accessible to kernels before these see the addresses.
 * Releases the lock, which that acquires; the next copy is read anew. */
static CUresult
pointers_map(struct gpc_coherence *coherence) GP_LOCKED(coherence->send_lock)
{
	struct gpc_pointer_scan pointers = coherence->pointers;
	CUresult result;

	coherence->pointers = (struct gpc_pointer_scan){ 0 };
	(void)pthread_mutex_unlock(&coherence->send_lock);
	result = gpc_host_block_map_pointers(&pointers);
	gpc_pointer_scan_fini(&pointers);
	(void)pthread_mutex_lock(&coherence->send_lock);
	return result;
}

/* Reads all blocks from the cursor on. Returns false if there was nothing left. If
 * copy_is_refused(), the copy points to blocks that must be mapped first, and was not accepted. */
static bool
consistent_copy_read(struct gpc_coherence *coherence, struct gpc_coherence_cursor *cursor,
		     bool map_pointers, CUresult *result) GP_LOCKED(coherence->send_lock)
{
	struct gp_consistent_copy *consistent_copy = &coherence->consistent_copy;
	uint64_t requested = 0, done;
	size_t count;

	(void)pthread_mutex_lock(&coherence->lock);
	gpc_coherence_refresh_cursor(coherence, cursor);
	count = gpc_coherence_get_ranges(coherence, cursor->at);
	for (size_t i = 0; i < count; i++)
		requested += coherence->ranges[i].size;
	consistent_copy->allow = NULL;
	consistent_copy->on_read = map_pointers ? scan_prepare : NULL;
	consistent_copy->arg = coherence;
	done = gp_consistent_copy_build(consistent_copy, coherence->ranges, count, cursor->part);
	if (consistent_copy->ordered.size && coherence->fetches)
		inflight_writes_note(coherence);
	(void)pthread_mutex_unlock(&coherence->lock);
	if (copy_is_refused(coherence))
		return true;
	if (done == 0 && cursor->part != GP_CONSISTENT_COPY_ALL)
		*result = CUDA_ERROR_OUT_OF_MEMORY;
	gpc_coherence_cursor_advance(cursor, requested, done);
	return requested > 0;
}

/* The number of attempts is limited, so that blocks that kernels cannot access do not hold back a
 * copy forever. */
static CUresult
consistent_copies_send(struct gpc_coherence *coherence) GP_LOCKED(coherence->send_lock)
{
	CUresult result = CUDA_SUCCESS;
	struct gpc_coherence_cursor cursor = { 0 };
	int tries = 0;

	while (result == CUDA_SUCCESS &&
	       consistent_copy_read(coherence, &cursor, tries < MAP_TRIES, &result)) {
		if (copy_is_refused(coherence)) {
			result = pointers_map(coherence);
			tries++;
		} else if (result == CUDA_SUCCESS && coherence->consistent_copy.ordered.size) {
			result = gpc_listed_copies_replace(coherence);
			if (result == CUDA_SUCCESS)
				result = consistent_copy_post(coherence);
		}
	}
	return result;
}

/* The lock is held throughout, so that changes in several records are not interleaved with those of
 * another thread. */
CUresult
gpc_coherence_send(struct gpc_session *session)
{
	struct gpc_coherence *coherence = gpc_coherence_find(session);
	CUresult result;

	if (!coherence)
		return CUDA_SUCCESS;
	(void)pthread_mutex_lock(&coherence->send_lock);
	result = consistent_copies_send(coherence);
	gp_consistent_copy_trim(&coherence->consistent_copy);
	(void)pthread_mutex_unlock(&coherence->send_lock);
	return result;
}

void
gpc_coherence_wake(struct gpc_session *session)
{
	struct gpc_coherence *coherence = gpc_coherence_find(session);

	if (!coherence || !atomic_load(&coherence->sleeps))
		return;
	(void)pthread_mutex_lock(&coherence->lock);
	(void)pthread_cond_signal(&coherence->wanted);
	(void)pthread_mutex_unlock(&coherence->lock);
}

static CUresult
coherence_start_thread(struct gpc_coherence *coherence) GP_LOCKED(coherence->lock)
{
	if (coherence->started)
		return CUDA_SUCCESS;
	if (gpc_thread_start(coherence->session, gpc_coherence_run, coherence, "gpupool-replica"))
		return CUDA_ERROR_OUT_OF_MEMORY;
	coherence->started = true;
	return CUDA_SUCCESS;
}

static struct gpc_replica *
replica_create(void *host, uint64_t address, size_t size)
{
	struct gpc_replica *replica = calloc(1, sizeof(*replica));

	if (!replica)
		return NULL;
	replica->shadow = malloc(size);
	replica->run_bitmap = calloc(1, gp_run_bitmap_get_size(size));
	if (!replica->shadow || !replica->run_bitmap) {
		replica_free(replica);
		return NULL;
	}
	replica->host = host;
	replica->address = address;
	replica->size = size;
	return replica;
}

/* Called before the first change: from here on unchanged bytes of changed words are not sent. */
static CUresult
coherence_open(struct gpc_coherence *coherence) GP_LOCKED(coherence->send_lock)
{
	const struct gp_args_gpHostPublish none = { 0 };
	const struct gp_args_gpHostMerge args = { 0 };
	CUresult result = CUDA_SUCCESS;

	if (coherence->opened)
		return CUDA_SUCCESS;
	if (gpc_facts_have_call(gpc_session_facts(coherence->session), GP_CALL_gpHostMerge)) {
		result = gpc_post_gpHostMerge(coherence->primary, &args);
		coherence->consistent_copy.merges = result == CUDA_SUCCESS;
	}
	/* Flags in shared memory are visible at once, unlike data in replicated memory. */
	if (result == CUDA_SUCCESS && gpc_session_shares_memory(coherence->session) &&
	    gpc_facts_have_call(gpc_session_facts(coherence->session), GP_CALL_gpHostPublish))
		result = gpc_post_gpHostPublish(coherence->primary, &none);
	coherence->opened = result == CUDA_SUCCESS;
	return result;
}

/* Sends the whole block, before anything that is posted later. */
static CUresult
replica_send(struct gpc_coherence *coherence, struct gpc_replica *replica)
	GP_LOCKED(coherence->send_lock)
{
	const struct gp_changes_range range = replica_get_range(replica);
	CUresult result = CUDA_SUCCESS;

	for (size_t at = 0; at < replica->size && result == CUDA_SUCCESS;) {
		struct gp_changes changes = { .bytes = coherence->bytes,
					      .capacity = GP_CHANGES_MAX };

		at += gp_changes_write_all(&changes, &range, at);
		result = changes_post(coherence, &changes);
	}
	return result;
}

static CUresult
replica_link(struct gpc_coherence *coherence, struct gpc_replica *replica)
	GP_LOCKED(coherence->send_lock)
{
	struct gp_changes_range *ranges;
	CUresult result = CUDA_SUCCESS;

	(void)pthread_mutex_lock(&coherence->lock);
	ranges = gpc_list_grow(coherence->ranges, coherence->count, &coherence->capacity,
			       sizeof(*ranges));
	if (ranges)
		coherence->ranges = ranges;
	else
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		result = coherence_start_thread(coherence);
	if (result == CUDA_SUCCESS) {
		replica->writes = coherence->writes;
		DL_APPEND(coherence->blocks, replica);
		coherence->count++;
		coherence->size += replica->size;
		coherence->revision++;
		atomic_fetch_add(&gpc_replica_count, 1);
		gpc_session_count_visible_blocks(coherence->session, 1);
	}
	(void)pthread_mutex_unlock(&coherence->lock);
	return result;
}

CUresult
gpc_coherence_add(struct gpc_context *context, void *host, uint64_t address, size_t size)
{
	struct gpc_coherence *coherence = coherence_get(context);
	struct gpc_replica *replica = coherence ? replica_create(host, address, size) : NULL;
	CUresult result;

	if (!replica)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(void)pthread_mutex_lock(&coherence->send_lock);
	result = coherence_open(coherence);
	if (result == CUDA_SUCCESS)
		result = replica_send(coherence, replica);
	if (result == CUDA_SUCCESS)
		result = replica_link(coherence, replica);
	(void)pthread_mutex_unlock(&coherence->send_lock);
	if (result != CUDA_SUCCESS)
		replica_free(replica);
	return result;
}

void
gpc_coherence_remove(struct gpc_session *session, uint64_t address)
{
	struct gpc_coherence *coherence = gpc_coherence_find(session);
	struct gpc_replica *replica;

	if (!coherence)
		return;
	/* Nothing of the block is posted after this. */
	(void)pthread_mutex_lock(&coherence->send_lock);
	(void)pthread_mutex_lock(&coherence->lock);
	DL_SEARCH_SCALAR(coherence->blocks, replica, address, address);
	if (replica)
		replica_unlink(coherence, replica);
	(void)pthread_mutex_unlock(&coherence->lock);
	(void)pthread_mutex_unlock(&coherence->send_lock);
	if (replica)
		replica_free(replica);
}
