/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of changes in which single bytes are unchanged. */
#include "protocol/host_merge.h"
#include "tests/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 9000
#define ADDRESS UINT64_C(0x700000000000)

struct ends {
	uint8_t now[SIZE] __attribute__((aligned(8))), before[SIZE];
	uint8_t there[SIZE] __attribute__((aligned(8)));
	uint8_t record[GP_CHANGES_MAX] __attribute__((aligned(8)));
	uint8_t cut[4096] __attribute__((aligned(8)));
};

static struct ends ends;
static unsigned int state_of_random;
static atomic_bool over, wrong;

static unsigned int
random_next(void)
{
	state_of_random = state_of_random * 1103515245 + 12345;
	return state_of_random >> 16;
}

static int
setup(void **state)
{
	memset(&ends, 0, sizeof(ends));
	state_of_random = 1;
	atomic_store(&wrong, false);
	return 0;
}

static void
store(void *unused, const struct gp_change *change)
{
	size_t at = (size_t)(change->address - ADDRESS);

	assert_true(at < SIZE && change->size <= SIZE - at);
	assert_true(!change->same || change->size <= GP_CHANGES_MASKED);
	gp_merge_store(ends.there + at, change->bytes, change->size, change->same);
}

/* Through records of 4 KiB; the size of all runs. */
static size_t
send(size_t offset, size_t size)
{
	struct gp_changes all = { .bytes = ends.record, .capacity = sizeof(ends.record) };
	size_t at = 0, skip = 0;

	gp_merge_write(&all, ADDRESS + offset, ends.now + offset, ends.before + offset, size);
	assert_true(all.size <= 3 * gp_changes_get_run_size(size));
	assert_true(gp_changes_are_valid(all.bytes, all.size));
	for (;;) {
		struct gp_changes record = { .bytes = ends.cut, .capacity = sizeof(ends.cut) };

		if (!gp_changes_move(&record, &all, &at, &skip))
			break;
		assert_true(record.size <= record.capacity);
		assert_true(gp_changes_are_valid(record.bytes, record.size));
		gp_changes_for_each(record.bytes, record.size, store, NULL);
	}
	assert_int_equal(at, all.size);
	return all.size;
}

/* Each byte is changed here, there or at neither end, in `of` of 64 cases here. */
static void
ends_fill(unsigned int of)
{
	for (size_t i = 0; i < SIZE; i++) {
		ends.before[i] = (uint8_t)random_next();
		ends.now[i] = ends.there[i] = ends.before[i];
		if (random_next() % 64 < of)
			ends.now[i] ^= (uint8_t)(1 + random_next() % 255);
		else if (random_next() & 1)
			ends.there[i] ^= 0x55;
	}
}

static void
ends_check(size_t offset, size_t size, const uint8_t *earlier)
{
	for (size_t i = 0; i < SIZE; i++) {
		bool changed = i >= offset && i < offset + size && ends.now[i] != ends.before[i];

		assert_int_equal(ends.there[i], changed ? ends.now[i] : earlier[i]);
	}
}

UNIT_TEST_WITH(bytes_that_are_unchanged_keep_the_other_ends_value, setup, NULL)
{
	static const size_t sizes[] = { 4, 5, 8, 12, 31, 32, 33, 40, 100, 2047, 2048, 2080, 7000 };
	static uint8_t earlier[SIZE];

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (unsigned int of = 0; of <= 64; of += of < 60 ? 15 : 1) {
			size_t offset = random_next() % (SIZE - sizes[i]);

			ends_fill(of);
			memcpy(earlier, ends.there, SIZE);
			(void)send(offset, sizes[i]);
			ends_check(offset, sizes[i], earlier);
		}
	}
}

/* Data that is written as a whole has equal bytes by accident; small numbers have many, in each
 * word. */
UNIT_TEST_WITH(ordinary_data_takes_little_more_room, setup, NULL)
{
	uint32_t *words = (uint32_t *)(void *)ends.now;

	for (size_t i = 0; i < SIZE; i++) {
		ends.before[i] = (uint8_t)(random_next() >> 3);
		ends.now[i] = (uint8_t)(random_next() >> 3);
	}
	assert_in_range(send(0, 8192), 8192, 8192 + 8192 / 25);
	memset(ends.before, 0, SIZE);
	for (uint32_t i = 0; i < 2048; i++)
		words[i] = i;
	assert_in_range(send(0, 8192), 8192, 8192 + 8192 / 25);
	/* A flag. */
	words[0] = 1;
	ends.before[0] = 0;
	assert_int_equal(send(0, 4), gp_changes_get_run_size(4));
	assert_int_equal(send(0, 8), gp_changes_get_run_size(8));
}

