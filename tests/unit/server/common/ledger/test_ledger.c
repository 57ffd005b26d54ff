/* SPDX-License-Identifier: Apache-2.0 */
/* A tenant's quota holds over all its sessions, processes and deaths. */
#include "base/clock.h"
#include "server/common/ledger/ledger.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS 20000

static struct gpd_ledger *ledger;
static int ledger_fd;

static int
set_up(void **state)
{
	ledger = gpd_ledger_create(&ledger_fd);
	return ledger ? 0 : -1;
}

static int
tear_down(void **state)
{
	gpd_ledger_destroy(ledger);
	return close(ledger_fd);
}

static struct gpd_ledger_tenant_line *
tenant_line(void)
{
	return &ledger->tenants[GPD_TENANT_DEFAULT].devices[0];
}

static uint64_t
tenant_host(void)
{
	return atomic_load(&ledger->tenants[GPD_TENANT_DEFAULT].host);
}

#define TEST(test) UNIT_TEST_WITH(test, set_up, tear_down)

TEST(sessions_of_a_tenant_share_its_memory)
{
	struct gpd_ledger_session *a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10);
	struct gpd_ledger_session *b = gpd_ledger_open(ledger, 2, GPD_TENANT_DEFAULT, 11);

	tenant_line()->memory_max = 100;
	assert_true(gpd_ledger_charge(ledger, a, 0, 70));
	assert_false(gpd_ledger_charge(ledger, b, 0, 31));
	assert_int_equal(gpd_ledger_headroom(ledger, b, 0, 0).left, 30);
	assert_int_equal(gpd_ledger_headroom(ledger, b, 0, 0).max, 100);
	assert_true(gpd_ledger_charge(ledger, b, 0, 30));
	gpd_ledger_uncharge(ledger, a, 0, 70);
	assert_int_equal(tenant_line()->memory, 30);
}

TEST(what_is_granted_counts_and_is_not_in_use)
{
	struct gpd_ledger_session *a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10);
	struct gpd_ledger_session *b = gpd_ledger_open(ledger, 2, GPD_TENANT_DEFAULT, 11);

	tenant_line()->memory_max = 100;
	gpd_ledger_set_allowance(ledger, a, 0, 60, 0);
	assert_true(gpd_ledger_charge(ledger, a, 0, 60));
	assert_true(gpd_ledger_charge(ledger, b, 0, 30));
	assert_false(gpd_ledger_charge(ledger, b, 0, 11));
	assert_int_equal(GPD_LEDGER_IN_USE(&a->devices[0]), 0);
	assert_int_equal(GPD_LEDGER_IN_USE(tenant_line()), 30);
	assert_int_equal(a->devices[0].memory_peak, 0);
	gpd_ledger_set_allowance(ledger, a, 0, 20, 0);
	assert_int_equal(GPD_LEDGER_IN_USE(&a->devices[0]), 40);
	assert_int_equal(GPD_LEDGER_IN_USE(tenant_line()), 70);
	assert_int_equal(a->devices[0].memory_peak, 40);
	gpd_ledger_close(ledger, a);
	assert_int_equal(tenant_line()->allowance, 0);
	assert_int_equal(GPD_LEDGER_IN_USE(tenant_line()), 30);
	gpd_ledger_close(ledger, b);
}

TEST(who_keeps_memory_is_asked_for_it_for_so_long)
{
	struct gpd_ledger_session *a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10);
	struct gpd_ledger_session *b = gpd_ledger_open(ledger, 2, GPD_TENANT_DEFAULT, 11);
	struct gpd_ledger_session *c = gpd_ledger_open(ledger, 3, GPD_TENANT_DEFAULT + 1, 11);

	assert_false(gpd_ledger_recall(ledger, a, false));
	a->cache_state = b->cache_state = c->cache_state = GPD_CACHE_FILLED;
	assert_true(gpd_ledger_recall(ledger, a, true));
	assert_int_equal(a->cache_state, GPD_CACHE_FILLED);
	assert_int_equal(b->cache_state, GPD_CACHE_RECALLED);
	assert_int_equal(c->cache_state, GPD_CACHE_FILLED);
	assert_true(gpd_ledger_has_pending_recall(ledger, a, false));
	assert_false(gpd_ledger_has_pending_recall(ledger, b, false));
	/* Not twice. */
	assert_false(gpd_ledger_recall(ledger, a, true));
	b->recalled_ns -= GPD_RECALL_NS;
	assert_false(gpd_ledger_has_pending_recall(ledger, a, false));
	assert_true(gpd_ledger_recall(ledger, a, false));
	assert_int_equal(c->cache_state, GPD_CACHE_RECALLED);
	c->cache_state = GPD_CACHE_EMPTY;
	assert_false(gpd_ledger_has_pending_recall(ledger, a, false));
}

