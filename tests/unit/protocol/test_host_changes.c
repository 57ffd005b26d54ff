/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/host_consistent_copy.h"
#include "protocol/host_run_bitmap.h"
#include "tests/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 5000
#define ADDRESS UINT64_C(0x700000000000)

struct ends {
	uint8_t here[SIZE + 8] __attribute__((aligned(8))), here_shadow[SIZE + 8];
	uint8_t there[SIZE + 8] __attribute__((aligned(8)));
	uint8_t run_bitmap[SIZE / 32 + 3];
	size_t stored, count;
	size_t order[64];
	struct gp_consistent_copy picture;
	uint8_t bytes[GP_CHANGES_MAX] __attribute__((aligned(8)));
};

static struct ends ends;

static int
setup(void **state)
{
	gp_consistent_copy_fini(&ends.picture);
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

static struct gp_changes_range
range_at(size_t offset, size_t size)
{
	return (struct gp_changes_range){
		ADDRESS + offset, ends.here + offset, ends.here_shadow + offset, size,
		gp_run_bitmap_at(ends.run_bitmap, ADDRESS, ADDRESS + offset)
	};
}

/* In records of that room. */
static void
move(size_t room)
{
	size_t at = 0, skip = 0;

	for (;;) {
		struct gp_changes changes = { .bytes = ends.bytes, .capacity = room };

		if (!gp_changes_move(&changes, &ends.picture.ordered, &at, &skip))
			break;
		assert_true(changes.size <= room);
		assert_true(gp_changes_are_valid(changes.bytes, changes.size));
		gp_changes_for_each(changes.bytes, changes.size, store, &ends);
	}
	assert_int_equal(at, ends.picture.ordered.size);
}

static void
send(size_t offset, size_t size)
{
	const struct gp_changes_range range = range_at(offset, size);

	assert_int_equal(gp_consistent_copy_build(&ends.picture, &range, 1, GP_CONSISTENT_COPY_ALL),
			 size);
	move(GP_CHANGES_MAX);
}

UNIT_TEST_WITH(only_words_that_changed_travel, setup, NULL)
{
	send(0, SIZE);
	assert_int_equal(ends.count, 0);
	ends.here[1] = 1;
	ends.here[2047] = 2;
	ends.here[SIZE - 1] = 3;
	send(0, SIZE);
	assert_int_equal(ends.count, 3);
	assert_int_equal(ends.stored, 12);
	assert_memory_equal(ends.here, ends.there, SIZE);
	assert_memory_equal(ends.here, ends.here_shadow, SIZE);
	send(0, SIZE);
	assert_int_equal(ends.count, 3);
}

UNIT_TEST_WITH(what_lies_around_a_range_of_odd_ends_is_left, setup, NULL)
{
	for (size_t offset = 0; offset < 8; offset++) {
		for (size_t size = 1; size < 40; size++) {
			(void)setup(state);
			memset(ends.here, 7, sizeof(ends.here));
			send(offset, size);
			for (size_t i = 0; i < 64; i++)
				assert_int_equal(ends.there[i],
						 i >= offset && i < offset + size ? 7 : 0);
		}
	}
}

/* Whether what lies at a is stored before what lies at b. */
static bool
before(size_t a, size_t b)
{
	size_t at_a = 64, at_b = 64;

	for (size_t i = 0; i < ends.count && i < 64; i++) {
		if (ends.order[i] == a)
			at_a = i;
		if (ends.order[i] == b)
			at_b = i;
	}
	assert_true(at_a < 64 && at_b < 64);
	return at_a < at_b;
}

UNIT_TEST_WITH(data_is_stored_before_what_may_be_a_flag, setup, NULL)
{
	ends.here[0] = 1;               /* a flag in front */
	memset(ends.here + 64, 2, 100); /* data */
	ends.here[400] = 3;             /* a flag behind */
	memset(ends.here + 512, 4, 16); /* data */
	memset(ends.here + 608, 5, 8);  /* data of 8 bytes */
	send(0, SIZE);
	/* Of data what is inside comes first, then its first and its last bytes. */
	assert_int_equal(ends.order[0], 72);
	assert_int_equal(ends.order[1], 64);
	assert_int_equal(ends.order[2], 160);
	assert_true(before(160, 0));
	assert_true(before(160, 400));
	assert_true(before(520, 0));
	assert_true(before(608, 0));
	assert_true(before(608, 400));
	assert_int_equal(ends.count, 3 + 2 + 3);
	assert_memory_equal(ends.here, ends.there, SIZE);
}

/* A picture fell into the middle of data: what is left is as short as the flag in front. */
UNIT_TEST_WITH(the_rest_of_data_is_stored_before_its_flag, setup, NULL)
{
	for (uint8_t round = 1; round < 20; round += 2) {
		memset(ends.here + 64, round, 48);
		send(0, SIZE);
		memset(ends.here + 112, round, 4);
		memset(ends.here + 400, round, 4); /* a flag behind, and one in front */
		ends.here[0] = round;
		ends.count = 0;
		send(0, SIZE);
		assert_int_equal(ends.count, 3);
		assert_int_equal(ends.order[0], 112);
		assert_true(before(112, 0));
		/* And where the picture had an older end of it. */
		memset(ends.here + 64, round + 1, 44);
		send(0, SIZE);
		memset(ends.here + 108, round + 1, 8);
		ends.here[0] = round + 1;
		ends.count = 0;
		send(0, SIZE);
		assert_int_equal(ends.count, 2);
		assert_int_equal(ends.order[0], 108);
	}
}

/* All of them, whatever the record is that they come in. */
UNIT_TEST_WITH(flags_come_in_the_last_record, setup, NULL)
{
	const struct gp_changes_range range = range_at(0, SIZE);

	ends.here[0] = 1;
	memset(ends.here + 8, 2, SIZE - 8 - 400);
	ends.here[12] = 0;
	memset(ends.here + 12, 0, 4);
	assert_int_equal(gp_consistent_copy_build(&ends.picture, &range, 1, GP_CONSISTENT_COPY_ALL),
			 SIZE);
	move(2048);
	assert_int_equal(ends.order[ends.count - 1], 8);
	assert_int_equal(ends.order[ends.count - 2], 0);
	assert_memory_equal(ends.here, ends.there, SIZE);
}

/* A run goes on behind what is looked at in one go, but not in another range. */
UNIT_TEST_WITH(a_run_is_whole_in_its_range, setup, NULL)
{
	const struct gp_changes_range ranges[2] = { range_at(0, 2048), range_at(2048, 1024) };

	memset(ends.here + 1000, 1, 2000);
	assert_int_equal(gp_consistent_copy_build(&ends.picture, ranges, 2, GP_CONSISTENT_COPY_ALL),
			 3072);
	move(GP_CHANGES_MAX);
	assert_int_equal(ends.count, 6);
	assert_int_equal(ends.order[0], 1008);
	assert_int_equal(ends.order[1], 2056);
	assert_memory_equal(ends.here, ends.there, SIZE);
}

#define LARGE ((size_t)6 << 20)

static void
store_large(void *arg, const struct gp_change *change)
{
	gp_changes_store((uint8_t *)arg + (change->address - ADDRESS), change->bytes, change->size);
}

UNIT_TEST_WITH(too_much_comes_in_parts_data_first, setup, NULL)
{
	uint8_t *here = calloc(1, LARGE), *shadow = calloc(1, LARGE), *there = calloc(1, LARGE);
	uint8_t *marks = calloc(1, gp_run_bitmap_get_size(LARGE));
	struct gp_consistent_copy picture = { 0 };
	uint64_t at = 0, parts = 0;
	struct gp_changes_range range = { ADDRESS, here, shadow, LARGE, marks };

	assert_true(here && shadow && there && marks);
	here[0] = 1;
	memset(here + 64, 2, LARGE - 64);
	assert_int_equal(gp_consistent_copy_build(&picture, &range, 1, GP_CONSISTENT_COPY_ALL), 0);
	assert_int_equal(picture.ordered.size, 0);
	assert_int_equal(shadow[64], 0);
	for (; at < LARGE; parts++) {
		range = (struct gp_changes_range){ ADDRESS + at, here + at, shadow + at, LARGE - at,
						   gp_run_bitmap_at(marks, ADDRESS, ADDRESS + at) };
		at += gp_consistent_copy_build(&picture, &range, 1, GP_CONSISTENT_COPY_LONG);
		gp_changes_for_each(picture.ordered.bytes, picture.ordered.size, store_large,
				    there);
	}
	assert_in_range(parts, 2, 3);
	assert_int_equal(there[0], 0);
	assert_memory_equal(here + 64, there + 64, LARGE - 64);
	range = (struct gp_changes_range){ ADDRESS, here, shadow, LARGE, marks };
	assert_int_equal(gp_consistent_copy_build(&picture, &range, 1, GP_CONSISTENT_COPY_ALL),
			 LARGE);
	gp_changes_for_each(picture.ordered.bytes, picture.ordered.size, store_large, there);
	assert_int_equal(there[0], 1);
	gp_consistent_copy_fini(&picture);
	free(here);
	free(shadow);
	free(there);
	free(marks);
}

UNIT_TEST_WITH(a_whole_range_is_taken_whatever_the_shadow_says, setup, NULL)
{
	const struct gp_changes_range range = range_at(0, SIZE);
	size_t at = 0;

	memset(ends.here, 9, SIZE);
	memset(ends.here_shadow, 9, SIZE);
	while (at < SIZE) {
		struct gp_changes changes = { .bytes = ends.bytes, .capacity = 1000 };
		size_t took = gp_changes_write_all(&changes, &range, at);

		assert_true(took > 0);
		gp_changes_for_each(changes.bytes, changes.size, store, &ends);
		at += took;
	}
	assert_memory_equal(ends.here, ends.there, SIZE);
}

UNIT_TEST_WITH(bytes_that_are_no_runs_are_refused, setup, NULL)
{
	uint8_t *bytes = ends.bytes;
	const size_t whole = 16 + 16;
	size_t size;

	ends.here[100] = 1;
	memset(ends.here + 101, 1, 8);
	{
		const struct gp_changes_range range = range_at(96, 16);
		struct gp_changes changes = { .bytes = bytes, .capacity = GP_CHANGES_MAX };

		(void)gp_changes_write_all(&changes, &range, 4);
		size = changes.size;
	}
	assert_int_equal(size, whole);
	for (size_t cut = 1; cut < size; cut++)
		assert_false(gp_changes_are_valid(bytes, cut));
	assert_true(gp_changes_are_valid(bytes, 0));
	assert_true(gp_changes_are_valid(bytes, size));
	bytes[8] = 0; /* of nothing */
	assert_false(gp_changes_are_valid(bytes, size));
	bytes[8] = 200; /* of more than there is */
	assert_false(gp_changes_are_valid(bytes, size));
	memset(bytes + 8, 0xff, 4);
	assert_false(gp_changes_are_valid(bytes, size));
	bytes[8] = 12;
	memset(bytes + 9, 0, 3);
	bytes[13] = 16; /* a mask of more bytes than there are */
	assert_false(gp_changes_are_valid(bytes, size));
	bytes[13] = 0;
	assert_true(gp_changes_are_valid(bytes, size));
	memset(bytes, 0xff, 8); /* beyond the last address */
	assert_false(gp_changes_are_valid(bytes, size));
}

/* Data, then the flag for it, again and again, until so many were seen. */
#define ROUNDS 100
static atomic_bool stop;
static size_t data_at, flag_at;
static size_t words = 16; /* of data */
static bool polls = true; /* a reader, between any two stores */
static int rest;          /* between two of them; 0: a look never sees the same twice */

static uint32_t *
word(uint8_t *memory, size_t at)
{
	return (uint32_t *)(void *)(memory + at);
}

static void *
write_pairs(void *unused)
{
	uint32_t value = 0;

	while (!atomic_load(&stop)) {
		value++;
		for (size_t i = 0; i < words; i++)
			__atomic_store_n(word(ends.here, data_at) + i, value, __ATOMIC_RELEASE);
		__atomic_store_n(word(ends.here, flag_at), value, __ATOMIC_RELEASE);
		for (int i = 0; i < rest && !atomic_load(&stop); i++)
			__builtin_ia32_pause();
	}
	return unused;
}

static void *
write_word(void *at)
{
	uint32_t value = 0;

	while (!atomic_load(&stop))
		__atomic_store_n((uint32_t *)at, ++value, __ATOMIC_RELEASE);
	return NULL;
}

/* Of so much, with a word that moves, a look backwards has no room for all. */
UNIT_TEST_WITH(what_is_not_taken_is_not_told, setup, NULL)
{
	const size_t size = (4 << 20) - 40000;
	uint8_t *memory = aligned_alloc(8, size), *shadow = aligned_alloc(8, size);
	struct gp_changes_range range = { ADDRESS, memory, shadow, size,
					  calloc(1, gp_run_bitmap_get_size(size)) };
	pthread_t writer;
	bool taken = true;

	memset(memory, 1, size);
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&writer, NULL, write_word, memory), 0);
	for (int i = 0; i < 20 && taken; i++) {
		memset(shadow, 0xff, size);
		taken = gp_consistent_copy_build(&ends.picture, &range, 1, GP_CONSISTENT_COPY_ALL) >
			0;
		assert_true(taken == (ends.picture.ordered.size > 0));
		assert_true(gp_changes_are_valid(ends.picture.ordered.bytes,
						 ends.picture.ordered.size));
		/* On a busy machine the writer needs the processor to go on. */
		(void)sched_yield();
	}
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(writer, NULL), 0);
	free(memory);
	free(shadow);
	free(range.run_bitmap);
}

