/* SPDX-License-Identifier: Apache-2.0 */
/* Managed pages: which bytes are fetched and pushed, and when. */
#include "tests/unit/client/pages_fixture.h"

KNOWN(test_read_fetches)
{
	begin(state);
	assert_true(gpc_pages_any());
	assert_int_equal(READS(at(5 * BLOCK + 17)), other.memory[5 * BLOCK + 17]);
	assert_int_equal(other.fetches, 1);
	assert_int_equal(other.awaits, 1);
	assert_int_equal(other.fetched, BLOCK);
	expect_state(5 * BLOCK, GPC_PAGE_CLEAN);
	expect_state(6 * BLOCK, GPC_PAGE_REMOTE);
	give();
	assert_int_equal(other.pushes, 0);
	expect_state(5 * BLOCK, GPC_PAGE_REMOTE);
	/* What the other side has changed meanwhile is seen. */
	other.memory[5 * BLOCK + 17] ^= 0xff;
	assert_int_equal(READS(at(5 * BLOCK + 17)), other.memory[5 * BLOCK + 17]);
}

KNOWN(test_last_block_is_short)
{
	begin(state);
	assert_int_equal(READS(at(SIZE - 1)), other.memory[SIZE - 1]);
	assert_int_equal(other.fetched, BLOCK - 3 * PAGE);
	*at(SIZE - 1) = 99;
	give();
	assert_int_equal(other.memory[SIZE - 1], 99);
	assert_int_equal(other.pushed, BLOCK - 3 * PAGE);
}

KNOWN(test_write_is_pushed_once)
{
	begin(state);
	*at(3 * BLOCK + 1) = 42;
	expect_state(3 * BLOCK, GPC_PAGE_DIRTY);
	/* The rest of the block is as it was. */
	assert_int_equal(READS(at(3 * BLOCK + 2)), other.memory[3 * BLOCK + 2]);
	give();
	assert_int_equal(other.memory[3 * BLOCK + 1], 42);
	assert_int_equal(other.pushed, BLOCK);
	give();
	assert_int_equal(other.pushes, 1);
}

KNOWN(test_read_then_write)
{
	begin(state);
	assert_int_equal(READS(at(0)), other.memory[0]);
	*at(0) = 1;
	assert_int_equal(other.fetches, 1);
	expect_state(0, GPC_PAGE_DIRTY);
	give();
	assert_int_equal(other.memory[0], 1);
}

KNOWN(test_runs_grow)
{
	unsigned int sum = 0, expected = 0;

	begin(state);
	for (uint64_t i = 0; i < SIZE; i += PAGE) {
		sum += READS(at(i));
		expected += other.memory[i];
	}
	assert_int_equal(sum, expected);
	/* 1, 1, 2, 4 ... up to 64 blocks of 128. */
	assert_in_range(other.fetches, 2, 9);
	assert_int_equal(other.fetched, SIZE);
}

UNUSED(test_unused_is_not_fetched)
{
	begin(state);
	expect_state(0, GPC_PAGE_UNUSED);
	gpc_pages_set_unused(other.base, SIZE);
	*at(2 * BLOCK) = 7;
	*at(9 * BLOCK + PAGE) = 8;
	assert_int_equal(READS(at(20 * BLOCK)), 0);
	assert_int_equal(other.fetches, 0);
	give();
	assert_int_equal(other.memory[2 * BLOCK], 7);
	assert_int_equal(other.memory[9 * BLOCK + PAGE], 8);
	/* Of pages that nobody wrote nothing is sent, where the kernel tells. */
	assert_in_range(other.pushed, 2 * PAGE, SIZE);
	expect_state(0, GPC_PAGE_REMOTE);
	assert_int_equal(READS(at(2 * BLOCK)), 7);
	assert_int_equal(other.fetches, 1);
}

