/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session/session_state.h"
#include "tests/test.h"

#define STATES GPC_SESSION_STATE_COUNT
#define FAULT CUDA_ERROR_ILLEGAL_ADDRESS

/* From the state of the row to that of the column. */
static const bool allowed[STATES][STATES] = {
	/* STARTING OPEN CLOSING FAILED CLOSED ABANDONED */
	[GPC_SESSION_STARTING] = { 0, 1, 0, 1, 1, 1 },
	[GPC_SESSION_OPEN] = { 0, 0, 1, 1, 0, 1 },
	[GPC_SESSION_CLOSING] = { 0, 0, 0, 1, 1, 1 },
	[GPC_SESSION_FAILED] = { 0, 0, 0, 0, 1, 1 },
	[GPC_SESSION_CLOSED] = { 0, 0, 0, 0, 0, 1 },
	[GPC_SESSION_ABANDONED] = { 0, 0, 0, 0, 0, 0 },
};

static void
go(atomic_uint *word, enum gpc_session_state to)
{
	assert_true(gpc_session_state_move(word, to, FAULT));
	assert_int_equal(gpc_session_state_get(word), to);
}

/* A session in this state, by the shortest way. */
static void
reach(atomic_uint *word, enum gpc_session_state state)
{
	atomic_store(word, 0);
	if (state == GPC_SESSION_STARTING)
		return;
	if (state == GPC_SESSION_CLOSING)
		go(word, GPC_SESSION_OPEN);
	go(word, state);
}

UNIT_TEST(a_state_leads_where_it_should_and_nowhere_else)
{
	static const CUresult results[STATES] = {
		[GPC_SESSION_FAILED] = FAULT,
		[GPC_SESSION_CLOSED] = CUDA_ERROR_DEINITIALIZED,
		[GPC_SESSION_ABANDONED] = CUDA_ERROR_NOT_INITIALIZED,
	};
	atomic_uint word;

	for (int from = 0; from < STATES; from++) {
		for (int to = 0; to < STATES; to++) {
			bool moved;

			reach(&word, (enum gpc_session_state)from);
			assert_int_equal(gpc_session_state_result(&word), results[from]);
			moved = gpc_session_state_move(&word, (enum gpc_session_state)to, FAULT);
			assert_int_equal(moved, allowed[from][to]);
			assert_int_equal(gpc_session_state_get(&word), moved ? to : from);
		}
	}
}

UNIT_TEST(the_first_error_is_what_calls_answer)
{
	atomic_uint word;

	reach(&word, GPC_SESSION_FAILED);
	assert_false(gpc_session_state_move(&word, GPC_SESSION_FAILED, CUDA_ERROR_UNKNOWN));
	assert_int_equal(gpc_session_state_result(&word), FAULT);
	go(&word, GPC_SESSION_CLOSED);
	assert_int_equal(gpc_session_state_result(&word), FAULT);
	go(&word, GPC_SESSION_ABANDONED);
	assert_int_equal(gpc_session_state_result(&word), CUDA_ERROR_NOT_INITIALIZED);
}

UNIT_TEST(any_error_of_cuda_fits)
{
	atomic_uint word;

	reach(&word, GPC_SESSION_OPEN);
	assert_true(gpc_session_state_move(&word, GPC_SESSION_FAILED, CUDA_ERROR_UNKNOWN));
	assert_int_equal(gpc_session_state_result(&word), CUDA_ERROR_UNKNOWN);
	assert_int_equal(gpc_session_state_get(&word), GPC_SESSION_FAILED);
}

UNIT_TEST_MAIN(NULL, NULL)
