/* SPDX-License-Identifier: Apache-2.0 */
#include "client/pages/pages.h"
#include "tests/test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK GPC_PAGES_BLOCK
#define BLOCKS 128
#define PAGE ((uint64_t)4096)
/* Not a whole number of blocks. */
#define SIZE (BLOCKS * BLOCK - 3 * PAGE)
#define READS(address) (*(volatile uint8_t *)(uintptr_t)(address))

/* The other side. */
static struct {
	uint8_t *memory;
	uint64_t base;
	bool broken;
	pthread_t interrupted; /* by the next fetch; 0: nobody */
	atomic_int awaits, fetches, pushes;
	uint64_t fetched, pushed; /* bytes */
} other;
static int group;

static bool
other_await(void *owner)
{
	assert_ptr_equal(owner, &other);
	atomic_fetch_add(&other.awaits, 1);
	return !other.broken;
}

static bool
other_fetch(void *owner, uint64_t address, uint64_t size, void *to)
{
	pthread_t interrupted = other.interrupted;

	assert_ptr_equal(owner, &other);
	assert_true(address >= other.base && address + size <= other.base + SIZE);
	if (interrupted) {
		other.interrupted = 0;
		(void)pthread_kill(interrupted, SIGUSR1);
		(void)usleep(20000);
	}
	memcpy(to, other.memory + (address - other.base), size);
	atomic_fetch_add(&other.fetches, 1);
	other.fetched += size;
	return !other.broken;
}

static bool
other_push(void *owner, uint64_t address, uint64_t size, const void *from)
{
	assert_ptr_equal(owner, &other);
	assert_true(address >= other.base && address + size <= other.base + SIZE);
	memcpy(other.memory + (address - other.base), from, size);
	atomic_fetch_add(&other.pushes, 1);
	other.pushed += size;
	return !other.broken;
}

static const struct gpc_pages_calls calls = {
	.await = other_await,
	.fetch = other_fetch,
	.push = other_push,
};

static uint64_t
reserve(uint64_t size)
{
	uint8_t *found = mmap(NULL, size + BLOCK, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(found, MAP_FAILED);
	return ((uintptr_t)found + BLOCK - 1) & ~(BLOCK - 1);
}

/* Made once: the thread sanitizer looks at each byte that is written by itself. */
static const uint8_t *
pattern(void)
{
	static uint8_t bytes[SIZE];
	static bool made;

	for (uint64_t i = 0; i < SIZE && !made; i++)
		bytes[i] = (uint8_t)(i * 7 + i / BLOCK);
	made = true;
	return bytes;
}

static int
set_up(void **state, bool is_known)
{
	(void)state;
	memset(&other, 0, sizeof(other));
	other.memory = malloc(SIZE);
	other.base = reserve(SIZE);
	memcpy(other.memory, pattern(), SIZE);
	return gpc_pages_create(other.base, SIZE, is_known, &calls, &other, &group);
}

static int
known(void **state)
{
	return set_up(state, true);
}

static int
unused(void **state)
{
	return set_up(state, false);
}

static int
tear_down(void **state)
{
	(void)state;
	gpc_page_faults_direct = false;
	gpc_pages_destroy(other.base);
	assert_int_equal(munmap((void *)(uintptr_t)other.base, SIZE), 0);
	free(other.memory);
	return 0;
}

static uint8_t *
at(uint64_t offset)
{
	return (uint8_t *)(uintptr_t)(other.base + offset);
}

static void
give(void)
{
	gpc_pages_begin();
	assert_true(gpc_pages_give(&group));
	gpc_pages_end();
}

static void
give_part(uint64_t offset, uint64_t size, bool is_written)
{
	gpc_pages_begin();
	assert_true(gpc_pages_give_part(other.base + offset, size, is_written));
	gpc_pages_end();
}

static void
expect_state(uint64_t offset, enum gpc_page_state state)
{
	assert_int_equal(gpc_pages_state(other.base + offset), state);
}

/* CMocka has taken the signal for itself since the range was made. */
static void
begin(void **state)
{
	(void)state;
	gpc_page_faults_renew();
}

static void
test_read_fetches(void **state)
{
	begin(state);
	assert_true(gpc_pages_any());
	assert_int_equal(READS(at(5 * BLOCK + 17)), other.memory[5 * BLOCK + 17]);
	assert_int_equal(other.fetches, 1);
	assert_int_equal(other.awaits, 1);
	assert_int_equal(other.fetched, BLOCK);
	expect_state(5 * BLOCK, GPC_PAGE_BOTH);
	expect_state(6 * BLOCK, GPC_PAGE_THERE);
	give();
	assert_int_equal(other.pushes, 0);
	expect_state(5 * BLOCK, GPC_PAGE_THERE);
	/* What the other side has changed meanwhile is seen. */
	other.memory[5 * BLOCK + 17] ^= 0xff;
	assert_int_equal(READS(at(5 * BLOCK + 17)), other.memory[5 * BLOCK + 17]);
}

static void
test_last_block_is_short(void **state)
{
	begin(state);
	assert_int_equal(READS(at(SIZE - 1)), other.memory[SIZE - 1]);
	assert_int_equal(other.fetched, BLOCK - 3 * PAGE);
	*at(SIZE - 1) = 99;
	give();
	assert_int_equal(other.memory[SIZE - 1], 99);
	assert_int_equal(other.pushed, BLOCK - 3 * PAGE);
}

static void
test_write_is_pushed_once(void **state)
{
	begin(state);
	*at(3 * BLOCK + 1) = 42;
	expect_state(3 * BLOCK, GPC_PAGE_HERE);
	/* The rest of the block is as it was. */
	assert_int_equal(READS(at(3 * BLOCK + 2)), other.memory[3 * BLOCK + 2]);
	give();
	assert_int_equal(other.memory[3 * BLOCK + 1], 42);
	assert_int_equal(other.pushed, BLOCK);
	give();
	assert_int_equal(other.pushes, 1);
}

static void
test_read_then_write(void **state)
{
	begin(state);
	assert_int_equal(READS(at(0)), other.memory[0]);
	*at(0) = 1;
	assert_int_equal(other.fetches, 1);
	expect_state(0, GPC_PAGE_HERE);
	give();
	assert_int_equal(other.memory[0], 1);
}

static void
test_runs_grow(void **state)
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

static void
test_unused_is_not_fetched(void **state)
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
	expect_state(0, GPC_PAGE_THERE);
	assert_int_equal(READS(at(2 * BLOCK)), 7);
	assert_int_equal(other.fetches, 1);
}

