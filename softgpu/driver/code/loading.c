/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/driver/code/loading.h"

#include "base/clock.h"
#include "base/lock.h"
#include "softgpu/driver/stream/stream.h"

#include <pthread.h>
#include <stdlib.h>

#define VARIABLE "GPUPOOL_SOFT_LOADING_WAITS"
/* Interval at which a kernel that must not start checks whether its stream was stopped. */
#define POLL_NS 10000000

static struct {
	pthread_once_t once;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool waits;
	unsigned int running, loading; /* number of running kernels and of loading calls */
} gate = {
	.once = PTHREAD_ONCE_INIT,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};
GP_COND_CONSTRUCTOR(gate.changed);

static void
read_variable(void)
{
	gate.waits = getenv(VARIABLE) != NULL;
}

static bool
is_used(void)
{
	pthread_once(&gate.once, read_variable);
	return gate.waits;
}

void
gs_loading_wait(void)
{
	if (!is_used())
		return;
	pthread_mutex_lock(&gate.lock);
	gate.loading++;
	while (gate.running)
		pthread_cond_wait(&gate.changed, &gate.lock);
	gate.loading--;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
}

void
gs_loading_pass(void)
{
	if (!is_used())
		return;
	pthread_mutex_lock(&gate.lock);
	while (gate.loading)
		pthread_cond_wait(&gate.changed, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
}

bool
gs_loading_begin(const struct gs_stream *stream)
{
	bool stopped = false;

	if (!is_used())
		return true;
	pthread_mutex_lock(&gate.lock);
	while (gate.loading && !(stopped = gs_stream_stopped(stream)))
		(void)gp_cond_wait_until(&gate.changed, &gate.lock, gp_now_ns() + POLL_NS);
	if (!stopped)
		gate.running++;
	pthread_mutex_unlock(&gate.lock);
	return !stopped;
}

void
gs_loading_end(void)
{
	if (!is_used())
		return;
	pthread_mutex_lock(&gate.lock);
	gate.running--;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
}
