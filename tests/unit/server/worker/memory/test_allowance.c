/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/server/memory_fixture.h"

static CUresult
ask(uint64_t forgo, uint64_t least, uint64_t wanted, uint64_t *granted_p)
{
	const struct gp_args_gpMemoryGrant args = { .forgo = forgo * UNIT,
						    .least = least * UNIT,
						    .wanted = wanted * UNIT };
	struct gp_reply_gpMemoryGrant reply = { 0 };
	CUresult result = gpd_gpMemoryGrant(&fake.session, &args, &reply);

	*granted_p = reply.granted / UNIT;
	return result;
}

static uint64_t
grant(uint64_t least, uint64_t wanted)
{
	uint64_t granted;

	assert_int_equal(ask(0, least, wanted, &granted), CUDA_SUCCESS);
	return granted;
}

static CUresult
use(uint64_t at, uint64_t size)
{
	return gpd_gpMemoryUse(&fake.session, &(struct gp_args_gpMemoryUse){
						      .address = FAKE_WINDOW + at * UNIT,
						      .size = size * UNIT,
					      });
}

static uint64_t
counted(void)
{
	return fake_session_allocated(&fake, 0) / UNIT;
}

static uint64_t
left(void)
{
	return fake.session.account.entry->devices[0].allowance / UNIT;
}

TEST(what_is_granted_counts_and_is_used_without_asking)
{
	assert_int_equal(grant(2, 10), 10);
	assert_int_equal(counted(), 10);
	assert_int_equal(left(), 10);
	assert_int_equal(use(0, 2), CUDA_SUCCESS);
	assert_int_equal(use(2, 5), CUDA_SUCCESS);
	assert_true(gpd_memory_mapped(&fake.session, FAKE_WINDOW, 7 * UNIT));
	assert_int_equal(counted(), 10);
	assert_int_equal(left(), 3);
}

TEST(more_than_is_granted_is_not_had)
{
	uint64_t granted;

	assert_int_equal(use(0, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(grant(2, 2), 2);
	assert_int_equal(use(0, 3), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(use(0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(ask(3, 0, 0, &granted), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(ask(0, 2, 1, &granted), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(use(0, 2), CUDA_SUCCESS);
	assert_int_equal(use(2, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(counted(), 2);
}

TEST(what_is_not_used_is_given_back)
{
	uint64_t granted;

	assert_int_equal(grant(4, 8), 8);
	assert_int_equal(use(0, 4), CUDA_SUCCESS);
	assert_int_equal(ask(4, 0, 0, &granted), CUDA_SUCCESS);
	assert_int_equal(granted, 0);
	assert_int_equal(counted(), 4);
	assert_int_equal(fake_driver_chunks, 1);
}

TEST(quota_and_device_bound_it)
{
	fake.session.account.entry->devices[0].memory_max = 20 * UNIT;
	/* The size that is needed, and an eighth of the rest. */
	assert_int_equal(grant(4, 100), 6);
	assert_int_equal(grant(15, 15), 0);
	assert_int_equal(counted(), 6);
	fake_driver_fail("cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY, 0);
	assert_int_equal(grant(4, 4), 0);
	assert_int_equal(counted(), 6);
	fake.session.account.entry->devices[0].memory_max = GPD_NO_LIMIT;
	assert_int_equal(grant((uint64_t)7 << 9, (uint64_t)7 << 9), 0);
}

TEST(a_device_that_has_no_more_takes_what_is_held)
{
	assert_int_equal(grant(2, 10), 10);
	fake_driver_fail("cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY, 0);
	assert_int_equal(use(0, 5), CUDA_SUCCESS);
	assert_int_equal(left(), 5);
	assert_int_equal(use(5, 5), CUDA_SUCCESS);
	assert_int_equal(counted(), 10);
	assert_int_equal(fake_driver_chunks, 2);
}

/* Of one piece of 8 only 4 are credit any more. */
TEST(what_is_held_besides_is_free)
{
	const uint64_t before = available();

	assert_int_equal(grant(2, 10), 10);
	assert_int_equal(available(), before);
	assert_int_equal(use(0, 6), CUDA_SUCCESS);
	assert_int_equal(fake.session.account.entry->devices[0].allowance_backing, 8 * UNIT);
	assert_int_equal(available(), before + 4);
	assert_int_equal(use(6, 4), CUDA_SUCCESS);
	assert_int_equal(fake.session.account.entry->devices[0].allowance_backing, 0);
	assert_int_equal(available(), before);
}

TEST(physical_memory_comes_out_of_it_too)
{
	const struct gp_args_gpMemoryMake args = { .memory = NAME, .size = 3 * UNIT };

	assert_int_equal(gpd_gpMemoryMake(&fake.session, &args), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(grant(3, 3), 3);
	assert_int_equal(gpd_gpMemoryMake(&fake.session, &args), CUDA_SUCCESS);
	assert_int_equal(left(), 0);
	/* The name is taken: what counted for it does not any more. */
	assert_int_equal(grant(3, 3), 3);
	assert_int_equal(gpd_gpMemoryMake(&fake.session, &args), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(counted(), 3);
	assert_int_equal(release(), CUDA_SUCCESS);
	assert_int_equal(counted(), 0);
}

TEST(all_of_it_goes_with_the_session)
{
	int device = -1;

	assert_int_equal(gpd_allowance_create(&fake.session, &device), GPD_HEAP_SIZE);
	assert_int_equal(device, 0);
	assert_int_equal(grant(1, 9), 9);
	gpd_allowance_destroy(&fake.session);
	assert_int_equal(counted(), 0);
	assert_int_equal(left(), 0);
	assert_int_equal(fake_driver_chunks, 0);
}

UNIT_TEST_MAIN(NULL, NULL)
