/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/query_cache.h"
#include "tests/test.h"

#define MAX 64

struct query {
	uint64_t revision;
	uint32_t call, words[3];
};

static struct gpc_query_cache cache = GPC_QUERY_CACHE(MAX);

static bool
find(const struct query *query, uint64_t *reply)
{
	return gpc_query_cache_find(&cache, query, sizeof(*query), reply, sizeof(*reply));
}

static void
put(const struct query *query, uint64_t reply)
{
	gpc_query_cache_put(&cache, query, sizeof(*query), &reply, sizeof(reply));
}

UNIT_TEST(the_oldest_reply_is_dropped_when_the_cache_is_full)
{
	struct query query = { .call = 7, .words = { 1, 2, 3 } }, other = query;
	uint64_t reply = 0;

	assert_false(find(&query, &reply));
	put(&query, 5);
	assert_true(find(&query, &reply));
	assert_int_equal(reply, 5);
	for (uint32_t i = 1; i <= MAX; i++) {
		other.words[2] = 3 + i;
		assert_false(find(&other, &reply));
		assert_true(find(&query, &reply));
		put(&other, i);
	}
	assert_false(find(&query, &reply));
	assert_true(find(&other, &reply));
	assert_int_equal(reply, MAX);
	gpc_query_cache_fini(&cache);
	cache = (struct gpc_query_cache)GPC_QUERY_CACHE(MAX);
}

UNIT_TEST(a_newer_reply_replaces_the_one_to_the_same_query)
{
	const struct query query = { .call = 7 };
	uint64_t reply;

	put(&query, 1);
	put(&query, 2);
	assert_true(find(&query, &reply));
	assert_int_equal(reply, 2);
}

UNIT_TEST(a_reply_of_an_older_revision_is_not_found)
{
	struct query query = { .call = 8, .revision = 1 };
	uint64_t reply;

	put(&query, 1);
	query.revision = 2;
	assert_false(find(&query, &reply));
}

UNIT_TEST_MAIN(NULL, NULL)
