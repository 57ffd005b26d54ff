/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"
#include "client/session/shared_pages.h"
#include "tests/test.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIZE ((size_t)9 << 20)
#define SMALL ((size_t)64 << 10)
#define WRITTEN ((size_t)32 << 10)
#define ROUNDS 2000

static const struct gpc_session *const session = (const struct gpc_session *)&session;
static const struct gpc_session *const another = (const struct gpc_session *)&another;

/* As the worker has them, and as the program does. */
struct both {
	uint8_t *workers, *programs;
};

static struct both
map_both(const struct gpc_session *whose, size_t size)
{
	int fd = memfd_create("pages", 0);
	struct both both;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	both.workers = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	both.programs = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(both.workers, MAP_FAILED);
	assert_ptr_not_equal(both.programs, MAP_FAILED);
	close(fd);
	gpc_shared_pages_add(whose, (uintptr_t)both.programs, size);
	return both;
}

static void
unmap_both(struct both both, size_t size)
{
	gpc_shared_pages_remove((uintptr_t)both.programs, size);
	assert_int_equal(munmap(both.workers, size), 0);
	assert_int_equal(munmap(both.programs, size), 0);
}

static int
count_mappings(const uint8_t *from, size_t size)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];
	int count = 0;

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		unsigned long start = strtoul(line, NULL, 16);

		count += start >= (uintptr_t)from && start < (uintptr_t)from + size;
	}
	fclose(maps);
	return count;
}

UNIT_TEST(what_is_kept_is_the_programs_alone)
{
	struct both ours = map_both(session, SIZE), others = map_both(another, SIZE);

	for (size_t i = 0; i < SIZE; i++)
		ours.programs[i] = (uint8_t)(i % 251);
	assert_true(gpc_shared_pages_exist(session));
	gpc_shared_pages_make_private(session);
	assert_false(gpc_shared_pages_exist(session));
	assert_true(gpc_shared_pages_exist(another));
	assert_int_equal(madvise(ours.workers, SIZE, MADV_REMOVE), 0);
	for (size_t i = 0; i < SIZE; i++)
		assert_int_equal(ours.programs[i], i % 251);
	ours.programs[0] = 99;
	assert_int_equal(ours.workers[0], 0);
	others.programs[0] = 99;
	assert_int_equal(others.workers[0], 99);
	/* The system limits how many a process has. */
	assert_in_range(count_mappings(ours.programs, SIZE), 1, 4);
	unmap_both(ours, SIZE);
	unmap_both(others, SIZE);
	assert_false(gpc_shared_pages_exist(another));
}

struct writer {
	uint8_t *bytes;
	unsigned int pauses;
};

/* Each byte once, and no two of a word at a time; a program is not instrumented. */
static __attribute__((no_sanitize_thread)) void *
write_all(void *arg)
{
	const struct writer *writer = arg;

	for (unsigned int i = 0; i < writer->pauses; i++)
		gp_cpu_relax();
	for (size_t first = 0; first < sizeof(uint64_t); first++)
		for (size_t i = first; i < WRITTEN; i += sizeof(uint64_t))
			*(volatile uint8_t *)(writer->bytes + i) = 7;
	return NULL;
}

UNIT_TEST(no_store_is_lost_meanwhile)
{
	for (unsigned int round = 0; round < ROUNDS; round++) {
		struct both both = map_both(session, SMALL);
		struct writer writer = { both.programs, round * 37 % 4000 };
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, write_all, &writer), 0);
		gpc_shared_pages_make_private(session);
		assert_int_equal(pthread_join(thread, NULL), 0);
		for (size_t i = 0; i < WRITTEN; i++)
			if (both.programs[i] != 7)
				fail_msg("round %u: byte %zu is lost", round, i);
		unmap_both(both, SMALL);
	}
}

UNIT_TEST_MAIN(NULL, NULL)
