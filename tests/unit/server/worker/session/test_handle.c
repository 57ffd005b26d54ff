/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/session/handle.h"
#include "tests/test.h"

#include <errno.h>
#include <unistd.h>

UNIT_TEST(a_handle_is_found_by_its_kind_and_whole_name)
{
	struct gpd_handle_table table = { 0 };
	struct gpd_handle stream, event;
	uint32_t id = 3u << 20 | 5;

	assert_int_equal(gpd_handle_add(&table, GPD_KIND_STREAM, id, &stream), 0);
	assert_int_equal(gpd_handle_add(&table, GPD_KIND_EVENT, id, &event), 0);
	assert_ptr_equal(gpd_handle_get(&table, GPD_KIND_STREAM, id), &stream);
	assert_ptr_equal(gpd_handle_get(&table, GPD_KIND_EVENT, id), &event);
	assert_null(gpd_handle_get(&table, GPD_KIND_IMAGE, id));
	assert_null(gpd_handle_get(&table, GPD_KIND_STREAM, 4u << 20 | 5));
	assert_null(gpd_handle_get(&table, GPD_KIND_STREAM, 3u << 20 | 6));
	gpd_handle_fini(&table);
}

UNIT_TEST(any_name_is_answered)
{
	struct gpd_handle_table table = { 0 };
	struct gpd_handle handle;

	assert_null(gpd_handle_get(&table, GPD_KIND_STREAM, 0));
	assert_null(gpd_handle_get(&table, GPD_KIND_STREAM, UINT32_MAX));
	assert_int_equal(gpd_handle_add(&table, GPD_KIND_STREAM, 0, &handle), -EINVAL);
	assert_int_equal(gpd_handle_add(&table, GPD_KIND_STREAM, UINT32_MAX, &handle), 0);
	assert_ptr_equal(gpd_handle_get(&table, GPD_KIND_STREAM, UINT32_MAX), &handle);
	gpd_handle_fini(&table);
}

UNIT_TEST(a_place_is_taken_until_its_handle_is_removed)
{
	struct gpd_handle_table table = { 0 };
	struct gpd_handle first, second;
	uint32_t old = 1u << 20 | 7, new = 2u << 20 | 7;

	assert_int_equal(gpd_handle_add(&table, GPD_KIND_EVENT, old, &first), 0);
	assert_int_equal(gpd_handle_add(&table, GPD_KIND_EVENT, new, &second), -EEXIST);
	gpd_handle_remove(&table, &first);
	assert_null(gpd_handle_get(&table, GPD_KIND_EVENT, old));
	assert_int_equal(gpd_handle_add(&table, GPD_KIND_EVENT, new, &second), 0);
	/* Removing a handle that does not exist leaves the slot alone. */
	gpd_handle_remove(&table, &first);
	assert_ptr_equal(gpd_handle_get(&table, GPD_KIND_EVENT, new), &second);
	gpd_handle_fini(&table);
}

static unsigned int
add_until_refused(struct gpd_handle_table *table, struct gpd_handle *handles, unsigned int max)
{
	unsigned int count = 0;

	while (count < max &&
	       gpd_handle_add(table, GPD_KIND_EVENT, count + 1, &handles[count]) == 0)
		count++;
	return count;
}

UNIT_TEST(all_tables_have_so_much_together_and_each_its_part)
{
	enum {
		MANY = 150000
	};
	struct gpd_handle *handles = test_calloc(2 * MANY, sizeof(*handles));
	struct gpd_handle_table *greedy = test_calloc(2, sizeof(*greedy)), *other = greedy + 1;
	unsigned int count, first;
	int fd;
	struct gpd_ledger *ledger = gpd_ledger_create(&fd);

	assert_non_null(ledger);
	(void)close(fd);
	ledger->host_max = 2 * GPD_HOST_MIN;
	for (uint64_t i = 0; i < 2; i++)
		greedy[i].memory =
			(struct gpd_handle_memory){ .ledger = ledger,
						    .entry = gpd_ledger_open(ledger, i + 1, 0, 0) };
	count = add_until_refused(greedy, handles, MANY);
	/* Its own part, and all that there is besides. */
	assert_in_range(count, 25000, 32768);
	assert_int_equal(ledger->tenants[0].host, GPD_HOST_MIN);
	assert_int_equal(gpd_handle_add(greedy, GPD_KIND_STREAM, 7, &handles[MANY]), -ENOMEM);
	assert_null(gpd_handle_get(greedy, GPD_KIND_STREAM, 7));
	first = add_until_refused(other, handles + MANY, MANY);
	assert_in_range(first, 12500, 16384);
	/* A slot that one session frees is available to the other. */
	for (unsigned int i = 0; i < count / 2; i++)
		gpd_handle_remove(greedy, &handles[i]);
	assert_int_equal(gpd_handle_add(other, GPD_KIND_EVENT, MANY, &handles[2 * MANY - 1]), 0);
	gpd_handle_fini(greedy);
	gpd_handle_fini(other);
	assert_int_equal(ledger->tenants[0].host, 0);
	assert_int_equal(ledger->sessions[0].host, 0);
	gpd_ledger_destroy(ledger);
	test_free(greedy);
	test_free(handles);
}

UNIT_TEST(a_walk_finds_all_which_may_be_removed_meanwhile)
{
	struct gpd_handle_table table = { 0 };
	struct gpd_handle handles[200], *handle;
	uint32_t at = 0, count = 0;

	for (uint32_t i = 0; i < 200; i++)
		assert_int_equal(
			gpd_handle_add(&table, GPD_KIND_EVENT, 1u << 20 | (5000 * i), &handles[i]),
			0);
	assert_null(gpd_handle_next(&table, GPD_KIND_STREAM, &at));
	at = 0;
	while ((handle = gpd_handle_next(&table, GPD_KIND_EVENT, &at))) {
		assert_ptr_equal(handle, &handles[count++]);
		gpd_handle_remove(&table, handle);
	}
	assert_int_equal(count, 200);
	at = 0;
	assert_null(gpd_handle_next(&table, GPD_KIND_EVENT, &at));
	gpd_handle_fini(&table);
}

UNIT_TEST_MAIN(NULL, NULL)
