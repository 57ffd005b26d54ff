/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/copy/staging.h"

#include "base/clock.h"
#include "base/lock.h"
#include "protocol/frame.h"
#include "protocol/pack.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/listed_copy.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/responder.h"
#include "transport/transport.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define SLOTS_PER_ALLOCATION 8
/* Compressed chunks are unpacked in place and need extra room. */
#define STRIDE (GPD_STAGING_SLOT + GP_PACK_SLACK)
/* Pinning memory takes milliseconds; a client's first copy must not wait for it. */
#define START_SIZE (GPD_STAGING_SHARE * GPD_STAGING_SLOT)
#define LIMIT_DEFAULT ((size_t)1 << 30)
/* The device reads whole cache lines; copies that share one are correct but slower. */
#define ALIGNMENT 64
/* Slots for each record of a long copy. */
#define RECORD_SLOTS 8
/* Interval of retries while other sessions use the whole pool. */
#define POOL_WAIT_NS 1000000

struct gpd_slot {
	struct gpd_slot *next;
	uint8_t *memory;
	_Atomic unsigned int users; /* its pieces, and the session that still cuts from it */
	bool listed;                /* contains parts of listed copies */
	bool outside_share;         /* counted in staging->listed_slots */
};

/* A slot that small pieces are cut from. */
struct block {
	struct gpd_slot *slot;
	size_t used;
};

struct gpd_staging {
	_Atomic unsigned int slots_used;
	_Atomic unsigned int ahead; /* slots of these that data lanes filled ahead of their copy */
	_Atomic unsigned int listed_slots;
	struct block in, out; /* executor only */
	struct gpd_listed listed;
};

_Static_assert(GPD_STAGING_SLOT == GP_LISTED_SLOT && GPD_STAGING_SMALL == GP_LISTED_SMALL &&
		       GPD_STAGING_LISTED == GP_LISTED_ROOM / GP_LISTED_SLOT,
	       "the client counts as the worker does");

static struct {
	pthread_mutex_t lock;
	pthread_cond_t freed;
	struct gpd_slot *idle;
	size_t allocated;
	size_t limit;
} pool = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.limit = LIMIT_DEFAULT,
};
GP_COND_CONSTRUCTOR(pool.freed);

static CUresult
pool_grow(bool beyond) GP_LOCKED(pool.lock)
{
	size_t size = SLOTS_PER_ALLOCATION * STRIDE;
	struct gpd_slot *slots;
	void *memory;
	CUresult result;

	if (pool.allocated + size > pool.limit && !beyond)
		return CUDA_ERROR_NOT_READY;
	slots = calloc(SLOTS_PER_ALLOCATION, sizeof(*slots));
	if (!slots)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = gpd_device_enter_any();
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuMemHostAlloc(&memory, size, CU_MEMHOSTALLOC_PORTABLE);
	if (result != CUDA_SUCCESS) {
		free(slots);
		return result;
	}
	for (int i = 0; i < SLOTS_PER_ALLOCATION; i++) {
		slots[i].memory = (uint8_t *)memory + i * STRIDE;
		slots[i].next = pool.idle;
		pool.idle = &slots[i];
	}
	/* Never unregistered: it stays for the life of the process. */
	gp_memory_register(memory, size);
	pool.allocated += size;
	return CUDA_SUCCESS;
}

CUresult
gpd_staging_start(size_t limit)
{
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&pool.lock);
	if (limit)
		pool.limit = limit;
	while (result == CUDA_SUCCESS && pool.allocated < START_SIZE && pool.allocated < pool.limit)
		result = pool_grow(true);
	pthread_mutex_unlock(&pool.lock);
	return result;
}

int
gpd_staging_create(struct gpd_session *session)
{
	session->copies->staging = calloc(1, sizeof(*session->copies->staging));
	if (!session->copies->staging)
		return -ENOMEM;
	gpd_listed_init(&session->copies->staging->listed);
	return 0;
}

void
gpd_staging_release(struct gpd_session *session, struct gpd_piece *piece)
{
	struct gpd_staging *staging = session->copies->staging;
	struct gpd_slot *slot = piece->slot;
	bool beside;

	piece->slot = NULL;
	if (!slot || atomic_fetch_sub(&slot->users, 1) > 1)
		return;
	/* Must precede the release: another session may get the slot, and its bytes must not be
	 * replaced. */
	if (slot->listed)
		gpd_listed_drop(&staging->listed, slot);
	beside = slot->outside_share;
	pthread_mutex_lock(&pool.lock);
	slot->next = pool.idle;
	pool.idle = slot;
	pthread_cond_broadcast(&pool.freed);
	pthread_mutex_unlock(&pool.lock);
	atomic_fetch_sub(beside ? &staging->listed_slots : &staging->slots_used, 1);
}

