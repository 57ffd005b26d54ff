/* SPDX-License-Identifier: Apache-2.0 */
/* Which host memory kernels reach, and at which addresses. */
#include "client/alloc/heap.h"
#include "client/host/host_block.h"
#include "client/host/host_space.h"
#include "client/host/pointer_scan.h"
#include "protocol/image_info.h"
#include "tests/unit/client/coherence_fixture.h"

TEST(an_address_among_parameters_makes_a_block_one_that_kernels_reach)
{
	uint8_t *a = pinned(100), *b = pinned(100), *c = pinned(100);
	const uint64_t words[4] = { 0, (uintptr_t)b + 50, 12345, UINT64_MAX };

	CU(gpc_host_memory_scan(fake.context, words, sizeof(words)));
	assert_int_equal(atomic_load(&gpc_replica_count), 1);
	CU(gpc_host_memory_scan(fake.context, words, sizeof(words)));
	assert_int_equal(atomic_load(&gpc_replica_count), 1);
	/* Not at an odd place, nor a part of a word. */
	CU(gpc_host_memory_scan(fake.context, &(uint64_t){ (uintptr_t)a }, 7));
	assert_int_equal(atomic_load(&gpc_replica_count), 1);
	CU(gpc_host_memory_scan(fake.context, &(uint64_t){ (uintptr_t)a }, 8));
	assert_int_equal(atomic_load(&gpc_replica_count), 2);
	CU(gpc_cuMemFreeHost(a));
	CU(gpc_cuMemFreeHost(b));
	CU(gpc_cuMemFreeHost(c));
	assert_int_equal(atomic_load(&gpc_host_memory_copy_only), 0);
}

/* Of one large structure and an address. */
static const struct gp_param_info half_filled_params[] = { { 0, 1016 }, { 1016, 8 } };
static const struct gp_kernel_info half_filled = { .param_count = 2, .params = half_filled_params };

/* A structure that the program has filled in part has what lay there before. */
TEST(an_address_left_over_in_a_large_structure_does_not)
{
	uint8_t *copied = pinned(100), *other = pinned(100);
	uint64_t words[128] = { 0 };

	gpc_host_block_note_copied((uintptr_t)copied + 99);
	words[100] = (uintptr_t)copied;
	CU(gpc_host_memory_scan_parameters(fake.context, words, sizeof(words), &half_filled));
	assert_int_equal(atomic_load(&gpc_replica_count), 0);
	/* None was copied from there. */
	words[101] = (uintptr_t)other;
	CU(gpc_host_memory_scan_parameters(fake.context, words, sizeof(words), &half_filled));
	assert_int_equal(atomic_load(&gpc_replica_count), 1);
	/* A parameter of its own, also among many, or bytes that the program copies, are meant. */
	words[127] = (uintptr_t)copied;
	CU(gpc_host_memory_scan_parameters(fake.context, words, sizeof(words), &half_filled));
	assert_int_equal(atomic_load(&gpc_replica_count), 2);
	CU(gpc_host_memory_scan(fake.context, words, sizeof(words)));
	assert_int_equal(atomic_load(&gpc_replica_count), 2);
	CU(gpc_cuMemFreeHost(copied));
	CU(gpc_cuMemFreeHost(other));
}

static void
name_in_structure(const void *host)
{
	uint64_t words[128] = { [100] = (uintptr_t)host };

	CU(gpc_host_memory_scan_parameters(fake.context, words, sizeof(words), &half_filled));
}

static void
name_alone(const void *host)
{
	uint64_t words[128] = { [127] = (uintptr_t)host };

	CU(gpc_host_memory_scan_parameters(fake.context, words, sizeof(words), &half_filled));
}

/* As a batch that waits for its turn: then the copy tells what the address was. */
TEST(the_copy_may_come_behind_the_kernel)
{
	uint8_t *host = pinned(100);
	unsigned int cold = atomic_load(&gpc_host_memory_copy_only);

	name_in_structure(host);
	assert_int_equal(atomic_load(&gpc_replica_count), 1);
	fake_wire_host_at((uintptr_t)host)[7] = 3;
	fake.posted++;
	gpc_host_block_note_copied((uintptr_t)host + 99);
	assert_int_equal(atomic_load(&gpc_replica_count), 0);
	assert_int_equal(host[7], 3);
	name_in_structure(host);
	assert_int_equal(atomic_load(&gpc_replica_count), 0);
	assert_int_equal(atomic_load(&gpc_host_memory_copy_only), cold);
	name_alone(host);
	assert_int_equal(atomic_load(&gpc_replica_count), 1);
	gpc_host_block_note_copied((uintptr_t)host);
	assert_int_equal(atomic_load(&gpc_replica_count), 1);
	assert_int_equal(atomic_load(&gpc_host_memory_copy_only), cold - 1);
	CU(gpc_cuMemFreeHost(host));
}