static uint32_t flag_seen;
static bool older; /* than its flag was data that was seen */

/* Without data that is older than the flag. */
static void
look(void)
{
	const uint32_t *data = word(ends.there, data_at);

	flag_seen = *word(ends.there, flag_at);
	for (size_t i = 0; i < words; i++)
		older |= data[i] < flag_seen;
}

static void
store_and_look(void *arg, const struct gp_change *change)
{
	store(arg, change);
	look();
}

static void
watch_pairs(size_t data, size_t flag, int pause)
{
	const struct gp_changes_range range = range_at(0, SIZE);
	uint32_t last = 0, rounds = 0;
	pthread_t writer;

	(void)setup(NULL);
	data_at = data;
	flag_at = flag;
	rest = pause;
	flag_seen = 0;
	older = false;
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&writer, NULL, write_pairs, NULL), 0);
	for (int i = 0; i < 2000000 && rounds < ROUNDS && !older; i++) {
		assert_int_equal(
			gp_consistent_copy_build(&ends.picture, &range, 1, GP_CONSISTENT_COPY_ALL),
			SIZE);
		gp_changes_for_each(ends.picture.ordered.bytes, ends.picture.ordered.size,
				    polls ? store_and_look : store, &ends);
		look();
		rounds += flag_seen != last;
		/* On a busy machine the writer needs the processor to go on. */
		if (flag_seen == last)
			(void)sched_yield();
		last = flag_seen;
	}
	atomic_store(&stop, true);
	assert_int_equal(pthread_join(writer, NULL), 0);
	assert_false(older);
	/* They get on. */
	assert_int_equal(rounds, ROUNDS);
}

