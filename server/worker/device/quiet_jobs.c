/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/device/quiet_jobs.h"

#include "base/lock.h"
#include "base/thread.h"
#include "server/worker/device/device.h"
#include "server/worker/device/quiet.h"

#include <pthread.h>
#include <stdlib.h>

struct job {
	struct job *next;
	gpd_quiet_job *run;
	void *arg;
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t given;
	pthread_cond_t done;
	struct job *first;
	struct job **last;
	bool running;
	bool started;
} jobs = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.last = &jobs.first,
};
GP_COND_AT_START(jobs.given);
GP_COND_AT_START(jobs.done);

static struct job *
take(void) GP_LOCKED(jobs.lock)
{
	struct job *job;

	while (!jobs.first)
		pthread_cond_wait(&jobs.given, &jobs.lock);
	job = jobs.first;
	jobs.first = job->next;
	if (!jobs.first)
		jobs.last = &jobs.first;
	return job;
}

bool
gpd_quiet_jobs_seek_quiet(void)
{
	bool quiet = true;

	for (int i = 0; i < gpd_devices.count; i++) {
		if (gpd_device_enter(i) != CUDA_SUCCESS)
			continue;
		gpd_quiet_seek(i);
		quiet = quiet && gpd_quiet_is(i);
	}
	return quiet;
}

static void *
work(void *unused)
{
	pthread_mutex_lock(&jobs.lock);
	for (;;) {
		struct job *job = take();

		jobs.running = true;
		pthread_mutex_unlock(&jobs.lock);
		job->run(job->arg);
		free(job);
		pthread_mutex_lock(&jobs.lock);
		jobs.running = false;
		pthread_cond_broadcast(&jobs.done);
	}
	return unused;
}

static bool
start(void)
{
	if (!jobs.started)
		jobs.started = !gp_thread_start("quiet-jobs", 0, work, NULL);
	return jobs.started;
}

void
gpd_quiet_jobs_run(gpd_quiet_job *run, void *arg)
{
	struct job *job = malloc(sizeof(*job));
	bool queued = false;

	pthread_mutex_lock(&jobs.lock);
	if (job && start()) {
		*job = (struct job){ .run = run, .arg = arg };
		*jobs.last = job;
		jobs.last = &job->next;
		pthread_cond_signal(&jobs.given);
		queued = true;
	}
	pthread_mutex_unlock(&jobs.lock);
	if (queued)
		return;
	free(job);
	run(arg);
}

void
gpd_quiet_jobs_wait(void)
{
	pthread_mutex_lock(&jobs.lock);
	while (jobs.running || jobs.first)
		pthread_cond_wait(&jobs.done, &jobs.lock);
	pthread_mutex_unlock(&jobs.lock);
}
