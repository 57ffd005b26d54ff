/* SPDX-License-Identifier: Apache-2.0 */
/* Every change of a session's state, and those that there are not. */
#include "server/worker/session/session.h"
#include "tests/test.h"

#include <string.h>

/* By the state that a session is in: a letter for each that it may go to. */
static const char *const changes[GPD_SESSION_STATES] = {
	[GPD_SESSION_OPENED] = "sc", [GPD_SESSION_STARTING] = "vlec", [GPD_SESSION_SERVING] = "le",
	[GPD_SESSION_LOST] = "e",    [GPD_SESSION_ENDING] = "d",      [GPD_SESSION_DRAINING] = "f",
	[GPD_SESSION_FREEING] = "c", [GPD_SESSION_CLOSED] = "",
};
static const char letters[GPD_SESSION_STATES] = "osvledfc";

UNIT_TEST(a_session_changes_its_state_as_the_table_says)
{
	for (int from = 0; from < GPD_SESSION_STATES; from++) {
		for (int to = 0; to < GPD_SESSION_STATES; to++) {
			struct gpd_session session = { .state = from };
			bool may = strchr(changes[from], letters[to]) != NULL;

			assert_int_equal(
				gpd_session_set_state(&session, (enum gpd_session_state)to), may);
			assert_int_equal(session.state, may ? to : from);
		}
	}
}

UNIT_TEST(who_waits_for_a_session_sees_that_it_ends)
{
	struct gpd_session session = { .state = GPD_SESSION_SERVING };

	assert_true(gpd_session_set_state(&session, GPD_SESSION_LOST));
	assert_false(session.closing);
	assert_true(gpd_session_set_state(&session, GPD_SESSION_ENDING));
	assert_true(session.closing);
	assert_false(gpd_session_set_state(&session, GPD_SESSION_ENDING));
	assert_true(session.closing);
}

UNIT_TEST_MAIN(NULL, NULL)
