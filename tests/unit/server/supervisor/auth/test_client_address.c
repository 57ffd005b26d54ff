/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/auth/client_address.h"
#include "tests/test.h"

#include <stdio.h>
#include <unistd.h>

static int
forget(void **state)
{
	gpd_client_address_expire(INT64_MAX);
	return 0;
}

UNIT_TEST(user_of_this_machine_is_one_address_wherever_he_comes_from)
{
	static const char *const connection_list[] = { "tcp://127.0.0.1:1", "tls://127.9.9.9:2",
						       "tcp://[::1]:3",
						       "unix:///run/gpupool.sock" };
	const uid_t alice = 1501, bob = 1502;
	struct gpd_client_address *first = gpd_client_address_get(connection_list[0], &alice);
	struct gpd_client_address *unknown = gpd_client_address_get(connection_list[0], NULL);

	assert_ptr_not_equal(first, unknown);
	for (size_t i = 0; i < sizeof(connection_list) / sizeof(connection_list[0]); i++) {
		struct gpd_client_address *again =
			gpd_client_address_get(connection_list[i], &alice);
		struct gpd_client_address *other = gpd_client_address_get(connection_list[i], &bob);

		assert_ptr_equal(again, first);
		assert_ptr_not_equal(other, first);
		gpd_client_address_put(again);
		gpd_client_address_put(other);
	}
	assert_false(first->is_privileged);
	gpd_client_address_put(first);
	gpd_client_address_put(unknown);
}

UNIT_TEST_WITH(address_has_a_number_of_wasted_connections_and_more_with_time, NULL, forget)
{
	const uid_t is_privileged = geteuid(), other = is_privileged + 1;
	struct gpd_client_address *one = gpd_client_address_get("tcp://10.0.0.1:1", NULL);
	struct gpd_client_address *neighbour = gpd_client_address_get("tcp://10.0.0.2:1", NULL);
	struct gpd_client_address *user = gpd_client_address_get("tcp://127.0.0.1:1", &other);
	struct gpd_client_address *daemon =
		gpd_client_address_get("tcp://127.0.0.1:1", &is_privileged);

	for (int i = 0; i < GPD_CLIENT_ADDRESS_WASTED; i++) {
		assert_false(gpd_client_address_is_throttled(one, 1000));
		gpd_client_address_count_wasted(one, 1000);
		gpd_client_address_count_wasted(user, 1000);
		gpd_client_address_count_wasted(daemon, 1000);
	}
	assert_true(gpd_client_address_is_throttled(one, 1000));
	assert_true(gpd_client_address_is_throttled(user, 1000));
	assert_false(gpd_client_address_is_throttled(daemon, 1000));
	assert_false(gpd_client_address_is_throttled(neighbour, 1000));
	/* Those that were closed at once do not make the time longer. */
	gpd_client_address_count_wasted(one, 1000);
	assert_false(gpd_client_address_is_throttled(one, 1000 + GPD_CLIENT_ADDRESS_WASTED_MS));
	gpd_client_address_put(one);
	gpd_client_address_put(neighbour);
	gpd_client_address_put(user);
	gpd_client_address_put(daemon);
	/* It is remembered without a connection. */
	gpd_client_address_expire(1000);
	one = gpd_client_address_get("tcp://10.0.0.1:1", NULL);
	assert_true(gpd_client_address_is_throttled(one, 1000));
	gpd_client_address_put(one);
	gpd_client_address_expire(1000 + GPD_CLIENT_ADDRESS_WASTED * GPD_CLIENT_ADDRESS_WASTED_MS);
	one = gpd_client_address_get("tcp://10.0.0.1:1", NULL);
	assert_false(gpd_client_address_is_throttled(one, 1000));
	gpd_client_address_put(one);
}

UNIT_TEST_WITH(addresses_that_share_a_place_are_not_wasteful, NULL, forget)
{
	struct gpd_client_address *sources[GPD_CLIENT_ADDRESSES_MAX + 1];
	char name[40];

	for (int i = 0; i <= GPD_CLIENT_ADDRESSES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "tcp://10.1.%d.%d:1", i / 250, i % 250);
		sources[i] = gpd_client_address_get(name, NULL);
	}
	for (int i = 0; i < GPD_CLIENT_ADDRESS_WASTED; i++)
		gpd_client_address_count_wasted(sources[GPD_CLIENT_ADDRESSES_MAX], 1000);
	assert_false(gpd_client_address_is_throttled(sources[GPD_CLIENT_ADDRESSES_MAX], 1000));
	for (int i = 0; i <= GPD_CLIENT_ADDRESSES_MAX; i++)
		gpd_client_address_put(sources[i]);
}

