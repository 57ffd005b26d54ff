/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/copy/staging.h"
#include "tests/test.h"
#include "tests/unit/server/fake_session.h"

#include <string.h>

static struct fake_session fake;

static int
setup(void **state)
{
	fake_session_create(&fake);
	return gpd_staging_create(&fake.session);
}

static int
teardown(void **state)
{
	fake_session_run_markers(&fake, -1);
	gpd_staging_destroy(&fake.session);
	fake_session_destroy(&fake);
	return 0;
}

#define TEST(test) UNIT_TEST_WITH(test, setup, teardown)

TEST(without_pinned_memory_there_is_an_error)
{
	struct gpd_piece piece;

	fake_driver_fail("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY, 0);
	assert_int_equal(gpd_staging_acquire_in(&fake.session, GPD_STAGING_SLOT, &piece),
			 CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(small_pieces_share_a_slot_without_overlap)
{
	struct gpd_piece pieces[100];

	for (int i = 0; i < 100; i++) {
		assert_int_equal(gpd_staging_acquire_in(&fake.session, 100, &pieces[i]),
				 CUDA_SUCCESS);
		memset(pieces[i].memory, i, 100);
	}

	for (int i = 0; i < 100; i++)
		assert_int_equal(((uint8_t *)pieces[i].memory)[99], i);
	assert_int_equal(fake_session_markers(&fake), 0);
}

TEST(a_full_slot_takes_one_marker)
{
	struct gpd_piece piece;

	for (size_t i = 0; i < GPD_STAGING_SLOT / GPD_STAGING_SMALL; i++)
		gpd_staging_acquire_in(&fake.session, GPD_STAGING_SMALL, &piece);
	assert_int_equal(fake_session_markers(&fake), 0);

	assert_int_equal(gpd_staging_acquire_in(&fake.session, 1, &piece), CUDA_SUCCESS);
	assert_int_equal(fake_session_markers(&fake), 1);
}

TEST(a_session_at_its_share_waits_for_its_copies)
{
	struct gpd_piece piece;
	size_t slots = 3 * GPD_STAGING_SHARE;

	for (size_t i = 0; i < slots * GPD_STAGING_SLOT / GPD_STAGING_SMALL; i++)
		assert_int_equal(gpd_staging_acquire_in(&fake.session, GPD_STAGING_SMALL, &piece),
				 CUDA_SUCCESS);

	assert_true(fake_session_markers(&fake) < GPD_STAGING_SHARE);
	assert_true(fake_driver_count_calls("cuMemHostAlloc") <= GPD_STAGING_SHARE / 8);
}

TEST(an_answered_piece_is_used_again)
{
	struct gpd_piece first, second;

	gpd_staging_acquire_out(&fake.session, 4, &first);
	gpd_staging_acquire_out(&fake.session, 4, &second);
	assert_ptr_not_equal(first.memory, second.memory);
	gpd_staging_release(&fake.session, &second);
	gpd_staging_release(&fake.session, &first);

	for (int i = 0; i < 100000; i++) {
		gpd_staging_acquire_out(&fake.session, GPD_STAGING_SMALL, &first);
		gpd_staging_release(&fake.session, &first);
	}
	assert_true(fake_driver_count_calls("cuMemHostAlloc") <= 1);
}

TEST(a_piece_outlives_the_slot_it_was_cut_from)
{
	struct gpd_piece old, piece;

	gpd_staging_acquire_out(&fake.session, 4, &old);
	memcpy(old.memory, "old", 4);
	for (int i = 0; i < 20; i++) {
		gpd_staging_acquire_out(&fake.session, GPD_STAGING_SMALL, &piece);
		memset(piece.memory, 0xff, GPD_STAGING_SMALL);
		gpd_staging_release(&fake.session, &piece);
	}

	assert_string_equal(old.memory, "old");
	gpd_staging_release(&fake.session, &old);
}

TEST(copies_out_leave_room_for_copies_in)
{
	struct gpd_piece out[GPD_STAGING_SHARE], small, in;
	size_t count = 0;

	while (gpd_staging_acquire_out(&fake.session, GPD_STAGING_SLOT, &out[count]) ==
	       CUDA_SUCCESS)
		count++;
	assert_int_equal(count, GPD_STAGING_SHARE_OUT);
	assert_int_equal(gpd_staging_acquire_out(&fake.session, 1, &small), CUDA_SUCCESS);
	assert_int_equal(gpd_staging_acquire_in(&fake.session, GPD_STAGING_SLOT, &in),
			 CUDA_SUCCESS);
	gpd_staging_release(&fake.session, &in);
	gpd_staging_release(&fake.session, &small);
	while (count)
		gpd_staging_release(&fake.session, &out[--count]);
}

static void
take_listed(struct gpd_piece *piece, size_t size, uint32_t number, uint64_t offset)
{
	assert_int_equal(gpd_staging_acquire_in(&fake.session, size, piece), CUDA_SUCCESS);
	assert_int_equal(gpd_staging_list(&fake.session, piece, number, offset, size),
			 CUDA_SUCCESS);
	memset(piece->memory, 1, size);
}

static const uint8_t *
bytes_of(const struct gpd_piece *piece)
{
	return piece->memory;
}

TEST(parts_of_a_listed_copy_are_replaced)
{
	struct gpd_piece first, second, other;
	uint8_t bytes[300];

	memset(bytes, 2, sizeof(bytes));
	take_listed(&first, GPD_STAGING_SLOT, 7, 0);
	take_listed(&second, 100, 7, GPD_STAGING_SLOT);
	take_listed(&other, 100, 8, GPD_STAGING_SLOT);
	/* The end of one part and the beginning of the next. */
	gpd_staging_replace(&fake.session, 7, GPD_STAGING_SLOT - 50, bytes, 100);
	assert_int_equal(bytes_of(&first)[GPD_STAGING_SLOT - 51], 1);
	assert_int_equal(bytes_of(&first)[GPD_STAGING_SLOT - 50], 2);
	assert_int_equal(bytes_of(&first)[GPD_STAGING_SLOT - 1], 2);
	assert_int_equal(bytes_of(&second)[49], 2);
	assert_int_equal(bytes_of(&second)[50], 1);
	assert_int_equal(bytes_of(&other)[0], 1);
	/* Beyond its end. */
	gpd_staging_replace(&fake.session, 7, GPD_STAGING_SLOT + 50, bytes, 300);
	gpd_staging_replace(&fake.session, 7, UINT64_MAX - 300, bytes, 300);
	assert_int_equal(bytes_of(&second)[99], 2);
	assert_int_equal(bytes_of(&other)[0], 1);
	gpd_staging_release(&fake.session, &first);
}

TEST(what_was_put_back_is_not_replaced)
{
	struct gpd_piece piece;
	const uint8_t *memory;
	uint8_t byte = 2;

	take_listed(&piece, GPD_STAGING_SLOT, 7, 0);
	memory = piece.memory;
	gpd_staging_release(&fake.session, &piece);
	gpd_staging_replace(&fake.session, 7, 0, &byte, 1);
	assert_int_equal(memory[0], 1);
}

TEST(listed_copies_leave_the_share_to_others)
{
	static struct gpd_piece listed[GPD_STAGING_LISTED], others[GPD_STAGING_SHARE];

	for (size_t i = 0; i < GPD_STAGING_LISTED; i++)
		take_listed(&listed[i], GPD_STAGING_SLOT, (uint32_t)i, 0);
	for (size_t i = 0; i < GPD_STAGING_SHARE; i++)
		assert_int_equal(
			gpd_staging_acquire_in(&fake.session, GPD_STAGING_SLOT, &others[i]),
			CUDA_SUCCESS);
	for (size_t i = 0; i < GPD_STAGING_LISTED; i++)
		gpd_staging_release(&fake.session, &listed[i]);
	for (size_t i = 0; i < GPD_STAGING_SHARE; i++)
		gpd_staging_release(&fake.session, &others[i]);
	/* The bytes of the copies count for the session again, no more and no less. */
	for (size_t i = 0; i < GPD_STAGING_SHARE_OUT; i++)
		assert_int_equal(
			gpd_staging_acquire_out(&fake.session, GPD_STAGING_SLOT, &others[i]),
			CUDA_SUCCESS);
	assert_int_equal(gpd_staging_acquire_out(&fake.session, GPD_STAGING_SLOT, &others[60]),
			 CUDA_ERROR_NOT_READY);
	for (size_t i = 0; i < GPD_STAGING_SHARE_OUT; i++)
		gpd_staging_release(&fake.session, &others[i]);
}

/* Runs last: the limit stays. */
TEST(an_exhausted_pool_still_gives_every_session_a_little)
{
	static struct fake_session other;
	struct gpd_piece pieces[2 * GPD_STAGING_SHARE], more[GPD_STAGING_SHARE];
	size_t count = 0, others = 0;

	assert_int_equal(gpd_staging_start(1), CUDA_SUCCESS);
	while (gpd_staging_acquire_out(&fake.session, GPD_STAGING_SLOT, &pieces[count]) ==
	       CUDA_SUCCESS)
		count++;
	fake_session_create(&other);
	assert_int_equal(gpd_staging_create(&other.session), 0);
	while (gpd_staging_acquire_out(&other.session, GPD_STAGING_SLOT, &more[others]) ==
	       CUDA_SUCCESS)
		others++;

	assert_true(others >= GPD_STAGING_SHARE_MIN);
	while (others)
		gpd_staging_release(&other.session, &more[--others]);
	while (count)
		gpd_staging_release(&fake.session, &pieces[--count]);
	gpd_staging_destroy(&other.session);
	fake_session_destroy(&other);
}

UNIT_TEST_MAIN(NULL, NULL)
