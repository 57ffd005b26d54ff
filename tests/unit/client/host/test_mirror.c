/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that kernels reach: where it lies, and that two copies of it are kept alike. */
#include "client/host/host_space.h"
#include "client/host/mirror.h"
#include "client/memory/address.h"
#include "client/memory/host_memory.h"
#include "gpc_calls.h"
#include "protocol/host_look.h"
#include "protocol/host_picture.h"
#include "tests/unit/client/client_fake.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static struct gpc_session *
session(void)
{
	return fake.context->scope.session;
}

static int
setup(void **state)
{
	int r = fake_setup(state);

	fake_allow_host();
	return r;
}

static uint8_t *
pinned(size_t size)
{
	uint8_t *host;

	CU(gpc_cuMemHostAlloc((void **)&host, size, 0));
	assert_in_range((uintptr_t)host, FAKE_HOST, FAKE_HOST + ((uint64_t)64 << 30));
	return host;
}

static CUdeviceptr
reach(void *host)
{
	CUdeviceptr address;

	CU(gpc_cuMemHostGetDevicePointer_v2(&address, host, 0));
	return address;
}

/* A wait, after work that may have changed something. */
static void
synchronize(void)
{
	fake.posted++;
	CU(gpc_mirror_fetch(session()));
}

static void
cold_memory_costs_nothing(void **state)
{
	uint8_t *host = pinned(100), *large = pinned(5 * FAKE_MIB);

	memset(large, 1, 5 * FAKE_MIB);
	host[99] = 1;
	CU(gpc_mirror_before_work(session()));
	assert_int_equal(fake.host_maps, 0);
	assert_int_equal(fake_host_mapped(), 0);
	CU(gpc_cuMemFreeHost(host));
	CU(gpc_cuMemFreeHost(large));
}

static void
a_block_has_the_same_address_for_kernels(void **state)
{
	uint8_t *host = pinned(3000);
	struct gpc_address found;

	memset(host, 5, 3000);
	assert_int_equal(reach(host + 10), (uintptr_t)host + 10);
	assert_int_equal(fake_host_at((uintptr_t)host)[2999], 5);
	gpc_address_lookup((uintptr_t)host + 3, &found);
	assert_int_equal(found.kind, GPC_ADDRESS_HOST);
	assert_true(found.reached);
	assert_int_equal(found.device, (uintptr_t)host);
	/* Once is enough. */
	assert_int_equal(fake.host_maps, 1);
	(void)reach(host);
	assert_int_equal(fake.host_maps, 1);
	CU(gpc_cuMemFreeHost(host));
}

static void
changes_go_both_ways(void **state)
{
	uint8_t *host = pinned(100000), *there;

	(void)reach(host);
	there = fake_host_at((uintptr_t)host);
	fake.host_written = 0;
	host[5] = 1;
	host[99999] = 2;
	CU(gpc_mirror_before_work(session()));
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
	CU(gpc_mirror_before_work(session()));
	assert_int_equal(fake.host_written, 0);
	CU(gpc_cuMemFreeHost(host));
	assert_int_equal(atomic_load(&gpc_mirrored), 0);
}

