/* SPDX-License-Identifier: Apache-2.0 */
/* Device state that a session sees: the memory of its quota, and the processes of its tenant. */
#include "gpd_calls.h"
#include "protocol/device_state.h"
#include "server/worker/memory/memory.h"
#include "tests/test.h"
#include "tests/unit/server/fake_session.h"

#include <stdlib.h>

#define GIB ((uint64_t)1 << 30)
#define HERE 77
#define ELSEWHERE 78

static struct fake_session fake;

static int
setup(void **state)
{
	fake_session_create(&fake);
	fake.session.account.entry->machine = HERE;
	fake.session.account.entry->pid = 100;
	return gpd_memory_create(&fake.session);
}

static int
teardown(void **state)
{
	gpd_memory_unmap_all(&fake.session);
	gpd_memory_destroy(&fake.session);
	fake_session_destroy(&fake);
	return fake_driver_chunks;
}

static CUresult
ask(int device, unsigned int what, struct gp_device_state *device_state)
{
	struct gp_args_gpDeviceState args = { .device = device, .what = what };
	struct gp_reply_gpDeviceState reply = { 0 };
	CUresult result = gpd_gpDeviceState(&fake.session, &args, &reply);

	if (result == CUDA_SUCCESS)
		assert_true(gp_device_state_decode(device_state, reply.words, reply.texts,
						   reply.processes));
	free((void *)reply.words.data);
	free((void *)reply.texts.data);
	free((void *)reply.processes.data);
	return result;
}

static struct gpd_ledger_session *
another(uint64_t id, uint32_t tenant, uint64_t machine, uint32_t pid, uint64_t memory)
{
	struct gpd_ledger_session *session = gpd_ledger_open(fake.ledger, id, tenant, 0);

	assert_non_null(session);
	session->machine = machine;
	session->pid = pid;
	assert_true(gpd_ledger_charge(fake.ledger, session, 0, memory));
	return session;
}

#define TEST(test) UNIT_TEST_WITH(test, setup, teardown)

TEST(memory_is_the_quota)
{
	struct gp_device_state device_state;

	fake.session.account.entry->devices[0].memory_max = 2 * GIB;
	assert_int_equal(gpd_account_allocate(&fake.session.account, 0, GIB), CUDA_SUCCESS);
	assert_int_equal(ask(0, 0, &device_state), CUDA_SUCCESS);
	assert_int_equal(device_state.words[GP_STATE_MEMORY_TOTAL], 2 * GIB);
	assert_int_equal(device_state.words[GP_STATE_MEMORY_FREE], GIB);
	assert_true(device_state.words[GP_STATE_NVML] == GP_STATE_NONE);
	assert_int_equal(device_state.process_count, 0);
}

TEST(what_was_granted_and_is_not_used_is_free)
{
	struct gp_device_state device_state;

	fake.session.account.entry->devices[0].memory_max = GIB;
	assert_int_equal(gpd_account_allocate(&fake.session.account, 0, GIB), CUDA_SUCCESS);
	fake.session.account.entry->devices[0].allowance = GIB;
	assert_int_equal(ask(0, 0, &device_state), CUDA_SUCCESS);
	assert_int_equal(device_state.words[GP_STATE_MEMORY_FREE], GIB);
	assert_int_equal(ask(0, GP_STATE_PROCESSES, &device_state), CUDA_SUCCESS);
	assert_int_equal(device_state.process_count, 0);
}

TEST(processes_are_the_tenants_on_the_same_machine)
{
	struct gp_device_state device_state;

	gpd_ledger_add_tenant(fake.ledger, 1, "other");
	(void)another(2, 0, HERE, 102, GIB);
	(void)another(3, 0, ELSEWHERE, 103, GIB);
	(void)another(4, 1, HERE, 104, GIB);
	(void)another(5, 0, HERE, 105, 0);
	another(6, 0, HERE, 106, GIB / 2)->devices[0].allowance = GIB / 2;
	assert_int_equal(ask(0, GP_STATE_PROCESSES, &device_state), CUDA_SUCCESS);
	assert_int_equal(device_state.process_count, 1);
	assert_int_equal(device_state.processes[0].pid, 102);
	assert_int_equal(device_state.processes[0].memory, GIB);

	assert_int_equal(gpd_account_allocate(&fake.session.account, 0, GIB), CUDA_SUCCESS);
	assert_int_equal(ask(0, GP_STATE_PROCESSES, &device_state), CUDA_SUCCESS);
	assert_int_equal(device_state.process_count, 2);
	assert_int_equal(device_state.processes[0].pid, 100);
}

TEST(times_are_of_the_same_processes)
{
	struct gp_device_state device_state;

	another(2, 0, HERE, 102, GIB)->devices[0].gpu_ns = 12345;
	another(3, 0, ELSEWHERE, 103, GIB)->devices[0].gpu_ns = 1;
	another(5, 0, HERE, 105, 0)->devices[0].gpu_ns = 1;
	assert_int_equal(ask(0, GP_STATE_TIMES, &device_state), CUDA_SUCCESS);
	assert_int_equal(device_state.process_count, 1);
	assert_int_equal(device_state.processes[0].pid, 102);
	assert_int_equal(device_state.processes[0].gpu_ns, 12345);
	assert_int_equal(ask(0, GP_STATE_TIMES | GP_STATE_PROCESSES, &device_state),
			 CUDA_ERROR_INVALID_VALUE);
}

TEST(a_device_that_is_not_the_sessions_is_not_told_of)
{
	struct gp_device_state device_state;

	fake.session.account.entry->devices[1].allowed = 0;
	assert_int_equal(ask(1, GP_STATE_PROCESSES | GP_STATE_SENSORS, &device_state),
			 CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(ask(99, GP_STATE_PROCESSES, &device_state), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(ask(-1, GP_STATE_SENSORS, &device_state), CUDA_ERROR_INVALID_DEVICE);
}

UNIT_TEST_MAIN(NULL, NULL)
