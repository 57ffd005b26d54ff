/* SPDX-License-Identifier: Apache-2.0 */
/* Whose work goes on in which worker, which one ends because of it, which may serve again, and who
 * gets no session. */
#include "server/supervisor/workers/orphans.h"
#include "tests/test.h"

#include <string.h>
#include <unistd.h>

#define WORKERS (GPD_ORPHANS_WORKERS_MAX + 1)

enum {
	ALICE = 1,
	BOB,
	CAROL
};

static struct gpd_ledger *ledger;
static int ledger_fd;
static struct gpd_child workers[WORKERS];
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
	/* The last one that was replaced comes first. */
	for (int i = 0; i < WORKERS; i++) {
		workers[i].next = i ? &workers[i - 1] : NULL;
		workers[i].pid = 100 + i;
		workers[i].left_ms = 1000 + i;
		workers[i].may_return = true;
	}
	return 0;
}

static int
tear_down(void **state)
{
	gpd_ledger_destroy(ledger);
	return close(ledger_fd);
}

static struct gpd_child *
list(void)
{
	return &workers[WORKERS - 1];
}

static uint64_t
open_session(int worker, uint32_t tenant)
{
	assert_non_null(gpd_ledger_open(ledger, ++last_session, tenant, workers[worker].pid));
	return last_session;
}

static void
say(int worker, uint64_t session, bool goes_on)
{
	const struct gpd_channel_message message = {
		.header = { .type = GPD_CHANNEL_BUSY, .result = goes_on, .session = session },
	};

	gpd_orphans_note(&workers[worker], ledger, &message);
}

static uint64_t
leave_work(int worker, uint32_t tenant)
{
	uint64_t session = open_session(worker, tenant);

	say(worker, session, true);
	return session;
}

static void
only_work_that_goes_on_where_others_serve_counts(void **state)
{
	uint64_t session;

	assert_int_equal(gpd_orphans_count(list()), 0);
	assert_null(gpd_orphans_choose(list(), ledger));
	session = leave_work(0, BOB);
	(void)leave_work(1, BOB);
	workers[1].left_ms = 0;
	assert_int_equal(gpd_orphans_count(list()), 1);
	assert_ptr_equal(gpd_orphans_choose(list(), ledger), &workers[0]);
	say(0, session, false);
	assert_int_equal(gpd_orphans_count(list()), 0);
}

static void
the_oldest_ends_if_all_are_alike(void **state)
{
	for (int i = 0; i < WORKERS; i++)
		(void)leave_work(i, BOB);
	assert_ptr_equal(gpd_orphans_choose(list(), ledger), &workers[0]);
	for (int i = 0; i < WORKERS; i++)
		(void)open_session(i, ALICE);
	assert_null(gpd_orphans_choose(list(), ledger));
}

/* By a session that it had before it leaves work in one more than it gets. */
static void
nobody_pays_for_what_one_tenant_leaves_everywhere(void **state)
{
	uint64_t bobs[WORKERS];

	for (int i = 0; i < WORKERS; i++) {
		(void)open_session(i, ALICE);
		bobs[i] = leave_work(i, BOB);
	}
	assert_null(gpd_orphans_choose(list(), ledger));
	assert_true(gpd_orphans_shuts_out(list(), ledger, BOB));
	/* Nor for what another one leaves besides. */
	(void)leave_work(2, CAROL);
	assert_null(gpd_orphans_choose(list(), ledger));
	/* As soon as one of them is another's alone there may be more: the limit is for them again.
	 */
	say(2, bobs[2], false);
	assert_ptr_equal(gpd_orphans_choose(list(), ledger), &workers[0]);
}

static void
a_neighbours_worker_is_spared(void **state)
{
	uint64_t session;

	for (int i = 0; i < WORKERS; i++) {
		(void)leave_work(i, BOB);
		(void)open_session(i, BOB);
	}
	session = open_session(0, ALICE);
	assert_ptr_equal(gpd_orphans_choose(list(), ledger), &workers[1]);
	(void)open_session(1, CAROL);
	assert_ptr_equal(gpd_orphans_choose(list(), ledger), &workers[2]);
	gpd_ledger_close(ledger, gpd_ledger_find(ledger, session));
	assert_ptr_equal(gpd_orphans_choose(list(), ledger), &workers[0]);
}

static void
who_leaves_work_there_too_is_no_neighbour_as_long_as_it_goes_on(void **state)
{
	uint64_t session;

	for (int i = 0; i < 2; i++)
		(void)leave_work(i, BOB);
	(void)open_session(0, ALICE);
	session = leave_work(0, ALICE);
	assert_ptr_equal(gpd_orphans_choose(list(), ledger), &workers[0]);
	say(0, session, false);
	assert_ptr_equal(gpd_orphans_choose(list(), ledger), &workers[1]);
}

