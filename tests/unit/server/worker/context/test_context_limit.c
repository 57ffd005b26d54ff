/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/context/context_limit.h"
#include "server/worker/device/device.h"
#include "server/worker/device/quiesce_jobs.h"
#include "tests/test.h"
#include "tests/unit/server/fake_session.h"

#define MIB (UINT64_C(1) << 20)
#define HEAP CU_LIMIT_MALLOC_HEAP_SIZE
#define STACK CU_LIMIT_STACK_SIZE
/* Threads that fit on the device. */
#define THREADS (2 * 1024)

static struct fake_session one, two;

static int
setup(void **state)
{
	struct gpd_device *device = &gpd_devices.all[0];

	fake_session_create(&one);
	fake_session_create(&two);
	one.session.account.entry->devices[0].allowed = 1;
	two.session.account.entry->devices[0].allowed = 1;
	gpd_devices.worn = NULL;
	device->multiprocessors = 2;
	device->threads_per_multiprocessor = 1024;
	device->limits[HEAP] = device->own_limits[HEAP] = 8 * MIB;
	device->limits[STACK] = device->own_limits[STACK] = 1024;
	return 0;
}

static int
teardown(void **state)
{
	gpd_context_limits_release(&one.session);
	gpd_context_limits_release(&two.session);
	gpd_quiesce_jobs_wait();
	fake_session_destroy(&one);
	fake_session_destroy(&two);
	return 0;
}

#define TEST(test) UNIT_TEST_WITH(test, setup, teardown)

static CUresult
request(struct fake_session *fake, CUlimit limit, uint64_t value)
{
	return gpd_context_limit_request(&fake->session, 0, limit, value);
}

static void
end(struct fake_session *fake)
{
	gpd_context_limits_release(&fake->session);
	gpd_quiesce_jobs_wait();
}

TEST(a_session_is_charged_for_what_exceeds_the_workers_own_value)
{
	assert_int_equal(request(&one, HEAP, 8 * MIB), CUDA_SUCCESS);
	assert_int_equal(fake_session_allocated(&one, 0), 0);
	assert_string_equal(fake_driver_calls, "");
	assert_int_equal(request(&one, HEAP, 20 * MIB), CUDA_SUCCESS);
	assert_int_equal(fake_session_allocated(&one, 0), 12 * MIB);
	assert_int_equal(request(&one, HEAP, 30 * MIB), CUDA_SUCCESS);
	assert_int_equal(fake_session_allocated(&one, 0), 22 * MIB);
	assert_int_equal(request(&one, HEAP, 10 * MIB), CUDA_SUCCESS);
	assert_int_equal(fake_session_allocated(&one, 0), 22 * MIB);
	assert_int_equal(request(&one, STACK, 4096), CUDA_SUCCESS);
	assert_int_equal(fake_session_allocated(&one, 0), 22 * MIB + 3072 * THREADS);
	assert_string_equal(fake_driver_calls, "cuCtxSetLimit 2 to 20971520\n"
					       "cuCtxSetLimit 2 to 31457280\n"
					       "cuCtxSetLimit 0 to 4096\n");
}

TEST(each_session_that_needs_a_limit_is_charged)
{
	assert_int_equal(request(&one, HEAP, 20 * MIB), CUDA_SUCCESS);
	assert_int_equal(request(&two, HEAP, 12 * MIB), CUDA_SUCCESS);
	assert_int_equal(fake_session_allocated(&two, 0), 4 * MIB);
	assert_int_equal(fake_driver_count_calls("cuCtxSetLimit"), 1);
}

TEST(a_limit_goes_back_to_what_other_sessions_need)
{
	assert_int_equal(request(&one, HEAP, 20 * MIB), CUDA_SUCCESS);
	assert_int_equal(request(&two, HEAP, 12 * MIB), CUDA_SUCCESS);
	end(&one);
	assert_int_equal(fake_driver_count_calls("cuCtxSetLimit 2 to 12582912\n"), 1);
	end(&two);
	assert_int_equal(fake_driver_count_calls("cuCtxSetLimit 2 to 8388608\n"), 1);
	assert_int_equal(gpd_devices.all[0].limits[HEAP], 8 * MIB);
	assert_null(gpd_devices.worn);
}

TEST(a_limit_that_another_session_needs_stays)
{
	assert_int_equal(request(&one, HEAP, 12 * MIB), CUDA_SUCCESS);
	assert_int_equal(request(&two, HEAP, 20 * MIB), CUDA_SUCCESS);
	end(&one);
	assert_int_equal(gpd_devices.all[0].limits[HEAP], 20 * MIB);
	assert_int_equal(fake_driver_count_calls("cuCtxSetLimit"), 2);
}

TEST(a_worker_whose_driver_does_not_lower_a_limit_is_worn)
{
	assert_int_equal(request(&one, HEAP, 20 * MIB), CUDA_SUCCESS);
	fake_driver_fail("cuCtxSetLimit", CUDA_ERROR_INVALID_VALUE, 0);
	end(&one);
	assert_string_equal(gpd_devices.worn, GPD_WORN_LIMIT);
	assert_int_equal(gpd_devices.all[0].limits[HEAP], 20 * MIB);
	/* Another session is charged for it all the same. */
	assert_int_equal(request(&two, HEAP, 20 * MIB), CUDA_SUCCESS);
	assert_int_equal(fake_session_allocated(&two, 0), 12 * MIB);
	assert_int_equal(fake_driver_count_calls("cuCtxSetLimit"), 2);
}

TEST(a_limit_above_a_quota_is_refused)
{
	one.session.account.entry->devices[0].memory_max = 10 * MIB;
	assert_int_equal(request(&one, HEAP, 18 * MIB), CUDA_SUCCESS);
	assert_int_equal(request(&one, HEAP, 19 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(request(&one, STACK, 4096), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(request(&one, HEAP, gpd_devices.all[0].memory), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(request(&one, STACK, UINT64_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(fake_session_allocated(&one, 0), 10 * MIB);
	assert_int_equal(fake_driver_count_calls("cuCtxSetLimit"), 1);
}

TEST(a_limit_that_the_driver_refuses_is_not_charged)
{
	assert_int_equal(request(&one, HEAP, 12 * MIB), CUDA_SUCCESS);
	fake_driver_fail("cuCtxSetLimit", CUDA_ERROR_INVALID_VALUE, 0);
	assert_int_equal(request(&one, HEAP, 20 * MIB), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(fake_session_allocated(&one, 0), 4 * MIB);
	fake_driver_fail("cuCtxSetLimit", CUDA_ERROR_INVALID_VALUE, 0);
	assert_int_equal(request(&two, HEAP, 20 * MIB), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(fake_session_allocated(&two, 0), 0);
	end(&one);
	assert_int_equal(gpd_devices.all[0].limits[HEAP], 8 * MIB);
}

UNIT_TEST_MAIN(NULL, NULL)
