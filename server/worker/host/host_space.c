/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/host/host_space.h"

#include "base/clock.h"
#include "base/lock.h"
#include "gpd_calls.h"
#include "server/worker/device/mapping_quota.h"
#include "server/worker/device/quiesce_jobs.h"
#include "server/worker/device/window.h"
#include "server/worker/host/host_arena.h"
#include "server/worker/host/host_space_internal.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/responder.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define PAGE UINT64_C(4096)
/* The driver unregisters some GiB in this time if no kernel runs. */
#define LEFT_WAIT_NS UINT64_C(2000000000)
#define LEFT_NAP_NS 1000000

/* An arena takes up to three mappings of the process. */
static struct gpd_mapping_quota arena_quota = { .part = 32,
						.max = GPD_HOST_ARENAS_MAX,
						.more = 4096 };

/* Bytes left registered by ended sessions of a tenant: the supervisor removes their charge with the
 * session, but the driver frees them only when the device is nearly idle. */
static _Atomic uint64_t left_bytes[GPD_LEDGER_TENANTS];

static void
free_arena(struct gpd_host_arena *arena)
{
	gpd_mapping_quota_release(&arena_quota, &arena->memory->arenas_alive);
	gpd_host_arena_free(arena);
}

static void
free_memory(struct gpd_host_memory *memory)
{
	gpd_window_release_host(&memory->range);
	pthread_mutex_destroy(&memory->lock);
	pthread_mutex_destroy(&memory->copies_lock);
	gp_consistent_copy_fini(&memory->consistent_copy);
	free(memory->arenas);
	free(memory);
}

/* Quiescence job: the driver waits for every kernel and blocks launches. */
static void
drop_arena(void *arg)
{
	struct gpd_host_arena *arena = arg;
	struct gpd_host_memory *memory = arena->memory;
	bool last, quiesced = gpd_quiesce_jobs_try();

	if (!quiesced || !gpd_host_arena_shrink(arena)) {
		gpd_quiesce_jobs_add(drop_arena, arena);
		return;
	}
	pthread_mutex_lock(&memory->lock);
	LL_DELETE(memory->leaving, arena);
	/* The session cannot end while the lock is held. */
	if (memory->session)
		gpd_account_uncharge_pinned(&memory->session->account,
					    gpd_host_memory_counts(arena->size, arena->shared));
	else
		atomic_fetch_sub(&left_bytes[memory->tenant],
				 gpd_host_memory_counts(arena->size, arena->shared));
	gpd_mapping_quota_release(&arena_quota, &memory->arenas_alive);
	last = !memory->session && !memory->leaving;
	pthread_mutex_unlock(&memory->lock);
	gpd_host_arena_free(arena);
	if (last)
		free_memory(memory);
}