/* The system fills what was never touched, too. */
static void
test_unused_takes_system_calls(void **state)
{
	int ends[2];

	begin(state);
	gpc_pages_set_unused(other.base, SIZE);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "text", 4), 4);
	assert_int_equal(read(ends[0], at(4 * BLOCK - 2), 4), 4);
	give();
	assert_memory_equal(other.memory + 4 * BLOCK - 2, "text", 4);
	/* And does not fetch. */
	assert_int_equal(write(ends[1], at(4 * BLOCK - 2), 4), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(close(ends[0]), 0);
	assert_int_equal(close(ends[1]), 0);
}

/* Memory that is used again: what shares a block with others is fetched. */
static void
test_used_again(void **state)
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

static void
test_part_stays_readable(void **state)
{
	begin(state);
	*at(BLOCK) = 5;
	*at(3 * BLOCK) = 6;
	give_part(BLOCK + 10, 20, false);
	assert_int_equal(other.memory[BLOCK], 5);
	assert_int_not_equal(other.memory[3 * BLOCK], 6);
	expect_state(BLOCK, GPC_PAGE_BOTH);
	expect_state(3 * BLOCK, GPC_PAGE_HERE);
	*at(BLOCK) = 9;
	assert_int_equal(other.fetches, 2);
	/* What the work writes is the other side's. */
	give_part(2 * BLOCK - 1, 2, true);
	expect_state(BLOCK, GPC_PAGE_THERE);
	expect_state(2 * BLOCK, GPC_PAGE_THERE);
	expect_state(3 * BLOCK, GPC_PAGE_HERE);
	assert_int_equal(other.memory[BLOCK], 9);
	give_part(0, SIZE, true);
	expect_state(3 * BLOCK, GPC_PAGE_THERE);
	assert_int_equal(other.memory[3 * BLOCK], 6);
}

static void
test_other_group_keeps(void **state)
{
	int another;

	begin(state);
	*at(0) = 3;
	gpc_pages_begin();
	assert_true(gpc_pages_give(&another));
	gpc_pages_end();
	expect_state(0, GPC_PAGE_HERE);
}

