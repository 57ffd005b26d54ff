/* SPDX-License-Identifier: Apache-2.0 */
/* Orphaned work: which workers continue, which worker ends because of it, and which sessions get a
 * worker of their own. */
#include "server/supervisor/workers/orphaned_work.h"
#include "tests/test.h"

#include <string.h>
#include <unistd.h>

#define WORKERS (GPD_WEDGED_WORKERS_MAX + 1)

enum {
	ALICE = 1,
	BOB,
	CAROL
};

static struct gpd_ledger *ledger;
static int ledger_fd;
static struct gpd_worker_process workers[WORKERS];
static uint64_t last_session;

static int
set_up(void **state)
{
	ledger = gpd_ledger_create(&ledger_fd);
	if (!ledger)
		return -1;
	gpd_ledger_add_tenant(ledger, ALICE, "alice");
	gpd_ledger_add_tenant(ledger, BOB, "bob");
	gpd_ledger_add_tenant(ledger, CAROL, "carol");
	memset(workers, 0, sizeof(workers));
	/* The one that is STUCK for longest comes last. */
	for (int i = 0; i < WORKERS; i++) {
		workers[i].next = i ? &workers[i - 1] : NULL;
		workers[i].pid = 100 + i;
		workers[i].state = GPD_WORKER_WEDGED;
		workers[i].state_ms = 1000 + i;
	}
	return 0;
}

static int
tear_down(void **state)
{
	gpd_ledger_destroy(ledger);
	return close(ledger_fd);
}

static struct gpd_worker_process *
list(void)
{
	return &workers[WORKERS - 1];
}

static void
say(int worker, uint64_t session, bool goes_on)
{
	const struct gpd_channel_message message = {
		.header = { .type = GPD_CHANNEL_BUSY, .result = goes_on, .session = session },
	};

	gpd_orphaned_work_update(&workers[worker], ledger, &message);
}

static uint64_t
leave_work(int worker, uint32_t tenant)
{
	assert_non_null(gpd_ledger_open(ledger, ++last_session, tenant, workers[worker].pid));
	say(worker, last_session, true);
	return last_session;
}

#define TEST(test) UNIT_TEST_WITH(test, set_up, tear_down)

TEST(of_too_many_stuck_workers_the_oldest_ends)
{
	assert_ptr_equal(gpd_orphaned_work_find_victim(list()), &workers[0]);
	workers[1].state_ms = 900;
	assert_ptr_equal(gpd_orphaned_work_find_victim(list()), &workers[1]);
	/* One whose work has ended does not count, nor one that ends already. */
	workers[3].state = GPD_WORKER_SERVING;
	assert_null(gpd_orphaned_work_find_victim(list()));
	workers[3].state = GPD_WORKER_RETIRED;
	assert_null(gpd_orphaned_work_find_victim(list()));
	workers[3].state = GPD_WORKER_BUSY;
	assert_null(gpd_orphaned_work_find_victim(list()));
}

TEST(who_leaves_work_repeatedly_gets_workers_of_its_own_for_a_while)
{
	uint64_t first = leave_work(0, BOB), second;
	const int64_t end = 7 + GPD_WEDGED_ISOLATE_MS;

	(void)leave_work(0, BOB);
	(void)leave_work(2, CAROL);
	gpd_orphaned_work_isolate_tenants(list(), &workers[0], ledger, 5);
	/* Twice in one worker is once. */
	assert_false(gpd_orphaned_work_is_isolated(list(), ledger, BOB, 6));
	second = leave_work(1, BOB);
	gpd_orphaned_work_isolate_tenants(list(), &workers[1], ledger, 7);
	assert_true(gpd_orphaned_work_is_isolated(list(), ledger, BOB, 8));
	assert_false(gpd_orphaned_work_is_isolated(list(), ledger, CAROL, 8));
	assert_false(gpd_orphaned_work_is_isolated(list(), ledger, ALICE, 8));
	/* As long as it goes on in two, and else until the time is over. */
	assert_true(gpd_orphaned_work_is_isolated(list(), ledger, BOB, end));
	say(1, second, false);
	assert_true(gpd_orphaned_work_is_isolated(list(), ledger, BOB, end - 1));
	assert_false(gpd_orphaned_work_is_isolated(list(), ledger, BOB, end));
	say(0, first, false);
	assert_false(gpd_orphaned_work_is_isolated(list(), ledger, BOB, end));
	/* Another tenant in its place has done nothing. */
	gpd_ledger_add_tenant(ledger, BOB, "dave");
	assert_false(gpd_orphaned_work_is_isolated(list(), ledger, BOB, 8));
}

TEST(work_in_a_worker_that_is_not_stuck_is_held_against_nobody)
{
	for (int i = 0; i < 3; i++)
		(void)leave_work(i, BOB);
	workers[0].state = GPD_WORKER_BUSY;
	workers[1].state = GPD_WORKER_RETIRED;
	gpd_orphaned_work_isolate_tenants(list(), &workers[2], ledger, 7);
	assert_false(gpd_orphaned_work_is_isolated(list(), ledger, BOB, 8));
}

TEST(owners_are_named_once_each)
{
	char text[64], small[8];

	(void)leave_work(0, CAROL);
	(void)leave_work(0, BOB);
	(void)leave_work(0, BOB);
	gpd_orphaned_work_format_tenants(&workers[0], ledger, text, sizeof(text));
	assert_string_equal(text, "bob, carol");
	gpd_orphaned_work_format_tenants(&workers[0], ledger, small, sizeof(small));
	assert_string_equal(small, "bob, ca");
	gpd_orphaned_work_format_tenants(&workers[1], ledger, text, sizeof(text));
	assert_string_equal(text, "");
}

UNIT_TEST_MAIN(NULL, NULL)