/* It is asked for what it keeps, but costs others no more time. */
TEST(who_was_slow_once_is_not_waited_for_again)
{
	struct gpd_ledger_session *a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10);
	struct gpd_ledger_session *b = gpd_ledger_open(ledger, 2, GPD_TENANT_DEFAULT + 1, 11);

	gpd_ledger_add_tenant(ledger, GPD_TENANT_DEFAULT + 1, "other");
	assert_true(gpd_ledger_charge(ledger, b, 0, 50));
	b->devices[0].cached = 10;
	b->cache_state = GPD_CACHE_FILLED;
	assert_true(gpd_ledger_recall(ledger, a, false));
	gpd_ledger_set_cached(ledger, b, true);
	assert_int_equal(b->slow, 0);
	/* So long it waited for others itself. */
	assert_true(gpd_ledger_recall(ledger, a, false));
	b->recalled_ns -= 2 * GPD_RECALL_LATE_NS;
	gpd_ledger_extend_recall(b, 2 * GPD_RECALL_LATE_NS);
	gpd_ledger_set_cached(ledger, b, true);
	assert_int_equal(b->slow, 0);
	assert_int_equal(gpd_ledger_reclaimable(ledger, a, 0).of_device, 10);
	/* That is no excuse the next time. */
	assert_true(gpd_ledger_recall(ledger, a, false));
	b->recalled_ns -= 2 * GPD_RECALL_LATE_NS;
	assert_true(gpd_ledger_has_pending_recall(ledger, a, false));
	gpd_ledger_set_cached(ledger, b, true);
	assert_int_equal(b->slow, 1);
	assert_int_equal(b->cache_state, GPD_CACHE_FILLED);
	assert_int_equal(gpd_ledger_reclaimable(ledger, a, 0).of_device, 0);
	assert_true(gpd_ledger_recall(ledger, a, false));
	assert_false(gpd_ledger_has_pending_recall(ledger, a, false));
	gpd_ledger_set_cached(ledger, b, false);
	assert_int_equal(b->cache_state, GPD_CACHE_EMPTY);
	/* Another session in the same slot has not been asked for memory yet. */
	gpd_ledger_close(ledger, b);
	b = gpd_ledger_open(ledger, 3, GPD_TENANT_DEFAULT + 1, 11);
	assert_int_equal(b->slow, 0);
}

TEST(what_does_not_reach_the_driver_is_not_waited_for_again)
{
	const uint32_t slow = GPD_TENANT_DEFAULT + 1;
	struct gpd_ledger_session *a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10);
	struct gpd_ledger_session *b = gpd_ledger_open(ledger, 2, slow, 11), *c;
	uint32_t place = gpd_ledger_free_begin(b);

	gpd_ledger_add_tenant(ledger, slow, "slow");
	assert_true(gpd_ledger_has_pending_frees(ledger, a, false, 0));
	/* It is of another tenant, and does not help where the quota is used up. */
	assert_false(gpd_ledger_has_pending_frees(ledger, a, true, 0));
	gp_clock_advance(GPD_FREE_LATE_NS / 2);
	assert_true(gpd_ledger_has_pending_frees(ledger, a, false, GPD_FREE_LATE_NS / 2));
	assert_int_equal(b->frees_slow, 0);
	gp_clock_advance(GPD_FREE_LATE_NS);
	assert_false(gpd_ledger_has_pending_frees(ledger, a, false, 0));
	assert_int_equal(b->frees_slow, 1);
	gpd_ledger_free_end(b, place);
	assert_false(gpd_ledger_has_pending_frees(ledger, a, false, 0));
	/* The next time it has a moment, and so have further sessions of its tenant. */
	c = gpd_ledger_open(ledger, 3, slow, 11);
	for (int i = 0; i < 2; i++) {
		place = gpd_ledger_free_begin(i ? c : b);
		assert_true(gpd_ledger_has_pending_frees(ledger, a, false, GPD_FREE_SLOW_NS));
		assert_false(gpd_ledger_has_pending_frees(ledger, a, false, GPD_FREE_SLOW_NS + 1));
		/* Not so where its own wait. */
		if (i)
			assert_true(gpd_ledger_has_pending_frees(ledger, b, true,
								 GPD_FREE_SLOW_NS + 1));
		gpd_ledger_free_end(i ? c : b, place);
	}
	assert_int_equal(c->frees_slow, 0);
	ledger->tenants[slow].frees_slow_ns -= GPD_SLOW_NS;
	(void)gpd_ledger_free_begin(c);
	assert_true(gpd_ledger_has_pending_frees(ledger, a, false, GPD_FREE_SLOW_NS + 1));
}

/* Some of it is on its way all the time, and none of it for long. */
TEST(a_session_that_frees_all_the_time_is_not_slow)
{
	struct gpd_ledger_session *a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10);
	struct gpd_ledger_session *b = gpd_ledger_open(ledger, 2, GPD_TENANT_DEFAULT, 10);
	uint32_t place = gpd_ledger_free_begin(b), next;

	for (int i = 0; i < 20; i++) {
		assert_true(gpd_ledger_has_pending_frees(ledger, a, true, GPD_FREE_LATE_NS));
		gp_clock_advance(GPD_FREE_LATE_NS / 4);
		next = gpd_ledger_free_begin(b);
		gpd_ledger_free_end(b, place);
		place = next;
	}
	assert_int_equal(b->frees_slow, 0);
}

