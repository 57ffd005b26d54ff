/* SPDX-License-Identifier: Apache-2.0 */
#include "server/handle.h"
#include "tests/test.h"

#include <errno.h>

static void
a_handle_is_found_by_its_kind_and_whole_name(void **state)
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

static void
any_name_is_answered(void **state)
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

static void
a_place_is_taken_until_its_handle_is_removed(void **state)
{
	struct gpd_handle_table table = { 0 };
	struct gpd_handle first, second;
	uint32_t old = 1u << 20 | 7, new = 2u << 20 | 7;

	assert_int_equal(gpd_handle_add(&table, GPD_KIND_EVENT, old, &first), 0);
	assert_int_equal(gpd_handle_add(&table, GPD_KIND_EVENT, new, &second), -EEXIST);
	gpd_handle_remove(&table, &first);
	assert_null(gpd_handle_get(&table, GPD_KIND_EVENT, old));
	assert_int_equal(gpd_handle_add(&table, GPD_KIND_EVENT, new, &second), 0);
	/* Removing what is not there any more leaves the place alone. */
	gpd_handle_remove(&table, &first);
	assert_ptr_equal(gpd_handle_get(&table, GPD_KIND_EVENT, new), &second);
	gpd_handle_fini(&table);
}

struct visits {
	struct gpd_handle_table *table;
	int count;
};

static void
visit(struct gpd_handle *handle, void *arg)
{
	struct visits *visits = arg;

	gpd_handle_remove(visits->table, handle);
	visits->count++;
}

static void
each_visits_all_and_may_remove_them(void **state)
{
	struct gpd_handle_table table = { 0 };
	struct gpd_handle handles[200];
	struct visits visits = { .table = &table };

	for (uint32_t i = 0; i < 200; i++)
		assert_int_equal(
			gpd_handle_add(&table, GPD_KIND_EVENT, 1u << 20 | (3 * i), &handles[i]), 0);
	gpd_handle_each(&table, GPD_KIND_EVENT, visit, &visits);
	assert_int_equal(visits.count, 200);
	gpd_handle_each(&table, GPD_KIND_EVENT, visit, &visits);
	assert_int_equal(visits.count, 200);
	gpd_handle_fini(&table);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_handle_is_found_by_its_kind_and_whole_name),
		cmocka_unit_test(any_name_is_answered),
		cmocka_unit_test(a_place_is_taken_until_its_handle_is_removed),
		cmocka_unit_test(each_visits_all_and_may_remove_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
