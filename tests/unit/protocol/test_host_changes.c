/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/host_changes.h"
#include "tests/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 5000
#define ADDRESS UINT64_C(0x700000000000)

struct ends {
	uint8_t here[SIZE + 8] __attribute__((aligned(8))), here_shadow[SIZE + 8];
	uint8_t there[SIZE + 8] __attribute__((aligned(8)));
	size_t offset; /* of the range */
	size_t stored, count;
	size_t order[64];
	uint8_t bytes[GP_CHANGES_MAX] __attribute__((aligned(8)));
};

static struct ends ends;

static int
setup(void **state)
{
	memset(&ends, 0, sizeof(ends));
	return 0;
}

static void
store(void *arg, const struct gp_change *change)
{
	struct ends *e = arg;
	size_t at = (size_t)(change->address - ADDRESS);

	assert_true(at + change->size <= SIZE + 8);
	gp_changes_store(e->there + at, change->bytes, change->size);
	e->stored += change->size;
	if (e->count < 64)
		e->order[e->count] = at;
	e->count++;
}

static uint64_t
send(size_t offset, size_t size, size_t room)
{
	const struct gp_changes_range range = { ADDRESS + offset, ends.here + offset,
						ends.here_shadow + offset, size };
	struct gp_changes changes = { .bytes = ends.bytes, .room = room };
	uint64_t done = gp_changes_find(&changes, &range, 1);

	assert_true(changes.size <= room);
	assert_true(gp_changes_are_sound(changes.bytes, changes.size));
	gp_changes_each(changes.bytes, changes.size, store, &ends);
	return done;
}

static void
only_words_that_changed_travel(void **state)
{
	assert_int_equal(send(0, SIZE, GP_CHANGES_MAX), SIZE);
	assert_int_equal(ends.count, 0);
	ends.here[1] = 1;
	ends.here[2047] = 2;
	ends.here[SIZE - 1] = 3;
	assert_int_equal(send(0, SIZE, GP_CHANGES_MAX), SIZE);
	assert_int_equal(ends.count, 3);
	assert_int_equal(ends.stored, 12);
	assert_memory_equal(ends.here, ends.there, SIZE);
	assert_memory_equal(ends.here, ends.here_shadow, SIZE);
	assert_int_equal(send(0, SIZE, GP_CHANGES_MAX), SIZE);
	assert_int_equal(ends.count, 3);
}

static void
what_lies_around_a_range_of_odd_ends_is_left(void **state)
{
	for (size_t offset = 0; offset < 8; offset++) {
		for (size_t size = 1; size < 40; size++) {
			memset(&ends, 0, sizeof(ends));
			memset(ends.here, 7, sizeof(ends.here));
			assert_int_equal(send(offset, size, GP_CHANGES_MAX), size);
			for (size_t i = 0; i < 64; i++)
				assert_int_equal(ends.there[i],
						 i >= offset && i < offset + size ? 7 : 0);
		}
	}
}

static void
long_runs_are_stored_before_short_ones(void **state)
{
	ends.here[0] = 1;               /* a flag in front */
	memset(ends.here + 64, 2, 100); /* data */
	ends.here[400] = 3;             /* a flag behind */
	memset(ends.here + 512, 4, 16);
	(void)send(0, SIZE, GP_CHANGES_MAX);
	assert_int_equal(ends.count, 4);
	assert_int_equal(ends.order[0], 64);
	assert_int_equal(ends.order[1], 512);
	assert_int_equal(ends.order[2], 0);
	assert_int_equal(ends.order[3], 400);
}

static void
without_room_the_rest_comes_later(void **state)
{
	size_t at = 0;
	int rounds = 0;

	for (size_t i = 0; i < SIZE; i += 8)
		ends.here[i] = (uint8_t)(i / 8 + 1);
	while (at < SIZE) {
		uint64_t done = send(at, SIZE - at, 4096);

		assert_true(done > 0);
		at += done;
		rounds++;
	}
	assert_true(rounds > 1);
	assert_memory_equal(ends.here, ends.there, SIZE);
}