/* It opens further sessions, which would all be slow once. */
TEST(a_tenant_that_was_slow_is_not_waited_for_by_others)
{
	const uint32_t slow = GPD_TENANT_DEFAULT + 1;
	struct gpd_ledger_session *a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10);
	struct gpd_ledger_session *b = gpd_ledger_open(ledger, 2, slow, 11), *c;

	gpd_ledger_add_tenant(ledger, slow, "slow");
	b->cache_state = GPD_CACHE_FILLED;
	assert_true(gpd_ledger_recall(ledger, a, false));
	b->recalled_ns -= 2 * GPD_RECALL_LATE_NS;
	/* The first time it is waited for, and ends without an answer. */
	assert_true(gpd_ledger_has_pending_recall(ledger, a, false));
	assert_true(gpd_ledger_has_pending_recall(ledger, a, false));
	gpd_ledger_close(ledger, b);
	b = gpd_ledger_open(ledger, 3, slow, 11);
	c = gpd_ledger_open(ledger, 4, slow, 11);
	assert_true(gpd_ledger_charge(ledger, b, 0, 50));
	b->devices[0].cached = 10;
	b->cache_state = GPD_CACHE_FILLED;
	assert_int_equal(gpd_ledger_reclaimable(ledger, a, 0).of_device, 0);
	assert_true(gpd_ledger_recall(ledger, a, false));
	assert_false(gpd_ledger_has_pending_recall(ledger, a, false));
	/* Its own sessions still wait for each other. */
	assert_int_equal(gpd_ledger_reclaimable(ledger, c, 0).of_device, 10);
	assert_true(gpd_ledger_has_pending_recall(ledger, c, true));
	/* Not for ever. */
	ledger->tenants[slow].slow_ns -= GPD_SLOW_NS;
	assert_true(gpd_ledger_has_pending_recall(ledger, a, false));
	/* A new session in the same slot of the ledger starts with zero usage. */
	gpd_ledger_add_tenant(ledger, slow, "another");
	assert_int_equal(ledger->tenants[slow].slow_ns, 0);
}

TEST(what_travels_without_a_turn_delays_the_next_one)
{
	struct gpd_ledger_session *a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10);
	struct gpd_ledger_tenant *tenant = &ledger->tenants[GPD_TENANT_DEFAULT];

	gpd_ledger_link_charge(ledger, a, 1000, 5000);
	assert_int_equal(tenant->link_free_ns, 0);
	gpd_ledger_set_bandwidth(tenant, 1000000);
	gpd_ledger_link_charge(ledger, a, 1000, 5000);
	gpd_ledger_link_charge(ledger, a, 1000, 5000);
	assert_int_equal(tenant->link_free_ns, 5000 + 2 * 1000000);
	assert_int_equal(gpd_ledger_link_acquire(ledger, a, 10, 5000).start_ns, 5000 + 2 * 1000000);
}

/* What counts is what they would give back: credit, and of what is in use no more than there is. */
TEST(what_others_keep_could_be_had)
{
	struct gpd_ledger_session *a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10);
	struct gpd_ledger_session *b = gpd_ledger_open(ledger, 2, GPD_TENANT_DEFAULT, 11);
	struct gpd_ledger_session *c = gpd_ledger_open(ledger, 3, GPD_TENANT_DEFAULT + 1, 11);
	struct gpd_ledger_reclaimable cached;

	tenant_line()->memory_max = 100;
	assert_true(gpd_ledger_charge(ledger, b, 0, 50));
	gpd_ledger_set_allowance(ledger, b, 0, 20, 25);
	b->devices[0].cached = 10;
	gpd_ledger_add_tenant(ledger, GPD_TENANT_DEFAULT + 1, "other");
	assert_true(gpd_ledger_charge(ledger, c, 0, 7));
	c->devices[0].cached = UINT64_MAX;
	/* Who was not asked to say when they are wanted back keeps nothing that could be had. */
	cached = gpd_ledger_reclaimable(ledger, a, 0);
	assert_int_equal(cached.of_device, 0);
	assert_int_equal(cached.of_tenant, 0);
	a->cache_state = b->cache_state = c->cache_state = GPD_CACHE_FILLED;
	cached = gpd_ledger_reclaimable(ledger, a, 0);
	assert_int_equal(cached.of_device, 25 + 10 + 7);
	assert_int_equal(cached.of_tenant, 20 + 10);
	assert_int_equal(gpd_ledger_headroom(ledger, a, 0, cached.of_tenant).left, 80);
	assert_int_equal(gpd_ledger_reclaimable(ledger, b, 0).of_tenant, 0);
	/* It has had its time to give it back. */
	assert_true(gpd_ledger_recall(ledger, a, true));
	assert_int_equal(gpd_ledger_reclaimable(ledger, a, 0).of_tenant, 20 + 10);
	b->recalled_ns -= GPD_RECALL_NS;
	assert_int_equal(gpd_ledger_reclaimable(ledger, a, 0).of_tenant, 0);
}

TEST(what_a_session_is_refused_its_tenant_keeps)
{
	struct gpd_ledger_session *a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10);

	a->devices[0].memory_max = 50;
	assert_false(gpd_ledger_charge(ledger, a, 0, 51));
	assert_int_equal(tenant_line()->memory, 0);
	assert_int_equal(gpd_ledger_headroom(ledger, a, 0, 0).left, 50);
}

