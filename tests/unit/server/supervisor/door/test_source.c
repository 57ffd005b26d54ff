/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/door/source.h"
#include "tests/test.h"

#include <stdio.h>
#include <unistd.h>

static int
forget(void **state)
{
	gpd_source_check(INT64_MAX);
	return 0;
}

static void
user_of_this_machine_is_one_address_wherever_he_comes_from(void **state)
{
	static const char *const peers[] = { "tcp://127.0.0.1:1", "tls://127.9.9.9:2",
					     "tcp://[::1]:3", "unix:///run/gpupool.sock" };
	const uid_t alice = 1501, bob = 1502;
	struct gpd_source *first = gpd_source_get(peers[0], &alice);
	struct gpd_source *unknown = gpd_source_get(peers[0], NULL);

	assert_ptr_not_equal(first, unknown);
	for (size_t i = 0; i < sizeof(peers) / sizeof(peers[0]); i++) {
		struct gpd_source *again = gpd_source_get(peers[i], &alice);
		struct gpd_source *other = gpd_source_get(peers[i], &bob);

		assert_ptr_equal(again, first);
		assert_ptr_not_equal(other, first);
		gpd_source_put(again);
		gpd_source_put(other);
	}
	assert_false(first->own);
	gpd_source_put(first);
	gpd_source_put(unknown);
}

static void
address_has_a_number_of_wasted_connections_and_more_with_time(void **state)
{
	const uid_t own = geteuid(), other = own + 1;
	struct gpd_source *one = gpd_source_get("tcp://10.0.0.1:1", NULL);
	struct gpd_source *neighbour = gpd_source_get("tcp://10.0.0.2:1", NULL);
	struct gpd_source *user = gpd_source_get("tcp://127.0.0.1:1", &other);
	struct gpd_source *daemon = gpd_source_get("tcp://127.0.0.1:1", &own);

	for (int i = 0; i < GPD_SOURCE_WASTED; i++) {
		assert_false(gpd_source_is_wasteful(one, 1000));
		gpd_source_count_wasted(one, 1000);
		gpd_source_count_wasted(user, 1000);
		gpd_source_count_wasted(daemon, 1000);
	}
	assert_true(gpd_source_is_wasteful(one, 1000));
	assert_true(gpd_source_is_wasteful(user, 1000));
	assert_false(gpd_source_is_wasteful(daemon, 1000));
	assert_false(gpd_source_is_wasteful(neighbour, 1000));
	/* Those that were closed at once do not make the time longer. */
	gpd_source_count_wasted(one, 1000);
	assert_false(gpd_source_is_wasteful(one, 1000 + GPD_SOURCE_WASTED_MS));
	gpd_source_put(one);
	gpd_source_put(neighbour);
	gpd_source_put(user);
	gpd_source_put(daemon);
	/* It is remembered without a connection. */
	gpd_source_check(1000);
	one = gpd_source_get("tcp://10.0.0.1:1", NULL);
	assert_true(gpd_source_is_wasteful(one, 1000));
	gpd_source_put(one);
	gpd_source_check(1000 + GPD_SOURCE_WASTED * GPD_SOURCE_WASTED_MS);
	one = gpd_source_get("tcp://10.0.0.1:1", NULL);
	assert_false(gpd_source_is_wasteful(one, 1000));
	gpd_source_put(one);
}

static void
addresses_that_share_a_place_are_not_wasteful(void **state)
{
	struct gpd_source *sources[GPD_SOURCES_MAX + 1];
	char name[40];

	for (int i = 0; i <= GPD_SOURCES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "tcp://10.1.%d.%d:1", i / 250, i % 250);
		sources[i] = gpd_source_get(name, NULL);
	}
	for (int i = 0; i < GPD_SOURCE_WASTED; i++)
		gpd_source_count_wasted(sources[GPD_SOURCES_MAX], 1000);
	assert_false(gpd_source_is_wasteful(sources[GPD_SOURCES_MAX], 1000));
	for (int i = 0; i <= GPD_SOURCES_MAX; i++)
		gpd_source_put(sources[i]);
}

