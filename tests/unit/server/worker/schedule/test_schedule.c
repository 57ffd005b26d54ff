/* SPDX-License-Identifier: Apache-2.0 */
/* The schedule: which session launches when, and the share of the GPU that each gets. */
#include "server/worker/schedule/turn.h"
#include "tests/unit/server/schedule_fixture.h"

#include <pthread.h>

CASE(one_alone_keeps_the_gpu_busy)
{
	const struct part part = { 800, 1050 };

	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	(void)add_client(1, 500 * US);
	assert_parts(false, &part);
}

CASE(short_and_long_kernels_get_the_same_time)
{
	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	(void)add_client(1, 50 * US);
	(void)add_client(2, 20 * MS);
	assert_parts(true, (const struct part[]){ { 450, 550 }, { 450, 550 } });
	assert_true(waited(&clients[0]) > 0);
	assert_true(waited(&clients[1]) > 0);
}

CASE(who_waits_for_each_kernel_gets_the_same_time)
{
	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	add_client(1, 500 * US)->waits = true;
	clients[0].per_message = 1;
	(void)add_client(2, 5 * MS);
	gpd_turn_idle_ns = 10 * MS;
	/* Were its turn over whenever it waits, it would get a tenth. */
	assert_parts(true, (const struct part[]){ { 250, 600 }, { 400, 750 } });
	gpd_turn_idle_ns = MS / 5;
}

CASE(weights_divide_the_time)
{
	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	(void)add_client(1, MS);
	(void)add_client(2, 300 * US);
	(void)add_client(3, 2 * MS);
	terms_of(1)->weight = 1;
	terms_of(2)->weight = 2;
	terms_of(3)->weight = 5;
	assert_parts(true, (const struct part[]){ { 100, 150 }, { 225, 275 }, { 590, 660 } });
}

CASE(a_limit_leaves_the_gpu_idle)
{
	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	(void)add_client(1, 500 * US);
	terms_of(1)->limit = 30;
	assert_parts(false, (const struct part[]){ { 200, 330 } });
}

CASE(equal_parts_are_not_exceeded)
{
	ledger->policies[0] = GPD_POLICY_EQUAL;
	(void)add_client(1, MS);
	add_client(2, MS)->think_ns = 200 * MS;
	assert_parts(false, (const struct part[]){ { 350, 540 }, { 10, 90 } });
}

CASE(fixed_parts_are_kept_and_not_exceeded)
{
	ledger->policies[0] = GPD_POLICY_FIXED;
	(void)add_client(1, MS);
	(void)add_client(2, 200 * US);
	terms_of(1)->time_share = 25;
	terms_of(2)->time_share = 50;
	assert_parts(false, (const struct part[]){ { 150, 280 }, { 300, 540 } });
}

CASE(a_session_with_its_own_multiprocessors_is_not_held_back)
{
	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	(void)add_client(1, MS);
	terms_of(1)->limit = 1;
	clients[0].session.account.entry->devices[0].sm_assigned = 16;
	measure(300 * MS);
	assert_int_equal(waited(&clients[0]), 0);
}

/* Uses the whole allowance of a limit of one percent. */
static void
exhaust(struct client *client)
{
	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	terms_of(1)->limit = 1;
	launch(client, 100 * MS);
	pause_client(client);
}

static void *
launch_once(void *arg)
{
	launch(arg, MS);
	return NULL;
}

/* How long one launch of an exhausted client, ten seconds in debt, is held back after `change`. */
static uint64_t
held_back(struct client *client, void (*change)(struct client *client))
{
	uint64_t since;

	exhaust(client);
	assert_int_equal(pthread_create(&client->thread, NULL, launch_once, client), 0);
	sleep_until(now_ns() + 300 * MS);
	assert_int_equal(client->launches, 1);
	since = now_ns();
	change(client);
	(void)pthread_join(client->thread, NULL);
	return now_ns() - since;
}

static void
close_it(struct client *client)
{
	client->session.closing = true;
}

static void
drop_policy(struct client *client)
{
	ledger->policies[0] = GPD_POLICY_NONE;
}

static void
raise_limit(struct client *client)
{
	terms_of(1)->limit = 100;
}

CASE(closing_ends_the_wait)
{
	assert_in_range(held_back(add_client(1, 0), close_it), 0, 5000 * MS);
}

CASE(the_end_of_the_policy_ends_the_wait)
{
	assert_in_range(held_back(add_client(1, 0), drop_policy), 0, 5000 * MS);
}

CASE(a_higher_limit_ends_the_wait)
{
	assert_in_range(held_back(add_client(1, 0), raise_limit), 0, 5000 * MS);
}

CASE(a_policy_that_was_off_leaves_no_debts)
{
	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	(void)add_client(1, MS);
	(void)add_client(2, MS);
	start_clients();
	sleep_until(now_ns() + 200 * MS);
	ledger->policies[0] = GPD_POLICY_NONE;
	sleep_until(now_ns() + 700 * MS);
	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	sleep_until(now_ns() + 100 * MS);
	stop_clients();
	for (unsigned int i = 0; i < client_count; i++)
		clients[i].session.closing = false;
	assert_parts(true, (const struct part[]){ { 440, 560 }, { 440, 560 } });
}

CASE(work_that_hangs_is_waited_for_half_a_second)
{
	uint64_t begin;

	ledger->policies[0] = GPD_POLICY_BEST_EFFORT;
	(void)add_client(1, 0);
	(void)add_client(2, 0);
	launch(&clients[0], 0);
	clients[0].gpu_streams[0].end_ns = now_ns() + 2 * SECOND;
	pause_client(&clients[0]);
	begin = now_ns();
	launch(&clients[1], MS);
	assert_in_range(now_ns() - begin, 400 * MS, 1500 * MS);
	clients[0].session.closing = true;
}

CASE(a_kernel_counts_while_it_runs_and_once)
{
	uint64_t begin = now_ns(), half, all;
	struct client *client;

	ledger->policies[0] = GPD_POLICY_NONE;
	client = add_client(1, MS);
	launch(client, 800 * MS);
	pause_client(client);
	sleep_until(begin + 500 * MS);
	half = measured(client);
	assert_true(half > 200 * MS);
	assert_true(half <= now_ns() - begin);
	sleep_until(begin + 1000 * MS);
	all = measured(client);
	assert_true(all >= half && all > 750 * MS);
	assert_true(all < 900 * MS);
	/* Two streams at the same time use the GPU once. */
	begin = now_ns();
	launch_on(client, STREAM, 200 * MS);
	launch_on(client, OTHER_STREAM, 200 * MS);
	pause_client(client);
	sleep_until(begin + 600 * MS);
	assert_true(measured(client) - all > 350 * MS);
	assert_true(measured(client) - all <= now_ns() - begin);
}

CASE(priorities_of_streams_follow_the_session)
{
	struct client *client = add_client(1, 0);
	struct gpd_ledger_session *entry = client->session.account.entry;

	assert_int_equal(gpd_schedule_priority(&client->session.account, 0, -3), -3);
	entry->priority = 1;
	assert_int_equal(gpd_schedule_priority(&client->session.account, 0, -3), 0);
	entry->priority = 2;
	assert_int_equal(gpd_schedule_priority(&client->session.account, 0, 0), -1);
	assert_int_equal(gpd_schedule_priority(&client->session.account, 0, 7), -1);
	assert_int_equal(gpd_schedule_priority(&client->session.account, 0, -5), -5);
	assert_int_equal(gpd_schedule_priority(&client->session.account, 0, -9), -5);
}

UNIT_TEST_MAIN(NULL, NULL)
