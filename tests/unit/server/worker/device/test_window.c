/* SPDX-License-Identifier: Apache-2.0 */
/* Where windows lie, for clients that have something at some addresses. */
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/window.h"
#include "tests/test.h"

#include <errno.h>

#define GIB ((uint64_t)1 << 30)

/* What this process has: the driver gives no window that touches it. */
static struct gpd_range own;

static CUresult
reserve(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr wanted,
	unsigned long long flags)
{
	(void)alignment;
	(void)flags;
	*address = wanted;
	if (wanted < own.address + own.size && own.address < wanted + size)
		*address = 0x1000;
	return CUDA_SUCCESS;
}

static CUresult
give(CUdeviceptr address, size_t size)
{
	(void)address;
	(void)size;
	return CUDA_SUCCESS;
}

static bool
is_within(const struct gpd_range *window, uint64_t first, uint64_t end)
{
	return window->address >= first && window->address + window->size <= end;
}

UNIT_TEST(usual_places_come_first)
{
	struct gpd_range window;

	assert_true(gpd_window_acquire(GIB, 0, NULL, 0, &window) == 0);
	assert_true(is_within(&window, GPD_WINDOW_FIRST, GPD_WINDOW_END));
	gpd_window_release(&window);
}

/* The shadow of ThreadSanitizer, and the program itself. */
UNIT_TEST(program_with_thread_sanitizer)
{
	const struct gpd_range avoid[] = {
		{ 0x8000000000, 0x550000000000 - 0x8000000000 },
		{ 0x555500000000, 256 * GIB },
		{ 0x568000000000, 0x7fffffffffff - 0x568000000000 },
	};
	const size_t count = sizeof(avoid) / sizeof(avoid[0]);
	struct gpd_range window;

	own = (struct gpd_range){ GPD_WINDOW_SANITIZED_FIRST, 4 * GIB };
	assert_true(gpd_window_acquire(GIB, 0, avoid, count, &window) == 0);
	assert_true(is_within(&window, GPD_WINDOW_SANITIZED_FIRST + 4 * GIB, avoid[1].address));
	gpd_window_release(&window);
	assert_true(gpd_window_acquire(512 * GIB, 0, avoid, count, &window) == 0);
	assert_true(is_within(&window, GPD_WINDOW_SANITIZED_FIRST + 4 * GIB, avoid[1].address) ||
		    is_within(&window, avoid[1].address + avoid[1].size, GPD_WINDOW_SANITIZED_END));
	gpd_window_release(&window);
	own.size = 0;
	/* The next one lies at a usual place again. */
	assert_true(gpd_window_acquire(GIB, 0, NULL, 0, &window) == 0);
	assert_true(is_within(&window, GPD_WINDOW_FIRST, GPD_WINDOW_END));
	gpd_window_release(&window);
}

UNIT_TEST(no_place_is_an_error)
{
	const struct gpd_range avoid = { 0x1000, 0x7ffffffff000 };
	struct gpd_range window;

	assert_true(gpd_window_acquire(GIB, 0, &avoid, 1, &window) == -ENOMEM);
	/* For this client. */
	assert_false(gpd_window_is_exhausted());
}

static CUresult
refuse(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr wanted,
       unsigned long long flags)
{
	return CUDA_ERROR_OUT_OF_MEMORY;
}

UNIT_TEST(a_process_without_addresses_is_noticed_when_a_window_is_refused)
{
	struct gpd_range window;

	gpd_driver.cuMemAddressReserve = refuse;
	assert_false(gpd_window_is_exhausted());
	assert_true(gpd_window_acquire(GIB, 0, NULL, 0, &window) == -ENOMEM);
	assert_true(gpd_window_is_exhausted());
	assert_true(gpd_window_is_exhausted());
	/* Other sessions have returned some. */
	gpd_driver.cuMemAddressReserve = reserve;
	assert_false(gpd_window_is_exhausted());
	gpd_driver.cuMemAddressReserve = refuse;
	assert_false(gpd_window_is_exhausted());
	gpd_driver.cuMemAddressReserve = reserve;
}

int
main(void)
{
	gpd_devices.granularity = 2 << 20;
	gpd_driver.cuMemAddressReserve = reserve;
	gpd_driver.cuMemAddressFree = give;
	return unit_tests_run(NULL, NULL);
}
