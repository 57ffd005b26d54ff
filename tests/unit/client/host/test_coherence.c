/* SPDX-License-Identifier: Apache-2.0 */
/* Coherence of host memory that kernels access: both replicas have the same contents. */
#include "tests/unit/client/coherence_fixture.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

TEST(cold_memory_costs_nothing)
{
	uint8_t *host = pinned(100), *large = pinned(5 * FAKE_WIRE_MIB);

	memset(large, 1, 5 * FAKE_WIRE_MIB);
	host[99] = 1;
	CU(gpc_coherence_before_work(session()));
	assert_int_equal(fake.host_maps, 0);
	assert_int_equal(fake_wire_host_mapped(), 0);
	CU(gpc_cuMemFreeHost(host));
	CU(gpc_cuMemFreeHost(large));
}

TEST(a_block_has_the_same_address_for_kernels)
{
	uint8_t *host = pinned(3000);
	struct gpc_address found;

	memset(host, 5, 3000);
	assert_int_equal(reach(host + 10), (uintptr_t)host + 10);
	assert_int_equal(fake_wire_host_at((uintptr_t)host)[2999], 5);
	gpc_address_lookup((uintptr_t)host + 3, &found);
	assert_int_equal(found.kind, GPC_ADDRESS_HOST);
	assert_true(found.device_mapped);
	assert_int_equal(found.device, (uintptr_t)host);
	/* Once is enough. */
	assert_int_equal(fake.host_maps, 1);
	(void)reach(host);
	assert_int_equal(fake.host_maps, 1);
	CU(gpc_cuMemFreeHost(host));
}

TEST(changes_go_both_ways)
{
	uint8_t *host = pinned(100000), *there;

	(void)reach(host);
	there = fake_wire_host_at((uintptr_t)host);
	fake.host_written = 0;
	host[5] = 1;
	host[99999] = 2;
	CU(gpc_coherence_before_work(session()));
	assert_int_equal(there[5], 1);
	assert_int_equal(there[99999], 2);
	assert_int_equal(fake.host_written, 8);
	there[5] = 3;
	there[70000] = 4;
	synchronize();
	assert_int_equal(host[5], 3);
	assert_int_equal(host[70000], 4);
	assert_int_equal(host[99999], 2);
	/* Each end knows that the other one has it. */
	fake.host_written = 0;
	CU(gpc_coherence_before_work(session()));
	assert_int_equal(fake.host_written, 0);
	CU(gpc_cuMemFreeHost(host));
	assert_int_equal(atomic_load(&gpc_replica_count), 0);
}

/* A kernel that is given one block finds the addresses of others in it. */
TEST(what_a_block_names_is_reached)
{
	uint64_t *first = (uint64_t *)(void *)pinned(64), *second, *third, *fourth;
	uint32_t *halves;

	second = (uint64_t *)(void *)pinned(64);
	third = (uint64_t *)(void *)pinned(5 * FAKE_WIRE_MIB);
	fourth = (uint64_t *)(void *)pinned(64);
	halves = (uint32_t *)(void *)pinned(64);
	memset(first, 0, 64);
	memset(third, 0, 5 * FAKE_WIRE_MIB);
	first[3] = (uintptr_t)second;
	*second = (uintptr_t)third + FAKE_WIRE_MIB;
	*fourth = *halves = 7;
	third[FAKE_WIRE_MIB / 8] = 9;
	(void)reach(first);
	assert_int_equal(*(uint64_t *)(void *)fake_wire_host_at((uintptr_t)second),
			 (uintptr_t)third + FAKE_WIRE_MIB);
	assert_int_equal(
		*(uint64_t *)(void *)fake_wire_host_at((uintptr_t)&third[FAKE_WIRE_MIB / 8]), 9);
	assert_int_equal(*fake_wire_host_at((uintptr_t)fourth), 0);
	/* What it names later comes before that. */
	third[0] = (uintptr_t)fourth + 8;
	CU(gpc_coherence_before_work(session()));
	assert_int_equal(*fake_wire_host_at((uintptr_t)fourth), 7);
	assert_int_equal(*(uint64_t *)(void *)fake_wire_host_at((uintptr_t)third),
			 (uintptr_t)fourth + 8);
	/* Of which half of the bytes are as they were. */
	third[0] = (uintptr_t)halves;
	CU(gpc_coherence_before_work(session()));
	assert_int_equal(*fake_wire_host_at((uintptr_t)halves), 7);
	assert_int_equal(*(uint64_t *)(void *)fake_wire_host_at((uintptr_t)third),
			 (uintptr_t)halves);
	for (int i = 0; i < 5; i++)
		CU(gpc_cuMemFreeHost((void *[]){ first, second, third, fourth, halves }[i]));
}

