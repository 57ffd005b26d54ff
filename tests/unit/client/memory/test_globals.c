/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of images: how they are found, and that no other memory is at their addresses. */
#include "client/connect/window.h"
#include "client/memory/address.h"
#include "client/memory/globals.h"
#include "gpc_calls.h"
#include "tests/unit/client/fake_wire.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

FAKE_WIRE_TEST(variables_are_found_until_their_image_goes)
{
	const uint64_t address = 0x7f0000000100;
	struct gpc_address found;

	assert_int_equal(gpc_globals_add(fake.context, address, 64, false, 5), 0);
	assert_int_equal(gpc_globals_add(fake.context, address + 64, 4, false, 6), 0);
	assert_int_equal(gpc_globals_add(fake.context, address, 64, false, 5), 0);

	gpc_address_lookup(address + 63, &found);
	assert_int_equal(found.kind, GPC_ADDRESS_DEVICE);
	assert_int_equal(found.base, address);
	assert_int_equal(found.size, 64);
	assert_int_equal(gpc_cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
	gpc_globals_drop_image(5);
	gpc_address_lookup(address + 63, &found);
	assert_int_equal(found.kind, GPC_ADDRESS_PAGEABLE);
	gpc_address_lookup(address + 64, &found);
	assert_int_equal(found.kind, GPC_ADDRESS_DEVICE);
}

static enum gpc_address_kind
kind_of(uint64_t address)
{
	struct gpc_address found;

	gpc_address_lookup(address, &found);
	return found.kind;
}

FAKE_WIRE_TEST(a_variable_stays_as_long_as_anybody_has_asked_for_it)
{
	const uint64_t address = 0x7f0000000100;
	struct gpc_context other = *fake.context;
	struct gpc_address found;

	/* A library's is one for all contexts of the device. */
	assert_int_equal(gpc_globals_add(fake.context, address, 64, false, 5), 0);
	assert_int_equal(gpc_globals_add(&other, address, 64, false, 5), 0);
	assert_int_equal(gpc_globals_add(fake.context, address, 64, false, 7), 0);
	gpc_address_lookup(address, &found);
	assert_ptr_equal(found.context, fake.context);
	gpc_globals_drop_image(7);
	assert_int_equal(kind_of(address), GPC_ADDRESS_DEVICE);
	gpc_globals_drop_context(fake.context);

	gpc_address_lookup(address, &found);
	assert_int_equal(found.kind, GPC_ADDRESS_DEVICE);
	assert_ptr_equal(found.context, &other);
	gpc_globals_drop_context(&other);
	assert_int_equal(kind_of(address), GPC_ADDRESS_PAGEABLE);
}

/* Whether the program could map a page there. */
static bool
is_free(uint64_t address)
{
	void *wanted = (void *)(uintptr_t)(address & ~(uint64_t)0xfff);
	void *found = mmap(wanted, 4096, PROT_NONE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (found != MAP_FAILED)
		assert_int_equal(munmap(found, 4096), 0);
	return found == wanted;
}

FAKE_WIRE_TEST(where_a_variable_lies_the_program_gets_no_memory)
{
	/* a ends in the page in which b lies, and c has the one behind it and the next. */
	const uint64_t page = 0x7f0000001000, a = page - 4096 - 8, b = page + 16, c = page + 4096;

	assert_int_equal(gpc_globals_add(fake.context, a, 4096 + 16, false, 5), 0);
	assert_false(is_free(a));
	assert_false(is_free(page - 4096));
	assert_false(is_free(page));
	assert_true(is_free(c));
	assert_int_equal(gpc_globals_add(fake.context, b, 8, false, 6), 0);
	assert_int_equal(gpc_globals_add(fake.context, c, 4096 + 1, false, 7), 0);
	assert_false(is_free(c));
	assert_false(is_free(c + 4096));
	assert_true(is_free(c + 8192));

	gpc_globals_drop_image(5);
	assert_true(is_free(a));
	assert_true(is_free(page - 4096));
	assert_false(is_free(page));
	/* Over what is reserved and what is not. */
	assert_int_equal(gpc_globals_add(fake.context, a, 8, false, 5), 0);
	assert_int_equal(gpc_globals_add(fake.context, page - 4096, 4096, false, 5), 0);
	assert_int_equal(gpc_globals_add(fake.context, page - 4096 * 4, 4096 * 3 - 8, false, 8), 0);
	gpc_globals_drop_image(6);
	assert_true(is_free(page));
	gpc_globals_drop_image(7);
	assert_true(is_free(c));
	assert_true(is_free(c + 4096));
	gpc_globals_drop_image(5);
	assert_false(is_free(a));
	gpc_globals_drop_image(8);
	assert_true(is_free(a));
	assert_true(is_free(page - 4096 * 4));
}

FAKE_WIRE_TEST(a_variable_that_is_refused_leaves_no_page_reserved)
{
	const uint64_t page = 0x7f0000001000;
	void *mine = mmap((void *)(uintptr_t)(page + 8192), 4096, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	struct rlimit old, none;

	assert_int_equal((uintptr_t)mine, page + 8192);
	/* Page by page, as a variable is in the middle. */
	assert_int_equal(gpc_globals_add(fake.context, page + 4096, 8, false, 6), 0);
	assert_int_equal(gpc_globals_add(fake.context, page, 4096, false, 6), 0);
	gpc_globals_drop_image(6);
	assert_int_equal(gpc_globals_add(fake.context, page + 4096, 8, false, 6), 0);
	assert_int_equal(gpc_globals_add(fake.context, page + 4096 + 8, 4096, false, 5),
			 GP_E_INVALID);
	assert_false(is_free(page + 8192));
	assert_int_equal(munmap(mine, 4096), 0);
	assert_true(is_free(page + 8192));
	assert_false(is_free(page + 4096));
	gpc_globals_drop_image(6);

	/* No more addresses than there are: the daemon is not to blame. */
	assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
	none = (struct rlimit){ .rlim_cur = 4096, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
	assert_int_equal(gpc_globals_add(fake.context, page, 8, false, 5), -ENOMEM);
	assert_int_equal(gpc_window_reserve(page, 4096), -ENOMEM);
	assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
	assert_int_equal(kind_of(page), GPC_ADDRESS_PAGEABLE);
	assert_true(is_free(page));
}

FAKE_WIRE_TEST(a_variable_lies_where_nothing_else_does)
{
	const uint64_t address = 0x7f0000000100;
	static const struct {
		uint64_t before, size;
	} overlaps[] = { { 0, 63 }, { 0, 65 }, { 1, 64 }, { 32, 64 }, { 64, 1000 } };
	char local[16];

	assert_int_equal(gpc_globals_add(fake.context, address, 64, false, 5), 0);
	for (size_t i = 0; i < sizeof(overlaps) / sizeof(overlaps[0]); i++)
		assert_int_equal(gpc_globals_add(fake.context, address - overlaps[i].before,
						 overlaps[i].size, false, 6),
				 GP_E_INVALID);
	assert_int_equal(gpc_globals_add(fake.context, address + 63, 1, false, 6), GP_E_INVALID);
	/* The program's own, of which the first page or the last is enough; the window; no place.
	 */
	assert_int_equal(gpc_globals_add(fake.context, (uintptr_t)local, 1, false, 6),
			 GP_E_INVALID);
	assert_int_equal(gpc_globals_add(fake.context, (uintptr_t)overlaps - 4096, 8192, false, 6),
			 GP_E_INVALID);
	assert_int_equal(gpc_globals_add(fake.context, fake.window + 4096, 8, false, 6),
			 GP_E_INVALID);
	assert_int_equal(gpc_globals_add(fake.context, UINT64_MAX - 3, 8, false, 6), GP_E_INVALID);
	assert_int_equal(gpc_globals_add(fake.context, 0, 8, false, 6), GP_E_INVALID);
	assert_int_equal(gpc_globals_add(fake.context, 64, 8, false, 6), GP_E_INVALID);
	/* No bytes need no place. */
	assert_int_equal(gpc_globals_add(fake.context, (uintptr_t)local, 0, false, 6), 0);

	assert_int_equal(kind_of((uintptr_t)local), GPC_ADDRESS_PAGEABLE);
	gpc_globals_drop_image(6);
	assert_int_equal(kind_of(address), GPC_ADDRESS_DEVICE);
	gpc_globals_drop_image(5);
}

UNIT_TEST_MAIN(NULL, NULL)
