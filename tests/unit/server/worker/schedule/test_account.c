/* SPDX-License-Identifier: Apache-2.0 */
/* The account of a session: charges and refusals. */
#include "base/clock.h"
#include "server/worker/schedule/account.h"
#include "tests/test.h"

#include <pthread.h>
#include <unistd.h>

#define HOUR_NS UINT64_C(3600000000000)

static _Atomic bool closing;
static struct gpd_account account = { .closing = &closing };

static int
set_up(void **state)
{
	int fd;

	closing = false;
	account.ledger = gpd_ledger_create(&fd);
	if (!account.ledger)
		return -1;
	account.entry = gpd_ledger_open(account.ledger, 7, GPD_TENANT_DEFAULT, 1);
	return close(fd);
}

static int
tear_down(void **state)
{
	gpd_ledger_destroy(account.ledger);
	return 0;
}

#define TEST(test) UNIT_TEST_WITH(test, set_up, tear_down)

TEST(an_account_refuses_what_is_past_the_quota_and_counts_nothing)
{
	struct gpd_ledger_line *line = &account.entry->devices[1];

	line->memory_max = 100;
	assert_int_equal(gpd_account_allocate(&account, 1, 60), CUDA_SUCCESS);
	assert_int_equal(gpd_account_allocate(&account, 1, 41), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpd_account_allocate(&account, 1, UINT64_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(line->memory, 60);
	assert_int_equal(gpd_ledger_headroom(account.ledger, account.entry, 1, 0).left, 40);
	assert_int_equal(gpd_account_allocate(&account, 1, 40), CUDA_SUCCESS);
	gpd_account_free(&account, 1, 90);
	assert_int_equal(line->memory, 10);
	assert_int_equal(line->memory_peak, 100);
	assert_int_equal(account.entry->counts.refusals, 2);
}

TEST(what_no_device_has_is_never_charged)
{
	struct gpd_ledger_line *line = &account.entry->devices[1];

	account.ledger->device_memory[1] = 1000;
	assert_int_equal(gpd_account_allocate(&account, 1, 1001), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpd_account_allocate(&account, 1, UINT64_MAX - 1),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(line->memory, 0);
	assert_int_equal(line->memory_peak, 0);
	assert_int_equal(account.entry->counts.refusals, 2);
	/* Another device is another matter, and so is the last byte. */
	assert_int_equal(gpd_account_allocate(&account, 0, 1001), CUDA_SUCCESS);
	assert_int_equal(gpd_account_allocate(&account, 1, 1000), CUDA_SUCCESS);
}

static void *
give_back_late(void *arg)
{
	struct gpd_account *other = arg;

	(void)usleep(100000);
	gpd_account_free(other, 0, 70);
	gpd_ledger_free_end(other->entry, 0);
	return NULL;
}

TEST(what_another_session_is_giving_back_is_waited_for)
{
	struct gpd_account other = account;
	pthread_t thread;

	account.ledger->tenants[GPD_TENANT_DEFAULT].devices[0].memory_max = 100;
	other.entry = gpd_ledger_open(account.ledger, 8, GPD_TENANT_DEFAULT, 1);
	assert_int_equal(gpd_account_allocate(&other, 0, 70), CUDA_SUCCESS);
	/* It gives nothing back. */
	assert_int_equal(gpd_account_allocate(&account, 0, 40), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpd_ledger_free_begin(other.entry), 0);
	assert_int_equal(pthread_create(&thread, NULL, give_back_late, &other), 0);
	assert_int_equal(gpd_account_allocate(&account, 0, 40), CUDA_SUCCESS);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(account.entry->counts.refusals, 1);
	/* What does not come back is not waited for forever. */
	(void)gpd_ledger_free_begin(other.entry);
	assert_int_equal(gpd_account_allocate(&account, 0, 100), CUDA_ERROR_OUT_OF_MEMORY);
	/* And what still does not come back not at all. */
	gp_clock_advance(GPD_FREE_LATE_NS);
	assert_false(gpd_ledger_has_pending_frees(account.ledger, account.entry, true, 0));
}

static unsigned int recalls;

static void
count_recall(void)
{
	recalls++;
}

/* A pending free may have ended after the last attempt, so there is another one. */
static void
is_over_after_one_more(bool of_tenant, uint64_t *until)
{
	assert_true(gpd_account_wait(&account, of_tenant, until));
	assert_false(gpd_account_wait(&account, of_tenant, until));
}

TEST(what_others_keep_is_waited_for_but_not_by_two_for_each_other)
{
	struct gpd_ledger_session *other =
		gpd_ledger_open(account.ledger, 8, GPD_TENANT_DEFAULT, 1);
	uint64_t until = 0;

	recalls = 0;
	account.recall = count_recall;
	other->cache_state = GPD_CACHE_FILLED;
	assert_true(gpd_account_wait(&account, true, &until));
	assert_int_equal(recalls, 1);
	assert_int_equal(other->cache_state, GPD_CACHE_RECALLED);
	/* It does not give anything back while it waits itself. */
	other->waiting = 1;
	is_over_after_one_more(true, &until);
	other->waiting = 0;
	assert_true(gpd_account_wait(&account, true, &until));
	/* Memory that another tenant keeps is not missing in this quota. */
	other->tenant = 1;
	is_over_after_one_more(true, &until);
	assert_true(gpd_account_wait(&account, false, &until));
	other->recalled_ns = gp_now_ns() - GPD_RECALL_NS;
	is_over_after_one_more(false, &until);
	assert_int_equal(account.entry->waiting, 0);
	account.recall = NULL;
}

/* As who asks for what there is not, again and again, brings about. */
TEST(what_is_recalled_anew_all_the_time_is_not_waited_for_without_end)
{
	struct gpd_ledger_session *other =
		gpd_ledger_open(account.ledger, 9, GPD_TENANT_DEFAULT, 1);
	uint64_t until = 0;

	account.recall = count_recall;
	other->cache_state = GPD_CACHE_FILLED;
	assert_true(gpd_account_wait(&account, true, &until));
	gp_clock_advance(GPD_RECALL_NS / 2);
	other->recalled_ns = gp_now_ns();
	assert_true(gpd_account_wait(&account, true, &until));
	gp_clock_advance(GPD_RECALL_NS / 2);
	other->recalled_ns = gp_now_ns();
	is_over_after_one_more(true, &until);
	other->cache_state = GPD_CACHE_EMPTY;
	account.recall = NULL;
}

static void *
wait_for_another(void *arg)
{
	uint64_t until = 0;

	while (gpd_account_wait(arg, false, &until))
		;
	return NULL;
}

TEST(others_see_who_waits_for_what_they_keep)
{
	struct gpd_ledger_session *other =
		gpd_ledger_open(account.ledger, 8, GPD_TENANT_DEFAULT, 1);
	pthread_t thread;

	account.recall = count_recall;
	other->cache_state = GPD_CACHE_FILLED;
	assert_int_equal(pthread_create(&thread, NULL, wait_for_another, &account), 0);
	while (!account.entry->waiting)
		(void)usleep(100);
	other->cache_state = GPD_CACHE_EMPTY;
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(account.entry->waiting, 0);
	account.recall = NULL;
}

TEST(each_device_has_a_quota_of_its_own)
{
	account.entry->devices[1].memory_max = 100;
	assert_int_equal(gpd_account_allocate(&account, 0, 1000), CUDA_SUCCESS);
	assert_int_equal(gpd_account_allocate(&account, 1, 1000), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpd_ledger_headroom(account.ledger, account.entry, 0, 0).max,
			 GPD_NO_LIMIT);
	assert_int_equal(gpd_ledger_headroom(account.ledger, account.entry, 1, 0).max, 100);
}

TEST(a_device_that_cannot_be_is_refused)
{
	assert_int_equal(gpd_account_allocate(&account, -1, 1), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(gpd_account_allocate(&account, GPD_LEDGER_DEVICES, 1),
			 CUDA_ERROR_INVALID_DEVICE);
	gpd_account_free(&account, -1, 1);
	gpd_account_free(&account, GPD_LEDGER_DEVICES, 1);
	assert_int_equal(account.entry->devices[0].memory, 0);
}

TEST(launches_and_both_directions_of_copies_are_counted)
{
	gpd_account_launch(&account);
	gpd_account_copy(&account, 10, 0);
	gpd_account_copy(&account, 0, 20);
	assert_int_equal(account.entry->counts.launches, 1);
	assert_int_equal(account.entry->counts.copies, 2);
	assert_int_equal(account.entry->counts.copied_in, 10);
	assert_int_equal(account.entry->counts.copied_out, 20);
}

struct waiter {
	pthread_t thread;
	size_t got;
};

static void *
wait_for_link(void *arg)
{
	struct waiter *waiter = arg;

	waiter->got = gpd_account_throttle(&account, 10 << 20);
	return NULL;
}

/* Another session has the link for an hour. */
static void
start_waiting(struct waiter *waiter, uint64_t now)
{
	struct gpd_ledger_tenant *tenant = &account.ledger->tenants[GPD_TENANT_DEFAULT];

	gpd_ledger_set_bandwidth(tenant, 1 << 20);
	tenant->link_free_ns = now + HOUR_NS;
	assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_link, waiter), 0);
	while (account.entry->link_ns == 0)
		(void)usleep(1000);
	assert_true(tenant->link_free_ns > now + HOUR_NS);
}

TEST(who_waits_under_a_limit_goes_on_when_there_is_another)
{
	struct gpd_ledger_tenant *tenant = &account.ledger->tenants[GPD_TENANT_DEFAULT];
	const uint64_t limits[] = { GPD_NO_LIMIT, 2 << 20 };
	const size_t expected[] = { 10 << 20, (2 << 20) / 20 };

	for (int i = 0; i < 2; i++) {
		struct waiter waiter = { 0 };
		uint64_t begin = gp_now_ns();

		start_waiting(&waiter, begin);
		gpd_ledger_set_bandwidth(tenant, limits[i]);
		assert_int_equal(pthread_join(waiter.thread, NULL), 0);
		assert_int_equal(waiter.got, expected[i]);
		assert_int_equal(account.entry->link_ns, 0);
		assert_true(tenant->link_free_ns < begin + HOUR_NS);
		assert_true(account.entry->counts.throttled_ns > 0);
	}
}

TEST(a_session_that_closes_gives_back_what_it_waits_for)
{
	struct gpd_ledger_tenant *tenant = &account.ledger->tenants[GPD_TENANT_DEFAULT];
	struct waiter waiter = { 0 };
	uint64_t begin = gp_now_ns();

	start_waiting(&waiter, begin);
	closing = true;
	assert_int_equal(pthread_join(waiter.thread, NULL), 0);
	assert_int_equal(tenant->link_free_ns, begin + HOUR_NS);
	assert_int_equal(account.entry->link_ns, 0);
}

TEST(what_travels_in_one_piece_waits_for_all_its_turns)
{
	struct gpd_ledger_tenant *tenant = &account.ledger->tenants[GPD_TENANT_DEFAULT];
	uint64_t begin = gp_now_ns();

	gpd_ledger_set_bandwidth(tenant, 1 << 20);
	gpd_account_throttle_all(&account, 200 << 10);
	/* The first turn is had at once. */
	assert_true(gp_now_ns() - begin >= 140000000);
	assert_true(tenant->link_free_ns >= begin + 195000000);
}

UNIT_TEST_MAIN(NULL, NULL)
