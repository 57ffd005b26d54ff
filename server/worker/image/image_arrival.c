/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/image/image_arrival.h"

#include "base/clock.h"
#include "base/lock.h"
#include "server/worker/session/session.h"

#include <pthread.h>
#include <string.h>
#include <utlist.h>

/* Who waits looks so often whether its own session has ended. */
#define LOOK_NS 20000000

uint64_t gpd_image_arrival_stall_ns = UINT64_C(2000000000);
uint64_t gpd_image_arrival_wait_ns = UINT64_C(10000000000);

static struct {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	struct gpd_image_arrival *all; /* utlist */
} arrivals = { .lock = PTHREAD_MUTEX_INITIALIZER };
GP_COND_AT_START(arrivals.ended);

/* Locked.  One that comes. */
static bool
is_coming(const uint8_t sha256[32], uint64_t now)
{
	const struct gpd_image_arrival *arrival;

	LL_FOREACH(arrivals.all, arrival)
	{
		if (memcmp(arrival->sha256, sha256, sizeof(arrival->sha256)) == 0 &&
		    now - arrival->ns < gpd_image_arrival_stall_ns)
			return true;
	}
	return false;
}

/* Locked. */
static void
end(struct gpd_image_arrival *arrival)
{
	if (!arrival->ns)
		return;
	LL_DELETE(arrivals.all, arrival);
	arrival->ns = 0;
	pthread_cond_broadcast(&arrivals.ended);
}

bool
gpd_image_arrival_begin(struct gpd_session *session, const uint8_t sha256[32])
{
	struct gpd_image_arrival *own = &session->arrival;
	uint64_t now = gp_now_ns();
	bool waits = false, coming;

	pthread_mutex_lock(&arrivals.lock);
	end(own);
	while ((coming = is_coming(sha256, now)) && own->waited_ns < gpd_image_arrival_wait_ns &&
	       !atomic_load(&session->closing)) {
		uint64_t begin = now;

		(void)gp_cond_wait_until(&arrivals.ended, &arrivals.lock, now + LOOK_NS);
		now = gp_now_ns();
		own->waited_ns += now - begin;
		waits = true;
	}
	if (!waits || coming) {
		memcpy(own->sha256, sha256, sizeof(own->sha256));
		own->ns = now;
		LL_PREPEND(arrivals.all, own);
	}
	pthread_mutex_unlock(&arrivals.lock);
	return own->ns != 0;
}

void
gpd_image_arrival_goes_on(struct gpd_session *session)
{
	pthread_mutex_lock(&arrivals.lock);
	if (session->arrival.ns)
		session->arrival.ns = gp_now_ns();
	pthread_mutex_unlock(&arrivals.lock);
}

void
gpd_image_arrival_end(struct gpd_session *session)
{
	pthread_mutex_lock(&arrivals.lock);
	end(&session->arrival);
	pthread_mutex_unlock(&arrivals.lock);
}
