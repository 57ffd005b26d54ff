/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture for tests of copies: a fake session (fake_session.h) with mapped device memory, and
 * staging memory (pinned buffers through which copies pass).
 *
 * Threads: the test's thread.
 */
#ifndef COPY_FIXTURE_H
#define COPY_FIXTURE_H

#include "gpd_calls.h"
#include "protocol/frame.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/staging.h"
#include "server/worker/memory/memory.h"
#include "tests/test.h"
#include "tests/unit/server/fake_session.h"

#include <stdlib.h>
#include <string.h>

#ifdef __SANITIZE_THREAD__
/* FAKE_WINDOW, and the address 1 MiB above it, as they appear in the log of driver calls. */
#define WINDOW "552000000000"
#define WINDOW_1M "552000100000"
#else
#define WINDOW "120000000000"
#define WINDOW_1M "120000100000"
#endif

/* Bytes of mapped device memory: more than the staging memory that one session may use for copies
 * to the host. */
#define MAPPED ((uint64_t)64 << 20)

static struct fake_session fake;
/* The session's device memory, which is MAPPED bytes long. */
static uint8_t *const device = (uint8_t *)FAKE_WINDOW;

/* CMocka setup and teardown of a test; return 0. The current call has request ID 9. */
static inline int
setup(void **state)
{
	fake_session_create(&fake);
	assert_int_equal(gpd_memory_create(&fake.session), 0);
	assert_int_equal(gpd_staging_create(&fake.session), 0);
	assert_int_equal(gpd_memory_map(&fake.session, FAKE_WINDOW, MAPPED, 0), CUDA_SUCCESS);
	fake_driver_clear_calls();
	fake.session.current.request = 9;
	fake.session.current.call = 0x302;
	return 0;
}

static inline int
teardown(void **state)
{
	fake_session_run_markers(&fake, -1);
	gpd_copy_destroy_all(&fake.session);
	gpd_memory_unmap_all(&fake.session);
	gpd_memory_destroy(&fake.session);
	gpd_staging_destroy(&fake.session);
	fake_session_destroy(&fake);
	return 0;
}

/* Defines a test with this fixture. */
#define TEST(test) UNIT_TEST_WITH(test, setup, teardown)

/* Returns `size` pseudo-random bytes, the same in every call. The caller frees them. */
static inline uint8_t *
pattern(size_t size)
{
	uint8_t *bytes = malloc(size);
	uint32_t x = 12345;

	for (size_t i = 0; i < size; i++) {
		x = x * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(x >> 24);
	}
	return bytes;
}

#endif /* COPY_FIXTURE_H */