/* Others may wait for the thread: it waits for nobody, and what it changed goes when it says. */
static void
test_direct(void **state)
{
	begin(state);
	*at(0) = 1;
	gpc_page_faults_direct = true;
	*at(5 * BLOCK) = 2;
	assert_int_equal(READS(at(7 * BLOCK)), other.memory[7 * BLOCK]);
	gpc_page_faults_direct = false;
	assert_int_equal(other.awaits, 1);
	give();
	expect_state(0, GPC_PAGE_THERE);
	expect_state(5 * BLOCK, GPC_PAGE_HERE);
	assert_int_not_equal(other.memory[5 * BLOCK], 2);
	give_part(0, SIZE, true);
	expect_state(5 * BLOCK, GPC_PAGE_HERE);
	gpc_pages_give_direct();
	assert_int_equal(other.memory[5 * BLOCK], 2);
	expect_state(5 * BLOCK, GPC_PAGE_THERE);
	expect_state(7 * BLOCK, GPC_PAGE_THERE);
	assert_int_equal(other.pushes, 2);
}

static sigjmp_buf back;
static atomic_int caught;

static void
own_handler(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	caught++;
	assert_int_equal(info->si_code > 0, 1);
	siglongjmp(back, 1);
}

static void
plain_handler(int number)
{
	(void)number;
	caught += 100;
	siglongjmp(back, 1);
}

/* Whether reading it is a fault of the program's. */
static bool
faults(const void *address)
{
	if (sigsetjmp(back, 1))
		return true;
	(void)READS(address);
	return false;
}

static void
test_program_has_a_handler(void **state)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO }, before, temporary;
	const void *nowhere = (const void *)(uintptr_t)reserve(PAGE);

	begin(state);
	caught = 0;
	action.sa_sigaction = own_handler;
	assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	gpc_page_faults_renew();
	assert_true(faults(nowhere));
	assert_int_equal(caught, 1);
	assert_false(faults(at(BLOCK)));
	/* Another one, for a while. */
	action = (struct sigaction){ .sa_handler = plain_handler };
	assert_int_equal(sigaction(SIGSEGV, &action, &temporary), 0);
	give();
	assert_true(faults(nowhere));
	assert_int_equal(caught, 101);
	assert_false(faults(at(BLOCK)));
	assert_int_equal(sigaction(SIGSEGV, &temporary, NULL), 0);
	give();
	assert_true(faults(nowhere));
	assert_int_equal(caught, 102);
	assert_false(faults(at(BLOCK)));
	/* What cannot be had is a fault, too. */
	give();
	other.broken = true;
	assert_true(faults(at(BLOCK)));
	assert_int_equal(caught, 103);
	other.broken = false;
	assert_false(faults(at(BLOCK)));
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
}

/* A handler that calls the one before it, which is ours: no circle. */
static struct sigaction theirs;

static void
calls_the_one_before(int number, siginfo_t *info, void *context)
{
	caught += 1000;
	theirs.sa_sigaction(number, info, context);
}

static void
test_handlers_call_each_other(void **state)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO }, before;
	const void *nowhere = (const void *)(uintptr_t)reserve(PAGE);

	begin(state);
	caught = 0;
	action.sa_sigaction = own_handler;
	assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	gpc_page_faults_renew();
	action.sa_sigaction = calls_the_one_before;
	assert_int_equal(sigaction(SIGSEGV, &action, &theirs), 0);
	gpc_page_faults_renew();
	assert_true(faults(nowhere));
	assert_int_equal(caught, 1001);
	assert_false(faults(at(0)));
	assert_int_equal(caught, 1001);
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
}

/* A handler of another signal touches a page while its thread waits for one. */
static volatile int seen;

static void
touches(int number)
{
	(void)number;
	seen = READS(at(50 * BLOCK));
}

static void
test_nested(void **state)
{
	struct sigaction action = { .sa_handler = touches }, before;

	begin(state);
#ifdef __SANITIZE_THREAD__
	LEAVE("the thread sanitizer blocks all signals in a handler");
#endif
	seen = -1;
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	other.interrupted = pthread_self();
	assert_int_equal(READS(at(3 * BLOCK)), other.memory[3 * BLOCK]);
	assert_int_equal(seen, other.memory[50 * BLOCK]);
	assert_int_equal(other.fetches, 2);
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
}

