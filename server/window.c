/* SPDX-License-Identifier: Apache-2.0 */
#include "server/window.h"

#include "server/driver.h"
#include "server/worker.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define SIZE_DEFAULT ((uint64_t)256 << 30)
/* The software device keeps what is mapped in ordinary memory. */
#define SIZE_SOFTWARE ((uint64_t)16 << 30)
#define SIZE_MIN ((uint64_t)16 << 20)
#define SIZE_ASKED_MIN ((uint64_t)1 << 30)
#define SIZE_ASKED_MAX ((uint64_t)4 << 40)
/* Windows begin at multiples of their size, or of this if they are larger. */
#define ALIGN_MAX ((uint64_t)256 << 30)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t next = GPD_WINDOW_FIRST;

static uint64_t
usual_size(void)
{
	const char *given = getenv("GPUPOOL_WINDOW_SIZE");
	uint64_t size = given ? strtoull(given, NULL, 0) : 0;

	if (size < SIZE_MIN)
		size = gpd_driver.software ? SIZE_SOFTWARE : SIZE_DEFAULT;
	return size;
}

static uint64_t
round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

static bool
touches(uint64_t address, uint64_t size, const struct gpd_range *avoid, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (avoid[i].address < address + size &&
		    address < avoid[i].address + avoid[i].size &&
		    avoid[i].address + avoid[i].size > avoid[i].address)
			return true;
	}
	return false;
}

/* Whether the driver gave exactly this range. */
static bool
reserve(uint64_t address, uint64_t size)
{
	CUdeviceptr got = 0;

	if (gpd_driver.cuMemAddressReserve(&got, size, 0, address, 0) != CUDA_SUCCESS)
		return false;
	if (got == address)
		return true;
	(void)gpd_driver.cuMemAddressFree(got, size);
	return false;
}

int
gpd_window_take(uint64_t size, const struct gpd_range *avoid, size_t avoid_count,
		struct gpd_range *window_p)
{
	uint64_t step, address, tried;
	int r = -ENOMEM;

	if (size == 0)
		size = usual_size();
	/* A client asks for the least it wants; the smaller, the more places there are to try. */
	else if (size < SIZE_ASKED_MIN)
		size = SIZE_ASKED_MIN;
	if (size > SIZE_ASKED_MAX)
		return -ENOMEM;
	size = round_up(size, gpd_worker.granularity);
	step = size < ALIGN_MAX ? size : ALIGN_MAX;

	pthread_mutex_lock(&lock);
	/* Addresses are used again late: a stray pointer of a session that ended meets nobody. */
	address = round_up(next, step);
	for (tried = 0; tried < GPD_WINDOW_END - GPD_WINDOW_FIRST; tried += step) {
		if (address + size > GPD_WINDOW_END)
			address = round_up(GPD_WINDOW_FIRST, step);
		if (!touches(address, size, avoid, avoid_count) && reserve(address, size)) {
			*window_p = (struct gpd_range){ .address = address, .size = size };
			next = address + size;
			r = 0;
			break;
		}
		address += step;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

void
gpd_window_give(const struct gpd_range *window)
{
	if (window->size)
		(void)gpd_driver.cuMemAddressFree(window->address, window->size);
}