/* A kernel that is given one block finds the addresses of others in it. */
static void
what_a_block_names_is_reached(void **state)
{
	uint64_t *first = (uint64_t *)(void *)pinned(64), *second, *third, *fourth;
	uint32_t *halves;

	second = (uint64_t *)(void *)pinned(64);
	third = (uint64_t *)(void *)pinned(5 * FAKE_MIB);
	fourth = (uint64_t *)(void *)pinned(64);
	halves = (uint32_t *)(void *)pinned(64);
	memset(first, 0, 64);
	memset(third, 0, 5 * FAKE_MIB);
	first[3] = (uintptr_t)second;
	*second = (uintptr_t)third + FAKE_MIB;
	*fourth = *halves = 7;
	third[FAKE_MIB / 8] = 9;
	(void)reach(first);
	assert_int_equal(*(uint64_t *)(void *)fake_host_at((uintptr_t)second),
			 (uintptr_t)third + FAKE_MIB);
	assert_int_equal(*(uint64_t *)(void *)fake_host_at((uintptr_t)&third[FAKE_MIB / 8]), 9);
	assert_int_equal(*fake_host_at((uintptr_t)fourth), 0);
	/* What it names later comes before that. */
	third[0] = (uintptr_t)fourth + 8;
	CU(gpc_mirror_before_work(session()));
	assert_int_equal(*fake_host_at((uintptr_t)fourth), 7);
	assert_int_equal(*(uint64_t *)(void *)fake_host_at((uintptr_t)third),
			 (uintptr_t)fourth + 8);
	/* Of which half of the bytes are as they were. */
	third[0] = (uintptr_t)halves;
	CU(gpc_mirror_before_work(session()));
	assert_int_equal(*fake_host_at((uintptr_t)halves), 7);
	assert_int_equal(*(uint64_t *)(void *)fake_host_at((uintptr_t)third), (uintptr_t)halves);
	for (int i = 0; i < 5; i++)
		CU(gpc_cuMemFreeHost((void *[]){ first, second, third, fourth, halves }[i]));
}

static void
much_goes_in_parts(void **state)
{
	const size_t size = 3 * GP_CHANGES_MAX + 12345;
	uint8_t *host = pinned(size), *pattern = fake_pattern(size, 1), *there;
	uint8_t *other = pinned(50);

	(void)reach(other);
	(void)reach(host);
	there = fake_host_at((uintptr_t)host);
	memcpy(host, pattern, size);
	other[49] = 1;
	CU(gpc_mirror_before_work(session()));
	assert_memory_equal(there, pattern, size);
	assert_int_equal(fake_host_at((uintptr_t)other)[49], 1);
	for (size_t i = 0; i < size; i++)
		there[i] = (uint8_t)~pattern[i];
	fake_host_at((uintptr_t)other)[0] = 8;
	synchronize();
	for (size_t i = 0; i < size; i++)
		assert_int_equal(host[i], (uint8_t)~pattern[i]);
	assert_int_equal(other[0], 8);
	free(pattern);
	CU(gpc_cuMemFreeHost(host));
	CU(gpc_cuMemFreeHost(other));
}

/* Long runs in parts, and then the rest at once. */
static void
more_than_a_picture_goes_in_parts(void **state)
{
	const size_t size = GP_LOOK_MAX + GP_LOOK_MAX / 2;
	uint8_t *flag = pinned(64), *host = pinned(size), *there;
	int fetches;

	(void)reach(flag);
	(void)reach(host);
	there = fake_host_at((uintptr_t)host);
	memset(host, 1, size);
	flag[0] = 1;
	host[5] = 0;
	CU(gpc_mirror_before_work(session()));
	assert_memory_equal(there, host, size);
	assert_int_equal(fake_host_at((uintptr_t)flag)[0], 1);
	memset(there, 2, size);
	there[7] = 1;
	fake_host_at((uintptr_t)flag)[0] = 2;
	fetches = fake.host_fetches;
	synchronize();
	assert_memory_equal(there, host, size);
	assert_int_equal(flag[0], 2);
	/* All was too much; long ones, twice; all. */
	assert_int_equal(fake.host_fetches - fetches, 4);
	/* And nothing is left. */
	fake.host_written = 0;
	CU(gpc_mirror_before_work(session()));
	assert_int_equal(fake.host_written, 0);
	CU(gpc_cuMemFreeHost(host));
	CU(gpc_cuMemFreeHost(flag));
}

static uint32_t *racing;

static void
send_meanwhile(void)
{
	*racing = 77;
	CU(gpc_mirror_send(session()));
}

