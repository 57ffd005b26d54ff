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

/* owner: the group of the client's tenant. own: its session gets a worker of its own. */
static struct gpd_waiter
waiter(uint64_t number, int device, uint32_t owner, bool own)
{
	return (struct gpd_waiter){
		.number = number,
		.tenant = owner,
		.limit = GPD_QUEUE_FOR_PLACE,
		.device = device,
		.group = own ? GPD_QUEUE_OWN_WORKER : owner,
		.owner = owner,
	};
}

static unsigned int
add_for_place(struct gpd_queue *queue, uint64_t number, int device, uint32_t owner, bool own)
{
	const struct gpd_waiter added = waiter(number, device, owner, own);

	return gpd_queue_add(queue, &added, 0);
}

static unsigned int
count_ahead(struct gpd_queue *queue, uint64_t number, int device, uint32_t owner, bool own)
{
	const struct gpd_waiter client = waiter(number, device, owner, own);

	return gpd_queue_count_ahead_for_place(queue, &client, 0);
}

/* arg: the numbers of places by group, on each device. */
static uint32_t
get_places(const void *arg, uint32_t group, int device)
{
	return ((const uint32_t *)arg)[group];
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
	assert_int_equal(add_for_place(&queue, 11, 0, 5, false), 1);
	assert_int_equal(add_for_place(&queue, 12, 0, 5, false), 1);
	assert_int_equal(add_for_place(&queue, 13, 1, 6, false), 1);
	assert_int_equal(add_for_place(&queue, 14, 0, 5, true), 2);
	assert_int_equal(add_for_place(&queue, 15, 0, 5, true), 3);
	assert_int_equal(count_ahead(&queue, 0, 0, 5, true), 3);
	assert_int_equal(count_ahead(&queue, 0, 0, 5, false), 0);
	assert_int_equal(count_ahead(&queue, 15, 0, 5, true), 2);
	assert_int_equal(count_ahead(&queue, 0, 1, 8, false), 1);
	/* Clients that wait for other limits do not count them. */
	assert_int_equal(gpd_queue_count_ahead_for_daemon(&queue, 0, 0), 0);
	assert_int_equal(gpd_queue_count_ahead_in_tenant(&queue, 0, 5, 0), 0);
	gpd_queue_remove(&queue, 14);
	assert_int_equal(count_ahead(&queue, 15, 0, 5, true), 1);
}

UNIT_TEST(one_client_of_each_other_tenant_is_before_a_client)
{
	static struct gpd_queue queue;

	queue = (struct gpd_queue){ 0 };
	for (uint64_t i = 1; i <= GPD_QUEUE_TENANT_MAX; i++)
		assert_int_equal(add_for_place(&queue, i, 0, 5, true), i);
	assert_int_equal(add_for_place(&queue, 100, 0, 6, true), 2);
	assert_int_equal(add_for_place(&queue, 101, 0, 7, false), 3);
	assert_int_equal(count_ahead(&queue, 0, 0, 8, true), 3);
	/* Within the tenant all count, of others those that have come before. */
	assert_int_equal(count_ahead(&queue, GPD_QUEUE_TENANT_MAX, 0, 5, true),
			 GPD_QUEUE_TENANT_MAX - 1);
	assert_int_equal(count_ahead(&queue, 0, 0, 5, true), GPD_QUEUE_TENANT_MAX + 2);
}

UNIT_TEST(tenants_with_equally_many_places_alternate)
{
	static struct gpd_queue queue;
	const struct gpd_waiter first = waiter(11, 0, 5, true);

	queue = (struct gpd_queue){ 0 };
	assert_int_equal(add_for_place(&queue, 11, 0, 5, true), 1);
	assert_int_equal(add_for_place(&queue, 12, 0, 5, true), 2);
	assert_int_equal(add_for_place(&queue, 13, 0, 6, true), 2);
	gpd_queue_note_served(&queue, &first);
	gpd_queue_remove(&queue, 11);
	assert_int_equal(count_ahead(&queue, 13, 0, 6, true), 0);
	assert_int_equal(count_ahead(&queue, 12, 0, 5, true), 1);
	/* Asking again changes nothing, and those that come later are after both. */
	assert_int_equal(add_for_place(&queue, 12, 0, 5, true), 2);
	assert_int_equal(add_for_place(&queue, 14, 0, 7, true), 3);
}

UNIT_TEST(a_tenant_with_fewer_places_is_first)
{
	static const uint32_t places[GPD_GROUPS] = { [5] = 2, [6] = 1, [7] = 0 };
	static struct gpd_queue queue;

	queue = (struct gpd_queue){ .get_places = get_places, .arg = places };
	assert_int_equal(add_for_place(&queue, 11, 0, 5, true), 1);
	assert_int_equal(add_for_place(&queue, 12, 0, 6, true), 1);
	assert_int_equal(add_for_place(&queue, 13, 0, 7, true), 1);
	assert_int_equal(count_ahead(&queue, 11, 0, 5, true), 2);
	assert_int_equal(count_ahead(&queue, 12, 0, 6, true), 1);
	/* Also a client that is not in the queue. */
	assert_int_equal(count_ahead(&queue, 0, 0, 8, true), 1);
}

UNIT_TEST(a_place_is_not_reserved_for_long_for_clients_that_do_not_return)
{
	static struct gpd_queue queue;
	const struct gpd_waiter first = waiter(11, 0, 5, true);

	queue = (struct gpd_queue){ 0 };
	assert_int_equal(add_for_place(&queue, 11, 0, 5, true), 1);
	assert_int_equal(add_for_place(&queue, 12, 0, 6, true), 2);
	/* The time counts from when a place is free for the group. */
	assert_false(gpd_queue_update_reservation(&queue, 5, 0, false, false, 1));
	assert_false(gpd_queue_update_reservation(&queue, 5, 0, true, false, 90000));
	assert_false(gpd_queue_update_reservation(&queue, 5, 0, true, true, 100000));
	assert_false(gpd_queue_update_reservation(&queue, 5, 0, true, true,
						  99999 + GPD_QUEUE_RESERVE_MS));
	assert_int_equal(count_ahead(&queue, 12, 0, 6, true), 1);
	assert_true(gpd_queue_update_reservation(&queue, 5, 0, true, true,
						 100000 + GPD_QUEUE_RESERVE_MS));
	assert_int_equal(count_ahead(&queue, 12, 0, 6, true), 0);
	assert_false(gpd_queue_has_for_place(&queue, &first));
	/* Other numbers of the tenant do not extend it. */
	assert_int_equal(add_for_place(&queue, 13, 0, 5, true), 2);
	gpd_queue_remove(&queue, 11);
	assert_false(gpd_queue_update_reservation(&queue, 5, 0, true, true,
						  200000 + GPD_QUEUE_RESERVE_MS));
	assert_int_equal(count_ahead(&queue, 0, 0, 6, true), 1);
	assert_int_equal(count_ahead(&queue, 12, 0, 6, true), 0);
	/* Another device, and the next place. */
	assert_int_equal(add_for_place(&queue, 14, 1, 5, true), 1);
	assert_int_equal(count_ahead(&queue, 0, 1, 6, true), 1);
	assert_false(gpd_queue_update_reservation(&queue, 5, 0, false, false, 300000));
	assert_int_equal(count_ahead(&queue, 0, 0, 7, true), 2);
}

UNIT_TEST_MAIN(NULL, NULL)
