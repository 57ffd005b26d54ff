/* SPDX-License-Identifier: Apache-2.0 */
#include "nvml/utilization.h"

#include "base/clock.h"
#include "base/lock.h"
#include "nvml/answer.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* Minimum time between two samples: the daemon does not measure continuously. */
#define WINDOW_NS UINT64_C(200000000)

struct sample {
	uint64_t at_ns; /* 0: no sample */
	uint64_t time_us;
	size_t count;
	struct gp_state_process times[GP_STATE_PROCESSES_MAX];
};

struct sample_window {
	struct sample before, now;
};

static pthread_mutex_t shares_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sample_window *sample_window[GPN_DEVICES_MAX] GP_GUARDED_BY(shares_lock);

static int
sample_read(struct gpn_device *device, struct sample_window *pair) GP_LOCKED(shares_lock)
{
	struct timespec time;
	int r;

	pair->before = pair->now;
	r = gpn_get_process_times(device, pair->now.times, &pair->now.count);
	(void)clock_gettime(CLOCK_REALTIME, &time);
	pair->now.time_us = (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
	pair->now.at_ns = r == GPN_SUCCESS ? gp_now_ns() : 0;
	return r;
}

/* Takes samples until there are two with the minimum distance, of which the later is not older than
 * that distance. */
static int
sample_read_pair(struct gpn_device *device, struct sample_window *pair) GP_LOCKED(shares_lock)
{
	uint64_t age = pair->now.at_ns ? gp_now_ns() - pair->now.at_ns : 0;
	int r = GPN_SUCCESS;

	if (pair->before.at_ns && pair->now.at_ns && age < WINDOW_NS)
		return GPN_SUCCESS;
	if (!pair->now.at_ns)
		r = sample_read(device, pair);
	if (r == GPN_SUCCESS && age < WINDOW_NS)
		gp_sleep_ns(WINDOW_NS - age);
	return r == GPN_SUCCESS ? sample_read(device, pair) : r;
}

/* A process that is not in the previous sample has started since, at 0. */
static uint64_t
get_ns_before(const struct sample *before, uint64_t pid)
{
	for (size_t i = 0; i < before->count; i++) {
		if (before->times[i].pid == pid)
			return before->times[i].gpu_ns;
	}
	return 0;
}

static unsigned int
get_percent(const struct sample_window *pair, const struct gp_state_process *process)
{
	uint64_t before = get_ns_before(&pair->before, process->pid);
	uint64_t took = process->gpu_ns > before ? process->gpu_ns - before : 0;
	uint64_t window = pair->now.at_ns - pair->before.at_ns;

	/* The time of a long kernel is counted when it ends, so it can exceed the window. */
	return took >= window ? 100 : (unsigned int)(took * 100 / window);
}

int
gpn_utilization_samples(struct gpn_device *device, struct gpn_utilization_samples *shares)
{
	struct sample_window *pair;
	int r = GPN_MEMORY;

	(void)pthread_mutex_lock(&shares_lock);
	pair = sample_window[device->index];
	if (!pair)
		pair = sample_window[device->index] = calloc(1, sizeof(*pair));
	if (pair)
		r = sample_read_pair(device, pair);
	if (r == GPN_SUCCESS) {
		shares->time_us = pair->now.time_us;
		shares->count = pair->now.count;
		for (size_t i = 0; i < shares->count; i++)
			shares->list[i] = (struct gpn_utilization_sample){
				.pid = (unsigned int)pair->now.times[i].pid,
				.percent = get_percent(pair, &pair->now.times[i]),
			};
	}
	(void)pthread_mutex_unlock(&shares_lock);
	return r;
}

/* Writes one sample; the layout depends on the version. */
typedef void (*put_sample)(void *list, size_t index, uint64_t time_us,
			   struct gpn_utilization_sample share);

static void
put_plain(void *list, size_t index, uint64_t time_us, struct gpn_utilization_sample share)
{
	((struct gpn_sample *)list)[index] = (struct gpn_sample){
		.pid = share.pid,
		.time_us = time_us,
		.sm = share.percent,
	};
}

static void
put_v1(void *list, size_t index, uint64_t time_us, struct gpn_utilization_sample share)
{
	((struct gpn_sample_v1 *)list)[index] = (struct gpn_sample_v1){
		.time_us = time_us,
		.pid = share.pid,
		.sm = share.percent,
	};
}

/* Writes the samples if they are newer than since_us and fit into *count entries; sets *count to
 * their number. */
static int
list_samples(void *handle, uint64_t since_us, unsigned int *count, void *list, put_sample put)
{
	struct gpn_device *device;
	struct gpn_utilization_samples *shares;
	int r = gpn_find_device(handle, count, &device);

	if (r != GPN_SUCCESS)
		return r;
	shares = malloc(sizeof(*shares));
	r = shares ? gpn_utilization_samples(device, shares) : GPN_MEMORY;
	if (r == GPN_SUCCESS && (shares->count == 0 || shares->time_us <= since_us))
		r = GPN_NOT_FOUND;
	if (r == GPN_SUCCESS && (!list || *count < shares->count))
		r = GPN_INSUFFICIENT_SIZE;
	for (size_t i = 0; r == GPN_SUCCESS && i < shares->count; i++)
		put(list, i, shares->time_us, shares->list[i]);
	if (r == GPN_SUCCESS || r == GPN_INSUFFICIENT_SIZE)
		*count = (unsigned int)shares->count;
	free(shares);
	return r;
}

GPN_FUNCTION(nvmlDeviceGetProcessUtilization, void *device, struct gpn_sample *list,
	     unsigned int *count, unsigned long long since_us)
{
	return list_samples(device, since_us, count, list, put_plain);
}

GPN_FUNCTION(nvmlDeviceGetProcessesUtilizationInfo, void *handle, struct gpn_sample_list *list)
{
	struct gpn_device *device;
	int r = gpn_find_device(handle, list, &device);

	if (r == GPN_SUCCESS && list->version != GPN_VERSION(struct gpn_sample_list, 1))
		r = GPN_ARGUMENT_VERSION_MISMATCH;
	return r == GPN_SUCCESS
		       ? list_samples(handle, list->since_us, &list->count, list->samples, put_v1)
		       : r;
}

/* After fork() the child must take its own samples. */
static void
samples_after_fork(void) GP_LOCK_UNCHECKED
{
	(void)pthread_mutex_init(&shares_lock, NULL);
	for (int i = 0; i < GPN_DEVICES_MAX; i++) {
		if (sample_window[i])
			sample_window[i]->before.at_ns = sample_window[i]->now.at_ns = 0;
	}
}

__attribute__((constructor)) static void
samples_watch_forks(void)
{
	(void)pthread_atfork(NULL, NULL, samples_after_fork);
}
