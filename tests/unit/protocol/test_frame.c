/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/frame.h"
#include "tests/test.h"

#include <string.h>

UNIT_TEST(the_bytes_of_a_chunk_are_as_documented)
{
	const struct gp_chunk chunk = { .copy = 0x01020304,
					.offset = 0x1122334455667788,
					.size = 9 };
	const uint8_t expected[GP_CHUNK_SIZE] = { 4,    3,    2,    1,    0,    0,    0,    0,
						  0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11 };
	uint8_t bytes[GP_CHUNK_SIZE];

	gp_chunk_encode(&chunk, bytes);

	assert_memory_equal(bytes, expected, sizeof(bytes));
}

UNIT_TEST(decoding_yields_what_was_encoded)
{
	const struct gp_chunk in = { .copy = UINT32_MAX, .offset = (uint64_t)7 << 40, .size = 77 };
	uint8_t bytes[GP_CHUNK_SIZE];
	struct gp_chunk out;

	gp_chunk_encode(&in, bytes);

	assert_int_equal(gp_chunk_decode(&out, bytes, sizeof(bytes), 77), 0);
	assert_int_equal(out.copy, in.copy);
	assert_int_equal(out.offset, in.offset);
	assert_int_equal(out.size, 77);
}

UNIT_TEST(what_is_no_chunk_is_malformed)
{
	struct gp_chunk chunk = { .copy = 1 };
	uint8_t bytes[GP_CHUNK_SIZE + 8] = { 1 };

	assert_int_equal(gp_chunk_decode(&chunk, bytes, 16, GP_CHUNK_MAX), 0);
	assert_int_equal(gp_chunk_decode(&chunk, bytes, 16, GP_CHUNK_MAX + 1), GP_FRAME_MALFORMED);
	assert_int_equal(gp_chunk_decode(&chunk, bytes, 16, 0), GP_FRAME_MALFORMED);
	assert_int_equal(gp_chunk_decode(&chunk, bytes, 15, 1), GP_FRAME_MALFORMED);
	assert_int_equal(gp_chunk_decode(&chunk, bytes, 24, 1), GP_FRAME_MALFORMED);
	assert_int_equal(gp_chunk_decode(&chunk, bytes, 0, 1), GP_FRAME_MALFORMED);
	for (size_t i = 6; i < 8; i++) {
		bytes[i] = 0x80;
		assert_int_equal(gp_chunk_decode(&chunk, bytes, 16, 1), GP_FRAME_MALFORMED);
		bytes[i] = 0;
	}
	/* Compressed ones are shorter than what they are. */
	bytes[5] = 1;
	assert_int_equal(gp_chunk_decode(&chunk, bytes, 16, 255), 0);
	assert_int_equal(chunk.size, 256);
	assert_int_equal(chunk.packed, 255);
	assert_int_equal(gp_chunk_decode(&chunk, bytes, 16, 256), GP_FRAME_MALFORMED);
	bytes[5] = 0;
	memset(bytes + 8, 0xff, 8);
	assert_int_equal(gp_chunk_decode(&chunk, bytes, 16, 1), GP_FRAME_MALFORMED);
}

UNIT_TEST(chunks_of_a_copy_have_fixed_places)
{
	const uint64_t size = 2 * GP_CHUNK_MAX + 5;

	assert_int_equal(gp_chunk_get_expected_size(size, GP_CHUNK_MAX, 0), GP_CHUNK_MAX);
	assert_int_equal(gp_chunk_get_expected_size(size, GP_CHUNK_MAX, GP_CHUNK_MAX),
			 GP_CHUNK_MAX);
	assert_int_equal(gp_chunk_get_expected_size(size, GP_CHUNK_MAX, 2 * GP_CHUNK_MAX), 5);
	assert_int_equal(gp_chunk_get_expected_size(size, GP_CHUNK_MAX, 3 * GP_CHUNK_MAX), 0);
	assert_int_equal(gp_chunk_get_expected_size(size, GP_CHUNK_MAX, 1), 0);
	assert_int_equal(gp_chunk_get_expected_size(size, GP_CHUNK_MAX, GP_CHUNK_MAX / 2), 0);
	assert_int_equal(gp_chunk_get_expected_size(GP_CHUNK_MAX, GP_CHUNK_MAX, GP_CHUNK_MAX), 0);
	assert_int_equal(gp_chunk_get_expected_size(1, GP_CHUNK_MAX, 0), 1);
	assert_int_equal(gp_chunk_get_expected_size(0, GP_CHUNK_MAX, 0), 0);
	assert_int_equal(gp_chunk_get_expected_size(UINT64_MAX, GP_CHUNK_MAX, UINT64_MAX), 0);
}

UNIT_TEST(chunks_of_short_copies_are_short_where_both_ends_know_it)
{
	const uint64_t unit = 64 << 10;

	for (uint64_t size = 1; size < 20 * GP_CHUNK_MAX; size += 77777) {
		uint64_t step = gp_chunk_get_step(size, true);

		assert_int_equal(gp_chunk_get_step(size, false), GP_CHUNK_MAX);
		assert_int_equal(step % unit, 0);
		assert_in_range(step, 2 * unit, GP_CHUNK_MAX);
		assert_true(step == GP_CHUNK_MAX || (size + step - 1) / step <= 8);
	}
	assert_int_equal(gp_chunk_get_step(8 * GP_CHUNK_MAX, true), GP_CHUNK_MAX);
	assert_int_equal(gp_chunk_get_step(4 * GP_CHUNK_MAX, true), 9 * unit);
	assert_int_equal(gp_chunk_get_step(UINT64_MAX, true), GP_CHUNK_MAX);
	assert_int_equal(gp_chunk_get_expected_size(300000, 2 * unit, 2 * unit), 2 * unit);
	assert_int_equal(gp_chunk_get_expected_size(300000, 2 * unit, 4 * unit), 300000 - 4 * unit);
	assert_int_equal(gp_chunk_get_expected_size(300000, 2 * unit, unit), 0);
}

UNIT_TEST_MAIN(NULL, NULL)