/* The answer to a fetch does not know what was sent behind it. */
static void
a_word_that_both_change_is_the_same_at_both_ends(void **state)
{
	uint8_t *host = pinned(64);
	uint32_t there;

	(void)reach(host);
	racing = (uint32_t *)(void *)host;
	*(uint32_t *)(void *)fake_host_at((uintptr_t)host) = 55;
	fake_host_at((uintptr_t)host)[4] = 9;
	fake.meanwhile = send_meanwhile;
	synchronize();
	memcpy(&there, fake_host_at((uintptr_t)host), 4);
	assert_int_equal(there, 77);
	assert_int_equal(*racing, 77);
	assert_int_equal(host[4], 9);
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
static void
an_answer_of_a_block_that_is_gone_is_forgotten(void **state)
{
	leaving = pinned(64);
	(void)reach(leaving);
	memset(fake_host_at((uintptr_t)leaving), 8, 64);
	fake.meanwhile = free_meanwhile;
	synchronize();
	assert_int_equal(leaving[0], 1);
	CU(gpc_cuMemFreeHost(leaving));
}

/* A wait that asks for changes before it waits. */
static void
synchronize_at_once(void)
{
	struct gpc_mirror_fetch *fetch;
	int behinds = fake.host_behinds, fetches = fake.host_fetches;

	fake.posted++;
	fetch = gpc_mirror_before_wait(session(), GP_HOST_BEHIND_STREAM, 1, GP_CALL_gpFence);
	assert_non_null(fetch);
	CU(gpc_mirror_after_wait(session(), fetch, CUDA_SUCCESS));
	assert_int_equal(fake.host_behinds - behinds, 1);
	assert_int_equal(fake.host_fetches - fetches, 0);
}

static void
a_wait_brings_what_has_changed(void **state)
{
	uint8_t *host = pinned(1000);

	(void)reach(host);
	fake_host_at((uintptr_t)host)[999] = 3;
	synchronize_at_once();
	assert_int_equal(host[999], 3);
	CU(gpc_cuMemFreeHost(host));
}

static void
send_and_be_answered(void)
{
	*racing = 77;
	CU(gpc_mirror_send(session()));
	/* The kernel has seen it. */
	*(uint32_t *)(void *)fake_host_at((uintptr_t)racing) = 78;
}

/* What was sent while work was under way is older than what that work has made of it. */
static void
an_answer_behind_work_knows_what_was_sent_meanwhile(void **state)
{
	uint8_t *host = pinned(64);

	(void)reach(host);
	racing = (uint32_t *)(void *)host;
	fake.meanwhile = send_and_be_answered;
	synchronize_at_once();
	assert_int_equal(*racing, 78);
	/* Both ends agree. */
	fake.host_written = 0;
	CU(gpc_mirror_before_work(session()));
	assert_int_equal(fake.host_written, 0);
	CU(gpc_cuMemFreeHost(host));
}

/* Another block is where it was, a shorter one, which work writes to, and behind it. */
static void
change_blocks(void)
{
	gpc_mirror_remove(session(), (uintptr_t)leaving);
	memset(leaving, 1, 64);
	CU(gpc_mirror_add(fake.context, leaving, (uintptr_t)leaving, 32));
	memset(fake_host_at((uintptr_t)leaving), 9, 40);
}

/* A block that came while work was under way is one that its answer means. */
static void
an_answer_behind_work_means_the_blocks_that_are_there_then(void **state)
{
	leaving = pinned(64);
	(void)reach(leaving);
	fake.meanwhile = change_blocks;
	synchronize_at_once();
	assert_int_equal(leaving[0], 9);
	assert_int_equal(leaving[31], 9);
	assert_int_equal(leaving[32], 1);
	CU(gpc_cuMemFreeHost(leaving));
	assert_int_equal(atomic_load(&gpc_mirrored), 0);
}

/* More than the daemon looks at while others wait is fetched behind the wait. */
static void
much_is_asked_behind_the_wait(void **state)
{
	uint8_t *host = pinned(GP_HOST_BEHIND_MAX + 1);
	struct gpc_mirror_fetch *fetch;

	(void)reach(host);
	fake_host_at((uintptr_t)host)[7] = 3;
	fake.posted++;
	fetch = gpc_mirror_before_wait(session(), GP_HOST_BEHIND_STREAM, 1, GP_CALL_gpFence);
	assert_null(fetch);
	CU(gpc_mirror_after_wait(session(), fetch, CUDA_SUCCESS));
	assert_int_equal(host[7], 3);
	CU(gpc_cuMemFreeHost(host));
}

static void
an_address_among_parameters_makes_a_block_one_that_kernels_reach(void **state)
{
	uint8_t *a = pinned(100), *b = pinned(100), *c = pinned(100);
	const uint64_t words[4] = { 0, (uintptr_t)b + 50, 12345, UINT64_MAX };

	CU(gpc_host_memory_note(fake.context, words, sizeof(words)));
	assert_int_equal(atomic_load(&gpc_mirrored), 1);
	CU(gpc_host_memory_note(fake.context, words, sizeof(words)));
	assert_int_equal(atomic_load(&gpc_mirrored), 1);
	/* Not at an odd place, nor a part of a word. */
	CU(gpc_host_memory_note(fake.context, &(uint64_t){ (uintptr_t)a }, 7));
	assert_int_equal(atomic_load(&gpc_mirrored), 1);
	CU(gpc_host_memory_note(fake.context, &(uint64_t){ (uintptr_t)a }, 8));
	assert_int_equal(atomic_load(&gpc_mirrored), 2);
	CU(gpc_cuMemFreeHost(a));
	CU(gpc_cuMemFreeHost(b));
	CU(gpc_cuMemFreeHost(c));
	assert_int_equal(atomic_load(&gpc_host_memory_cold), 0);
}

/* A structure that the program has filled in part has what lay there before. */
static void
an_address_left_over_in_many_parameters_does_not(void **state)
{
	uint8_t *copied = pinned(100), *other = pinned(100);
	uint64_t words[128] = { 0 };

	gpc_host_block_note_copied((uintptr_t)copied + 99);
	words[100] = (uintptr_t)copied;
	CU(gpc_host_memory_note_parameters(fake.context, words, sizeof(words)));
	assert_int_equal(atomic_load(&gpc_mirrored), 0);
	/* None was copied from there. */
	words[101] = (uintptr_t)other;
	CU(gpc_host_memory_note_parameters(fake.context, words, sizeof(words)));
	assert_int_equal(atomic_load(&gpc_mirrored), 1);
	/* Few parameters, or bytes that the program copies, are meant. */
	CU(gpc_host_memory_note_parameters(fake.context, words + 1, sizeof(words) - 8));
	assert_int_equal(atomic_load(&gpc_mirrored), 2);
	CU(gpc_cuMemFreeHost(copied));
	CU(gpc_cuMemFreeHost(other));
}

/* As in packed structures, which few copy from, and among what is left over. */
static void
at_an_odd_place_one_counts_that_no_copy_has_named(void **state)
{
	uint8_t *copied = pinned(100), *other = pinned(100);
	uint8_t bytes[32] = { 0 };
	uint64_t address = (uintptr_t)copied;

	gpc_host_block_note_copied(address);
	memcpy(bytes + 12, &address, sizeof(address));
	CU(gpc_host_memory_note_parameters(fake.context, bytes, sizeof(bytes)));
	CU(gpc_host_memory_note(fake.context, bytes, sizeof(bytes)));
	assert_int_equal(atomic_load(&gpc_mirrored), 0);
	address = (uintptr_t)other;
	memcpy(bytes + 12, &address, sizeof(address));
	CU(gpc_host_memory_note_parameters(fake.context, bytes, sizeof(bytes)));
	assert_int_equal(atomic_load(&gpc_mirrored), 1);
	CU(gpc_cuMemFreeHost(copied));
	CU(gpc_cuMemFreeHost(other));
}

static void
nor_of_registered_memory(void **state)
{
	uint8_t *memory = aligned_alloc(4096, 4096);
	uint64_t words[128] = { 0 };

	CU(gpc_cuMemHostRegister_v2(memory, 4096, 0));
	words[5] = (uintptr_t)memory + 8;
	gpc_host_block_note_copied((uintptr_t)memory);
	assert_false(gpc_host_memory_must_translate(words, sizeof(words)));
	assert_true(gpc_host_memory_must_translate(words, 64));
	CU(gpc_host_memory_translate(fake.context, words, sizeof(words)));
	assert_int_equal(words[5], (uintptr_t)memory + 8);
	/* Kernels reach it now: then the address is theirs in any case. */
	CU(gpc_host_memory_translate(fake.context, words, 64));
	assert_int_not_equal(words[5], (uintptr_t)memory + 8);
	words[5] = (uintptr_t)memory + 8;
	assert_true(gpc_host_memory_must_translate(words, sizeof(words)));
	CU(gpc_cuMemHostUnregister(memory));
	free(memory);
}

static void
mapped_memory_is_reached_from_the_start(void **state)
{
	uint64_t before = fake_host_mapped();
	uint8_t *host;
	void *more = &more;

	CU(gpc_cuMemHostAlloc((void **)&host, 9 * FAKE_MIB, CU_MEMHOSTALLOC_DEVICEMAP));
	assert_int_equal(atomic_load(&gpc_mirrored), 1);
	assert_int_equal(fake_host_at((uintptr_t)host)[9 * FAKE_MIB - 1], 0);
	fake.host_quota = fake_host_mapped();
	assert_int_equal(gpc_cuMemHostAlloc(&more, 9 * FAKE_MIB, CU_MEMHOSTALLOC_DEVICEMAP),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_null(more);
	CU(gpc_cuMemFreeHost(host));
	assert_int_equal(fake_host_mapped(), before);
}

static void
registered_memory_has_another_address(void **state)
{
	uint8_t *memory = aligned_alloc(4096, 5 * 4096), *host = memory + 4096 + 24;
	struct gpc_address found;
	CUdeviceptr device;
	uint64_t value;

	memset(memory, 1, 5 * 4096);
	CU(gpc_cuMemHostRegister_v2(host, 9001, 0));
	device = reach(host + 1) - 1;
	assert_int_equal(device % 4096, 24);
	assert_int_equal(fake_host_at(device)[9000], 1);
	fake_host_at(device)[0] = 2;
	fake_host_at(device)[9000] = 3;
	synchronize();
	assert_int_equal(host[0], 2);
	assert_int_equal(host[9000], 3);
	assert_int_equal(host[-1], 1);
	assert_int_equal(host[9001], 1);
	gpc_address_lookup(device + 7, &found);
	assert_int_equal(found.kind, GPC_ADDRESS_HOST);
	assert_int_equal(found.base, device);
	CU(gpc_cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_HOST_POINTER, device + 7));
	assert_int_equal(value, (uintptr_t)host + 7);
	CU(gpc_cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
				     (uintptr_t)host + 7));
	assert_int_equal(value, device + 7);
	CU(gpc_cuMemHostUnregister(host));
	gpc_address_lookup(device, &found);
	assert_int_equal(found.kind, GPC_ADDRESS_INVALID);
	free(memory);
}

