/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: the primary one, those that are made, and each thread's stack of them. */
#include "tests/unit/client/context_fixture.h"

TEST(nothing_works_before_cuinit)
{
	CUcontext context;
	int count;

	atomic_store(&gpc_lifecycle, CUDA_ERROR_NOT_INITIALIZED);
	assert_int_equal(gpc_cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
	assert_int_equal(gpc_cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_ERROR_NOT_INITIALIZED);
	assert_int_equal(gpc_cuDevicePrimaryCtxRetain(&context, 0), CUDA_ERROR_NOT_INITIALIZED);
}

TEST(thread_without_a_context_is_told_so)
{
	CUdevice device;

	assert_null(current());
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(gpc_cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(gpc_cuCtxPopCurrent_v2(NULL), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(gpc_cuCtxPushCurrent_v2(NULL), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(primary_context_is_one_and_counted)
{
	CUcontext first, second;
	unsigned int flags;
	int active;

	assert_int_equal(gpc_cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
	assert_false(active);
	assert_int_equal(gpc_cuDevicePrimaryCtxRetain(&first, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuDevicePrimaryCtxRetain(&second, 0), CUDA_SUCCESS);
	assert_ptr_equal(first, second);
	assert_int_equal(gpc_cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
	assert_true(active);
	assert_null(current());
	assert_int_equal(received(GP_CALL_gpContextMake), 0);
	assert_int_equal(gpc_cuCtxSetCurrent(first), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpContextMake), 1);
	assert_int_equal(gpc_cuCtxSetCurrent(NULL), CUDA_SUCCESS);

	assert_int_equal(gpc_cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpContextDestroy), 0);
	assert_int_equal(gpc_cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpContextDestroy), 1);
	assert_int_equal(gpc_cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(gpc_cuDevicePrimaryCtxGetState(0, &flags, &active), CUDA_SUCCESS);
	assert_false(active);
}

TEST(primary_context_can_be_current_before_it_is_retained)
{
	CUcontext primary = gpc_device_get(1)->primary->handle.token;
	CUdevice device;

	assert_int_equal(gpc_cuCtxSetCurrent(primary), CUDA_SUCCESS);
	assert_ptr_equal(current(), primary);
	assert_int_equal(gpc_cuCtxGetDevice(&device), CUDA_SUCCESS);
	assert_int_equal(device, 1);
	assert_int_equal(received(GP_CALL_gpContextMake), 0);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpContextMake), 1);
}

static int
refuse_contexts(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
		size_t size)
{
	if (header->call == GP_CALL_gpContextMake)
		fake_daemon_note_error_of(daemon, CUDA_ERROR_OUT_OF_MEMORY, false, header->call);
	return fake_daemon_answer(daemon, header, fields, size);
}

TEST(context_that_the_daemon_has_no_room_for_is_told_by_the_next_call_that_waits)
{
	CUcontext primary = gpc_device_get(0)->primary->handle.token;

	struct gp_args_gpFence args = { 0 };

	fixture.daemon.answer = refuse_contexts;
	assert_int_equal(gpc_cuCtxSetCurrent(primary), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	assert_int_equal(gpc_wait_gpFence(NULL, &args), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(received(GP_CALL_gpContextMake), 1);
}

/* A daemon of before, which maps the heap with it and is waited for. */
static int
refuse_creations(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
		 size_t size)
{
	if (header->call != GP_CALL_gpContextCreate)
		return fake_daemon_answer(daemon, header, fields, size);
	fake_daemon_reply(daemon, header, CUDA_ERROR_OUT_OF_MEMORY, NULL, 0);
	return 0;
}

TEST(context_that_an_old_daemon_has_no_room_for_works_once_there_is_some)
{
	CUcontext primary = gpc_device_get(0)->primary->handle.token;

	fake_daemon_lacks(fixture.session, GP_CALL_gpContextMake);
	fixture.daemon.answer = refuse_creations;
	assert_int_equal(gpc_cuCtxSetCurrent(primary), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_ERROR_OUT_OF_MEMORY);
	assert_null(gpc_device_get(0)->primary->legacy);

	fixture.daemon.answer = fake_daemon_answer;
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpContextCreate), 3);
	assert_int_equal(received(GP_CALL_gpContextMake), 0);
}

TEST(context_that_the_daemon_has_to_create_first_is_waited_for)
{
	CUcontext primary = gpc_device_get(0)->primary->handle.token, context;

	atomic_store(&gpc_device_get(0)->no_context, true);
	fixture.daemon.answer = refuse_creations;
	assert_int_equal(gpc_cuCtxSetCurrent(primary), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_ERROR_OUT_OF_MEMORY);
	fixture.daemon.answer = fake_daemon_answer;
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpContextCreate), 2);
	assert_int_equal(received(GP_CALL_gpContextMake), 0);
	/* It exists now, and the next one is posted. */
	assert_int_equal(gpc_cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpContextCreate), 2);
	assert_int_equal(received(GP_CALL_gpContextMake), 1);
}

/* Memory that the session has already is mapped with the first context, and nobody waits. */
TEST(granted_memory_comes_with_the_first_context)
{
	struct gpc_session_facts *facts =
		(struct gpc_session_facts *)gpc_session_facts(fixture.session);
	CUcontext context;

	facts->window_base = (uint64_t)1 << 44;
	facts->window_size = (uint64_t)1 << 30;
	facts->granularity = 2 << 20;
	facts->heap_size = 4 << 20;
	atomic_store(&gpc_device_get(1)->granted, 4 << 20);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(gpc_cuCtxCreate_v2(&context, 0, 1), CUDA_SUCCESS);
		assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	}
	assert_int_equal(received(GP_CALL_gpContextMake), 2);
	assert_int_equal(received(GP_CALL_gpMemoryUse), 1);
	assert_int_equal(received(GP_CALL_gpContextCreate), 0);
}

