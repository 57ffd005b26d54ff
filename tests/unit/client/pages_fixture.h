/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture for tests of managed pages (client/pages/pages.h): one range of pages, whose remote side
 * is a buffer in this process that counts transfers.
 *
 * A test is defined with KNOWN() for a range whose contents the remote side already has, or with
 * UNUSED() for a range that was never accessed. It starts with begin().
 * Ownership: the test's setup and teardown create and free the range and the buffer.
 * Threads: the transfer functions (other_...) may be called by any thread that accesses the range.
 */
#ifndef PAGES_FIXTURE_H
#define PAGES_FIXTURE_H

#include "base/userfault.h"
#include "client/pages/pages.h"
#include "tests/test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Size in bytes of the blocks in which pages are transferred, their number in the range, and the
 * page size. */
#define BLOCK GPC_PAGES_BLOCK
#define BLOCKS 128
#define PAGE ((uint64_t)4096)
/* Size of the range in bytes. It is not a multiple of the block size. */
#define SIZE (BLOCKS * BLOCK - 3 * PAGE)
/* Reads a byte at an address, which may cause a page fault. */
#define READS(address) (*(volatile uint8_t *)(uintptr_t)(address))

/* The remote side: memory with the contents of the range, which starts at address `base`. */
static struct {
	uint8_t *memory;
	uint64_t base;
	bool broken;           /* whether transfers fail */
	pthread_t interrupted; /* thread that the next fetch sends SIGUSR1 to; 0: none */
	atomic_int awaits, fetches, pushes; /* numbers of calls of the transfer functions */
	uint64_t fetched, pushed;           /* bytes transferred in each direction */
} other;
/* Identifies the group of ranges that are flushed together; only its address is used. */
static int group;

/* Transfer functions of struct gpc_pages_ops. They return false if `broken` is set. */
static inline bool
other_await(void *owner)
{
	assert_ptr_equal(owner, &other);
	atomic_fetch_add(&other.awaits, 1);
	return !other.broken;
}

static inline bool
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

static inline bool
other_push(void *owner, uint64_t address, uint64_t size, const void *from)
{
	assert_ptr_equal(owner, &other);
	assert_true(address >= other.base && address + size <= other.base + SIZE);
	memcpy(other.memory + (address - other.base), from, size);
	atomic_fetch_add(&other.pushes, 1);
	other.pushed += size;
	return !other.broken;
}

/* The transfer functions. */
static const struct gpc_pages_ops calls = {
	.await = other_await,
	.fetch = other_fetch,
	.push = other_push,
};

/* Returns the address of reserved, inaccessible memory, aligned to blocks. */
static inline uint64_t
reserve(uint64_t size)
{
	uint8_t *found = mmap(NULL, size + BLOCK, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(found, MAP_FAILED);
	return ((uintptr_t)found + BLOCK - 1) & ~(BLOCK - 1);
}

/* Returns the initial contents of the range. They are computed once, because the thread sanitizer
 * checks each byte that is written separately. */
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

/* Creates the range and the remote side. Returns 0 or the error of gpc_pages_create(). */
static inline int
set_up(void **state, bool is_known)
{
	const char *way;
	int r;

	memset(&other, 0, sizeof(other));
	other.memory = malloc(SIZE);
	other.base = reserve(SIZE);
	memcpy(other.memory, pattern(), SIZE);
	r = gpc_pages_create(other.base, SIZE, is_known, &calls, &other, &group);
	/* gpc_pages_create() has detected what the kernel supports. */
	way = getenv("GP_TEST_USERFAULT");
	if (way && strcmp(way, "old") == 0)
		gp_userfault_set_emulate_old(true);
	return r;
}

/* CMocka setups and teardown of a test. tear_down() returns 0, the others the result of
 * set_up(). */
static inline int
known(void **state)
{
	return set_up(state, true);
}

static inline int
unused(void **state)
{
	return set_up(state, false);
}

static inline int
tear_down(void **state)
{
	gpc_page_faults_set_direct(false);
	gpc_pages_destroy(other.base);
	assert_int_equal(munmap((void *)(uintptr_t)other.base, SIZE), 0);
	free(other.memory);
	return 0;
}

/* Returns a pointer to the byte at this offset of the range. */
static inline uint8_t *
at(uint64_t offset)
{
	return (uint8_t *)(uintptr_t)(other.base + offset);
}

/* Makes the whole range available to the GPU: sends changed pages to the remote side. */
static inline void
give(void)
{
	gpc_pages_begin();
	assert_true(gpc_pages_flush(&group));
	gpc_pages_end();
}

/* Makes a part of the range available to the GPU. is_written: whether the GPU may write to it. */
static inline void
give_part(uint64_t offset, uint64_t size, bool is_written)
{
	gpc_pages_begin();
	assert_true(gpc_pages_flush_range(other.base + offset, size, is_written));
	gpc_pages_end();
}

/* Asserts the state of the page at this offset. */
static inline void
expect_state(uint64_t offset, enum gpc_page_state state)
{
	assert_int_equal(gpc_pages_state(other.base + offset), state);
}

/* Starts a test: installs the handler of page faults again, because CMocka has replaced the signal
 * handler since the range was created. */
static inline void
begin(void **state)
{
	gpc_page_faults_reinstall();
}

/* A setup that creates the range while the resource limit `what` of the process is 0. Returns the
 * result of set_up(). */
static inline int
set_up_limited(void **state, int what)
{
	struct rlimit before, none;
	int r;

	assert_int_equal(getrlimit(what, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	assert_int_equal(setrlimit(what, &none), 0);
	r = set_up(state, false);
	assert_int_equal(setrlimit(what, &before), 0);
	return r;
}

/* Returns whether page faults are handled by userfaultfd, instead of by a signal handler. */
static inline bool
is_userfault(void)
{
	return gpc_page_faults_mechanism() == GPC_PAGE_FAULTS_USERFAULT;
}

/* Define a test, see above. */
#define KNOWN(test) UNIT_TEST_WITH(test, known, tear_down)
#define UNUSED(test) UNIT_TEST_WITH(test, unused, tear_down)

#endif /* PAGES_FIXTURE_H */