UNIT_TEST_WITH(failures_are_answered_at_once_until_there_were_many_and_again_after_a_while, NULL,
	       forget)
{
	struct gpd_client_address *one = gpd_client_address_get("tcp://10.0.0.1:1", NULL);
	struct gpd_client_address *same = gpd_client_address_get("tls://10.0.0.1:2", NULL);
	struct gpd_client_address *other = gpd_client_address_get("tcp://10.0.0.2:1", NULL);

	assert_ptr_equal(one, same);
	assert_ptr_not_equal(one, other);
	for (int i = 0; i < GPD_CLIENT_ADDRESS_FAILURES; i++)
		assert_int_equal(gpd_client_address_login_failed(i % 2 ? one : same, 1000), 0);
	assert_int_equal(gpd_client_address_login_failed(one, 1000), GPD_CLIENT_ADDRESS_DELAY_MS);
	assert_int_equal(gpd_client_address_login_failed(one, 999 + GPD_CLIENT_ADDRESS_FAILURE_MS),
			 GPD_CLIENT_ADDRESS_DELAY_MS);
	assert_int_equal(gpd_client_address_login_failed(one, 1000 + GPD_CLIENT_ADDRESS_FAILURE_MS),
			 0);
	assert_int_equal(gpd_client_address_login_failed(one, 1000 + GPD_CLIENT_ADDRESS_FAILURE_MS),
			 GPD_CLIENT_ADDRESS_DELAY_MS);
	assert_int_equal(gpd_client_address_login_failed(other, 1000), 0);
	gpd_client_address_put(one);
	gpd_client_address_put(same);
	gpd_client_address_put(other);
}

UNIT_TEST_WITH(address_is_remembered_until_all_it_has_used_has_come_back, NULL, forget)
{
	struct gpd_client_address *source = gpd_client_address_get("tcp://10.0.0.1:1", NULL);
	const int64_t all_back =
		GPD_CLIENT_ADDRESS_FAILURES * (int64_t)GPD_CLIENT_ADDRESS_FAILURE_MS;

	source->last_start = 7;
	for (int i = 0; i < GPD_CLIENT_ADDRESS_FAILURES; i++)
		(void)gpd_client_address_login_failed(source, 0);
	gpd_client_address_expire(all_back);
	assert_int_equal(source->last_start, 7);
	gpd_client_address_put(source);
	/* Leaving and coming again gives nothing back. */
	gpd_client_address_expire(all_back - 1);
	source = gpd_client_address_get("tcp://10.0.0.1:2", NULL);
	assert_int_equal(source->last_start, 7);
	assert_int_equal(gpd_client_address_login_failed(source, 0), GPD_CLIENT_ADDRESS_DELAY_MS);
	gpd_client_address_put(source);
	gpd_client_address_expire(all_back);
	source = gpd_client_address_get("tcp://10.0.0.1:3", NULL);
	assert_int_equal(source->last_start, 0);
	gpd_client_address_put(source);
}

UNIT_TEST_WITH(addresses_beyond_the_table_share_one_place, NULL, forget)
{
	struct gpd_client_address *sources[GPD_CLIENT_ADDRESSES_MAX + 2];
	char peer[64];

	for (int i = 0; i < GPD_CLIENT_ADDRESSES_MAX + 2; i++) {
		(void)snprintf(peer, sizeof(peer), "tcp://10.0.%d.%d:1", i / 256, i % 256);
		sources[i] = gpd_client_address_get(peer, NULL);
	}
	assert_ptr_not_equal(sources[GPD_CLIENT_ADDRESSES_MAX - 1],
			     sources[GPD_CLIENT_ADDRESSES_MAX]);
	assert_ptr_equal(sources[GPD_CLIENT_ADDRESSES_MAX], sources[GPD_CLIENT_ADDRESSES_MAX + 1]);
	/* One that was there before still has its own. */
	assert_ptr_equal(gpd_client_address_get("tcp://10.0.0.7:9", NULL), sources[7]);
	gpd_client_address_put(sources[7]);
	/* Root and the daemon's own user are not crowded out of it. */
	for (int i = 0; i < 2; i++) {
		const uid_t is_privileged = i ? geteuid() : 0, other = geteuid() + 1;
		struct gpd_client_address *source =
			gpd_client_address_get("tcp://127.0.0.1:1", &is_privileged);
		struct gpd_client_address *stranger =
			gpd_client_address_get("tcp://127.0.0.1:1", &other);

		assert_true(source->is_privileged);
		assert_ptr_not_equal(source, sources[GPD_CLIENT_ADDRESSES_MAX]);
		assert_ptr_equal(stranger, sources[GPD_CLIENT_ADDRESSES_MAX]);
		gpd_client_address_put(source);
		gpd_client_address_put(stranger);
	}
	for (int i = 0; i < GPD_CLIENT_ADDRESSES_MAX + 2; i++)
		gpd_client_address_put(sources[i]);
	gpd_client_address_expire(0);
}

UNIT_TEST_MAIN(NULL, NULL)