static void
parameters_name_registered_memory_as_the_program_does(void **state)
{
	uint8_t *memory = aligned_alloc(4096, 2 * 4096);
	uint64_t words[3] = { 1, (uintptr_t)memory + 100, (uintptr_t)memory + 8192 };

	assert_false(gpc_host_memory_must_translate(words, sizeof(words)));
	CU(gpc_cuMemHostRegister_v2(memory, 8192, 0));
	assert_true(gpc_host_memory_must_translate(words, sizeof(words)));
	assert_false(gpc_host_memory_must_translate(words, 15));
	CU(gpc_host_memory_translate(fake.context, words, sizeof(words)));
	assert_int_equal(words[0], 1);
	assert_int_equal(words[1], reach(memory) + 100);
	assert_int_equal(words[2], (uintptr_t)memory + 8192);
	assert_false(gpc_host_memory_must_translate(words, sizeof(words)));
	CU(gpc_cuMemHostUnregister(memory));
	free(memory);
}

/* Natively nothing touches it any more. */
static void
registered_memory_may_be_gone_before_it_is_unregistered(void **state)
{
	uint8_t *gone =
		mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *other = pinned(100);
	CUdeviceptr device;

	assert_true(gone != MAP_FAILED);
	CU(gpc_cuMemHostRegister_v2(gone + 100, 2 * 4096, 0));
	device = reach(gone + 100);
	(void)reach(other);
	assert_int_equal(atomic_load(&gpc_mirrored), 2);
	assert_int_equal(munmap(gone, 4096), 0);
	other[1] = 5;
	CU(gpc_mirror_before_work(session()));
	assert_int_equal(fake_host_at((uintptr_t)other)[1], 5);
	assert_int_equal(atomic_load(&gpc_mirrored), 1);
	/* What a kernel writes there goes nowhere. */
	*fake_host_at(device) = 1;
	synchronize();
	CU(gpc_cuMemHostUnregister(gone + 100));
	/* Before kernels know of it. */
	CU(gpc_cuMemHostRegister_v2(gone + 4096, 4096, 0));
	assert_int_equal(munmap(gone + 4096, 2 * 4096), 0);
	assert_int_equal(gpc_cuMemHostGetDevicePointer_v2(&device, gone + 4096, 0),
			 CUDA_ERROR_INVALID_VALUE);
	CU(gpc_cuMemHostUnregister(gone + 4096));
	CU(gpc_cuMemFreeHost(other));
}