TEST(a_lowered_quota_takes_nothing_away)
{
	struct gpd_ledger_session *a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10);

	assert_true(gpd_ledger_charge(ledger, a, 0, 80));
	tenant_line()->memory_max = 50;
	assert_int_equal(gpd_ledger_headroom(ledger, a, 0, 0).left, 0);
	assert_false(gpd_ledger_charge(ledger, a, 0, 1));
	gpd_ledger_uncharge(ledger, a, 0, 40);
	assert_true(gpd_ledger_charge(ledger, a, 0, 10));
}

/* Of the machine's memory, and on the same path as a device's. */
TEST(device_code_counts_as_device_memory_does)
{
	struct gpd_ledger_session *a, *b, *other;
	struct gpd_ledger_tenant_line *line =
		&ledger->tenants[GPD_TENANT_DEFAULT].devices[GPD_LEDGER_CODE];

	gpd_ledger_add_tenant(ledger, 1, "other");
	a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10);
	b = gpd_ledger_open(ledger, 2, GPD_TENANT_DEFAULT, 11);
	other = gpd_ledger_open(ledger, 3, 1, 11);
	line->memory_max = 1000;
	assert_true(gpd_ledger_charge(ledger, a, GPD_LEDGER_CODE, 600));
	assert_false(gpd_ledger_charge(ledger, b, GPD_LEDGER_CODE, 401));
	assert_true(gpd_ledger_charge(ledger, b, GPD_LEDGER_CODE, 400));
	/* Another tenant's part is its own, and no session has more than one may. */
	assert_true(gpd_ledger_charge(ledger, other, GPD_LEDGER_CODE, GPD_CODE_SESSION_MAX));
	assert_false(gpd_ledger_charge(ledger, other, GPD_LEDGER_CODE, 1));
	assert_int_equal(tenant_line()->memory, 0);

	/* Its worker was killed. */
	gpd_ledger_close_worker(ledger, 11);
	assert_int_equal(line->memory, 600);
	gpd_ledger_close(ledger, a);
	assert_int_equal(line->memory, 0);
}

TEST(an_ended_session_gives_back_its_memory_and_leaves_its_counts)
{
	struct gpd_ledger_session *a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10);
	struct gpd_ledger_session *b = gpd_ledger_open(ledger, 2, GPD_TENANT_DEFAULT, 10);
	const struct gpd_ledger_tenant *tenant = &ledger->tenants[GPD_TENANT_DEFAULT];

	assert_true(gpd_ledger_charge(ledger, a, 0, 70));
	assert_true(gpd_ledger_charge(ledger, b, 0, 5));
	gpd_ledger_count(&a->counts.launches, 3);
	a->devices[0].gpu_ns = 9;
	gpd_ledger_close(ledger, a);
	assert_null(gpd_ledger_find(ledger, 1));
	assert_ptr_equal(gpd_ledger_find(ledger, 2), b);
	assert_int_equal(tenant_line()->memory, 5);
	assert_int_equal(tenant->ended.launches, 3);
	assert_int_equal(tenant->devices[0].gpu_ns, 9);
	assert_int_equal(tenant->sessions, 1);
	assert_int_equal(tenant->sessions_total, 2);
	/* Its place is used again, and knows nothing of it. */
	assert_ptr_equal(gpd_ledger_open(ledger, 3, GPD_TENANT_DEFAULT, 10), a);
	assert_int_equal(a->counts.launches, 0);
	assert_int_equal(a->devices[0].memory_max, GPD_NO_LIMIT);
}

TEST(the_sessions_of_a_dead_worker_are_closed_and_no_others)
{
	int status, parts[3];
	pid_t worker;

	for (int i = 0; i < 3; i++)
		parts[i] = gpd_ledger_share(
			ledger, gpd_ledger_open(ledger, (uint64_t)i + 1, GPD_TENANT_DEFAULT, 77));
	worker = fork();
	assert_true(worker >= 0);
	if (worker == 0) {
		struct gpd_ledger *mine = gpd_ledger_attach(ledger_fd, NULL);

		for (uint32_t i = 0; i < 3; i++) {
			if (!gpd_ledger_attach_session(mine, i, parts[i]) ||
			    !gpd_ledger_charge(mine, &mine->sessions[i], 0, 10))
				_exit(1);
		}
		/* As if it was killed between two steps. */
		mine->tenants[0].devices[0].memory += 3;
		_exit(0);
	}
	assert_int_equal(waitpid(worker, &status, 0), worker);
	assert_int_equal(status, 0);
	for (int i = 0; i < 3; i++)
		(void)close(parts[i]);
	assert_int_equal(tenant_line()->memory, 33);
	assert_null(gpd_ledger_next(ledger, NULL, 78));
	assert_non_null(gpd_ledger_open(ledger, 4, GPD_TENANT_DEFAULT, 78));
	assert_non_null(gpd_ledger_next(ledger, NULL, 77));
	gpd_ledger_close_worker(ledger, 77);
	assert_null(gpd_ledger_next(ledger, NULL, 77));
	assert_non_null(gpd_ledger_next(ledger, NULL, 78));
	assert_int_equal(ledger->tenants[0].sessions, 1);
	assert_non_null(gpd_ledger_find(ledger, 4));
	gpd_ledger_close_worker(ledger, 78);
	assert_int_equal(tenant_line()->memory, 0);
}