#define NEW_ONES 300

struct namer {
	uint64_t *word; /* that kernels reach */
	uint32_t *blocks[NEW_ONES];
	_Atomic uint64_t seen; /* what the word is there */
};

/* Each is made, written, and named to kernels, once the one before is there. */
static void *
name_new_ones(void *arg)
{
	struct namer *namer = arg;

	for (int i = 0; i < NEW_ONES; i++) {
		namer->blocks[i] = (uint32_t *)(void *)pinned(64);
		*namer->blocks[i] = 7;
		__atomic_store_n(namer->word, (uintptr_t)namer->blocks[i], __ATOMIC_RELEASE);
		while (atomic_load(&namer->seen) != (uintptr_t)namer->blocks[i])
			sched_yield();
	}
	return NULL;
}

/* At any moment of a look at what kernels reach. */
TEST(what_is_made_during_a_look_is_reached)
{
	uint64_t *block = (uint64_t *)(void *)pinned(FAKE_WIRE_MIB);
	/* It is looked at last. */
	struct namer namer = { .word = block + FAKE_WIRE_MIB / 8 - 1 };
	const uint64_t *there;
	pthread_t thread;

	memset(block, 0, FAKE_WIRE_MIB);
	(void)reach(block);
	there = (const uint64_t *)(void *)fake_wire_host_at((uintptr_t)namer.word);
	assert_int_equal(pthread_create(&thread, NULL, name_new_ones, &namer), 0);
	for (int seen = 0; seen < NEW_ONES;) {
		const uint8_t *named;

		CU(gpc_coherence_before_work(session()));
		if (*there == atomic_load(&namer.seen))
			continue;
		named = fake_wire_host_at(*there);
		assert_non_null(named);
		assert_int_equal(*named, 7);
		atomic_store(&namer.seen, *there);
		seen++;
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (int i = 0; i < NEW_ONES; i++)
		CU(gpc_cuMemFreeHost(namer.blocks[i]));
	CU(gpc_cuMemFreeHost(block));
}

TEST(much_goes_in_parts)
{
	const size_t size = 3 * GP_CHANGES_MAX + 12345;
	uint8_t *host = pinned(size), *pattern = fake_wire_pattern(size, 1), *there;
	uint8_t *other = pinned(50);

	(void)reach(other);
	(void)reach(host);
	there = fake_wire_host_at((uintptr_t)host);
	memcpy(host, pattern, size);
	other[49] = 1;
	CU(gpc_coherence_before_work(session()));
	assert_memory_equal(there, pattern, size);
	assert_int_equal(fake_wire_host_at((uintptr_t)other)[49], 1);
	for (size_t i = 0; i < size; i++)
		there[i] = (uint8_t)~pattern[i];
	fake_wire_host_at((uintptr_t)other)[0] = 8;
	synchronize();
	for (size_t i = 0; i < size; i++)
		assert_int_equal(host[i], (uint8_t)~pattern[i]);
	assert_int_equal(other[0], 8);
	free(pattern);
	CU(gpc_cuMemFreeHost(host));
	CU(gpc_cuMemFreeHost(other));
}

/* Long runs in parts, and then the rest at once. */
TEST(more_than_a_picture_goes_in_parts)
{
	const size_t size = GP_DIFF_SCAN_MAX + GP_DIFF_SCAN_MAX / 2;
	uint8_t *flag = pinned(64), *host = pinned(size), *there;
	int fetches;

	(void)reach(flag);
	(void)reach(host);
	there = fake_wire_host_at((uintptr_t)host);
	memset(host, 1, size);
	flag[0] = 1;
	host[5] = 0;
	CU(gpc_coherence_before_work(session()));
	assert_memory_equal(there, host, size);
	assert_int_equal(fake_wire_host_at((uintptr_t)flag)[0], 1);
	memset(there, 2, size);
	there[7] = 1;
	fake_wire_host_at((uintptr_t)flag)[0] = 2;
	fetches = fake.host_fetches;
	synchronize();
	assert_memory_equal(there, host, size);
	assert_int_equal(flag[0], 2);
	/* All was too much; long ones, twice; all. */
	assert_int_equal(fake.host_fetches - fetches, 4);
	/* And nothing is left. */
	fake.host_written = 0;
	CU(gpc_coherence_before_work(session()));
	assert_int_equal(fake.host_written, 0);
	CU(gpc_cuMemFreeHost(host));
	CU(gpc_cuMemFreeHost(flag));
}

static uint32_t *racing;

static void
send_meanwhile(void)
{
	*racing = 77;
	CU(gpc_coherence_send(session()));
}

/* The reply to a fetch does not include bytes that were sent after it. */
TEST(a_word_that_both_change_is_the_same_at_both_ends)
{
	uint8_t *host = pinned(64);
	uint32_t there;

	(void)reach(host);
	racing = (uint32_t *)(void *)host;
	*(uint32_t *)(void *)fake_wire_host_at((uintptr_t)host) = 55;
	fake_wire_host_at((uintptr_t)host)[4] = 9;
	fake.meanwhile = send_meanwhile;
	synchronize();
	memcpy(&there, fake_wire_host_at((uintptr_t)host), 4);
	assert_int_equal(there, 77);
	assert_int_equal(*racing, 77);
	assert_int_equal(host[4], 9);
	CU(gpc_cuMemFreeHost(host));
}

/* The host's byte of the word that a kernel has changed meanwhile, sent, and another one, not yet.
 */
static void
bytes_write_meanwhile(void)
{
	uint8_t *bytes = (uint8_t *)racing;

	bytes[1] = 11;
	bytes[100] = 12;
	CU(gpc_coherence_send(session()));
	bytes[2] = 13;
}

TEST(bytes_of_one_word_have_two_writers)
{
	uint8_t *host = pinned(128), *there;

	(void)reach(host);
	there = fake_wire_host_at((uintptr_t)host);
	racing = (uint32_t *)(void *)host;
	there[0] = 21;
	there[3] = 22;
	there[101] = 23;
	there[110] = 24;
	fake.meanwhile = bytes_write_meanwhile;
	synchronize();
	CU(gpc_coherence_before_work(session()));
	for (int i = 0; i < 2; i++) {
		const uint8_t *end = i ? there : host;

		assert_memory_equal(end, ((uint8_t[]){ 21, 11, 13, 22 }), 4);
		assert_memory_equal(end + 100, ((uint8_t[]){ 12, 23, 0, 0 }), 4);
		assert_int_equal(end[110], 24);
	}
	/* A long run, of which each end has every other byte. */
	for (int i = 0; i < 128; i += 2) {
		there[i] = (uint8_t)(100 + i);
		host[i + 1] = (uint8_t)(100 + i);
	}
	synchronize();
	CU(gpc_coherence_before_work(session()));
	for (int i = 0; i < 128; i++) {
		assert_int_equal(host[i], 100 + i / 2 * 2);
		assert_int_equal(there[i], 100 + i / 2 * 2);
	}
	CU(gpc_cuMemFreeHost(host));
}

static uint8_t *leaving;

static void
free_meanwhile(void)
{
	CU(gpc_cuMemFreeHost(leaving));
	leaving = pinned(64);
	memset(leaving, 1, 64);
	(void)reach(leaving);
}

/* What a fetch tells of one block is not taken for another one at the same place. */
TEST(an_answer_of_a_block_that_is_gone_is_forgotten)
{
	leaving = pinned(64);
	(void)reach(leaving);
	memset(fake_wire_host_at((uintptr_t)leaving), 8, 64);
	fake.meanwhile = free_meanwhile;
	synchronize();
	assert_int_equal(leaving[0], 1);
	CU(gpc_cuMemFreeHost(leaving));
}

/* What the program wrote before is sent before, and not later over it. */
TEST(a_fill_comes_after_what_the_program_has_written)
{
	uint8_t *host = pinned(256);

	(void)reach(host);
	for (int i = 0; i < 2; i++) {
		memset(host, 123, 256);
		if (i == 0)
			CU(gpc_cuMemsetD8_v2((uintptr_t)host, 7, 256));
		else
			CU(gpc_cuMemsetD2D32_v2((uintptr_t)host, 64, 0x07070707, 16, 4));
		/* It waits. */
		assert_int_equal(fake.syncs, i + 1);
		CU(gpc_coherence_before_work(session()));
		assert_int_equal(fake_wire_host_at((uintptr_t)host)[0], 7);
		assert_int_equal(fake_wire_host_at((uintptr_t)host)[255], 7);
		synchronize();
		assert_int_equal(host[0], 7);
		assert_int_equal(host[255], 7);
	}
	CU(gpc_cuMemFreeHost(host));
}

/* A wait that requests changes before it waits. */
static void
synchronize_at_once(void)
{
	struct gpc_coherence_fetch *fetch;
	int behinds = fake.host_behinds, fetches = fake.host_fetches;

	fake.posted++;
	fetch = gpc_coherence_before_wait(session(), GP_HOST_AFTER_STREAM, 1, GP_CALL_gpFence);
	assert_non_null(fetch);
	CU(gpc_coherence_after_wait(session(), fetch, CUDA_SUCCESS));
	assert_int_equal(fake.host_behinds - behinds, 1);
	assert_int_equal(fake.host_fetches - fetches, 0);
}

TEST(a_wait_brings_what_has_changed)
{
	uint8_t *host = pinned(1000);

	(void)reach(host);
	fake_wire_host_at((uintptr_t)host)[999] = 3;
	synchronize_at_once();
	assert_int_equal(host[999], 3);
	CU(gpc_cuMemFreeHost(host));
}

static void
send_and_be_answered(void)
{
	*racing = 77;
	CU(gpc_coherence_send(session()));
	/* The kernel has seen it. */
	*(uint32_t *)(void *)fake_wire_host_at((uintptr_t)racing) = 78;
}

/* What was sent while work was under way is older than what that work has made of it. */
TEST(an_answer_behind_work_knows_what_was_sent_meanwhile)
{
	uint8_t *host = pinned(64);

	(void)reach(host);
	racing = (uint32_t *)(void *)host;
	fake.meanwhile = send_and_be_answered;
	synchronize_at_once();
	assert_int_equal(*racing, 78);
	/* Both ends agree. */
	fake.host_written = 0;
	CU(gpc_coherence_before_work(session()));
	assert_int_equal(fake.host_written, 0);
	CU(gpc_cuMemFreeHost(host));
}

/* Another block is where it was, a shorter one, which work writes to, and behind it. */
static void
change_blocks(void)
{
	gpc_coherence_remove(session(), (uintptr_t)leaving);
	memset(leaving, 1, 64);
	CU(gpc_coherence_add(fake.context, leaving, (uintptr_t)leaving, 32));
	memset(fake_wire_host_at((uintptr_t)leaving), 9, 40);
}

/* A block that came while work was under way is one that its answer means. */
TEST(an_answer_behind_work_means_the_blocks_that_are_there_then)
{
	leaving = pinned(64);
	(void)reach(leaving);
	fake.meanwhile = change_blocks;
	synchronize_at_once();
	assert_int_equal(leaving[0], 9);
	assert_int_equal(leaving[31], 9);
	assert_int_equal(leaving[32], 1);
	CU(gpc_cuMemFreeHost(leaving));
	assert_int_equal(atomic_load(&gpc_replica_count), 0);
}

/* More than the daemon looks at while others wait is fetched behind the wait. */
TEST(much_is_asked_behind_the_wait)
{
	uint8_t *host = pinned(GP_HOST_AFTER_MAX + 1);
	struct gpc_coherence_fetch *fetch;

	(void)reach(host);
	fake_wire_host_at((uintptr_t)host)[7] = 3;
	fake.posted++;
	fetch = gpc_coherence_before_wait(session(), GP_HOST_AFTER_STREAM, 1, GP_CALL_gpFence);
	assert_null(fetch);
	CU(gpc_coherence_after_wait(session(), fetch, CUDA_SUCCESS));
	assert_int_equal(host[7], 3);
	CU(gpc_cuMemFreeHost(host));
}

TEST(a_large_block_that_is_freed_is_given_back)
{
	uint64_t before = fake_wire_host_mapped();
	uint8_t *large = pinned(9 * FAKE_WIRE_MIB);

	(void)reach(large);
	assert_int_equal(fake_wire_host_mapped(), before + 10 * FAKE_WIRE_MIB);
	CU(gpc_cuMemFreeHost(large));
	assert_int_equal(fake_wire_host_mapped(), before);
	assert_true(gpc_host_space_contains((uintptr_t)large));
}

/* What was there before goes when no kernel runs. */
TEST(addresses_that_are_not_free_yet_are_awaited)
{
	uint8_t *host = pinned(9 * FAKE_WIRE_MIB), *memory = aligned_alloc(4096, 4096);

	fake.host_busy = 20;
	(void)reach(host);
	assert_int_equal(fake.host_busy, 0);
	fake.host_busy = 20;
	CU(gpc_cuMemHostRegister_v2(memory, 4096, 0));
	(void)reach(memory);
	assert_int_equal(fake.host_busy, 0);
	CU(gpc_cuMemHostUnregister(memory));
	CU(gpc_cuMemFreeHost(host));
	free(memory);
}

UNIT_TEST_MAIN(NULL, NULL)
