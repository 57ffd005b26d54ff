/* SPDX-License-Identifier: Apache-2.0 */
#include "gpc_calls.h"
#include "tests/unit/client/fake_wire.h"

#include <unistd.h>

#define ORDINAL 3 /* of the fake's device */

static void
listen(CUasyncNotificationInfo *info, void *user_data, CUasyncCallbackHandle callback)
{
	abort();
}

FAKE_WIRE_TEST(a_notification_is_known_until_it_is_unregistered)
{
	CUasyncCallbackHandle first, second;

	CU(gpc_cuDeviceRegisterAsyncNotification(ORDINAL, listen, NULL, &first));
	CU(gpc_cuDeviceRegisterAsyncNotification(ORDINAL, listen, NULL, &second));
	assert_ptr_not_equal(first, second);
	CU(gpc_cuDeviceUnregisterAsyncNotification(ORDINAL, first));
	INVALID(gpc_cuDeviceUnregisterAsyncNotification(ORDINAL, first));
	INVALID(gpc_cuDeviceUnregisterAsyncNotification(ORDINAL, NULL));
	CU(gpc_cuDeviceUnregisterAsyncNotification(ORDINAL, second));

	INVALID(gpc_cuDeviceRegisterAsyncNotification(ORDINAL, NULL, NULL, &first));
	INVALID(gpc_cuDeviceRegisterAsyncNotification(ORDINAL, listen, NULL, NULL));
	assert_int_equal(gpc_cuDeviceRegisterAsyncNotification(ORDINAL + 1, listen, NULL, &first),
			 CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(gpc_cuDeviceUnregisterAsyncNotification(ORDINAL + 1, second),
			 CUDA_ERROR_INVALID_DEVICE);
}

FAKE_WIRE_TEST(a_process_runs_and_knows_of_no_other)
{
	CUprocessState process_state = CU_PROCESS_STATE_FAILED;

	CU(gpc_cuCheckpointProcessGetState(getpid(), &process_state));
	assert_int_equal(process_state, CU_PROCESS_STATE_RUNNING);
	assert_int_equal(gpc_cuCheckpointProcessGetState(getppid(), &process_state),
			 CUDA_ERROR_NOT_SUPPORTED);
	INVALID(gpc_cuCheckpointProcessGetState(getpid(), NULL));
	INVALID(gpc_cuCheckpointProcessGetState(0, &process_state));
	fake.enter = CUDA_ERROR_NOT_INITIALIZED;
	CU(gpc_cuCheckpointProcessGetState(getpid(), &process_state));
}

UNIT_TEST_MAIN(NULL, NULL)
