/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/module/unpacking.h"

#include "base/clock.h"
#include "base/lock.h"
#include "server/worker/session/session.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <utlist.h>

/* Code up to this extracted size need not wait for a slot. */
#define SMALL_MAX (UINT64_C(4) << 20)
#define RUNNING_MAX 2
/* A waiting session checks at this interval whether it has ended. */
#define POLL_NS 20000000

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct gpd_unpacking *turns; /* utlist; at most one per tenant */
	unsigned int running;
} unpackings = { .lock = PTHREAD_MUTEX_INITIALIZER };
GP_COND_CONSTRUCTOR(unpackings.changed);

static uint32_t
get_tenant(const struct gpd_unpacking *unpacking)
{
	return unpacking->session->account.entry->tenant;
}

static bool
has_tenant_slot(uint32_t tenant) GP_LOCKED(unpackings.lock)
{
	const struct gpd_unpacking *other;

	LL_FOREACH(unpackings.turns, other)
	{
		if (get_tenant(other) == tenant)
			return true;
	}
	return false;
}

static void
await_change(void) GP_LOCKED(unpackings.lock)
{
	(void)gp_cond_wait_until(&unpackings.changed, &unpackings.lock, gp_now_ns() + POLL_NS);
}

/* Waits for other sessions of the tenant: their code cannot be charged at the same time. */
static bool
tenant_slot_acquire(struct gpd_unpacking *unpacking)
{
	const uint32_t tenant = get_tenant(unpacking);
	bool is_free;

	pthread_mutex_lock(&unpackings.lock);
	while (!(is_free = !has_tenant_slot(tenant)) && !atomic_load(unpacking->limiter.stop))
		await_change();
	if (is_free)
		LL_PREPEND(unpackings.turns, unpacking);
	pthread_mutex_unlock(&unpackings.lock);
	return is_free;
}

/* Waits for other tenants. */
static bool
unpacking_start(struct gpd_unpacking *unpacking)
{
	pthread_mutex_lock(&unpackings.lock);
	while (unpackings.running >= RUNNING_MAX && !atomic_load(unpacking->limiter.stop))
		await_change();
	unpacking->is_running = unpackings.running < RUNNING_MAX;
	if (unpacking->is_running)
		unpackings.running++;
	pthread_mutex_unlock(&unpackings.lock);
	return unpacking->is_running;
}

static void
tenant_slot_release(struct gpd_unpacking *unpacking)
{
	pthread_mutex_lock(&unpackings.lock);
	LL_DELETE(unpackings.turns, unpacking);
	if (unpacking->is_running)
		unpackings.running--;
	unpacking->has_tenant_slot = unpacking->is_running = false;
	pthread_cond_broadcast(&unpackings.changed);
	pthread_mutex_unlock(&unpackings.lock);
}

CUresult
gpd_unpacking_charge(struct gpd_session *session, uint64_t size)
{
	CUresult result = size ? gpd_account_charge_code(&session->account, size) : CUDA_SUCCESS;

	if (result != CUDA_SUCCESS)
		gpd_session_log(session, GPD_LOG_WARNING,
				"compressed code is refused: unpacking it takes %" PRIu64
				" KiB, more than is left of the tenant's code-memory",
				(size + 1023) >> 10);
	return result;
}

void
gpd_unpacking_end(struct gpd_unpacking *unpacking)
{
	if (unpacking->has_tenant_slot)
		tenant_slot_release(unpacking);
}

static void
limiter_leave(struct gp_unpack_limiter *limiter, uint64_t size)
{
	struct gpd_unpacking *unpacking = (struct gpd_unpacking *)limiter;

	gpd_account_uncharge_code(&unpacking->session->account, size);
	gpd_unpacking_end(unpacking);
}

/* The charge is made with the tenant's slot, before waiting for other tenants. */
static int
limiter_enter(struct gp_unpack_limiter *limiter, uint64_t size)
{
	struct gpd_unpacking *unpacking = (struct gpd_unpacking *)limiter;
	const bool is_small = size <= SMALL_MAX;

	if (atomic_load(limiter->stop) || (!is_small && !tenant_slot_acquire(unpacking)))
		return -ECANCELED;
	unpacking->has_tenant_slot = !is_small;
	if (gpd_unpacking_charge(unpacking->session, size) != CUDA_SUCCESS) {
		gpd_unpacking_end(unpacking);
		return -EDQUOT;
	}
	if (is_small || unpacking_start(unpacking))
		return 0;
	limiter_leave(limiter, size);
	return -ECANCELED;
}

void
gpd_unpacking_init(struct gpd_unpacking *unpacking, struct gpd_session *session)
{
	*unpacking = (struct gpd_unpacking){
		.limiter = { .enter = limiter_enter,
			     .leave = limiter_leave,
			     .stop = &session->closing },
		.session = session,
	};
}

bool
gpd_unpacking_begin(struct gpd_unpacking *unpacking, struct gpd_session *session, uint64_t size)
{
	gpd_unpacking_init(unpacking, session);
	unpacking->has_tenant_slot = size > SMALL_MAX && tenant_slot_acquire(unpacking);
	if (size <= SMALL_MAX || (unpacking->has_tenant_slot && unpacking_start(unpacking)))
		return true;
	gpd_unpacking_end(unpacking);
	return false;
}

bool
gpd_unpacking_try(struct gpd_unpacking *unpacking, struct gpd_session *session, uint64_t size)
{
	bool is_free;

	gpd_unpacking_init(unpacking, session);
	if (size <= SMALL_MAX)
		return true;
	pthread_mutex_lock(&unpackings.lock);
	is_free = unpackings.running < RUNNING_MAX && !has_tenant_slot(get_tenant(unpacking));
	if (is_free) {
		LL_PREPEND(unpackings.turns, unpacking);
		unpackings.running++;
		unpacking->has_tenant_slot = unpacking->is_running = true;
	}
	pthread_mutex_unlock(&unpackings.lock);
	return is_free;
}
