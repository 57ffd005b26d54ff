/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/memory/physical_memory.h"
#include "tests/unit/server/memory_fixture.h"

/* As the dispatcher does it. */
static CUresult
create(uint64_t granules)
{
	const struct gp_args_gpMemoryCreate args = { .memory = NAME,
						     .size = granules * UNIT,
						     .device = 0 };
	CUresult result = gpd_account_allocate(&fake.session.account, 0, args.size);

	if (result != CUDA_SUCCESS)
		return result;
	result = gpd_gpMemoryCreate(&fake.session, &args);
	if (result != CUDA_SUCCESS)
		gpd_account_free(&fake.session.account, 0, args.size);
	return result;
}

static CUresult
attach_at(uint64_t address, uint64_t granules)
{
	return gpd_gpMemoryAttach(&fake.session, &(struct gp_args_gpMemoryAttach){
							 .memory = NAME,
							 .address = address,
							 .size = granules * UNIT,
						 });
}

static CUresult
attach(uint64_t at, uint64_t granules)
{
	return attach_at(FAKE_WINDOW + at * UNIT, granules);
}

static CUresult
detach(uint64_t at, uint64_t granules)
{
	return gpd_gpMemoryUnmap(&fake.session, &(struct gp_args_gpMemoryUnmap){
							.address = FAKE_WINDOW + at * UNIT,
							.size = granules * UNIT,
						});
}

static uint64_t
left(void)
{
	return gpd_ledger_headroom(fake.session.account.ledger, fake.session.account.entry, 0, 0)
		.left;
}