void
gpd_staging_destroy(struct gpd_session *session)
{
	struct gpd_staging *staging = session->copies->staging;

	if (!staging)
		return;
	gpd_staging_release(session, &(struct gpd_piece){ .slot = staging->in.slot });
	gpd_staging_release(session, &(struct gpd_piece){ .slot = staging->out.slot });
	gpd_listed_fini(&staging->listed);
	free(staging);
	session->copies->staging = NULL;
}

/* CUDA_ERROR_NOT_READY: a slot must be released first. A session with fewer than `guaranteed` slots
 * gets one even beyond the pool's limit. */
static CUresult
slot_acquire(struct gpd_session *session, unsigned int share, unsigned int guaranteed,
	     struct gpd_slot **slot_p)
{
	struct gpd_staging *staging = session->copies->staging;
	unsigned int held = atomic_fetch_add(&staging->slots_used, 1);
	bool beyond = held < guaranteed + atomic_load(&staging->ahead);
	CUresult result = CUDA_SUCCESS;

	if (held >= share) {
		staging->slots_used--;
		return CUDA_ERROR_NOT_READY;
	}
	pthread_mutex_lock(&pool.lock);
	if (!pool.idle)
		result = pool_grow(beyond);
	/* Other sessions may release slots, so a failed allocation is not final. */
	if (result != CUDA_SUCCESS && !beyond)
		result = CUDA_ERROR_NOT_READY;
	if (result == CUDA_SUCCESS) {
		*slot_p = pool.idle;
		pool.idle = pool.idle->next;
	}
	pthread_mutex_unlock(&pool.lock);
	if (result != CUDA_SUCCESS) {
		staging->slots_used--;
		return result;
	}
	(*slot_p)->users = 1;
	(*slot_p)->listed = (*slot_p)->outside_share = false;
	return CUDA_SUCCESS;
}

/* Waits until a slot is released, but only briefly: it may not be the one that is needed. */
void
gpd_staging_nap(void)
{
	pthread_mutex_lock(&pool.lock);
	(void)gp_cond_wait_until(&pool.freed, &pool.lock, gp_now_ns() + POOL_WAIT_NS);
	pthread_mutex_unlock(&pool.lock);
}

/* The session's own slots are released as the GPU proceeds or as the data lanes send; neither wait
 * is long. */
void
gpd_staging_wait(struct gpd_session *session)
{
	if (gpd_wait_is_empty(session))
		gpd_staging_nap();
	else
		gpd_wait_any(session);
}

bool
gpd_staging_has_room(const struct gpd_session *session, uint64_t size)
{
	const struct gpd_staging *staging = session->copies->staging;
	const unsigned int most = GPD_STAGING_SHARE - GPD_STAGING_RESERVE;
	/* Chunks received ahead belong to this record or to later ones. */
	int64_t held = (int64_t)atomic_load(&staging->slots_used) - atomic_load(&staging->ahead);
	uint64_t slots = size ? (size + GPD_STAGING_SLOT - 1) / GPD_STAGING_SLOT : RECORD_SLOTS;

	/* A record larger than the share starts when no other record has slots. */
	if (slots > most)
		slots = most;
	return held + (int64_t)slots <= (int64_t)most;
}

static CUresult
slot_acquire_wait(struct gpd_session *session, struct gpd_slot **slot_p)
{
	CUresult result;

	while ((result = slot_acquire(session, GPD_STAGING_SHARE, GPD_STAGING_SHARE_MIN, slot_p)) ==
	       CUDA_ERROR_NOT_READY) {
		if (session->sticky)
			return (CUresult)session->sticky;
		if (session->closing)
			return CUDA_ERROR_DEINITIALIZED;
		gpd_staging_wait(session);
	}
	return result;
}