/* The system fills what was never touched, too. */
UNUSED(test_unused_takes_system_calls)
{
	int ends[2];

	begin(state);
	gpc_pages_set_unused(other.base, SIZE);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "text", 4), 4);
	assert_int_equal(read(ends[0], at(4 * BLOCK - 2), 4), 4);
	give();
	assert_memory_equal(other.memory + 4 * BLOCK - 2, "text", 4);
	assert_int_equal(close(ends[0]), 0);
	assert_int_equal(close(ends[1]), 0);
}

/* What is on the other side it fetches where faults within system calls are reported; else it gets
 * no bytes, and never others. */
KNOWN(test_system_calls)
{
	uint8_t bytes[300] = { 0 };
	bool in_kernel = false;
	int ends[2], fd;

	begin(state);
	fd = gp_userfault_open(&in_kernel);
	if (fd >= 0)
		(void)close(fd);
	assert_int_equal(pipe(ends), 0);
	if (!is_userfault() || !in_kernel) {
		assert_int_equal(write(ends[1], at(4 * BLOCK - 2), 4), -1);
		assert_int_equal(errno, EFAULT);
	} else {
		assert_int_equal(write(ends[1], at(4 * BLOCK - 150), 300), 300);
		assert_int_equal(read(ends[0], bytes, 300), 300);
		assert_memory_equal(bytes, other.memory + 4 * BLOCK - 150, 300);
		assert_int_equal(write(ends[1], "text", 4), 4);
		/* Readable, and not here. */
		assert_int_equal(read(ends[0], at(5 * BLOCK - 2), 4), 4);
		give();
		assert_memory_equal(other.memory + 5 * BLOCK - 2, "text", 4);
		assert_int_equal(READS(at(5 * BLOCK - 3)), pattern()[5 * BLOCK - 3]);
		assert_int_equal(READS(at(5 * BLOCK + 2)), pattern()[5 * BLOCK + 2]);
	}
	assert_int_equal(close(ends[0]), 0);
	assert_int_equal(close(ends[1]), 0);
}

/* Memory is allocated again after work has used all of it: what work writes then is seen. */
static void
check_allocated_again(void)
{
	for (int i = 0; i < 3; i++) {
		gpc_pages_set_unused(other.base, SIZE);
		give();
		memset(other.memory, 20 + i, SIZE);
		assert_int_equal(READS(at(7 * BLOCK)), 20 + i);
		gpc_pages_set_unused(other.base, SIZE);
		give_part(3 * BLOCK, BLOCK, true);
		memset(other.memory + 3 * BLOCK, 30 + i, BLOCK);
		assert_int_equal(READS(at(3 * BLOCK + 1)), 30 + i);
		*at(4 * BLOCK) = 9;
		give();
		assert_int_equal(other.memory[4 * BLOCK], 9);
	}
}

UNUSED(test_allocated_again)
{
	begin(state);
	check_allocated_again();
}

static int
no_descriptor(void **state)
{
	return set_up_limited(state, RLIMIT_NOFILE);
}

static int
no_file(void **state)
{
	return set_up_limited(state, RLIMIT_FSIZE);
}

/* The kernel does not report which pages were written, so the whole block is sent. */
static void
check_limited(void **state)
{
	begin(state);
	gpc_pages_set_unused(other.base, SIZE);
	expect_state(2 * BLOCK, GPC_PAGE_UNUSED);
	*at(2 * BLOCK) = 7;
	expect_state(2 * BLOCK, GPC_PAGE_DIRTY);
	give();
	assert_int_equal(other.memory[2 * BLOCK], 7);
	assert_int_equal(other.fetches, 0);
	check_allocated_again();
}

UNIT_TEST_WITH(test_limited_without_a_descriptor, no_descriptor, tear_down)
{
	check_limited(state);
}

UNIT_TEST_WITH(test_limited_without_a_file, no_file, tear_down)
{
	check_limited(state);
}

