/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/pack.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
#define SLOW ((uint64_t)2000000000) /* ns for 1 MiB */

static uint8_t bytes[MIB], packed[MIB], memory[MIB + GP_PACK_SLACK + 64];

static void
fill_plain(void)
{
	for (size_t i = 0; i < MIB; i++)
		bytes[i] = (uint8_t)(i / 64 % 50);
}

static void
fill_noise(void)
{
	uint64_t x = 88172645463325252ull;

	for (size_t i = 0; i < MIB; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		bytes[i] = (uint8_t)(x >> 32);
	}
}

UNIT_TEST(bytes_come_out_as_they_went_in)
{
	const size_t sizes[] = { GP_PACK_MIN, 70001, MIB };

	fill_plain();
	for (size_t i = 0; i < 3; i++) {
		struct gp_pack pack = { .mode = GP_PACK_ON };
		size_t size = sizes[i], got;

		assert_true(gp_pack_should_try(&pack, bytes, size));
		got = gp_pack_try(&pack, bytes, size, packed);
		assert_in_range(got, 1, size / 8 * 7);
		memset(memory, 0x5a, sizeof(memory));
		assert_int_equal(gp_unpack(packed, got, memory, size), 0);
		assert_memory_equal(memory, bytes, size);
		assert_int_equal(memory[size], 0x5a);
		memset(memory, 0x5a, sizeof(memory));
		memcpy(gp_unpack_get_source(memory, got, size), packed, got);
		assert_int_equal(gp_unpack_in_place(memory, got, size), 0);
		assert_memory_equal(memory, bytes, size);
		assert_int_equal(memory[size + GP_PACK_SLACK], 0x5a);
	}
}

UNIT_TEST(wrong_bytes_are_refused_and_stay_in_their_place)
{
	struct gp_pack pack = { .mode = GP_PACK_ON };
	size_t got;

	fill_plain();
	got = gp_pack_try(&pack, bytes, MIB, packed);
	assert_true(got > 0);
	assert_int_equal(gp_unpack(packed, got, memory, MIB - 1), -1);
	assert_int_equal(gp_unpack(packed, got - 1, memory, MIB), -1);
	srand(7);
	for (int i = 0; i < 1000; i++) {
		size_t size = GP_PACK_MIN + (size_t)rand() % 60000;
		size_t length = 1 + (size_t)rand() % (size - 1);
		uint8_t *place = gp_unpack_get_source(memory, length, size);

		memory[size + GP_PACK_SLACK] = 0x5a;
		for (size_t at = 0; at < length; at++)
			place[at] = (uint8_t)rand();
		(void)gp_unpack_in_place(memory, length, size);
		assert_int_equal(memory[size + GP_PACK_SLACK], 0x5a);
	}
}

UNIT_TEST(noise_is_sent_as_it_is_and_seldom_tried_again)
{
	struct gp_pack pack = { .mode = GP_PACK_ON };
	unsigned int tried = 0;

	fill_noise();
	for (int i = 0; i < 1000; i++) {
		if (!gp_pack_should_try(&pack, bytes, MIB))
			continue;
		tried++;
		assert_int_equal(gp_pack_try(&pack, bytes, MIB, packed), 0);
	}
	assert_in_range(tried, 2, 30);
}

/* In the middle of the longest pause. */
UNIT_TEST(other_bytes_behind_noise_are_seen_at_once)
{
	struct gp_pack pack = { .mode = GP_PACK_ON };

	fill_noise();
	for (int i = 0; i < 1000; i++) {
		if (gp_pack_should_try(&pack, bytes, MIB))
			(void)gp_pack_try(&pack, bytes, MIB, packed);
	}
	fill_plain();
	for (int i = 0; i < 10; i++) {
		assert_true(gp_pack_should_try(&pack, bytes, MIB));
		assert_true(gp_pack_try(&pack, bytes, MIB, packed) > 0);
	}
}

/* Plain where it is looked at. */
UNIT_TEST(bytes_that_mislead_are_seldom_tried)
{
	struct gp_pack pack = { .mode = GP_PACK_ON };
	unsigned int tried = 0;

	fill_noise();
	for (size_t i = 0; i < 3; i++)
		memset(bytes + (MIB - 1024) / 2 * i, 0, 1024);
	for (int i = 0; i < 1000; i++) {
		if (!gp_pack_should_try(&pack, bytes, MIB))
			continue;
		tried++;
		assert_int_equal(gp_pack_try(&pack, bytes, MIB, packed), 0);
	}
	assert_in_range(tried, 2, 30);
}

UNIT_TEST(by_itself_it_packs_on_a_slow_link_only)
{
	struct gp_pack pack = { .mode = GP_PACK_AUTO };

	assert_false(gp_pack_should_try(&pack, bytes, MIB));
	gp_pack_note_sent(&pack, MIB, 100000);
	assert_false(gp_pack_should_try(&pack, bytes, MIB));
	for (int i = 0; i < 20; i++)
		gp_pack_note_sent(&pack, MIB, SLOW);
	assert_true(gp_pack_should_try(&pack, bytes, MIB));
	assert_false(gp_pack_should_try(&pack, bytes, GP_PACK_MIN - 1));
	for (int i = 0; i < 60; i++)
		gp_pack_note_sent(&pack, MIB, 100000);
	assert_false(gp_pack_should_try(&pack, bytes, MIB));
	pack = (struct gp_pack){ .mode = GP_PACK_OFF };
	gp_pack_note_sent(&pack, MIB, SLOW);
	assert_false(gp_pack_should_try(&pack, bytes, MIB));
}

UNIT_TEST_MAIN(NULL, NULL)
