/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "server/worker/device/device.h"
#include "tests/unit/server/memory_fixture.h"

#include <pthread.h>
#include <string.h>

static CUresult
map(uint64_t at, uint64_t granules)
{
	return gpd_memory_map(&fake.session, FAKE_WINDOW + at * FAKE_GRANULE,
			      granules * FAKE_GRANULE, 0);
}

static CUresult
unmap(uint64_t at, uint64_t granules)
{
	return gpd_gpMemoryUnmap(&fake.session, &(struct gp_args_gpMemoryUnmap){
							.address = FAKE_WINDOW + at * FAKE_GRANULE,
							.size = granules * FAKE_GRANULE,
						});
}

static bool
mapped(uint64_t from, uint64_t size)
{
	return gpd_memory_mapped(&fake.session, FAKE_WINDOW + from, size);
}

static CUresult
keep(uint32_t request)
{
	fake.session.current.request = request;
	return gpd_gpMemoryKeep(&fake.session, &(struct gp_args_gpMemoryKeep){ 0 });
}

static uint32_t
given_back(void)
{
	assert_int_equal(gpd_gpMemoryKept(&fake.session, &(struct gp_args_gpMemoryKept){ 0 }),
			 CUDA_SUCCESS);
	return fake.session.account.entry->cache_state;
}

TEST(the_ledger_knows_who_keeps_memory)
{
	struct gpd_ledger_session *entry = fake.session.account.entry;

	assert_int_equal(keep(7), GPD_LATER);
	assert_int_equal(entry->cache_state, GPD_CACHE_FILLED);
	assert_int_equal(keep(8), CUDA_ERROR_INVALID_VALUE);
	entry->cache_state = GPD_CACHE_RECALLED;
	assert_int_equal(fake.session.send.keep_request, 7);
	fake.session.send.keep_request = 0;
	/* More is kept before the first is given back: that is what is waited for. */
	assert_int_equal(keep(9), GPD_LATER);
	assert_int_equal(entry->cache_state, GPD_CACHE_RECALLED);
	assert_int_equal(given_back(), GPD_CACHE_FILLED);
	fake.session.send.keep_request = 0;
	assert_int_equal(given_back(), GPD_CACHE_EMPTY);
}

TEST(fresh_memory_is_zero_and_exportable)
{
	const uint8_t *memory = (const uint8_t *)FAKE_WINDOW;

	assert_int_equal(map(0, 2), CUDA_SUCCESS);

	for (uint64_t i = 0; i < 2 * FAKE_GRANULE; i += 4093)
		assert_int_equal(memory[i], 0);
	assert_int_equal(fake_driver_count_calls("cuMemCreate 4194304 device 0 handles 1"), 1);
	assert_int_equal(fake_driver_count_calls("cuStreamSynchronize"), 1);
}

TEST(what_is_mapped_is_known_to_the_byte)
{
	map(4, 1);
	map(1, 1);
	map(2, 1);

	assert_true(mapped(FAKE_GRANULE, 2 * FAKE_GRANULE));
	assert_true(mapped(3 * FAKE_GRANULE - 1, 1));
	assert_false(mapped(3 * FAKE_GRANULE - 1, 2));
	assert_false(mapped(FAKE_GRANULE - 1, 2));
	assert_false(mapped(2 * FAKE_GRANULE, 3 * FAKE_GRANULE));
	assert_true(mapped(4 * FAKE_GRANULE + 5, FAKE_GRANULE - 5));
	assert_false(mapped(0, UINT64_MAX));
	assert_false(gpd_memory_mapped(&fake.session, UINT64_MAX - 3, 8));
	assert_true(mapped(FAKE_GRANULE + 3, 0));
}

