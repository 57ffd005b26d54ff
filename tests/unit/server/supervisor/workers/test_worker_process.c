/* SPDX-License-Identifier: Apache-2.0 */
/* Which state of a worker may come after which. */
#include "server/supervisor/workers/worker_process.h"
#include "tests/test.h"

#include <string.h>

/* A row for each state that there may be, a column for each that may follow, in the enum's order:
 * starting, serving, busy, stuck, spare, retired, own, abandoned, lost, ending. */
static const char *const follows[GPD_WORKER_STATES] = {
	[GPD_WORKER_STARTING] = ".+..+.++++",  [GPD_WORKER_SERVING] = "..+..+..++",
	[GPD_WORKER_BUSY] = ".+.+.+..++",      [GPD_WORKER_WEDGED] = ".+...+..++",
	[GPD_WORKER_SPARE] = ".+...++.++",     [GPD_WORKER_RETIRED] = "........++",
	[GPD_WORKER_DEDICATED] = ".......+++", [GPD_WORKER_ABANDONED] = "........++",
	[GPD_WORKER_LOST] = ".........+",      [GPD_WORKER_ENDING] = "..........",
};

UNIT_TEST(only_what_may_follow_follows)
{
	for (int from = 0; from < GPD_WORKER_STATES; from++) {
		assert_int_equal(strlen(follows[from]), GPD_WORKER_STATES);
		for (int to = 0; to < GPD_WORKER_STATES; to++) {
			struct gpd_worker_process child = {
				.state = (enum gpd_worker_process_state)from, .state_ms = 1
			};
			bool may = follows[from][to] == '+';

			assert_int_equal(gpd_worker_process_set_state(
						 &child, (enum gpd_worker_process_state)to),
					 may);
			assert_int_equal(child.state, may ? to : from);
			assert_int_equal(child.state_ms != 1, may);
		}
	}
}

/* However a worker begins, it can end. */
UNIT_TEST(every_state_but_the_last_can_end)
{
	for (int from = 0; from < GPD_WORKER_ENDING; from++) {
		struct gpd_worker_process child = { .state = (enum gpd_worker_process_state)from };

		assert_true(gpd_worker_process_set_state(&child, GPD_WORKER_ENDING));
	}
}

UNIT_TEST_MAIN(NULL, NULL)