/* The block must have room. */
static struct gpd_piece
block_cut(struct block *block, size_t size)
{
	struct gpd_piece piece = { .memory = block->slot->memory + block->used };

	block->used += (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	return piece;
}

static bool
block_is_full(const struct block *block, size_t size)
{
	return block->slot && GPD_STAGING_SLOT - block->used < size;
}

void
gpd_staging_done(struct gpd_session *session, void *slot, CUresult result)
{
	gpd_staging_release(session, &(struct gpd_piece){ .slot = slot });
}

static CUresult
small_acquire_in(struct gpd_session *session, size_t size, struct gpd_piece *piece)
{
	struct block *block = &session->copies->staging->in;
	CUresult result = CUDA_SUCCESS;

	if (block_is_full(block, size)) {
		/* Its pieces may be used by any of the session's streams. */
		result = gpd_wait_add_all(session, NULL, gpd_staging_done, block->slot);
		if (result == CUDA_SUCCESS)
			*block = (struct block){ 0 };
	}
	if (result == CUDA_SUCCESS && !block->slot)
		result = slot_acquire_wait(session, &block->slot);
	if (result == CUDA_SUCCESS)
		*piece = block_cut(block, size);
	return result;
}

CUresult
gpd_staging_acquire_in(struct gpd_session *session, size_t size, struct gpd_piece *piece)
{
	struct gpd_slot *slot = NULL;
	CUresult result;

	*piece = (struct gpd_piece){ 0 };
	if (size <= GPD_STAGING_SMALL)
		return small_acquire_in(session, size, piece);
	result = slot_acquire_wait(session, &slot);
	if (result == CUDA_SUCCESS)
		*piece = (struct gpd_piece){ slot->memory, slot };
	return result;
}

CUresult
gpd_staging_list(struct gpd_session *session, const struct gpd_piece *piece, uint32_t number,
		 uint64_t offset, size_t size)
{
	struct gpd_staging *staging = session->copies->staging;
	struct gpd_slot *slot = piece->slot ? piece->slot : staging->in.slot;
	const struct gpd_listed_part part = {
		.slot = slot,
		.number = number,
		.offset = offset,
		.memory = piece->memory,
		.size = size,
	};

	if (!gpd_listed_add(&staging->listed, &part))
		return CUDA_ERROR_OUT_OF_MEMORY;
	slot->listed = true;
	if (!slot->outside_share && atomic_load(&staging->listed_slots) < GPD_STAGING_LISTED) {
		slot->outside_share = true;
		atomic_fetch_add(&staging->listed_slots, 1);
		atomic_fetch_sub(&staging->slots_used, 1);
	}
	return CUDA_SUCCESS;
}

void
gpd_staging_replace(struct gpd_session *session, uint32_t number, uint64_t offset,
		    const void *bytes, size_t size)
{
	gpd_listed_replace(&session->copies->staging->listed, number, offset, bytes, size);
}

static CUresult
small_acquire_out(struct gpd_session *session, size_t size, struct gpd_piece *piece)
{
	struct block *block = &session->copies->staging->out;
	CUresult result = CUDA_SUCCESS;

	if (block->slot && block->slot->users == 1)
		block->used = 0;
	if (block_is_full(block, size)) {
		gpd_staging_release(session, &(struct gpd_piece){ .slot = block->slot });
		*block = (struct block){ 0 };
	}
	/* Large copies that are blocked leave room for small ones of other streams. */
	if (!block->slot)
		result = slot_acquire(session, GPD_STAGING_SHARE_OUT + GPD_STAGING_RESERVE,
				      GPD_STAGING_SHARE_MIN, &block->slot);
	if (result != CUDA_SUCCESS)
		return result;
	*piece = block_cut(block, size);
	piece->slot = block->slot;
	piece->slot->users++;
	return CUDA_SUCCESS;
}

CUresult
gpd_staging_acquire_out(struct gpd_session *session, size_t size, struct gpd_piece *piece)
{
	struct gpd_slot *slot;
	CUresult result;

	*piece = (struct gpd_piece){ 0 };
	if (session->sticky)
		return (CUresult)session->sticky;
	if (size <= GPD_STAGING_SMALL)
		return small_acquire_out(session, size, piece);
	result = slot_acquire(session, GPD_STAGING_SHARE_OUT, GPD_STAGING_SHARE_MIN, &slot);
	if (result == CUDA_SUCCESS)
		*piece = (struct gpd_piece){ slot->memory, slot };
	return result;
}

CUresult
gpd_staging_acquire_lane(struct gpd_session *session, bool ahead, bool early,
			 struct gpd_piece *piece)
{
	struct gpd_slot *slot = NULL;
	CUresult result =
		early ? slot_acquire(session, GPD_STAGING_SHARE - GPD_STAGING_RESERVE, 0, &slot)
		      : slot_acquire(session, GPD_STAGING_SHARE, GPD_STAGING_SHARE_MIN, &slot);

	*piece = (struct gpd_piece){ 0 };
	if (result != CUDA_SUCCESS)
		return result;
	if (ahead)
		session->copies->staging->ahead++;
	*piece = (struct gpd_piece){ slot->memory, slot };
	return CUDA_SUCCESS;
}

void
gpd_staging_end_ahead(struct gpd_session *session)
{
	session->copies->staging->ahead--;
}

void
gpd_staging_wake(void)
{
	pthread_mutex_lock(&pool.lock);
	pthread_cond_broadcast(&pool.freed);
	pthread_mutex_unlock(&pool.lock);
}
