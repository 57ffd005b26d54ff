/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/device/window.h"

#include "base/lock.h"
#include "server/common/base/integers.h"
#include "server/common/base/log.h"
#include "server/common/config/config_value.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

/* The software device stores what is mapped in ordinary memory. */
#define SIZE_SOFTWARE ((uint64_t)16 << 30)
#define SIZE_MIN ((uint64_t)16 << 20)
#define GRANULE_MAX ((uint64_t)2 << 20)
/* Maximum host memory of one session. */
#define HOST_SIZE_MAX ((uint64_t)64 << 30)
#define HOST_SIZE_SOFTWARE ((uint64_t)4 << 30)
/* Default sizes are multiples of this. */
#define SIZE_STEP ((uint64_t)32 << 30)
/* With this many sessions, further ones get a quarter of the default size: there are about sixty
 * terabytes of addresses. */
#define MANY 128
#define SIZE_REQUESTED_MIN ((uint64_t)1 << 30)
#define SIZE_REQUESTED_MAX ((uint64_t)4 << 40)
/* A window is aligned to its size, at most to this. */
#define ALIGN_MAX SIZE_STEP
/* More than the range of the kernel's address randomization, and less than would reach the
 * windows. */
#define APART ((size_t)24 << 40)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t next GP_GUARDED_BY(lock) = GPD_WINDOW_FIRST;

static int window_count GP_GUARDED_BY(lock);
/* A window was refused, and none has been reserved since. */
static bool refused GP_GUARDED_BY(lock);

void
gpd_window_separate_driver(void)
{
#ifndef __SANITIZE_THREAD__
	/* The kernel assigns addresses downward from the highest. This mapping only occupies the
	 * first ones and is never used. Where the address space is smaller, nothing changes. */
	if (mmap(NULL, APART, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) ==
	    MAP_FAILED)
		gpd_debug("variables may lie where programs have memory: %m");
#endif
}

bool
gpd_window_size_parse(const char *text, uint64_t *size_p)
{
	uint64_t size;

	*size_p = 0;
	if (!text || !*text)
		return true;
	if (!gpd_value_parse_number(text, SIZE_MIN, SIZE_REQUESTED_MAX, &size))
		return false;
	/* Granularity of the driver's mappings. */
	*size_p = gpd_round_up(size, GRANULE_MAX);
	return true;
}

/* One and a half times the memory: freed addresses are reused only after a while. */
static uint64_t
usual_size(uint64_t memory) GP_LOCKED(lock)
{
	uint64_t size = 0;

	if (gpd_window_size_parse(getenv("GPUPOOL_WINDOW_SIZE"), &size) && size)
		return size;
	if (gpd_driver.software)
		return SIZE_SOFTWARE;
	size = gpd_round_up(memory + memory / 2 + 1, SIZE_STEP);
	return window_count < MANY ? size : gpd_round_up(size / 4, SIZE_STEP);
}

static bool
range_overlaps(uint64_t address, uint64_t size, const struct gpd_range *avoid, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (avoid[i].address < address + size &&
		    address < avoid[i].address + avoid[i].size &&
		    avoid[i].address + avoid[i].size > avoid[i].address)
			return true;
	}
	return false;
}

/* Whether the driver reserved exactly this range. */
static bool
window_reserve(uint64_t address, uint64_t size)
{
	CUdeviceptr got = 0;

	if (gpd_driver.cuMemAddressReserve(&got, size, 0, address, 0) != CUDA_SUCCESS)
		return false;
	if (got == address)
		return true;
	(void)gpd_driver.cuMemAddressFree(got, size);
	return false;
}

/* The driver reserves its addresses in this process, too, so a range that is free here is free
 * there. */
