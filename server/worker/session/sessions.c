/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/session/sessions.h"

#include "server/common/ledger/ledger.h"
#include "server/worker/session/session.h"
#include "transport/transport.h"

#include <unistd.h>
#include <utlist.h>

#define NAP_MIN_NS 2000
#define NAP_NS 50000
#define NAP_MAX_NS 500000
#define NAP_LONG_MAX_NS 2000000

struct gpd_sessions gpd_sessions = { .lock = PTHREAD_MUTEX_INITIALIZER };

void
gpd_sessions_add(struct gpd_session *session)
{
	pthread_mutex_lock(&gpd_sessions.lock);
	LL_PREPEND(gpd_sessions.first, session);
	pthread_mutex_unlock(&gpd_sessions.lock);
}

void
gpd_sessions_remove_locked(struct gpd_session *session)
{
	LL_DELETE(gpd_sessions.first, session);
}

struct gpd_session *
gpd_sessions_next_locked(const struct gpd_session *session)
{
	struct gpd_session *next = session ? session->next : gpd_sessions.first;

	while (next && atomic_load(&next->state) > GPD_SESSION_ENDING)
		next = next->next;
	return next;
}

struct gpd_session *
gpd_sessions_find_locked(uint64_t id)
{
	struct gpd_session *session = gpd_sessions_next_locked(NULL);

	while (session && session->id != id)
		session = gpd_sessions_next_locked(session);
	return session;
}

unsigned int
gpd_sessions_timeout_ms(void)
{
	/* Unit tests may run without a ledger. */
	return gpd_sessions.ledger ? atomic_load(&gpd_sessions.ledger->timeout_ms)
				   : GP_CONN_TIMEOUT_MS;
}

bool
gpd_sessions_may_spin(void)
{
	/* Workers share the processors. */
	int count = gpd_sessions.ledger ? (int)atomic_load(&gpd_sessions.ledger->sessions_open)
					: atomic_load(&gpd_sessions.count);
	int cpus = gpd_sessions.cpus;

	/* With two processors one thread may: the peer that gets the reply is waiting, on this
	 * machine or another. */
	if (cpus < 4)
		return cpus > 1 && count <= 1;
	return count <= cpus / 4;
}

uint64_t
gpd_sessions_nap_ns(uint64_t waited_ns)
{
	int sessions = atomic_load(&gpd_sessions.count);
	uint64_t max = sessions > 8 ? NAP_NS * (uint64_t)sessions / 8 : NAP_NS;
	uint64_t long_ns = waited_ns / 512 < NAP_LONG_MAX_NS ? waited_ns / 512 : NAP_LONG_MAX_NS;
	uint64_t nap;

	max = max < NAP_MAX_NS ? max : NAP_MAX_NS;
	max = max > long_ns ? max : long_ns;
	nap = waited_ns / 32 < max ? waited_ns / 32 : max;
	return nap < NAP_MIN_NS ? NAP_MIN_NS : nap;
}

int
gpd_sessions_notify_supervisor(enum gpd_channel_type type, int32_t result, uint64_t session,
			       const void *data, size_t size)
{
	const struct gpd_channel_header header = { .type = type,
						   .result = result,
						   .session = session };

	return gpd_channel_send(&gpd_sessions.channel, &header, data, size, -1);
}

void
gpd_sessions_exit(void)
{
	if (gpd_sessions.before_exit)
		gpd_sessions.before_exit();
	_exit(0);
}
