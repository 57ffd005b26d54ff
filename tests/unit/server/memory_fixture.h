/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture for tests of device memory: a fake session (fake_session.h) with a window, the address
 * range of its device memory. Tests create physical memory with the handle ID NAME.
 *
 * The teardown checks that all physical memory has been released.
 * Threads: the test's thread.
 */
#ifndef MEMORY_FIXTURE_H
#define MEMORY_FIXTURE_H

#include "gpd_calls.h"
#include "server/worker/memory/allowance.h"
#include "server/worker/memory/memory.h"
#include "tests/test.h"
#include "tests/unit/server/fake_session.h"

/* A handle ID as a client would choose it: the index 7, in its first use. */
#define NAME ((1u << 20) | 7)
/* Unit in which the tests count memory. */
#define UNIT FAKE_GRANULE

static struct fake_session fake;

/* CMocka setup and teardown of a test. setup() returns 0 or a negative error. teardown() returns
 * the number of physical allocations left, so that a leak fails the test. */
static inline int
setup(void **state)
{
	fake_session_create(&fake);
	return gpd_memory_create(&fake.session);
}

static inline int
teardown(void **state)
{
	gpd_allowance_destroy(&fake.session);
	gpd_memory_unmap_all(&fake.session);
	gpd_memory_destroy(&fake.session);
	fake_session_destroy(&fake);
	return fake_driver_chunks;
}

/* Releases the physical memory NAME. Returns the result of the call. */
static inline CUresult
release(void)
{
	return gpd_gpMemoryRelease(&fake.session,
				   &(struct gp_args_gpMemoryRelease){ .memory = NAME });
}

/* Returns the free memory that the session reports, in units of FAKE_GRANULE. */
static inline uint64_t
available(void)
{
	struct gp_reply_gpMemoryInfo reply;

	assert_int_equal(
		gpd_gpMemoryInfo(&fake.session, &(struct gp_args_gpMemoryInfo){ 0 }, &reply),
		CUDA_SUCCESS);
	return reply.free / UNIT;
}

/* Defines a test with this fixture. */
#define TEST(test) UNIT_TEST_WITH(test, setup, teardown)

#endif /* MEMORY_FIXTURE_H */