static void
a_whole_range_is_taken_whatever_the_shadow_says(void **state)
{
	const struct gp_changes_range range = { ADDRESS, ends.here, ends.here_shadow, SIZE };
	size_t at = 0;

	memset(ends.here, 9, SIZE);
	memset(ends.here_shadow, 9, SIZE);
	while (at < SIZE) {
		struct gp_changes changes = { .bytes = ends.bytes, .room = 1000 };
		size_t took = gp_changes_take_all(&changes, &range, at);

		assert_true(took > 0);
		gp_changes_each(changes.bytes, changes.size, store, &ends);
		at += took;
	}
	assert_memory_equal(ends.here, ends.there, SIZE);
}

static void
bytes_that_are_no_runs_are_refused(void **state)
{
	uint8_t *bytes = ends.bytes;
	const size_t whole = 16 + 16;
	size_t size;

	ends.here[100] = 1;
	memset(ends.here + 101, 1, 8);
	{
		const struct gp_changes_range range = { ADDRESS, ends.here, ends.here_shadow,
							SIZE };
		struct gp_changes changes = { .bytes = bytes, .room = GP_CHANGES_MAX };

		(void)gp_changes_find(&changes, &range, 1);
		size = changes.size;
	}
	assert_int_equal(size, whole);
	for (size_t cut = 1; cut < size; cut++)
		assert_false(gp_changes_are_sound(bytes, cut));
	assert_true(gp_changes_are_sound(bytes, 0));
	assert_true(gp_changes_are_sound(bytes, size));
	bytes[8] = 0; /* of nothing */
	assert_false(gp_changes_are_sound(bytes, size));
	bytes[8] = 200; /* of more than there is */
	assert_false(gp_changes_are_sound(bytes, size));
	memset(bytes + 8, 0xff, 4);
	assert_false(gp_changes_are_sound(bytes, size));
	bytes[8] = 12;
	memset(bytes + 9, 0, 3);
	bytes[12] = 1;
	assert_false(gp_changes_are_sound(bytes, size));
	bytes[12] = 0;
	assert_true(gp_changes_are_sound(bytes, size));
	memset(bytes, 0xff, 8); /* beyond the last address */
	assert_false(gp_changes_are_sound(bytes, size));
}

/* Data, then the flag for it, again and again. */
static atomic_bool stop;

static void *
write_pairs(void *unused)
{
	uint32_t value = 0;

	while (!atomic_load(&stop)) {
		uint32_t *data = (uint32_t *)(void *)(ends.here + 2000);
		uint32_t *flag = (uint32_t *)(void *)(ends.here + 8);

		value++;
		for (int i = 0; i < 16; i++)
			__atomic_store_n(&data[i], value, __ATOMIC_RELEASE);
		__atomic_store_n(flag, value, __ATOMIC_RELEASE);
		/* Longer than a look takes. */
		for (int i = 0; i < 2000 && !atomic_load(&stop); i++)
			__builtin_ia32_pause();
	}
	return unused;
}

static void
a_flag_does_not_come_before_its_data(void **state)
{
	pthread_t writer;

	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&writer, NULL, write_pairs, NULL), 0);
	for (int i = 0; i < 2000; i++) {
		uint32_t flag, data;

		(void)send(0, SIZE, GP_CHANGES_MAX);
		memcpy(&flag, ends.there + 8, 4);
		memcpy(&data, ends.there + 2000 + 60, 4);
		assert_true(data >= flag);
	}
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(writer, NULL), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(only_words_that_changed_travel, setup),
		cmocka_unit_test_setup(what_lies_around_a_range_of_odd_ends_is_left, setup),
		cmocka_unit_test_setup(long_runs_are_stored_before_short_ones, setup),
		cmocka_unit_test_setup(without_room_the_rest_comes_later, setup),
		cmocka_unit_test_setup(a_whole_range_is_taken_whatever_the_shadow_says, setup),
		cmocka_unit_test_setup(bytes_that_are_no_runs_are_refused, setup),
		cmocka_unit_test_setup(a_flag_does_not_come_before_its_data, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