/* Memory that is used again: what shares a block with others is fetched. */
UNUSED(test_used_again)
{
	begin(state);
	gpc_pages_set_unused(other.base, SIZE);
	give();
	gpc_pages_set_unused(other.base + BLOCK / 2, 2 * BLOCK);
	*at(BLOCK / 2) = 1;
	*at(BLOCK) = 2;
	*at(2 * BLOCK) = 3;
	assert_int_equal(other.fetches, 2);
	assert_int_equal(READS(at(BLOCK / 2 - 1)), other.memory[BLOCK / 2 - 1]);
	give();
	assert_int_equal(other.memory[BLOCK / 2], 1);
	assert_int_equal(other.memory[BLOCK], 2);
	assert_int_equal(other.memory[2 * BLOCK], 3);
}

KNOWN(test_part_stays_readable)
{
	begin(state);
	*at(BLOCK) = 5;
	*at(3 * BLOCK) = 6;
	give_part(BLOCK + 10, 20, false);
	assert_int_equal(other.memory[BLOCK], 5);
	assert_int_not_equal(other.memory[3 * BLOCK], 6);
	expect_state(BLOCK, GPC_PAGE_CLEAN);
	expect_state(3 * BLOCK, GPC_PAGE_DIRTY);
	*at(BLOCK) = 9;
	assert_int_equal(other.fetches, 2);
	/* What the work writes is the other side's. */
	give_part(2 * BLOCK - 1, 2, true);
	expect_state(BLOCK, GPC_PAGE_REMOTE);
	expect_state(2 * BLOCK, GPC_PAGE_REMOTE);
	expect_state(3 * BLOCK, GPC_PAGE_DIRTY);
	assert_int_equal(other.memory[BLOCK], 9);
	give_part(0, SIZE, true);
	expect_state(3 * BLOCK, GPC_PAGE_REMOTE);
	assert_int_equal(other.memory[3 * BLOCK], 6);
}

KNOWN(test_other_group_keeps)
{
	int another;

	begin(state);
	*at(0) = 3;
	gpc_pages_begin();
	assert_true(gpc_pages_flush(&another));
	gpc_pages_end();
	expect_state(0, GPC_PAGE_DIRTY);
}

/* Others may wait for the thread: it waits for nobody, and what it changed goes when it says. */
KNOWN(test_direct)
{
	begin(state);
	*at(0) = 1;
	gpc_page_faults_set_direct(true);
	*at(5 * BLOCK) = 2;
	assert_int_equal(READS(at(7 * BLOCK)), other.memory[7 * BLOCK]);
	gpc_page_faults_set_direct(false);
	assert_int_equal(other.awaits, 1);
	give();
	expect_state(0, GPC_PAGE_REMOTE);
	expect_state(5 * BLOCK, GPC_PAGE_DIRTY);
	assert_int_not_equal(other.memory[5 * BLOCK], 2);
	gpc_pages_flush_direct();
	assert_int_equal(other.memory[5 * BLOCK], 2);
	expect_state(5 * BLOCK, GPC_PAGE_REMOTE);
	expect_state(7 * BLOCK, GPC_PAGE_REMOTE);
	assert_int_equal(other.pushes, 2);
}

/* Work that uses a part gets what such a thread has changed so far. */
KNOWN(test_direct_part)
{
	begin(state);
	gpc_page_faults_set_direct(true);
	*at(5 * BLOCK) = 2;
	*at(7 * BLOCK) = 3;
	give_part(5 * BLOCK, 1, false);
	assert_int_equal(other.memory[5 * BLOCK], 2);
	expect_state(5 * BLOCK, GPC_PAGE_CLEAN);
	*at(5 * BLOCK) = 4;
	give_part(7 * BLOCK, 1, true);
	assert_int_equal(other.memory[7 * BLOCK], 3);
	expect_state(7 * BLOCK, GPC_PAGE_REMOTE);
	gpc_page_faults_set_direct(false);
	/* It is the thread's still. */
	give();
	expect_state(5 * BLOCK, GPC_PAGE_DIRTY);
	assert_int_equal(other.memory[5 * BLOCK], 2);
	/* What the work has written is not sent over. */
	other.memory[7 * BLOCK] = 9;
	gpc_pages_flush_direct();
	assert_int_equal(other.memory[5 * BLOCK], 4);
	assert_int_equal(other.memory[7 * BLOCK], 9);
	assert_int_equal(other.pushes, 3);
	assert_int_equal(other.awaits, 0);
}