TEST(unless_something_else_has_named_the_block)
{
	uint8_t *parameter = pinned(100), *asked = pinned(100), *filled = pinned(100);
	struct gpc_address found;

	name_in_structure(parameter);
	name_in_structure(asked);
	name_in_structure(filled);
	name_alone(parameter);
	(void)reach(asked);
	assert_true(gpc_host_memory_get_device_address(&(uint64_t){ (uintptr_t)filled }, 100));
	gpc_host_block_note_copied((uintptr_t)parameter);
	gpc_host_block_note_copied((uintptr_t)asked);
	gpc_host_block_note_copied((uintptr_t)filled);
	assert_int_equal(atomic_load(&gpc_replica_count), 3);
	gpc_address_lookup((uintptr_t)filled, &found);
	assert_true(found.device_mapped && found.copied && !found.speculative);
	CU(gpc_cuMemFreeHost(parameter));
	CU(gpc_cuMemFreeHost(asked));
	CU(gpc_cuMemFreeHost(filled));
	assert_int_equal(atomic_load(&gpc_host_memory_copy_only), 0);
}

/* As of another thread. */
TEST(a_copy_may_come_in_between)
{
	struct gpc_pointer_scan names = { 0 };
	uint8_t *host = pinned(100);

	gpc_pointer_scan_init(&names, session());
	names.may_be_stale = true;
	gpc_pointer_scan_add(&names, (uintptr_t)host);
	assert_int_equal(names.count, 1);
	gpc_host_block_note_copied((uintptr_t)host);
	CU(gpc_host_block_map_pointers(&names));
	gpc_pointer_scan_fini(&names);
	assert_int_equal(atomic_load(&gpc_replica_count), 0);
	name_alone(host);
	assert_int_equal(atomic_load(&gpc_replica_count), 1);
	CU(gpc_cuMemFreeHost(host));
	assert_int_equal(atomic_load(&gpc_host_memory_copy_only), 0);
}

TEST(a_doubted_block_may_be_freed)
{
	uint8_t *host = pinned(100), *copied = pinned(100);

	name_in_structure(host);
	name_in_structure(copied);
	gpc_host_block_note_copied((uintptr_t)copied);
	CU(gpc_cuMemFreeHost(host));
	CU(gpc_cuMemFreeHost(copied));
	assert_int_equal(atomic_load(&gpc_replica_count), 0);
	assert_int_equal(atomic_load(&gpc_host_memory_copy_only), 0);
}

/* As PyTorch's of 648 bytes, behind a parameter of 4. */
TEST(nor_in_one_of_a_few_hundred_bytes)
{
	const struct gp_param_info params[] = { { 0, 4 }, { 8, 648 }, { 656, 184 } };
	const struct gp_kernel_info kernel = { .param_count = 3, .params = params };
	uint8_t *copied = pinned(100);
	uint64_t words[105] = { 0 };

	gpc_host_block_note_copied((uintptr_t)copied);
	words[1] = words[44] = words[81] = (uintptr_t)copied;
	CU(gpc_host_memory_scan_parameters(fake.context, words, sizeof(words), &kernel));
	assert_int_equal(atomic_load(&gpc_replica_count), 0);
	/* One is filled, as far as anybody knows. */
	words[82] = (uintptr_t)copied;
	CU(gpc_host_memory_scan_parameters(fake.context, words, sizeof(words), &kernel));
	assert_int_equal(atomic_load(&gpc_replica_count), 1);
	CU(gpc_cuMemFreeHost(copied));
}

/* As in packed structures, which few copy from, and among what is left over. */
TEST(at_an_odd_place_one_counts_that_no_copy_has_named)
{
	uint8_t *copied = pinned(100), *other = pinned(100);
	uint8_t bytes[32] = { 0 };
	uint64_t address = (uintptr_t)copied;

	gpc_host_block_note_copied(address);
	memcpy(bytes + 12, &address, sizeof(address));
	CU(gpc_host_memory_scan_parameters(fake.context, bytes, sizeof(bytes), NULL));
	CU(gpc_host_memory_scan(fake.context, bytes, sizeof(bytes)));
	assert_int_equal(atomic_load(&gpc_replica_count), 0);
	address = (uintptr_t)other;
	memcpy(bytes + 12, &address, sizeof(address));
	CU(gpc_host_memory_scan_parameters(fake.context, bytes, sizeof(bytes), NULL));
	assert_int_equal(atomic_load(&gpc_replica_count), 1);
	CU(gpc_cuMemFreeHost(copied));
	CU(gpc_cuMemFreeHost(other));
}

TEST(nor_of_registered_memory)
{
	uint8_t *memory = aligned_alloc(4096, 4096);
	uint64_t words[128] = { 0 };

	CU(gpc_cuMemHostRegister_v2(memory, 4096, 0));
	words[5] = (uintptr_t)memory + 8;
	gpc_host_block_note_copied((uintptr_t)memory);
	assert_false(gpc_host_memory_must_translate(words, sizeof(words), &half_filled));
	assert_true(gpc_host_memory_must_translate(words, 64, NULL));
	CU(gpc_host_memory_translate(fake.context, words, sizeof(words), &half_filled));
	assert_int_equal(words[5], (uintptr_t)memory + 8);
	/* Kernels reach it now: then the address is theirs in any case. */
	CU(gpc_host_memory_translate(fake.context, words, 64, NULL));
	assert_int_not_equal(words[5], (uintptr_t)memory + 8);
	words[5] = (uintptr_t)memory + 8;
	assert_true(gpc_host_memory_must_translate(words, sizeof(words), &half_filled));
	CU(gpc_cuMemHostUnregister(memory));
	free(memory);
}

