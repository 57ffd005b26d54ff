/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture for tests of contexts: an initialized client with two devices and a scripted daemon
 * (fake_daemon.h).
 *
 * Ownership: `fixture` belongs to the setup and teardown of the test.
 * Threads: the test's thread.
 */
#ifndef CONTEXT_FIXTURE_H
#define CONTEXT_FIXTURE_H

#include "client/context/context_storage.h"
#include "client/context/device.h"
#include "client/context/lifecycle.h"
#include "client/entry/context_parts.h"
#include "gpc_calls.h"
#include "tests/test.h"
#include "tests/unit/client/fake_daemon.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
	struct fake_daemon daemon;
	struct gpc_session *session;
};

static struct fixture fixture;

/* CMocka setup and teardown of a test; return 0. */
static inline int
set_up(void **state)
{
	static int32_t attributes[CU_DEVICE_ATTRIBUTE_MAX];
	static uint8_t uuids[2][16] = { { 1, 2 }, { 3, 4 } };
	static uint64_t limits[] = { 1024, 1 << 20, 8 << 20 };
	struct gpc_device_source sources[2];
	Gpupool__Device devices[2];

	(void)unsetenv("CUDA_VISIBLE_DEVICES");
	memset(&fixture, 0, sizeof(fixture));
	fake_daemon_start(&fixture.daemon, "tcp", 100, &fixture.session);
	attributes[CU_DEVICE_ATTRIBUTE_WARP_SIZE] = 32;
	attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = 9;
	attributes[CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS] = 1;
	for (int i = 0; i < 2; i++) {
		gpupool__device__init(&devices[i]);
		devices[i].name = (char *)(i ? "the second" : "the first");
		devices[i].uuid = (ProtobufCBinaryData){ 16, uuids[i] };
		devices[i].total_memory = (uint64_t)(i + 1) << 30;
		devices[i].attributes = attributes;
		devices[i].n_attributes = 100;
		devices[i].limits = limits;
		devices[i].n_limits = 3;
		devices[i].pci_bus = 0x3b + i;
		devices[i].priority_greatest = -5;
		devices[i].ordinal = i;
		sources[i] = (struct gpc_device_source){ .device = &devices[i],
							 .session = fixture.session };
	}
	gpc_context_parts_set();
	assert_int_equal(gpc_devices_create(sources, 2), 0);
	atomic_store(&gpc_lifecycle, CUDA_SUCCESS);
	return 0;
}

static inline int
tear_down(void **state)
{
	atomic_store(&gpc_lifecycle, CUDA_ERROR_NOT_INITIALIZED);
	fake_daemon_stop(&fixture.daemon, fixture.session);
	gpc_devices_destroy();
	return 0;
}

/* Waits until everything that was posted before has arrived, and returns the number of `call`
 * records that the daemon has received. */
static inline size_t
received(uint16_t call)
{
	return fake_daemon_received(&fixture.daemon, call);
}

/* Returns the current context, or NULL. */
static inline CUcontext
current(void)
{
	CUcontext context = (CUcontext)1;

	assert_int_equal(gpc_cuCtxGetCurrent(&context), CUDA_SUCCESS);
	return context;
}

/* Defines a test with this fixture. */
#define TEST(test) UNIT_TEST_WITH(test, set_up, tear_down)

#endif /* CONTEXT_FIXTURE_H */