TEST(memory_counts_until_the_driver_has_it_back)
{
	fake.session.account.entry->devices[0].memory_max = 4 * UNIT;
	assert_int_equal(create(3), CUDA_SUCCESS);
	assert_int_equal(left(), UNIT);
	assert_int_equal(attach(0, 3), CUDA_SUCCESS);
	assert_int_equal(attach(8, 2), CUDA_SUCCESS);
	assert_int_equal(left(), UNIT);
	assert_int_equal(release(), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(detach(0, 3), CUDA_SUCCESS);
	assert_int_equal(release(), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(detach(8, 2), CUDA_SUCCESS);
	assert_int_equal(left(), UNIT);
	assert_int_equal(available(), 1);

	assert_int_equal(release(), CUDA_SUCCESS);
	assert_int_equal(release(), CUDA_ERROR_INVALID_VALUE);
	/* Work may still use it; the session could have it again. */
	assert_int_equal(left(), UNIT);
	assert_int_equal(available(), 4);
	fake_session_run_markers(&fake, 1);
	assert_int_equal(left(), UNIT);
	fake_session_run_markers(&fake, -1);
	assert_int_equal(left(), 4 * UNIT);
	assert_int_equal(fake_driver_count_calls("cuMemRelease"), 1);
	assert_int_equal(create(5), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(an_allocation_waits_for_what_is_on_its_way_back)
{
	fake.session.account.entry->devices[0].memory_max = 4 * UNIT;
	assert_int_equal(create(3), CUDA_SUCCESS);
	assert_int_equal(attach(0, 3), CUDA_SUCCESS);
	assert_int_equal(detach(0, 3), CUDA_SUCCESS);
	assert_int_equal(release(), CUDA_SUCCESS);
	assert_int_equal(gpd_account_allocate(&fake.session.account, 0, 4 * UNIT), CUDA_SUCCESS);
	assert_int_equal(fake_driver_count_calls("cuMemRelease"), 1);
}

TEST(every_byte_is_zeroed_once_before_it_is_seen)
{
	assert_int_equal(create(4), CUDA_SUCCESS);
	assert_int_equal(fake_driver_count_calls("cuMemset"), 0);
	assert_int_equal(attach(0, 1), CUDA_SUCCESS);
	assert_int_equal(fake_driver_count_calls("cuMemset"), 1);
	assert_int_equal(attach(4, 4), CUDA_SUCCESS);
	assert_int_equal(fake_driver_count_calls("cuMemset"), 2);
	assert_int_equal(*(const uint8_t *)(FAKE_WINDOW + 5 * UNIT), 0);
	/* What is there is the session's own from now on. */
	assert_int_equal(*(const uint8_t *)(FAKE_WINDOW + 4 * UNIT), 0xee);
	assert_int_equal(attach(16, 4), CUDA_SUCCESS);
	assert_int_equal(fake_driver_count_calls("cuMemset"), 2);
}

TEST(memory_outlives_the_mappings_on_their_way_out)
{
	assert_int_equal(create(1), CUDA_SUCCESS);
	assert_int_equal(attach(0, 1), CUDA_SUCCESS);
	assert_int_equal(detach(0, 1), CUDA_SUCCESS);
	assert_int_equal(attach(1, 1), CUDA_SUCCESS);
	assert_int_equal(detach(1, 1), CUDA_SUCCESS);
	assert_int_equal(release(), CUDA_SUCCESS);
	fake_session_run_markers(&fake, -1);
	assert_int_equal(fake_driver_count_calls("cuMemUnmap"), 2);
	assert_int_equal(fake_driver_count_calls("cuMemRelease"), 1);
	assert_int_equal(fake_driver_chunks, 0);
}

TEST(what_does_not_fit_is_refused)
{
	assert_int_equal(attach(0, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(create(2), CUDA_SUCCESS);
	assert_int_equal(create(2), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(attach(0, 3), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(attach(0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(attach_at(FAKE_WINDOW + 4096, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(attach(0, 2), CUDA_SUCCESS);
	assert_int_equal(attach(1, 1), CUDA_ERROR_INVALID_VALUE);
	assert_string_equal(fake.violation, "");
	assert_int_equal(attach_at(FAKE_WINDOW + FAKE_WINDOW_SIZE, 1), CUDA_ERROR_INVALID_VALUE);
	assert_string_not_equal(fake.violation, "");
	assert_int_equal(gpd_gpMemoryCreate(&fake.session,
					    &(struct gp_args_gpMemoryCreate){ .memory = NAME + 1,
									      .size = 4096 }),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(fake_driver_chunks, 1);
}

TEST(memory_that_needs_what_is_leaving_waits_for_it)
{
	assert_int_equal(gpd_account_allocate(&fake.session.account, 0, UNIT), CUDA_SUCCESS);
	assert_int_equal(gpd_memory_map(&fake.session, FAKE_WINDOW, UNIT, 0), CUDA_SUCCESS);
	assert_int_equal(detach(0, 1), CUDA_SUCCESS);
	fake_driver_fail("cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY, 0);

	assert_int_equal(create(1), CUDA_SUCCESS);
	assert_int_equal(fake_session_markers(&fake), 0);
	assert_int_equal(fake_driver_chunks, 1);
}

TEST(addresses_besides_the_window_can_be_had_and_given_back)
{
	const struct gp_args_gpAddressReserve args = { .size = (uint64_t)4 << 30 };
	const struct gp_args_gpAddressReserve much = { .size = (uint64_t)1 << 40 };
	struct gp_reply_gpAddressReserve reply, other;
	struct gp_args_gpAddressFree free;

	assert_int_equal(gpd_gpAddressReserve(&fake.session, &args, &reply), CUDA_SUCCESS);
	assert_int_equal(gpd_gpAddressReserve(&fake.session, &args, &other), CUDA_SUCCESS);
	assert_true(other.address >= reply.address + args.size ||
		    reply.address >= other.address + args.size);
	/* Addresses are everybody's, too. */
	assert_int_equal(gpd_gpAddressReserve(&fake.session, &much, &other),
			 CUDA_ERROR_OUT_OF_MEMORY);
	free.address = reply.address;
	assert_int_equal(create(1), CUDA_SUCCESS);
	assert_int_equal(attach_at(reply.address + args.size - UNIT, 1), CUDA_SUCCESS);
	assert_true(gpd_memory_accessible(&fake.session, reply.address + args.size - 5, 5));
	assert_false(gpd_memory_accessible(&fake.session, reply.address, 5));
	assert_int_equal(gpd_gpAddressFree(&fake.session, &free), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpd_gpMemoryUnmap(&fake.session,
					   &(struct gp_args_gpMemoryUnmap){
						   .address = reply.address + args.size - UNIT,
						   .size = UNIT,
					   }),
			 CUDA_SUCCESS);
	assert_int_equal(gpd_gpAddressFree(&fake.session, &free), CUDA_SUCCESS);
	assert_int_equal(fake_session_markers(&fake), 0);
	assert_int_equal(gpd_gpAddressFree(&fake.session, &free), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(fake_driver_count_calls("cuMemAddressFree"), 1);
}

UNIT_TEST_MAIN(NULL, NULL)
