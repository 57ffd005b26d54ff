/* SPDX-License-Identifier: Apache-2.0 */
#include "server/account.h"
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

static void
an_account_refuses_what_is_past_the_quota_and_counts_nothing(void **state)
{
	struct gpd_account account = { .allocated_max = 100 };

	assert_int_equal(gpd_account_allocate(&account, 60), CUDA_SUCCESS);
	assert_int_equal(gpd_account_allocate(&account, 41), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpd_account_allocate(&account, UINT64_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(account.allocated, 60);
	assert_int_equal(gpd_account_allocate(&account, 40), CUDA_SUCCESS);
	gpd_account_free(&account, 90);
	assert_int_equal(account.allocated, 10);
	assert_int_equal(account.allocated_peak, 100);
}

static void
an_account_counts_launches_and_both_directions_of_copies(void **state)
{
	struct gpd_account account = { 0 };

	gpd_account_launch(&account);
	gpd_account_copy(&account, 10, 0);
	gpd_account_copy(&account, 0, 20);
	assert_int_equal(account.launches, 1);
	assert_int_equal(account.copies, 2);
	assert_int_equal(account.copied_in, 10);
	assert_int_equal(account.copied_out, 20);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_handle_is_found_by_its_kind_and_whole_name),
		cmocka_unit_test(any_name_is_answered),
		cmocka_unit_test(a_place_is_taken_until_its_handle_is_removed),
		cmocka_unit_test(each_visits_all_and_may_remove_them),
		cmocka_unit_test(an_account_refuses_what_is_past_the_quota_and_counts_nothing),
		cmocka_unit_test(an_account_counts_launches_and_both_directions_of_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
