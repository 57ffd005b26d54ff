/* SPDX-License-Identifier: Apache-2.0 */
/* The order of turns, with a GPU that runs one kernel at a time and a clock that is the test's. */
#include "server/worker/schedule/schedule_core.h"
#include "tests/test.h"

#include <string.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)
#define CLIENTS_MAX 64

struct client {
	struct gpd_order_run run;
	uint64_t kernel_ns;
	uint64_t think_ns;    /* between a kernel's end and the next one */
	uint64_t from, until; /* when it has work */
	uint64_t ready_ns;
	uint64_t used_ns; /* GPU time */
	uint64_t waited_max_ns, asked_ns;
};

struct gpu {
	struct gpd_order order;
	struct client clients[CLIENTS_MAX];
	unsigned int count;
	uint64_t now;
};

static struct client *
add(struct gpu *gpu, uint32_t tenant, uint64_t kernel_ns)
{
	struct client *client = &gpu->clients[gpu->count++];

	*client = (struct client){ .kernel_ns = kernel_ns, .until = UINT64_MAX };
	client->run.rank = 1;
	assert_int_equal(gpd_order_add(&gpu->order, &client->run, tenant, gpu->now), 0);
	return client;
}

static void
terms(struct gpu *gpu, struct client *client, uint32_t weight, uint32_t per_cent)
{
	gpd_order_set_policy(client->run.tenant, weight, per_cent * 10000, gpu->now);
}

static int
setup(void **state)
{
	*state = test_calloc(1, sizeof(struct gpu));
	((struct gpu *)*state)->now = SECOND;
	return 0;
}

static int
teardown(void **state)
{
	struct gpu *gpu = *state;

	for (unsigned int i = 0; i < gpu->count; i++)
		gpd_order_remove(&gpu->order, &gpu->clients[i].run);
	assert_null(gpu->order.tenants);
	test_free(gpu);
	return 0;
}

static bool
is_ready(const struct gpu *gpu, const struct client *client)
{
	return gpu->now >= client->from && gpu->now < client->until && gpu->now >= client->ready_ns;
}

static void
ask(struct gpu *gpu)
{
	for (unsigned int i = 0; i < gpu->count; i++) {
		struct client *client = &gpu->clients[i];

		if (client->run.wants && gpu->now >= client->until)
			client->run.wants = false;
		if (!is_ready(gpu, client) || gpu->order.holder == &client->run ||
		    client->run.wants)
			continue;
		client->asked_ns = gpu->now;
		gpd_order_want(&gpu->order, &client->run, gpu->now);
	}
}

static void
run_kernel(struct gpu *gpu, struct client *client)
{
	uint64_t waited = gpu->now - client->asked_ns;

	if (waited > client->waited_max_ns)
		client->waited_max_ns = waited;
	gpu->now += client->kernel_ns;
	client->used_ns += client->kernel_ns;
	client->ready_ns = gpu->now + client->think_ns;
	client->asked_ns = gpu->now;
	gpd_order_charge(&gpu->order, &client->run, client->kernel_ns, gpu->now);
}

/* The GPU idles until a session may or wants to continue. */
static void
pass_time(struct gpu *gpu, uint64_t when, uint64_t end)
{
	uint64_t next = when < end ? when : end;

	for (unsigned int i = 0; i < gpu->count; i++) {
		struct client *client = &gpu->clients[i];
		uint64_t ready = client->ready_ns > client->from ? client->ready_ns : client->from;

		if (!client->run.wants && ready > gpu->now && ready < next)
			next = ready;
	}
	gpu->now = next > gpu->now ? next : gpu->now + US;
}

static void
run_for(struct gpu *gpu, uint64_t ns)
{
	uint64_t end = gpu->now + ns, when;

	for (unsigned int i = 0; i < gpu->count; i++)
		gpu->clients[i].used_ns = gpu->clients[i].waited_max_ns = 0;
	while (gpu->now < end) {
		struct client *holder;

		ask(gpu);
		if (!gpu->order.holder && !gpd_order_pick(&gpu->order, gpu->now, &when)) {
			pass_time(gpu, when, end);
			continue;
		}
		holder = (struct client *)gpu->order.holder;
		if (is_ready(gpu, holder) && !(gpd_order_is_contended(&gpu->order) &&
					       gpd_order_must_end(&gpu->order, 0, gpu->now)))
			run_kernel(gpu, holder);
		else
			gpu->order.holder = NULL;
	}
}

