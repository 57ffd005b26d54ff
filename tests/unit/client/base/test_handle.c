/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/handle.h"
#include "tests/test.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

UNIT_TEST(handle_is_found_by_its_token_only_as_its_kind)
{
	struct gpc_handle handle;

	assert_int_equal(gpc_handle_add(GPC_KIND_STREAM, &handle), 0);
	assert_int_not_equal(handle.id, 0);
	assert_ptr_equal(gpc_handle_from_token(GPC_KIND_STREAM, handle.token), &handle);
	assert_null(gpc_handle_from_token(GPC_KIND_EVENT, handle.token));
	gpc_handle_remove(&handle);
}

UNIT_TEST(removed_handle_is_not_found_when_its_place_is_taken_again)
{
	struct gpc_handle first, second;
	void *token;

	assert_int_equal(gpc_handle_add(GPC_KIND_EVENT, &first), 0);
	token = first.token;
	gpc_handle_remove(&first);
	assert_null(gpc_handle_from_token(GPC_KIND_EVENT, token));
	assert_int_equal(gpc_handle_add(GPC_KIND_EVENT, &second), 0);

	assert_int_equal(second.id % (1 << 20), first.id % (1 << 20));
	assert_int_not_equal(second.id, first.id);
	assert_null(gpc_handle_from_token(GPC_KIND_EVENT, token));
	assert_ptr_equal(gpc_handle_from_token(GPC_KIND_EVENT, second.token), &second);
	gpc_handle_remove(&second);
}

UNIT_TEST(no_other_bits_are_a_handle)
{
	struct gpc_handle handle;
	uintptr_t token;

	assert_int_equal(gpc_handle_add(GPC_KIND_MODULE, &handle), 0);
	token = (uintptr_t)handle.token;
	for (int bit = 0; bit < 64; bit++)
		assert_null(gpc_handle_from_token(GPC_KIND_MODULE,
						  (void *)(token ^ (uintptr_t)1 << bit)));
	for (uintptr_t small = 0; small < 4096; small++)
		assert_null(gpc_handle_from_token(GPC_KIND_MODULE, (void *)small));
	assert_null(gpc_handle_from_token(GPC_KIND_MODULE, (void *)~(uintptr_t)0));
	assert_null(gpc_handle_from_token(GPC_KIND_MODULE, &handle));
	gpc_handle_remove(&handle);
}

/* Frameworks keep flags there. */
UNIT_TEST(low_bits_of_a_token_are_clear)
{
	struct gpc_handle handle;

	assert_int_equal(gpc_handle_add(GPC_KIND_STREAM, &handle), 0);
	assert_int_equal((uintptr_t)handle.token & 15, 0);
	gpc_handle_remove(&handle);
}

UNIT_TEST(objects_of_a_kind_end_before_the_index_does)
{
	const size_t most = (1 << 20) - 1;
	struct gpc_handle *handles = calloc(most + 1, sizeof(*handles));

	for (size_t i = 0; i < most; i++)
		assert_int_equal(gpc_handle_add(GPC_KIND_KERNEL, &handles[i]), 0);
	assert_int_not_equal(gpc_handle_add(GPC_KIND_KERNEL, &handles[most]), 0);
	assert_ptr_equal(gpc_handle_from_token(GPC_KIND_KERNEL, handles[most - 1].token),
			 &handles[most - 1]);
	gpc_handle_remove(&handles[5]);
	assert_int_equal(gpc_handle_add(GPC_KIND_KERNEL, &handles[most]), 0);
	for (size_t i = 0; i <= most; i++) {
		if (i != 5)
			gpc_handle_remove(&handles[i]);
	}
	free(handles);
}

static void
count_and_remove(void *object, void *arg)
{
	++*(int *)arg;
	gpc_handle_remove(object);
}