/* Sanitizers make looks slower, and this not: between two pairs of a writer whose data is as short
 * as the flag. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define HARDLY_A_PAUSE 5000
#else
#define HARDLY_A_PAUSE 50
#endif

UNIT_TEST_WITH(a_flag_does_not_come_before_its_data, setup, NULL)
{
	watch_pairs(2000, 8, 2000);
	watch_pairs(2000, 4000, 2000);
	watch_pairs(2000, 2064, 2000);
}

/* Faster than anyone can look.  (Of shorter data two parts in a row may be as short as a flag.
 * Right behind data that a picture has torn the flag may come a moment before the rest.) */
UNIT_TEST_WITH(nor_does_that_of_a_writer_that_never_waits, setup, NULL)
{
	static const size_t lengths[] = { 5, 16, 400 };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		words = lengths[i];
		watch_pairs(2000, 8, 0);
		watch_pairs(2000, 1992, 0);
		watch_pairs(2000, 4000, 0);
		watch_pairs(2000, 2004 + 4 * words, 0);
		polls = false;
		watch_pairs(2000, 2000 + 4 * words, 0);
		watch_pairs(1996, 1996 + 4 * words, 0);
		polls = true;
	}
	words = 16;
}

/* Of data that is as short as a flag nothing tells which is stored first; but a picture has both.
 */