/* Per mille of the time that passed. */
static void
assert_share(const struct client *client, uint64_t ns, uint64_t wanted, uint64_t within)
{
	uint64_t got = client->used_ns * 1000 / ns;

	if (got + within < wanted || got > wanted + within)
		fail_msg("a share of %lu per mille instead of %lu", (unsigned long)got,
			 (unsigned long)wanted);
}

/* A client, its terms (0: the default ones) and its share of 10 s, in per mille. */
struct share {
	uint32_t tenant;
	uint64_t kernel_ns;
	unsigned int weight, limit;
	unsigned int wanted, within;
};

static void
check_shares(struct gpu *gpu, const struct share *shares, size_t count)
{
	struct client *clients[4];

	assert_true(count <= sizeof(clients) / sizeof(clients[0]));
	for (size_t i = 0; i < count; i++)
		clients[i] = add(gpu, shares[i].tenant, shares[i].kernel_ns);
	for (size_t i = 0; i < count; i++) {
		if (shares[i].weight)
			terms(gpu, clients[i], shares[i].weight, shares[i].limit);
	}
	run_for(gpu, 10 * SECOND);
	for (size_t i = 0; i < count; i++)
		assert_share(clients[i], 10 * SECOND, shares[i].wanted, shares[i].within);
}

#define CHECK_SHARES(...)                                                                          \
	check_shares(*state, (const struct share[]){ __VA_ARGS__ },                                \
		     sizeof((const struct share[]){ __VA_ARGS__ }) / sizeof(struct share))

#define TEST(test) UNIT_TEST_WITH(test, setup, teardown)

TEST(one_alone_has_all_of_the_gpu)
{
	struct gpu *gpu = *state;
	struct client *a = add(gpu, 0, 50 * US);

	run_for(gpu, SECOND);
	assert_share(a, SECOND, 1000, 1);
}

TEST(weights_divide_the_gpu_time)
{
	CHECK_SHARES({ 1, 50 * US, 1, 100, 125, 5 }, { 2, 50 * US, 2, 100, 250, 5 },
		     { 3, 50 * US, 5, 100, 625, 5 });
}

TEST(short_kernels_get_as_much_time_as_long_ones)
{
	CHECK_SHARES({ 1, 50 * US, 0, 0, 500, 10 }, { 2, 50 * MS, 0, 0, 500, 10 });
}

TEST(weights_hold_for_kernels_of_any_length)
{
	CHECK_SHARES({ 1, 50 * MS, 20, 100, 200, 12 }, { 2, 50 * US, 30, 100, 300, 12 },
		     { 3, 3 * MS, 50, 100, 500, 12 });
}

TEST(what_one_does_not_use_the_others_get)
{
	struct gpu *gpu = *state;
	struct client *a = add(gpu, 1, 50 * US), *b = add(gpu, 2, MS), *c = add(gpu, 3, MS);

	terms(gpu, a, 20, 100);
	terms(gpu, b, 30, 100);
	terms(gpu, c, 50, 100);
	c->until = 0;
	run_for(gpu, 10 * SECOND);
	assert_share(a, 10 * SECOND, 400, 5);
	assert_share(b, 10 * SECOND, 600, 5);
}

TEST(sessions_of_a_tenant_share_its_part_equally)
{
	CHECK_SHARES({ 1, 50 * US, 0, 0, 500, 5 }, { 2, 100 * US, 0, 0, 167, 5 },
		     { 2, 7 * MS, 0, 0, 167, 5 }, { 2, MS, 0, 0, 167, 5 });
}

