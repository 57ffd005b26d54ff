/* SPDX-License-Identifier: Apache-2.0 */
#include "client/context/context_storage.h"
#include "tests/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#define READERS 3
#define ROUNDS 2000
#define FORKS 50

static char contexts[64], keys[64];
#define CTX(n) ((CUcontext)(void *)&contexts[n])
#define KEY(n) ((void *)&keys[n])
#define VALUE(n) ((void *)(uintptr_t)(n))

static struct {
	int calls;
	CUcontext ctx;
	void *key;
	void *value;
} destroyed;

static void
destroy(CUcontext ctx, void *key, void *value)
{
	destroyed.calls++;
	destroyed.ctx = ctx;
	destroyed.key = key;
	destroyed.value = value;
}

static int
empty(void **state)
{
	for (size_t i = 0; i < sizeof(contexts); i++)
		gpc_context_storage_reset(CTX(i));
	destroyed.calls = 0;
	return 0;
}

static void
expect(CUcontext ctx, void *key, uintptr_t value)
{
	void *got = NULL;

	assert_int_equal(gpc_context_storage_get(&got, ctx, key), CUDA_SUCCESS);
	assert_ptr_equal(got, VALUE(value));
}

static void
expect_none(CUcontext ctx, void *key)
{
	void *got = &got;

	assert_int_equal(gpc_context_storage_get(&got, ctx, key), CUDA_ERROR_INVALID_HANDLE);
	assert_ptr_equal(got, &got);
}

static void
put(CUcontext ctx, void *key, uintptr_t value)
{
	assert_int_equal(gpc_context_storage_put(ctx, key, VALUE(value), destroy), CUDA_SUCCESS);
}

#define TEST(test) UNIT_TEST_WITH(test, empty, empty)

TEST(values_are_kept_by_context_and_key)
{
	expect_none(CTX(0), KEY(0));
	put(CTX(0), KEY(0), 1);
	put(CTX(0), KEY(1), 2);
	put(CTX(1), KEY(0), 3);

	for (int i = 0; i < 2; i++) {
		expect(CTX(0), KEY(0), 1);
		expect(CTX(0), KEY(1), 2);
		expect(CTX(1), KEY(0), 3);
	}
	expect_none(CTX(1), KEY(1));
}

TEST(more_keys_and_contexts_than_a_thread_remembers_are_kept)
{
	for (size_t i = 0; i < sizeof(keys); i++) {
		put(CTX(0), KEY(i), i + 1);
		if (i > 0)
			put(CTX(i), KEY(0), i + 1001);
	}
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof(keys); i++) {
			expect(CTX(0), KEY(i), i + 1);
			if (i > 0)
				expect(CTX(i), KEY(0), i + 1001);
		}
	}
}

TEST(later_value_takes_the_place_of_the_earlier)
{
	put(CTX(0), KEY(0), 1);
	expect(CTX(0), KEY(0), 1);
	put(CTX(0), KEY(0), 2);
	expect(CTX(0), KEY(0), 2);
	assert_int_equal(destroyed.calls, 0);
	assert_int_equal(gpc_context_storage_delete(CTX(0), KEY(0)), CUDA_SUCCESS);
	expect_none(CTX(0), KEY(0));
}

TEST(deleted_value_is_forgotten_without_its_destructor)
{
	put(CTX(0), KEY(0), 1);
	put(CTX(0), KEY(1), 2);
	expect(CTX(0), KEY(0), 1);
	assert_int_equal(gpc_context_storage_delete(CTX(0), KEY(0)), CUDA_SUCCESS);

	expect_none(CTX(0), KEY(0));
	expect(CTX(0), KEY(1), 2);
	assert_int_equal(gpc_context_storage_delete(CTX(0), KEY(0)), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(destroyed.calls, 0);
}

TEST(reset_destroys_the_values_of_its_context_alone)
{
	put(CTX(0), KEY(0), 1);
	put(CTX(1), KEY(0), 2);
	assert_int_equal(gpc_context_storage_put(CTX(0), KEY(1), VALUE(3), NULL), CUDA_SUCCESS);
	expect(CTX(0), KEY(0), 1);

	gpc_context_storage_reset(CTX(0));
	assert_int_equal(destroyed.calls, 1);
	assert_ptr_equal(destroyed.ctx, CTX(0));
	assert_ptr_equal(destroyed.key, KEY(0));
	assert_ptr_equal(destroyed.value, VALUE(1));
	expect_none(CTX(0), KEY(0));
	expect_none(CTX(0), KEY(1));
	expect(CTX(1), KEY(0), 2);

	gpc_context_storage_reset(CTX(0));
	assert_int_equal(destroyed.calls, 1);
}

static void
destroy_and_come_back(CUcontext ctx, void *key, void *value)
{
	destroy(ctx, key, value);
	(void)gpc_context_storage_delete(ctx, key);
	(void)gpc_context_storage_put(ctx, key, VALUE(9), NULL);
}

TEST(destructor_may_come_back)
{
	assert_int_equal(gpc_context_storage_put(CTX(0), KEY(0), VALUE(1), destroy_and_come_back),
			 CUDA_SUCCESS);
	gpc_context_storage_reset(CTX(0));
	assert_int_equal(destroyed.calls, 1);
	expect(CTX(0), KEY(0), 9);
}

static atomic_bool stop;

/* The writer only ever counts up. */
static void *
read_values(void *went_back_p)
{
	atomic_bool *went_back = went_back_p;
	uintptr_t last = 0;

	while (!atomic_load(&stop)) {
		void *value;

		if (gpc_context_storage_get(&value, CTX(0), KEY(0)) != CUDA_SUCCESS)
			continue;
		if ((uintptr_t)value < last)
			atomic_store(went_back, true);
		last = (uintptr_t)value;
	}
	return NULL;
}

TEST(no_thread_sees_a_value_after_a_later_one)
{
	pthread_t readers[READERS];
	atomic_bool went_back = false;

	atomic_store(&stop, false);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, read_values, &went_back), 0);
	for (uintptr_t round = 1; round <= ROUNDS; round++) {
		put(CTX(0), KEY(0), round);
		expect(CTX(0), KEY(0), round);
		if (round % 3 == 0)
			gpc_context_storage_reset(CTX(0));
	}
	atomic_store(&stop, true);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_join(readers[i], NULL), 0);
	assert_false(went_back);
	assert_int_equal(destroyed.calls, ROUNDS / 3);
}

static void *
put_and_delete(void *arg)
{
	while (!atomic_load(&stop)) {
		(void)gpc_context_storage_put(CTX(1), KEY(1), VALUE(1), NULL);
		(void)gpc_context_storage_delete(CTX(1), KEY(1));
	}
	return NULL;
}

static int
look_from_child(void)
{
	void *value;

	(void)alarm(10); /* ends the child if the lock were never released */
	if (gpc_context_storage_get(&value, CTX(0), KEY(0)) != CUDA_SUCCESS)
		return 1;
	return gpc_context_storage_delete(CTX(0), KEY(0)) != CUDA_SUCCESS;
}

TEST(forked_child_is_not_held_up_by_threads_of_its_parent)
{
	pthread_t writer;

	put(CTX(0), KEY(0), 1);
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&writer, NULL, put_and_delete, NULL), 0);
	for (int i = 0; i < FORKS; i++) {
		int status = -1;
		pid_t child = fork();

		if (child == 0)
			_exit(look_from_child());
		assert_true(child > 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(writer, NULL), 0);
}

UNIT_TEST_MAIN(NULL, NULL)
