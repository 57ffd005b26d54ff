/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/ledger/code_memory.h"

#include <errno.h>
#include <stddef.h>

int
gpd_code_init(struct gpd_code_memory *memory)
{
	pthread_mutexattr_t attributes;
	int r = pthread_mutexattr_init(&attributes);

	atomic_init(&memory->max, GPD_CODE_NO_LIMIT);
	if (r)
		return -r;
	r = pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	if (!r)
		r = pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	if (!r)
		r = pthread_mutex_init(&memory->lock, &attributes);
	(void)pthread_mutexattr_destroy(&attributes);
	return -r;
}

/* What it covers is right at every moment, so nothing is wrong where its owner has died. */
static bool
lock(struct gpd_code_memory *memory)
{
	int r = pthread_mutex_lock(&memory->lock);

	if (r == EOWNERDEAD)
		r = pthread_mutex_consistent(&memory->lock);
	return r == 0;
}

/* Raised only, so that nobody who adds up misses a place. */
static void
raise_end(struct gpd_code_memory *memory, uint32_t end)
{
	uint32_t before = atomic_load(&memory->end);

	while (before < end && !atomic_compare_exchange_weak(&memory->end, &before, end))
		;
}

struct gpd_code_place *
gpd_code_enter(struct gpd_code_memory *memory, int32_t worker)
{
	for (uint32_t i = 0; i < GPD_CODE_PLACES; i++) {
		int32_t nobody = 0;

		if (!atomic_compare_exchange_strong(&memory->places[i].worker, &nobody, worker))
			continue;
		raise_end(memory, i + 1);
		return &memory->places[i];
	}
	return NULL;
}

void
gpd_code_leave(struct gpd_code_memory *memory, int32_t worker)
{
	uint32_t end = atomic_load(&memory->end);

	for (uint32_t i = 0; i < end; i++) {
		if (atomic_load(&memory->places[i].worker) != worker)
			continue;
		atomic_store(&memory->places[i].held, 0);
		atomic_store(&memory->places[i].kept, 0);
		atomic_store(&memory->places[i].worker, 0);
	}
}

struct sums {
	uint64_t held, kept;
};

static struct sums
add_up(const struct gpd_code_memory *memory)
{
	uint32_t end = atomic_load(&memory->end);
	struct sums sums = { 0 };

	for (uint32_t i = 0; i < end; i++) {
		sums.held += atomic_load(&memory->places[i].held);
		sums.kept += atomic_load(&memory->places[i].kept);
	}
	return sums;
}

uint64_t
gpd_code_used(const struct gpd_code_memory *memory)
{
	struct sums sums = add_up(memory);

	return sums.held + sums.kept;
}

static uint64_t
limit(uint64_t max, uint64_t more)
{
	return more < GPD_CODE_NO_LIMIT - max ? max + more : GPD_CODE_NO_LIMIT;
}

static bool
is_within(uint64_t max, uint64_t used, uint64_t bytes)
{
	return used <= max && bytes <= max - used;
}

bool
gpd_code_fits(const struct gpd_code_memory *memory, const struct gpd_code_place *place,
	      uint64_t bytes, uint64_t more)
{
	uint64_t max = atomic_load(&memory->max), own = atomic_load(&place->kept);
	struct sums sums = add_up(memory);
	uint64_t used = sums.held + sums.kept, least = limit(max, more);

	if (!is_within(limit(least, max / 2), used, bytes))
		return false;
	return is_within(max, used > own ? used - own : 0, bytes) ||
	       (more && is_within(least, sums.held, bytes));
}

/* Under one lock, so that nobody else's sum has what is refused here, or what moves twice, not for
 * a moment. */
static bool
move(struct gpd_code_memory *memory, struct gpd_code_place *place, uint64_t bytes, uint64_t more,
     bool kept)
{
	bool fits;

	if (!lock(memory))
		return false;
	fits = gpd_code_fits(memory, place, bytes, more);
	if (fits)
		(void)atomic_fetch_add(&place->held, bytes);
	if (fits && kept)
		(void)atomic_fetch_sub(&place->kept, bytes);
	(void)pthread_mutex_unlock(&memory->lock);
	return fits;
}

bool
gpd_code_take(struct gpd_code_memory *memory, struct gpd_code_place *place, uint64_t bytes,
	      uint64_t more)
{
	return move(memory, place, bytes, more, false);
}

bool
gpd_code_hold(struct gpd_code_memory *memory, struct gpd_code_place *place, uint64_t bytes,
	      uint64_t more)
{
	return move(memory, place, bytes, more, true);
}

void
gpd_code_keep(struct gpd_code_memory *memory, struct gpd_code_place *place, uint64_t bytes)
{
	bool locked = lock(memory);

	(void)atomic_fetch_sub(&place->held, bytes);
	(void)atomic_fetch_add(&place->kept, bytes);
	if (locked)
		(void)pthread_mutex_unlock(&memory->lock);
}

void
gpd_code_give(struct gpd_code_place *place, uint64_t bytes)
{
	(void)atomic_fetch_sub(&place->held, bytes);
}

void
gpd_code_drop(struct gpd_code_place *place, uint64_t bytes)
{
	(void)atomic_fetch_sub(&place->kept, bytes);
}