/* In all that there may be, next to Alice. */
static void
leave_work_everywhere(uint64_t bobs[], uint64_t alices[])
{
	for (int i = 0; i < GPD_ORPHANS_WORKERS_MAX; i++) {
		assert_false(gpd_orphans_shuts_out(list(), ledger, BOB));
		alices[i] = open_session(i, ALICE);
		bobs[i] = leave_work(i, BOB);
	}
}

static void
who_would_end_others_sessions_is_shut_out(void **state)
{
	uint64_t bobs[GPD_ORPHANS_WORKERS_MAX], alices[GPD_ORPHANS_WORKERS_MAX];

	leave_work_everywhere(bobs, alices);
	assert_true(gpd_orphans_shuts_out(list(), ledger, BOB));
	assert_false(gpd_orphans_shuts_out(list(), ledger, ALICE));
	assert_false(gpd_orphans_shuts_out(list(), ledger, CAROL));
	/* One more of his own sessions would end. */
	gpd_ledger_close(ledger, gpd_ledger_find(ledger, alices[2]));
	assert_false(gpd_orphans_shuts_out(list(), ledger, BOB));
	(void)open_session(2, CAROL);
	assert_true(gpd_orphans_shuts_out(list(), ledger, BOB));
	/* It ends in one. */
	say(1, bobs[1], false);
	assert_false(gpd_orphans_shuts_out(list(), ledger, BOB));
	/* In another one it has only begun: that still serves. */
	workers[GPD_ORPHANS_WORKERS_MAX].left_ms = 0;
	(void)open_session(GPD_ORPHANS_WORKERS_MAX, ALICE);
	(void)leave_work(GPD_ORPHANS_WORKERS_MAX, BOB);
	assert_false(gpd_orphans_shuts_out(list(), ledger, BOB));
	workers[GPD_ORPHANS_WORKERS_MAX].left_ms = 2000;
	assert_true(gpd_orphans_shuts_out(list(), ledger, BOB));
}

static void
who_has_no_neighbours_is_not_shut_out(void **state)
{
	for (int i = 0; i < WORKERS; i++) {
		(void)leave_work(i, BOB);
		(void)open_session(i, BOB);
	}
	assert_false(gpd_orphans_shuts_out(list(), ledger, BOB));
}

static void
work_of_several_together_shuts_nobody_out(void **state)
{
	for (int i = 0; i < WORKERS; i++) {
		(void)open_session(i, ALICE);
		(void)leave_work(i, i % 2 ? BOB : CAROL);
	}
	assert_false(gpd_orphans_shuts_out(list(), ledger, BOB));
	assert_false(gpd_orphans_shuts_out(list(), ledger, CAROL));
	assert_ptr_equal(gpd_orphans_choose(list(), ledger), &workers[0]);
}

static void
owners_are_named_once_each(void **state)
{
	char text[64], small[8];

	(void)leave_work(0, CAROL);
	(void)leave_work(0, BOB);
	(void)leave_work(0, BOB);
	(void)open_session(0, ALICE);
	gpd_orphans_owners(&workers[0], ledger, text, sizeof(text));
	assert_string_equal(text, "bob, carol");
	gpd_orphans_owners(&workers[0], ledger, small, sizeof(small));
	assert_string_equal(small, "bob, ca");
	gpd_orphans_owners(&workers[1], ledger, text, sizeof(text));
	assert_string_equal(text, "");
}

static void
one_returns_when_nothing_goes_on_and_nothing_else_is_wrong(void **state)
{
	uint64_t sessions[WORKERS];

	for (int i = 0; i < WORKERS; i++)
		sessions[i] = leave_work(i, BOB);
	assert_null(gpd_orphans_find_idle(list()));
	say(1, sessions[1], false);
	assert_ptr_equal(gpd_orphans_find_idle(list()), &workers[1]);
	say(0, sessions[0], false);
	assert_ptr_equal(gpd_orphans_find_idle(list()), &workers[0]);
	workers[0].may_return = false;
	assert_ptr_equal(gpd_orphans_find_idle(list()), &workers[1]);
	workers[1].channel_closed = true;
	assert_null(gpd_orphans_find_idle(list()));
	say(2, sessions[2], false);
	assert_ptr_equal(gpd_orphans_find_idle(list()), &workers[2]);
	/* It serves. */
	workers[2].left_ms = 0;
	assert_null(gpd_orphans_find_idle(list()));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_work_that_goes_on_where_others_serve_counts,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_oldest_ends_if_all_are_alike, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(nobody_pays_for_what_one_tenant_leaves_everywhere,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_neighbours_worker_is_spared, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			who_leaves_work_there_too_is_no_neighbour_as_long_as_it_goes_on, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(who_would_end_others_sessions_is_shut_out, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(who_has_no_neighbours_is_not_shut_out, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(work_of_several_together_shuts_nobody_out, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(owners_are_named_once_each, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			one_returns_when_nothing_goes_on_and_nothing_else_is_wrong, set_up,
			tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
