/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/device/driver.h"
#include "server/worker/memory/shared_physical.h"
#include "tests/test.h"
#include "tests/unit/server/fake_session.h"

#define SIZE FAKE_GRANULE

static struct fake_session fake;
static struct gpd_account other;

static int
setup(void **state)
{
	fake_session_create(&fake);
	other = fake.session.account;
	other.entry = gpd_ledger_open(fake.ledger, 2, 0, 0);
	return 0;
}

static int
teardown(void **state)
{
	fake_session_destroy(&fake);
	return fake_driver_chunks;
}

static struct gpd_shared_physical *
make(void)
{
	CUmemGenericAllocationHandle handle;
	struct gpd_shared_physical *shared;

	assert_int_equal(gpd_account_allocate(&fake.session.account, 0, SIZE), CUDA_SUCCESS);
	assert_int_equal(gpd_driver.cuMemCreate(&handle, SIZE, &(CUmemAllocationProp){ 0 }, 0),
			 CUDA_SUCCESS);
	shared = gpd_shared_physical_create(&fake.session.account, handle, SIZE, 0);
	assert_non_null(shared);
	return shared;
}

static void
expect(uint64_t first, uint64_t second)
{
	assert_int_equal(fake.session.account.entry->devices[0].memory, first);
	assert_int_equal(other.entry->devices[0].memory, second);
	assert_int_equal(fake.ledger->tenants[0].devices[0].memory, first + second);
}

UNIT_TEST_WITH(it_goes_with_the_last_use, setup, teardown)
{
	struct gpd_shared_physical *shared = make();

	assert_true(gpd_shared_physical_ref(shared, &fake.session.account));
	gpd_shared_physical_unref(shared, &fake.session.account);
	expect(SIZE, 0);
	assert_int_equal(fake_driver_chunks, 1);
	gpd_shared_physical_unref(shared, &fake.session.account);
	expect(0, 0);
	assert_int_equal(fake_driver_chunks, 0);
}

UNIT_TEST_WITH(who_has_it_for_longest_pays, setup, teardown)
{
	struct gpd_shared_physical *shared = make();

	assert_true(gpd_shared_physical_ref(shared, &other));
	assert_true(gpd_shared_physical_ref(shared, &other));
	expect(SIZE, 0);
	gpd_shared_physical_unref(shared, &fake.session.account);
	expect(0, SIZE);
	/* It comes back, and does not pay again. */
	assert_true(gpd_shared_physical_ref(shared, &fake.session.account));
	expect(0, SIZE);
	gpd_shared_physical_unref(shared, &other);
	expect(0, SIZE);
	gpd_shared_physical_unref(shared, &other);
	expect(SIZE, 0);
	gpd_shared_physical_unref(shared, &fake.session.account);
	expect(0, 0);
}

UNIT_TEST_WITH(who_pays_may_have_less_than_that, setup, teardown)
{
	struct gpd_shared_physical *shared = make();

	other.entry->devices[0].memory_max = SIZE / 2;
	assert_true(gpd_shared_physical_ref(shared, &other));
	gpd_shared_physical_unref(shared, &fake.session.account);
	expect(0, SIZE);
	assert_int_equal(other.entry->devices[0].memory_peak, SIZE);
	gpd_shared_physical_unref(shared, &other);
	expect(0, 0);
}

UNIT_TEST_MAIN(NULL, NULL)
