/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/share/front.h"

#include "base/lock.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/wait_page.h"

#include <pthread.h>

/* Of the GPU (device.c); each stream has one for itself, while there are enough. */
#define QUEUES 32
/* Each costs half a MiB of the GPU's memory. */
#define STREAMS (QUEUES / 2)

/* The even ones belong to one place, the odd ones to the other. */
struct front {
	CUstream streams[STREAMS];
	bool used[STREAMS];
	int count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct front fronts[GPD_DEVICES_MAX] GP_GUARDED_BY(lock);
/* Of all sessions; whether there were too many. */
static int streams GP_GUARDED_BY(lock);
static bool stale GP_GUARDED_BY(lock);

/* The first work makes the driver decide. */
static CUresult
make(CUstream *stream, const struct gpd_wait_page *page)
{
	CUresult result = gpd_driver.cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, 0);

	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuStreamWriteValue32_v2(*stream, page->device, 0, 0);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuStreamSynchronize(*stream);
	return result;
}

static void
make_all(struct front *front) GP_LOCKED(lock)
{
	struct gpd_wait_page *page = gpd_wait_page_take();
	CUstream first;

	/* The first is no part of the turns, if another stream has just had work. */
	if (page && make(&first, page) == CUDA_SUCCESS)
		(void)gpd_driver.cuStreamDestroy_v2(first);
	while (page && front->count < STREAMS &&
	       make(&front->streams[front->count], page) == CUDA_SUCCESS)
		front->count++;
	gpd_wait_page_give(page);
}

void
gpd_front_start(int device)
{
	/* The software device has no front ends, and streams that were cancelled stay so. */
	if (gpd_driver.gpSoftStreamCancel)
		return;
	pthread_mutex_lock(&lock);
	make_all(&fronts[device]);
	pthread_mutex_unlock(&lock);
}

/* A free one where fewer are in use. */
static int
choose(const struct front *front) GP_LOCKED(lock)
{
	int used[2] = { 0 }, free_one[2] = { -1, -1 };

	for (int i = 0; i < front->count; i++) {
		if (front->used[i])
			used[i & 1]++;
		else
			free_one[i & 1] = i;
	}
	if (free_one[0] < 0 || (free_one[1] >= 0 && used[1] < used[0]))
		return free_one[1];
	return free_one[0];
}

CUstream
gpd_front_take(int device)
{
	CUstream stream = NULL;
	int i;

	pthread_mutex_lock(&lock);
	i = choose(&fronts[device]);
	if (i >= 0) {
		fronts[device].used[i] = true;
		stream = fronts[device].streams[i];
	}
	pthread_mutex_unlock(&lock);
	return stream;
}

bool
gpd_front_give(CUstream stream)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < gpd_devices.count * STREAMS && !found; i++) {
		struct front *front = &fronts[i / STREAMS];

		found = front->used[i % STREAMS] && front->streams[i % STREAMS] == stream;
		if (found)
			front->used[i % STREAMS] = false;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* None is in use. */
static void
renew(void) GP_LOCKED(lock)
{
	for (int i = 0; i < gpd_devices.count; i++) {
		struct front *front = &fronts[i];

		if (!front->count || gpd_device_enter(i) != CUDA_SUCCESS)
			continue;
		while (front->count)
			(void)gpd_driver.cuStreamDestroy_v2(front->streams[--front->count]);
		make_all(front);
	}
}

void
gpd_front_count(void)
{
	pthread_mutex_lock(&lock);
	stale = ++streams > QUEUES - STREAMS || stale;
	pthread_mutex_unlock(&lock);
}

void
gpd_front_uncount(void)
{
	pthread_mutex_lock(&lock);
	if (--streams == 0 && stale) {
		renew();
		stale = false;
	}
	pthread_mutex_unlock(&lock);
}
