/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/ledger/channel.h"
#include "server/supervisor/workers/heartbeat.h"
#include "tests/test.h"

#include <string.h>
#include <unistd.h>

struct ends {
	struct gpd_channel supervisor, worker;
};

static int
setup(void **state)
{
	static struct ends ends;
	int fds[2];

	memset(&ends, 0, sizeof(ends));
	if (gpd_channel_pair(fds) < 0 || gpd_channel_init(&ends.supervisor, fds[0]) ||
	    gpd_channel_init(&ends.worker, fds[1]))
		return -1;
	*state = &ends;
	return 0;
}

static int
teardown(void **state)
{
	struct ends *ends = *state;

	gpd_channel_fini(&ends->supervisor);
	gpd_channel_fini(&ends->worker);
	return 0;
}

static int
count_pings(struct ends *ends)
{
	struct gpd_channel_message message;
	int count = 0;

	while (gpd_channel_recv(&ends->worker, false, &message) == 0)
		count += message.header.type == GPD_CHANNEL_PING;
	return count;
}

UNIT_TEST_WITH(a_worker_that_answers_gets_a_ping_now_and_then, setup, teardown)
{
	struct gpd_heartbeat heartbeat = { 0 };
	struct ends *ends = *state;
	int64_t now = 1000;

	for (int i = 0; i < 3; i++) {
		assert_false(gpd_heartbeat_check(&heartbeat, &ends->supervisor, now));
		assert_int_equal(count_pings(ends), 1);
		assert_int_equal(gpd_heartbeat_answered(&heartbeat, now + 10), 0);
		now += 10 + GPD_HEARTBEAT_MS;
		assert_false(gpd_heartbeat_check(&heartbeat, &ends->supervisor, now - 1));
		assert_int_equal(count_pings(ends), 0);
	}
}

UNIT_TEST_WITH(a_worker_that_does_not_answer_counts_as_hanging_once, setup, teardown)
{
	struct gpd_heartbeat heartbeat = { 0 };
	struct ends *ends = *state;

	assert_true(GPD_HEARTBEAT_MS + GPD_HEARTBEAT_DUE_MS < 10000);
	assert_false(gpd_heartbeat_check(&heartbeat, &ends->supervisor, 1000));
	assert_false(gpd_heartbeat_check(&heartbeat, &ends->supervisor,
					 1000 + GPD_HEARTBEAT_DUE_MS - 1));
	assert_false(heartbeat.hangs);
	assert_true(
		gpd_heartbeat_check(&heartbeat, &ends->supervisor, 1000 + GPD_HEARTBEAT_DUE_MS));
	assert_true(heartbeat.hangs);
	assert_false(gpd_heartbeat_check(&heartbeat, &ends->supervisor, 60000));
	assert_int_equal(count_pings(ends), 1);

	assert_int_equal(gpd_heartbeat_answered(&heartbeat, 61000), 60000);
	assert_false(heartbeat.hangs);
	assert_false(gpd_heartbeat_check(&heartbeat, &ends->supervisor, 61000 + GPD_HEARTBEAT_MS));
	assert_int_equal(count_pings(ends), 1);
}

UNIT_TEST_WITH(time_in_which_the_supervisor_did_not_run_does_not_count, setup, teardown)
{
	struct gpd_heartbeat heartbeat = { 0 };
	struct ends *ends = *state;

	gpd_heartbeat_extend(&heartbeat, 50000);
	assert_int_equal(heartbeat.pinged_ms, 0);
	assert_false(gpd_heartbeat_check(&heartbeat, &ends->supervisor, 1000));
	gpd_heartbeat_extend(&heartbeat, 50000);
	assert_false(gpd_heartbeat_check(&heartbeat, &ends->supervisor,
					 51000 + GPD_HEARTBEAT_DUE_MS - 1));
	assert_true(
		gpd_heartbeat_check(&heartbeat, &ends->supervisor, 51000 + GPD_HEARTBEAT_DUE_MS));
}

UNIT_TEST_MAIN(NULL, NULL)