UNIT_TEST(each_visits_the_live_ones_which_may_go_meanwhile)
{
	struct gpc_handle handles[10];
	int count = 0;

	gpc_handle_each(GPC_KIND_LIBRARY, count_and_remove, &count);
	assert_int_equal(count, 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(gpc_handle_add(GPC_KIND_LIBRARY, &handles[i]), 0);
	gpc_handle_remove(&handles[3]);
	gpc_handle_each(GPC_KIND_LIBRARY, count_and_remove, &count);
	assert_int_equal(count, 9);
	assert_null(gpc_handle_from_token(GPC_KIND_LIBRARY, handles[0].token));
}

struct object {
	struct gpc_handle handle;
	int value;
};

/* A thread that has looked up a handle may still read it while another thread removes it. */
UNIT_TEST(memory_of_an_object_stays_and_is_the_next_ones)
{
	struct object *first = gpc_handle_new(GPC_KIND_POOL, sizeof(*first));
	struct object *second, *third;
	void *token;

	assert_non_null(first);
	token = first->handle.token;
	assert_int_equal(first->value, 0);
	assert_ptr_equal(gpc_handle_from_token(GPC_KIND_POOL, token), first);
	first->value = 1;
	second = gpc_handle_new(GPC_KIND_POOL, sizeof(*second));
	assert_ptr_not_equal(second, first);
	gpc_handle_remove(&first->handle);
	assert_null(gpc_handle_from_token(GPC_KIND_POOL, token));
	assert_int_equal(first->value, 1);

	third = gpc_handle_new(GPC_KIND_POOL, sizeof(*third));
	assert_ptr_equal(third, first);
	assert_int_equal(third->value, 0);
	assert_ptr_not_equal(third->handle.token, token);
	gpc_handle_remove(&second->handle);
	gpc_handle_remove(&third->handle);
}

static void *
come_and_go(void *arg)
{
	bool *good = arg;

	*good = true;
	for (int i = 0; i < 5000; i++) {
		struct gpc_handle a, b;

		if (gpc_handle_add(GPC_KIND_FUNCTION, &a) || gpc_handle_add(GPC_KIND_FUNCTION, &b))
			*good = false;
		if (gpc_handle_from_token(GPC_KIND_FUNCTION, a.token) != &a ||
		    gpc_handle_from_token(GPC_KIND_FUNCTION, b.token) != &b)
			*good = false;
		gpc_handle_remove(&a);
		if (gpc_handle_from_token(GPC_KIND_FUNCTION, a.token))
			*good = false;
		gpc_handle_remove(&b);
	}
	return NULL;
}

UNIT_TEST(threads_do_not_get_each_others_handles)
{
	pthread_t threads[4];
	bool good[4];

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, &good[i]), 0);
	for (int i = 0; i < 4; i++) {
		(void)pthread_join(threads[i], NULL);
		assert_true(good[i]);
	}
}

UNIT_TEST(second_removal_has_no_effect)
{
	struct gpc_handle removed, first, second;

	assert_int_equal(gpc_handle_add(GPC_KIND_STREAM, &removed), 0);
	gpc_handle_remove(&removed);
	gpc_handle_remove(&removed);
	assert_int_equal(gpc_handle_add(GPC_KIND_STREAM, &first), 0);
	assert_int_equal(gpc_handle_add(GPC_KIND_STREAM, &second), 0);
	assert_ptr_equal(gpc_handle_from_token(GPC_KIND_STREAM, first.token), &first);
	assert_ptr_equal(gpc_handle_from_token(GPC_KIND_STREAM, second.token), &second);
	gpc_handle_remove(&removed);
	assert_ptr_equal(gpc_handle_from_token(GPC_KIND_STREAM, first.token), &first);
	gpc_handle_remove(&first);
	gpc_handle_remove(&second);
}

UNIT_TEST(object_is_claimed_once)
{
	struct gpc_handle first, second;

	assert_int_equal(gpc_handle_add(GPC_KIND_STREAM, &first), 0);
	assert_false(gpc_handle_claim(GPC_KIND_EVENT, first.token));
	assert_true(gpc_handle_claim(GPC_KIND_STREAM, first.token));
	assert_false(gpc_handle_claim(GPC_KIND_STREAM, first.token));
	assert_ptr_equal(gpc_handle_from_token(GPC_KIND_STREAM, first.token), &first);
	gpc_handle_unclaim(&first);
	assert_true(gpc_handle_claim(GPC_KIND_STREAM, first.token));
	gpc_handle_remove(&first);
	assert_false(gpc_handle_claim(GPC_KIND_STREAM, first.token));
	/* The next object of the slot is another one. */
	assert_int_equal(gpc_handle_add(GPC_KIND_STREAM, &second), 0);
	assert_false(gpc_handle_claim(GPC_KIND_STREAM, first.token));
	assert_true(gpc_handle_claim(GPC_KIND_STREAM, second.token));
	gpc_handle_remove(&second);
}

UNIT_TEST_MAIN(NULL, NULL)