static bool
window_reserve_host(uint64_t address, uint64_t size)
{
	void *wanted = (void *)(uintptr_t)address;
	void *got = mmap(wanted, size, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (got == wanted)
		return true;
	/* Kernels before 4.17 treat the address as a hint. */
	if (got != MAP_FAILED)
		(void)munmap(got, size);
	return false;
}

/* Searches from an address to the end, then from the first address. */
static bool
find_between(uint64_t first, uint64_t end, uint64_t from, uint64_t size,
	     const struct gpd_range *avoid, size_t avoid_count, struct gpd_range *window_p)
{
	uint64_t step = size < ALIGN_MAX ? size : ALIGN_MAX;
	uint64_t address = gpd_round_up(from, step);

	for (uint64_t tried = 0; tried < end - first; tried += step) {
		if (address + size > end)
			address = gpd_round_up(first, step);
		if (address + size <= end && !range_overlaps(address, size, avoid, avoid_count) &&
		    window_reserve(address, size)) {
			*window_p = (struct gpd_range){ .address = address, .size = size };
			return true;
		}
		address += step;
	}
	return false;
}

static bool
window_find(uint64_t size, const struct gpd_range *avoid, size_t avoid_count,
	    struct gpd_range *window_p) GP_LOCKED(lock)
{
	/* Reuses addresses as late as possible, so that a stray pointer of an ended session hits no
	 * other session. */
	if (find_between(GPD_WINDOW_FIRST, GPD_WINDOW_END, next, size, avoid, avoid_count,
			 window_p))
		next = window_p->address + size;
	else if (!find_between(GPD_WINDOW_SANITIZED_FIRST, GPD_WINDOW_SANITIZED_END,
			       GPD_WINDOW_SANITIZED_FIRST, size, avoid, avoid_count, window_p))
		return false;
	window_count++;
	return true;
}

int
gpd_window_acquire(uint64_t size, uint64_t memory, const struct gpd_range *avoid,
		   size_t avoid_count, struct gpd_range *window_p)
{
	bool found, usual = size == 0;

	pthread_mutex_lock(&lock);
	if (usual)
		size = usual_size(memory);
	/* The client requests the least it needs; the smaller the window, the more places it can
	 * have. */
	else if (size < SIZE_REQUESTED_MIN)
		size = SIZE_REQUESTED_MIN;
	size = gpd_round_up(size, gpd_devices.granularity);
	found = size <= SIZE_REQUESTED_MAX && window_find(size, avoid, avoid_count, window_p);
	while (!found && usual && size > SIZE_STEP) {
		size = gpd_round_up(size / 2, SIZE_STEP);
		found = window_find(size, avoid, avoid_count, window_p);
	}
	refused = !found;
	pthread_mutex_unlock(&lock);
	return found ? 0 : -ENOMEM;
}

bool
gpd_window_is_exhausted(void)
{
	struct gpd_range window;
	bool suspected;

	pthread_mutex_lock(&lock);
	suspected = refused;
	pthread_mutex_unlock(&lock);
	if (!suspected)
		return false;
	if (gpd_window_acquire(0, 0, NULL, 0, &window))
		return true;
	gpd_window_release(&window);
	return false;
}

void
gpd_window_release(const struct gpd_range *window)
{
	if (!window->size)
		return;
	(void)gpd_driver.cuMemAddressFree(window->address, window->size);
	pthread_mutex_lock(&lock);
	window_count--;
	pthread_mutex_unlock(&lock);
}

int
gpd_window_acquire_host(uint64_t size, struct gpd_range *range_p)
{
	uint64_t most = gpd_driver.software ? HOST_SIZE_SOFTWARE : HOST_SIZE_MAX;
	uint64_t address;
	bool found = false;

	size = gpd_round_up(size < most ? size : most, GRANULE_MAX);
	if (size == 0)
		return -ENOMEM;
	pthread_mutex_lock(&lock);
	address = gpd_round_up(next, size < ALIGN_MAX ? GRANULE_MAX : ALIGN_MAX);
	for (uint64_t tried = 0; !found && tried < GPD_HOST_END - GPD_WINDOW_FIRST; tried += size) {
		if (address + size > GPD_HOST_END)
			address = GPD_WINDOW_FIRST;
		found = window_reserve_host(address, size);
		if (found)
			*range_p = (struct gpd_range){ .address = address, .size = size };
		address += size;
	}
	if (found)
		next = address;
	pthread_mutex_unlock(&lock);
	return found ? 0 : -ENOMEM;
}

void
gpd_window_release_host(const struct gpd_range *range)
{
	if (range->size)
		(void)munmap((void *)(uintptr_t)range->address, range->size);
}