UNIT_TEST_WITH(runs_that_cannot_be_unpacked_are_refused, setup, NULL)
{
	struct gp_changes all = { .bytes = ends.record, .capacity = sizeof(ends.record) };
	uint8_t copy[4096] __attribute__((aligned(8)));

	memset(ends.now, 1, SIZE);
	for (size_t i = 0; i < 200; i += 3)
		ends.now[i] = 0;
	gp_merge_write(&all, ADDRESS, ends.now, ends.before, 200);
	assert_true(all.size < sizeof(copy));
	assert_true(gp_changes_are_valid(all.bytes, all.size));
	/* Another size, a longer payload, bits of blocks that are not there. */
	for (size_t i = 8; i < 24; i++) {
		memcpy(copy, all.bytes, all.size);
		copy[i] ^= 0x80;
		assert_false(gp_changes_are_valid(copy, all.size));
	}
	memcpy(copy, all.bytes, all.size);
	copy[16 + 7] = 1;
	assert_false(gp_changes_are_valid(copy, all.size));
	/* A mask of more bytes than the run has. */
	all.size = 0;
	gp_merge_write(&all, ADDRESS, ends.now, ends.before, 4);
	memcpy(copy, all.bytes, all.size);
	copy[12] |= 0x10;
	assert_false(gp_changes_are_valid(copy, all.size));
	/* One that lies in two segments. */
	memset(copy, 0, 16 + 16 + 40);
	copy[0] = 0xf0;
	copy[1] = 0x07;
	copy[8] = 40;
	copy[12] = 16 + 40;
	assert_false(gp_changes_are_valid(copy, 16 + 16 + 40));
	copy[0] = 0;
	assert_true(gp_changes_are_valid(copy, 16 + 16 + 40));
	/* A repeated mask of a block that has none. */
	copy[16 + 8] = 1;
	assert_false(gp_changes_are_valid(copy, 16 + 16 + 40));
}

#define ROUNDS 20000

/* Adds to the first byte of each word, as another writer of these words. */
static void *
neighbours_write(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		for (size_t at = 0; at < 32; at += 4)
			__atomic_store_n(ends.there + at, (uint8_t)i, __ATOMIC_RELAXED);
		if (i % 64 == 0)
			(void)sched_yield();
		for (size_t at = 0; at < 32; at += 4) {
			if (__atomic_load_n(ends.there + at, __ATOMIC_RELAXED) != (uint8_t)i)
				atomic_store(&wrong, true);
		}
	}
	atomic_store(&over, true);
	return NULL;
}

/* All three, two, or one of the other bytes, and words as a whole beside them. */
UNIT_TEST_WITH(a_store_loses_no_byte_of_another_writer, setup, NULL)
{
	static const uint32_t masks[] = { 0x11111111, 0x99999999, 0xd1d1d1d1, 0x13137171 };
	uint8_t bytes[32];
	pthread_t thread;

	atomic_store(&over, false);
	assert_int_equal(pthread_create(&thread, NULL, neighbours_write, NULL), 0);
	for (unsigned int i = 0; !atomic_load(&over); i++) {
		memset(bytes, (int)(i & 255), sizeof(bytes));
		gp_merge_store(ends.there, bytes, sizeof(bytes), masks[i % 4]);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(atomic_load(&wrong));
}

static void *
words_read(void *unused)
{
	const uint64_t *word = (const uint64_t *)(void *)ends.there;

	for (int i = 0; i < ROUNDS * 10; i++) {
		uint64_t now = __atomic_load_n(word, __ATOMIC_RELAXED);

		for (unsigned int at = 1; at < 8; at++) {
			if (at % 4 &&
			    (uint8_t)(now >> at * 8) != (uint8_t)((uint8_t)(now >> 8) * (at % 4)))
				atomic_store(&wrong, true);
		}
	}
	atomic_store(&over, true);
	return NULL;
}

/* Three bytes of each half. */
UNIT_TEST_WITH(aligned_words_are_stored_at_once, setup, NULL)
{
	uint8_t bytes[8];
	pthread_t thread;

	atomic_store(&over, false);
	assert_int_equal(pthread_create(&thread, NULL, words_read, NULL), 0);
	for (unsigned int i = 0; !atomic_load(&over); i++) {
		for (size_t at = 0; at < 8; at++)
			bytes[at] = (uint8_t)(at % 4 ? i * (at % 4) : 0xee);
		gp_merge_store(ends.there, bytes, 8, 0x11);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(atomic_load(&wrong));
	assert_int_equal(ends.there[0], 0);
	assert_int_equal(ends.there[4], 0);
}

UNIT_TEST_MAIN(NULL, NULL)
