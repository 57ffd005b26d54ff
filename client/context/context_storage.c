/* SPDX-License-Identifier: Apache-2.0 */
#include "client/context/context_storage.h"

#include "base/lock.h"
#include "client/guard/guard.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

struct entry {
	CUcontext ctx;
	void *key;
	void *value;
	gpc_context_storage_destructor *destructor;
	struct entry *next;
};

/* A short list: contexts times runtimes. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries GP_GUARDED_BY(lock);

/* Number of changes to the map, by which a thread detects that its cached values are outdated. */
static atomic_uint_fast64_t generation = 1;

/* Generation 0 never occurs, so the cache is initially empty. */
struct cached_value {
	uint64_t generation;
	CUcontext ctx;
	void *key;
	void *value;
};

#define CACHED_VALUES_MAX 8 /* typical number of runtimes in one process */
static __thread struct cached_value cached_value[CACHED_VALUES_MAX];

static void
lock_acquire(void) GP_LOCKS(lock)
{
	(void)pthread_mutex_lock(&lock);
}

static void
lock_release(void) GP_UNLOCKS(lock)
{
	(void)pthread_mutex_unlock(&lock);
}

/* Whether this thread acquired the lock for a fork. */
static __thread bool fork_locked;

/* A fork in a signal handler must not wait for a lock held by the call that it interrupted. */
static void
fork_prepare(void) GP_LOCK_UNCHECKED
{
	fork_locked = !gpc_guard_is_inside();
	if (fork_locked)
		lock_acquire();
}

static void
fork_release(void) GP_LOCK_UNCHECKED
{
	if (fork_locked)
		lock_release();
	fork_locked = false;
}

/* If the lock was not acquired before the fork, another thread of the parent may have held it. */
static void
fork_child(void) GP_LOCK_UNCHECKED
{
	if (!fork_locked)
		(void)pthread_mutex_init(&lock, NULL);
	fork_release();
}

/* Exit handlers of the child use the map, regardless of what other threads of the parent were
 * doing. */
static void
fork_register(void)
{
	(void)pthread_atfork(fork_prepare, fork_release, fork_child);
}

static struct cached_value *
cached_value_get(CUcontext ctx, void *key)
{
	uint64_t bits = (uintptr_t)ctx * 31 + (uintptr_t)key;

	return &cached_value[(bits * 0x9e3779b97f4a7c15u) >> 32 & (CACHED_VALUES_MAX - 1)];
}

static struct entry **
entry_find(CUcontext ctx, void *key)
{
	struct entry **place = &entries;

	while (*place && !((*place)->ctx == ctx && (*place)->key == key))
		place = &(*place)->next;
	return place;
}

/* After the change: a thread that sees the new number also sees the change. */
static void
generation_advance(void) GP_LOCKED(lock)
{
	atomic_fetch_add_explicit(&generation, 1, memory_order_release);
}

CUresult
gpc_context_storage_put(CUcontext ctx, void *key, void *value,
			gpc_context_storage_destructor *destructor)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct entry *fresh = calloc(1, sizeof(*fresh));
	struct entry **place;

	if (!fresh)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(void)pthread_once(&once, fork_register);

	lock_acquire();
	place = entry_find(ctx, key);
	if (!*place) {
		*place = fresh;
		fresh = NULL;
	}
	(*place)->ctx = ctx;
	(*place)->key = key;
	(*place)->value = value;
	(*place)->destructor = destructor;
	generation_advance();
	lock_release();
	free(fresh);
	return CUDA_SUCCESS;
}

static CUresult
entry_get_value(void **value_p, CUcontext ctx, void *key, struct cached_value *place)
{
	struct entry *entry;

	lock_acquire();
	entry = *entry_find(ctx, key);
	if (entry) {
		/* A signal handler must not see a partial entry. */
		place->generation = 0;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		place->ctx = ctx;
		place->key = key;
		place->value = entry->value;
		*value_p = entry->value;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		place->generation = atomic_load_explicit(&generation, memory_order_relaxed);
	}
	lock_release();
	return entry ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult
gpc_context_storage_get(void **value_p, CUcontext ctx, void *key)
{
	struct cached_value *place = cached_value_get(ctx, key);
	CUresult result;

	if (place->generation == atomic_load_explicit(&generation, memory_order_acquire) &&
	    place->ctx == ctx && place->key == key) {
		*value_p = place->value;
		return CUDA_SUCCESS;
	}
	if (!gpc_guard_enter_quick())
		return CUDA_ERROR_NOT_PERMITTED;
	result = entry_get_value(value_p, ctx, key, place);
	gpc_guard_leave();
	return result;
}

CUresult
gpc_context_storage_delete(CUcontext ctx, void *key)
{
	struct entry **place, *entry;

	lock_acquire();
	place = entry_find(ctx, key);
	entry = *place;
	if (entry) {
		*place = entry->next;
		generation_advance();
	}
	lock_release();
	free(entry);
	return entry ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static struct entry *
entries_remove_context(CUcontext ctx)
{
	struct entry *removed = NULL, **place = &entries;

	lock_acquire();
	while (*place) {
		struct entry *entry = *place;

		if (entry->ctx != ctx) {
			place = &entry->next;
			continue;
		}
		*place = entry->next;
		entry->next = removed;
		removed = entry;
	}
	generation_advance();
	lock_release();
	return removed;
}

void
gpc_context_storage_reset(CUcontext ctx)
{
	struct entry *removed = entries_remove_context(ctx);

	/* Without the lock: a destructor may call these functions and store a new value. */
	while (removed) {
		struct entry *entry = removed;

		removed = entry->next;
		if (entry->destructor) {
			struct gpc_guard before = gpc_guard_clear();

			entry->destructor(entry->ctx, entry->key, entry->value);
			gpc_guard_set(before);
		}
		free(entry);
	}
}
