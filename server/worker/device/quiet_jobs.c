/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/device/quiet_jobs.h"

#include "server/worker/device/quiet.h"
#include "server/worker/worker.h"

#include <pthread.h>
#include <stdlib.h>

struct job {
	struct job *next;
	gpd_janitor_job *run;
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
} janitor = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.given = PTHREAD_COND_INITIALIZER,
	.done = PTHREAD_COND_INITIALIZER,
	.last = &janitor.first,
};

static struct job *
take(void)
{
	struct job *job;

	while (!janitor.first)
		pthread_cond_wait(&janitor.given, &janitor.lock);
	job = janitor.first;
	janitor.first = job->next;
	if (!janitor.first)
		janitor.last = &janitor.first;
	return job;
}

bool
gpd_janitor_seek_quiet(void)
{
	bool quiet = true;

	for (int i = 0; i < gpd_worker.device_count; i++) {
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
	pthread_mutex_lock(&janitor.lock);
	for (;;) {
		struct job *job = take();

		janitor.running = true;
		pthread_mutex_unlock(&janitor.lock);
		job->run(job->arg);
		free(job);
		pthread_mutex_lock(&janitor.lock);
		janitor.running = false;
		pthread_cond_broadcast(&janitor.done);
	}
	return unused;
}

static bool
start(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	if (janitor.started)
		return true;
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	janitor.started = !pthread_create(&thread, &attributes, work, NULL);
	pthread_attr_destroy(&attributes);
	return janitor.started;
}

void
gpd_janitor_run(gpd_janitor_job *run, void *arg)
{
	struct job *job = malloc(sizeof(*job));
	bool queued = false;

	pthread_mutex_lock(&janitor.lock);
	if (job && start()) {
		*job = (struct job){ .run = run, .arg = arg };
		*janitor.last = job;
		janitor.last = &job->next;
		pthread_cond_signal(&janitor.given);
		queued = true;
	}
	pthread_mutex_unlock(&janitor.lock);
	if (queued)
		return;
	free(job);
	run(arg);
}

void
gpd_janitor_wait(void)
{
	pthread_mutex_lock(&janitor.lock);
	while (janitor.running || janitor.first)
		pthread_cond_wait(&janitor.done, &janitor.lock);
	pthread_mutex_unlock(&janitor.lock);
}