static void *
take_and_give(void *arg)
{
	struct gpd_ledger_session *session = arg;

	for (int i = 0; i < ROUNDS; i++) {
		if (!gpd_ledger_charge(ledger, session, 0, 40))
			continue;
		if (tenant_line()->memory > 100)
			return arg;
		gpd_ledger_uncharge(ledger, session, 0, 40);
	}
	return NULL;
}

TEST(at_no_time_is_more_taken_than_there_is)
{
	pthread_t threads[THREADS];
	void *bad;

	tenant_line()->memory_max = 100;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, take_and_give,
						gpd_ledger_open(ledger, 1 + (uint64_t)i, 0, 1)),
				 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &bad), 0);
		assert_null(bad);
	}
	assert_int_equal(tenant_line()->memory, 0);
}

TEST(a_limit_of_bandwidth_is_shared_in_the_order_of_asking)
{
	struct gpd_ledger_session *a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10);
	struct gpd_ledger_session *b = gpd_ledger_open(ledger, 2, GPD_TENANT_DEFAULT, 11);
	struct gpd_ledger_tenant *tenant = &ledger->tenants[GPD_TENANT_DEFAULT];
	const uint64_t second = 1000000000;

	/* Without a limit no session waits. */
	assert_int_equal(gpd_ledger_link_acquire(ledger, a, UINT64_MAX / 2, 5 * second).start_ns,
			 0);
	tenant->bandwidth_max = 1000;
	assert_int_equal(gpd_ledger_link_acquire(ledger, a, 500, 5 * second).start_ns, 5 * second);
	assert_int_equal(gpd_ledger_link_acquire(ledger, b, 1000, 5 * second).start_ns,
			 5 * second + second / 2);
	assert_int_equal(gpd_ledger_link_acquire(ledger, a, 1, 5 * second).start_ns,
			 6 * second + second / 2);
	/* Unused link time does not accumulate. */
	assert_int_equal(gpd_ledger_link_acquire(ledger, a, 100, 60 * second).start_ns,
			 60 * second);
	assert_int_equal(gpd_ledger_link_acquire(ledger, a, 100, 60 * second).start_ns,
			 60 * second + second / 10);
}

TEST(bytes_that_are_announced_are_charged_by_turns)
{
	struct gpd_ledger_tenant *tenant = &ledger->tenants[GPD_TENANT_DEFAULT];
	struct gpd_ledger_session *a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10);
	struct gpd_ledger_link_slot turn = gpd_ledger_link_acquire(ledger, a, UINT32_MAX, 1);

	assert_int_equal(turn.bytes, UINT32_MAX);
	gpd_ledger_set_bandwidth(tenant, 10000000);
	turn = gpd_ledger_link_acquire(ledger, a, UINT32_MAX, 1);
	assert_int_equal(turn.bytes, 500000);
	assert_int_equal(turn.start_ns, 1);
	assert_int_equal(turn.cost_ns, GPD_LEDGER_LINK_SLOT_NS);
	assert_int_equal(tenant->link_free_ns, 1 + GPD_LEDGER_LINK_SLOT_NS);
	assert_int_equal(gpd_ledger_link_acquire(ledger, a, 7, 1).bytes, 7);
	/* However small or large the limit is. */
	gpd_ledger_set_bandwidth(tenant, 64 << 10);
	turn = gpd_ledger_link_acquire(ledger, a, UINT32_MAX, 1);
	assert_int_equal(turn.bytes, 4096);
	assert_int_equal(turn.cost_ns, 62500000);
	gpd_ledger_set_bandwidth(tenant, (uint64_t)100 << 30);
	assert_int_equal(gpd_ledger_link_acquire(ledger, a, UINT32_MAX, 1).bytes, 1 << 20);
}

TEST(a_turn_that_is_not_waited_for_is_given_back)
{
	struct gpd_ledger_tenant *tenant = &ledger->tenants[GPD_TENANT_DEFAULT];
	struct gpd_ledger_session *a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10);
	struct gpd_ledger_session *b = gpd_ledger_open(ledger, 2, GPD_TENANT_DEFAULT, 11);
	const uint64_t second = 1000000000, now = 5 * second;
	struct gpd_ledger_link_slot turn;

	tenant->bandwidth_max = 1000;
	(void)gpd_ledger_link_acquire(ledger, a, 1000, now);
	turn = gpd_ledger_link_acquire(ledger, b, 2000, now);
	assert_int_equal(turn.start_ns, now + second);
	assert_int_equal(b->link_ns, 2 * second);
	/* Another session has queued since, and its link time stays reserved. */
	assert_int_equal(gpd_ledger_link_acquire(ledger, a, 500, now).start_ns, now + 3 * second);
	gpd_ledger_link_release(ledger, b, &turn, now + 1);
	assert_int_equal(b->link_ns, 0);
	turn = gpd_ledger_link_acquire(ledger, b, 1000, now);
	assert_int_equal(turn.start_ns, now + second + second / 2);
	/* Whose time has come has had it. */
	gpd_ledger_link_release(ledger, b, &turn, turn.start_ns);
	assert_int_equal(b->link_ns, 0);
	assert_int_equal(tenant->link_free_ns, now + 2 * second + second / 2);
}

