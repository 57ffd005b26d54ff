/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session/session_state.h"

#define TO(state) (1u << GPC_SESSION_##state)

static const unsigned int leads_to[GPC_SESSION_STATE_COUNT] = {
	[GPC_SESSION_STARTING] = TO(OPEN) | TO(FAILED) | TO(CLOSED) | TO(ABANDONED),
	[GPC_SESSION_OPEN] = TO(CLOSING) | TO(FAILED) | TO(ABANDONED),
	[GPC_SESSION_CLOSING] = TO(FAILED) | TO(CLOSED) | TO(ABANDONED),
	[GPC_SESSION_FAILED] = TO(CLOSED) | TO(ABANDONED),
	[GPC_SESSION_CLOSED] = TO(ABANDONED),
};

/* Returns the result of calls in the next state. */
static CUresult
state_get_result(enum gpc_session_state to, CUresult before, CUresult error)
{
	switch (to) {
	case GPC_SESSION_FAILED:
		return error;
	case GPC_SESSION_CLOSED:
		return before == CUDA_SUCCESS ? CUDA_ERROR_DEINITIALIZED : before;
	case GPC_SESSION_ABANDONED:
		return CUDA_ERROR_NOT_INITIALIZED;
	default:
		return CUDA_SUCCESS;
	}
}

bool
gpc_session_state_move(atomic_uint *word, enum gpc_session_state to, CUresult error)
{
	unsigned int before = atomic_load(word), after;

	do {
		CUresult result = (CUresult)(before & ((1u << GPC_SESSION_RESULT_BITS) - 1));

		if (!(leads_to[before >> GPC_SESSION_RESULT_BITS] >> to & 1))
			return false;
		after = (unsigned int)to << GPC_SESSION_RESULT_BITS |
			(unsigned int)state_get_result(to, result, error);
	} while (!atomic_compare_exchange_weak(word, &before, after));
	return true;
}
