/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture for tests of host memory that kernels access: the fake wire layer (fake_wire.h) with a
 * daemon that supports it. Pinned memory then has a replica on the daemon's side, and the client's
 * coherence (client/host/coherence.h) keeps both equal.
 *
 * Threads: the test's thread.
 * Errors: failures fail the test.
 */
#ifndef COHERENCE_FIXTURE_H
#define COHERENCE_FIXTURE_H

#include "client/host/coherence.h"
#include "client/host/host_space.h"
#include "client/memory/address.h"
#include "client/memory/host_memory.h"
#include "gpc_calls.h"
#include "protocol/host_consistent_copy.h"
#include "protocol/host_diff_scan.h"
#include "tests/unit/client/fake_wire.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Returns the test's session. */
static inline struct gpc_session *
session(void)
{
	return fake.context->scope.session;
}

/* CMocka setup of a test; returns 0. */
static inline int
setup(void **state)
{
	int r = fake_wire_setup(state);

	fake_wire_allow_host();
	return r;
}

/* Returns new pinned memory in the range that kernels can access. The caller frees it with
 * gpc_cuMemFreeHost(). */
static inline uint8_t *
pinned(size_t size)
{
	uint8_t *host;

	CU(gpc_cuMemHostAlloc((void **)&host, size, 0));
	assert_in_range((uintptr_t)host, FAKE_WIRE_HOST, FAKE_WIRE_HOST + ((uint64_t)64 << 30));
	return host;
}

/* Returns the device address of pinned memory. */
static inline CUdeviceptr
reach(void *host)
{
	CUdeviceptr address;

	CU(gpc_cuMemHostGetDevicePointer_v2(&address, host, 0));
	return address;
}

/* Fetches the changes that kernels have made to host memory, as a call does that waits for the
 * GPU. */
static inline void
synchronize(void)
{
	fake.posted++;
	CU(gpc_coherence_fetch(session()));
}

/* Defines a test with this fixture. */
#define TEST(test) UNIT_TEST_WITH(test, setup, fake_wire_teardown)

#endif /* COHERENCE_FIXTURE_H */
