/* SPDX-License-Identifier: Apache-2.0 */
/* Orphaned work: which workers continue, and which worker ends because of it. */
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
	/* The one that has been WEDGED for the longest time is last. */
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

TEST(of_a_tenants_too_many_wedged_workers_the_oldest_ends)
{
	for (int i = 0; i < WORKERS - 1; i++)
		(void)leave_work(i, BOB);
	assert_null(gpd_orphaned_work_find_victim(list(), &workers[WORKERS - 2], ledger));
	(void)leave_work(WORKERS - 1, BOB);
	assert_ptr_equal(gpd_orphaned_work_find_victim(list(), list(), ledger), &workers[0]);
	workers[1].state_ms = 900;
	assert_ptr_equal(gpd_orphaned_work_find_victim(list(), list(), ledger), &workers[1]);
	/* One whose work has ended does not count, nor one that ends already. */
	workers[3].state = GPD_WORKER_SERVING;
	assert_null(gpd_orphaned_work_find_victim(list(), list(), ledger));
	workers[3].state = GPD_WORKER_RETIRED;
	assert_null(gpd_orphaned_work_find_victim(list(), list(), ledger));
	workers[3].state = GPD_WORKER_BUSY;
	assert_null(gpd_orphaned_work_find_victim(list(), list(), ledger));
}

TEST(wedged_workers_count_for_each_tenant)
{
	uint64_t last;

	for (int i = 0; i < WORKERS; i++)
		(void)leave_work(i, i % 2 ? CAROL : BOB);
	assert_null(gpd_orphaned_work_find_victim(list(), list(), ledger));
	/* The oldest worker of all is not one of carol's. */
	workers[0].state_ms = 1;
	for (int i = 2; i < WORKERS; i += 2)
		last = leave_work(i, CAROL);
	assert_null(gpd_orphaned_work_find_victim(list(), list(), ledger));
	workers[0].state_ms = 1000;
	(void)leave_work(0, CAROL);
	assert_ptr_equal(gpd_orphaned_work_find_victim(list(), list(), ledger), &workers[0]);
	say(WORKERS - 1, last, false);
	assert_null(gpd_orphaned_work_find_victim(list(), list(), ledger));
}

TEST(sessions_with_orphaned_work_are_listed_until_it_ends)
{
	uint64_t first = leave_work(0, BOB), second = leave_work(0, CAROL);
	const struct gpd_ledger_session *entry;

	(void)leave_work(1, BOB);
	assert_non_null(gpd_ledger_open(ledger, ++last_session, ALICE, workers[0].pid));
	assert_int_equal(workers[0].orphaned, 2);
	entry = gpd_orphaned_work_next(&workers[0], ledger, NULL);
	assert_int_equal(atomic_load(&entry->id), first);
	entry = gpd_orphaned_work_next(&workers[0], ledger, entry);
	assert_int_equal(atomic_load(&entry->id), second);
	assert_null(gpd_orphaned_work_next(&workers[0], ledger, entry));
	say(0, first, false);
	entry = gpd_orphaned_work_next(&workers[0], ledger, NULL);
	assert_int_equal(atomic_load(&entry->id), second);
	assert_int_equal(workers[0].orphaned, 1);
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
