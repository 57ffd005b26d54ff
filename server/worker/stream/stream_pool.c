/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/stream/stream_pool.h"

#include "base/lock.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/marker_page.h"

#include <pthread.h>

/* Hardware queues of the GPU (device.c); each stream has its own while there are enough. */
#define QUEUES 32
/* Each stream takes half a MiB of device memory. */
#define STREAMS (QUEUES / 2)

/* Even indexes belong to one front end, odd ones to the other. */
struct stream_pool {
	CUstream streams[STREAMS];
	bool used[STREAMS];
	int count;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream_pool stream_pools[GPD_DEVICES_MAX] GP_GUARDED_BY(lock);
/* Number of all sessions' streams, and whether it ever exceeded the queues. */
static int streams GP_GUARDED_BY(lock);
static bool stale GP_GUARDED_BY(lock);

/* The driver assigns the front end at the first work. */
static CUresult
stream_make(CUstream *stream, const struct gpd_marker_page *page)
{
	CUresult result = gpd_driver.cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, 0);

	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuStreamWriteValue32_v2(*stream, page->device, 0, 0);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuStreamSynchronize(*stream);
	return result;
}

static void
stream_pool_fill(struct stream_pool *stream_pool)
{
	struct gpd_marker_page *page = gpd_marker_page_acquire();
	CUstream first;

	/* The first stream is discarded: it is not part of the alternation if another stream has
	 * just had work. */
	if (page && stream_make(&first, page) == CUDA_SUCCESS)
		(void)gpd_driver.cuStreamDestroy_v2(first);
	while (page && stream_pool->count < STREAMS &&
	       stream_make(&stream_pool->streams[stream_pool->count], page) == CUDA_SUCCESS)
		stream_pool->count++;
	gpd_marker_page_release(page);
}

void
gpd_stream_pool_start(int device)
{
	struct stream_pool stream_pool = { 0 };

	/* The software device has no front ends, and canceled streams cannot be reused. */
	if (gpd_driver.gpSoftStreamCancel)
		return;
	/* Sessions use the pools of other devices meanwhile. */
	stream_pool_fill(&stream_pool);
	pthread_mutex_lock(&lock);
	stream_pools[device] = stream_pool;
	pthread_mutex_unlock(&lock);
}

/* Returns a free stream of the front end with fewer streams in use, or -1. */
static int
stream_pool_choose(const struct stream_pool *stream_pool) GP_LOCKED(lock)
{
	int used[2] = { 0 }, free_one[2] = { -1, -1 };

	for (int i = 0; i < stream_pool->count; i++) {
		if (stream_pool->used[i])
			used[i & 1]++;
		else
			free_one[i & 1] = i;
	}
	if (free_one[0] < 0 || (free_one[1] >= 0 && used[1] < used[0]))
		return free_one[1];
	return free_one[0];
}

CUstream
gpd_stream_pool_acquire(int device)
{
	CUstream stream = NULL;
	int i;

	pthread_mutex_lock(&lock);
	i = stream_pool_choose(&stream_pools[device]);
	if (i >= 0) {
		stream_pools[device].used[i] = true;
		stream = stream_pools[device].streams[i];
	}
	pthread_mutex_unlock(&lock);
	return stream;
}

bool
gpd_stream_pool_release(CUstream stream)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < gpd_devices.count * STREAMS && !found; i++) {
		struct stream_pool *stream_pool = &stream_pools[i / STREAMS];

		found = stream_pool->used[i % STREAMS] &&
			stream_pool->streams[i % STREAMS] == stream;
		if (found)
			stream_pool->used[i % STREAMS] = false;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* None may be in use. */
static void
stream_pools_renew(void) GP_LOCKED(lock)
{
	for (int i = 0; i < gpd_devices.count; i++) {
		struct stream_pool *stream_pool = &stream_pools[i];

		if (!stream_pool->count || gpd_device_enter(i) != CUDA_SUCCESS)
			continue;
		while (stream_pool->count)
			(void)gpd_driver.cuStreamDestroy_v2(
				stream_pool->streams[--stream_pool->count]);
		stream_pool_fill(stream_pool);
	}
}

void
gpd_stream_pool_stream_added(void)
{
	pthread_mutex_lock(&lock);
	stale = ++streams > QUEUES - STREAMS || stale;
	pthread_mutex_unlock(&lock);
}

void
gpd_stream_pool_stream_removed(void)
{
	pthread_mutex_lock(&lock);
	if (--streams == 0 && stale) {
		stream_pools_renew();
		stale = false;
	}
	pthread_mutex_unlock(&lock);
}
