/* SPDX-License-Identifier: Apache-2.0 */
#include "client/alloc/object_cache.h"
#include "tests/test.h"

static struct gpc_object_cache cache;
static char objects[8];
static int drops;
static uint64_t counted;

/* The objects are dropped in the order of their numbers. */
static void
drop(const struct gpc_cached *cached)
{
	assert_ptr_equal(cached->object, &objects[drops++]);
}

static const struct gpc_cached_kind kind = { .drop = drop, .count_max = 3, .bytes_max = 100 };
static const struct gpc_cached_kind other_kind = { .count_max = 3, .bytes_max = 100 };

static void
count(const struct gpc_cached *cached, uint64_t more)
{
	counted += more;
}

static int
setup(void **state)
{
	gpc_object_cache_init(&cache, count);
	drops = 0;
	counted = 0;
	return 0;
}

static void
put(const struct gpc_cached_kind *of, int object, uint64_t bytes, uint64_t tag)
{
	const struct gpc_cached cached = {
		.kind = of, .object = &objects[object], .bytes = bytes, .tag = tag
	};

	gpc_object_cache_put(&cache, &cached);
}

/* The number of the object; -1: none, -2: one is busy. */
static int
acquire(void *context, uint64_t bytes, uint64_t done)
{
	struct gpc_cached cached = { .kind = &kind, .context = context, .tag = done };
	bool busy;

	if (!gpc_object_cache_acquire(&cache, &cached, &bytes, &busy))
		return busy ? -2 : -1;
	return (int)((char *)cached.object - objects);
}

UNIT_TEST_WITH(the_newest_that_no_work_uses_is_acquired, setup, NULL)
{
	for (int i = 0; i < 3; i++)
		put(&kind, i, 10, (uint64_t)i + 1);
	put(&other_kind, 3, 11, 0);
	assert_int_equal(counted, 41);
	assert_int_equal(acquire(NULL, 11, 9), -1);
	assert_int_equal(acquire(objects, 10, 9), -1);
	assert_int_equal(acquire(NULL, 10, 0), -2);
	assert_int_equal(acquire(NULL, 10, 2), 1);
	assert_int_equal(acquire(NULL, 10, 2), 0);
	assert_int_equal(acquire(NULL, 10, 2), -2);
	assert_int_equal(acquire(NULL, 10, 3), 2);
	assert_int_equal(counted, 11);
	assert_int_equal(drops, 0);
}

static bool
is_of_kind(const struct gpc_cached *cached, const void *of)
{
	return cached->kind == of;
}

UNIT_TEST_WITH(the_oldest_of_the_kind_are_dropped_beyond_its_budget, setup, NULL)
{
	put(&other_kind, 7, 100, 0);
	for (int i = 0; i < 4; i++)
		put(&kind, i, 10, 0);
	assert_int_equal(drops, 1);
	put(&kind, 4, 90, 0);
	assert_int_equal(drops, 3);
	assert_int_equal(gpc_object_cache_bytes(&cache, is_of_kind, &kind), 100);
	assert_true(gpc_object_cache_drop(&cache, is_of_kind, &kind));
	assert_int_equal(drops, 5);
	assert_int_equal(counted, 100);
	assert_false(gpc_object_cache_drop(&cache, is_of_kind, &kind));
}

UNIT_TEST_MAIN(NULL, NULL)