UNIT_TEST_WITH(short_data_of_a_writer_that_never_waits_is_no_older_than_its_flag, setup, NULL)
{
	static const size_t places[] = { 8, 4000 };

	polls = false;
	for (words = 1; words <= 2; words++) {
		for (int i = 0; i < 2; i++)
			watch_pairs(2000, places[i], HARDLY_A_PAUSE);
	}
	polls = true;
	words = 16;
}

static uint64_t asked[8];
static size_t asked_count;
static bool answer;

static bool
ask(void *arg, uint64_t value)
{
	assert_ptr_equal(arg, &ends);
	if (asked_count < 8)
		asked[asked_count] = value;
	asked_count++;
	return answer;
}

/* With halves that did not change, and without what is no whole word of 8 bytes. */
UNIT_TEST_WITH(words_of_a_picture_are_asked_about_before_it_is_taken, setup, NULL)
{
	const struct gp_changes_range range = range_at(4, 4092);
	const uint64_t first = UINT64_C(0x1122334455667788), second = UINT64_C(0x11223344aabbccdd);

	ends.picture.allow = ask;
	ends.picture.arg = &ends;
	asked_count = 0;
	answer = true;
	memcpy(ends.here + 16, &first, 8);
	*word(ends.here, 4) = 5;
	assert_int_equal(gp_consistent_copy_build(&ends.picture, &range, 1, GP_CONSISTENT_COPY_ALL),
			 4092);
	assert_int_equal(asked_count, 1);
	assert_int_equal(asked[0], first);
	move(GP_CHANGES_MAX);
	/* It is not taken, and then it is. */
	memcpy(ends.here + 16, &second, 8);
	answer = false;
	assert_int_equal(gp_consistent_copy_build(&ends.picture, &range, 1, GP_CONSISTENT_COPY_ALL),
			 0);
	assert_int_equal(ends.picture.ordered.size, 0);
	assert_int_equal(gp_consistent_copy_build(&ends.picture, &range, 1, GP_CONSISTENT_COPY_ANY),
			 0);
	answer = true;
	assert_int_equal(gp_consistent_copy_build(&ends.picture, &range, 1, GP_CONSISTENT_COPY_ALL),
			 4092);
	assert_int_equal(asked_count, 4);
	for (int i = 1; i < 4; i++)
		assert_int_equal(asked[i], second);
	move(GP_CHANGES_MAX);
	assert_memory_equal(ends.here, ends.there, 4096);
}

UNIT_TEST_MAIN(NULL, NULL)
