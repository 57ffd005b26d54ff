/* SPDX-License-Identifier: Apache-2.0 */
/* The admission queue: which clients wait for a session slot, and in which order they get one. */
#include "server/supervisor/tenancy/queue.h"
#include "tests/test.h"

static unsigned int
add(struct gpd_queue *queue, uint64_t number, uint32_t tenant, bool for_daemon, int64_t now_ms)
{
	const struct gpd_waiter waiter = {
		.number = number,
		.tenant = tenant,
		.limit = for_daemon ? GPD_QUEUE_FOR_DAEMON : GPD_QUEUE_FOR_TENANT,
	};

	return gpd_queue_add(queue, &waiter, now_ms);
}

static unsigned int
add_for_place(struct gpd_queue *queue, uint64_t number, int device, uint32_t group)
{
	const struct gpd_waiter waiter = {
		.number = number,
		.tenant = 1,
		.limit = GPD_QUEUE_FOR_PLACE,
		.device = device,
		.group = group,
	};

	return gpd_queue_add(queue, &waiter, 0);
}

UNIT_TEST(who_came_first_is_first)
{
	static struct gpd_queue queue;

	queue = (struct gpd_queue){ 0 };
	assert_int_equal(add(&queue, 11, 1, true, 0), 1);
	assert_int_equal(add(&queue, 12, 2, true, 0), 2);
	assert_int_equal(add(&queue, 13, 1, true, 0), 3);
	/* Asking again changes nothing. */
	assert_int_equal(add(&queue, 12, 2, true, 1), 2);
	assert_int_equal(gpd_queue_count_ahead_for_daemon(&queue, 11, 1), 0);
	assert_int_equal(gpd_queue_count_ahead_for_daemon(&queue, 13, 1), 2);
	/* Clients that are not in the queue, and new ones, come after all others. */
	assert_int_equal(gpd_queue_count_ahead_for_daemon(&queue, 0, 1), 3);
	assert_int_equal(gpd_queue_count_ahead_for_daemon(&queue, 99, 1), 3);
	gpd_queue_remove(&queue, 11);
	gpd_queue_remove(&queue, 11);
	assert_int_equal(add(&queue, 13, 1, true, 1), 2);
}

UNIT_TEST(who_waits_for_its_tenant_is_in_nobody_elses_way)
{
	static struct gpd_queue queue;

	queue = (struct gpd_queue){ 0 };
	assert_int_equal(add(&queue, 11, 1, false, 0), 1);
	assert_int_equal(add(&queue, 12, 1, false, 0), 2);
	assert_int_equal(add(&queue, 13, 2, false, 0), 1);
	assert_int_equal(gpd_queue_count_ahead_for_daemon(&queue, 0, 0), 0);
	assert_int_equal(gpd_queue_count_ahead_in_tenant(&queue, 0, 1, 0), 2);
	assert_int_equal(gpd_queue_count_ahead_in_tenant(&queue, 0, 2, 0), 1);
	assert_int_equal(gpd_queue_count_ahead_in_tenant(&queue, 0, 3, 0), 0);
}

UNIT_TEST(who_does_not_ask_again_is_forgotten)
{
	static struct gpd_queue queue;

	queue = (struct gpd_queue){ 0 };
	assert_int_equal(add(&queue, 11, 1, true, 0), 1);
	assert_int_equal(add(&queue, 12, 1, true, 9000), 2);
	assert_int_equal(add(&queue, 12, 1, true, GPD_QUEUE_EXPIRE_MS), 2);
	assert_int_equal(add(&queue, 12, 1, true, GPD_QUEUE_EXPIRE_MS + 1), 1);
}

UNIT_TEST(a_tenant_has_so_many_lines_and_no_more)
{
	static struct gpd_queue queue;
	unsigned int place = 0;

	queue = (struct gpd_queue){ 0 };
	for (uint64_t i = 1; i <= GPD_QUEUE_TENANT_MAX; i++)
		place = add(&queue, i, 1, true, 0);
	assert_int_equal(place, GPD_QUEUE_TENANT_MAX);
	assert_int_equal(add(&queue, 1000, 1, true, 0), 0);
	assert_int_equal(add(&queue, 1000, 2, true, 0), GPD_QUEUE_TENANT_MAX + 1);
	for (uint64_t i = 2000; i < 2000 + GPD_QUEUE_MAX; i++)
		place = add(&queue, i, (uint32_t)i, true, 0);
	assert_int_equal(place, 0);
	assert_int_equal(queue.count, GPD_QUEUE_MAX);
}

UNIT_TEST(the_length_is_of_those_who_are_there)
{
	static struct gpd_queue queue;

	queue = (struct gpd_queue){ 0 };
	assert_int_equal(add(&queue, 11, 1, true, 0), 1);
	assert_int_equal(add(&queue, 12, 1, false, 9000), 1);
	assert_int_equal(add(&queue, 13, 2, false, 9000), 1);
	assert_int_equal(gpd_queue_length(&queue, GPD_QUEUE_ALL, 9000), 3);
	assert_int_equal(gpd_queue_length(&queue, 1, 9000), 2);
	assert_int_equal(gpd_queue_length(&queue, 3, 9000), 0);
	assert_int_equal(gpd_queue_length(&queue, 1, GPD_QUEUE_EXPIRE_MS + 1), 1);
	assert_true(gpd_queue_has(&queue, 12));
	assert_false(gpd_queue_has(&queue, 14));
	assert_false(gpd_queue_has(&queue, 0));
	gpd_queue_remove(&queue, 12);
	assert_false(gpd_queue_has(&queue, 12));
	assert_int_equal(gpd_queue_length(&queue, 1, 9000), 1);
}

UNIT_TEST(the_clients_of_a_group_need_one_place_together)
{
	static struct gpd_queue queue;

	queue = (struct gpd_queue){ 0 };
	assert_int_equal(add_for_place(&queue, 11, 0, 5), 1);
	assert_int_equal(add_for_place(&queue, 12, 0, 5), 1);
	assert_int_equal(add_for_place(&queue, 13, 1, 6), 1);
	assert_int_equal(add_for_place(&queue, 14, 0, GPD_QUEUE_OWN_WORKER), 2);
	assert_int_equal(add_for_place(&queue, 15, 0, GPD_QUEUE_OWN_WORKER), 3);
	assert_int_equal(add_for_place(&queue, 16, 0, 7), 4);
	assert_int_equal(gpd_queue_count_ahead_for_place(&queue, 0, 0, 8, 0), 4);
	assert_int_equal(gpd_queue_count_ahead_for_place(&queue, 0, 0, 5, 0), 0);
	assert_int_equal(gpd_queue_count_ahead_for_place(&queue, 0, 0, 7, 0), 3);
	assert_int_equal(gpd_queue_count_ahead_for_place(&queue, 0, 1, 8, 0), 1);
	assert_int_equal(gpd_queue_count_ahead_for_place(&queue, 15, 0, GPD_QUEUE_OWN_WORKER, 0),
			 2);
	/* Clients that wait for other limits do not count them. */
	assert_int_equal(gpd_queue_count_ahead_for_daemon(&queue, 0, 0), 0);
	assert_int_equal(gpd_queue_count_ahead_in_tenant(&queue, 0, 1, 0), 0);
	gpd_queue_remove(&queue, 14);
	assert_int_equal(gpd_queue_count_ahead_for_place(&queue, 15, 0, GPD_QUEUE_OWN_WORKER, 0),
			 1);
}

UNIT_TEST_MAIN(NULL, NULL)
