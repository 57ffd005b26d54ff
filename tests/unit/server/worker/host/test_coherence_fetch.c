/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of changes that are held until there are some. */
#include "base/clock.h"
#include "gpd_calls.h"
#include "server/worker/device/quiesce_jobs.h"
#include "server/worker/host/coherence_fetch.h"
#include "server/worker/host/host_space.h"
#include "server/worker/host/host_space_internal.h"
#include "server/worker/memory/memory.h"
#include "tests/test.h"
#include "tests/unit/server/fake_session.h"

#include <string.h>

#define MIB ((uint64_t)1 << 20)

static struct fake_session fake;
static uint64_t base;
static unsigned int asked;

static int
setup(void **state)
{
	struct gp_reply_gpHostReserve reserved = { 0 };

	asked = 0;
	fake_session_create(&fake);
	assert_int_equal(gpd_memory_create(&fake.session), 0);
	atomic_store(&fake.session.account.ledger->tenants[0].devices[GPD_LEDGER_PINNED].memory_max,
		     128 * MIB);
	assert_int_equal(gpd_gpHostReserve(&fake.session,
					   &(struct gp_args_gpHostReserve){ 256 * MIB }, &reserved),
			 CUDA_SUCCESS);
	base = reserved.address;
	return gpd_gpHostMap(&fake.session, &(struct gp_args_gpHostMap){ base, 4 * MIB, 0 });
}

static int
teardown(void **state)
{
	gpd_host_watch_stop(&fake.session);
	gpd_host_memory_destroy(&fake.session);
	gpd_quiesce_jobs_wait();
	gpd_memory_unmap_all(&fake.session);
	gpd_memory_destroy(&fake.session);
	fake_session_destroy(&fake);
	return 0;
}

static CUresult
hold_all(const void *ranges, size_t size)
{
	const struct gp_args_gpHostTakeChanged args = { { ranges, size } };
	struct gp_reply_gpHostTakeChanged reply = { 0 };

	return gpd_gpHostTakeChanged(&fake.session, &args, &reply);
}

static CUresult
hold(uint64_t address, uint64_t size)
{
	const uint64_t range[2] = { address, size };

	return hold_all(range, sizeof(range));
}

static void
ask(uint64_t offset, uint64_t size)
{
	assert_int_equal(hold(base + offset, size), GPD_LATER);
	asked++;
}

/* As a kernel does. */
static void
change(uint64_t offset, uint32_t value)
{
	__atomic_store_n((uint32_t *)(uintptr_t)(base + offset), value, __ATOMIC_RELEASE);
}

static unsigned int
answers(void)
{
	pthread_mutex_t *lock = &fake.session.host_memory->copies_lock;
	unsigned int count;

	pthread_mutex_lock(lock);
	count = fake.reply_count;
	pthread_mutex_unlock(lock);
	return count;
}

static void
await_answers(void)
{
	while (answers() < asked)
		gp_sleep_ns(100000);
	assert_int_equal(answers(), asked);
	assert_int_equal(fake.replies[asked - 1].result, CUDA_SUCCESS);
}

static void
read_last(struct gp_reply_gpHostTakeChanged *reply)
{
	struct gp_dec dec;

	gp_dec_init(&dec, fake.fields, fake.fields_size);
	gp_reply_gpHostTakeChanged_decode(&dec, reply);
	assert_true(gp_dec_done(&dec));
}

/* Returns the word that the last reply contains for an offset; 0: none. */
static uint32_t
told(uint64_t offset)
{
	struct gp_reply_gpHostTakeChanged reply;
	struct gp_change change;
	size_t at = 0;

	read_last(&reply);
	while (gp_changes_next(reply.changes.data, reply.changes.size, &at, &change) > 0) {
		if (change.address == base + offset)
			return *(const uint32_t *)change.bytes;
	}
	return 0;
}

#define TEST(test) UNIT_TEST_WITH(test, setup, teardown)

/* On a slow machine a request may be held too long, and is sent again. */
TEST(a_change_is_told_when_it_comes)
{
	for (uint32_t i = 1; i <= 3; i++) {
		ask(0, 4096);
		change(100, i);
		await_answers();
		while (told(100) == 0) {
			ask(0, 4096);
			await_answers();
		}
		assert_int_equal(told(100), i);
	}
}

TEST(what_has_changed_before_is_told_at_once)
{
	change(200, 7);
	ask(0, 4096);
	await_answers();
	assert_int_equal(told(200), 7);
}

TEST(a_change_elsewhere_is_none)
{
	ask(0, 4096);
	change(4096, 1);
	/* After this time it is answered with nothing. */
	await_answers();
	assert_int_equal(told(4096), 0);
}

TEST(what_the_client_sends_is_acknowledged)
{
	const uint64_t run[3] = { base + 8, 8, 5 };
	const struct gp_args_gpHostWrite args = { { run, sizeof(run) } };
	struct gp_reply_gpHostTakeChanged reply;

	ask(0, 4096);
	ask(0, 4096);
	assert_int_equal(gpd_gpHostWrite(&fake.session, &args), CUDA_SUCCESS);
	await_answers();
	read_last(&reply);
	assert_int_equal(reply.writes, 1);
	assert_int_equal(reply.changes.size, 0);
}

TEST(a_question_for_now_ends_what_is_held)
{
	const uint64_t range[2] = { base, 4096 };
	const struct gp_args_gpHostTake args = { .ranges = { range, sizeof(range) } };
	struct gp_reply_gpHostTake reply = { 0 };

	for (int i = 0; i < 5; i++)
		ask(4096, 4096);
	assert_int_equal(gpd_gpHostTake(&fake.session, &args, &reply), GPD_LATER);
	assert_int_equal(answers(), 6);
	for (int i = 0; i < 6; i++)
		assert_int_equal(fake.replies[i].result, CUDA_SUCCESS);
	assert_int_equal(fake.replies[5].call, fake.replies[0].call);
}

TEST(so_many_are_held_and_no_more)
{
	for (int i = 0; i < GP_HOST_PENDING_MAX + 3; i++)
		ask(0, 64);
	assert_true(answers() >= 3);
}

TEST(odd_questions_are_refused)
{
	uint64_t ranges[2 * (GP_HOST_AFTER_RANGES + 1)];

	for (size_t i = 0; i <= GP_HOST_AFTER_RANGES; i++) {
		ranges[2 * i] = base;
		ranges[2 * i + 1] = 4;
	}
	assert_int_equal(hold(base - 4, 8), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(hold(base + 4 * MIB, 4), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(hold(base, UINT64_MAX), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(hold(base, GP_HOST_AFTER_MAX + 4), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(hold_all(ranges, 17), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(hold_all(ranges, sizeof(ranges)), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(hold_all(ranges, sizeof(ranges) - 16), GPD_LATER);
	assert_string_equal(fake.violation, "");
}

TEST(memory_may_go_while_a_question_is_held)
{
	const struct gp_args_gpHostUnmap unmap = { base, 4 * MIB };

	ask(0, 4096);
	assert_int_equal(gpd_gpHostUnmap(&fake.session, &unmap), GPD_LATER);
	await_answers();
	assert_int_equal(fake.replies[0].result, CUDA_SUCCESS);
	fake_session_run_markers(&fake, -1);
}

TEST(a_session_may_end_meanwhile)
{
	for (int i = 0; i < 3; i++)
		ask(0, 4096);
	gpd_host_watch_stop(&fake.session);
	assert_int_equal(fake.reply_count, 3);
	gpd_host_watch_stop(&fake.session);
}

UNIT_TEST_MAIN(NULL, NULL)
