/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/memory/host_watch.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "gpd_calls.h"
#include "protocol/host_changes.h"
#include "server/worker/memory/host_state.h"
#include "server/worker/session/session.h"
#include "server/worker/session/wait.h"

#include <pthread.h>
#include <stdlib.h>
#include <utlist.h>

/* Between two looks: so long, and so many times as long as one takes. */
#define PAUSE_NS UINT64_C(70000)
#define PAUSE_FACTOR 3
#define HELD_NS (GP_HOST_HELD_MS * UINT64_C(1000000))

struct gpd_host_watch {
	struct gpd_session *session;
	pthread_t thread;
	pthread_cond_t wanted;
	/* Under the memory's copies_lock: */
	struct gpd_host_question *held; /* the oldest first */
	unsigned int count;
	bool over;
};

static void
answer_oldest(struct gpd_host_watch *watch)
{
	struct gpd_host_question *question = watch->held;
	CUresult result;

	LL_DELETE(watch->held, question);
	watch->count--;
	result = gpd_host_question_answer(watch->session, question);
	if (result != CUDA_SUCCESS)
		gpd_wait_reply(watch->session, question->request, result);
	free(question);
}

static bool
is_due(const struct gpd_host_watch *watch, struct gpd_host_question *question)
{
	return question->writes != watch->session->host_memory->writes ||
	       gp_now_ns() - question->asked_ns > HELD_NS ||
	       gpd_host_question_has_news(watch->session, question);
}

static void *
run(void *arg)
{
	struct gpd_host_watch *watch = arg;
	pthread_mutex_t *lock = &watch->session->host_memory->copies_lock;

	pthread_mutex_lock(lock);
	while (!watch->over) {
		uint64_t begin = gp_worked_ns(), took;

		if (!watch->held) {
			pthread_cond_wait(&watch->wanted, lock);
			continue;
		}
		if (is_due(watch, watch->held))
			answer_oldest(watch);
		pthread_mutex_unlock(lock);
		took = (gp_worked_ns() - begin) * PAUSE_FACTOR;
		gp_nap(took > PAUSE_NS ? took : PAUSE_NS);
		pthread_mutex_lock(lock);
	}
	pthread_mutex_unlock(lock);
	return NULL;
}

static CUresult
start(struct gpd_session *session)
{
	struct gpd_host_watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return CUDA_ERROR_OUT_OF_MEMORY;
	watch->session = session;
	gp_cond_init(&watch->wanted);
	if (gp_thread_start_joined(&watch->thread, "host-watch", 0, run, watch)) {
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
	struct gpd_host_question *question;
	CUresult result = gpd_host_question_create(session, args->ranges, &question);

	if (result != CUDA_SUCCESS)
		return result;
	if (!memory->watch && start(session) != CUDA_SUCCESS) {
		free(question);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	question->asked_ns = gp_now_ns();
	pthread_mutex_lock(&memory->copies_lock);
	question->writes = memory->writes;
	LL_APPEND(memory->watch->held, question);
	if (memory->watch->count++ == 0)
		pthread_cond_signal(&memory->watch->wanted);
	else if (memory->watch->count > GP_HOST_HELD_MAX)
		answer_oldest(memory->watch);
	pthread_mutex_unlock(&memory->copies_lock);
	return GPD_LATER;
}

/* What is held is answered. */
static void
release(struct gpd_host_watch *watch)
{
	while (watch->held)
		answer_oldest(watch);
}

static CUresult
take_now(struct gpd_session *session, struct gp_bytes ranges, unsigned int part)
{
	struct gpd_host_memory *memory = session->host_memory;
	CUresult result;

	if (!memory || part > GP_PICTURE_ANY)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&memory->copies_lock);
	if (memory->watch)
		release(memory->watch);
	result = gpd_host_take(session, ranges, part);
	pthread_mutex_unlock(&memory->copies_lock);
	return result;
}

CUresult
gpd_gpHostTake(struct gpd_session *session, const struct gp_args_gpHostTake *args,
	       struct gp_reply_gpHostTake *reply)
{
	return take_now(session, args->ranges, args->part);
}

CUresult
gpd_gpHostFetch(struct gpd_session *session, const struct gp_args_gpHostFetch *args,
		struct gp_reply_gpHostFetch *reply)
{
	return take_now(session, args->ranges, GP_PICTURE_ANY);
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
	release(watch);
	memory->watch = NULL;
	pthread_cond_signal(&watch->wanted);
	pthread_mutex_unlock(&memory->copies_lock);
	pthread_join(watch->thread, NULL);
	pthread_cond_destroy(&watch->wanted);
	free(watch);
}
