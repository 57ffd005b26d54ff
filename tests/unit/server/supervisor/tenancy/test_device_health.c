/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/base/log.h"
#include "server/supervisor/tenancy/device_health.h"
#include "tests/test.h"

#include <cuda.h>
#include <string.h>

static int
log_errors_only(void **state)
{
	(void)state;
	gpd_log_level = GPD_LOG_ERROR;
	return 0;
}

UNIT_TEST(an_event_that_needs_a_repair_makes_a_device_sick_once)
{
	static const struct {
		struct gpd_device_event event;
		const char *reason;
	} events[] = {
		{ { GPD_DEVICE_EVENT_XID, 48 }, "Xid 48: double-bit ECC error" },
		{ { GPD_DEVICE_EVENT_XID, 79 }, "Xid 79: the GPU has fallen off the bus" },
		{ { GPD_DEVICE_EVENT_XID, 95 }, "Xid 95: uncontained memory error" },
		{ { GPD_DEVICE_EVENT_DOUBLE_BIT_ECC, 0 }, "double-bit ECC error" },
		{ { GPD_DEVICE_EVENT_LOST, 0 }, "the GPU has fallen off the bus" },
	};

	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
		struct gpd_device_health health = { 0 };

		assert_true(gpd_device_health_handle(&health, 0, &events[i].event));
		assert_true(gpd_device_is_sick(&health));
		assert_string_equal(health.reason, events[i].reason);
		/* The first reason stays. */
		assert_false(gpd_device_health_handle(&health, 0, &events[0].event));
		assert_string_equal(health.reason, events[i].reason);
		assert_true(gpd_device_health_enable(&health));
		assert_false(gpd_device_is_sick(&health));
		assert_string_equal(health.reason, "");
		assert_false(gpd_device_health_enable(&health));
	}
}

UNIT_TEST(a_programs_fault_a_notice_and_an_unknown_event_change_nothing)
{
	static const uint32_t xids[] = { 0, 13, 31, 43, 45, 63, 94, 154, 255, 256, UINT32_MAX };
	const struct gpd_device_event unknown = { .kind = 77 };
	struct gpd_device_health health = { 0 };

	for (size_t i = 0; i < sizeof(xids) / sizeof(xids[0]); i++) {
		const struct gpd_device_event event = { GPD_DEVICE_EVENT_XID, xids[i] };

		assert_false(gpd_device_health_handle(&health, 0, &event));
	}
	assert_false(gpd_device_health_handle(&health, 0, &unknown));
	assert_false(gpd_device_is_sick(&health));
}

UNIT_TEST(the_third_context_in_a_row_that_fails_makes_a_device_sick)
{
	struct gpd_device_health health = { 0 };

	assert_false(gpd_device_health_context_failed(&health, 0, CUDA_ERROR_UNKNOWN));
	assert_false(gpd_device_health_context_failed(&health, 0, 0));
	gpd_device_health_context_created(&health);
	assert_false(gpd_device_health_context_failed(&health, 0, CUDA_ERROR_UNKNOWN));
	assert_false(gpd_device_health_context_failed(&health, 0, 0));
	/* Other processes use the device. */
	assert_false(gpd_device_health_context_failed(&health, 0, CUDA_ERROR_OUT_OF_MEMORY));
	assert_false(gpd_device_health_context_failed(&health, 0, CUDA_ERROR_DEVICE_UNAVAILABLE));
	assert_true(gpd_device_health_context_failed(&health, 0, CUDA_ERROR_UNKNOWN));
	assert_string_equal(health.reason, "no context can be created: CUDA error 999");
	assert_false(gpd_device_health_context_failed(&health, 0, CUDA_ERROR_UNKNOWN));
	/* An enabled device has three attempts again. */
	assert_true(gpd_device_health_enable(&health));
	assert_false(gpd_device_health_context_failed(&health, 0, 0));
	assert_false(gpd_device_health_context_failed(&health, 0, 0));
	assert_true(gpd_device_health_context_failed(&health, 0, 0));
	assert_string_equal(health.reason, "no context can be created: workers hang or crash");
}

UNIT_TEST(a_worker_that_has_run_sessions_only_makes_a_device_suspect)
{
	struct gpd_device_health health = { 0 };

	assert_false(gpd_device_health_suspect(&health, CUDA_ERROR_OUT_OF_MEMORY));
	assert_false(gpd_device_health_suspect(&health, CUDA_ERROR_DEVICE_UNAVAILABLE));
	for (int i = 0; i < 2 * GPD_DEVICE_FAILURES_MAX; i++)
		assert_true(gpd_device_health_suspect(&health, CUDA_ERROR_UNKNOWN));
	assert_false(gpd_device_is_sick(&health));
	gpd_device_health_context_created(&health);
	assert_false(health.suspect);
	/* An attempt without a result is not repeated without end. */
	assert_true(gpd_device_health_suspect(&health, 0));
	assert_false(gpd_device_health_context_failed(&health, 0, CUDA_ERROR_OUT_OF_MEMORY));
	assert_false(health.suspect);
	/* A device that is sick is tried no more. */
	assert_true(gpd_device_health_suspect(&health, CUDA_ERROR_UNKNOWN));
	for (int i = 0; i < GPD_DEVICE_FAILURES_MAX; i++)
		(void)gpd_device_health_context_failed(&health, 0, CUDA_ERROR_UNKNOWN);
	assert_true(gpd_device_is_sick(&health));
	assert_false(health.suspect);
	assert_false(gpd_device_health_suspect(&health, CUDA_ERROR_UNKNOWN));
}

UNIT_TEST_MAIN(log_errors_only, NULL)