TEST(mapped_memory_is_reached_from_the_start)
{
	uint64_t before = fake_wire_host_mapped();
	uint8_t *host;
	void *more = &more;

	CU(gpc_cuMemHostAlloc((void **)&host, 9 * FAKE_WIRE_MIB, CU_MEMHOSTALLOC_DEVICEMAP));
	assert_int_equal(atomic_load(&gpc_replica_count), 1);
	assert_int_equal(fake_wire_host_at((uintptr_t)host)[9 * FAKE_WIRE_MIB - 1], 0);
	fake.host_quota = fake_wire_host_mapped();
	assert_int_equal(gpc_cuMemHostAlloc(&more, 9 * FAKE_WIRE_MIB, CU_MEMHOSTALLOC_DEVICEMAP),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_null(more);
	CU(gpc_cuMemFreeHost(host));
	assert_int_equal(fake_wire_host_mapped(), before);
}

TEST(registered_memory_has_another_address)
{
	uint8_t *memory = aligned_alloc(4096, 5 * 4096), *host = memory + 4096 + 24;
	struct gpc_address found;
	CUdeviceptr device;
	uint64_t value;

	memset(memory, 1, 5 * 4096);
	CU(gpc_cuMemHostRegister_v2(host, 9001, 0));
	device = reach(host + 1) - 1;
	assert_int_equal(device % 4096, 24);
	assert_int_equal(fake_wire_host_at(device)[9000], 1);
	fake_wire_host_at(device)[0] = 2;
	fake_wire_host_at(device)[9000] = 3;
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

TEST(parameters_name_registered_memory_as_the_program_does)
{
	uint8_t *memory = aligned_alloc(4096, 2 * 4096);
	uint64_t words[3] = { 1, (uintptr_t)memory + 100, (uintptr_t)memory + 8192 };

	assert_false(gpc_host_memory_must_translate(words, sizeof(words), NULL));
	CU(gpc_cuMemHostRegister_v2(memory, 8192, 0));
	assert_true(gpc_host_memory_must_translate(words, sizeof(words), NULL));
	assert_false(gpc_host_memory_must_translate(words, 15, NULL));
	CU(gpc_host_memory_translate(fake.context, words, sizeof(words), NULL));
	assert_int_equal(words[0], 1);
	assert_int_equal(words[1], reach(memory) + 100);
	assert_int_equal(words[2], (uintptr_t)memory + 8192);
	assert_false(gpc_host_memory_must_translate(words, sizeof(words), NULL));
	CU(gpc_cuMemHostUnregister(memory));
	free(memory);
}

/* Natively nothing touches it any more. */
TEST(registered_memory_may_be_gone_before_it_is_unregistered)
{
	uint8_t *gone =
		mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *other = pinned(100);
	CUdeviceptr device;

	assert_true(gone != MAP_FAILED);
	CU(gpc_cuMemHostRegister_v2(gone + 100, 2 * 4096, 0));
	device = reach(gone + 100);
	(void)reach(other);
	assert_int_equal(atomic_load(&gpc_replica_count), 2);
	assert_int_equal(munmap(gone, 4096), 0);
	other[1] = 5;
	CU(gpc_coherence_before_work(session()));
	assert_int_equal(fake_wire_host_at((uintptr_t)other)[1], 5);
	assert_int_equal(atomic_load(&gpc_replica_count), 1);
	/* What a kernel writes there goes nowhere. */
	*fake_wire_host_at(device) = 1;
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

TEST(past_the_quota_kernels_reach_no_more)
{
	uint8_t *large;
	CUdeviceptr address;

	fake.host_quota = fake_wire_host_mapped() + 4 * FAKE_WIRE_MIB;
	large = pinned(9 * FAKE_WIRE_MIB);
	assert_int_equal(gpc_cuMemHostGetDevicePointer_v2(&address, large, 0),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(address, 0);
	/* It is the program's memory nevertheless. */
	large[9 * FAKE_WIRE_MIB - 1] = 1;
	CU(gpc_cuMemFreeHost(large));
}

TEST(senseless_questions_are_refused)
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

static bool
overlap(const struct gpc_heap_range *a, const struct gpc_heap_range *b)
{
	return a->base < b->base + b->size && b->base < a->base + a->size;
}

TEST(addresses_are_reused_last_when_they_have_been_unmapped)
{
	struct gpc_heap_range first, next;
	int count = 0;

	CU(gpc_host_space_map(fake.context, 100 * FAKE_WIRE_MIB, &first));
	gpc_host_space_unmap(fake.context, &first);
	do {
		CU(gpc_host_space_map(fake.context, 100 * FAKE_WIRE_MIB, &next));
		gpc_host_space_unmap(fake.context, &next);
		count++;
	} while (!overlap(&first, &next) && count < 10);
	assert_in_range(count, 4, 9);
}

UNIT_TEST_MAIN(NULL, NULL)