static void
test_expected(void **state)
{
	begin(state);
	gpc_pages_expect(other.base + 10 * BLOCK);
	assert_int_equal(READS(at(10 * BLOCK + 1)), other.memory[10 * BLOCK + 1]);
	assert_int_equal(other.fetched, GPC_PAGES_RUN_MAX);
	expect_state(9 * BLOCK, GPC_PAGE_THERE);
}

static void
child_of_fork(void)
{
	gpc_pages_after_fork(true);
	if (gpc_pages_any() || *at(0) != 11 || READS(at(4 * BLOCK)) != pattern()[4 * BLOCK])
		_exit(1);
	*at(0) = 12;
	*at(4 * BLOCK) = 13;
	if (signal(SIGSEGV, SIG_DFL) == SIG_ERR || *at(0) != 12)
		_exit(2);
	/* What was on the other side. */
	if (memcmp(at(5 * BLOCK), pattern() + 5 * BLOCK, SIZE - 5 * BLOCK) != 0)
		_exit(3);
	*at(9 * BLOCK) = 15;
	_exit(0);
}

static void
test_fork(void **state)
{
	pid_t child;
	int status, awaits;

	begin(state);
	*at(0) = 11;
	assert_int_equal(READS(at(4 * BLOCK)), other.memory[4 * BLOCK]);
	awaits = atomic_load(&other.awaits);
	gpc_pages_before_fork();
	child = fork();
	if (child == 0)
		child_of_fork();
	assert_true(child > 0);
	gpc_pages_after_fork(false);
	/* Work may wait for who forks. */
	assert_int_equal(atomic_load(&other.awaits), awaits);
	assert_int_equal(gpc_pages_state(other.base + 9 * BLOCK), GPC_PAGE_THERE);
	/* Its own: whatever is written here from now on is not the child's. */
	*at(0) = 14;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(*at(0), 14);
	assert_int_equal(READS(at(4 * BLOCK)), other.memory[4 * BLOCK]);
	give();
	assert_int_equal(other.memory[0], 14);
}

/* Of a session that is over the child has what was here. */
static void
test_fork_without_the_other_side(void **state)
{
	pid_t child;
	int status;

	begin(state);
	*at(0) = 11;
	other.broken = true;
	gpc_pages_before_fork();
	child = fork();
	if (child == 0) {
		gpc_pages_after_fork(true);
		if (signal(SIGSEGV, SIG_DFL) == SIG_ERR || *at(0) != 11)
			_exit(1);
		(void)READS(at(9 * BLOCK));
		_exit(2);
	}
	assert_true(child > 0);
	gpc_pages_after_fork(false);
	other.broken = false;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
	assert_int_equal(READS(at(9 * BLOCK)), other.memory[9 * BLOCK]);
}

static void
test_fork_unused(void **state)
{
	pid_t child;
	int status;

	begin(state);
	*at(3 * BLOCK) = 7;
	gpc_pages_before_fork();
	child = fork();
	if (child == 0) {
		gpc_pages_after_fork(true);
		_exit(READS(at(3 * BLOCK)) == 7 && READS(at(90 * BLOCK)) == 0 ? 0 : 1);
	}
	assert_true(child > 0);
	gpc_pages_after_fork(false);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(atomic_load(&other.fetches), 0);
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

static void
test_threads(void **state)
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
static void
test_random(void **state)
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
			gpc_page_faults_direct = true;
			*at(place) = model[place] = (uint8_t)(i + 1);
			gpc_page_faults_direct = false;
			gpc_pages_give_direct();
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

#define KNOWN(f) cmocka_unit_test_setup_teardown(f, known, tear_down)
#define UNUSED(f) cmocka_unit_test_setup_teardown(f, unused, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		KNOWN(test_read_fetches),
		KNOWN(test_last_block_is_short),
		KNOWN(test_write_is_pushed_once),
		KNOWN(test_read_then_write),
		KNOWN(test_runs_grow),
		UNUSED(test_unused_is_not_fetched),
		UNUSED(test_unused_takes_system_calls),
		UNUSED(test_used_again),
		KNOWN(test_part_stays_readable),
		KNOWN(test_other_group_keeps),
		KNOWN(test_direct),
		KNOWN(test_program_has_a_handler),
		KNOWN(test_handlers_call_each_other),
		KNOWN(test_nested),
		KNOWN(test_expected),
		KNOWN(test_fork),
		KNOWN(test_fork_without_the_other_side),
		UNUSED(test_fork_unused),
		KNOWN(test_threads),
		KNOWN(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
