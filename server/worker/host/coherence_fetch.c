/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/host/coherence_fetch.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "gpd_calls.h"
#include "protocol/host_changes.h"
#include "server/worker/host/host_space_internal.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/responder.h"

#include <pthread.h>
#include <stdlib.h>
#include <utlist.h>

/* Pause between two scans: at least PAUSE_NS, and PAUSE_FACTOR times the CPU time of a scan. */
#define PAUSE_NS UINT64_C(70000)
#define PAUSE_FACTOR 3
#define REQUEST_MAX_NS (GP_HOST_PENDING_MS * UINT64_C(1000000))

struct gpd_host_watch {
	struct gpd_session *session;
	pthread_t thread;
	pthread_cond_t wanted;
	/* Protected by the memory's copies_lock: */
	struct gpd_host_request *pending; /* oldest first */
	unsigned int count;
	bool over;
};

static void
watch_reply_oldest(struct gpd_host_watch *watch)
{
	struct gpd_host_request *request = watch->pending;
	CUresult result;

	LL_DELETE(watch->pending, request);
	watch->count--;
	result = gpd_host_request_reply(watch->session, request);
	if (result != CUDA_SUCCESS)
		gpd_wait_reply(watch->session, request->reply_token, result);
	free(request);
}

static bool
request_is_due(const struct gpd_host_watch *watch, struct gpd_host_request *request)
{
	return request->writes != watch->session->host_memory->writes ||
	       gp_now_ns() - request->requested_ns > REQUEST_MAX_NS ||
	       gpd_host_request_has_changes(watch->session, request);
}

static void *
watch_run(void *arg)
{
	struct gpd_host_watch *watch = arg;
	pthread_mutex_t *lock = &watch->session->host_memory->copies_lock;

	pthread_mutex_lock(lock);
	while (!watch->over) {
		uint64_t begin = gp_thread_cpu_ns(), took;

		if (!watch->pending) {
			pthread_cond_wait(&watch->wanted, lock);
			continue;
		}
		if (request_is_due(watch, watch->pending))
			watch_reply_oldest(watch);
		pthread_mutex_unlock(lock);
		took = (gp_thread_cpu_ns() - begin) * PAUSE_FACTOR;
		gp_sleep_ns(took > PAUSE_NS ? took : PAUSE_NS);
		pthread_mutex_lock(lock);
	}
	pthread_mutex_unlock(lock);
	return NULL;
}

static CUresult
watch_start(struct gpd_session *session)
{
	struct gpd_host_watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return CUDA_ERROR_OUT_OF_MEMORY;
	watch->session = session;
	gp_cond_init(&watch->wanted);
	if (gp_thread_start_joinable(&watch->thread, "host-watch", 0, watch_run, watch)) {
		pthread_cond_destroy(&watch->wanted);
		free(watch);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	session->host_memory->watch = watch;
	return CUDA_SUCCESS;
}

CUresult
gpd_gpHostTakeChanged(struct gpd_session *session, const struct gp_args_gpHostTakeChanged *args,
		      struct gp_reply_gpHostTakeChanged *reply)
{
	struct gpd_host_memory *memory = session->host_memory;
	struct gpd_host_request *request;
	CUresult result = gpd_host_request_create(session, args->ranges, &request);

	if (result != CUDA_SUCCESS)
		return result;
	if (!memory->watch && watch_start(session) != CUDA_SUCCESS) {
		free(request);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	request->requested_ns = gp_now_ns();
	pthread_mutex_lock(&memory->copies_lock);
	request->writes = memory->writes;
	LL_APPEND(memory->watch->pending, request);
	if (memory->watch->count++ == 0)
		pthread_cond_signal(&memory->watch->wanted);
	else if (memory->watch->count > GP_HOST_PENDING_MAX)
		watch_reply_oldest(memory->watch);
	pthread_mutex_unlock(&memory->copies_lock);
	return GPD_LATER;
}

/* Answers all deferred requests. */
static void
watch_reply_all(struct gpd_host_watch *watch)
{
	while (watch->pending)
		watch_reply_oldest(watch);
}

static CUresult
changes_fetch(struct gpd_session *session, struct gp_bytes ranges, unsigned int part)
{
	struct gpd_host_memory *memory = session->host_memory;
	CUresult result;

	if (!memory || part > GP_CONSISTENT_COPY_ANY)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&memory->copies_lock);
	if (memory->watch)
		watch_reply_all(memory->watch);
	result = gpd_host_fetch(session, ranges, part);
	pthread_mutex_unlock(&memory->copies_lock);
	return result;
}

CUresult
gpd_gpHostTake(struct gpd_session *session, const struct gp_args_gpHostTake *args,
	       struct gp_reply_gpHostTake *reply)
{
	return changes_fetch(session, args->ranges, args->part);
}

CUresult
gpd_gpHostFetch(struct gpd_session *session, const struct gp_args_gpHostFetch *args,
		struct gp_reply_gpHostFetch *reply)
{
	return changes_fetch(session, args->ranges, GP_CONSISTENT_COPY_ANY);
}

void
gpd_host_watch_stop(struct gpd_session *session)
{
	struct gpd_host_memory *memory = session->host_memory;
	struct gpd_host_watch *watch = memory ? memory->watch : NULL;

	if (!watch)
		return;
	pthread_mutex_lock(&memory->copies_lock);
	watch->over = true;
	watch_reply_all(watch);
	memory->watch = NULL;
	pthread_cond_signal(&watch->wanted);
	pthread_mutex_unlock(&memory->copies_lock);
	pthread_join(watch->thread, NULL);
	pthread_cond_destroy(&watch->wanted);
	free(watch);
}
