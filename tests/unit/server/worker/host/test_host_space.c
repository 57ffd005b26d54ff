/* SPDX-License-Identifier: Apache-2.0 */
#include "gpd_calls.h"
#include "protocol/host_consistent_copy.h"
#include "server/worker/device/quiesce_jobs.h"
#include "server/worker/host/host_arena.h"
#include "server/worker/host/host_space.h"
#include "server/worker/memory/memory.h"
#include "tests/test.h"
#include "tests/unit/server/fake_session.h"

#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)

static struct fake_session fake;
static uint64_t base, room;

static CUresult
reserve(uint64_t size)
{
	struct gp_reply_gpHostReserve reply = { 0 };
	CUresult result = gpd_gpHostReserve(
		&fake.session, &(struct gp_args_gpHostReserve){ .size = size }, &reply);

	base = reply.address;
	room = reply.room;
	return result;
}

static int
setup(void **state)
{
	fake_session_create(&fake);
	assert_int_equal(gpd_memory_create(&fake.session), 0);
	/* Twice: with what both ends agreed on. */
	atomic_store(&fake.session.account.ledger->tenants[0].devices[GPD_LEDGER_PINNED].memory_max,
		     128 * MIB);
	return reserve(256 * MIB) != CUDA_SUCCESS;
}

static int
teardown(void **state)
{
	gpd_host_memory_destroy(&fake.session);
	gpd_quiesce_jobs_wait();
	gpd_memory_unmap_all(&fake.session);
	gpd_memory_destroy(&fake.session);
	fake_session_destroy(&fake);
	return 0;
}

static CUresult
map(uint64_t offset, uint64_t size)
{
	return gpd_gpHostMap(&fake.session, &(struct gp_args_gpHostMap){ base + offset, size, 0 });
}

static CUresult
unmap(uint64_t offset, uint64_t size)
{
	return gpd_gpHostUnmap(&fake.session, &(struct gp_args_gpHostUnmap){ base + offset, size });
}

static uint8_t *
at(uint64_t offset)
{
	return (uint8_t *)(uintptr_t)(base + offset);
}

static uint64_t
used(void)
{
	uint64_t counts = fake_session_allocated(&fake, GPD_LEDGER_PINNED);

	assert_int_equal(counts % 2, 0);
	return counts / 2;
}

#define TEST(test) UNIT_TEST_WITH(test, setup, teardown)

TEST(mapped_memory_is_zeros_that_copies_reach)
{
	assert_int_equal(room, 256 * MIB);
	assert_false(gpd_memory_accessible(&fake.session, base, 1));
	assert_int_equal(map(4 * MIB, 2 * MIB), CUDA_SUCCESS);
	assert_int_equal(fake_driver_count_calls("cuMemHostRegister"), 1);
	assert_int_equal(at(4 * MIB)[2 * MIB - 1], 0);
	assert_true(gpd_memory_accessible(&fake.session, base + 4 * MIB, 2 * MIB));
	assert_false(gpd_memory_accessible(&fake.session, base + 4 * MIB, 2 * MIB + 1));
	assert_false(gpd_memory_accessible(&fake.session, base + 4 * MIB - 1, 2));
	assert_false(gpd_memory_accessible(&fake.session, base + 6 * MIB - 1, UINT64_MAX));
	assert_int_equal(used(), 2 * MIB);
}

TEST(the_size_of_a_piece_is_read_or_refused)
{
	static const char *const wrong[] = { "0", "65", "2M", "-1", "1.5" };
	uint64_t size;

	assert_true(gpd_host_registration_parse(NULL, &size));
	assert_int_equal(size, 8 * MIB);
	assert_true(gpd_host_registration_parse("", &size));
	assert_int_equal(size, 8 * MIB);
	assert_true(gpd_host_registration_parse("64", &size));
	assert_int_equal(size, 64 * MIB);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_false(gpd_host_registration_parse(wrong[i], &size));
		assert_int_equal(size, 8 * MIB);
	}
}