TEST(a_limit_holds_on_an_idle_gpu)
{
	struct gpu *gpu = *state;
	struct client *a = add(gpu, 1, 50 * US), *b = add(gpu, 2, 50 * MS);

	terms(gpu, a, 1, 30);
	b->until = 0;
	run_for(gpu, 10 * SECOND);
	assert_share(a, 10 * SECOND, 300, 8);
	a->kernel_ns = 50 * MS;
	run_for(gpu, 10 * SECOND);
	assert_share(a, 10 * SECOND, 300, 10);
}

TEST(a_limit_holds_beside_one_without)
{
	CHECK_SHARES({ 1, 50 * US, 100, 30, 300, 10 }, { 2, 5 * MS, 0, 0, 700, 10 });
}

TEST(parts_below_all_of_the_time_leave_the_rest_idle)
{
	CHECK_SHARES({ 1, 50 * US, 25, 25, 250, 10 }, { 2, 3 * MS, 25, 25, 250, 10 },
		     { 3, 50 * MS, 25, 25, 250, 15 });
}

TEST(parts_that_are_all_of_the_time_are_kept)
{
	CHECK_SHARES({ 1, 50 * US, 20, 20, 200, 15 }, { 2, 3 * MS, 30, 30, 300, 15 },
		     { 3, 20 * MS, 50, 50, 500, 15 });
}

TEST(borrowed_time_is_given_back_within_a_quarter_of_a_second)
{
	struct gpu *gpu = *state;
	struct client *a = add(gpu, 1, MS), *b = add(gpu, 2, 50 * US);

	terms(gpu, a, 30, 90);
	terms(gpu, b, 70, 100);
	b->from = gpu->now + 5 * SECOND;
	run_for(gpu, 5 * SECOND);
	assert_share(a, 5 * SECOND, 900, 15);
	run_for(gpu, 250 * MS);
	run_for(gpu, 500 * MS);
	assert_share(a, 500 * MS, 300, 30);
	assert_share(b, 500 * MS, 700, 30);
}

TEST(who_was_away_claims_nothing_for_that_time)
{
	struct gpu *gpu = *state;
	struct client *a = add(gpu, 1, MS), *b = add(gpu, 2, MS);

	b->until = gpu->now + SECOND;
	run_for(gpu, 10 * SECOND);
	b->until = UINT64_MAX;
	run_for(gpu, SECOND);
	assert_share(a, SECOND, 500, 20);
	assert_share(b, SECOND, 500, 20);
}

/* The holder ends, and `next` comes and begins. */
static void
hand_on(struct gpu *gpu, struct client *next)
{
	uint64_t when;

	gpu->order.holder = NULL;
	gpd_order_want(&gpu->order, &next->run, gpu->now);
	assert_ptr_equal(gpd_order_pick(&gpu->order, gpu->now, &when), &next->run);
}

static void
use(struct gpu *gpu, struct client *client, uint64_t ns)
{
	gpu->now += ns;
	gpd_order_charge(&gpu->order, &client->run, ns, gpu->now);
}

/* Two of different tenants, or of one: b gets 60 ms ahead of a, which then pauses for so long while
 * a kernel of b's begins.  How far a is behind when it is back. */
static uint64_t
owed_after(struct gpu *gpu, bool one_tenant, uint64_t pause_ns)
{
	struct client *a = add(gpu, 1, MS), *b = add(gpu, one_tenant ? 1 : 2, 50 * MS);

	hand_on(gpu, b);
	gpd_order_want(&gpu->order, &a->run, gpu->now);
	use(gpu, b, 60 * MS);
	hand_on(gpu, a);
	hand_on(gpu, b);
	gpu->now += pause_ns;
	gpd_order_want(&gpu->order, &a->run, gpu->now);
	if (one_tenant)
		return b->run.had - a->run.had;
	return (b->run.tenant->had - a->run.tenant->had) / 1024;
}

TEST(a_pause_in_which_a_long_kernel_begins_leaves_what_is_owed)
{
	assert_int_equal(owed_after(*state, false, MS) / MS, 60);
}

TEST(the_same_holds_among_the_sessions_of_a_tenant)
{
	assert_int_equal(owed_after(*state, true, MS) / MS, 60);
}

