/* SPDX-License-Identifier: Apache-2.0 */
/* Fixture for tests of host memory that kernels access: the fake wire layer (fake_wire.h) with
 * replicas of pinned memory on both sides. */
#ifndef MIRROR_FIXTURE_H
#define MIRROR_FIXTURE_H

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

static inline struct gpc_session *
session(void)
{
	return fake.context->scope.session;
}

static inline int
setup(void **state)
{
	int r = fake_wire_setup(state);

	fake_wire_allow_host();
	return r;
}

static inline uint8_t *
pinned(size_t size)
{
	uint8_t *host;

	CU(gpc_cuMemHostAlloc((void **)&host, size, 0));
	assert_in_range((uintptr_t)host, FAKE_WIRE_HOST, FAKE_WIRE_HOST + ((uint64_t)64 << 30));
	return host;
}

static inline CUdeviceptr
reach(void *host)
{
	CUdeviceptr address;

	CU(gpc_cuMemHostGetDevicePointer_v2(&address, host, 0));
	return address;
}

/* Waits for the GPU after work that may have changed host memory. */
static inline void
synchronize(void)
{
	fake.posted++;
	CU(gpc_coherence_fetch(session()));
}

#define TEST(test) UNIT_TEST_WITH(test, setup, fake_wire_teardown)

#endif /* MIRROR_FIXTURE_H */