TEST(pieces_are_registered_and_given_up_one_by_one)
{
	uint64_t first = gpd_host_memory_get_registration_rest(&fake.session, base) % (8 * MIB);

	assert_int_equal(map(first, 20 * MIB), CUDA_SUCCESS);
	assert_int_equal(fake_driver_count_calls("cuMemHostRegister"), 3);
	assert_int_equal(gpd_host_memory_get_registration_rest(&fake.session, base + first + 5),
			 8 * MIB - 5);
	memset(at(first), 7, 20 * MIB);
	assert_int_equal(unmap(first, 20 * MIB), GPD_LATER);
	fake_session_run_markers(&fake, -1);
	gpd_quiesce_jobs_wait();
	assert_int_equal(fake_driver_count_calls("cuMemHostUnregister"), 3);
	assert_int_equal(map(first, 20 * MIB), CUDA_SUCCESS);
	assert_int_equal(at(first)[0] | at(first + 20 * MIB - 1)[0], 0);
}

TEST(what_overlaps_or_is_odd_is_refused)
{
	assert_int_equal(map(4 * MIB, 2 * MIB), CUDA_SUCCESS);
	assert_int_equal(map(5 * MIB, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(map(3 * MIB, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(map(0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(map(1, 4096), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(map(0, 4097), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(unmap(4 * MIB, MIB), CUDA_ERROR_INVALID_VALUE);
	/* The connection of this session passes no descriptors. */
	assert_int_equal(reserve(MIB), CUDA_ERROR_INVALID_VALUE);
	assert_string_equal(fake.violation, "");
}

TEST(the_range_is_the_sessions_world)
{
	assert_int_equal(map(256 * MIB, 4096), CUDA_ERROR_INVALID_VALUE);
	assert_string_not_equal(fake.violation, "");
	fake.violation[0] = 0;
	assert_int_equal(map(256 * MIB - 4096, 8192), CUDA_ERROR_INVALID_VALUE);
	assert_string_not_equal(fake.violation, "");
	fake.violation[0] = 0;
	assert_int_equal(map((uint64_t)-4096, 4096), CUDA_ERROR_INVALID_VALUE);
	assert_string_not_equal(fake.violation, "");
	assert_int_equal(fake_driver_count_calls("cuMemHostRegister"), 0);
	assert_int_equal(used(), 0);
}

TEST(the_quota_holds)
{
	assert_int_equal(map(0, 64 * MIB), CUDA_SUCCESS);
	assert_int_equal(map(64 * MIB, 4096), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(used(), 64 * MIB);
	assert_int_equal(unmap(0, 64 * MIB), GPD_LATER);
	assert_int_equal(used(), 64 * MIB);
	fake_session_run_markers(&fake, -1);
	gpd_quiesce_jobs_wait();
	assert_int_equal(used(), 0);
	assert_int_equal(fake.reply_count, 1);
	assert_int_equal(fake.replies[0].result, CUDA_SUCCESS);
	assert_int_equal(map(64 * MIB, 64 * MIB), CUDA_SUCCESS);
}

TEST(addresses_are_used_again_when_the_driver_is_done_with_them)
{
	assert_int_equal(map(0, 2 * MIB), CUDA_SUCCESS);
	at(0)[5] = 1;
	assert_int_equal(unmap(0, 2 * MIB), GPD_LATER);
	assert_false(gpd_memory_accessible(&fake.session, base, 1));
	assert_int_equal(map(0, 2 * MIB), CUDA_ERROR_NOT_READY);
	fake_session_run_markers(&fake, -1);
	gpd_quiesce_jobs_wait();
	assert_int_equal(fake_driver_count_calls("cuMemHostUnregister"), 1);
	assert_int_equal(map(0, 2 * MIB), CUDA_SUCCESS);
	assert_int_equal(at(0)[5], 0);
}

TEST(a_driver_that_cannot_leaves_nothing_behind)
{
	fake_driver_fail("cuMemHostRegister", CUDA_ERROR_OUT_OF_MEMORY, 0);
	assert_int_equal(map(0, 2 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	fake_driver_fail("cuMemHostGetDevicePointer", CUDA_ERROR_NOT_SUPPORTED, 0);
	assert_int_equal(map(0, 2 * MIB), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(fake_driver_count_calls("cuMemHostUnregister"), 1);
	assert_int_equal(used(), 0);
	assert_int_equal(map(0, 2 * MIB), CUDA_SUCCESS);
}

/* One run. */
static CUresult
write(uint64_t address, uint32_t size, uint8_t value)
{
	uint64_t record[2 + 16] = { address, size };
	size_t padded = (size + 7) / 8 * 8;

	assert_true(size <= 128);
	memset(record + 2, 0, sizeof(record) - 16);
	memset(record + 2, value, size);
	return gpd_gpHostWrite(&fake.session,
			       &(struct gp_args_gpHostWrite){ .changes = { record, 16 + padded } });
}

/* The last reply; its bytes are valid until the next one. */
static void
read_answer(struct gp_reply_gpHostTake *reply)
{
	struct gp_dec dec;

	gp_dec_init(&dec, fake.fields, fake.fields_size);
	gp_reply_gpHostTake_decode(&dec, reply);
	assert_true(gp_dec_done(&dec));
}

static CUresult
take(uint64_t address, uint64_t size, unsigned int part, struct gp_reply_gpHostTake *reply)
{
	const uint64_t range[2] = { address, size };
	const struct gp_args_gpHostTake args = { .ranges = { range, sizeof(range) }, .part = part };
	CUresult result;

	*reply = (struct gp_reply_gpHostTake){ 0 };
	result = gpd_gpHostTake(&fake.session, &args, reply);
	if (result != GPD_LATER)
		return result;
	read_answer(reply);
	return CUDA_SUCCESS;
}

static CUresult
take_behind(unsigned int kind, uint32_t name, uint64_t address, uint64_t size)
{
	const uint64_t range[2] = { address, size };
	const struct gp_args_gpHostTakeBehind args = { kind, name, { range, sizeof(range) } };
	struct gp_reply_gpHostTakeBehind reply = { 0 };

	return gpd_gpHostTakeBehind(&fake.session, &args, &reply);
}

static CUresult
fetch(uint64_t address, uint64_t size, struct gp_reply_gpHostTake *reply)
{
	return take(address, size, GP_CONSISTENT_COPY_ALL, reply);
}

TEST(changes_are_stored_and_told)
{
	struct gp_reply_gpHostTake reply;
	struct gp_change change;
	size_t place = 0;

	assert_int_equal(map(0, 2 * MIB), CUDA_SUCCESS);
	assert_int_equal(write(base + 100, 12, 7), CUDA_SUCCESS);
	assert_int_equal(at(0)[100], 7);
	assert_int_equal(at(0)[111], 7);
	assert_int_equal(at(0)[112], 0);
	/* What the client has sent it knows. */
	assert_int_equal(fetch(base, 2 * MIB, &reply), CUDA_SUCCESS);
	assert_int_equal(reply.done, 2 * MIB);
	assert_int_equal(reply.changes.size, 0);
	at(0)[104] = 9;
	assert_int_equal(fetch(base, 2 * MIB, &reply), CUDA_SUCCESS);
	assert_int_equal(gp_changes_next(reply.changes.data, reply.changes.size, &place, &change),
			 1);
	assert_int_equal(change.address, base + 104);
	assert_int_equal(change.size, 4);
	assert_int_equal(*(const uint8_t *)change.bytes, 9);
	assert_int_equal(fetch(base, 2 * MIB, &reply), CUDA_SUCCESS);
	assert_int_equal(reply.changes.size, 0);
}

TEST(much_is_told_in_parts)
{
	struct gp_reply_gpHostTake reply;
	uint64_t done = 0;
	int parts = 0;

	assert_int_equal(map(0, 16 * MIB), CUDA_SUCCESS);
	memset(at(0), 1, 16 * MIB - 4);
	at(0)[16 * MIB - 2] = 1;
	at(0)[16 * MIB - 10] = 0;
	/* Nothing of it, if it is not all. */
	assert_int_equal(fetch(base, 16 * MIB, &reply), CUDA_SUCCESS);
	assert_int_equal(reply.done, 0);
	assert_int_equal(reply.changes.size, 0);
	while (done < 16 * MIB) {
		assert_int_equal(
			take(base + done, 16 * MIB - done, GP_CONSISTENT_COPY_LONG, &reply),
			CUDA_SUCCESS);
		assert_true(reply.done > 0);
		done += reply.done;
		parts++;
	}
	assert_true(parts > 3);
	assert_int_equal(fetch(base, 16 * MIB, &reply), CUDA_SUCCESS);
	assert_int_equal(reply.done, 16 * MIB);
	assert_int_equal(reply.changes.size, 0);
	assert_int_equal(take(base, 4096, GP_CONSISTENT_COPY_ANY + 1, &reply),
			 CUDA_ERROR_INVALID_VALUE);
}

TEST(changes_elsewhere_end_the_session)
{
	struct gp_reply_gpHostTake reply;
	const uint64_t bad[3] = { base, 4, 1 }, twice[4] = { base, 2 * MIB, base, 4 };

	assert_int_equal(map(0, 2 * MIB), CUDA_SUCCESS);
	assert_int_equal(write(base + 2 * MIB - 4, 8, 1), CUDA_ERROR_INVALID_VALUE);
	assert_string_not_equal(fake.violation, "");
	fake.violation[0] = 0;
	assert_int_equal(write((uintptr_t)&fake, 8, 1), CUDA_ERROR_INVALID_VALUE);
	assert_string_not_equal(fake.violation, "");
	fake.violation[0] = 0;
	assert_int_equal(write(UINT64_MAX - 3, 8, 1), CUDA_ERROR_INVALID_VALUE);
	assert_string_not_equal(fake.violation, "");
	fake.violation[0] = 0;
	assert_int_equal(gpd_gpHostWrite(&fake.session,
					 &(struct gp_args_gpHostWrite){ .changes = { bad, 17 } }),
			 CUDA_ERROR_INVALID_VALUE);
	assert_string_not_equal(fake.violation, "");
	/* A request may follow the end: it is not a violation. */
	assert_int_equal(fetch(base + 2 * MIB, 4, &reply), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(fetch((uintptr_t)&fake, 4, &reply), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(fetch(base, UINT64_MAX, &reply), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(
		gpd_gpHostTake(&fake.session,
			       &(struct gp_args_gpHostTake){ .ranges = { twice, sizeof(twice) } },
			       &reply),
		CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpd_gpHostTake(&fake.session,
					&(struct gp_args_gpHostTake){ .ranges = { bad, 17 } },
					&reply),
			 CUDA_ERROR_INVALID_VALUE);
}

/* The client's byte is stored, and the kernel's bytes of the word are reported to the client. */
TEST(unchanged_bytes_of_a_word_are_left_to_kernels)
{
	const uint64_t record[3] = { htole64(base + 4), htole64(4 | UINT64_C(0xd) << 32),
				     htole64(0x99990799) };
	struct gp_reply_gpHostTake reply;
	struct gp_change change;
	size_t place = 0;

	assert_int_equal(map(0, 2 * MIB), CUDA_SUCCESS);
	assert_int_equal(gpd_gpHostMerge(&fake.session, &(struct gp_args_gpHostMerge){ 0 }),
			 CUDA_SUCCESS);
	at(0)[4] = 5;
	assert_int_equal(gpd_gpHostWrite(&fake.session,
					 &(struct gp_args_gpHostWrite){
						 .changes = { record, sizeof(record) } }),
			 CUDA_SUCCESS);
	assert_memory_equal(at(0) + 4, ((uint8_t[]){ 5, 7, 0, 0 }), 4);
	assert_int_equal(fetch(base, 4096, &reply), CUDA_SUCCESS);
	assert_int_equal(gp_changes_next(reply.changes.data, reply.changes.size, &place, &change),
			 1);
	assert_int_equal(change.address, base + 4);
	assert_int_equal(change.size, 4);
	assert_int_equal(change.same, 0xe);
	assert_int_equal(*(const uint8_t *)change.bytes, 5);
	assert_int_equal(gp_changes_next(reply.changes.data, reply.changes.size, &place, &change),
			 0);
}

/* The whole of the answers, as what was sent says how many writes are in them. */
TEST(what_is_behind_work_is_told_when_that_is_done)
{
	struct gp_reply_gpHostTake reply;
	struct gp_change change;
	size_t place = 0;

	assert_int_equal(map(0, 2 * MIB), CUDA_SUCCESS);
	assert_int_equal(write(base, 4, 1), CUDA_SUCCESS);
	assert_int_equal(take_behind(GP_HOST_AFTER_STREAM, FAKE_STREAM, base, 4096), GPD_LATER);
	assert_int_equal(fake.reply_count, 0);
	at(0)[8] = 5;
	assert_int_equal(write(base + 100, 4, 2), CUDA_SUCCESS);
	fake_session_run_markers(&fake, -1);
	assert_int_equal(fake.reply_count, 1);
	assert_int_equal(fake.replies[0].result, CUDA_SUCCESS);
	read_answer(&reply);
	assert_int_equal(reply.done, 2);
	assert_int_equal(gp_changes_next(reply.changes.data, reply.changes.size, &place, &change),
			 1);
	assert_int_equal(change.address, base + 8);
	assert_int_equal(*(const uint8_t *)change.bytes, 5);
	assert_int_equal(gp_changes_next(reply.changes.data, reply.changes.size, &place, &change),
			 0);
	/* And it is known from then on. */
	assert_int_equal(fetch(base, 4096, &reply), CUDA_SUCCESS);
	assert_int_equal(reply.changes.size, 0);
	assert_int_equal(take_behind(GP_HOST_AFTER_CONTEXT, FAKE_CONTEXT, base, 4096), GPD_LATER);
	at(0)[8] = 6;
	fake_session_run_markers(&fake, -1);
	read_answer(&reply);
	assert_int_equal(reply.changes.size, 24);
}

TEST(memory_that_is_gone_when_work_is_done_is_passed_over)
{
	struct gp_reply_gpHostTake reply;

	assert_int_equal(map(0, 2 * MIB), CUDA_SUCCESS);
	assert_int_equal(take_behind(GP_HOST_AFTER_STREAM, FAKE_STREAM, base, 4096), GPD_LATER);
	at(0)[8] = 5;
	assert_int_equal(unmap(0, 2 * MIB), GPD_LATER);
	fake_session_run_markers(&fake, 1);
	assert_int_equal(fake.reply_count, 1);
	assert_int_equal(fake.replies[0].result, CUDA_SUCCESS);
	read_answer(&reply);
	assert_int_equal(reply.changes.size, 0);
	fake_session_run_markers(&fake, -1);
}

TEST(odd_questions_behind_work_are_refused)
{
	const uint64_t odd[3] = { base, 4, 1 };
	const struct gp_args_gpHostTakeBehind half = { GP_HOST_AFTER_STREAM,
						       FAKE_STREAM,
						       { odd, 17 } };
	struct gp_reply_gpHostTakeBehind reply = { 0 };

	assert_int_equal(map(0, 4 * MIB), CUDA_SUCCESS);
	assert_int_equal(take_behind(GP_HOST_AFTER_STREAM, 12345, base, 4),
			 CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(take_behind(GP_HOST_AFTER_EVENT, 12345, base, 4),
			 CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(take_behind(GP_HOST_AFTER_CONTEXT, 12345, base, 4),
			 CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(take_behind(GP_HOST_AFTER_CONTEXT + 1, FAKE_STREAM, base, 4),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(take_behind(GP_HOST_AFTER_STREAM, FAKE_STREAM, base + 4 * MIB, 4),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(
		take_behind(GP_HOST_AFTER_STREAM, FAKE_STREAM, base, GP_HOST_AFTER_MAX + 1),
		CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpd_gpHostTakeBehind(&fake.session, &half, &reply),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(fake_session_markers(&fake), 0);
	assert_string_equal(fake.violation, "");
}

TEST(what_a_session_leaves_goes_behind_it)
{
	assert_int_equal(map(0, 2 * MIB), CUDA_SUCCESS);
	assert_int_equal(map(8 * MIB, 2 * MIB), CUDA_SUCCESS);
	assert_int_equal(unmap(8 * MIB, 2 * MIB), GPD_LATER);
	gpd_host_memory_destroy(&fake.session);
	assert_null(fake.session.host_memory);
	fake_session_run_markers(&fake, -1);
	gpd_quiesce_jobs_wait();
	assert_int_equal(fake_driver_count_calls("cuMemHostUnregister"), 2);
}

static CUresult
place(uint64_t offset, uint64_t size)
{
	return gpd_gpHostPlace(&fake.session,
			       &(struct gp_args_gpHostPlace){ FAKE_WINDOW + offset, size, 0 });
}

static CUresult
displace(uint64_t offset, uint64_t size)
{
	return gpd_gpMemoryUnmap(&fake.session,
				 &(struct gp_args_gpMemoryUnmap){ FAKE_WINDOW + offset, size });
}

TEST(memory_is_placed_in_the_window_and_counts_as_pinned)
{
	uint8_t *placed = (uint8_t *)(uintptr_t)(FAKE_WINDOW + 4 * MIB);
	uint64_t device = fake_session_allocated(&fake, 0);

	assert_int_equal(place(4 * MIB, 4 * MIB), CUDA_SUCCESS);
	assert_int_equal(used(), 4 * MIB);
	assert_int_equal(fake_session_allocated(&fake, 0), device);
	assert_true(gpd_memory_accessible(&fake.session, FAKE_WINDOW + 4 * MIB, 4 * MIB));
	assert_int_equal(placed[0], 0);
	assert_int_equal(placed[4095], 0);
	/* Changes go to it and come from it as with other host memory. */
	assert_true(gpd_host_memory_mapped(&fake.session, FAKE_WINDOW + 5 * MIB, 1));
	/* The range for other host memory may still be another one. */
	assert_int_equal(reserve(256 * MIB), CUDA_SUCCESS);
	assert_int_equal(map(0, 2 * MIB), CUDA_SUCCESS);
	assert_int_equal(reserve(256 * MIB), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(displace(4 * MIB, 4 * MIB), CUDA_SUCCESS);
	assert_false(gpd_host_memory_mapped(&fake.session, FAKE_WINDOW + 5 * MIB, 1));
	fake_session_run_markers(&fake, -1);
	assert_int_equal(used(), 2 * MIB);
	assert_int_equal(place(4 * MIB, 2 * MIB), CUDA_SUCCESS);
}

TEST(memory_that_cannot_be_placed_is_refused)
{
	const struct gp_args_gpHostUnmap other_way = { FAKE_WINDOW, 2 * MIB };

	assert_int_equal(place(0, 2 * MIB), CUDA_SUCCESS);
	assert_int_equal(place(0, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(place(2 * MIB, 4096), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(place(2 * MIB, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(place(2 * MIB, 64 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpd_gpHostUnmap(&fake.session, &other_way), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(displace(0, 4 * MIB), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(used(), 2 * MIB);
	assert_int_equal(place(FAKE_WINDOW_SIZE, 2 * MIB), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(used(), 2 * MIB);
}

UNIT_TEST_MAIN(NULL, NULL)