/* Returns the index of the first arena that ends after address. */
static size_t
arena_find(const struct gpd_host_memory *memory, uint64_t address)
{
	size_t low = 0, high = memory->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (memory->arenas[middle]->address + memory->arenas[middle]->size <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct gpd_host_arena *
gpd_host_memory_arena(const struct gpd_session *session, uint64_t address, uint64_t size)
{
	const struct gpd_host_memory *memory = session->host_memory;
	struct gpd_host_arena *arena;
	size_t i;

	if (!memory)
		return NULL;
	i = arena_find(memory, address);
	if (i == memory->count)
		return NULL;
	arena = memory->arenas[i];
	return address >= arena->address && size <= arena->size &&
			       address - arena->address <= arena->size - size
		       ? arena
		       : NULL;
}

bool
gpd_host_memory_mapped(const struct gpd_session *session, uint64_t address, uint64_t size)
{
	return gpd_host_memory_arena(session, address, size) != NULL;
}

uint64_t
gpd_host_memory_get_registration_rest(const struct gpd_session *session, uint64_t address)
{
	const struct gpd_host_memory *memory = session->host_memory;

	if (!memory || address - memory->range.address >= memory->range.size)
		return UINT64_MAX;
	return gpd_host_arena_get_registration_rest(address);
}

/* Returns the session's, which is created with the first call, or NULL. */
static struct gpd_host_memory *
host_memory_get(struct gpd_session *session)
{
	struct gpd_host_memory *memory = session->host_memory;

	if (memory)
		return memory;
	memory = calloc(1, sizeof(*memory));
	if (!memory)
		return NULL;
	pthread_mutex_init(&memory->lock, NULL);
	pthread_mutex_init(&memory->copies_lock, NULL);
	memory->session = session;
	return session->host_memory = memory;
}

void
gpd_host_memory_reserve(struct gpd_session *session, struct gpd_range *range_p)
{
	*range_p = (struct gpd_range){ 0 };
	if (!host_memory_get(session))
		return;
	if (gpd_window_acquire_host(UINT64_MAX, range_p))
		*range_p = (struct gpd_range){ 0 };
	session->host_memory->range = *range_p;
}

/* Whether it has arenas in its range. */
static bool
has_arenas(const struct gpd_host_memory *memory)
{
	for (size_t i = 0; i < memory->count; i++) {
		if (!memory->arenas[i]->placed)
			return true;
	}
	return false;
}

CUresult
gpd_gpHostReserve(struct gpd_session *session, const struct gp_args_gpHostReserve *args,
		  struct gp_reply_gpHostReserve *reply)
{
	struct gpd_host_memory *memory = host_memory_get(session);
	struct gpd_range range;
	bool used;

	if (!memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&memory->lock);
	used = has_arenas(memory) || memory->leaving;
	pthread_mutex_unlock(&memory->lock);
	if (used)
		return CUDA_ERROR_INVALID_VALUE;
	if (gpd_window_acquire_host(args->size, &range))
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* Released only now, so that the new range differs. */
	gpd_window_release_host(&memory->range);
	memory->range = range;
	reply->address = range.address;
	reply->room = range.size;
	return CUDA_SUCCESS;
}

bool
gpd_host_memory_inside(struct gpd_session *session, uint64_t address, uint64_t size)
{
	const struct gpd_host_memory *memory = session->host_memory;

	if (memory && size <= memory->range.size && address >= memory->range.address &&
	    address - memory->range.address <= memory->range.size - size)
		return true;
	gpd_session_violation(session, "it names %llu bytes at %#llx, outside of its host memory",
			      (unsigned long long)size, (unsigned long long)address);
	return false;
}

static CUresult
check_free(struct gpd_host_memory *memory, uint64_t address, uint64_t size)
{
	size_t i = arena_find(memory, address);
	const struct gpd_host_arena *arena;

	if (i < memory->count && memory->arenas[i]->address < address + size)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&memory->lock);
	arena = memory->leaving;
	while (arena &&
	       (arena->address >= address + size || arena->address + arena->size <= address))
		arena = arena->next;
	pthread_mutex_unlock(&memory->lock);
	return arena ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

/* Adds the arena to the list, which has room. */
static void
arena_enlist(struct gpd_host_memory *memory, struct gpd_host_arena *arena)
{
	size_t i = arena_find(memory, arena->address);

	pthread_mutex_lock(&memory->copies_lock);
	memmove(&memory->arenas[i + 1], &memory->arenas[i],
		(memory->count - i) * sizeof(struct gpd_host_arena *));
	memory->arenas[i] = arena;
	memory->count++;
	pthread_mutex_unlock(&memory->copies_lock);
}

static void
arena_delist(struct gpd_host_memory *memory, const struct gpd_host_arena *arena)
{
	size_t i = arena_find(memory, arena->address);

	pthread_mutex_lock(&memory->copies_lock);
	memory->count--;
	memmove(&memory->arenas[i], &memory->arenas[i + 1],
		(memory->count - i) * sizeof(struct gpd_host_arena *));
	pthread_mutex_unlock(&memory->copies_lock);
}

static struct gpd_host_arena *
new_arena(struct gpd_session *session, uint64_t address, uint64_t size)
{
	struct gpd_host_memory *memory = session->host_memory;
	struct gpd_host_arena *arena;

	if (!memory->arenas)
		memory->arenas = calloc(GPD_HOST_ARENAS_MAX, sizeof(struct gpd_host_arena *));
	arena = memory->arenas ? calloc(1, sizeof(*arena)) : NULL;
	if (!arena)
		return NULL;
	if (!gpd_mapping_quota_acquire(&arena_quota, &memory->arenas_alive)) {
		gpd_session_log(session, GPD_LOG_INFO,
				"refused %llu bytes of pinned memory: it has %u pieces, and the "
				"process is at its limit of mappings",
				(unsigned long long)size, atomic_load(&memory->arenas_alive));
		free(arena);
		return NULL;
	}
	*arena = (struct gpd_host_arena){ .memory = memory, .address = address, .size = size };
	return arena;
}

static CUresult
arena_add(struct gpd_session *session, uint64_t address, uint64_t size, bool shared)
{
	struct gpd_host_arena *arena = new_arena(session, address, size);
	CUresult result;

	if (!arena)
		return CUDA_ERROR_OUT_OF_MEMORY;
	arena->shared = shared;
	result = gpd_host_arena_create(session, arena, shared);
	if (result == CUDA_SUCCESS)
		arena_enlist(session->host_memory, arena);
	else
		free_arena(arena);
	return result;
}

static bool
fits_left(const struct gpd_account *account)
{
	return atomic_load(&left_bytes[account->entry->tenant]) <=
	       gpd_ledger_headroom(account->ledger, account->entry, GPD_LEDGER_PINNED, 0).left;
}

static CUresult
pinned_charge(struct gpd_session *session, uint64_t counts)
{
	struct gpd_account *account = &session->account;
	const uint64_t until = gp_now_ns() + LEFT_WAIT_NS;
	CUresult result = gpd_account_charge_pinned(account, counts);

	while (result == CUDA_SUCCESS && !fits_left(account)) {
		gpd_account_uncharge_pinned(account, counts);
		if (atomic_load(&session->closing) || gp_now_ns() >= until)
			return CUDA_ERROR_OUT_OF_MEMORY;
		gp_sleep_ns(LEFT_NAP_NS);
		result = gpd_account_charge_pinned(account, counts);
	}
	return result;
}

static void
report_refused(struct gpd_session *session, uint64_t size)
{
	struct gpd_host_memory *memory = session->host_memory;
	bool leaving;

	pthread_mutex_lock(&memory->lock);
	leaving = memory->leaving != NULL;
	pthread_mutex_unlock(&memory->lock);
	if (!leaving)
		gpd_session_log(session, GPD_LOG_INFO,
				"refused %llu bytes of pinned memory (pinned-memory)",
				(unsigned long long)size);
}

CUresult
gpd_gpHostMap(struct gpd_session *session, const struct gp_args_gpHostMap *args)
{
	CUresult result;
	uint64_t counts;

	if (!args->size || (args->address | args->size) % PAGE || args->shared > 1 ||
	    !gpd_host_memory_inside(session, args->address, args->size))
		return CUDA_ERROR_INVALID_VALUE;
	result = check_free(session->host_memory, args->address, args->size);
	if (result != CUDA_SUCCESS)
		return result;
	counts = gpd_host_memory_counts(args->size, args->shared);
	result = pinned_charge(session, counts);
	if (result != CUDA_SUCCESS) {
		report_refused(session, counts);
		return result;
	}
	result = arena_add(session, args->address, args->size, args->shared);
	if (result != CUDA_SUCCESS)
		gpd_account_uncharge_pinned(&session->account, counts);
	return result;
}

CUresult
gpd_host_memory_prepare(struct gpd_session *session, uint64_t address, uint64_t size,
			struct gpd_host_arena **arena_p)
{
	uint64_t counts = gpd_host_memory_counts(size, false);
	struct gpd_host_arena *arena;
	CUresult result;

	arena = host_memory_get(session) ? new_arena(session, address, size) : NULL;
	if (!arena)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = pinned_charge(session, counts);
	if (result != CUDA_SUCCESS) {
		report_refused(session, counts);
		free_arena(arena);
		return result;
	}
	*arena_p = arena;
	return CUDA_SUCCESS;
}

void
gpd_host_memory_publish(struct gpd_session *session, struct gpd_host_arena *arena)
{
	arena->placed = true;
	arena_enlist(session->host_memory, arena);
}

void
gpd_host_memory_abandon(struct gpd_session *session, struct gpd_host_arena *arena)
{
	gpd_account_uncharge_pinned(&session->account, gpd_host_memory_counts(arena->size, false));
	free_arena(arena);
}

void
gpd_host_memory_displace(struct gpd_session *session, uint64_t address)
{
	struct gpd_host_arena *arena = gpd_host_memory_arena(session, address, 1);

	if (!arena || !arena->placed)
		return;
	arena_delist(session->host_memory, arena);
	free_arena(arena);
}

void
gpd_host_memory_enable_publish(struct gpd_session *session)
{
	if (session->host_memory)
		session->host_memory->publishes = true;
}

bool
gpd_host_memory_needs_publish(const struct gpd_session *session, uint64_t address, uint64_t size)
{
	const struct gpd_host_memory *memory = session->host_memory;

	return memory && memory->publishes && gpd_host_memory_mapped(session, address, size);
}

static void
arena_unused(struct gpd_session *session, void *arg, CUresult result)
{
	struct gpd_host_arena *arena = arg;

	gpd_wait_reply(session, arena->reply_token, result);
	gpd_quiesce_jobs_add(drop_arena, arena);
}

CUresult
gpd_gpHostUnmap(struct gpd_session *session, const struct gp_args_gpHostUnmap *args)
{
	struct gpd_host_memory *memory = session->host_memory;
	struct gpd_host_arena *arena = gpd_host_memory_arena(session, args->address, args->size);
	CUresult result;

	if (!arena || arena->address != args->address || arena->size != args->size || arena->placed)
		return CUDA_ERROR_INVALID_VALUE;
	arena_delist(memory, arena);
	arena->reply_token = gpd_wait_request(session);
	pthread_mutex_lock(&memory->lock);
	LL_PREPEND(memory->leaving, arena);
	pthread_mutex_unlock(&memory->lock);
	result = gpd_wait_add_all(session, NULL, arena_unused, arena);
	if (result == CUDA_SUCCESS)
		return GPD_LATER;
	return result;
}

void
gpd_host_memory_destroy(struct gpd_session *session)
{
	struct gpd_host_memory *memory = session->host_memory;
	struct gpd_host_arena **arenas, *arena;
	size_t count;
	bool last;

	if (!memory)
		return;
	arenas = memory->arenas;
	count = memory->count;
	memory->arenas = NULL;
	session->host_memory = NULL;
	pthread_mutex_lock(&memory->lock);
	memory->session = NULL;
	memory->tenant = session->account.entry->tenant;
	for (size_t i = 0; i < count; i++) {
		if (!arenas[i]->placed)
			LL_PREPEND(memory->leaving, arenas[i]);
	}
	LL_FOREACH(memory->leaving, arena)
	{
		uint64_t counts = gpd_host_memory_counts(arena->size, arena->shared);

		atomic_fetch_add(&left_bytes[memory->tenant], counts);
		gpd_account_uncharge_pinned(&session->account, counts);
	}
	last = !memory->leaving;
	pthread_mutex_unlock(&memory->lock);
	for (size_t i = 0; i < count; i++) {
		if (arenas[i]->placed) {
			free_arena(arenas[i]);
			arenas[i] = NULL;
		}
	}
	for (size_t i = 0; i < count; i++) {
		if (arenas[i])
			gpd_quiesce_jobs_add(drop_arena, arenas[i]);
	}
	if (last)
		free_memory(memory);
	free(arenas);
}