KNOWN(test_expected)
{
	begin(state);
	gpc_pages_expect(other.base + 10 * BLOCK);
	assert_int_equal(READS(at(10 * BLOCK + 1)), other.memory[10 * BLOCK + 1]);
	assert_int_equal(other.fetched, SIZE - 10 * BLOCK < GPC_PAGES_RUN_MAX ? SIZE - 10 * BLOCK
									      : GPC_PAGES_RUN_MAX);
	expect_state(9 * BLOCK, GPC_PAGE_REMOTE);
}

/* Threads that change bytes of their own in blocks of all, while blocks are given. */
enum {
	THREADS = 4,
	ROUNDS = 3000,
};
static atomic_bool stop;

static void *
change(void *arg)
{
	uint64_t own = (uintptr_t)arg, seed = own;

	for (int i = 0; i < ROUNDS; i++) {
		volatile uint8_t *byte;

		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		byte = at((seed >> 33) % (BLOCKS - 1) * BLOCK + own);
		*byte = (uint8_t)(*byte + 1);
	}
	return NULL;
}

static void *
give_always(void *arg)
{
	while (!stop)
		give();
	return arg;
}

KNOWN(test_threads)
{
	pthread_t threads[THREADS], giver;
	unsigned int before[THREADS] = { 0 }, after[THREADS] = { 0 };

	begin(state);
	for (uint64_t i = 0; i < SIZE; i++)
		other.memory[i] = 0;
	stop = false;
	assert_int_equal(pthread_create(&giver, NULL, give_always, NULL), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, change, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	stop = true;
	assert_int_equal(pthread_join(giver, NULL), 0);
	give();
	/* Not a step is lost (modulo 256). */
	for (int i = 0; i < THREADS; i++) {
		for (uint64_t block = 0; block < BLOCKS - 1; block++)
			after[i] += other.memory[block * BLOCK + (uint64_t)i];
		before[i] = ROUNDS;
		assert_int_equal(after[i] % 256, before[i] % 256);
	}
}

/* Steps at random, against plain memory. */
KNOWN(test_random)
{
	uint8_t *model = malloc(SIZE);
	unsigned int seed = 20;

	begin(state);
	assert_non_null(model);
	memcpy(model, other.memory, SIZE);
	for (int i = 0; i < 20000; i++) {
		uint64_t place = (uint64_t)rand_r(&seed) % SIZE;
		uint64_t size = (uint64_t)rand_r(&seed) % (SIZE - place) + 1;

		switch (rand_r(&seed) % 16) {
		case 0: /* work that may change everything */
			give();
			assert_memory_equal(other.memory, model, SIZE);
			other.memory[place] = model[place] = (uint8_t)i;
			break;
		case 1: /* that reads a part */
			give_part(place, size, false);
			assert_memory_equal(other.memory + place, model + place, size);
			break;
		case 2: /* that writes one */
			give_part(place, size < 1000 ? size : 1000, true);
			size = size < 1000 ? size : 1000;
			memset(other.memory + place, i, size);
			memset(model + place, i, size);
			break;
		case 3:
			gpc_page_faults_set_direct(true);
			*at(place) = model[place] = (uint8_t)(i + 1);
			gpc_page_faults_set_direct(false);
			gpc_pages_flush_direct();
			break;
		case 4:
		case 5:
		case 6:
		case 7:
			*at(place) = model[place] = (uint8_t)i;
			break;
		default:
			assert_int_equal(READS(at(place)), model[place]);
			break;
		}
	}
	give();
	assert_memory_equal(other.memory, model, SIZE);
	free(model);
}

UNIT_TEST_MAIN(NULL, NULL)
