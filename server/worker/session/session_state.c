/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/session/session_state.h"

#include "server/worker/session/session.h"

#include <stdatomic.h>

#define TO(state) (1u << GPD_SESSION_##state)

static const unsigned int changes[GPD_SESSION_STATES] = {
	[GPD_SESSION_OPENED] = TO(STARTING) | TO(CLOSED),
	/* CLOSED: its thread could not be started. */
	[GPD_SESSION_STARTING] = TO(SERVING) | TO(LOST) | TO(ENDING) | TO(CLOSED),
	[GPD_SESSION_SERVING] = TO(LOST) | TO(ENDING),
	[GPD_SESSION_LOST] = TO(ENDING),
	[GPD_SESSION_ENDING] = TO(DRAINING),
	[GPD_SESSION_DRAINING] = TO(FREEING),
	[GPD_SESSION_FREEING] = TO(CLOSED),
};

bool
gpd_session_set_state(struct gpd_session *session, enum gpd_session_state to)
{
	int from = atomic_load(&session->state);

	do {
		if (!(changes[from] >> to & 1))
			return false;
	} while (!atomic_compare_exchange_weak(&session->state, &from, (int)to));
	if (to == GPD_SESSION_ENDING)
		atomic_store(&session->closing, true);
	return true;
}