static void
past_the_quota_kernels_reach_no_more(void **state)
{
	uint8_t *large;
	CUdeviceptr address;

	fake.host_quota = fake_host_mapped() + 4 * FAKE_MIB;
	large = pinned(9 * FAKE_MIB);
	assert_int_equal(gpc_cuMemHostGetDevicePointer_v2(&address, large, 0),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(address, 0);
	/* It is the program's memory nevertheless. */
	large[9 * FAKE_MIB - 1] = 1;
	CU(gpc_cuMemFreeHost(large));
}

static void
a_large_block_that_is_freed_is_given_back(void **state)
{
	uint64_t before = fake_host_mapped();
	uint8_t *large = pinned(9 * FAKE_MIB);

	(void)reach(large);
	assert_int_equal(fake_host_mapped(), before + 10 * FAKE_MIB);
	CU(gpc_cuMemFreeHost(large));
	assert_int_equal(fake_host_mapped(), before);
	assert_true(gpc_host_space_contains((uintptr_t)large));
}

/* What was there before goes when no kernel runs. */
static void
addresses_that_are_not_free_yet_are_awaited(void **state)
{
	uint8_t *host = pinned(9 * FAKE_MIB), *memory = aligned_alloc(4096, 4096);

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

static void
senseless_questions_are_refused(void **state)
{
	uint8_t *host = pinned(10);
	CUdeviceptr address;

	assert_int_equal(gpc_cuMemHostGetDevicePointer_v2(NULL, host, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemHostGetDevicePointer_v2(&address, host, 1),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemHostGetDevicePointer_v2(&address, &address, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemHostGetDevicePointer_v2(&address, host + 10, 0),
			 CUDA_ERROR_INVALID_VALUE);
	CU(gpc_cuMemFreeHost(host));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, fake_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(cold_memory_costs_nothing),
		TEST(a_block_has_the_same_address_for_kernels),
		TEST(changes_go_both_ways),
		TEST(what_a_block_names_is_reached),
		TEST(much_goes_in_parts),
		TEST(more_than_a_picture_goes_in_parts),
		TEST(a_word_that_both_change_is_the_same_at_both_ends),
		TEST(an_answer_of_a_block_that_is_gone_is_forgotten),
		TEST(a_wait_brings_what_has_changed),
		TEST(an_answer_behind_work_knows_what_was_sent_meanwhile),
		TEST(an_answer_behind_work_means_the_blocks_that_are_there_then),
		TEST(much_is_asked_behind_the_wait),
		TEST(an_address_among_parameters_makes_a_block_one_that_kernels_reach),
		TEST(at_an_odd_place_one_counts_that_no_copy_has_named),
		TEST(an_address_left_over_in_many_parameters_does_not),
		TEST(nor_of_registered_memory),
		TEST(mapped_memory_is_reached_from_the_start),
		TEST(registered_memory_may_be_gone_before_it_is_unregistered),
		TEST(registered_memory_has_another_address),
		TEST(parameters_name_registered_memory_as_the_program_does),
		TEST(past_the_quota_kernels_reach_no_more),
		TEST(a_large_block_that_is_freed_is_given_back),
		TEST(addresses_that_are_not_free_yet_are_awaited),
		TEST(senseless_questions_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