TEST(a_map_outside_the_window_or_over_another_is_invalid)
{
	uint64_t granules = FAKE_WINDOW_SIZE / FAKE_GRANULE;

	map(3, 2);
	fake_driver_clear_calls();

	assert_int_equal(map(4, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(map(2, 2), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(map(0, 100), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(map(granules, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(map(granules - 1, 2), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(map(0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpd_memory_map(&fake.session, FAKE_WINDOW + 4096, FAKE_GRANULE, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpd_memory_map(&fake.session, FAKE_WINDOW, FAKE_GRANULE / 2, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpd_memory_map(&fake.session, FAKE_WINDOW - FAKE_GRANULE, FAKE_GRANULE, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpd_memory_map(&fake.session, FAKE_WINDOW, FAKE_GRANULE, 7),
			 CUDA_ERROR_INVALID_DEVICE);
	assert_string_equal(fake_driver_calls, "");
}

TEST(a_failed_map_leaves_nothing_behind)
{
	static const char *const steps[] = { "cuMemCreate", "cuMemMap", "cuMemSetAccess",
					     "cuMemsetD32Async", "cuStreamSynchronize" };

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		fake_driver_fail(steps[i], CUDA_ERROR_OUT_OF_MEMORY, 0);
		assert_int_equal(map(0, 1), CUDA_ERROR_OUT_OF_MEMORY);
		assert_int_equal(fake_driver_chunks, 0);
		assert_false(mapped(0, 1));
	}
	assert_int_equal(map(0, 1), CUDA_SUCCESS);
}

TEST(memory_leaves_when_earlier_work_is_done)
{
	map(0, 1);

	assert_int_equal(unmap(0, 1), CUDA_SUCCESS);
	assert_false(mapped(0, 1));
	assert_int_equal(fake_driver_chunks, 1);

	fake_session_run_markers(&fake, -1);
	assert_int_equal(fake_driver_chunks, 0);
}

TEST(an_unmap_must_name_one_whole_map)
{
	map(0, 2);

	assert_int_equal(unmap(0, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(unmap(1, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(unmap(2, 1), CUDA_ERROR_INVALID_VALUE);
	assert_true(mapped(0, 2 * FAKE_GRANULE));
	assert_int_equal(unmap(0, 2), CUDA_SUCCESS);
	assert_int_equal(unmap(0, 2), CUDA_ERROR_INVALID_VALUE);
}

TEST(a_map_where_memory_is_leaving_waits_for_it)
{
	map(0, 1);
	unmap(0, 1);

	assert_int_equal(map(0, 2), CUDA_SUCCESS);

	assert_int_equal(fake_session_markers(&fake), 0);
	assert_int_equal(fake_driver_chunks, 1);
	assert_true(mapped(0, 2 * FAKE_GRANULE));
}

TEST(a_map_that_needs_what_is_leaving_waits_for_it)
{
	map(0, 1);
	unmap(0, 1);
	fake_driver_fail("cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY, 0);

	assert_int_equal(map(8, 1), CUDA_SUCCESS);

	assert_int_equal(fake_session_markers(&fake), 0);
	assert_int_equal(fake_driver_chunks, 1);
	fake_driver_fail("cuMemCreate", CUDA_ERROR_OUT_OF_MEMORY, 0);
	assert_int_equal(map(9, 1), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(many_chunks_stay_in_order)
{
	for (uint64_t i = 0; i < 200; i++)
		assert_int_equal(map(i * 37 % 200, 1), CUDA_SUCCESS);
	assert_true(mapped(0, 200 * FAKE_GRANULE));
	for (uint64_t i = 0; i < 200; i += 2)
		assert_int_equal(unmap(i * 37 % 200, 1), CUDA_SUCCESS);
	fake_session_run_markers(&fake, -1);
	for (uint64_t i = 0; i < 200; i++)
		assert_int_equal(mapped(i * 37 % 200 * FAKE_GRANULE, 1), i % 2);
}

TEST(free_memory_is_what_the_quota_leaves)
{
	const struct gp_args_gpMemoryInfo args = { .device = 0 };
	struct gp_reply_gpMemoryInfo reply;

	assert_int_equal(gpd_gpMemoryInfo(&fake.session, &args, &reply), CUDA_SUCCESS);
	assert_int_equal(reply.free, (uint64_t)6 << 30);
	assert_int_equal(reply.total, (uint64_t)8 << 30);

	fake.session.account.entry->devices[0].memory_max = (uint64_t)2 << 30;
	assert_int_equal(gpd_account_allocate(&fake.session.account, 0, (uint64_t)1 << 30),
			 CUDA_SUCCESS);
	assert_int_equal(gpd_gpMemoryInfo(&fake.session, &args, &reply), CUDA_SUCCESS);
	assert_int_equal(reply.free, (uint64_t)1 << 30);
	assert_int_equal(reply.total, (uint64_t)2 << 30);
}

/* The worker of a session that has ended releases its memory while another session requests
 * memory. */
static void *
close_when_awaited(void *other)
{
	while (!atomic_load(&fake.session.account.entry->waiting))
		gp_sleep_ns(100000);
	gpd_ledger_close(fake.ledger, other);
	return NULL;
}

TEST(memory_of_a_program_that_has_ended_is_free)
{
	const struct gp_args_gpMemoryInfo args = { .device = 0 };
	struct gpd_ledger_session *other = gpd_ledger_open(fake.ledger, 2, 0, 0);
	struct gp_reply_gpMemoryInfo reply;
	pthread_t thread;

	fake.ledger->tenants[0].devices[0].memory_max = (uint64_t)2 << 30;
	assert_true(gpd_ledger_charge(fake.ledger, other, 0, (uint64_t)1 << 30));
	assert_int_equal(gpd_gpMemoryInfo(&fake.session, &args, &reply), CUDA_SUCCESS);
	assert_int_equal(reply.free, (uint64_t)1 << 30);

	gpd_ledger_set_closing(fake.ledger, other);
	assert_int_equal(pthread_create(&thread, NULL, close_when_awaited, other), 0);
	assert_int_equal(gpd_gpMemoryInfo(&fake.session, &args, &reply), CUDA_SUCCESS);
	pthread_join(thread, NULL);
	assert_int_equal(reply.free, (uint64_t)2 << 30);
	/* The line is another session's now, which has not ended. */
	other = gpd_ledger_open(fake.ledger, 3, 0, 0);
	assert_int_equal(other->ended, 0);
	gpd_ledger_close(fake.ledger, other);
}

/* Its kernel may run on for ever: an allocation waits as long, and then fails. */
TEST(memory_that_does_not_become_free_is_waited_for_once)
{
	const struct gp_args_gpMemoryInfo args = { .device = 0 };
	struct gpd_ledger_session *other = gpd_ledger_open(fake.ledger, 2, 0, 0);
	struct gp_reply_gpMemoryInfo reply;

	fake.ledger->tenants[0].devices[0].memory_max = (uint64_t)2 << 30;
	assert_true(gpd_ledger_charge(fake.ledger, other, 0, (uint64_t)1 << 30));
	gpd_ledger_set_closing(fake.ledger, other);
	assert_int_equal(gpd_gpMemoryInfo(&fake.session, &args, &reply), CUDA_SUCCESS);
	assert_int_equal(reply.free, (uint64_t)1 << 30);
	assert_true(fake.session.account.ending_timed_out);
	gpd_ledger_close(fake.ledger, other);
	assert_int_equal(gpd_gpMemoryInfo(&fake.session, &args, &reply), CUDA_SUCCESS);
	assert_int_equal(reply.free, (uint64_t)2 << 30);
	assert_false(fake.session.account.ending_timed_out);
}

TEST(free_memory_is_told_of_ones_own_devices_alone)
{
	static const int32_t others[] = { 31, 32, -1, INT32_MAX, INT32_MIN };
	struct gp_reply_gpMemoryInfo reply;

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(gpd_gpMemoryInfo(&fake.session,
						  &(struct gp_args_gpMemoryInfo){ others[i] },
						  &reply),
				 CUDA_ERROR_INVALID_DEVICE);
}

static CUresult
map_on(int device, uint64_t at)
{
	return gpd_memory_map(&fake.session, FAKE_WINDOW + at * FAKE_GRANULE, FAKE_GRANULE, device);
}

static CUresult
let_reach(int device, int peer)
{
	return gpd_gpPeerAccess(&fake.session,
				&(struct gp_args_gpPeerAccess){ .device = device, .peer = peer });
}

static int
apart(uint64_t at, int device)
{
	return gpd_memory_get_remote_device(&fake.session, FAKE_WINDOW + at * FAKE_GRANULE, device);
}

static void
two_devices(void)
{
	atomic_store(&fake.session.account.entry->devices[1].allowed, 1);
	gpd_devices.all[0].peers = 2;
	gpd_devices.all[1].peers = 1;
	assert_int_equal(map_on(0, 0), CUDA_SUCCESS);
	assert_int_equal(map_on(1, 1), CUDA_SUCCESS);
	fake_driver_clear_calls();
}

TEST(a_peer_reaches_the_memory_that_is_there_and_that_comes)
{
	two_devices();
	assert_int_equal(apart(1, 0), 1);
	assert_int_equal(apart(0, 1), 0);
	assert_int_equal(apart(0, 0), -1);
	assert_int_equal(apart(2, 0), -1);

	assert_int_equal(let_reach(0, 1), CUDA_SUCCESS);
	assert_int_equal(fake_driver_count_calls("cuCtxEnablePeerAccess 101"), 1);
	assert_int_equal(fake_driver_count_calls("cuMemSetAccess"), 1);
	assert_non_null(strstr(fake_driver_calls, "2097152 devices 0\n"));
	assert_int_equal(apart(1, 0), -1);
	assert_int_equal(apart(0, 1), 0);

	fake_driver_clear_calls();
	assert_int_equal(map_on(1, 2), CUDA_SUCCESS);
	assert_non_null(strstr(fake_driver_calls, "2097152 devices 0 1\n"));
	fake_driver_clear_calls();
	assert_int_equal(map_on(0, 3), CUDA_SUCCESS);
	assert_non_null(strstr(fake_driver_calls, "2097152 devices 0\n"));
}

TEST(only_ones_own_devices_with_a_link_are_peers)
{
	static const int32_t others[] = { 32, 64, -1, INT32_MAX, INT32_MIN };

	two_devices();
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		assert_int_equal(let_reach(0, others[i]), CUDA_ERROR_INVALID_DEVICE);
		assert_int_equal(let_reach(others[i], 1), CUDA_ERROR_INVALID_DEVICE);
	}
	assert_int_equal(let_reach(1, 1), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
	assert_int_equal(let_reach(0, 2), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
	gpd_devices.all[0].peers = 0;
	assert_int_equal(let_reach(0, 1), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
	gpd_devices.all[0].peers = 2;
	atomic_store(&fake.session.account.entry->devices[1].allowed, 0);
	assert_int_equal(let_reach(0, 1), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(let_reach(1, 0), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(fake_driver_count_calls("cuMemSetAccess"), 0);
	assert_int_equal(fake_driver_count_calls("cuCtxEnablePeerAccess"), 0);
}

TEST(what_the_driver_refuses_is_not_given)
{
	two_devices();
	fake_driver_fail("cuMemSetAccess", CUDA_ERROR_OUT_OF_MEMORY, 0);
	assert_int_equal(let_reach(0, 1), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(apart(1, 0), 1);
	fake_driver_fail("cuCtxEnablePeerAccess", CUDA_ERROR_TOO_MANY_PEERS, 0);
	assert_int_equal(let_reach(0, 1), CUDA_ERROR_TOO_MANY_PEERS);
	assert_int_equal(apart(1, 0), 1);
	fake_driver_fail("cuCtxEnablePeerAccess", CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 0);
	assert_int_equal(let_reach(0, 1), CUDA_SUCCESS);
	assert_int_equal(apart(1, 0), -1);
}

/* Runs last: the driver is not queried again after it. */
TEST(a_driver_without_exportable_memory_still_makes_memory)
{
	fake_driver_fail("cuMemCreate", CUDA_ERROR_NOT_SUPPORTED, 0);

	assert_int_equal(map(0, 1), CUDA_SUCCESS);
	assert_int_equal(map(1, 1), CUDA_SUCCESS);

	assert_int_equal(fake_driver_count_calls("cuMemCreate 2097152 device 0 handles 1"), 1);
	assert_int_equal(fake_driver_count_calls("cuMemCreate 2097152 device 0 handles 0"), 2);
}

UNIT_TEST_MAIN(NULL, NULL)