TEST(what_a_killed_worker_waited_for_on_the_link_is_given_back)
{
	struct gpd_ledger_tenant *tenant = &ledger->tenants[GPD_TENANT_DEFAULT];
	struct gpd_ledger_session *a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10);
	struct gpd_ledger_session *b = gpd_ledger_open(ledger, 2, GPD_TENANT_DEFAULT, 11);
	const uint64_t second = 1000000000, now = 5 * second;

	tenant->bandwidth_max = 1000;
	for (int i = 0; i < 10; i++)
		(void)gpd_ledger_link_acquire(ledger, a, 1000, now);
	(void)gpd_ledger_link_acquire(ledger, b, 1000, now);
	gpd_ledger_close_worker(ledger, 10);
	/* What was on its way then is lost. */
	assert_int_equal(gpd_ledger_link_acquire(ledger, b, 1, now).start_ns, now + 2 * second);
}

TEST(another_limit_forgets_what_was_asked_for_under_the_old_one)
{
	struct gpd_ledger_tenant *tenant = &ledger->tenants[GPD_TENANT_DEFAULT];
	struct gpd_ledger_session *a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10);
	const uint64_t second = 1000000000, now = 5 * second;
	struct gpd_ledger_link_slot turn;

	gpd_ledger_set_bandwidth(tenant, 1000);
	(void)gpd_ledger_link_acquire(ledger, a, 1000, now);
	turn = gpd_ledger_link_acquire(ledger, a, 1000, now);
	gpd_ledger_set_bandwidth(tenant, 1000);
	assert_true(gpd_ledger_link_is_current(ledger, a, &turn));
	gpd_ledger_set_bandwidth(tenant, 2000);
	assert_false(gpd_ledger_link_is_current(ledger, a, &turn));
	assert_int_equal(gpd_ledger_link_acquire(ledger, a, 2000, now).start_ns, now);
	/* Nor is anything given back of it. */
	gpd_ledger_link_release(ledger, a, &turn, now);
	assert_int_equal(tenant->link_free_ns, now + second);
	assert_int_equal(a->link_ns, 0);
}

TEST(all_lines_can_be_taken_and_no_more)
{
	for (uint64_t i = 1; i <= GPD_LEDGER_SESSIONS; i++)
		assert_non_null(gpd_ledger_open(ledger, i, GPD_TENANT_DEFAULT, 1));
	assert_null(gpd_ledger_open(ledger, 9999, GPD_TENANT_DEFAULT, 1));
	assert_int_equal(gpd_ledger_index(ledger, gpd_ledger_find(ledger, GPD_LEDGER_SESSIONS)),
			 GPD_LEDGER_SESSIONS - 1);
}

static struct gpd_ledger_session *hoarder;

/* Sometimes within the session's own part, sometimes beyond. */
static void *
hold_and_let_go(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t bytes = GPD_HOST_MIN / 8 * (uint64_t)(1 + i % 5);

		if (gpd_ledger_charge_host(ledger, hoarder, bytes))
			gpd_ledger_uncharge_host(ledger, hoarder, bytes);
		assert_true(tenant_host() <= GPD_HOST_MIN);
	}
	return arg;
}

TEST(what_sessions_hold_beyond_their_parts_is_limited)
{
	struct gpd_ledger_session *a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10);
	struct gpd_ledger_session *b = gpd_ledger_open(ledger, 2, GPD_TENANT_DEFAULT, 11);
	pthread_t threads[THREADS];

	ledger->host_max = 2 * GPD_HOST_MIN;
	assert_true(gpd_ledger_charge_host(ledger, a, 2 * GPD_HOST_MIN));
	assert_false(gpd_ledger_charge_host(ledger, a, 1));
	assert_true(gpd_ledger_charge_host(ledger, b, GPD_HOST_MIN));
	assert_false(gpd_ledger_charge_host(ledger, b, 1));
	gpd_ledger_uncharge_host(ledger, b, 1);
	assert_true(gpd_ledger_charge_host(ledger, b, 1));
	/* Its worker is killed. */
	gpd_ledger_close_worker(ledger, 10);
	assert_int_equal(tenant_host(), 0);
	hoarder = b;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hold_and_let_go, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	assert_int_equal(b->host, GPD_HOST_MIN);
	assert_int_equal(tenant_host(), 0);
}

TEST(what_a_session_may_send_behind_host_functions_is_given_out_once)
{
	struct gpd_ledger_session *a, *b;

	ledger->host_max = 2 * (GP_DEFERRED_QUEUE_MAX - GPD_DEFERRED_QUEUE_MIN);
	a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10);
	b = gpd_ledger_open(ledger, 2, GPD_TENANT_DEFAULT, 10);
	assert_int_equal(a->deferred_max, GP_DEFERRED_QUEUE_MAX);
	assert_int_equal(b->deferred_max, GPD_DEFERRED_QUEUE_MIN);
	gpd_ledger_close(ledger, a);
	b = gpd_ledger_open(ledger, 3, GPD_TENANT_DEFAULT, 10);
	assert_int_equal(b->deferred_max, GP_DEFERRED_QUEUE_MAX);
}