static void
failures_are_answered_at_once_until_there_were_many_and_again_after_a_while(void **state)
{
	struct gpd_source *one = gpd_source_get("tcp://10.0.0.1:1", NULL);
	struct gpd_source *same = gpd_source_get("tls://10.0.0.1:2", NULL);
	struct gpd_source *other = gpd_source_get("tcp://10.0.0.2:1", NULL);

	assert_ptr_equal(one, same);
	assert_ptr_not_equal(one, other);
	for (int i = 0; i < GPD_SOURCE_FAILURES; i++)
		assert_int_equal(gpd_source_failed(i % 2 ? one : same, 1000), 0);
	assert_int_equal(gpd_source_failed(one, 1000), GPD_SOURCE_DELAY_MS);
	assert_int_equal(gpd_source_failed(one, 999 + GPD_SOURCE_FAILURE_MS), GPD_SOURCE_DELAY_MS);
	assert_int_equal(gpd_source_failed(one, 1000 + GPD_SOURCE_FAILURE_MS), 0);
	assert_int_equal(gpd_source_failed(one, 1000 + GPD_SOURCE_FAILURE_MS), GPD_SOURCE_DELAY_MS);
	assert_int_equal(gpd_source_failed(other, 1000), 0);
	gpd_source_put(one);
	gpd_source_put(same);
	gpd_source_put(other);
}

static void
address_is_remembered_until_all_it_has_used_has_come_back(void **state)
{
	struct gpd_source *source = gpd_source_get("tcp://10.0.0.1:1", NULL);
	const int64_t all_back = GPD_SOURCE_FAILURES * (int64_t)GPD_SOURCE_FAILURE_MS;

	source->last_start = 7;
	for (int i = 0; i < GPD_SOURCE_FAILURES; i++)
		(void)gpd_source_failed(source, 0);
	gpd_source_check(all_back);
	assert_int_equal(source->last_start, 7);
	gpd_source_put(source);
	/* Leaving and coming again gives nothing back. */
	gpd_source_check(all_back - 1);
	source = gpd_source_get("tcp://10.0.0.1:2", NULL);
	assert_int_equal(source->last_start, 7);
	assert_int_equal(gpd_source_failed(source, 0), GPD_SOURCE_DELAY_MS);
	gpd_source_put(source);
	gpd_source_check(all_back);
	source = gpd_source_get("tcp://10.0.0.1:3", NULL);
	assert_int_equal(source->last_start, 0);
	gpd_source_put(source);
}

static void
addresses_beyond_the_table_share_one_place(void **state)
{
	struct gpd_source *sources[GPD_SOURCES_MAX + 2];
	char peer[64];

	for (int i = 0; i < GPD_SOURCES_MAX + 2; i++) {
		(void)snprintf(peer, sizeof(peer), "tcp://10.0.%d.%d:1", i / 256, i % 256);
		sources[i] = gpd_source_get(peer, NULL);
	}
	assert_ptr_not_equal(sources[GPD_SOURCES_MAX - 1], sources[GPD_SOURCES_MAX]);
	assert_ptr_equal(sources[GPD_SOURCES_MAX], sources[GPD_SOURCES_MAX + 1]);
	/* One that was there before still has its own. */
	assert_ptr_equal(gpd_source_get("tcp://10.0.0.7:9", NULL), sources[7]);
	gpd_source_put(sources[7]);
	/* Root and the daemon's own user are not crowded out of it. */
	for (int i = 0; i < 2; i++) {
		const uid_t own = i ? geteuid() : 0, other = geteuid() + 1;
		struct gpd_source *source = gpd_source_get("tcp://127.0.0.1:1", &own);
		struct gpd_source *stranger = gpd_source_get("tcp://127.0.0.1:1", &other);

		assert_true(source->own);
		assert_ptr_not_equal(source, sources[GPD_SOURCES_MAX]);
		assert_ptr_equal(stranger, sources[GPD_SOURCES_MAX]);
		gpd_source_put(source);
		gpd_source_put(stranger);
	}
	for (int i = 0; i < GPD_SOURCES_MAX + 2; i++)
		gpd_source_put(sources[i]);
	gpd_source_check(0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(user_of_this_machine_is_one_address_wherever_he_comes_from),
		cmocka_unit_test_teardown(
			address_has_a_number_of_wasted_connections_and_more_with_time, forget),
		cmocka_unit_test_teardown(addresses_that_share_a_place_are_not_wasteful, forget),
		cmocka_unit_test_teardown(
			failures_are_answered_at_once_until_there_were_many_and_again_after_a_while,
			forget),
		cmocka_unit_test_teardown(address_is_remembered_until_all_it_has_used_has_come_back,
					  forget),
		cmocka_unit_test_teardown(addresses_beyond_the_table_share_one_place, forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