TEST(context_is_announced_once_before_its_first_use)
{
	CUcontext context;
	CUstream stream;

	assert_int_equal(gpc_cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSetCurrent(context), CUDA_SUCCESS);
	assert_int_equal(gpc_cuStreamCreate(&stream, 0), CUDA_SUCCESS);

	assert_int_equal(received(GP_CALL_cuStreamCreateWithPriority), 1);
	assert_int_equal(fixture.daemon.records[0].header.call, GP_CALL_gpContextMake);
	assert_int_equal(fixture.daemon.records[0].header.context, 0);
	assert_int_equal(fixture.daemon.records[1].header.call, GP_CALL_cuStreamCreateWithPriority);
	assert_int_equal(fixture.daemon.records[1].header.context,
			 gpc_device_get(0)->primary->handle.id);
}

static void
stored(CUcontext context, void *key, void *value)
{
	++*(int *)value;
}

TEST(reset_primary_context_works_again_when_retained_again)
{
	CUcontext context, again;
	int destroyed = 0;
	void *value;

	assert_int_equal(gpc_cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSetCurrent(context), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	assert_int_equal(gpc_context_storage_put(context, &fixture, &destroyed, stored),
			 CUDA_SUCCESS);
	assert_int_equal(gpc_cuDevicePrimaryCtxReset_v2(0), CUDA_SUCCESS);

	assert_int_equal(destroyed, 1);
	assert_int_not_equal(gpc_context_storage_get(&value, context, &fixture), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	assert_ptr_equal(current(), context);
	assert_int_equal(gpc_cuDevicePrimaryCtxRetain(&again, 0), CUDA_SUCCESS);
	assert_ptr_equal(again, context);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpContextMake), 2);
	/* Both uses are to be given back, in spite of the reset. */
	assert_int_equal(gpc_cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
}

TEST(created_context_is_pushed_and_destroying_it_pops_it)
{
	CUcontext outer, inner, popped;

	assert_int_equal(gpc_cuCtxCreate_v2(&outer, CU_CTX_SCHED_SPIN, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxCreate_v2(&inner, 0, 1), CUDA_SUCCESS);
	assert_ptr_not_equal(outer, inner);
	assert_ptr_equal(current(), inner);
	assert_int_equal(gpc_cuCtxDestroy_v2(inner), CUDA_SUCCESS);
	assert_ptr_equal(current(), outer);
	assert_int_equal(gpc_cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
	assert_ptr_equal(popped, outer);
	assert_null(current());

	assert_int_equal(gpc_cuCtxDestroy_v2(outer), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSetCurrent(outer), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(gpc_cuCtxDestroy_v2(outer), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(received(GP_CALL_gpContextDestroy), 2);
}

static void *
destroy_in_thread(void *context)
{
	return (void *)(uintptr_t)gpc_cuCtxDestroy_v2(context);
}

TEST(context_destroyed_by_another_thread_is_told_of)
{
	CUcontext context;
	pthread_t thread;
	void *result;

	assert_int_equal(gpc_cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
	assert_int_equal(pthread_create(&thread, NULL, destroy_in_thread, context), 0);
	(void)pthread_join(thread, &result);
	assert_int_equal((CUresult)(uintptr_t)result, CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	assert_int_equal(gpc_cuCtxPopCurrent_v2(NULL), CUDA_SUCCESS);
}

TEST(stack_is_as_deep_as_it_needs_to_be)
{
	CUcontext contexts[2] = { gpc_device_get(0)->primary->handle.token,
				  gpc_device_get(1)->primary->handle.token };

	for (int i = 0; i < 100; i++)
		assert_int_equal(gpc_cuCtxPushCurrent_v2(contexts[i % 2]), CUDA_SUCCESS);
	for (int i = 99; i >= 0; i--) {
		CUcontext popped;

		assert_int_equal(gpc_cuCtxPopCurrent_v2(&popped), CUDA_SUCCESS);
		assert_ptr_equal(popped, contexts[i % 2]);
	}
	assert_null(current());
}

TEST(set_replaces_the_top_and_null_pops_it)
{
	CUcontext first = gpc_device_get(0)->primary->handle.token;
	CUcontext second = gpc_device_get(1)->primary->handle.token;

	assert_int_equal(gpc_cuCtxPushCurrent_v2(first), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxPushCurrent_v2(first), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSetCurrent(second), CUDA_SUCCESS);
	assert_ptr_equal(current(), second);
	assert_int_equal(gpc_cuCtxSetCurrent(NULL), CUDA_SUCCESS);
	assert_ptr_equal(current(), first);
	assert_int_equal(gpc_cuCtxSetCurrent(NULL), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSetCurrent(NULL), CUDA_SUCCESS);
	assert_null(current());
}

static void *
current_in_thread(void *arg)
{
	return current();
}

TEST(current_context_is_the_threads_own)
{
	pthread_t thread;
	void *other;

	assert_int_equal(gpc_cuCtxSetCurrent(gpc_device_get(0)->primary->handle.token),
			 CUDA_SUCCESS);
	assert_int_equal(pthread_create(&thread, NULL, current_in_thread, NULL), 0);
	(void)pthread_join(thread, &other);
	assert_null(other);
}

/* What the destructor of a thread's own key finds, in each of its rounds. */
struct leaving {
	pthread_key_t key;
	int rounds;
	CUcontext popped[3];
	CUresult last, worked;
};

static void
use_contexts_at_the_end(void *arg)
{
	struct leaving *leaving = arg;
	CUcontext context = gpc_device_get(0)->primary->handle.token;

	if (leaving->rounds++ == 0) {
		for (int i = 0; i < 3; i++)
			leaving->last = gpc_cuCtxPopCurrent_v2(&leaving->popped[i]);
	}
	for (int i = 0; i < 40; i++)
		leaving->worked |= gpc_cuCtxPushCurrent_v2(context);
	for (int i = 0; i < 20; i++)
		leaving->worked |= gpc_cuCtxPopCurrent_v2(NULL);
	if (leaving->rounds < 3)
		(void)pthread_setspecific(leaving->key, leaving);
}

static void *
leave_contexts_on_the_stack(void *arg)
{
	struct leaving *leaving = arg;

	(void)gpc_cuCtxPushCurrent_v2(gpc_device_get(0)->primary->handle.token);
	(void)gpc_cuCtxPushCurrent_v2(gpc_device_get(1)->primary->handle.token);
	/* Made after the library's, so its destructor runs after the library's, too. */
	(void)pthread_key_create(&leaving->key, use_contexts_at_the_end);
	(void)pthread_setspecific(leaving->key, leaving);
	return NULL;
}

TEST(stack_outlives_the_threads_own_destructors)
{
	struct leaving leaving = { .rounds = 0 };
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, leave_contexts_on_the_stack, &leaving), 0);
	(void)pthread_join(thread, NULL);
	(void)pthread_key_delete(leaving.key);
	assert_int_equal(leaving.rounds, 3);
	assert_ptr_equal(leaving.popped[0], gpc_device_get(1)->primary->handle.token);
	assert_ptr_equal(leaving.popped[1], gpc_device_get(0)->primary->handle.token);
	assert_int_equal(leaving.last, CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(leaving.worked, CUDA_SUCCESS);
}

TEST(attached_context_is_destroyed_by_the_last_detach)
{
	CUcontext context, same;

	assert_int_equal(gpc_cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxAttach(&same, 0), CUDA_SUCCESS);
	assert_ptr_equal(same, context);
	assert_int_equal(gpc_cuCtxDetach(context), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxDetach(context), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
}

TEST(contexts_have_numbers_of_their_own)
{
	unsigned long long first, second;
	CUcontext context;

	assert_int_equal(gpc_cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxGetId(NULL, &first), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxGetId(gpc_device_get(0)->primary->handle.token, &second),
			 CUDA_SUCCESS);
	assert_true(first != second);
	assert_int_equal(gpc_cuCtxDestroy_v2(context), CUDA_SUCCESS);
}

TEST(bad_arguments_have_the_documented_errors)
{
	CUcontext context;
	unsigned int flags;
	int value;

	assert_int_equal(gpc_cuCtxCreate_v2(NULL, 0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuCtxCreate_v2(&context, 0x1000, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuCtxCreate_v2(&context, 3, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuCtxCreate_v2(&context, 0, 2), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(gpc_cuCtxSetCurrent((CUcontext)0x1234), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(gpc_cuCtxDestroy_v2(gpc_device_get(0)->primary->handle.token),
			 CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(gpc_cuDevicePrimaryCtxRetain(&context, -1), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(gpc_cuDevicePrimaryCtxGetState(0, &flags, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuDevicePrimaryCtxSetFlags_v2(0, 0x100), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuDeviceGet(&value, 2), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(gpc_cuDeviceGetAttribute(&value, 0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuDeviceGetName(NULL, 10, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST(sticky_error_is_what_contexts_answer_but_not_devices)
{
	CUcontext context;
	int value;

	assert_int_equal(gpc_cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
	gpc_session_fail(fixture.session, CUDA_ERROR_LAUNCH_FAILED, "test");
	assert_int_equal(gpc_cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
	assert_int_equal(gpc_cuCtxCreate_v2(&context, 0, 0), CUDA_ERROR_LAUNCH_FAILED);
	assert_int_equal(gpc_cuDeviceGetCount(&value), CUDA_SUCCESS);
	assert_int_equal(gpc_cuCtxDestroy_v2(context), CUDA_SUCCESS);
}

#define PLACES (1u << 20)

/* Which streams the daemon has, by the index in their names; as it would, refuses a second one. */
struct places {
	uint8_t taken[PLACES];
	bool broken;
};

static int
keep_places(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
	    size_t size)
{
	struct places *places = daemon->arg;
	uint32_t id = 0;

	if (size >= sizeof(id))
		memcpy(&id, fields, sizeof(id));
	if (header->call == GP_CALL_cuStreamCreateWithPriority) {
		if (places->taken[id % PLACES]++)
			places->broken = true;
	} else if (header->call == GP_CALL_cuStreamDestroy_v2) {
		places->taken[id % PLACES]--;
	}
	return fake_daemon_answer(daemon, header, fields, size);
}

static void *
streams_come_and_go(void *context)
{
	for (int i = 0; i < 2000; i++) {
		CUstream stream;

		if (gpc_cuCtxSetCurrent(context) != CUDA_SUCCESS ||
		    gpc_cuStreamCreate(&stream, CU_STREAM_DEFAULT) != CUDA_SUCCESS ||
		    gpc_cuStreamDestroy_v2(stream) != CUDA_SUCCESS)
			return "failed";
	}
	return NULL;
}

TEST(name_of_a_destroyed_stream_is_given_again_only_when_the_daemon_knows)
{
	struct places *places = calloc(1, sizeof(*places));
	pthread_t threads[4];
	CUcontext context;

	fixture.daemon.arg = places;
	fixture.daemon.answer = keep_places;
	assert_int_equal(gpc_cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, streams_come_and_go, context),
				 0);
	for (int i = 0; i < 4; i++) {
		void *failed;

		(void)pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	assert_true(received(GP_CALL_cuStreamCreateWithPriority) == 8000);
	assert_false(places->broken);
	assert_int_equal(gpc_cuCtxDestroy_v2(context), CUDA_SUCCESS);
	assert_int_equal(received(GP_CALL_gpContextDestroy), 1);
	free(places);
}

UNIT_TEST_MAIN(NULL, NULL)