TEST(another_file_is_no_ledger)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	assert_null(gpd_ledger_attach(fd, NULL));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

TEST(an_ended_session_counts_until_its_line_is_closed)
{
	struct gpd_ledger_session *a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10);
	struct gpd_ledger_session *b = gpd_ledger_open(ledger, 2, GPD_TENANT_DEFAULT, 11);
	struct gpd_ledger_session *c = gpd_ledger_open(ledger, 3, GPD_TENANT_DEFAULT, 11);

	assert_false(gpd_ledger_has_closing(ledger, a));
	gpd_ledger_set_closing(ledger, b);
	gpd_ledger_set_closing(ledger, b);
	assert_true(gpd_ledger_has_closing(ledger, a));
	assert_false(gpd_ledger_has_closing(ledger, b)); /* no other one */
	gpd_ledger_set_closing(ledger, c);
	assert_true(gpd_ledger_has_closing(ledger, b));
	gpd_ledger_close_worker(ledger, 11); /* killed */
	assert_false(gpd_ledger_has_closing(ledger, a));
}

/* Writes every byte that a worker can map for writing from a descriptor that it has. */
static void
overwrite_file(int fd)
{
	char path[32];
	struct stat status;
	uint8_t *bytes = MAP_FAILED;
	int again;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, O_RDWR | O_CLOEXEC);
	if (again < 0 || fstat(again, &status))
		_exit(3);
	/* The file of a tenant is sparse. */
	for (off_t at = 0; at < status.st_size; at += GPD_LEDGER_PAGE) {
		bytes = mmap(NULL, GPD_LEDGER_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, again, at);
		if (bytes == MAP_FAILED)
			break;
		memset(bytes, 0xff, GPD_LEDGER_PAGE);
		(void)munmap(bytes, GPD_LEDGER_PAGE);
	}
	if (pwrite(again, path, sizeof(path), 0) < 0 && bytes != MAP_FAILED)
		_exit(4);
	(void)ftruncate(again, 0);
}

/* A worker that a client has taken over, with the session at this index. */
static void
be_hostile(int common_fd, int part_fd, uint32_t entry)
{
	int common = dup(common_fd), part = dup(part_fd);
	struct gpd_ledger *mine;

	/* After exec() a worker has neither the supervisor's mapping nor its descriptors. */
	for (int i = 0; i < GPD_LEDGER_TENANTS; i++) {
		if (ledger->tenants[i].identity)
			(void)close(ledger->tenants[i].fd);
	}
	(void)munmap(ledger, sizeof(*ledger));
	mine = gpd_ledger_attach(common_fd, NULL);
	if (!mine || !gpd_ledger_attach_session(mine, entry, part_fd))
		_exit(1);
	for (char *at = (char *)mine; at < (char *)(mine + 1); at += GPD_LEDGER_PAGE) {
		if (mprotect(at, GPD_LEDGER_PAGE, PROT_READ | PROT_WRITE) == 0)
			memset(at, 0xff, GPD_LEDGER_PAGE);
	}
	if (mine->sessions[entry].host != UINT64_MAX || mine->sessions[entry].id != 5)
		_exit(2);
	overwrite_file(common);
	overwrite_file(part);
	_exit(0);
}

TEST(a_worker_that_overwrites_all_it_can_write_leaves_other_tenants_unchanged)
{
	struct gpd_ledger *before = malloc(sizeof(*before));
	struct gpd_ledger_session *victim, *hostile;
	size_t own_tenant, own_session;
	int part, status;
	pid_t worker;

	assert_true(gpd_ledger_add_tenant(ledger, 1, "victim"));
	assert_true(gpd_ledger_add_tenant(ledger, 2, "hostile"));
	victim = gpd_ledger_open(ledger, 4, 1, 10);
	hostile = gpd_ledger_open(ledger, 5, 2, 11);
	assert_true(gpd_ledger_charge(ledger, victim, 0, 70));
	assert_true(gpd_ledger_charge(ledger, hostile, 0, 30));
	part = gpd_ledger_share(ledger, hostile);
	memcpy(before, ledger, sizeof(*before));
	worker = fork();
	assert_true(worker >= 0);
	if (worker == 0)
		be_hostile(dup(ledger_fd), part, gpd_ledger_index(ledger, hostile));
	assert_int_equal(waitpid(worker, &status, 0), worker);
	assert_int_equal(status, 0);
	(void)close(part);
	/* It has overwritten its own parts only. */
	assert_int_equal(hostile->host, UINT64_MAX);
	assert_int_equal(ledger->tenants[2].devices[0].memory, UINT64_MAX);
	own_tenant = (size_t)((char *)&ledger->tenants[2].bandwidth_max - (char *)ledger);
	own_session = (size_t)((char *)&hostile->logged - (char *)ledger);
	memcpy((char *)before + own_tenant, (char *)ledger + own_tenant,
	       (size_t)((char *)&ledger->tenants[3] - (char *)ledger) - own_tenant);
	memcpy((char *)before + own_session, (char *)ledger + own_session,
	       (size_t)((char *)(hostile + 1) - (char *)ledger) - own_session);
	assert_memory_equal(before, ledger, sizeof(*before));
	free(before);
	/* The supervisor goes on, and the next tenant of the entry starts with zeros. */
	gpd_ledger_close(ledger, hostile);
	assert_true(gpd_ledger_add_tenant(ledger, 2, "next"));
	assert_int_equal(ledger->tenants[2].devices[0].memory, 0);
	hostile = gpd_ledger_open(ledger, 6, 2, 12);
	assert_int_equal(hostile->host, 0);
	assert_true(gpd_ledger_charge(ledger, hostile, 0, 30));
}

