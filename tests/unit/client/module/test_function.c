/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel settings and attributes: which calls are sent, and which of them wait. */
#include "tests/unit/client/launch_fixture.h"

static CUresult
launch_shared(unsigned int shared)
{
	return gpc_cuLaunchKernel(fixture.kernel, 1, 1, 1, 32, 1, 1, shared, NULL, NULL, NULL);
}

LAUNCH_TEST(dynamic_shared_memory_is_allowed_without_waiting)
{
	int value;

	assert_int_equal(launch_shared(SHARED_DEFAULT + 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(allow_shared(SHARED_MOST - SHARED_STATIC), CUDA_SUCCESS);
	assert_int_equal(launch_shared(SHARED_DEFAULT + 1), CUDA_SUCCESS);
	assert_int_equal(gpc_cuFuncGetAttribute(&value,
						CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
						fixture.kernel),
			 CUDA_SUCCESS);
	assert_int_equal(value, SHARED_MOST - SHARED_STATIC);
	/* The same again is nothing. */
	assert_int_equal(allow_shared(SHARED_MOST - SHARED_STATIC), CUDA_SUCCESS);
	assert_int_equal(allow_shared(1000), CUDA_SUCCESS);
	assert_int_equal(launch_shared(1001), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(received(GP_CALL_gpFunctionAttribute), 2);
	assert_int_equal(received(GP_CALL_cuFuncSetAttribute), 0);
	assert_int_equal(received(GP_CALL_cuFuncGetAttribute), 0);
}

LAUNCH_TEST(what_may_be_refused_is_waited_for)
{
	assert_int_equal(allow_shared(SHARED_MOST - SHARED_STATIC + 1), CUDA_SUCCESS);
	assert_int_equal(allow_shared(-1), CUDA_SUCCESS);
	assert_int_equal(set(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101),
			 CUDA_SUCCESS);
	assert_int_equal(set(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 2), CUDA_SUCCESS);
	assert_int_equal(set(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_cuFuncSetAttribute), 5);
	/* But not twice. */
	assert_int_equal(set(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_cuFuncSetAttribute), 5);
	assert_int_equal(received(GP_CALL_gpFunctionAttribute), 0);
}

LAUNCH_TEST(what_libraries_set_is_posted)
{
	assert_int_equal(set(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 100),
			 CUDA_SUCCESS);
	assert_int_equal(set(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpFunctionAttribute), 2);
	assert_int_equal(received(GP_CALL_cuFuncSetAttribute), 0);
}

LAUNCH_TEST(attributes_are_asked_together)
{
	int value;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			gpc_cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, fixture.kernel),
			CUDA_SUCCESS);
		assert_int_equal(value, FIRST_VALUE + CU_FUNC_ATTRIBUTE_NUM_REGS);
		assert_int_equal(gpc_cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
							fixture.kernel),
				 CUDA_SUCCESS);
		assert_int_equal(value, FIRST_VALUE + CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
	}
	assert_int_equal(received(GP_CALL_gpFunctionAttributes), 1);
	/* The driver does not say it. */
	assert_int_equal(
		gpc_cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_PTX_VERSION, fixture.kernel),
		CUDA_SUCCESS);
	assert_int_equal(value, NUMBER);
	assert_int_equal(received(GP_CALL_cuFuncGetAttribute), 1);
}

LAUNCH_TEST(older_daemon_is_asked)
{
	fake_daemon_lacks(fixture.session, GP_CALL_gpFunctionAttribute);
	assert_int_equal(allow_shared(60000), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_cuFuncSetAttribute), 1);
}

/* Of a library that is used on two devices of one daemon. */
LAUNCH_TEST(device_that_differs_is_asked)
{
	const CUfunction_attribute dynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
	CUkernel kernel = (CUkernel)fixture.kernel;
	int value;

	assert_int_equal(gpc_cuKernelSetAttribute(dynamic, 60000, kernel, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuKernelSetAttribute(dynamic, 60000, kernel, 1), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpFunctionAttribute), 2);
	assert_int_equal(gpc_cuKernelGetAttribute(&value, dynamic, kernel, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuKernelGetAttribute(&value, dynamic, kernel, 1), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_cuFuncGetAttribute), 2);
}

LAUNCH_TEST(settings_go_with_the_context)
{
	CUcontext context;

	assert_int_equal(allow_shared(60000), CUDA_SUCCESS);
	assert_int_equal(gpc_cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
	assert_int_equal(allow_shared(60000), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpFunctionAttribute), 2);
}

LAUNCH_TEST(setting_is_part_of_the_question)
{
	assert_int_equal(launch_together(fixture.kernel, 8), CUDA_SUCCESS);
	assert_int_equal(allow_shared(60000), CUDA_SUCCESS);
	assert_int_equal(launch_together(fixture.kernel, 8), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpLaunchChecked), 2);
	assert_int_equal(allow_shared(SHARED_DEFAULT), CUDA_SUCCESS);
	assert_int_equal(launch_together(fixture.kernel, 8), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpLaunchChecked), 2);
	assert_int_equal(gpc_cuFuncSetCacheConfig(fixture.kernel, CU_FUNC_CACHE_PREFER_L1),
			 CUDA_SUCCESS);
	assert_int_equal(gpc_cuFuncSetCacheConfig(fixture.kernel, (CUfunc_cache)4),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(launch_together(fixture.kernel, 8), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpLaunchChecked), 3);
}

UNIT_TEST_MAIN(NULL, NULL)