TEST(who_is_away_for_long_is_owed_little)
{
	assert_int_equal(owed_after(*state, false, SECOND) / MS, 20);
}

TEST(who_waits_for_each_kernel_gets_its_time_as_well)
{
	struct gpu *gpu = *state;
	struct client *a = add(gpu, 1, 5 * MS), *b = add(gpu, 2, 20 * MS);

	a->think_ns = 2 * MS;
	run_for(gpu, 10 * SECOND);
	if (a->used_ns * 100 < b->used_ns * 20)
		fail_msg("%lu beside %lu", (unsigned long)a->used_ns, (unsigned long)b->used_ns);
}

TEST(a_higher_rank_goes_first)
{
	struct gpu *gpu = *state;
	struct client *hog = add(gpu, 1, 20 * MS), *quick = add(gpu, 2, 100 * US);

	hog->run.rank = 0;
	quick->run.rank = 2;
	quick->think_ns = 5 * MS;
	run_for(gpu, 5 * SECOND);
	assert_in_range(quick->waited_max_ns, 0, 20 * MS + 100 * US);
}

TEST(nobody_starves)
{
	struct gpu *gpu = *state;
	struct client *low = add(gpu, 1, MS), *high = add(gpu, 2, MS);

	low->run.rank = 0;
	high->run.rank = 2;
	run_for(gpu, 10 * SECOND);
	assert_in_range(low->waited_max_ns, 100 * MS, 600 * MS);
	assert_share(low, 10 * SECOND, 10, 8);
}

TEST(sixty_four_equal_ones_get_the_same)
{
	struct gpu *gpu = *state;
	double sum = 0, squares = 0;

	for (uint32_t i = 0; i < CLIENTS_MAX; i++)
		(void)add(gpu, i % 16, (20 + 31 * i) * US);
	run_for(gpu, 20 * SECOND);
	for (uint32_t i = 0; i < CLIENTS_MAX; i++) {
		double used = (double)gpu->clients[i].used_ns;

		sum += used;
		squares += used * used;
	}
	assert_true(sum * sum / (CLIENTS_MAX * squares) >= 0.99);
}

TEST(a_new_limit_counts_from_now_on)
{
	struct gpu *gpu = *state;
	struct client *a = add(gpu, 1, MS), *b = add(gpu, 2, MS);

	b->until = 0;
	run_for(gpu, 5 * SECOND);
	terms(gpu, a, 1, 50);
	run_for(gpu, SECOND);
	assert_share(a, SECOND, 500, 40);
	terms(gpu, a, 1, 100);
	run_for(gpu, SECOND);
	assert_share(a, SECOND, 1000, 5);
}

TEST(a_limited_tenant_is_owed_nothing_when_its_limit_goes)
{
	struct gpu *gpu = *state;
	struct client *a = add(gpu, 1, MS), *b = add(gpu, 2, MS);

	terms(gpu, a, 1, 5);
	run_for(gpu, 10 * SECOND);
	terms(gpu, a, 1, 100);
	run_for(gpu, SECOND);
	assert_share(a, SECOND, 500, 30);
	assert_share(b, SECOND, 500, 30);
}

TEST(the_holder_that_leaves_makes_room)
{
	struct gpu *gpu = *state;
	struct client *a = add(gpu, 1, MS), *b = add(gpu, 1, MS);
	uint64_t when;

	gpd_order_want(&gpu->order, &a->run, gpu->now);
	assert_ptr_equal(gpd_order_pick(&gpu->order, gpu->now, &when), &a->run);
	gpd_order_want(&gpu->order, &b->run, gpu->now);
	assert_null(gpd_order_pick(&gpu->order, gpu->now, &when));
	gpd_order_remove(&gpu->order, &a->run);
	assert_ptr_equal(gpd_order_pick(&gpu->order, gpu->now, &when), &b->run);
	assert_int_equal(gpd_order_add(&gpu->order, &a->run, 1, gpu->now), 0);
}

UNIT_TEST_MAIN(NULL, NULL)