/* As the supervisor that answers a worker's queries. */
static struct gpd_ledger_session *querying;
static int queries;

static bool
answer_at_once(uint64_t session, const struct gpd_ledger_query *query)
{
	assert_int_equal(session, querying->id);
	queries++;
	gpd_ledger_answer(ledger, querying, query);
	return true;
}

TEST(a_worker_queries_the_supervisor_about_other_sessions)
{
	struct gpd_ledger_session *a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10);
	struct gpd_ledger *mine = gpd_ledger_attach(dup(ledger_fd), answer_at_once);
	struct gpd_ledger_session *own = &mine->sessions[0], *b;
	struct gpd_ledger_line line;

	querying = a;
	assert_true(gpd_ledger_attach_session(mine, 0, gpd_ledger_share(ledger, a)));
	/* The only session has no others to query about. */
	assert_false(gpd_ledger_has_closing(mine, own));
	assert_int_equal(queries, 0);
	b = gpd_ledger_open(ledger, 2, GPD_TENANT_DEFAULT, 11);
	assert_true(gpd_ledger_charge(ledger, b, 0, 50));
	b->devices[0].cached = 40;
	assert_int_equal(gpd_ledger_reclaimable(mine, own, 0).of_device, 0);
	b->cache_state = GPD_CACHE_FILLED;
	assert_int_equal(gpd_ledger_reclaimable(mine, own, 0).of_device, 40);
	assert_int_equal(gpd_ledger_reclaimable(mine, own, 0).of_tenant, 40);
	assert_int_equal(gpd_ledger_reclaimable(mine, own, GPD_LEDGER_LINES).of_device, 0);
	assert_true(gpd_ledger_recall(mine, own, false));
	assert_int_equal(b->cache_state, GPD_CACHE_RECALLED);
	assert_false(gpd_ledger_recall(mine, own, false));
	assert_true(gpd_ledger_has_pending_recall(mine, own, true));
	assert_false(gpd_ledger_has_pending_frees(mine, own, false, 0));
	(void)gpd_ledger_free_begin(b);
	assert_true(gpd_ledger_has_pending_frees(mine, own, false, 0));
	gpd_ledger_set_closing(ledger, b);
	assert_true(gpd_ledger_has_closing(mine, own));
	/* The session of another worker has no mapping here. */
	assert_int_equal(mine->sessions[1].devices[0].memory, 0);
	gpd_ledger_read_line(mine, &mine->sessions[1], 0, &line);
	assert_int_equal(line.memory, 50);
	/* The common limit of host memory is granted by the supervisor. */
	gpd_ledger_set_host_max(ledger, 2 * GPD_HOST_MIN);
	queries = 0;
	assert_true(gpd_ledger_charge_host(mine, own, GPD_HOST_MIN));
	assert_int_equal(queries, 0);
	assert_true(gpd_ledger_charge_host(mine, own, 1));
	assert_true(gpd_ledger_charge_host(mine, own, 1));
	assert_int_equal(queries, 1);
	assert_false(gpd_ledger_charge_host(mine, own, GPD_HOST_MIN));
	assert_int_equal(queries, 2);
	assert_int_equal(tenant_host(), 2);
	gpd_ledger_destroy(mine);
}

TEST(host_memory_that_a_tenant_no_longer_uses_is_granted_to_others)
{
	struct gpd_ledger_session *a = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 10), *b;

	assert_true(gpd_ledger_add_tenant(ledger, 1, "other"));
	b = gpd_ledger_open(ledger, 2, 1, 11);
	gpd_ledger_set_host_max(ledger, 2 * GPD_HOST_MIN);
	assert_true(gpd_ledger_charge_host(ledger, a, 2 * GPD_HOST_MIN));
	assert_true(gpd_ledger_charge_host(ledger, b, GPD_HOST_MIN));
	assert_false(gpd_ledger_charge_host(ledger, b, 1));
	gpd_ledger_uncharge_host(ledger, a, 10);
	assert_true(gpd_ledger_charge_host(ledger, b, 10));
	assert_false(gpd_ledger_charge_host(ledger, b, 1));
	assert_false(gpd_ledger_charge_host(ledger, a, 1));
	/* Lowering the limit takes nothing back. */
	gpd_ledger_set_host_max(ledger, GPD_HOST_MIN);
	assert_int_equal(tenant_host(), GPD_HOST_MIN - 10);
	assert_false(gpd_ledger_charge_host(ledger, b, 1));
}

UNIT_TEST_MAIN(NULL, NULL)
