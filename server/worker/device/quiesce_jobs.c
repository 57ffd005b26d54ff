/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/device/quiesce_jobs.h"

#include "base/lock.h"
#include "base/thread.h"
#include "server/worker/device/device.h"
#include "server/worker/device/quiesce.h"

#include <pthread.h>
#include <stdlib.h>
#include <utlist.h>

struct job {
	struct job *next;
	gpd_quiesce_job *run;
	void *arg;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t done;
	struct job *waiting; /* utlist */
	bool running;        /* the thread exists */
} jobs = { .lock = PTHREAD_MUTEX_INITIALIZER };
GP_COND_CONSTRUCTOR(jobs.done);

bool
gpd_quiesce_jobs_try(void)
{
	bool idle = true;

	for (int i = 0; i < gpd_devices.count; i++) {
		if (!gpd_device_has_context(i) || gpd_device_enter(i) != CUDA_SUCCESS)
			continue;
		idle = gpd_quiesce_try(i) && idle;
	}
	return idle;
}

static void *
jobs_run(void *unused)
{
	struct job *job;

	pthread_mutex_lock(&jobs.lock);
	while ((job = jobs.waiting)) {
		LL_DELETE(jobs.waiting, job);
		pthread_mutex_unlock(&jobs.lock);
		job->run(job->arg);
		free(job);
		pthread_mutex_lock(&jobs.lock);
	}
	jobs.running = false;
	pthread_cond_broadcast(&jobs.done);
	pthread_mutex_unlock(&jobs.lock);
	return unused;
}

void
gpd_quiesce_jobs_add(gpd_quiesce_job *run, void *arg)
{
	struct job *job = malloc(sizeof(*job));
	bool queued;

	pthread_mutex_lock(&jobs.lock);
	queued = job && (jobs.running || !gp_thread_start("quiesce-jobs", 0, jobs_run, NULL));
	if (queued) {
		*job = (struct job){ .run = run, .arg = arg };
		LL_APPEND(jobs.waiting, job);
		jobs.running = true;
	}
	pthread_mutex_unlock(&jobs.lock);
	if (queued)
		return;
	free(job);
	run(arg);
}

void
gpd_quiesce_jobs_wait(void)
{
	pthread_mutex_lock(&jobs.lock);
	while (jobs.running)
		pthread_cond_wait(&jobs.done, &jobs.lock);
	pthread_mutex_unlock(&jobs.lock);
}
